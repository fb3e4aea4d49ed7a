// Programs of the reader's own: ./course run my.cu builds them with nvcc, or without a GPU with the
// one that takes its place.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "subprocess.hpp"

namespace course::tool {

// The files that a command line begins with, behind the command: `run my.cu more.cu 7` has two.
// None where it names a day.
std::vector<std::string> own_files(const std::vector<std::string>& arguments);

// The files that a rule of make names behind its colon.
std::vector<std::string> prerequisites(const std::string& rule);

enum class For { running, debugging };

// Compiles what has changed, and returns the program. Throws UsageError for a file that is missing,
// and BuildError.
std::filesystem::path build_own_program(const Checkout& checkout, const std::vector<std::string>& files,
                                        For purpose = For::running);

}  // namespace course::tool
