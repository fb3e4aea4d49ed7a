// Day 26's host code: argument checks and the lists of versions. The kernels and their launches are
// in fused_attention.cuh and beyond/.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/tensor_core_support.hpp"
#include "fused_attention.cuh"
#include "launch.cuh"

namespace day26 {
namespace {

void row_per_warp(const Attention<float>& attention, cudaStream_t stream) {
    if (!check_arguments(attention)) return;
    launch_row_per_warp(attention, stream);
    CUDA_CHECK_LAUNCH();
}

// All tiles must fit, because unaligned rows of any dim take the tile of kMaxDim.
std::string register_tiles_constraint(const Shape&) {
    constexpr std::size_t kNeeded = std::max(sizeof(RegisterTileMemory<RegisterTileFor<64>>),
                                             sizeof(RegisterTileMemory<RegisterTileFor<kMaxDim>>));
    return course::why_too_little_shared(kNeeded);
}

void register_tiles(const Attention<float>& attention, cudaStream_t stream) {
    if (const std::string reason = register_tiles_constraint({}); !reason.empty())
        throw std::invalid_argument("fused attention: register_tiles " + reason);
    if (!check_arguments(attention)) return;
    launch_register_tiles(attention, stream);
}

}  // namespace

template <>
std::span<const Version<float>> versions() {
    static const std::vector<Version<float>> list = {
        {.name = "row_per_warp",
         .idea = "a warp for each row, with a running maximum and a running sum",
         .launcher = row_per_warp,
         .work = work_in_fp32},
        {.name = "register_tiles",
         .idea = "tiles of keys in shared memory, 8 x 8 scores in a thread's registers",
         .launcher = register_tiles,
         .work = work_in_fp32,
         .constraint = register_tiles_constraint},
        tf32x3(),
    };
    return list;
}

template <>
std::span<const Version<__half>> versions() {
    static const std::vector<Version<__half>> list = {tensor_cores<__half>()};
    return list;
}

template <>
std::span<const Version<__nv_bfloat16>> versions() {
    static const std::vector<Version<__nv_bfloat16>> list = {tensor_cores<__nv_bfloat16>()};
    return list;
}

course::Work work_in_fp32(const Shape& shape) {
    course::Work result = work<float>(shape);
    result.arithmetic = course::Arithmetic::kFp32;
    return result;
}

// --- Precision -----------------------------------------------------------------------------------

template <>
Precision precision(const Version<float>& version) {
    // Tensor cores cut sums off instead of rounding them, three times for each 8 terms, since a
    // product becomes three. Splitting loses up to 2^-21 of a product (common/tile/tf32_split.cuh).
    if (version.name == "tf32x3")
        return {.sum = 0x1p-23, .between_cuts = 8.0 / 3, .product = 0x1p-21, .weight = 0x1p-22};
    return {};
}

template <>
Precision precision(const Version<__half>&) {
    return course::attention::tensor_core_precision<__half>();
}

template <>
Precision precision(const Version<__nv_bfloat16>&) {
    return course::attention::tensor_core_precision<__nv_bfloat16>();
}

}  // namespace day26
