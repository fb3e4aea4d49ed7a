// Builds targets with CMake, one ./course at a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkout.hpp"

namespace course::tool {

// Runs `cmake --preset` for checkout.build, if it is not configured for this checkout yet.
// `settings`: "NAME=VALUE" of the cache. What CMake said is shown if it fails. Throws BuildError
// then.
void configure(const Checkout& checkout, const std::string& preset, const std::vector<std::string>& settings);

// The checkout with another of its builds, build/<preset>; build_of_preset configures it, if need
// be.
Checkout preset_checkout(const Checkout& checkout, const std::string& preset);
Checkout build_of_preset(const Checkout& checkout, const std::string& preset);

// Builds `target` ("all" for everything). Silent when there is nothing to do, else shows how far it
// is on a terminal; what the compiler said is shown if it fails. Throws BuildError then.
void build_target(const Checkout& checkout, const std::string& target);

// Where `target` was never built: `what` is built now, and how long that may take.
void announce_first_build(const Checkout& checkout, const std::string& target, const std::string& what);

// As build_target, but returns what was said when it failed: the messages of the compiler or
// linker, without the build's own; empty when all went well.
std::string try_to_build(const Checkout& checkout, const std::string& target);

// Gives the cache variable `name` of the configured build this path, if it has another.
void set_cache_path(const Checkout& checkout, const std::string& name, const std::filesystem::path& path);

}  // namespace course::tool
