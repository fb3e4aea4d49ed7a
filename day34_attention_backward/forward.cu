// The forward pass by a plain kernel, for programs that have none. Day 26 has faster ones.
#include <cmath>

#include "attention_backward.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "parts.cuh"

namespace day34 {
namespace {

constexpr int kTile = 32;   // rows of Q of a block, and keys of a tile
constexpr int kAcross = 8;  // threads of a row
constexpr int kColumns = static_cast<int>(course::attention::kMaxDim);

// The online softmax of day 26. Thread (i, t) has scores t, t + 8, ... of row i, and the same
// columns of the result.
template <class T>
__global__ void __launch_bounds__(kTile* kAcross)
    forward_rows(const Gradient<T> a, const HeadsView<T> out, float* lse, int tiles) {
    __shared__ float keys[kTile][kColumns + 1];
    __shared__ float values[kTile][kColumns + 1];
    const int i = static_cast<int>(threadIdx.x) / kAcross;
    const int t = static_cast<int>(threadIdx.x) % kAcross;
    const int dim = a.q.dim();
    const std::size_t head = blockIdx.x / static_cast<unsigned>(tiles);
    const int row = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles)) * kTile + i;
    const bool inside = row < a.q.length();
    const T* const q = row_of(a.q, head, inside ? static_cast<std::size_t>(row) : 0);
    const int seen =
        inside ? static_cast<int>(course::attention::visible_keys(
                     static_cast<std::size_t>(row), a.q.extents().length, a.k.extents().length, a.causal))
               : 0;
    float max = -kInfinity;
    float sum = 0;
    float result[kColumns / kAcross] = {};
    for (int key = 0; key < a.k.length(); key += kTile) {
        __syncthreads();
        for (int n = static_cast<int>(threadIdx.x); n < kTile * dim; n += kTile * kAcross) {
            const bool there = key + n / dim < a.k.length();
            const std::size_t from = there ? static_cast<std::size_t>(key + n / dim) : 0;
            keys[n / dim][n % dim] = there ? static_cast<float>(row_of(a.k, head, from)[n % dim]) : 0.0f;
            values[n / dim][n % dim] = there ? static_cast<float>(row_of(a.v, head, from)[n % dim]) : 0.0f;
        }
        __syncthreads();
        float score[kTile / kAcross] = {};
        for (int c = 0; c < dim; ++c) {
            const auto x = static_cast<float>(q[c]);
#pragma unroll
            for (int n = 0; n < kTile / kAcross; ++n)
                score[n] += x * keys[t + n * kAcross][c];
        }
        float highest = max;
#pragma unroll
        for (int n = 0; n < kTile / kAcross; ++n) {
            score[n] = key + t + n * kAcross < seen ? score[n] * (a.scale * kLog2E) : -kInfinity;
            highest = fmaxf(highest, score[n]);
        }
        for (int distance = 1; distance < kAcross; distance *= 2)
            highest = fmaxf(highest, __shfl_xor_sync(course::kWholeWarp, highest, distance));
        const float shift = highest == -kInfinity ? 0.0f : highest;
        const float factor = exp2f(max - shift);
        max = highest;
        sum *= factor;
#pragma unroll
        for (int n = 0; n < kTile / kAcross; ++n) {
            score[n] = exp2f(score[n] - shift);
            sum += score[n];
        }
        for (float& x : result)
            x *= factor;
#pragma unroll
        for (int n = 0; n < kTile / kAcross; ++n) {
            for (int lane = 0; lane < kAcross; ++lane) {
                const float p = __shfl_sync(course::kWholeWarp, score[n], lane, kAcross);
#pragma unroll
                for (int c = 0; c < kColumns / kAcross; ++c)
                    if (t + c * kAcross < dim) result[c] += p * values[lane + n * kAcross][t + c * kAcross];
            }
        }
    }
    for (int distance = 1; distance < kAcross; distance *= 2)
        sum += __shfl_xor_sync(course::kWholeWarp, sum, distance);
    if (!inside) return;
    T* const to = row_of(out, head, static_cast<std::size_t>(row));
    for (int c = 0; c < kColumns / kAcross; ++c)
        if (t + c * kAcross < dim) to[t + c * kAcross] = T(sum == 0 ? 0.0f : result[c] / sum);
    if (t == 0)
        lse[head * a.q.extents().length + static_cast<std::size_t>(row)] = (max + log2f(sum)) / kLog2E;
}

}  // namespace

template <class T>
void forward(const Gradient<T>& gradient, HeadsView<T> out, course::DeviceSpan<float> lse,
             cudaStream_t stream) {
    const Extents q = gradient.q.extents();
    const std::size_t tiles = course::ceil_div<std::size_t>(q.length, kTile);
    if (q.batch * q.heads * tiles == 0) return;
    course::launch(forward_rows<T>,
                   {course::blocks_for(q.batch * q.heads * tiles, 1), kTile * kAcross, 0, stream}, gradient,
                   out, lse.data(), static_cast<int>(tiles));
}
template void forward(const Gradient<float>&, HeadsView<float>, course::DeviceSpan<float>, cudaStream_t);
template void forward(const Gradient<__half>&, HeadsView<__half>, course::DeviceSpan<float>, cudaStream_t);
template void forward(const Gradient<__nv_bfloat16>&, HeadsView<__nv_bfloat16>, course::DeviceSpan<float>,
                      cudaStream_t);

}  // namespace day34
