// What device code must not do and the CPU build cannot see: there, a kernel is compiled as any
// function. nvcc refuses both.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "workbook.hpp"

namespace course::tool {

struct HostUse {
    enum class Kind { kCall, kVariable, kLanguage };

    int line = 0;
    std::string name;    // "twice", "std::vector"; of the language "throw", "try", "variable-length arrays"
    std::string caller;  // "__global__" or "__device__"
    Kind kind = Kind::kCall;

    bool operator==(const HostUse&) const = default;
};

// Names of the host's standard library (containers, streams, algorithms, threads) in the bodies of
// the `kernels` of `text` that are declared __global__ or __device__.
std::vector<HostUse> host_library_in(std::string_view text, const std::vector<std::string>& kernels);

// What device code uses of the host, out of what clang says of a CUDA file compiled for the device:
// functions, variables, and the parts of the language that kernels have not. Errors of any other
// kind are left out, and the variables of the stand-in's own headers (threadIdx).
std::vector<HostUse> host_uses_in(std::string_view clang_says, std::string_view file);

// What nvcc would refuse of the learner's answer to `entry`, line by line in its words.
struct HostCode {
    std::string named;          // of the standard library, by name
    std::string by_clang;       // all other, where clang++ is installed
    std::string not_looked_at;  // else why not
};
HostCode host_code_in_kernels(const Workbook& book, const WorkbookEntry& entry,
                              const std::filesystem::path& root);

}  // namespace course::tool
