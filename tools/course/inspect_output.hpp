// Where inspections go: files that the learner names, and what stands above them.
#pragma once

#include <filesystem>
#include <optional>

#include "common/bench/occupancy.hpp"
#include "days.hpp"
#include "inspect_page.hpp"

namespace course::tool {

// Throws UsageError where the file that `option` names cannot be written: before anything is built.
// No file: fine.
void require_writable(const char* option, const std::filesystem::path& file);

// Of the device of this build; nothing where there is none.
std::optional<MultiprocessorLimits> limits_of_device();

// "Day 5: Tiled matrix multiplication", and its question.
PageHead head_of(const Day& day);

}  // namespace course::tool
