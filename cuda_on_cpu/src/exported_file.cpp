#include "exported_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "errors.hpp"

namespace cuda_on_cpu {

ExportedFile exported(std::uint64_t mark, int file) {
    struct stat status {};
    fstat(file, &status);
    return {.mark = mark,
            .inode = status.st_ino,
            .process = getpid(),
            .file = file,
            .offset = 0,
            .size = static_cast<std::uint64_t>(status.st_size)};
}

int open_file(const char* function, const void* handle, std::uint64_t mark, ExportedFile* what) {
    std::memcpy(what, handle, sizeof *what);
    if (what->mark != mark) {
        refuse(cudaErrorInvalidResourceHandle, function, "this handle is none that a process has exported");
        return -1;
    }
    if (what->process == getpid()) {
        refuse(cudaErrorDeviceUninitialized, function,
               "this process has exported the handle; expected a handle of another process");
        return -1;
    }
    const std::string path = "/proc/" + std::to_string(what->process) + "/fd/" + std::to_string(what->file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_ino == what->inode) return file;
    if (file >= 0) close(file);
    refuse(cudaErrorInvalidResourceHandle, function,
           "process %d, which has exported the handle, has ended or has freed what it stands for",
           what->process);
    return -1;
}

}  // namespace cuda_on_cpu
