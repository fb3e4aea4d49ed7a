// Matrix products of which a mask keeps a part. All other elements are filled with one number.
//
//     C[i] = alpha op(A[i]) op(B[i]) where the mask keeps an element, `fill` elsewhere
//     i = 0 ... count - 1
//
// Scores of causal attention: the mask is causal, and `fill` -Inf.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/operands.hpp"

namespace day47 {

// Which elements of each product are kept: those near the diagonal, or those whose byte in an array
// is not 0.
struct Mask {
    static constexpr std::int64_t kFar = 0x7fffffff;  // farther than any element

    enum class Kind { kBand, kArray } kind = Kind::kBand;
    // kBand: row - below <= column <= row + above. By default, all elements.
    std::int64_t below = kFar;
    std::int64_t above = kFar;
    // kArray: the byte is not 0. m x n; one array for all products, or one for each of them.
    course::Batch<const std::uint8_t> bytes{};
    // Of this array, by MaskLevels below; for versions whose levels_size() is not 0.
    course::DeviceSpan<std::uint32_t> levels{};

    static Mask none() { return {}; }
    static Mask causal(std::int64_t offset = 0) { return {.above = offset}; }
    static Mask banded(std::int64_t below, std::int64_t above) { return {.below = below, .above = above}; }
    static Mask array(const course::Batch<const std::uint8_t>& bytes) {
        return {.kind = Kind::kArray, .bytes = bytes};
    }
};

struct MaskedMatmul {
    course::Operands operands;
    course::Batch<float> c;
    Mask mask;
    float alpha = 1;
    float fill = 0;
};

struct MaskedShape {
    std::size_t count = 0, m = 0, n = 0, k = 0;
    std::size_t kept = 0;        // elements, of all products
    std::size_t mask_bytes = 0;  // of the array that is read; 0: the mask is no array
};

struct Masker {
    // Queues the products on `stream`. Any shape, also empty ones. Throws std::invalid_argument
    // when shapes or counts do not match, C overlaps itself, A or B, for a band that keeps nothing,
    // and for an array without the levels that this version needs; CudaError if a call to CUDA
    // fails.
    void (*launch)(const MaskedMatmul& matmul, cudaStream_t stream);
    // Elements of the levels of an array: 0 for a version that reads the bytes.
    std::size_t (*levels_size)(const course::Batch<const std::uint8_t>& bytes);
    // Queues the work that builds the levels, which are 16-byte aligned. Throws
    // std::invalid_argument when they are too short.
    void (*build_levels)(const course::Batch<const std::uint8_t>& bytes,
                         course::DeviceSpan<std::uint32_t> levels, cudaStream_t stream);
};

// An array and its levels: which tiles have kept elements, how much of each warp's part of them is
// kept, and a bit for each element. Built once, the levels serve any number of products.
class MaskLevels {
  public:
    MaskLevels(const Masker& masker, const course::Batch<const std::uint8_t>& bytes)
        : masker_(masker), bytes_(bytes), levels_(masker.levels_size(bytes)) {}

    // Queues the work. It reads the bytes when it runs.
    void build(cudaStream_t stream) { masker_.build_levels(bytes_, levels_.span(), stream); }

    Mask mask() { return {.kind = Mask::Kind::kArray, .bytes = bytes_, .levels = levels_.span()}; }

  private:
    Masker masker_;
    course::Batch<const std::uint8_t> bytes_;
    course::DeviceBuffer<std::uint32_t> levels_;
};

// "thread_per_element", "unfused", "element_mask", "skip_tiles", "skip_large_tiles",
// "skip_tiles_mma"
using Masked = course::Version<Masker, MaskedShape>;
std::span<const Masked> masked_versions();

// The reference, of packed matrices, in double: as multiply_on_cpu(), for each product; then `fill`
// where a byte of `keep`, one for each element of all products, is 0.
struct MaskedOnCpu {
    std::vector<double> values;
    std::vector<double> magnitudes;
};
MaskedOnCpu multiply_masked_on_cpu(const MaskedShape& shape, float alpha, std::span<const float> a,
                                   std::span<const float> b, std::span<const std::uint8_t> keep, float fill);

// A band as an array of bytes, for one product.
std::vector<std::uint8_t> band_as_bytes(const Mask& mask, std::size_t m, std::size_t n);

}  // namespace day47
