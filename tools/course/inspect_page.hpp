// An inspection as a page: one file of HTML that needs no network, and no scripts to be read.
#pragma once

#include <optional>
#include <string>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "inspect_view.hpp"

namespace course::tool {

// What stands at the top.
struct PageHead {
    std::string title;     // "Day 5: Tiled matrix multiplication"
    std::string question;  // that the lesson answers; empty: none
};

// Bars of the bytes that each version moves; how to read the page; the source of each kernel, line
// by line, with its counts beside it; behind each line what its accesses look like, with a picture
// of the worst request; findings.
std::string inspection_page(const PageHead& head, const InspectionFile& file,
                            const std::optional<MultiprocessorLimits>& limits, Sources& sources);

}  // namespace course::tool
