// Source code as a page shows it, in colours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// `text` with what means something in HTML replaced.
std::string escaped(std::string_view text);

// The HTML of each line of CUDA C++: comments, keywords, the words of CUDA, literals and directives
// are in a <span> whose class is comment, keyword, cuda, string, number or directive. No <span>
// crosses the end of a line.
std::vector<std::string> coloured(const std::vector<std::string>& lines);

}  // namespace course::tool
