// The commands that run a day's programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands.hpp"
#include "days.hpp"
#include "subprocess.hpp"

namespace course::tool {

// Throws UsageError for what --size does not take; empty: it was not given.
void require_size(const std::string& size);

// Of a day with versions: `program` with what the options ask for. Throws UsageError for a size
// that is none.
Command versions_command(const std::filesystem::path& program, const RunOptions& options);

// One of a day of whole programs: `program` is its name and its usual arguments, `arguments` those
// to give instead. `suffix` is "_exercise" for the learner's.
Command whole_program_command(const Checkout& checkout, const Day& day,
                              const std::vector<std::string>& program, const std::string& suffix,
                              const std::vector<std::string>& arguments);

// Throws UsageError for options that a day of whole programs has not.
void require_no_versions(const Day& day, const RunOptions& options);

}  // namespace course::tool
