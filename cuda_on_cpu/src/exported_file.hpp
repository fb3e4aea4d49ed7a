// Unnamed files that a process exports: memory and events that processes share.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

// The contents of an IPC handle: a file of the exporting process, which another process opens as
// /proc/<process>/fd/<file>.
struct ExportedFile {
    std::uint64_t mark;
    std::uint64_t inode;  // detects that the number `file` has been reused for another file
    std::int32_t process;
    std::int32_t file;
    std::uint64_t offset;  // of the first byte
    std::uint64_t size;
};
static_assert(sizeof(ExportedFile) <= 64, "a handle has 64 bytes");

// Describes a file of this process; `mark` is the kind of its contents.
ExportedFile exported(std::uint64_t mark, int file);
// Opens the file of a handle. -1: there is none; prints a message.
int open_file(const char* function, const void* handle, std::uint64_t mark, ExportedFile* what);

}  // namespace cuda_on_cpu
