// What device code must not do and the CPU build cannot see: there, a kernel is compiled as any function. nvcc refuses both.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "workbook.hpp"

namespace course::tool {

struct HostUse {
    int line = 0;
    std::string name;    // "twice", "std::vector"
    std::string caller;  // "__global__" or "__device__"

    bool operator==(const HostUse&) const = default;
};

// Names of the host's standard library (containers, streams, algorithms, threads) in the bodies of the `kernels` of `text` that are
// declared __global__ or __device__.
std::vector<HostUse> host_library_in(std::string_view text, const std::vector<std::string>& kernels);

// Calls of host functions from device code, out of what clang says of a CUDA file; errors of any other kind are left out.
std::vector<HostUse> host_calls_in(std::string_view clang_says, std::string_view file);

// Both, of the learner's answer to `entry`, in nvcc's words; "" if there are none. Calls are found where clang++ is installed.
std::string host_code_in_kernels(const Workbook& book, const WorkbookEntry& entry,
                                 const std::filesystem::path& root);

}  // namespace course::tool
