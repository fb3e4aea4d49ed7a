// Where modules of the driver API are. Apart from modules.cpp: programs that load none do without
// the driver API.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// Notes the shared object whose dynamic section this is.
void note_module(const void* dynamic);
// Are these bytes in the code or the variables of a module?
bool in_module(const volatile void* address, std::size_t bytes);

}  // namespace cuda_on_cpu
