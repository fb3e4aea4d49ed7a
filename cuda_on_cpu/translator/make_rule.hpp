// Rules of make, as compilers write them (-MD): "object: source header \\", over several lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translator {

// The text after the colon, without the last line end.
std::string_view prerequisites(std::string_view rule);
// The file names in it. Make separates them by blanks; blanks within a name are escaped.
std::vector<std::string> names_in(std::string_view prerequisites);

}  // namespace translator
