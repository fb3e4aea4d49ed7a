// Tells when files in a few directories change: by inotify, or where that is not to be had, by
// looking at them again and again.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <vector>

namespace course::tool {

class FileWatcher {
  public:
    enum class Method { kBest, kPolling };

    // Watches the files in `directories` with the extension .cu, also those that come later; not
    // those below. Throws std::runtime_error when one is no directory.
    explicit FileWatcher(std::vector<std::filesystem::path> directories, Method method = Method::kBest);
    ~FileWatcher();
    FileWatcher(const FileWatcher&) = delete;
    FileWatcher& operator=(const FileWatcher&) = delete;

    bool polls() const { return inotify_ < 0; }

    // Waits until one of them has another content or size than when this was last asked, or time is
    // up: false. A signal ends the wait early. An editor that saves in several steps is one change.
    bool wait(std::chrono::milliseconds time);

  private:
    struct Stamp {
        std::filesystem::file_time_type time;
        std::uintmax_t size;
        bool operator==(const Stamp&) const = default;
    };
    using Stamps = std::map<std::filesystem::path, Stamp>;
    Stamps stamps() const;
    void start_inotify();
    bool wait_for_event(std::chrono::milliseconds time) const;  // false: a signal came

    std::vector<std::filesystem::path> directories_;
    int inotify_ = -1;
    Stamps seen_;
};

}  // namespace course::tool
