#include <algorithm>

#include "bulk_merge.cuh"
#include "bulk_merge.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"

namespace day18 {

template <bool kPairs>
void launch_bulk_merge(const Sorted& a, const Sorted& b, const Output& out, cudaStream_t stream) {
    using Shape = BulkShape<kPairs>;
    constexpr auto kKernel = bulk_merge<kPairs>;
    constexpr std::size_t kShared = sizeof(Stages<kPairs>);
    course::allow_shared_bytes(kKernel, kShared);
    const std::size_t tiles = course::ceil_div<std::size_t>(out.keys.size(), Shape::kTile);
    const std::size_t resident = course::resident_blocks(kKernel, Shape::kThreads, kShared);
    course::launch(kKernel,
                   {.grid = static_cast<unsigned>(std::min(tiles, resident)),
                    .block = Shape::kThreads,
                    .shared_bytes = kShared,
                    .stream = stream},
                   a.keys.data(), a.values.data(), a.keys.size(), b.keys.data(), b.values.data(),
                   b.keys.size(), out.keys.data(), out.values.data());
}

template void launch_bulk_merge<false>(const Sorted&, const Sorted&, const Output&, cudaStream_t);
template void launch_bulk_merge<true>(const Sorted&, const Sorted&, const Output&, cudaStream_t);

}  // namespace day18
