// Day 32, beyond: the kept columns of rows that are too long for the registers of a block.
#pragma once

#include "llm_int8.cuh"

namespace day32 {

constexpr int kLongThreads = 1024;

// Idea: a block per row reads it twice: once for the largest magnitude, once to quantise. Outlier
// columns count as 0 both times.
// Cost removed: a copy of X without its outlier columns.
// Still limits it: memory. It is for rows that are too long for kept_row_in_registers.
template <bool kAligned>
__global__ void __launch_bounds__(kLongThreads)
    kept_row_in_passes(DeviceMatrix<const __half> x, const std::uint16_t* keep, DeviceMatrix<std::int8_t> out,
                       float* scale) {
    const std::size_t row = blockIdx.x;
    const __half* const x_row = x.data() + row * x.leading_dimension();
    const auto kept = [&](std::size_t col) {
        auto octet = Octet::load<kAligned>(x_row, col, x.cols());
        mask<kAligned>(octet, keep, col, x.cols());
        return octet;
    };
    __half2 largest = __float2half2_rn(0);
    for (std::size_t col = threadIdx.x * kOctet; col < x.cols(); col += kLongThreads * kOctet) {
        const auto octet = kept(col);
        for (int u = 0; u < kOctet / 2; ++u)
            largest = __hmax2_nan(largest, __habs2(octet.unit(u)));
    }
    const float row_scale = scale_of(block_max<kLongThreads>(magnitude_bits(largest)));
    const float inverse = inverse_of(row_scale);
    for (std::size_t col = threadIdx.x * kOctet; col < x.cols(); col += kLongThreads * kOctet)
        course::store_bytes<kAligned>(quantize(kept(col), inverse),
                                      out.data() + row * out.leading_dimension(), col, x.cols());
    if (threadIdx.x == 0) scale[row] = row_scale;
}

template <bool kAligned>
void launch_kept_row_in_passes(DeviceMatrix<const __half> x, const std::uint16_t* keep,
                               DeviceMatrix<std::int8_t> out, float* scale, cudaStream_t stream) {
    kept_row_in_passes<kAligned>
        <<<course::blocks_for(x.rows(), 1), kLongThreads, 0, stream>>>(x, keep, out, scale);
}

}  // namespace day32
