#include "file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "errors.hpp"

namespace course::tool {

FileLock::FileLock(const std::filesystem::path& file, const char* waiting) {
    const int flags = std::filesystem::is_directory(file) ? O_RDONLY : O_RDWR | O_CREAT;
    descriptor_ = open(file.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        throw BuildError(fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    if (waiting != nullptr) fmt::print(stderr, "{}\n", waiting);
    while (flock(descriptor_, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        const std::string why = std::strerror(errno);
        close(descriptor_);
        throw BuildError(fmt::format("cannot lock {}: {}", file.string(), why));
    }
}

FileLock::~FileLock() {
    close(descriptor_);
}

}  // namespace course::tool
