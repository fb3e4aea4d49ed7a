// The addresses of the driver API's modules. Separate from modules.cpp so that programs without
// modules need not link the driver API.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// Records the shared object with this dynamic section. Its `file`, which has already been unlinked,
// stays open until close_file_of_module().
void note_module(const void* dynamic, int file);
void close_file_of_module(const void* dynamic);
// The file of the module that contains the address; -1: no module does, or the file is closed.
int file_of_module(const void* address);
// Are these bytes in the code or the variables of a module?
bool in_module(const volatile void* address, std::size_t bytes);

}  // namespace cuda_on_cpu
