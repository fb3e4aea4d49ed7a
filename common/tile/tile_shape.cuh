// Warp tiling: a block's tile of C is divided among its warps, a warp's among its lanes.
//
//     BM x BN        of a block of (BM / WM) x (BN / WN) warps
//     WM x WN        of a warp, whose lanes stand LANES_M x LANES_N = WM / TM x WN / TN
//     TM x TN        of a lane: fours of rows and fours of columns, LANES_M and LANES_N fours apart (place_of)
#pragma once

#include <cuda_runtime.h>

namespace course {

template <int BM_, int BN_, int BK_, int WM_, int WN_, int TM_, int TN_, int STAGES_ = 2, int COPY_AT_ = 0>
struct TileShape {
    static constexpr int BM = BM_;
    static constexpr int BN = BN_;
    static constexpr int BK = BK_;
    static constexpr int WM = WM_;
    static constexpr int WN = WN_;
    static constexpr int TM = TM_;
    static constexpr int TN = TN_;
    static constexpr int STAGES = STAGES_;
    static constexpr int COPY_AT =
        COPY_AT_;  // asynchronous copies: in which of the BK columns of a tile those of a later one are issued

    static_assert(BM % WM == 0 && BN % WN == 0,
                  "TileShape: a block's tile is a whole number of warps' tiles");
    static_assert(WM % TM == 0 && WN % TN == 0, "TileShape: a warp's tile is a whole number of lanes' tiles");
    static_assert(0 <= COPY_AT && COPY_AT < BK, "TileShape: COPY_AT is one of the BK columns");
    static_assert(TM % 4 == 0 && TN % 4 == 0, "TileShape: a fragment is a whole number of float4");

    static constexpr int LANES_M = WM / TM;
    static constexpr int LANES_N = WN / TN;
    static_assert(LANES_M * LANES_N == 32, "TileShape: WM / TM x WN / TN must be the 32 lanes of a warp");

    static constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
    static_assert(THREADS <= 1024, "TileShape: a block has at most 1024 threads");
    static constexpr int QUADS = TM * TN / 4;  // float4 among a thread's results
};

// A thread's rows and columns come in fours: those of thread 0, those of thread 1... of THREADS,
// and from the start. The place in the tile of row or column i of `thread`:
template <int THREADS>
constexpr __device__ int place_of(int thread, int i) {
    return (i / 4 * THREADS + thread) * 4 + i % 4;
}

// Where in the block's tile a thread's rows and columns begin.
struct Place {
    int row;
    int col;
};

template <class T>
__device__ Place place_of_warp(int warp) {
    constexpr int WARPS_N = T::BN / T::WN;
    return {warp / WARPS_N * T::WM, warp % WARPS_N * T::WN};
}

template <class T>
__device__ Place place_of_thread(int thread) {
    const Place warp = place_of_warp<T>(thread / 32);
    const int lane = thread % 32;
    return {warp.row + lane / T::LANES_N * 4, warp.col + lane % T::LANES_N * 4};
}

}  // namespace course
