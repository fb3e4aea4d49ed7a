// Day 38's host code: argument checks, timelines and the list of versions. The kernels and their
// launches are in async_pipeline.cuh and beyond/producer_warps.cuh.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "async_pipeline.cuh"
#include "async_pipeline.hpp"
#include "beyond/producer_warps.cuh"
#include "common/bench/kernel_resources.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/tensor_core_support.hpp"
#include "timeline.cuh"

namespace day38 {
namespace {

void check(const Operands& operands) {
    const auto& [a, b, c] = operands;
    course::require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
                    "async_pipeline: A is ", a, ", B is ", b, ", C is ", c,
                    "; expected A: M x K, B: K x N, C: M x N");
    course::require(!overlap(a, c), "async_pipeline: C overlaps A; expected no common element");
    course::require(!overlap(b, c), "async_pipeline: C overlaps B; expected no common element");
}

// Are all rows of A and B whole float4s, 16-byte aligned? (C is stored float by float.)
bool rows_are_whole_packs(const Operands& operands) {
    const auto whole = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), 16) && matrix.cols() % 4 == 0 &&
               matrix.leading_dimension() % 4 == 0;
    };
    return whole(operands.a) && whole(operands.b);
}

// A version: its launch, and for its resources the kernel for rows of whole float4s, the threads of
// a block and their shared memory.
template <class T>
struct Tiled {
    static constexpr auto kKernel = multiply_tiled<T, T::WIDE, 2, Silent>;
    static constexpr int kThreads = T::THREADS;
    static constexpr std::size_t kShared = sizeof(Shared<T>);
    template <int VEC, class Watch>
    static constexpr auto kLaunch = launch_tiled<T, VEC, Watch>;
};
struct ByPipeline {
    static constexpr auto kKernel = multiply_pipeline<TileDeep, 4, 1, Silent>;
    static constexpr int kThreads = TileDeep::THREADS;
    static constexpr std::size_t kShared = sizeof(Shared<TileDeep>);
    template <int VEC, class Watch>
    static constexpr auto kLaunch = launch_pipeline<VEC, Watch>;
};
struct ByCpAsync {
    static constexpr auto kKernel = multiply_cp_async<TileDeep, 4, 1, Silent>;
    static constexpr int kThreads = TileDeep::THREADS;
    static constexpr std::size_t kShared = sizeof(Shared<TileDeep>);
    template <int VEC, class Watch>
    static constexpr auto kLaunch = launch_cp_async<VEC, Watch>;
};
struct OneOfEight {
    static constexpr auto kKernel = multiply_one_of_eight<TileSeven, 4, 2, Silent>;
    static constexpr int kThreads = TileSeven::THREADS + 32;
    static constexpr std::size_t kShared = sizeof(Shared<TileSeven, BlockPipeline<TileSeven>>);
    template <int VEC, class Watch>
    static constexpr auto kLaunch = launch_one_of_eight<VEC, Watch>;
};
struct NineWarps {
    static constexpr auto kKernel = multiply_beside<TileStages, 32, 4, 2, Silent>;
    static constexpr int kThreads = TileStages::THREADS + 32;
    static constexpr std::size_t kShared = sizeof(Shared<TileStages, StageBarriers<TileStages>>);
    template <int VEC, class Watch>
    static constexpr auto kLaunch = launch_nine_warps<VEC, Watch>;
};
struct TwelveWarps {
    static constexpr auto kKernel = multiply_beside<TileDeep, 128, 4, 1, Silent>;
    static constexpr int kThreads = TileDeep::THREADS + 128;
    static constexpr std::size_t kShared = sizeof(Shared<TileDeep, StageBarriers<TileDeep>>);
    template <int VEC, class Watch>
    static constexpr auto kLaunch = launch_twelve_warps<VEC, Watch>;
};

// V: one of these.
template <class V>
struct Host {
    template <class Watch>
    static void run(const Operands& operands, Watch watch, cudaStream_t stream) {
        check(operands);
        if (operands.c.rows() == 0 || operands.c.cols() == 0) return;  // a grid has at least one block
        const bool whole = rows_are_whole_packs(operands);
        if constexpr (!std::is_same_v<Watch, Silent>) {  // timelines exist for VEC = 4 only
            course::require(whole, "async_pipeline: A is ", operands.a, ", B is ", operands.b,
                            "; expected, for a timeline, rows of whole float4 at multiples of 16 bytes");
        } else if (!whole) {
            V::template kLaunch<1, Watch>(operands, watch, stream);
            CUDA_CHECK_LAUNCH();
            return;
        }
        V::template kLaunch<4, Watch>(operands, watch, stream);
        CUDA_CHECK_LAUNCH();
    }

    static void launch(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                       cudaStream_t stream) {
        run(Operands{a, b, c}, Silent(), stream);
    }

    static std::vector<Stamp> timeline(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c, unsigned block, unsigned most) {
        const std::vector<unsigned> none(V::kThreads / 32);
        course::DeviceBuffer<unsigned> counts{std::span(none)};
        const std::vector<Stamp> unset(none.size() * most);
        course::DeviceBuffer<Stamp> stamps{std::span(unset)};
        run(Operands{a, b, c}, Stamping(stamps.data(), counts.data(), block, most), nullptr);
        const std::vector<Stamp> places = stamps.to_host();
        std::vector<Stamp> found;
        unsigned warp = 0;
        for (const unsigned count : counts.to_host()) {
            const auto first = places.begin() + static_cast<std::ptrdiff_t>(warp++ * most);
            found.insert(found.end(), first, first + count);
        }
        return found;
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(V::kKernel, V::kShared);
        return course::resources_of(V::kKernel, V::kThreads, V::kShared);
    }

    static std::string why_not(const Shape&) { return course::why_too_little_shared(V::kShared); }
};

course::Work work(const Shape& shape) {
    const auto m = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.cols);
    const auto k = static_cast<double>(shape.depth);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k};
}

template <class V>
Pipeline entry(const char* name, const char* idea) {
    return {name, idea, {Host<V>::launch, Host<V>::timeline, Host<V>::resources}, work, Host<V>::why_not};
}

}  // namespace

std::string_view name(Activity activity) {
    static constexpr std::array<std::string_view, 4> kNames = {"copy", "wait", "multiply", "end"};
    return kNames.at(static_cast<std::size_t>(activity));
}

std::span<const Pipeline> versions() {
    static const std::array list = std::to_array<Pipeline>({
        entry<Tiled<Tile1d>>("tiled_1d", "8 elements of a column for each thread"),
        entry<Tiled<Tile2d>>("tiled_2d", "8 x 8 elements"),
        entry<Tiled<TileFloat4>>("tiled_float4", "four floats at a time"),
        entry<ByPipeline>("pipeline", "three tiles ahead: cuda::pipeline"),
        entry<ByCpAsync>("cp_async", "three tiles ahead: cp.async"),
        entry<OneOfEight>("one_of_eight", "one warp copies, seven multiply"),
        entry<NineWarps>("nine_warps", "one warp copies, eight multiply"),
        entry<TwelveWarps>("twelve_warps", "four warps copy, eight multiply"),
    });
    return list;
}

}  // namespace day38
