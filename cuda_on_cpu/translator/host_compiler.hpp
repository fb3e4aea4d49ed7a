// What the host compiler is: its name does not tell.
#pragma once

#include <string>

namespace translator {

// Asks it for its predefined macros. A compiler that cannot be run is none.
bool is_clang(const std::string& compiler);

}  // namespace translator
