// An inspection as a page: one file of HTML that needs no network, and no scripts to be read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "inspect_view.hpp"

namespace course::tool {

// The source of each kernel, line by line, with its counts as coloured margins; behind each line what its accesses look like, with a
// picture of the worst request; findings.
std::string inspection_page(const InspectionFile& file, const std::optional<MultiprocessorLimits>& limits,
                            Sources& sources);

// `text` with what means something in HTML replaced.
std::string escaped(std::string_view text);

}  // namespace course::tool
