// Day 13: wavefronts. Every cell needs its neighbours, which are computed in the same launch or
// just before it: the edit distance of two sequences, and all shortest paths of a graph.
//                                                        PMPP chapter 16 (5th edition)
//
//   version          what is new                                            what limits it
//   diagonals        edit distance: a launch for each anti-diagonal         launches
//   tiles            a launch for each anti-diagonal of tiles               latency of 127 steps
//   register_rows    a thread keeps four rows, a barrier for four cells     latency of 159 steps
//   per_vertex       shortest paths: a launch for each vertex               the whole matrix for each
//   blocked          32 vertices in three launches, in shared memory        shared memory
//   register_tiles   4 x 4 cells of the third launch in registers           ALUs
//
//   ./course run day13                                  every version, verified and timed
//   ./course run day13 --program                        program.cu: one comparison, from main() to the result
//   ./course inspect day13 --only tiles                 sectors and bank conflicts, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"

namespace day13 {

using Symbol = std::uint8_t;

// --- Edit distance -------------------------------------------------------------------------------
//
// D(i, j) is the least number of insertions, deletions and replacements that turn the first i
// symbols of a into the first j symbols of b:
//
//   D(i, 0) = i    D(0, j) = j
//   D(i, j) = min(D(i-1, j) + 1, D(i, j-1) + 1, D(i-1, j-1) + (a and b differ there))
//
// a has m symbols, b has n. The result is the last row: distances[j] = D(m, j) for j = 0 to n.

__device__ inline int smaller(int x, int y) {
    return x < y ? x : y;
}

// D(i, j) from the three cells that it needs, for i, j > 0.
__device__ inline int edit_cell(int up, int left, int diagonal, Symbol of_a, Symbol of_b) {
    return smaller(smaller(up, left) + 1, diagonal + (of_a != of_b ? 1 : 0));
}

constexpr int kBlock = 256;

// Idea: the cells with i + j = d form anti-diagonal d. They need cells of the anti-diagonals d - 1
// and d - 2 alone, so they are independent of each other: a launch computes all of them. An
// anti-diagonal is stored by its row i, and three of them suffice.
// Cost removed: the order of the CPU's loops, in which each cell waits for the one before.
// Still limits it: m + n + 1 launches. Each takes 3.9 us with 16,384 symbols on an H200, and 3.6
// with 1,024, where anti-diagonals are a sixteenth as long.
__global__ void diagonals(const Symbol* a, int m, const Symbol* b, int n, int d, const int* two_before,
                          const int* one_before, int* current, int* distances) {
    const int first = d > n ? d - n : 0;
    const int i = first + static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
    const int j = d - i;
    if (i > smaller(d, m)) return;
    int cell = i + j;  // of row 0 and of column 0
    if (i > 0 && j > 0)
        cell = edit_cell(one_before[i - 1], one_before[i], two_before[i - 1], a[i - 1], b[j - 1]);
    current[i] = cell;
    if (i == m) distances[j] = cell;
}

// `scratch` has 3 (m + 1) elements.
inline void launch_diagonals(const Symbol* a, int m, const Symbol* b, int n, int* distances, int* scratch,
                             cudaStream_t stream) {
    int* two_before = scratch;
    int* one_before = two_before + m + 1;
    int* current = one_before + m + 1;
    for (int d = 0; d <= m + n; ++d) {
        const int cells = (d < m ? d : m) - (d > n ? d - n : 0) + 1;
        const unsigned grid = course::blocks_for(cells, kBlock);
        diagonals<<<grid, kBlock, 0, stream>>>(a, m, b, n, d, two_before, one_before, current, distances);
        int* const oldest = two_before;
        two_before = one_before;
        one_before = current;
        current = oldest;
    }
}

// What tiles hand on to the tiles below and to the right, D at their borders.
struct Borders {
    int* row;      // n + 1: the last row computed in each column; in the end, D(m, j)
    int* column;   // m + 1: the last column computed in each row
    int* corners;  // one for each diagonal of tiles, such as (0, 0), (1, 1), (2, 2)
};

constexpr int kTile = 64;

// Idea: the matrix is cut into tiles, and a launch computes an anti-diagonal of tiles. A block
// computes its tile in shared memory. Thread t has row t of the tile, and in step s column s - t:
// the cells of a step are an anti-diagonal. The row above the tile and the column left of it come
// from the tiles there.
// Cost removed: 63 of 64 launches: barriers replace them; traffic, except at borders of tiles.
// Still limits it: latency. A tile takes 127 steps with a barrier each, in which half of the
// threads on average have a cell. A launch takes 10.4 us with up to 256 tiles, and 10.3 with up to
// 16: 82 ns for a step on an H200, however many tiles there are.
__global__ void __launch_bounds__(kTile)
    tiles(const Symbol* a, int m, const Symbol* b, int n, int tiles_down, int first, int d, Borders borders) {
    // From one thread's cell of a step to the next one's: a row down, a column left. That is 65
    // words with this pitch, so 32 threads use 32 banks.
    __shared__ int cells[kTile + 1][kTile + 2];
    __shared__ Symbol of_b[kTile];
    const int tile_i = first + static_cast<int>(blockIdx.x);
    const int tile_j = d - tile_i;
    const int i0 = tile_i * kTile;
    const int j0 = tile_j * kTile;
    const int rows = smaller(kTile, m - i0);
    const int columns = smaller(kTile, n - j0);
    int* const corner = borders.corners + tiles_down - 1 - tile_i + tile_j;

    const int t = static_cast<int>(threadIdx.x);
    Symbol of_a = 0;
    if (t < columns) {
        of_b[t] = b[j0 + t];
        cells[0][t + 1] = tile_i == 0 ? j0 + t + 1 : borders.row[j0 + t + 1];
    }
    if (t < rows) {
        of_a = a[i0 + t];
        cells[t + 1][0] = tile_j == 0 ? i0 + t + 1 : borders.column[i0 + t + 1];
    }
    if (t == 0) cells[0][0] = tile_i == 0 || tile_j == 0 ? i0 + j0 : *corner;

    for (int step = 0; step < 2 * kTile - 1; ++step) {
        __syncthreads();  // the cells of the step before are complete
        const int j = step - t;
        if (t < rows && j >= 0 && j < columns)
            cells[t + 1][j + 1] = edit_cell(cells[t][j + 1], cells[t + 1][j], cells[t][j], of_a, of_b[j]);
    }
    __syncthreads();

    if (t < columns) borders.row[j0 + t + 1] = cells[rows][t + 1];
    if (t < rows) borders.column[i0 + t + 1] = cells[t + 1][columns];
    if (t == 0) *corner = cells[rows][columns];
    if (t == 0 && tile_j == 0) borders.row[0] = i0 + rows;
}

// m, n > 0. A block per tile of an anti-diagonal, a thread per row.
inline void launch_tiles(const Symbol* a, int m, const Symbol* b, int n, Borders borders,
                         cudaStream_t stream) {
    const int down = course::ceil_div(m, kTile);
    const int across = course::ceil_div(n, kTile);
    for (int d = 0; d < down + across - 1; ++d) {
        const int first = d < across ? 0 : d - across + 1;
        const int last = d < down ? d : down - 1;
        tiles<<<last - first + 1, kTile, 0, stream>>>(a, m, b, n, down, first, d, borders);
    }
}

constexpr int kRowThreads = 32;             // threads of a block
constexpr int kRows = 4;                    // rows per thread
constexpr int kTall = kRowThreads * kRows;  // rows of a tile
constexpr int kWide = 128;                  // columns of a tile

// Idea: thread coarsening. A thread has four consecutive rows, and in a step it computes four cells
// of a column, from top to bottom. It keeps the cells on the left in registers. Only its bottom
// cell goes to the next thread, through an array with one element per column: it replaces the cell
// that this thread has read from there.
// Cost removed: two of three barriers (159 for 16,384 cells, not 127 for 4,096), half of the
// launches, and most accesses to cells in shared memory: 2 for 4 cells instead of 16.
// Still limits it: latency of the steps. A launch takes 18.9 us, whether with up to 128 tiles or
// with 8, and no unit is more than 5 % busy.
__global__ void __launch_bounds__(kRowThreads)
    register_rows(const Symbol* a, int m, const Symbol* b, int n, int tiles_down, int first, int d,
                  Borders borders) {
    __shared__ int above[kWide];  // the cell above the next thread that comes to this column
    __shared__ Symbol of_b[kWide];
    const int tile_i = first + static_cast<int>(blockIdx.x);
    const int tile_j = d - tile_i;
    const int t = static_cast<int>(threadIdx.x);
    const int i0 = tile_i * kTall + t * kRows;  // of this thread
    const int j0 = tile_j * kWide;
    const int rows = smaller(kRows, m - i0);  // 0 or less: none
    const int columns = smaller(kWide, n - j0);
    int* const corner = borders.corners + tiles_down - 1 - tile_i + tile_j;

    for (int j = t; j < columns; j += kRowThreads) {
        above[j] = tile_i == 0 ? j0 + j + 1 : borders.row[j0 + j + 1];
        of_b[j] = b[j0 + j];
    }
    int left[kRows];  // the last cell of each row
    Symbol of_a[kRows];
    for (int r = 0; r < kRows; ++r) {
        if (r >= rows) continue;
        left[r] = tile_j == 0 ? i0 + r + 1 : borders.column[i0 + r + 1];
        of_a[r] = a[i0 + r];
    }
    // The cell left of the one above: in the tile's first row, of the tile before on the diagonal.
    int above_left = i0 + j0;
    if (tile_j > 0 && rows > 0 && i0 > 0) above_left = t == 0 ? *corner : borders.column[i0];

    for (int step = 0; step < kWide + kRowThreads - 1; ++step) {
        __syncthreads();  // the bottom cells of the step before are in `above`
        const int j = step - t;
        if (rows <= 0 || j < 0 || j >= columns) continue;
        int up = above[j];
        int diagonal = above_left;
        above_left = up;
        for (int r = 0; r < kRows; ++r) {
            if (r >= rows) break;
            up = edit_cell(up, left[r], diagonal, of_a[r], of_b[j]);
            diagonal = left[r];
            left[r] = up;
        }
        above[j] = up;
    }
    __syncthreads();

    for (int j = t; j < columns; j += kRowThreads)
        borders.row[j0 + j + 1] = above[j];
    for (int r = 0; r < kRows; ++r)
        if (r < rows) borders.column[i0 + r + 1] = left[r];
    if (t == 0) *corner = above[columns - 1];
    if (t == 0 && tile_j == 0) borders.row[0] = smaller(i0 + kTall, m);
}

inline void launch_register_rows(const Symbol* a, int m, const Symbol* b, int n, Borders borders,
                                 cudaStream_t stream) {
    const int down = course::ceil_div(m, kTall);
    const int across = course::ceil_div(n, kWide);
    for (int d = 0; d < down + across - 1; ++d) {
        const int first = d < across ? 0 : d - across + 1;
        const int last = d < down ? d : down - 1;
        register_rows<<<last - first + 1, kRowThreads, 0, stream>>>(a, m, b, n, down, first, d, borders);
    }
}

// --- All shortest paths --------------------------------------------------------------------------
//
// distance[i][j] is first the weight of the edge from vertex i to vertex j, infinity if there is
// none, and in the end the length of the shortest path. The method of Floyd and Warshall allows one
// more vertex k after the other on the way:
//
//   distance[i][j] = min(distance[i][j], distance[i][k] + distance[k][j])    for k = 0 to n - 1
//
// Infinity is the float: infinity + weight stays infinity.

// Idea: a launch for each vertex k, a thread for each cell. In a launch, cells of row k and of
// column k are read and not written: no path via k to k or from k is shorter.
// Cost removed: the loops over i and j.
// Still limits it: each launch reads and writes the whole matrix, 8 bytes for an addition and a
// minimum. With 4,096 vertices that takes 59 us on an H200, 2.3 TB/s; a copy reaches 4.3.
__global__ void per_vertex(float* distance, int n, int k) {
    const int i = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    const int j = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n || j >= n || i == k || j == k) return;
    float* const cell = distance + std::size_t(i) * n + j;
    *cell = fminf(*cell, distance[std::size_t(i) * n + k] + distance[std::size_t(k) * n + j]);
}

inline void launch_per_vertex(float* distance, int n, cudaStream_t stream) {
    const dim3 block(32, 8);
    const dim3 grid(course::ceil_div(n, 32), course::ceil_div(n, 8));
    for (int k = 0; k < n; ++k)
        per_vertex<<<grid, block, 0, stream>>>(distance, n, k);
}

constexpr int kPivots = 32;  // vertices k0 to k0 + 31 are allowed in one round

// Cell (i, j); infinity out of range.
__device__ inline float load_cell(const float* distance, int n, int i, int j) {
    return i < n && j < n ? distance[std::size_t(i) * n + j] : INFINITY;
}

// Idea: 32 vertices in a round of three launches. The first launch has one block, for the tile of
// rows and columns k0 to k0 + 31, the pivot tile: there, all that the 32 steps read lies in the
// tile.
__global__ void __launch_bounds__(kPivots* kPivots) pivot_tile(float* distance, int n, int k0) {
    __shared__ float tile[kPivots][kPivots];
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    tile[y][x] = load_cell(distance, n, k0 + y, k0 + x);
    for (int k = 0; k < kPivots; ++k) {
        __syncthreads();  // the step before is complete
        if (y != k && x != k) tile[y][x] = fminf(tile[y][x], tile[y][k] + tile[k][x]);
    }
    if (k0 + y < n && k0 + x < n) distance[std::size_t(k0 + y) * n + k0 + x] = tile[y][x];
}

// The second launch: tiles in the rows of the pivot tile (blockIdx.y = 0) and in its columns (1).
// Their steps read the pivot tile and the tile itself.
__global__ void __launch_bounds__(kPivots* kPivots) pivot_rows_and_columns(float* distance, int n, int k0) {
    __shared__ float pivot[kPivots][kPivots];
    __shared__ float tile[kPivots][kPivots];
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    const int other = static_cast<int>(blockIdx.x) * kPivots;
    if (other == k0) return;
    const bool is_row = blockIdx.y == 0;
    const int i = (is_row ? k0 : other) + y;
    const int j = (is_row ? other : k0) + x;
    pivot[y][x] = load_cell(distance, n, k0 + y, k0 + x);
    tile[y][x] = load_cell(distance, n, i, j);
    for (int k = 0; k < kPivots; ++k) {
        __syncthreads();  // the step before is complete
        if (is_row && y != k) tile[y][x] = fminf(tile[y][x], pivot[y][k] + tile[k][x]);
        if (!is_row && x != k) tile[y][x] = fminf(tile[y][x], tile[y][k] + pivot[k][x]);
    }
    if (i < n && j < n) distance[std::size_t(i) * n + j] = tile[y][x];
}

// The third launch: all other tiles. What they read is final for this round, so that their 32 steps
// need no barrier, and a cell stays in a register.
// Cost removed: 31 of 32 reads and writes of the matrix.
// Still limits it: shared memory. In a step, a thread loads two values from there for one cell. By
// arithmetic, 32 words per cycle and SM allow 4.2 TCUPS on an H200; 4,096 vertices reach 3.3.
__global__ void __launch_bounds__(kPivots* kPivots) other_tiles(float* distance, int n, int k0) {
    __shared__ float column[kPivots][kPivots];  // distance[i][k0 + k] at [y][k]
    __shared__ float row[kPivots][kPivots];     // distance[k0 + k][j] at [k][x]
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    const int i = static_cast<int>(blockIdx.y) * kPivots + y;
    const int j = static_cast<int>(blockIdx.x) * kPivots + x;
    if (i - y == k0 || j - x == k0) return;
    column[y][x] = load_cell(distance, n, i, k0 + x);
    row[y][x] = load_cell(distance, n, k0 + y, j);
    float cell = load_cell(distance, n, i, j);
    __syncthreads();
    for (int k = 0; k < kPivots; ++k)
        cell = fminf(cell, column[y][k] + row[k][x]);
    if (i < n && j < n) distance[std::size_t(i) * n + j] = cell;
}

inline void launch_blocked(float* distance, int n, cudaStream_t stream) {
    const dim3 block(kPivots, kPivots);  // a thread per cell of a tile
    const unsigned tiles = course::ceil_div(n, kPivots);
    for (int k0 = 0; k0 < n; k0 += kPivots) {
        pivot_tile<<<1, block, 0, stream>>>(distance, n, k0);
        pivot_rows_and_columns<<<dim3(tiles, 2), block, 0, stream>>>(distance, n, k0);
        other_tiles<<<dim3(tiles, tiles), block, 0, stream>>>(distance, n, k0);
    }
}

constexpr int kSide = 64;     // of a block's tile
constexpr int kThreads = 16;  // by 16
constexpr int kEach = kSide / kThreads;

// Idea: the third launch again, with 4 x 4 cells per thread, as in day 5. In a step a thread loads
// four values of the column and four of the row, for 16 cells.
// Cost removed: three of four loads from shared memory.
// Still limits it: the ALUs, which take the minima, 62 % busy (1,024 vertices). But the
// first two launches of a round need 60 % of its time there.
__global__ void __launch_bounds__(kThreads* kThreads) register_tiles(float* distance, int n, int k0) {
    __shared__ float column[kSide][kPivots + 1];  // two rows of threads in a warp: + 1 separates their banks
    __shared__ float row[kPivots][kSide];
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    const int i0 = static_cast<int>(blockIdx.y) * kSide;
    const int j0 = static_cast<int>(blockIdx.x) * kSide;
    for (int e = y * kThreads + x; e < kSide * kPivots; e += kThreads * kThreads) {
        column[e / kPivots][e % kPivots] = load_cell(distance, n, i0 + e / kPivots, k0 + e % kPivots);
        row[e / kSide][e % kSide] = load_cell(distance, n, k0 + e / kSide, j0 + e % kSide);
    }
    float cells[kEach][kEach];  // [r][c] is row y + 16 r, column x + 16 c
    for (int r = 0; r < kEach; ++r)
        for (int c = 0; c < kEach; ++c)
            cells[r][c] = load_cell(distance, n, i0 + y + kThreads * r, j0 + x + kThreads * c);
    __syncthreads();
    for (int k = 0; k < kPivots; ++k)
        for (int r = 0; r < kEach; ++r)
            for (int c = 0; c < kEach; ++c)
                cells[r][c] = fminf(cells[r][c], column[y + kThreads * r][k] + row[k][x + kThreads * c]);
    // Other blocks read the rows and columns of the pivots, which are final.
    for (int r = 0; r < kEach; ++r) {
        for (int c = 0; c < kEach; ++c) {
            const int i = i0 + y + kThreads * r;
            const int j = j0 + x + kThreads * c;
            const bool is_final = i / kPivots == k0 / kPivots || j / kPivots == k0 / kPivots;
            if (i < n && j < n && !is_final) distance[std::size_t(i) * n + j] = cells[r][c];
        }
    }
}

inline void launch_register_tiles(float* distance, int n, cudaStream_t stream) {
    const dim3 block(kPivots, kPivots);
    const dim3 small(kThreads, kThreads);
    const unsigned tiles = course::ceil_div(n, kPivots);
    const unsigned wide_tiles = course::ceil_div(n, kSide);
    for (int k0 = 0; k0 < n; k0 += kPivots) {
        pivot_tile<<<1, block, 0, stream>>>(distance, n, k0);
        pivot_rows_and_columns<<<dim3(tiles, 2), block, 0, stream>>>(distance, n, k0);
        register_tiles<<<dim3(wide_tiles, wide_tiles), small, 0, stream>>>(distance, n, k0);
    }
}

}  // namespace day13
