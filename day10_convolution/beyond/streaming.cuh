// Day 10, beyond: a separable filter that reads each value once and writes it once.
//
// A warp marches down a strip of 128 values, one row per step:
//
//          strip of lanes 0..31, four values each                 in registers: sums[0 .. 2 R]
//     | halo |  0000 1111 2222 ...     3131 | halo |              sums[k]: the part of output row
//     +------+------------------------------+------+              y - R + k that is known so far
//     row y: global memory -> shared memory. Each lane reads its four values and R pixels on either
//            side, filters along the row, and adds the result to the 2 R + 1 outputs that need it.
//            Output row y - R is then complete and is stored.
//
// The sums move up one place per step at no cost, because a multiply-add may write to a register
// other than the one it adds: sums[k] = column[2 R - k] * filtered + sums[k + 1]. The warps of a
// block are independent, so there is no block barrier.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "picture.cuh"

namespace day10 {

constexpr int kWarps = 4;                       // of a block, side by side
constexpr int kLaneValues = 4;                  // values of one load
constexpr int kStripValues = 32 * kLaneValues;  // of a warp
constexpr int kRowsAhead = 4;                   // rows in flight while one is filtered
static_assert(kRowsAhead % 2 == 0, "rows alternate between two buffers");

// The weights. Kernel arguments are in constant memory, from which a multiply-add reads its operand
// without a load.
template <int R>
struct Taps {
    float row[2 * R + 1];
    float column[2 * R + 1];
};

// A strip in shared memory, with a halo of R pixels of C channels on either side. The halo is
// padded to packs of four, so that lanes load aligned packs.
template <int R, int C>
struct StripLayout {
    static constexpr int kHalo = R * C;
    static constexpr int kPad = (kHalo + kLaneValues - 1) / kLaneValues * kLaneValues;
    static constexpr int kSize = kPad + kStripValues + kPad;
    static_assert(2 * kHalo <= 32, "each lane loads one value of the halo");
};

// Loads the rows of a warp. What depends on the column alone is computed once, before the march.
template <class T, int R, int C>
class RowLoader {
    using Layout = StripLayout<R, C>;
    using Values = course::Pack<T, kLaneValues>;

  public:
    struct Row {
        Values own;  // of this lane
        T halo;
    };

    __device__ RowLoader(const Source<T>& in, int strip, int lane, bool packs)
        : in_(in),
          first_(strip + lane * kLaneValues),
          lane_(lane),
          whole_(packs && first_ + kLaneValues <= in.width()) {
        const bool left = lane < Layout::kHalo;
        const int beyond = lane - Layout::kHalo;  // on the right
        halo_from_ = from(left ? strip - Layout::kHalo + lane : strip + kStripValues + beyond);
        halo_to_ = left ? Layout::kPad - Layout::kHalo + lane : Layout::kPad + kStripValues + beyond;
        for (int k = 0; k < kLaneValues; ++k)
            own_from_[k] = from(first_ + k);
    }

    // Issues the loads of row y, above, in or below the image. put() uses the values, several rows
    // later, so the warp does not stall here.
    __device__ Row fetch(int y) const {
        Row row = {};
        const int place = border_place(y, in_.rows, in_.border.kind);
        if (place == kOutside) return row;
        const T* const values = in_.row(place);
        if (whole_) {
            row.own = Values::load(values + first_);
        } else {
            for (int k = 0; k < kLaneValues; ++k) {
                if (own_from_[k] != kOutside) row.own.value[k] = values[own_from_[k]];
            }
        }
        if (lane_ < 2 * Layout::kHalo && halo_from_ != kOutside) row.halo = values[halo_from_];
        return row;
    }

    // Stores row y to shared memory, with the constant border. The other borders are already
    // loaded.
    __device__ void put(const Row& row, int y, float* strip) const {
        course::Pack<float, kLaneValues> own;
        for (int k = 0; k < kLaneValues; ++k)
            own.value[k] = static_cast<float>(row.own.value[k]);
        auto halo = static_cast<float>(row.halo);
        if (in_.border.kind == BorderKind::kConstant) {
            const bool outside = y < 0 || y >= in_.rows;
            for (int k = 0; k < kLaneValues; ++k) {
                if (outside || own_from_[k] == kOutside) own.value[k] = in_.border.value;
            }
            if (outside || halo_from_ == kOutside) halo = in_.border.value;
        }
        own.store(strip + Layout::kPad + lane_ * kLaneValues);
        if (lane_ < 2 * Layout::kHalo) strip[halo_to_] = halo;
    }

  private:
    // The index in the row of the value at place `value` >= -kHalo, after the border rule.
    __device__ int from(int value) const {
        const int pixel = (value + Layout::kHalo) / C - R;
        const int place = border_place(pixel, in_.cols, in_.border.kind);
        return place == kOutside ? kOutside : place * C + (value + Layout::kHalo) % C;
    }

    const Source<T>& in_;
    int first_;  // this lane's first value
    int lane_;
    bool whole_;  // its four values are in range and aligned: one load
    int own_from_[kLaneValues];
    int halo_from_;
    int halo_to_;
};

// Idea: rows stream through a warp. A row is filtered along its length when it arrives, and added
// to the 2 R + 1 outputs that need it, which are in registers.
// Cost removed: loading and filtering halo rows per tile, block barriers, most loads from shared
// memory.
// Still limits it: memory bandwidth. Only the 2 R rows between two bands are loaded twice.
template <class T, int R, int C>
__global__ void __launch_bounds__(kWarps * 32)
    filter_streaming(Source<T> in, Target<T> out, Taps<R> taps, int band_rows, int blocks_across,
                     bool packs) {
    using Layout = StripLayout<R, C>;
    using Pack = course::Pack<float, kLaneValues>;
    __shared__ __align__(16) float strips[kWarps][2][Layout::kSize];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Tile tile(band_rows, kWarps * kStripValues, blocks_across);
    const int strip = tile.value + warp * kStripValues;
    if (strip >= in.width()) return;  // the whole warp: there is no block barrier below
    const int first = strip + lane * kLaneValues;
    const int end = min(tile.row + band_rows, in.rows);

    const RowLoader<T, R, C> loader(in, strip, lane, packs);
    typename RowLoader<T, R, C>::Row ahead[kRowsAhead];
    for (int i = 0; i < kRowsAhead; ++i)
        ahead[i] = loader.fetch(tile.row - R + i);

    float sums[2 * R + 2][kLaneValues] = {};  // sums[2 R + 1] stays 0
    for (int step = tile.row - R; step < end + R; step += kRowsAhead) {
#pragma unroll
        for (int i = 0; i < kRowsAhead; ++i) {
            const int y = step + i;
            float* const shared = strips[warp][i % 2];
            loader.put(ahead[i], y, shared);
            if (y + kRowsAhead < end + R) ahead[i] = loader.fetch(y + kRowsAhead);
            __syncwarp();  // one per row is enough: the next row goes to the other buffer

            float near[2 * Layout::kPad + kLaneValues];
            for (int k = 0; k < 2 * Layout::kPad + kLaneValues; k += kLaneValues) {
                const Pack four = Pack::load(shared + lane * kLaneValues + k);
                for (int j = 0; j < kLaneValues; ++j)
                    near[k + j] = four.value[j];
            }
            for (int j = 0; j < kLaneValues; ++j) {
                float filtered = 0;
                for (int k = 0; k <= 2 * R; ++k)
                    filtered += taps.row[k] * near[Layout::kPad - Layout::kHalo + j + k * C];
                for (int k = 0; k <= 2 * R; ++k)
                    sums[k][j] = taps.column[2 * R - k] * filtered + sums[k + 1][j];
            }

            const int done = y - R;
            if (done < tile.row || done >= end) continue;
            course::Pack<T, kLaneValues> result;
            for (int j = 0; j < kLaneValues; ++j)
                result.value[j] = to_value<T>(sums[0][j]);
            T* const row = out.row(done);
            if (packs && first + kLaneValues <= in.width()) {
                result.store(row + first);
            } else {
                for (int j = 0; j < kLaneValues && first + j < in.width(); ++j)
                    row[first + j] = result.value[j];
            }
        }
    }
}

constexpr int kWaves = 1;       // blocks of the grid, in units of what the GPU runs at once
constexpr int kLeastBand = 16;  // rows of a band: with fewer, most of the work would be halo

// `packs`: rows of both images start at multiples of four values.
template <int C, class T, int R>
void launch_streaming(Source<T> in, Target<T> out, const Taps<R>& taps, bool packs, cudaStream_t stream) {
    // Bands just high enough that all blocks are resident at once. Each band loads 2 R rows that
    // the adjacent bands load, too.
    constexpr int kThreads = kWarps * 32;
    const int across = tiles(in.width(), kWarps * kStripValues);
    // Queried once, on the first device used: the height of a band only affects speed.
    static const unsigned resident = course::resident_blocks(filter_streaming<T, R, C>, kThreads);
    const std::size_t bands = std::max<std::size_t>(1, kWaves * resident / static_cast<unsigned>(across));
    int band_rows = std::max(kLeastBand, tiles(in.rows, static_cast<int>(bands)));
    const int steps = course::ceil_div(band_rows + 2 * R, kRowsAhead);
    band_rows = steps * kRowsAhead - 2 * R;  // whole steps only
    const unsigned blocks = grid_of(in, band_rows, kWarps * kStripValues);
    filter_streaming<T, R, C><<<blocks, kThreads, 0, stream>>>(in, out, taps, band_rows, across, packs);
}

}  // namespace day10
