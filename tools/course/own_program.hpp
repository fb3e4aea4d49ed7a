// The user's own programs: ./course run my.cu builds them with nvcc or, without a GPU, with the
// stand-in's nvcc.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "subprocess.hpp"

namespace course::tool {

// The files at the start of a command line, after the command: `run my.cu more.cu 7` has two.
// Empty if it names a day.
std::vector<std::string> own_files(const std::vector<std::string>& arguments);

// The files after the colon in a make rule.
std::vector<std::string> prerequisites(const std::string& rule);

enum class For { running, debugging };

struct ProgramBuild {
    For purpose = For::running;
    // -rdc=true: kernels use `__device__` functions and variables of the program's other files.
    bool relocatable_device_code = false;
};

// Throws UsageError if a file is missing or none of them is a .cu file.
void require_program(const std::vector<std::string>& files);

// Throws UsageError if --rdc was given for `name`, which is no file.
void require_no_device_linking(bool relocatable_device_code, const std::string& name);

// Compiles changed files, and returns the program. Throws what require_program throws, and
// BuildError.
std::filesystem::path build_own_program(const Checkout& checkout, const std::vector<std::string>& files,
                                        const ProgramBuild& how = {});

}  // namespace course::tool
