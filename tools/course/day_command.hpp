// The commands that run a day's programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands.hpp"
#include "days.hpp"
#include "subprocess.hpp"

namespace course::tool {

// Throws UsageError for an invalid --size; empty means that the option is not given.
void require_size(const std::string& size);

// For a day with versions: the command that runs `program` with the given options. Throws
// UsageError for an invalid size.
Command versions_command(const std::filesystem::path& program, const RunOptions& options);

// The command for one program of a day of whole programs. `program` is its name and its default
// arguments, which `arguments` replaces. `suffix` is "_exercise" for the learner's program.
Command whole_program_command(const Checkout& checkout, const Day& day,
                              const std::vector<std::string>& program, const std::string& suffix,
                              const std::vector<std::string>& arguments);

// Throws UsageError for options that a day of whole programs does not have.
void require_no_versions(const Day& day, const RunOptions& options);

}  // namespace course::tool
