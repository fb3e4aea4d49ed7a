// The worst request of a line as a picture (SVG, to be put into a page, in the colours of its style
// sheet).
#pragma once

#include <string>
#include <vector>

#include "common/bench/inspection.hpp"

namespace course::tool {

// Shared memory: the 32 banks with the lanes that hit them, different words of a bank one above the
// other. Global memory: the lines of 128 bytes that are touched, with their sectors and the lanes
// that want their bytes. Of many rows that look alike three are drawn.
std::string picture(const AccessLine& line);

// A small one of either kind, with labels: what the colours mean.
std::string picture_of_example();

// "0-31", "0, 8, 16": ascending numbers, runs of three and more taken together.
std::string runs(const std::vector<unsigned>& numbers);

}  // namespace course::tool
