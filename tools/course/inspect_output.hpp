// The output of inspections: checks of the files that the learner names, and the head of the
// output.
#pragma once

#include <filesystem>
#include <optional>

#include "common/bench/occupancy.hpp"
#include "days.hpp"
#include "inspect_page.hpp"

namespace course::tool {

// Throws UsageError if the file that `option` names cannot be written, before anything is built.
// An empty name is valid.
void require_writable(const char* option, const std::filesystem::path& file);

// The limits of this build's device; empty if there is none.
std::optional<MultiprocessorLimits> limits_of_device();

// "Day 5: Tiled matrix multiplication", and its question.
PageHead head_of(const Day& day);

}  // namespace course::tool
