// What the host code of day 10 shares: argument checks, and views as kernels take them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/check/require.hpp"
#include "convolution.hpp"
#include "picture.cuh"

namespace day10 {

using course::require;

// How require() prints an image.
template <class T>
std::string to_text(const DevicePicture<T>& picture) {
    return course::shape_text(picture.rows(), picture.cols(), picture.channels());
}

template <class T>
std::size_t extent(const DevicePicture<T>& picture) {
    if (picture.rows() == 0 || picture.cols() == 0) return 0;
    return ((picture.rows() - 1) * picture.pitch() + picture.cols() * picture.channels()) * sizeof(T);
}

// Do `bytes` from `begin` on and `other_bytes` from `other` on share a byte?
inline bool overlap(const void* begin, std::size_t bytes, const void* other, std::size_t other_bytes) {
    const auto a = reinterpret_cast<std::uintptr_t>(begin);
    const auto b = reinterpret_cast<std::uintptr_t>(other);
    return a < b + other_bytes && b < a + bytes;
}

template <class T>
void check_pictures(const DevicePicture<const T>& in, const DevicePicture<T>& out) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    require(in.rows() == out.rows() && in.cols() == out.cols() && in.channels() == out.channels(),
            "convolution: `in` is ", in, " and `out` ", out, " (rows x cols x channels); expected the same");
    require(in.channels() == 1 || in.channels() == 3, "convolution: ", in.channels(),
            " channels; expected 1 or 3");
    require(in.rows() < kMost && in.cols() * in.channels() < kMost, "convolution: a picture of ", in,
            "; expected less than 2^30 rows and values in a row");
    require(in.pitch() >> 32 == 0 && out.pitch() >> 32 == 0, "convolution: pitches of ", in.pitch(), " and ",
            out.pitch(), "; expected less than 2^32");
    require(!overlap(in.values().data(), extent(in), out.values().data(), extent(out)),
            "convolution: `out` overlaps `in`; expected nothing in common");
}

template <class T>
Problem problem_of(const DevicePicture<T>& in, const Filter& filter) {
    return {in.rows(), in.cols(), in.channels(), filter.rows(), filter.cols(), filter.is_separable()};
}

inline void require_can_run(const std::string& reason) {
    require(reason.empty(), "convolution: ", reason);
}

template <class T>
bool is_empty(const DevicePicture<T>& picture) {
    return picture.rows() == 0 || picture.cols() == 0;
}

template <class T>
Source<T> source(const DevicePicture<const T>& in, Border border) {
    return {in.values().data(),          static_cast<unsigned>(in.pitch()), static_cast<int>(in.rows()),
            static_cast<int>(in.cols()), static_cast<int>(in.channels()),   border};
}

template <class T>
Target<T> target(const DevicePicture<T>& out) {
    return {out.values().data(), static_cast<unsigned>(out.pitch())};
}

// The shared memory that a block can have without opting in to more.
inline constexpr std::size_t kSharedBytes = 48 * 1024;

// The versions for separable filters.

std::string two_pass_constraint(const Problem& problem);
std::string fused_constraint(const Problem& problem);

template <class T>
void separable_two_pass(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                        course::DeviceSpan<float> workspace, cudaStream_t stream);
template <class T>
void separable_fused(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                     course::DeviceSpan<float> workspace, cudaStream_t stream);
template <class T>
void separable_streaming(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                         course::DeviceSpan<float> workspace, cudaStream_t stream);

}  // namespace day10
