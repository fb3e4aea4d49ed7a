#include <algorithm>

#include "bulk_lookback.cuh"
#include "bulk_lookback.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "scan.hpp"

namespace day16 {

template <class T, bool kExclusive>
void launch_bulk_lookback(const T* in, T* out, std::size_t n, Workspace& workspace, cudaStream_t stream) {
    constexpr auto kKernel = bulk_lookback<T, kExclusive>;
    constexpr std::size_t kShared = sizeof(Stages<T>);
    course::allow_shared_bytes(kKernel, kShared);
    const std::size_t tiles = course::ceil_div<std::size_t>(n, kBulkTile);
    const std::size_t resident = course::resident_blocks(kKernel, kBulkThreads, kShared);
    const auto grid = static_cast<unsigned>(std::min({tiles, resident, std::size_t{kBulkThreads}}));
    Board board{workspace.ticket(), workspace.words(), workspace.words_capacity()};
    void* arguments[] = {&in, &out, &n, &board};
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kKernel), grid, kBulkThreads,
                                           arguments, kShared, stream));
}

#define DAY16_INSTANTIATE(T)                                                                           \
    template void launch_bulk_lookback<T, false>(const T*, T*, std::size_t, Workspace&, cudaStream_t); \
    template void launch_bulk_lookback<T, true>(const T*, T*, std::size_t, Workspace&, cudaStream_t);
DAY16_INSTANTIATE(float)
DAY16_INSTANTIATE(std::uint32_t)
#undef DAY16_INSTANTIATE

}  // namespace day16
