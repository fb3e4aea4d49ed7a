#include "file_watcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <thread>

namespace course::tool {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

FileWatcher::FileWatcher(std::vector<fs::path> directories, Method method)
    : directories_(std::move(directories)) {
    for (const fs::path& directory : directories_) {
        if (!fs::is_directory(directory))
            throw std::runtime_error(fmt::format("cannot watch {}: it is no directory", directory.string()));
    }
    if (method == Method::kBest) start_inotify();
    seen_ = stamps();
}

FileWatcher::~FileWatcher() {
    if (inotify_ >= 0) close(inotify_);
}

// If one directory cannot be watched (inotify has limits), all are polled.
void FileWatcher::start_inotify() {
    inotify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    // Some editors write in place, others write a new file and rename it.
    const bool all = inotify_ >= 0 && std::ranges::all_of(directories_, [this](const fs::path& directory) {
                         return inotify_add_watch(inotify_, directory.c_str(),
                                                  IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MODIFY) >= 0;
                     });
    if (all || inotify_ < 0) return;
    close(inotify_);
    inotify_ = -1;
}

FileWatcher::Stamps FileWatcher::stamps() const {
    Stamps result;
    // A file may disappear between the listing and the query; then it counts as missing.
    std::error_code gone;
    for (const fs::path& directory : directories_) {
        for (const auto& file : fs::directory_iterator(directory, gone)) {
            if (file.path().extension() != ".cu" && file.path().extension() != ".cuh") continue;
            const Stamp stamp = {fs::last_write_time(file, gone), fs::file_size(file, gone)};
            if (!gone) result[file.path()] = stamp;
        }
    }
    return result;
}

bool FileWatcher::wait_for_event(milliseconds time) const {
    constexpr milliseconds kPollInterval{200};
    if (polls()) {
        return poll(nullptr, 0, static_cast<int>(std::min(time, kPollInterval).count())) >= 0 ||
               errno != EINTR;
    }
    pollfd events = {inotify_, POLLIN, 0};
    if (poll(&events, 1, static_cast<int>(time.count())) < 0 && errno == EINTR) return false;
    std::array<char, 4096> ignored;
    while (read(inotify_, ignored.data(), ignored.size()) > 0) {
    }
    return true;
}

bool FileWatcher::wait(milliseconds time) {
    constexpr milliseconds kSettled{50};
    const auto end = Clock::now() + time;
    for (auto left = time; left.count() > 0; left = std::chrono::ceil<milliseconds>(end - Clock::now())) {
        Stamps now = stamps();
        if (now == seen_) {
            if (!wait_for_event(left)) return false;
            continue;
        }
        std::this_thread::sleep_for(kSettled);
        Stamps later = stamps();
        if (later == now) {
            seen_ = std::move(later);
            return true;
        }
    }
    return false;
}

}  // namespace course::tool
