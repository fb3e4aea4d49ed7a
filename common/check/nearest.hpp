// "Did you mean ...?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace course {

// The candidate that takes the cheapest edits to reach from `name` (V. Levenshtein, 1966): a letter
// left out costs 1, as names are often typed short; a wrong one or one too many costs 2. The first
// of equals. Empty when none is near: without a letter in common, names cost the sum of their
// lengths or more; near is what costs two fifths of that at most, or begins with `name`.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

// "unknown version 'fload4': did you mean 'float4'? Known: naive, float4", or without the question
// when none is near.
std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string> candidates);

}  // namespace course
