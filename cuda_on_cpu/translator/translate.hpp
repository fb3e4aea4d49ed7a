// Turns preprocessed CUDA C++ into C++ for the host compiler. cuda_on_cpu/launch.h shows the
// translation of a kernel.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translator {

// A construct in the source that this translator cannot translate.
struct TranslationError : std::runtime_error {
    TranslationError(std::string in_file, int at_line, const std::string& message)
        : std::runtime_error(message), file(std::move(in_file)), line(at_line) {}
    std::string file;  // as the line markers name it; empty where there is none
    int line;
};

// Code that compiles but is probably a mistake.
struct Warning {
    std::string file;  // as the line markers name it; empty where there is none
    int line;
    std::string message;
};

// Which pragmas the host compiler supports.
enum class Dialect { gnu, clang };

// With gaps around the arrays, an access past the end of one `__shared__` array does not reach the
// next array.
enum class SharedArrays { plain, in_gaps };

// `__device__`, `__constant__` and `__managed__` variables at namespace scope: in nvcc's default
// (whole-program) mode each .cu file has its own; with -rdc=true all files share one.
enum class DeviceVariables { own, shared };

// Kernels whose threads only compute may become loops over their threads (cuda_on_cpu/rows.h).
enum class ThreadLoops { off, on };

// Line structure is kept: every line of the input is a line of the output.
std::string translate(std::string_view preprocessed, Dialect dialect,
                      SharedArrays shared_arrays = SharedArrays::plain,
                      DeviceVariables device_variables = DeviceVariables::own,
                      std::vector<Warning>* warnings = nullptr, ThreadLoops loops = ThreadLoops::off);

}  // namespace translator
