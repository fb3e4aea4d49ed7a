// Tests that need gigabytes of a GPU's memory take turns, also those of other programs: each of
// them would find enough free memory, and together they would not.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace course {

class MemoryTurn {
  public:
    // `file` is created if it is missing; all users of the same file take turns.
    explicit MemoryTurn(const std::string& file)
        : file_(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
    ~MemoryTurn() {
        if (file_ >= 0) close(file_);
    }
    MemoryTurn(const MemoryTurn&) = delete;
    MemoryTurn& operator=(const MemoryTurn&) = delete;

    // Waits for the others. False: they took longer than `limit`. Without the file there is no
    // wait.
    bool take(std::chrono::milliseconds limit) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0) {
            if (std::chrono::steady_clock::now() >= end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        return true;
    }
    void give_back() {
        if (file_ >= 0) static_cast<void>(flock(file_, LOCK_UN));
    }

    // That of this user's tests. NeedsDevice gives it back when a test ends.
    static MemoryTurn& of_tests() {
        static MemoryTurn turn("/tmp/course_device_memory." + std::to_string(getuid()));
        return turn;
    }

  private:
    int file_;
};

}  // namespace course
