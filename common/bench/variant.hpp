// A variant is data: one way to solve the day's problem, with its name and its idea. Tests,
// programs and tables all walk the same list, so a new kernel is one new entry.
//
//     using VectorAdd = course::Variant<void (*)(DeviceSpan<const float>, ..., cudaStream_t), std::size_t>;
//     std::span<const VectorAdd> variants();
#pragma once

#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/work.hpp"
#include "common/check/nearest.hpp"

namespace course {

// Launcher: what runs it, usually a function pointer. Problem: what a constraint and a count of
// bytes depend on, often just a size.
template <class Launcher, class Problem>
struct Variant {
    std::string name;    // the idea in a word or two: "grid_stride"
    std::string idea{};  // and in a sentence
    Launcher launcher{};
    Work (*work)(const Problem&) = nullptr;
    // Why this variant cannot run a problem, or "". None: it runs every problem.
    std::string (*constraint)(const Problem&) = nullptr;

    std::string cannot_run(const Problem& problem) const {
        return constraint == nullptr ? "" : constraint(problem);
    }
};

// GoogleTest prints a variant by its name.
template <class Launcher, class Problem>
void PrintTo(const Variant<Launcher, Problem>* variant, std::ostream* out) {
    *out << variant->name;
}

template <class Variants>
std::vector<std::string> names(const Variants& variants) {
    std::vector<std::string> all;
    for (const auto& variant : variants)
        all.push_back(variant.name);
    return all;
}

// The entry called `name`. Throws std::invalid_argument with the nearest name and the list when
// there is none.
template <class Variants>
const auto& find_variant(const Variants& variants, std::string_view name) {
    for (const auto& variant : variants) {
        if (variant.name == name) return variant;
    }
    throw std::invalid_argument(unknown_name("variant", name, names(variants)));
}

}  // namespace course
