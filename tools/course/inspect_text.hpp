// The text of an inspection for the terminal.
#pragma once

#include <optional>
#include <string>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "inspect_view.hpp"

namespace course::tool {

// Per version and kernel: a table of the costliest lines with a sentence about each access, facts,
// findings.
std::string inspection_text(const InspectionFile& file, const std::optional<MultiprocessorLimits>& limits,
                            Sources& sources, bool colour);

}  // namespace course::tool
