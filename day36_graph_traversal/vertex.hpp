// The number of a vertex.
#pragma once

#include <cstdint>

namespace day36 {

using Vertex = std::uint32_t;  // 0 to n - 1

// No vertex; the level of a vertex that a search has not reached, and its parent.
inline constexpr std::uint32_t kUnreached = 0xffffffffu;

}  // namespace day36
