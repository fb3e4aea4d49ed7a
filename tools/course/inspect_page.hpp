// An inspection as a page: one file of HTML that needs no network.
#pragma once

#include <optional>
#include <string>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "inspect_view.hpp"

namespace course::tool {

// The head of the page.
struct PageHead {
    std::string title;     // "Day 5: Tiled matrix multiplication"
    std::string question;  // answered by the lesson; empty: none
};

// inspect.html, which holds the layout, style and script of the page, with the inspection inserted
// as JSON. Figures and sentences are computed here: the terminal shows the same.
std::string inspection_page(const PageHead& head, const InspectionFile& file,
                            const std::optional<MultiprocessorLimits>& limits, Sources& sources);

}  // namespace course::tool
