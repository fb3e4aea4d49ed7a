#include <algorithm>

#include "bulk_merge.cuh"
#include "bulk_merge.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "split_tiles.cuh"

namespace day18 {

// One block merges up to kOneTile elements, without searching for a split in global memory. Many
// blocks share more elements, but with tiles shorter than kShortestTile each has too little work.
constexpr std::size_t kOneTile = 4096;
constexpr std::size_t kShortestTile = 1536;
constexpr unsigned kOwnRounds = 4;  // they give split_tiles the time that it needs

void find_splits(course::DeviceSpan<const Key> a, course::DeviceSpan<const Key> b, std::size_t tile_size,
                 std::size_t* splits, Workspace& workspace, cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div(a.size() + b.size(), tile_size);
    split_tiles<<<course::blocks_for(tiles, kSplitBlock), kSplitBlock, 0, stream>>>(
        a.data(), a.size(), b.data(), b.size(), tile_size, tiles, splits, workspace.ticket());
    CUDA_CHECK_LAUNCH();
}

template <bool kPairs>
void launch_bulk_merge(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                       cudaStream_t stream) {
    using Shape = BulkShape<kPairs>;
    constexpr auto kKernel = bulk_merge<kPairs>;
    constexpr std::size_t kShared = sizeof(Stages<kPairs>);
    course::allow_shared_bytes(kKernel, kShared);
    const std::size_t total = out.keys.size();
    const std::size_t resident = course::resident_blocks(kKernel, Shape::kThreads, kShared);
    const std::size_t blocks =
        total <= kOneTile ? 1 : std::min(resident, course::ceil_div(total, kShortestTile));
    const std::size_t rounds = course::ceil_div(total, blocks * Shape::kTile);
    const course::LaunchConfig config{.grid = static_cast<unsigned>(blocks),
                                      .block = Shape::kThreads,
                                      .shared_bytes = kShared,
                                      .stream = stream};
    const auto merge = [&](auto launch, std::size_t tile_size, std::size_t own_rounds,
                           const std::size_t* splits) {
        launch(kKernel, config, a.keys.data(), a.values.data(), a.keys.size(), b.keys.data(), b.values.data(),
               b.keys.size(), tile_size, static_cast<unsigned>(own_rounds), splits, workspace.ticket(),
               out.keys.data(), out.values.data());
    };
    if (rounds <= kMostOwnRounds) {
        // Tiles as short as this number of rounds allows, in whole lines.
        const std::size_t tile_size = course::ceil_div(total, blocks * rounds * kLine) * kLine;
        merge([](auto... all) { course::launch(all...); }, tile_size, rounds, nullptr);
    } else {
        find_splits(a.keys, b.keys, Shape::kTile, workspace.splits(), workspace, stream);
        merge([](auto... all) { course::launch_early(all...); }, Shape::kTile, kOwnRounds,
              workspace.splits());
    }
}

template void launch_bulk_merge<false>(const Sorted&, const Sorted&, const Output&, Workspace&, cudaStream_t);
template void launch_bulk_merge<true>(const Sorted&, const Sorted&, const Output&, Workspace&, cudaStream_t);

}  // namespace day18
