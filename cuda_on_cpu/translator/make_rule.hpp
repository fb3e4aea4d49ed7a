// Rules of make, which compilers write (-MD): "object: source header \\", over several lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translator {

// What stands behind the colon, without the last line end.
std::string_view prerequisites(std::string_view rule);
// Its names: where make has blanks between them it escapes those within.
std::vector<std::string> names_in(std::string_view prerequisites);

}  // namespace translator
