// Day 47, host code: argument checks and the list of versions. The kernels and their launches are
// in masked_matmul.cuh and beyond/.
#include <algorithm>
#include <array>
#include <string>

#include "band_tiles.cuh"
#include "beyond/bytes.cuh"
#include "beyond/kept_tiles_mma.cuh"
#include "beyond/listed_tiles.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/tensor_core_support.hpp"
#include "masked_matmul.cuh"
#include "masked_matmul.hpp"

namespace day47 {
namespace {

// False: there is nothing to do.
bool is_worth_a_launch(const MaskedMatmul& matmul) {
    const course::Operands& operands = matmul.operands;
    const Mask& mask = matmul.mask;
    course::check_operands(operands, "masked matmul");
    const auto& c = matmul.c.first;
    course::check_output(operands, matmul.c, "masked matmul");
    if (mask.kind == Mask::Kind::kArray) {
        const auto& bytes = mask.bytes.first;
        course::require(bytes.rows() == operands.m() && bytes.cols() == operands.n() &&
                            (mask.bytes.count == 1 || mask.bytes.count == operands.count()),
                        "masked matmul: the mask's arrays are ", mask.bytes.count, " of ", bytes,
                        "; expected 1 or ", operands.count(), " of ", operands.m(), " x ", operands.n());
        course::require(mask.bytes.pointers.empty() || mask.bytes.pointers.size() == mask.bytes.count,
                        "masked matmul: the mask has ", mask.bytes.pointers.size(), " pointers for ",
                        mask.bytes.count, " arrays; expected one for each");
    } else {
        const std::int64_t lowest = mask.below == INT64_MIN ? INT64_MAX : -mask.below;
        course::require(lowest <= mask.above, "masked matmul: the band is from ", mask.below,
                        " below the diagonal to ", mask.above, " above it; expected a sum of at least 0");
    }
    return c.rows() != 0 && c.cols() != 0 && matmul.c.count != 0;
}

Band band_of(const Mask& mask) {
    const auto clamped = [](std::int64_t distance) {
        return static_cast<int>(std::clamp(distance, -Mask::kFar, Mask::kFar));
    };
    return {clamped(mask.below), clamped(mask.above)};
}

// Different arrays: matrices that are all the first one count as one.
std::size_t arrays_of(const course::Batch<const std::uint8_t>& bytes) {
    return bytes.stride == 0 && bytes.pointers.empty() ? std::min<std::size_t>(bytes.count, 1) : bytes.count;
}

// Calls `work` with the mask of the versions that test element by element.
template <class Work>
void with_elements(const Mask& mask, const Work& work) {
    if (mask.kind == Mask::Kind::kBand) {
        work(band_of(mask));
    } else {
        work(Bytes{mask.bytes, arrays_of(mask.bytes) == 1});
    }
}

// Calls `launch` with the loaders that suit the operands: B is loaded 16 bytes at a time if its
// rows are MN-major and aligned.
template <class T, class Launch>
void with_loaders(const course::Operands& operands, const Launch& launch) {
    using LoaderA = course::ElementLoader<T::BM, T::BK, T::THREADS>;
    if (course::b_goes_in_packs(operands)) {
        launch.template operator()<LoaderA, course::PackLoader<T::BN, T::BK, T::THREADS>>();
    } else {
        launch.template operator()<LoaderA, course::ElementLoader<T::BN, T::BK, T::THREADS>>();
    }
}

void launch_thread_per_element(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    with_elements(matmul.mask, [&](const auto& mask) {
        launch_multiply_kept_elements(matmul.operands, mask, matmul.c, matmul.alpha, matmul.fill, stream);
        CUDA_CHECK_LAUNCH();
    });
}

void launch_unfused(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    using T = course::LargeTile;
    with_loaders<T>(matmul.operands, [&]<class LoaderA, class LoaderB>() {
        launch_multiply_all<T, 1, LoaderA, LoaderB>(matmul.operands, matmul.c, matmul.alpha, stream);
    });
    with_elements(matmul.mask, [&](const auto& mask) {
        launch_fill_dropped(mask, matmul.c, matmul.fill, stream);
        CUDA_CHECK_LAUNCH();
    });
}

template <class T, int BLOCKS>
void launch_element_mask(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    with_elements(matmul.mask, [&](const auto& mask) {
        with_loaders<T>(matmul.operands, [&]<class LoaderA, class LoaderB>() {
            launch_multiply_and_mask<T, BLOCKS, LoaderA, LoaderB>(matmul.operands, mask, matmul.c,
                                                                  matmul.alpha, matmul.fill, stream);
        });
    });
}

template <class T>
std::size_t levels_size(const course::Batch<const std::uint8_t>& bytes) {
    return Levels<T>::size(bytes.first.rows(), bytes.first.cols(), arrays_of(bytes));
}

template <class T>
Levels<T> levels_of(const course::Batch<const std::uint8_t>& bytes,
                    const course::DeviceSpan<std::uint32_t>& memory) {
    const std::size_t needed = levels_size<T>(bytes);
    course::require(memory.size() >= needed, "masked matmul: the mask's levels have ", memory.size(),
                    " elements; expected at least ", needed, ", as MaskLevels of this version has");
    course::require(course::is_aligned(memory.data(), 16),
                    "masked matmul: the mask's levels are not aligned; expected a multiple of 16 bytes");
    return {memory.data(), bytes.first.rows(), bytes.first.cols(), arrays_of(bytes)};
}

template <class T>
void build_levels_of(const course::Batch<const std::uint8_t>& bytes, course::DeviceSpan<std::uint32_t> memory,
                     cudaStream_t stream) {
    const Levels<T> levels = levels_of<T>(bytes, memory);
    if (levels.all().all == 0) return;
    launch_build_levels(bytes, levels, memory.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template <class T, int BLOCKS>
void launch_skip_tiles(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const course::Operands& operands = matmul.operands;
    const auto launch = [&](const auto& tiles) {
        with_loaders<T>(operands, [&]<class LoaderA, class LoaderB>() {
            launch_multiply_kept_tiles<T, BLOCKS, LoaderA, LoaderB>(operands, tiles, matmul.c, matmul.alpha,
                                                                    matmul.fill, stream);
        });
    };
    if (matmul.mask.kind == Mask::Kind::kBand) {
        launch(BandTiles<T>(band_of(matmul.mask), operands));
    } else {
        const auto& bytes = matmul.mask.bytes;
        launch(ListedTiles<T>(levels_of<T>(bytes, matmul.mask.levels),
                              static_cast<unsigned>(operands.count() / arrays_of(bytes))));
    }
}

std::string why_no_tensor_cores(const MaskedShape&) {
    return course::why_no_tensor_cores(multiply_kept_tiles_mma<true, Band>, kMmaShared);
}

// Does each matrix of the batch have 16-byte aligned rows?
bool has_aligned_rows(const course::Batch<const float>& batch) {
    return batch.pointers.empty() && course::is_aligned(batch.first.data(), 16) &&
           batch.first.leading_dimension() % 4 == 0 && batch.stride % 4 == 0;
}

// Tensor cores take K-major operands. Sums of fewer than 16 terms have a larger error than FP32's
// (common/tile/tf32_split.cuh).
void launch_skip_tiles_mma(const MaskedMatmul& matmul, cudaStream_t stream) {
    const course::Operands& operands = matmul.operands;
    if (operands.op_a != course::Op::kNone || operands.op_b != course::Op::kTranspose || operands.k() < 16)
        return launch_element_mask<course::SquareTile, 2>(matmul, stream);
    if (!is_worth_a_launch(matmul)) return;
    const std::string reason = why_no_tensor_cores({});
    course::require(reason.empty(), "masked matmul: skip_tiles_mma ", reason);
    const bool aligned = has_aligned_rows(operands.a) && has_aligned_rows(operands.b);
    with_elements(matmul.mask, [&]<class Elements>(const Elements& mask) {
        const auto launch = aligned ? launch_multiply_kept_tiles_mma<true, Elements>
                                    : launch_multiply_kept_tiles_mma<false, Elements>;
        launch(operands, mask, matmul.c, matmul.alpha, matmul.fill, stream);
    });
}

course::Work work(const MaskedShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = sizeof(float) * count * (m * k + k * n + m * n) + static_cast<double>(shape.mask_bytes),
            .written = sizeof(float) * count * m * n,
            .flops = 2 * static_cast<double>(shape.kept) * k};
}

// With products on tensor cores, whose limit is not measured.
course::Work work_of_tensor_cores(const MaskedShape& shape) {
    course::Work all = work(shape);
    all.arithmetic = course::Arithmetic::kOther;
    return all;
}

constexpr Masker without_levels(void (*launch)(const MaskedMatmul&, cudaStream_t)) {
    return {launch, [](const course::Batch<const std::uint8_t>&) { return std::size_t{0}; },
            [](const course::Batch<const std::uint8_t>&, course::DeviceSpan<std::uint32_t>, cudaStream_t) {}};
}

template <class T, int BLOCKS>
constexpr Masker with_levels() {
    return {launch_skip_tiles<T, BLOCKS>, levels_size<T>, build_levels_of<T>};
}

}  // namespace

std::span<const Masked> masked_versions() {
    static const std::array list = {
        Masked{.name = "thread_per_element",
               .idea = "a thread for each element; dropped ones load nothing",
               .launcher = without_levels(launch_thread_per_element),
               .work = work},
        Masked{.name = "unfused",
               .idea = "the whole product, then a pass that fills",
               .launcher = without_levels(launch_unfused),
               .work = work},
        Masked{.name = "element_mask",
               .idea = "the epilogue applies the mask to each element",
               .launcher = without_levels(launch_element_mask<course::SquareTile, 2>),
               .work = work},
        Masked{.name = "skip_tiles",
               .idea = "tiles without a kept element are filled, not multiplied",
               .launcher = with_levels<course::SquareTile, 2>(),
               .work = work},
        Masked{.name = "skip_large_tiles",
               .idea = "the same with tiles twice as wide",
               .launcher = with_levels<course::LargeTile, 1>(),
               .work = work},
        Masked{.name = "skip_tiles_mma",
               .idea = "small tiles, multiplied on tensor cores or filled",
               .launcher = without_levels(launch_skip_tiles_mma),
               .work = work_of_tensor_cores,
               .constraint = why_no_tensor_cores},
    };
    return list;
}

}  // namespace day47
