// A version is data: one way to solve the day's problem, with its name and its idea. Tests,
// programs and tables all walk the same list, so a new kernel is one new entry.
//
//     using VectorAdd = course::Version<void (*)(DeviceSpan<const float>, ..., cudaStream_t), std::size_t>;
//     std::span<const VectorAdd> versions();
#pragma once

#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/work.hpp"
#include "common/check/nearest.hpp"

namespace course {

// Launcher runs the version; it is usually a function pointer. Problem is the argument of the
// constraint and of the work, often just a size.
template <class Launcher, class Problem>
struct Version {
    std::string name;    // the idea in a word or two: "grid_stride"
    std::string idea{};  // and in a sentence
    Launcher launcher{};
    Work (*work)(const Problem&) = nullptr;
    // Returns why this version cannot run a problem, or "". Null: it runs every problem.
    std::string (*constraint)(const Problem&) = nullptr;

    std::string cannot_run(const Problem& problem) const {
        return constraint == nullptr ? "" : constraint(problem);
    }
};

// GoogleTest prints a version by its name.
template <class Launcher, class Problem>
void PrintTo(const Version<Launcher, Problem>* version, std::ostream* out) {
    *out << version->name;
}

template <class Versions>
std::vector<std::string> names(const Versions& versions) {
    std::vector<std::string> all;
    for (const auto& version : versions)
        all.emplace_back(version.name);
    return all;
}

// The entry called `name`. Throws std::invalid_argument with the nearest name and the list when
// there is none.
template <class Versions>
const auto& find_version(const Versions& versions, std::string_view name) {
    for (const auto& version : versions) {
        if (version.name == name) return version;
    }
    throw std::invalid_argument(unknown_name("version", name, names(versions)));
}

}  // namespace course
