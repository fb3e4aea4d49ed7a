// Turns preprocessed CUDA C++ into C++ for the host compiler. cuda_on_cpu/launch.h shows what
// becomes of a kernel.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translator {

// Something in the source that this translator cannot make sense of.
struct TranslationError : std::runtime_error {
    TranslationError(std::string in_file, int at_line, const std::string& message)
        : std::runtime_error(message), file(std::move(in_file)), line(at_line) {}
    std::string file;  // as the line markers name it; empty where there is none
    int line;
};

// Something that compiles, and is probably a mistake.
struct Warning {
    std::string file;  // as the line markers name it; empty where there is none
    int line;
    std::string message;
};

enum class Dialect { gnu, clang };  // which pragmas the host compiler knows

// With gaps around them, running over the end of a `__shared__` array does not end in the next one.
enum class SharedArrays { plain, in_gaps };

// `__device__`, `__constant__` and `__managed__` variables of a namespace: nvcc's default
// (whole-program mode) gives each .cu file its own, -rdc=true one to all of them.
enum class DeviceVariables { own, shared };

// Line structure is kept: every line of the input is a line of the output.
std::string translate(std::string_view preprocessed, Dialect dialect,
                      SharedArrays shared_arrays = SharedArrays::plain,
                      DeviceVariables device_variables = DeviceVariables::own,
                      std::vector<Warning>* warnings = nullptr);

}  // namespace translator
