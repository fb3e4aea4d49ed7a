// Explains the access pattern of a line in plain language, and how to improve it.
#pragma once

#include <string>

#include "common/bench/inspection.hpp"

namespace course::tool {

// One sentence, and a second one with an improvement if there is one. It describes the line's
// worst request, and mentions that if the other requests are much better: "32 lanes hit bank 0: a
// column of a 32-wide tile. Pad the row by one word." Empty for a line without requests.
std::string explain(const AccessLine& line);

// How many lanes load the same element, on average: 32 of a broadcast to a whole warp. 0 for
// accesses that are not loads.
double lanes_per_element(const AccessLine& line);
// The cost and the benefit of that sharing, if nothing else needs improvement; empty if each lane
// loads an element of its own.
std::string explain_sharing(const AccessLine& line);

}  // namespace course::tool
