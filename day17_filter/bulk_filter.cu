#include <algorithm>

#include "bulk_filter.cuh"
#include "bulk_filter.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"

namespace day17 {

template <class Keep>
void launch_rounds(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* count,
                   Workspace& workspace, cudaStream_t stream) {
    constexpr auto kKernel = bulk_filter<Keep>;
    course::allow_shared_bytes(kKernel, sizeof(Stages));
    const std::size_t tiles = course::ceil_div<std::size_t>(n, kBulkTile);
    const std::size_t resident = course::resident_blocks(kKernel, kBulkThreads, sizeof(Stages));
    const auto grid = static_cast<unsigned>(std::min({tiles, resident, std::size_t{kBulkThreads}}));
    auto* progress = reinterpret_cast<Progress*>(workspace.progress());
    Word* words = workspace.words();
    void* arguments[] = {&in, &n, &keep, &out, &count, &progress, &words};
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kKernel), grid, kBulkThreads,
                                           arguments, sizeof(Stages), stream));
}

void launch_bulk_filter(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                        Count* count, Workspace& workspace, cudaStream_t stream) {
    launch_rounds(in, n, ElementsBelow{threshold}, out, count, workspace, stream);
}

void launch_bulk_unique(const std::int32_t* in, std::size_t n, std::int32_t* out, Count* count,
                        Workspace& workspace, cudaStream_t stream) {
    launch_rounds(in, n, FirstOfRuns{}, out, count, workspace, stream);
}

}  // namespace day17
