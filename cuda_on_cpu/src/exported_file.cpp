#include "exported_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "errors.hpp"

namespace cuda_on_cpu {

namespace {

// The file if it is still the one of that inode; -1 if not.
int open_same(const std::string& path, std::uint64_t inode) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_ino == inode) return file;
    if (file >= 0) close(file);
    return -1;
}

// By any thread of the process: /proc/<process>/fd is that of the main thread, and empty once it
// has ended.
int open_file_of(const ExportedFile& what) {
    const std::string name = "/fd/" + std::to_string(what.file);
    const std::string process = "/proc/" + std::to_string(what.process);
    if (const int file = open_same(process + name, what.inode); file >= 0) return file;
    std::error_code error;
    for (std::filesystem::directory_iterator thread(process + "/task", error), end; !error && thread != end;
         thread.increment(error)) {
        if (const int file = open_same(thread->path().string() + name, what.inode); file >= 0) return file;
    }
    return -1;
}

}  // namespace

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
    if (const int file = open_file_of(*what); file >= 0) return file;
    refuse(cudaErrorInvalidResourceHandle, function,
           "process %d, which has exported the handle, has ended or has freed what it stands for",
           what->process);
    return -1;
}

}  // namespace cuda_on_cpu
