// Inspections, without their output; checks of the files that the learner names, and the head of
// the output.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "commands.hpp"
#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "days.hpp"
#include "inspect_page.hpp"
#include "own_program.hpp"

namespace course::tool {

struct Inspected {
    int exit_code = 0;                   // of the program that was inspected
    std::optional<InspectionFile> file;  // empty if the program refused its arguments, or died
};

// Builds the day's program so that it can be watched, and inspects its versions.
Inspected inspect_versions(const Checkout& checkout, const Day& lesson, const InspectOptions& options);

// The same for the user's own program, from its first kernel to its end. `arguments`: the files
// after the first one, then the program's.
Inspected inspect_program(const Checkout& checkout, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& files, const ProgramBuild& how);

// Throws UsageError if the file that `option` names cannot be written, before anything is built.
// An empty name is valid.
void require_writable(const char* option, const std::filesystem::path& file);

// The limits of this build's device; empty if there is none.
std::optional<MultiprocessorLimits> limits_of_device();

// "Day 5: Tiled matrix multiplication", and its question.
PageHead head_of(const Day& day);

}  // namespace course::tool
