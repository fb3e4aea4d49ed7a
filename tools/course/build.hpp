// Builds targets with CMake, one ./course at a time.
#pragma once

#include <string>
#include <vector>

#include "checkout.hpp"

namespace course::tool {

// Runs `cmake --preset` for checkout.build, if it is not configured for this checkout yet. `settings`: "NAME=VALUE" of the cache.
// What CMake said is shown if it fails. Throws BuildError then.
void configure(const Checkout& checkout, const std::string& preset, const std::vector<std::string>& settings);

// Builds `target` ("all" for everything). Silent when there is nothing to do, else shows how far it is on a terminal;
// what the compiler said is shown if it fails. Throws BuildError then.
void build_target(const Checkout& checkout, const std::string& target);

}  // namespace course::tool
