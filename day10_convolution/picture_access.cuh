// What every kernel of the day needs: a value of the picture, or of what stands outside it; and what launchers check.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "common/device/grid.hpp"
#include "convolution.hpp"

namespace day10 {

inline constexpr int kOutside = -1;

// Which of n places stands at place i, for any i; kOutside where the border's constant does.
__device__ inline int border_place(int i, int n, BorderKind kind) {
    if (i >= 0 && i < n) return i;
    switch (kind) {
        case BorderKind::kReplicate:
            return i < 0 ? 0 : n - 1;
        case BorderKind::kReflect: {
            if (n == 1) return 0;
            const int period = 2 * n - 2;  // there and back again
            int place = i % period;
            if (place < 0) place += period;
            return place < n ? place : period - place;
        }
        case BorderKind::kWrap: {
            const int place = i % n;
            return place < 0 ? place + n : place;
        }
        default:
            return kOutside;
    }
}

// Where row y >= 0 begins: 32 bits times 32 bits are 64, and one instruction.
__device__ inline std::size_t row_begin(int y, unsigned pitch) {
    return static_cast<std::size_t>(static_cast<unsigned>(y)) * pitch;
}

// A picture as kernels take it. Places are ints: one row or column never needs more.
template <class T>
struct Source {
    const T* data;
    unsigned pitch;
    int rows;
    int cols;
    int channels;
    Border border;

    __device__ int width() const { return cols * channels; }
    __device__ const T* row(int y) const { return data + row_begin(y, pitch); }

    // The value at any place, inside or outside.
    __device__ float at(int y, int x, int channel) const {
        const int row_place = border_place(y, rows, border.kind);
        const int col_place = border_place(x, cols, border.kind);
        if (row_place == kOutside || col_place == kOutside) return border.value;
        return static_cast<float>(row(row_place)[col_place * channels + channel]);
    }
};

template <class T>
struct Target {
    T* data;
    unsigned pitch;

    __device__ T* row(int y) const { return data + row_begin(y, pitch); }
};

// A sum as a value of the picture. rintf rounds halves to even, as cv::saturate_cast does; NaN becomes 0.
template <class T>
__device__ T to_value(float sum) {
    if constexpr (std::is_same_v<T, float>) {
        return sum;
    } else {
        return static_cast<T>(fminf(fmaxf(rintf(sum), 0.0f), 255.0f));
    }
}

// Grids are one-dimensional: the x direction alone can count more than 65535 blocks. Tiles follow one another row by row.
struct Tile {
    int row;    // first row of the tile,
    int value;  // and its first value in the row

    __device__ Tile(int tile_rows, int tile_values, int tiles_across)
        : row(static_cast<int>(blockIdx.x) / tiles_across * tile_rows),
          value(static_cast<int>(blockIdx.x) % tiles_across * tile_values) {}
};

// --- Host side ---------------------------------------------------------------------------------------------------------

inline void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("convolution: " + message);
}

template <class T>
std::string shape(const DevicePicture<T>& picture) {
    return std::to_string(picture.rows()) + " x " + std::to_string(picture.cols()) + " x " +
           std::to_string(picture.channels());
}

template <class T>
std::size_t extent(const DevicePicture<T>& picture) {
    if (picture.rows() == 0 || picture.cols() == 0) return 0;
    return ((picture.rows() - 1) * picture.pitch() + picture.cols() * picture.channels()) * sizeof(T);
}

// Have these anything in common? `bytes` from `begin` on, and `other_bytes` from `other` on.
inline bool overlap(const void* begin, std::size_t bytes, const void* other, std::size_t other_bytes) {
    const auto a = reinterpret_cast<std::uintptr_t>(begin);
    const auto b = reinterpret_cast<std::uintptr_t>(other);
    return a < b + other_bytes && b < a + bytes;
}

template <class T>
void check_pictures(const DevicePicture<const T>& in, const DevicePicture<T>& out) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    require(
        in.rows() == out.rows() && in.cols() == out.cols() && in.channels() == out.channels(),
        "`in` is " + shape(in) + " and `out` " + shape(out) + " (rows x cols x channels); expected the same");
    require(in.channels() == 1 || in.channels() == 3,
            std::to_string(in.channels()) + " channels; expected 1 or 3");
    require(in.rows() < kMost && in.cols() * in.channels() < kMost,
            "a picture of " + shape(in) + "; expected less than 2^30 rows and values in a row");
    require(in.pitch() >> 32 == 0 && out.pitch() >> 32 == 0, "pitches of " + std::to_string(in.pitch()) +
                                                                 " and " + std::to_string(out.pitch()) +
                                                                 "; expected less than 2^32");
    require(!overlap(in.values().data(), extent(in), out.values().data(), extent(out)),
            "`out` overlaps `in`; expected nothing in common");
}

template <class T>
Problem problem_of(const DevicePicture<T>& in, const Filter& filter) {
    return {in.rows(), in.cols(), in.channels(), filter.rows(), filter.cols(), filter.is_separable()};
}

inline void require_can_run(const std::string& reason) {
    require(reason.empty(), reason);
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

inline int tiles(std::size_t count, int each) {
    return static_cast<int>(course::ceil_div(count, static_cast<std::size_t>(each)));
}

template <class T>
unsigned tiles_of(const DevicePicture<T>& picture, int tile_rows, int tile_values) {
    const auto down = static_cast<std::size_t>(tiles(picture.rows(), tile_rows));
    return course::blocks_for(
        down * static_cast<std::size_t>(tiles(picture.cols() * picture.channels(), tile_values)), 1);
}

inline constexpr std::size_t kSharedBytes = 48 * 1024;  // what a block has without asking for more

// --- The versions for separable filters, in convolution_separable.cu and convolution_streaming.cu --------------------------

std::string two_pass_constraint(const Problem& problem);
std::string fused_constraint(const Problem& problem);

template <class T>
void launch_separable_two_pass(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                               Border border, course::DeviceSpan<float> workspace, cudaStream_t stream);
template <class T>
void launch_separable_fused(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                            Border border, course::DeviceSpan<float> workspace, cudaStream_t stream);
template <class T>
void launch_separable_streaming(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                                Border border, course::DeviceSpan<float> workspace, cudaStream_t stream);

}  // namespace day10
