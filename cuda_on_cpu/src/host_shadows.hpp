// What host code gets for the name of a `__device__` variable or function where a GPU's host would
// use its own: addresses that neither a copy nor a kernel can use.
#pragma once

#include <string>

namespace cuda_on_cpu {

// "the host's address of the __device__ variable 'x': ..."; empty for other addresses.
std::string describe_shadow(const volatile void* address);
// Notes for the end of the program if the bytes begin with, or contain soon, an object whose
// virtual functions are those of the host.
void look_for_virtual_functions(const void* bytes, std::size_t size);

}  // namespace cuda_on_cpu
