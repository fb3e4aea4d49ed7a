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
// 16 places differ modulo 16. With the XOR they do, for whole warps and lines of at least 16:
//   - in a stage over a distance below 16, half a warp has 16 of 32 adjacent elements, in which one
//     bit of e is 0. Bit 4 inverts the bits below it, so any four of the five bits are enough;
//   - where memory has lines side by side, half a warp has 2, 4 or 8 elements of each of 8, 4 or 2
//     lines. The numbers of lines, in bits of e from 4 to 10, are added to bits 1 to 3.
// An XOR of bits: place(a ^ b) is place(a) ^ place(b).
__device__ inline int place(int e) {
    const int inverted = (e >> 4 & 1) * 15;
    const int of_lines = (e >> 5 ^ e >> 8) & 7;
    return e ^ inverted ^ of_lines * 2;
}

// The lines of a block, in shared memory: `elements[place(l * length + i)]`.
struct LineTile {
    float2* elements;
    int length, lines;
};

// Butterflies over distances length / 2 to 1. roots[half + k] = exp(-i pi k / half).
__device__ inline void transform_forward(LineTile tile, const float2* roots) {
    for (int half = tile.length / 2; half >= 1; half /= 2) {
        __syncthreads();  // the elements are those of the stage before
        for (int b = static_cast<int>(threadIdx.x); b < tile.lines * tile.length / 2; b += kFftBlock) {
            const int k = b & (half - 1);      // b % half, of a power of two
            const int low = place(2 * b - k);  // 2 half * (b / half) + k
            const int high = low ^ place(half);
            const float2 first = tile.elements[low];
            const float2 second = tile.elements[high];
            tile.elements[low] = make_float2(first.x + second.x, first.y + second.y);
            tile.elements[high] =
                multiply(make_float2(first.x - second.x, first.y - second.y), roots[half + k]);
        }
    }
    __syncthreads();
}

__device__ inline void transform_inverse(LineTile tile, const float2* roots) {
    for (int half = 1; half < tile.length; half *= 2) {
        __syncthreads();  // the elements are those of the stage before
        for (int b = static_cast<int>(threadIdx.x); b < tile.lines * tile.length / 2; b += kFftBlock) {
            const int k = b & (half - 1);
            const int low = place(2 * b - k);
            const int high = low ^ place(half);
            const float2 root = roots[half + k];
            const float2 first = tile.elements[low];
            const float2 turned = multiply(tile.elements[high], make_float2(root.x, -root.y));
            tile.elements[low] = make_float2(first.x + turned.x, first.y + turned.y);
            tile.elements[high] = make_float2(first.x - turned.x, first.y - turned.y);
        }
    }
    __syncthreads();
}

enum class Transform {
    kForward,
    kInverse,
    kFilter  // forward, times a real filter, inverse
};

// Idea: a block has some adjacent lines in shared memory, so that each is loaded and stored once.
// Elements that are known to be zero, or that no one needs, are neither loaded nor stored.
// Cost removed: the transform of a whole array whose larger part is padding.
// Still limits it: not measured yet.
//
// The filter has all elements of a line, adjacent, line after line.
template <Transform kTransform>
__global__ void fft_lines(const float2* in, Lines from, float2* out, Lines to, const float* filter,
                          int length, int inner, int lines_of_block, const float2* roots) {
    __shared__ float2 elements[kFftElements];
    const int first = static_cast<int>(blockIdx.x) * lines_of_block;
    const std::size_t outer = blockIdx.y;
    const LineTile tile{elements, length, min(lines_of_block, inner - first)};
    const int all = tile.lines * length;
    // Threads are adjacent where memory is.
    for (int e = static_cast<int>(threadIdx.x); e < all; e += kFftBlock) {
        const int l = from.stride == 1 ? e / length : e % tile.lines;
        const int i = from.stride == 1 ? e % length : e / tile.lines;
        const std::size_t line = (first + l) * from.inner_stride + outer * from.outer_stride;
        elements[place(l * length + i)] = i < from.count ? in[line + i * from.stride] : make_float2(0, 0);
    }
    if constexpr (kTransform != Transform::kInverse) transform_forward(tile, roots);
    if constexpr (kTransform == Transform::kFilter) {
        for (int e = static_cast<int>(threadIdx.x); e < all; e += kFftBlock) {
            const float factor = filter[(outer * inner + first) * length + e];
            const float2 element = elements[place(e)];
            elements[place(e)] = make_float2(factor * element.x, factor * element.y);
        }
    }
    if constexpr (kTransform != Transform::kForward) transform_inverse(tile, roots);
    for (int e = static_cast<int>(threadIdx.x); e < all; e += kFftBlock) {
        const int l = to.stride == 1 ? e / length : e % tile.lines;
        const int i = to.stride == 1 ? e % length : e / tile.lines;
        const std::size_t line = (first + l) * to.inner_stride + outer * to.outer_stride;
        if (i < to.count) out[line + i * to.stride] = elements[place(l * length + i)];
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
