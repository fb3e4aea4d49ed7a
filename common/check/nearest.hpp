// "Did you mean ...?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace course {

// The candidate with the smallest edit distance from `name` (V. Levenshtein, 1966). A missing
// letter costs 1, because names are often abbreviated; a wrong or superfluous letter costs 2. In a
// tie, the first candidate wins. Two names without a common letter have a distance of at least the
// sum of their lengths. A candidate is near if its distance is at most two fifths of that sum, or
// if it starts with `name`. Empty if no candidate is near.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

// "unknown version 'fload4': did you mean 'float4'? Known: naive, float4", or without the question
// if no candidate is near.
std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string> candidates);

}  // namespace course
