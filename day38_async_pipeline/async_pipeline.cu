// Day 38: the launchers of the kernels in async_pipeline.cuh and producer_warps.cuh, and the list
// of versions.
#include <algorithm>
#include <array>
#include <string_view>

#include "async_pipeline.cuh"
#include "async_pipeline.hpp"
#include "launch.cuh"
#include "producer_warps.cuh"

namespace day38 {
namespace {

// What a launcher needs to know of each version (launch.cuh).
template <class T, int BLOCKS>
struct Tiled : Version<T> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_tiled<T, std::min(VEC, T::WIDE), BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct ByPipeline : Version<T> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_pipeline<T, VEC, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct ByCpAsync : Version<T> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_cp_async<T, VEC, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct OneOfEight : Version<T, 32, BlockPipeline<T>> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_one_of_eight<T, VEC, BLOCKS, Watch>;
};
template <class T, int COPYING, int BLOCKS>
struct Beside : Version<T, COPYING, StageBarriers<T>> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_beside<T, COPYING, VEC, BLOCKS, Watch>;
};

//                        BM   BN  BK  TM TN WIDE  LANES_M  STAGES
using Tile1d = TileShape<64, 64, 16, 8, 1, 1, 4>;
using Tile2d = TileShape<128, 128, 16, 8, 8, 1, 4>;
using TileFloat4 = TileShape<128, 128, 16, 8, 8, 4, 4>;
using TileStages = TileShape<128, 128, 16, 8, 8, 4, 4, 4>;
using TileSeven = TileShape<112, 128, 16, 8, 8, 4, 2, 4>;
using TileDeep = TileShape<128, 128, 32, 8, 8, 4, 4, 4>;

}  // namespace

std::string_view name(Activity activity) {
    static constexpr std::array<std::string_view, 4> kNames = {"copy", "wait", "multiply", "end"};
    return kNames.at(static_cast<std::size_t>(activity));
}

std::span<const Pipeline> versions() {
    static const std::array list = std::to_array<Pipeline>({
        entry<Tiled<Tile1d, 2>>("tiled_1d", "8 elements of a column for each thread"),
        entry<Tiled<Tile2d, 2>>("tiled_2d", "8 x 8 elements"),
        entry<Tiled<TileFloat4, 2>>("tiled_float4", "four floats at a time"),
        entry<ByPipeline<TileDeep, 1>>("pipeline", "three tiles ahead: cuda::pipeline"),
        entry<ByCpAsync<TileDeep, 1>>("cp_async", "three tiles ahead: cp.async"),
        entry<OneOfEight<TileSeven, 2>>("one_of_eight", "one warp copies, seven multiply"),
        entry<Beside<TileStages, 32, 2>>("nine_warps", "one warp copies, eight multiply"),
        entry<Beside<TileDeep, 128, 1>>("twelve_warps", "four warps copy, eight multiply"),
    });
    return list;
}

}  // namespace day38
