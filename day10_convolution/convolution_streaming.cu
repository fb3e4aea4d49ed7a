// Day 10, third part: the separable filter that reads each value once and writes it once.
//
// A warp marches down a strip of 128 values, a row at a step:
//
//          strip of lane 0..31, four values each                  in registers: sums[0 .. 2 R]
//     | halo |  0000 1111 2222 ...     3131 | halo |              sums[k] is what is known so far of output row y - R + k
//     +------+------------------------------+------+
//     row y: global memory -> shared memory, each lane reads its four values and R pixels to either side,
//            filters them along the row, and adds the result to the 2 R + 1 output rows that need it;
//            output row y - R is complete then, and is written.
//
// The sums move up one place at each step, for nothing: a multiply-add may write another register than the one it adds,
//     sums[k] = column[2 R - k] * filtered + sums[k + 1].
// No value is kept twice, no row is filtered twice but the 2 R rows between two bands, and there is no barrier for the block:
// the warps of a block do not know of each other.
#include <algorithm>
#include <cstdint>

#include "common/check/check.hpp"
#include "common/device/pack.cuh"
#include "picture_access.cuh"

namespace day10 {
namespace {

using course::DeviceSpan;

constexpr int kWarps = 4;                       // of a block, side by side
constexpr int kLaneValues = 4;                  // one access of a lane
constexpr int kStripValues = 32 * kLaneValues;  // of a warp
constexpr int kRowsAhead = 4;                   // rows on their way from memory while one is filtered
constexpr int kWaves = 1;                       // blocks in all, in units of what the GPU runs at a time
constexpr int kLeastBand = 16;                  // rows of a band: fewer, and most of the work is for its halo
static_assert(kRowsAhead % 2 == 0, "rows alternate between two buffers");

// Kernel arguments are constant memory: a multiply-add takes the weight from there, without a load.
template <int R>
struct Taps {
    float row[2 * R + 1];
    float column[2 * R + 1];
};

// --- Device helpers --------------------------------------------------------------------------------------------------

// A strip with its halo, R pixels of C channels to either side, in shared memory. Padded: lanes read packs of four.
template <int R, int C>
struct StripLayout {
    static constexpr int kHalo = R * C;
    static constexpr int kPad = (kHalo + kLaneValues - 1) / kLaneValues * kLaneValues;
    static constexpr int kSize = kPad + kStripValues + kPad;
    static_assert(2 * kHalo <= 32, "each lane fetches one value of the halo");
};

// Fetches a warp's rows. What depends on the column alone is found once, before the march.
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

    // Asks for row y, above, in or below the picture. Nobody waits here: the values are not looked at before put().
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

    // Writes row y to shared memory. Other borders than the constant are in what was fetched.
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
    // The value of the row that stands at place `value` >= -kHalo.
    __device__ int from(int value) const {
        const int pixel = (value + Layout::kHalo) / C - R;
        const int place = border_place(pixel, in_.cols, in_.border.kind);
        return place == kOutside ? kOutside : place * C + (value + Layout::kHalo) % C;
    }

    const Source<T>& in_;
    int first_;  // this lane's first value
    int lane_;
    bool whole_;  // its four values are in the picture, and may be moved in one access
    int own_from_[kLaneValues];
    int halo_from_;
    int halo_to_;
};

// --- Kernel ----------------------------------------------------------------------------------------------------------

// Idea: rows stream through a warp; a row is filtered across when it comes in, and added to the outputs that need it.
// Cost removed: fetching and filtering halo rows for each tile; barriers; every load from shared memory that a register can spare.
// Still limits it: memory. Each value comes in once and goes out once, but for the rows between two bands.
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
    if (strip >= in.width()) return;  // the whole warp, and no other one waits for it
    const int first = strip + lane * kLaneValues;
    const int end = min(tile.row + band_rows, in.rows);

    const RowLoader<T, R, C> loader(in, strip, lane, packs);
    typename RowLoader<T, R, C>::Row ahead[kRowsAhead];
    for (int i = 0; i < kRowsAhead; ++i)
        ahead[i] = loader.fetch(tile.row - R + i);

    float sums[2 * R + 2][kLaneValues] = {};  // the last one stays 0
    for (int step = tile.row - R; step < end + R; step += kRowsAhead) {
#pragma unroll
        for (int i = 0; i < kRowsAhead; ++i) {
            const int y = step + i;
            float* const shared = strips[warp][i % 2];
            loader.put(ahead[i], y, shared);
            if (y + kRowsAhead < end + R) ahead[i] = loader.fetch(y + kRowsAhead);
            __syncwarp();  // one is enough: the next row goes to the other buffer

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

// --- Launcher --------------------------------------------------------------------------------------------------------

template <class T, int R, int C>
void launch_radius(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                   cudaStream_t stream) {
    Taps<R> taps;
    std::copy(filter.row().begin(), filter.row().end(), taps.row);
    std::copy(filter.column().begin(), filter.column().end(), taps.column);

    // Bands just high enough that the GPU runs all of them at once: each costs 2 R rows that its neighbours read as well.
    constexpr int kThreads = kWarps * 32;
    const int across = tiles(in.cols() * C, kWarps * kStripValues);
    // Asked once, of the first device that is used: good for the height of a band, and right for any other device.
    static const unsigned resident = course::resident_blocks(filter_streaming<T, R, C>, kThreads);
    const std::size_t bands = std::max<std::size_t>(1, kWaves * resident / static_cast<unsigned>(across));
    int band_rows = std::max(kLeastBand, tiles(in.rows(), static_cast<int>(bands)));
    const int steps = course::ceil_div(band_rows + 2 * R, kRowsAhead);
    band_rows = steps * kRowsAhead - 2 * R;  // no step is left half empty
    const bool packs = course::is_aligned(in.values().data(), kLaneValues * sizeof(T)) &&
                       course::is_aligned(out.values().data(), kLaneValues * sizeof(T)) &&
                       in.pitch() % kLaneValues == 0 && out.pitch() % kLaneValues == 0;

    const unsigned blocks = tiles_of(in, band_rows, kWarps * kStripValues);
    filter_streaming<T, R, C>
        <<<blocks, kThreads, 0, stream>>>(source(in, border), target(out), taps, band_rows, across, packs);
    CUDA_CHECK_LAUNCH();
}

template <class T, int C>
void launch_channels(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                     cudaStream_t stream) {
    switch (filter.rows() / 2) {
        case 1:
            return launch_radius<T, 1, C>(in, out, filter, border, stream);
        case 2:
            return launch_radius<T, 2, C>(in, out, filter, border, stream);
        case 3:
            return launch_radius<T, 3, C>(in, out, filter, border, stream);
        case 4:
            return launch_radius<T, 4, C>(in, out, filter, border, stream);
        default:
            return launch_radius<T, 5, C>(in, out, filter, border, stream);
    }
}

}  // namespace

// Sums in registers need a radius that the compiler knows: 1 to 5, the same in both directions. Other filters take the
// fastest version that can run them.
template <class T>
void launch_separable_streaming(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                                Border border, DeviceSpan<float> workspace, cudaStream_t stream) {
    check_pictures(in, out);
    const Problem problem = problem_of(in, filter);
    require_can_run(two_pass_constraint(problem));
    if (is_empty(in)) return;
    if (filter.rows() == filter.cols() && filter.rows() >= 3 && filter.rows() <= 11) {
        if (in.channels() == 1) return launch_channels<T, 1>(in, out, filter, border, stream);
        return launch_channels<T, 3>(in, out, filter, border, stream);
    }
    if (fused_constraint(problem).empty())
        return launch_separable_fused(in, out, filter, border, workspace, stream);
    launch_separable_two_pass(in, out, filter, border, workspace, stream);
}

template void launch_separable_streaming<float>(DevicePicture<const float>, DevicePicture<float>,
                                                const Filter&, Border, DeviceSpan<float>, cudaStream_t);
template void launch_separable_streaming<std::uint8_t>(DevicePicture<const std::uint8_t>,
                                                       DevicePicture<std::uint8_t>, const Filter&, Border,
                                                       DeviceSpan<float>, cudaStream_t);

}  // namespace day10
