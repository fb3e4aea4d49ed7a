// Host code in device code, which the CPU build cannot detect because it compiles a kernel like
// any function. nvcc rejects it.
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
    // "twice", "std::vector"; for language features "throw", "try", "variable-length arrays".
    std::string name;
    std::string caller;  // "__global__" or "__device__"
    Kind kind = Kind::kCall;

    bool operator==(const HostUse&) const = default;
};

// Names of the host's standard library (containers, streams, algorithms, threads) in the bodies of
// the `kernels` of `text` that are declared __global__ or __device__.
std::vector<HostUse> host_library_in(std::string_view text, const std::vector<std::string>& kernels);

// The uses of host code in device code, from clang's messages about a CUDA file compiled for the
// device: functions, variables, and language features that kernels do not have. Other errors, and
// variables of the stand-in's own headers (threadIdx), are left out.
std::vector<HostUse> host_uses_in(std::string_view clang_says, std::string_view file);

// What nvcc would reject in the learner's answer to `entry`, line by line, in the words of nvcc.
struct HostCode {
    std::string named;          // names of the standard library
    std::string by_clang;       // everything else, if clang++ is installed
    std::string not_looked_at;  // otherwise, the reason why it was not checked
};
HostCode host_code_in_kernels(const Workbook& book, const WorkbookEntry& entry,
                              const std::filesystem::path& root);

// The names of the functions of `text` that are declared __global__ or __device__.
std::vector<std::string> device_functions_in(const std::string& text);

// The same for a file of a program of the learner's own: lines "my.cu:7: ...".
HostCode host_code_in_program(const std::filesystem::path& file, const std::filesystem::path& root);

}  // namespace course::tool
