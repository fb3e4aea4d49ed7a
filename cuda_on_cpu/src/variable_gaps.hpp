// `__device__` and `__constant__` variables that lie between unused bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cuda_on_cpu {

// The bytes from `from` to `to` belong to the variable and to nothing else.
struct GuardedVariable {
    const char* from;
    const char* begin;
    std::size_t size;
    const char* to;
    std::size_t element;
    const char* name;
    bool writable;
};

// In the order of their addresses.
std::vector<GuardedVariable> guarded_variables();

// " 'table'" for the variable that begins there, if it lies between gaps; else "".
std::string quoted_name_of_variable(const void* begin);

// "index 17 of 'table', which has 16 elements"; of a variable that is no array "byte 68 of
// 'settings', which has 64 bytes".
std::string describe_index(const GuardedVariable& variable, const char* byte);

// What kernels have written beside a variable, as the rest of a sentence; "" if nothing. The gap is
// restored, so that each damage is reported once.
std::string damaged_variable();

}  // namespace cuda_on_cpu
