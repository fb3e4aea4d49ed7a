#include "file_watcher.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "temporary_directory.hpp"

namespace course::tool {
namespace {

using std::chrono::milliseconds;

class FileWatcherTest : public testing::TestWithParam<FileWatcher::Method> {
  protected:
    // Is a change detected that happens shortly after the watcher starts to wait?
    template <class Change>
    bool sees(Change change) {
        std::thread other([&] {
            std::this_thread::sleep_for(milliseconds(30));
            change();
        });
        const bool seen = watcher.wait(milliseconds(5000));
        other.join();
        return seen;
    }

    TemporaryDirectory directory;
    std::filesystem::path file = directory.write("a.cu", "one");
    FileWatcher watcher{{directory.path()}, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Both, FileWatcherTest,
                         testing::Values(FileWatcher::Method::kBest, FileWatcher::Method::kPolling),
                         [](const auto& method) {
                             return std::string(method.param == FileWatcher::Method::kBest ? "inotify"
                                                                                           : "polling");
                         });

TEST_P(FileWatcherTest, UsesTheMethodThatItWasTold) {
    EXPECT_EQ(watcher.polls(), GetParam() == FileWatcher::Method::kPolling);
}

TEST_P(FileWatcherTest, SeesASaveInPlaceAndOneByRenaming) {
    EXPECT_TRUE(sees([&] { directory.write("a.cu", "two and more"); }));
    EXPECT_TRUE(sees([&] {
        directory.write(".a.cu.swp", "three");
        std::filesystem::rename(directory.path() / ".a.cu.swp", file);
    }));
    EXPECT_FALSE(watcher.wait(milliseconds(300))) << "one save, told twice";
}

TEST_P(FileWatcherTest, SeesANewFileAndOneThatWentAway) {
    EXPECT_TRUE(sees([&] { directory.write("b.cu", ""); }));
    EXPECT_TRUE(sees([&] { std::filesystem::remove(file); }));
}

TEST_P(FileWatcherTest, SeesWhatWasSavedBeforeItWasAsked) {
    directory.write("a.cu", "longer than before");
    EXPECT_TRUE(watcher.wait(milliseconds(5000)));
}

TEST_P(FileWatcherTest, OtherFilesAreNoNews) {
    std::thread other([&] { directory.write("a.cu.bak", "x"); });
    EXPECT_FALSE(watcher.wait(milliseconds(300)));
    other.join();
}

TEST_P(FileWatcherTest, ASignalEndsTheWait) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, &before);
    const auto begin = std::chrono::steady_clock::now();
    const pthread_t waiting = pthread_self();
    std::thread other([&] {
        std::this_thread::sleep_for(milliseconds(50));
        pthread_kill(waiting, SIGUSR1);
    });
    EXPECT_FALSE(watcher.wait(milliseconds(20'000)));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(10'000));
    other.join();
    sigaction(SIGUSR1, &before, nullptr);
}

TEST(FileWatcherErrors, OnlyDirectoriesAreWatched) {
    const TemporaryDirectory directory;
    EXPECT_THROW(FileWatcher({directory.path() / "none"}), std::runtime_error);
    EXPECT_THROW(FileWatcher({directory.write("a.cu", "")}), std::runtime_error);
}

}  // namespace
}  // namespace course::tool
