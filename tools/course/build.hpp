// Builds targets with CMake, one ./course at a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkout.hpp"

namespace course::tool {

// Runs `cmake --preset` for checkout.build, if it is not configured for this checkout yet.
// `settings`: "NAME=VALUE" of the cache. If CMake fails, its output is shown, and BuildError is
// thrown.
void configure(const Checkout& checkout, const std::string& preset, const std::vector<std::string>& settings);

// The checkout with another build directory, build/<preset>. build_of_preset also configures it if
// necessary.
Checkout preset_checkout(const Checkout& checkout, const std::string& preset);
Checkout build_of_preset(const Checkout& checkout, const std::string& preset);

// Builds `target` ("all" for everything). Prints nothing when the target is up to date; otherwise
// shows progress. If the build fails, the compiler's messages are shown, and BuildError is thrown.
void build_target(const Checkout& checkout, const std::string& target);

// A build that has the days' programs in another form: as variants of its own programs, with a
// suffix, or alone, in a build directory of their own.
struct VariantBuild {
    Checkout checkout;
    std::string suffix;  // "_inspected"; ""

    std::string target(const std::string& program) const { return program + suffix; }
    std::filesystem::path program(const std::string& name) const { return checkout.program(target(name)); }
    // The lesson's program is called as its day, but the target of that name builds the day's
    // tests, too.
    std::filesystem::path program_of_day(const std::string& directory) const {
        return suffix.empty() ? checkout.program(directory) : program(directory + "_program");
    }
};

// Where to look for programs that are inspected, or built for a debugger. Configures nothing.
VariantBuild inspected_build(const Checkout& checkout);
VariantBuild debugged_build(const Checkout& checkout);

// The same, configured if necessary: a build for the CPU, or one of a preset where that has no
// such variant.
VariantBuild configure_inspected_build(const Checkout& checkout);
VariantBuild configure_debugged_build(const Checkout& checkout);

// If `target` has never been built, prints that `what` is built now and how long that may take.
void announce_first_build(const Checkout& checkout, const std::string& target, const std::string& what);

// The same as build_target, but returns the messages of the compiler or linker if the build fails,
// without those of the build tool; empty on success.
std::string try_to_build(const Checkout& checkout, const std::string& target);

// Sets the cache variable `name` of the configured build to this path if it differs.
void set_cache_path(const Checkout& checkout, const std::string& name, const std::filesystem::path& path);

}  // namespace course::tool
