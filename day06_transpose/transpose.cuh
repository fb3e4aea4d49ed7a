// Day 6: transpose, out[col][row] = in[row][col].               PMPP chapter 6 (corner turning)
//
//   version         what is new                               what limits it
//   naive           one thread per element                    strided stores: 32 sectors for 128 B
//   strided_loads   threadIdx.x walks along `out` instead     strided loads, but L1 keeps sectors
//   tiled           shared memory turns a 32 x 32 tile        latency: a column of the tile is one bank
//   padded          33 floats per row of the tile             latency: one load in flight per thread
//   coarsened       a thread moves four elements              memory, 3/4 busy: loads pause at barriers
//   swizzled        an XOR instead of the padding             the same
//
// A transpose loads each element once and stores it once. So does a copy: it is the limit.
//
// `in` has rows x cols elements, `out` has cols x rows. A row of `in` starts in_ld elements after
// the one before it, a row of `out` out_ld elements: the leading dimensions.
//
// Each kernel is followed by its launch. They count elements in an int, so a matrix has fewer than
// 2^31 of them; rows and cols are above 0. beyond/ has 16-byte accesses, 16-bit elements and rows
// of any length.
//
//   ./course run day06                               every version, verified and timed
//   ./course run day06 --program                     program.cu: one transpose, from main() on
//   ./course inspect day06 --only naive              which line wastes traffic, without a GPU
#pragma once

#include <cuda_runtime.h>

namespace day06 {

constexpr int kTile = 32;  // rows and columns of a tile; the threads of a warp

// Idea: the thread of element (row, col) of `in` stores it at (col, row) of `out`.
// Cost removed: the two loops of the CPU.
// Still limits it: a warp loads 32 adjacent elements, 128 bytes in 4 sectors. It stores them down a
// column of `out`: 32 addresses, each in a sector of its own, of which 4 bytes are used. Counters:
// L2, which takes these sectors one by one, is 87 % busy, DRAM 12 %.
__global__ void transpose_naive(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    if (row < rows && col < cols) out[col * out_ld + row] = in[row * in_ld + col];
}

// The tiles that cover `extent` rows or columns, rounded up.
inline unsigned tiles_of(int extent) {
    return static_cast<unsigned>((extent - 1) / kTile + 1);
}

inline void launch_naive(const float* in, int in_ld, float* out, int out_ld, int rows, int cols,
                         cudaStream_t stream) {
    const dim3 grid(tiles_of(cols), tiles_of(rows));
    const dim3 block(kTile, kTile);  // a thread per element of the tile
    transpose_naive<<<grid, block, 0, stream>>>(in, in_ld, out, out_ld, rows, cols);
}

// Idea: swap the roles of threadIdx.x and threadIdx.y, so that a warp stores 32 adjacent elements
// of `out`.
// Cost removed: the strided stores.
// Still limits it: now the loads are strided. They touch as many sectors as the stores of `naive`
// did, but a sector that is read stays in the cache, and seven more warps of the block need the
// rest of it. Counters: L1 72 % busy.
__global__ void transpose_strided_loads(const float* in, int in_ld, float* out, int out_ld, int rows,
                                        int cols) {
    const int row = blockIdx.x * kTile + threadIdx.x;
    const int col = blockIdx.y * kTile + threadIdx.y;
    if (row < rows && col < cols) out[col * out_ld + row] = in[row * in_ld + col];
}

inline void launch_strided_loads(const float* in, int in_ld, float* out, int out_ld, int rows, int cols,
                                 cudaStream_t stream) {
    const dim3 grid(tiles_of(rows), tiles_of(cols));  // x counts rows of `in`, as threadIdx.x does
    const dim3 block(kTile, kTile);
    transpose_strided_loads<<<grid, block, 0, stream>>>(in, in_ld, out, out_ld, rows, cols);
}

// Idea: global memory is only accessed along rows. The block loads a tile along rows of `in`, and
// stores it along rows of `out`. The transpose itself swaps two indices in shared memory, which has
// no sectors.
// Cost removed: 28 of the 32 sectors of each strided request.
// Still limits it: a warp reads a column of the tile. Its 32 words lie 32 words apart, all in one
// bank: 32 wavefronts, not 1. They cost more than the strided loads did. Counters: 65 of 74 million
// wavefronts are bank conflicts. Shared memory is not busy all the time (53 %), because a warp
// waits for its one load from memory, too.
__global__ void transpose_tiled(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    __shared__ float tile[kTile][kTile];  // tile[y][x] = in[first_row + y][first_col + x]
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;

    int row = first_row + threadIdx.y;
    int col = first_col + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * in_ld + col];
    __syncthreads();

    row = first_row + threadIdx.x;  // x and y have swapped roles: x now counts rows of `in`
    col = first_col + threadIdx.y;
    if (row < rows && col < cols) out[col * out_ld + row] = tile[threadIdx.x][threadIdx.y];
}

inline void launch_tiled(const float* in, int in_ld, float* out, int out_ld, int rows, int cols,
                         cudaStream_t stream) {
    const dim3 grid(tiles_of(cols), tiles_of(rows));
    const dim3 block(kTile, kTile);
    transpose_tiled<<<grid, block, 0, stream>>>(in, in_ld, out, out_ld, rows, cols);
}

// Idea: one unused float after each row of the tile. The words of a column are now 33 words apart,
// in 32 different banks.
// Cost removed: 31 of 32 wavefronts of the loads from the tile, for 128 bytes of shared memory.
// Still limits it: a thread has one load in flight, and then waits for it. Counters: no unit above
// 44 %; 40 % of the time of its warps goes to loads, 30 % to the barrier.
__global__ void transpose_padded(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    __shared__ float tile[kTile][kTile + 1];
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;

    int row = first_row + threadIdx.y;
    int col = first_col + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * in_ld + col];
    __syncthreads();

    row = first_row + threadIdx.x;
    col = first_col + threadIdx.y;
    if (row < rows && col < cols) out[col * out_ld + row] = tile[threadIdx.x][threadIdx.y];
}

inline void launch_padded(const float* in, int in_ld, float* out, int out_ld, int rows, int cols,
                          cudaStream_t stream) {
    const dim3 grid(tiles_of(cols), tiles_of(rows));
    const dim3 block(kTile, kTile);
    transpose_padded<<<grid, block, 0, stream>>>(in, in_ld, out, out_ld, rows, cols);
}

constexpr int kThreadRows = 8;  // a block of 32 x 8 threads takes a tile in four passes

// Idea: a block of 32 x 8 threads. Each thread loads four elements before the barrier, and stores
// four after it.
// Cost removed: latency. Four loads of a thread are in flight together, and the index arithmetic is
// shared.
// Still limits it: memory (counters: 74 % busy). It could be busier: a block loads nothing while it
// waits at its barrier, 25 % of the time of its warps, or stores.
__global__ void transpose_coarsened(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    __shared__ float tile[kTile][kTile + 1];
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;

#pragma unroll
    for (int pass = 0; pass < kTile; pass += kThreadRows) {
        const int y = pass + threadIdx.y;
        const int row = first_row + y;
        const int col = first_col + threadIdx.x;
        if (row < rows && col < cols) tile[y][threadIdx.x] = in[row * in_ld + col];
    }
    __syncthreads();

#pragma unroll
    for (int pass = 0; pass < kTile; pass += kThreadRows) {
        const int x = pass + threadIdx.y;
        const int row = first_row + threadIdx.x;
        const int col = first_col + x;
        if (row < rows && col < cols) out[col * out_ld + row] = tile[threadIdx.x][x];
    }
}

inline void launch_coarsened(const float* in, int in_ld, float* out, int out_ld, int rows, int cols,
                             cudaStream_t stream) {
    const dim3 grid(tiles_of(cols), tiles_of(rows));
    const dim3 block(kTile, kThreadRows);  // four elements per thread
    transpose_coarsened<<<grid, block, 0, stream>>>(in, in_ld, out, out_ld, rows, cols);
}

// Idea: element (y, x) of the tile is kept at [y][x ^ y]. Within a row the XOR permutes the banks.
// Down a column y takes 32 values, and so does x ^ y, so again all banks are used.
// Cost removed: the padding. Rows of the tile stay a power of two long, so 16-byte accesses to the
// tile are aligned.
// Still limits it: what limits `coarsened` (counters: memory 72 % busy). The XOR for each address
// takes issue slots, 46 % instead of 30 %, and gains nothing in this version yet.
__global__ void transpose_swizzled(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    __shared__ float tile[kTile][kTile];
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;

#pragma unroll
    for (int pass = 0; pass < kTile; pass += kThreadRows) {
        const int y = pass + threadIdx.y;
        const int row = first_row + y;
        const int col = first_col + threadIdx.x;
        if (row < rows && col < cols) tile[y][threadIdx.x ^ y] = in[row * in_ld + col];
    }
    __syncthreads();

#pragma unroll
    for (int pass = 0; pass < kTile; pass += kThreadRows) {
        const int x = pass + threadIdx.y;
        const int row = first_row + threadIdx.x;
        const int col = first_col + x;
        if (row < rows && col < cols) out[col * out_ld + row] = tile[threadIdx.x][x ^ threadIdx.x];
    }
}

inline void launch_swizzled(const float* in, int in_ld, float* out, int out_ld, int rows, int cols,
                            cudaStream_t stream) {
    const dim3 grid(tiles_of(cols), tiles_of(rows));
    const dim3 block(kTile, kThreadRows);
    transpose_swizzled<<<grid, block, 0, stream>>>(in, in_ld, out, out_ld, rows, cols);
}

}  // namespace day06
