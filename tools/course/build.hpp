// Builds targets with CMake, one ./course at a time.
#pragma once

#include <string>

#include "checkout.hpp"

namespace course::tool {

// Builds `target` ("all" for everything). Silent when there is nothing to do, else shows how far it is on a terminal;
// what the compiler said is shown if it fails. Throws BuildError then.
void build_target(const Checkout& checkout, const std::string& target);

}  // namespace course::tool
