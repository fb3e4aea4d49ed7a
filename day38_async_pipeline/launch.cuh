// Launcher, timeline and description, which are the same for all versions.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "async_pipeline.hpp"
#include "common/bench/kernel_resources.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/tensor_core_support.hpp"
#include "tile.cuh"
#include "timeline.cuh"

namespace day38 {

inline void check(const Operands& operands) {
    const auto& [a, b, c] = operands;
    course::require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
                    "async_pipeline: A is ", a, ", B is ", b, ", C is ", c,
                    "; expected A: M x K, B: K x N, C: M x N");
    course::require(!overlap(a, c), "async_pipeline: C overlaps A; expected no common element");
    course::require(!overlap(b, c), "async_pipeline: C overlaps B; expected no common element");
}

// Are all rows of A and B whole float4s, 16-byte aligned? (C is stored float by float.)
inline bool rows_are_whole_packs(const Operands& operands) {
    const auto whole = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), 16) && matrix.cols() % 4 == 0 &&
               matrix.leading_dimension() % 4 == 0;
    };
    return whole(operands.a) && whole(operands.b);
}

// A version derives from this and adds kKernel<VEC, Watch>: its kernel for rows of whole float4s
// (VEC = 4) or any rows (1). ADDITIONAL: producer threads beside those that multiply.
template <class T, int ADDITIONAL = 0, class Agreement = Nothing>
struct Version {
    using Tile = T;
    using Memory = Shared<T, Agreement>;
    static constexpr int kThreads = T::THREADS + ADDITIONAL;
};

// A block for each tile of C.
template <class Version>
struct BlockPerTile {
    using T = typename Version::Tile;
    static constexpr int THREADS = Version::kThreads;
    static constexpr std::size_t kShared = sizeof(typename Version::Memory);
    template <class Watch>
    using Function = void(Operands, Watch);

    template <class Watch>
    static void run(const Operands& operands, Watch watch, cudaStream_t stream) {
        check(operands);
        const std::size_t tiles = course::ceil_div<std::size_t>(operands.c.rows(), T::BM) *
                                  course::ceil_div<std::size_t>(operands.c.cols(), T::BN);
        if (tiles == 0) return;  // a grid has at least one block
        Function<Watch>* kernel = Version::template kKernel<4, Watch>;
        if constexpr (std::is_same_v<Watch, Silent>) {
            if (!rows_are_whole_packs(operands)) kernel = Version::template kKernel<1, Watch>;
        } else {  // timelines exist for VEC = 4 only
            course::require(rows_are_whole_packs(operands), "async_pipeline: A is ", operands.a, ", B is ",
                            operands.b,
                            "; expected, for a timeline, rows of whole float4 at multiples of 16 bytes");
        }
        course::launch(kernel, {course::blocks_for(tiles, 1), THREADS, kShared, stream}, operands, watch);
    }

    static void launch(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                       cudaStream_t stream) {
        run({a, b, c}, Silent(), stream);
    }

    static std::vector<Stamp> timeline(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c, unsigned block, unsigned most) {
        const std::vector<unsigned> none(THREADS / 32);
        course::DeviceBuffer<unsigned> counts{std::span(none)};
        const std::vector<Stamp> unset(none.size() * most);
        course::DeviceBuffer<Stamp> stamps{std::span(unset)};
        run({a, b, c}, Stamping(stamps.data(), counts.data(), block, most), nullptr);
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
        Function<Silent>* const kernel = Version::template kKernel<4, Silent>;
        course::allow_shared_bytes(kernel, kShared);
        return course::resources_of(kernel, THREADS, kShared);
    }

    static std::string why_not(const Shape&) { return course::why_too_little_shared(kShared); }
};

inline course::Work work(const Shape& shape) {
    const auto m = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.cols);
    const auto k = static_cast<double>(shape.depth);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k};
}

template <class Version>
Pipeline entry(const char* name, const char* idea) {
    using Launcher = BlockPerTile<Version>;
    return {name, idea, {Launcher::launch, Launcher::timeline, Launcher::resources}, work, Launcher::why_not};
}

}  // namespace day38
