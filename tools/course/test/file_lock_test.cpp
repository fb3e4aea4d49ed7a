#include "file_lock.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <regex>
#include <thread>

#include "errors.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

// CaptureStderr() redirects it to a file.
bool stderr_is_empty() {
    struct stat file {};
    return fstat(STDERR_FILENO, &file) == 0 && file.st_size == 0;
}

// The messages of a process that waits for the lock that this process holds for `purpose`: until it
// has printed one, if it has a purpose, else for a moment.
std::string said_while_waiting(const std::filesystem::path& file, const std::string& purpose,
                               const std::string& purpose_of_the_other) {
    auto lock = std::make_unique<FileLock>(file, purpose);
    std::atomic<bool> got_it = false;
    testing::internal::CaptureStderr();
    std::thread other([&] {
        const FileLock second(file, purpose_of_the_other);
        got_it = true;
    });
    // On a loaded machine, the thread may start late.
    const int moments = purpose_of_the_other.empty() ? 20 : 3000;
    for (int i = 0; i < moments && stderr_is_empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(got_it);
    lock.reset();
    other.join();
    EXPECT_TRUE(got_it);
    return testing::internal::GetCapturedStderr();
}

testing::AssertionResult tells(const std::string& said, const std::string& purpose) {
    const std::regex wanted("course: waiting for another ./course, which has been " + purpose +
                            " for [0-9]+ s\n");
    return (std::regex_match(said, wanted) ? testing::AssertionSuccess() : testing::AssertionFailure())
           << "said: " << said;
}

TEST(FileLock, WhoWaitsIsToldForWhatAndHowLong) {
    const TemporaryDirectory directory;
    EXPECT_TRUE(tells(said_while_waiting(directory.path() / "lock", "building day01", "building day02"),
                      "building day01"));
}

TEST(FileLock, OfTwoHoldersTheSecondIsNamed) {
    const TemporaryDirectory directory;
    { const FileLock first(directory.path() / "lock", "building a day with a long name"); }
    EXPECT_TRUE(tells(said_while_waiting(directory.path() / "lock", "x", "y"), "x"));
}

TEST(FileLock, WithoutAPurposeItWaitsInSilence) {
    const TemporaryDirectory directory;
    EXPECT_EQ(said_while_waiting(directory.path(), "", ""), "");
}

TEST(FileLock, AFileThatCannotBeMadeIsNamed) {
    const TemporaryDirectory directory;
    EXPECT_THROW(FileLock(directory.path() / "none" / "lock", "building"), BuildError);
}

}  // namespace
}  // namespace course::tool
