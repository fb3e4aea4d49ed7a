// Files without a name that a process shows to others: memory and events that processes share.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

// What the handle of a piece of memory holds: a file of the process that has exported it, which
// another process opens as /proc/<process>/fd/<file>.
struct ExportedFile {
    std::uint64_t mark;
    std::uint64_t inode;  // another file may have got the number meanwhile
    std::int32_t process;
    std::int32_t file;
    std::uint64_t offset;  // of the first byte
    std::uint64_t size;
};
static_assert(sizeof(ExportedFile) <= 64, "a handle has 64 bytes");

// Of a file of this process; `mark` tells what is in it.
ExportedFile exported(std::uint64_t mark, int file);
// The file of a handle; -1: there is none, and a sentence says so.
int open_file(const char* function, const void* handle, std::uint64_t mark, ExportedFile* what);

}  // namespace cuda_on_cpu
