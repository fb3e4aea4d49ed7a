// What the host API and the kernels of day 30 have in common.
#pragma once

namespace day30 {

enum class Scheme { kSymmetric, kAsymmetric };
enum class Granularity { kTensor, kRow, kColumn };

}  // namespace day30
