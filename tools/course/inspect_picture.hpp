// The worst request of a line as a picture (SVG, to be put into a page).
#pragma once

#include <string>
#include <string_view>

#include "common/bench/inspection.hpp"

namespace course::tool {

// Shared memory: the 32 banks with the lanes that hit them, different words of a bank one above the other. Global memory: the
// lines of 128 bytes that are touched, with their sectors and the lanes that want their bytes. Styles: the classes of kPictureStyle.
std::string picture(const AccessLine& line);

extern const std::string_view kPictureStyle;  // CSS

// "0-31", "0, 8, 16": ascending numbers, runs of three and more taken together.
std::string runs(const std::vector<unsigned>& numbers);

}  // namespace course::tool
