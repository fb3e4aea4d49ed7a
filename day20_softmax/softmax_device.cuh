// What all softmax kernels are made of: the exponential, the pair (maximum, sum) and how two of them become one, reductions over
// a block, and the part of a row that a thread keeps in registers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "softmax.hpp"

namespace day20 {

__device__ inline float minus_infinity() {
    return __int_as_float(static_cast<int>(0xff800000u));
}

// What to subtract where the maximum is `max`. A thread whose values are all -Inf must not compute -Inf - (-Inf), which is NaN:
// another thread of the same row may hold finite ones. Subtracting 0 leaves exp(-Inf) = 0. When the whole row is -Inf its
// sum stays 0, and 0 / 0 is the NaN that is wanted.
__device__ inline float shift_of(float max) {
    return max == minus_infinity() ? 0.0f : max;
}

// exp(x - shift), as 2^((x - shift) log2(e)): a GPU computes powers of two. The difference first: x log2(e) - shift log2(e)
// in one multiply-add would save an instruction, but overflows from 2.4e38 on, and no softmax waits for arithmetic.
__device__ inline float exponential(float x, float shift) {
    constexpr float kLog2OfE = 1.44269504f;
    return exp2f((x - shift) * kLog2OfE);
}

// fmaxf prefers a number to a NaN. The NaN is not lost: its exponential makes the sum NaN, and so the whole row.
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
    static __device__ float identity() { return minus_infinity(); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
    static __device__ float identity() { return 0.0f; }
};

__device__ inline MaxSum nothing() {
    return {Max::identity(), Sum::identity()};
}

// Two parts of a row taken together: both sums are brought to the larger maximum.
__device__ inline MaxSum merge(MaxSum a, MaxSum b) {
    const float max = fmaxf(a.max, b.max);
    const float shift = shift_of(max);
    return {max, a.sum * exponential(a.max, shift) + b.sum * exponential(b.max, shift)};
}

// op over one value per thread of the block, the result in every thread. All threads must call it.
// Its shared memory is free again after the next barrier of the block: block_reduce<Max> and block_reduce<Sum> in turn
// protect each other, twice the same one needs a barrier between.
template <int kThreads, class Op>
__device__ float block_reduce(float value, Op op = {}) {
    constexpr int kWarps = kThreads / course::kWarpSize;
    static_assert(kThreads % course::kWarpSize == 0 && kWarps <= course::kWarpSize,
                  "block_reduce: whole warps, and one lane for each of them");
    __shared__ float of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    value = course::warp_reduce(value, op);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    return course::warp_reduce(lane < kWarps ? of_warp[lane] : Op::identity(), op);
}

// The parts of all lanes of a warp taken together.
__device__ inline MaxSum warp_merge(MaxSum part) {
    const float max = course::warp_reduce(part.max, Max{});
    return {max, course::warp_reduce(part.sum * exponential(part.max, shift_of(max)), Sum{})};
}

// The parts of all warps of a block taken together; `part` is that of the calling thread's warp. All threads must call it.
// One barrier. Its shared memory is free again after the next one: two calls need a barrier between.
template <int kThreads>
__device__ MaxSum block_merge(MaxSum part) {
    constexpr int kWarps = kThreads / course::kWarpSize;
    static_assert(kThreads % course::kWarpSize == 0 && kWarps <= course::kWarpSize,
                  "block_merge: whole warps, and one lane for each of them");
    __shared__ MaxSum of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    if (lane == 0) of_warp[static_cast<int>(threadIdx.x) / course::kWarpSize] = part;
    __syncthreads();
    return warp_merge(lane < kWarps ? of_warp[lane] : nothing());
}

// The same for `count` parts in memory, each thread beginning with every kThreads-th.
template <int kThreads>
__device__ MaxSum block_merge(const MaxSum* parts, int count) {
    MaxSum mine = nothing();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
        mine = merge(mine, parts[i]);
    return block_merge<kThreads>(warp_merge(mine));
}

// What finishes a value when maximum and sum of its row are known.
template <Output kOutput>
struct Normaliser {
    float shift;
    float factor;  // 1 / sum, or log(sum)

    __device__ explicit Normaliser(MaxSum row)
        : shift(shift_of(row.max)), factor(kOutput == Output::kSoftmax ? 1.0f / row.sum : logf(row.sum)) {}

    __device__ float operator()(float x) const {
        if constexpr (kOutput == Output::kSoftmax) return exponential(x, shift) * factor;
        return (x - shift) - factor;
    }
};

// The same after Share::part_of_warp(), for what it has left in the registers; `max` is that of the part.
template <Output kOutput>
struct KeptNormaliser {
    Normaliser<kOutput> normalise;
    float factor;  // brings exp(x - max) to exp(x - row.max) / sum

    __device__ KeptNormaliser(float max, MaxSum row) : normalise(row), factor(normalise(max)) {}

    __device__ float operator()(float kept) const {
        return kOutput == Output::kSoftmax ? kept * factor : normalise(kept);
    }
};

// Stores results, which nobody reads again here: as the first to leave the cache, they leave it to the input. The intrinsic is
// one 16-byte store for certain; a plain one the compiler may split, and did.
__device__ inline void store_streaming(const course::Pack<float, 4>& values, float* address) {
    const float* const x = values.value;
    __stcs(reinterpret_cast<float4*>(address), make_float4(x[0], x[1], x[2], x[3]));
}
__device__ inline void store_streaming(const course::Pack<float, 1>& values, float* address) {
    __stcs(address, values.value[0]);
}

// kValues values of a row in the registers of each of kThreads threads, so that the row is read from memory only once.
// They move in packs of kWidth neighbours; neighbouring threads have neighbouring packs (here kWidth = 4, kThreads = 256):
//
//     columns   0..3   4..7   ...  1020..1023   1024..1027   ...
//     thread      0      1    ...     255            0       ...
//     pack        0      0    ...       0            1       ...
//
// Columns from `count` on count as -Inf: they change no maximum, add nothing to a sum, and are not stored.
// With kWidth = 4 `count` must be a multiple of 4, and rows be aligned to 16 bytes; kWidth = 1 takes everything.
template <int kThreads, int kValues, int kWidth>
class Share {
    static_assert(kValues % kWidth == 0, "Share: whole packs");
    using Values = course::Pack<float, kWidth>;
    static constexpr int kPacks = kValues / kWidth;

  public:
    static constexpr int kCapacity = kThreads * kValues;  // of all threads together

    __device__ void load(const float* row, int count, int thread) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            if (column(p, thread) < count) {
                pack_[p] = Values::load(row + column(p, thread));
            } else {
                for (float& x : pack_[p].value)
                    x = minus_infinity();
            }
        }
    }

    __device__ float max() const {
        float result = minus_infinity();
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            for (const float x : pack_[p].value)
                result = fmaxf(result, x);
        return result;
    }

    // The sum of exp(x - shift). For softmax these exponentials take the values' place; log-softmax needs the values again.
    template <Output kOutput>
    __device__ float exponentiate(float shift) {
        float sum = 0;
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            for (float& x : pack_[p].value) {
                const float e = exponential(x, shift);
                sum += e;
                if constexpr (kOutput == Output::kSoftmax) x = e;
            }
        }
        return sum;
    }

    // Maximum and sum of what the threads of this warp hold; see exponentiate() for what they hold afterwards.
    template <Output kOutput>
    __device__ MaxSum part_of_warp() {
        const float largest = course::warp_reduce(max(), Max{});
        return {largest, course::warp_reduce(exponentiate<kOutput>(shift_of(largest)), Sum{})};
    }

    // Writes finish(value) of each value.
    template <class Finish>
    __device__ void store(float* row, int count, int thread, const Finish& finish) const {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            Values result;
            for (int k = 0; k < kWidth; ++k)
                result.value[k] = finish(pack_[p].value[k]);
            if (column(p, thread) < count) store_streaming(result, row + column(p, thread));
        }
    }

  private:
    static __device__ int column(int pack, int thread) {
        return (pack * kThreads + thread) * kWidth;
    }

    Values pack_[kPacks];
};

}  // namespace day20
