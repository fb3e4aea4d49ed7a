// Detects changes of files in a few directories: with inotify, or by polling where inotify is not
// available.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <vector>

namespace course::tool {

class FileWatcher {
  public:
    enum class Method { kBest, kPolling };

    // Watches the files in `directories` with the extensions .cu and .cuh, including files that
    // are created later, but not subdirectories. Throws std::runtime_error if one of them is not a
    // directory.
    explicit FileWatcher(std::vector<std::filesystem::path> directories, Method method = Method::kBest);
    ~FileWatcher();
    FileWatcher(const FileWatcher&) = delete;
    FileWatcher& operator=(const FileWatcher&) = delete;

    bool polls() const { return inotify_ < 0; }

    // Waits until a file has changed since the last call, or returns false when the time is up. A
    // signal ends the wait early, also with false. An editor that saves in several steps causes
    // only one change.
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
    bool wait_for_event(std::chrono::milliseconds time) const;  // false: interrupted by a signal

    std::vector<std::filesystem::path> directories_;
    int inotify_ = -1;
    Stamps seen_;
};

}  // namespace course::tool
