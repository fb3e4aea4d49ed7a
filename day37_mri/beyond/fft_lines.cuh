// Day 37, beyond: Fourier transforms of all lines of an array along one axis, of a power of two.
//
// A forward transform leaves its results in bit-reversed order (decimation in frequency), and an
// inverse one expects that order (decimation in time). A convolution multiplies in between, element
// by element, so no one ever has to put them in order.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day37 {

constexpr int kFftBlock = 128;
constexpr int kFftLoads = 4;        // by a thread at a time
constexpr int kFftElements = 2048;  // in shared memory: as many lines as fit, up to 8 of them

// Where the lines of an array are. Line (i, o) starts at i * inner_stride + o * outer_stride; its
// elements are `stride` apart, and only the first `count` of them are in memory.
struct Lines {
    int count;
    std::size_t stride, inner_stride, outer_stride;
};

__device__ inline float2 multiply(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Where element e of a block's lines is in shared memory. Half a warp has no bank conflicts if its
// 16 places differ modulo 16. With this XOR they do, for whole warps and lines of at least 32:
//   - in two stages, half a warp has elements that differ in four of the lower six bits of e. The
//     other two are adjacent, and bits 4 and 5 are added to bits 0, 2 and bits 1, 3;
//   - where memory has lines side by side, half a warp has 2, 4 or 8 elements of each of 8, 4 or 2
//     lines. The numbers of lines, in bits of e from 5 to 10, are added to bits 1 to 3.
// An XOR of bits: place(a ^ b) is place(a) ^ place(b).
__device__ inline int place(int e) {
    const int group = e >> 4;
    return e ^ ((group ^ group << 2 ^ group >> 3) & 15);
}

// The lines of a block, in shared memory: `elements[place(l * length + i)]`.
struct LineTile {
    float2* elements;
    int length, lines;
};

enum class Direction { kForward, kInverse };

template <Direction kDirection>
__device__ inline void butterfly(float2& low, float2& high, float2 root) {
    if constexpr (kDirection == Direction::kForward) {
        const float2 difference = make_float2(low.x - high.x, low.y - high.y);
        low = make_float2(low.x + high.x, low.y + high.y);
        high = multiply(difference, root);
    } else {
        const float2 turned = multiply(high, make_float2(root.x, -root.y));
        high = make_float2(low.x - turned.x, low.y - turned.y);
        low = make_float2(low.x + turned.x, low.y + turned.y);
    }
}

// Butterflies over distance `half`. roots[half + k] = exp(-i pi k / half).
template <Direction kDirection>
__device__ inline void one_stage(LineTile tile, const float2* roots, int half) {
    __syncthreads();  // the elements are those of the stage before
    for (int b = static_cast<int>(threadIdx.x); b < tile.lines * tile.length / 2; b += kFftBlock) {
        const int k = b & (half - 1);      // b % half, of a power of two
        const int low = place(2 * b - k);  // 2 half * (b / half) + k
        const int high = low ^ place(half);
        float2 x[] = {tile.elements[low], tile.elements[high]};
        butterfly<kDirection>(x[0], x[1], roots[half + k]);
        tile.elements[low] = x[0];
        tile.elements[high] = x[1];
    }
}

// Butterflies over distances 2 * quarter and `quarter`, or in the inverse order. A thread has four
// elements in registers, so two stages take one load and one store of each.
template <Direction kDirection>
__device__ inline void two_stages(LineTile tile, const float2* roots, int quarter) {
    __syncthreads();
    // Four loads at a time are enough. More would take registers, and blocks from a multiprocessor.
#pragma unroll 1
    for (int b = static_cast<int>(threadIdx.x); b < tile.lines * tile.length / 4; b += kFftBlock) {
        const int k = b & (quarter - 1);
        const int first = place(4 * b - 3 * k);  // 4 quarter * (b / quarter) + k
        const int second = first ^ place(quarter);
        const int at[] = {first, second, first ^ place(2 * quarter), second ^ place(2 * quarter)};
        float2 x[4];
        for (int j = 0; j < 4; ++j)
            x[j] = tile.elements[at[j]];
        const float2 near = roots[quarter + k];
        const float2 far[] = {roots[2 * quarter + k], roots[3 * quarter + k]};
        if constexpr (kDirection == Direction::kInverse) {
            butterfly<kDirection>(x[0], x[1], near);
            butterfly<kDirection>(x[2], x[3], near);
        }
        butterfly<kDirection>(x[0], x[2], far[0]);
        butterfly<kDirection>(x[1], x[3], far[1]);
        if constexpr (kDirection == Direction::kForward) {
            butterfly<kDirection>(x[0], x[1], near);
            butterfly<kDirection>(x[2], x[3], near);
        }
        for (int j = 0; j < 4; ++j)
            tile.elements[at[j]] = x[j];
    }
}

// Stages over distances length / 2 to 1, two at a time.
__device__ inline void transform_forward(LineTile tile, const float2* roots) {
    int half = tile.length / 2;
    for (; half >= 2; half /= 4)
        two_stages<Direction::kForward>(tile, roots, half / 2);
    if (half == 1) one_stage<Direction::kForward>(tile, roots, 1);
    __syncthreads();
}

__device__ inline void transform_inverse(LineTile tile, const float2* roots) {
    int half = 1;
    for (; half <= tile.length / 4; half *= 4)
        two_stages<Direction::kInverse>(tile, roots, half);
    if (half == tile.length / 2) one_stage<Direction::kInverse>(tile, roots, half);
    __syncthreads();
}

// Element i of line l of a block.
struct Element {
    int l, i;
};

// The e-th element of a block in the order of memory. `length` and `lines` are powers of two, so
// that shifts divide.
__device__ inline Element element_of(int e, Lines where, int length, int lines) {
    if (where.stride == 1) return {e >> (__ffs(length) - 1), e & (length - 1)};
    return {e & (lines - 1), e >> (__ffs(lines) - 1)};
}

enum class Transform {
    kForward,
    kInverse,
    kFilter  // forward, times a real filter, inverse
};

// Idea: a block has some adjacent lines in shared memory, so that each is loaded and stored once.
// Elements that are known to be zero, or that no one needs, are neither loaded nor stored.
// Cost removed: the transform of a whole array whose larger part is padding.
// Still limits it: issue slots, 73 % busy; between each two stages it stores and loads all
// elements. Lines of 32 elements or more have no bank conflicts.
//
// The filter has all elements of a line, adjacent, line after line.
template <Transform kTransform>
__global__ void fft_lines(const float2* in, Lines from, float2* out, Lines to, const float* filter,
                          int length, int inner, int lines_of_block, const float2* roots) {
    __shared__ float2 elements[kFftElements];
    const int first = static_cast<int>(blockIdx.x) * lines_of_block;
    const std::size_t outer = blockIdx.y;
    const LineTile tile{elements, length, min(lines_of_block, inner - first)};
    const int all = lines_of_block * length;
    // Threads are adjacent where memory is. The loads of some elements are issued before the first
    // store waits for one.
    for (int e = static_cast<int>(threadIdx.x); e < all; e += kFftLoads * kFftBlock) {
        float2 loaded[kFftLoads];
        for (int j = 0; j < kFftLoads; ++j) {
            const auto [l, i] = element_of(e + j * kFftBlock, from, length, lines_of_block);
            const std::size_t line = (first + l) * from.inner_stride + outer * from.outer_stride;
            loaded[j] = l < tile.lines && i < from.count ? in[line + i * from.stride] : make_float2(0, 0);
        }
        for (int j = 0; j < kFftLoads; ++j) {
            const auto [l, i] = element_of(e + j * kFftBlock, from, length, lines_of_block);
            if (l < tile.lines && i < length) elements[place(l * length + i)] = loaded[j];
        }
    }
    if constexpr (kTransform != Transform::kInverse) transform_forward(tile, roots);
    if constexpr (kTransform == Transform::kFilter) {
        for (int e = static_cast<int>(threadIdx.x); e < tile.lines * length; e += kFftBlock) {
            const float factor = filter[(outer * inner + first) * length + e];
            const float2 element = elements[place(e)];
            elements[place(e)] = make_float2(factor * element.x, factor * element.y);
        }
    }
    if constexpr (kTransform != Transform::kForward) transform_inverse(tile, roots);
    for (int e = static_cast<int>(threadIdx.x); e < all; e += kFftBlock) {
        const auto [l, i] = element_of(e, to, length, lines_of_block);
        const std::size_t line = (first + l) * to.inner_stride + outer * to.outer_stride;
        if (l < tile.lines && i < to.count) out[line + i * to.stride] = elements[place(l * length + i)];
    }
}

// inner x outer lines. Blocks of different lines share nothing, so `in` may be `out` if the lines
// are the same.
template <Transform kTransform>
void launch_fft_lines(const float2* in, Lines from, float2* out, Lines to, const float* filter, int length,
                      int inner, int outer, const float2* roots, cudaStream_t stream) {
    const int fit = kFftElements / length;
    const int lines = fit < 8 ? fit : 8;
    const dim3 blocks(static_cast<unsigned>((inner + lines - 1) / lines), static_cast<unsigned>(outer));
    fft_lines<kTransform>
        <<<blocks, kFftBlock, 0, stream>>>(in, from, out, to, filter, length, inner, lines, roots);
}

// roots[half + k] = exp(-i pi k / half), for each `half` from 1 to length / 2. So the roots of a
// stage are adjacent. roots[0] is not used.
__global__ void compute_roots(float2* roots, int length) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= length || i == 0) return;
    const int half = 1 << (31 - __clz(i));  // the highest bit of i
    double sine, cosine;
    sincospi(-static_cast<double>(i - half) / half, &sine, &cosine);
    roots[i] = make_float2(static_cast<float>(cosine), static_cast<float>(sine));
}

}  // namespace day37
