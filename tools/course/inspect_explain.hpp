// What a line's accesses look like, in plain language, and what to do about it.
#pragma once

#include <string>

#include "common/bench/inspection.hpp"

namespace course::tool {

// One sentence, with what would help as a second one. It is about the line's worst request, and
// says so where the others are much better: "32 lanes hit bank 0: a column of a 32-wide tile. Pad
// the row by one word." Empty for a line without requests.
std::string explain(const AccessLine& line);

// How many lanes load the same element, on average: 32 of a broadcast to a whole warp. 0: these are
// no loads.
double lanes_per_element(const AccessLine& line);
// What that costs and saves, where there is nothing else to mend; empty where each lane has an
// element of its own.
std::string explain_sharing(const AccessLine& line);

}  // namespace course::tool
