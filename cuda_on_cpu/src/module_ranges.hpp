// Where modules of the driver API are. Apart from modules.cpp: programs that load none do without
// the driver API.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// Notes the shared object whose dynamic section this is. Its `file`, which has no name any more,
// stays open until close_file_of_module().
void note_module(const void* dynamic, int file);
void close_file_of_module(const void* dynamic);
// Of the module that the address is in; -1: it is in none, or the file is closed.
int file_of_module(const void* address);
// Are these bytes in the code or the variables of a module?
bool in_module(const volatile void* address, std::size_t bytes);

}  // namespace cuda_on_cpu
