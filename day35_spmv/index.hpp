// The numbers of rows, columns and entries.
#pragma once

#include <cstdint>

namespace day35 {

using Index = std::int32_t;   // a row or a column; at most 2^31 - 1 of each
using Offset = std::int64_t;  // a place among the entries, of which there may be more

// The column of a place that only pads a format's rectangle. It is never multiplied, because 0 *
// Inf is not 0.
inline constexpr Index kNoColumn = -1;

}  // namespace day35
