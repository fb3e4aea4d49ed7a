// Day 35, beyond: 16-byte loads of a CSR matrix.
//
//   version          what is new                            what limits it
//   csr_vectorised   16-byte loads of values and columns    latency of a long row among short ones
#pragma once

#include <cstring>
#include <type_traits>

#include "common/device/pack.cuh"
#include "spmv.cuh"

namespace day35 {

constexpr int kPack = 4;  // entries of a vectorised load

// A vectorised load of N elements that are read only once.
template <int N, class T>
__device__ course::Pack<T, N> load_once(const T* address) {
    using Word = std::conditional_t<sizeof(T) * N == 16, uint4,
                                    std::conditional_t<sizeof(T) * N == 8, uint2, unsigned>>;
    const Word word = __ldcs(reinterpret_cast<const Word*>(address));
    course::Pack<T, N> pack;
    std::memcpy(&pack, &word, sizeof(pack));
    return pack;
}

// Idea: a lane loads four entries at once, 16-byte aligned. Entries of the pack that belong to the
// rows before and after are not multiplied. The arrays are padded to whole packs.
// Cost removed: three of four loads of the matrix, and the latency between them.
// Still limits it: latency of long rows among short ones (power law, counters: SMs have work for
// 12 % of the time, and no unit is above 8 %); for rows of a few entries, lanes without work.
template <int kLanes, class O>
__global__ void csr_vectorised_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    float sum = 0;
    if (row < a.rows) {
        const O begin = a.row_start[row];
        const O end = a.row_start[row + 1];
        for (O i = begin / kPack * kPack + lane * kPack; i < end; i += kLanes * kPack) {
            const auto cols = load_once<kPack>(a.cols + i);
            const auto values = load_once<kPack>(a.values + i);
#pragma unroll
            for (int j = 0; j < kPack; ++j) {
                if (i + j >= begin && i + j < end) sum += values.value[j] * x[cols.value[j]];
            }
        }
    }
    sum = sum_of_lanes<kLanes>(sum);
    if (row < a.rows && lane == 0) y[row] = sum;
}

// `lanes` of each row: 2, 4, 8, 16 or 32.
template <class O>
void launch_csr_vectorised(const CsrView<O>& a, int lanes, const float* x, float* y, cudaStream_t stream) {
    const auto kernel = lanes == 2    ? csr_vectorised_kernel<2, O>
                        : lanes == 4  ? csr_vectorised_kernel<4, O>
                        : lanes == 8  ? csr_vectorised_kernel<8, O>
                        : lanes == 16 ? csr_vectorised_kernel<16, O>
                                      : csr_vectorised_kernel<32, O>;
    const std::size_t threads = static_cast<std::size_t>(a.rows) * lanes;
    kernel<<<course::blocks_for(threads, kBlock), kBlock, 0, stream>>>(a, x, y);
}

}  // namespace day35
