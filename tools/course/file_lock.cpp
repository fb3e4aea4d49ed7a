#include "file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>

#include "errors.hpp"

namespace course::tool {
namespace {

std::string duration(std::time_t seconds) {
    if (seconds < 60) return fmt::format("{} s", seconds);
    return fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

// The text about the holder of the lock, from what it has written to the file, and when.
std::string waiting_for(int descriptor) {
    std::array<char, 256> buffer{};
    const ssize_t size = pread(descriptor, buffer.data(), buffer.size(), 0);
    struct stat file {};
    const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    const std::string_view purpose = text.substr(0, text.find('\n'));
    if (purpose.empty() || fstat(descriptor, &file) != 0) return "course: waiting for another ./course";
    return fmt::format("course: waiting for another ./course, which has been {} for {}", purpose,
                       duration(std::time(nullptr) - file.st_mtime));
}

// On a terminal, one line that counts the seconds; elsewhere, the line is printed once.
class Announcement {
  public:
    ~Announcement() {
        if (!last_.empty() && on_terminal_) fmt::print(stderr, "\r\033[K");
    }
    void show(const std::string& line) {
        if (on_terminal_ && line != last_) {
            fmt::print(stderr, "\r\033[K{}", line);
            std::fflush(stderr);
        } else if (last_.empty()) {
            fmt::print(stderr, "{}\n", line);
        }
        last_ = line;
    }

  private:
    bool on_terminal_ = isatty(STDERR_FILENO) == 1;
    std::string last_;
};

bool try_to_lock(int descriptor, const std::filesystem::path& file) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    const std::string why = std::strerror(errno);
    close(descriptor);
    throw BuildError(fmt::format("cannot lock {}: {}", file.string(), why));
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& file, const std::string& purpose) {
    constexpr std::chrono::milliseconds kPollInterval{50};
    const int flags = std::filesystem::is_directory(file) ? O_RDONLY : O_RDWR | O_CREAT;
    descriptor_ = open(file.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        throw BuildError(fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
    Announcement announcement;
    while (!try_to_lock(descriptor_, file)) {
        if (!purpose.empty()) announcement.show(waiting_for(descriptor_));
        std::this_thread::sleep_for(kPollInterval);
    }
    if (purpose.empty()) return;
    // Other processes that wait read this. If it cannot be written, their message has no reason.
    const std::string text = purpose + "\n";
    if (ftruncate(descriptor_, 0) == 0)
        static_cast<void>(pwrite(descriptor_, text.data(), text.size(), 0) == 0);
}

FileLock::~FileLock() {
    close(descriptor_);
}

}  // namespace course::tool
