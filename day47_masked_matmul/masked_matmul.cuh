// Day 47: matrix products of which a mask keeps a part; all other elements are filled with one
// number. PMPP chapter 6 (4th and 5th edition).
//
//   version              what is new                                 what limits it
//   thread_per_element   a thread for each element of C              L1: two loads per multiply-add
//   unfused              the whole product, then a pass that fills   all multiply-adds; C written twice
//   element_mask         the epilogue applies the mask               all multiply-adds
//   skip_tiles           tiles without a kept element are filled,    issue slots: the other tiles;
//                        not multiplied                              writing C
//   skip_large_tiles     the same, tiles twice as wide: fewer loads  latency; more dropped elements per tile
//
// The main loop, course::multiply_tiles(), is that of day 45 (common/tile/main_loop.cuh). A version
// chooses the tiles that it multiplies and the work of its epilogue on their sums. The tiles of a
// band with kept elements come from a formula (band_tiles.cuh). Each kernel is followed by its
// launch. beyond/ has masks in arrays of bytes, and a version on tensor cores.
//
//   ./course run day47 --only skip_tiles --size 4x512x512x64
//   ./course run day47 --program                                   program.cu: scores of attention (day 25)
//   ./course inspect day47 --only skip_tiles --size 1x512x512x64
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/operands.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/main_loop.cuh"
#include "common/tile/tile_order.cuh"

namespace day47 {

// --- The mask ------------------------------------------------------------------------------------

// A mask has two functions: of(product) is the mask of a product, keeps(row, col) whether it keeps
// an element. The other mask, in an array of bytes, is in beyond/bytes.cuh.
//
// Keeps elements near the diagonal: -below <= col - row <= above. Causal attention: above = 0, and
// `below` is larger than the matrix. Both are between -2^31 and 2^31, and -below <= above.
struct Band {
    int below;
    int above;

    __device__ const Band& of(std::size_t) const { return *this; }  // one band for all products

    // One comparison for both ends: below the band the difference wraps to more than the band's
    // width.
    __device__ bool keeps(std::size_t row, std::size_t col) const {
        const unsigned from_end =
            static_cast<unsigned>(col) - static_cast<unsigned>(row) + static_cast<unsigned>(below);
        return from_end <= static_cast<unsigned>(below) + static_cast<unsigned>(above);
    }
};

// --- The whole task in one plain kernel ----------------------------------------------------------

// Element (row, col) of op(matrix).
__device__ inline float element_of(const course::DeviceMatrix<const float>& matrix, course::Op op,
                                   std::size_t row, std::size_t col) {
    return op == course::Op::kNone ? matrix(row, col) : matrix(col, row);
}

// Idea: a thread for each element of C. If the mask drops the element, the thread stores `fill` and
// loads nothing.
// Cost removed: multiply-adds if all 32 elements of a warp are dropped. If the mask keeps one of
// them, the warp takes as long as if all were kept.
// Still limits it: L1, by two loads for each multiply-add (counters: 98 % busy).
template <class Mask>
__global__ void multiply_kept_elements(const course::Operands operands, const Mask mask,
                                       const course::Batch<float> c, float alpha, float fill) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row_of_all = i / operands.n();  // counted through the rows of all products
    const std::size_t product = row_of_all / operands.m();
    if (product >= operands.count()) return;
    const std::size_t row = row_of_all % operands.m();
    const std::size_t col = i % operands.n();
    float result = fill;
    if (mask.of(product).keeps(row, col)) {
        const course::DeviceMatrix<const float> a = operands.a[product];
        const course::DeviceMatrix<const float> b = operands.b[product];
        float sum = 0;
        for (std::size_t k = 0; k < operands.k(); ++k)
            sum += element_of(a, operands.op_a, row, k) * element_of(b, operands.op_b, k, col);
        result = alpha * sum;
    }
    c[product](row, col) = result;
}

constexpr int kThreads = 256;  // of a block here, and of fill_dropped

template <class Mask>
void launch_multiply_kept_elements(const course::Operands& operands, const Mask& mask,
                                   const course::Batch<float>& c, float alpha, float fill,
                                   cudaStream_t stream) {
    const std::size_t elements = c.first.rows() * c.first.cols() * c.count;
    multiply_kept_elements<<<course::blocks_for(elements, kThreads), kThreads, 0, stream>>>(operands, mask, c,
                                                                                            alpha, fill);
}

// --- A fast product, then the mask ---------------------------------------------------------------

// Idea: a product from a library, here day 45's, computes all of C. The mask follows in
// fill_dropped.
// Cost removed: two loads per multiply-add. Tiles are in shared memory, fragments in registers.
// Still limits it: multiply-adds, also of dropped elements.
//
// T: the shape of a tile. BLOCKS: resident blocks per SM. LoaderA, LoaderB: copy float by float, or
// 16 bytes at a time. multiply_tiles() calls the epilogue, a lambda, once for each finished tile: a
// thread has TM x TN sums, and sums[i][j] belongs to row at.row(i) and column at.col(j).
template <class T, int BLOCKS, class LoaderA, class LoaderB>
__global__ __launch_bounds__(T::THREADS,
                             BLOCKS) void multiply_all(const __grid_constant__ course::Operands operands,
                                                       const __grid_constant__ course::EveryTile<T> tiles,
                                                       const __grid_constant__ course::Batch<float> c,
                                                       const float alpha) {
    extern __shared__ float4 shared[];
    const auto epilogue = [&](const course::Tile& tile, const float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        course::write_tile(at, c[tile.product], [&](int i, int j) { return alpha * sums[i][j]; });
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(operands, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                course::MultiplyAdd{}, epilogue);
}

// Dynamic shared memory of a block: the stages of the main loop.
template <class T>
constexpr std::size_t kStages = sizeof(course::Stage<T>) * T::STAGES;

// Persistent blocks: as many as the GPU runs at the same time, at most one for each tile.
template <class T, class... Parameters>
unsigned persistent_blocks(void (*kernel)(Parameters...), unsigned tiles) {
    course::allow_shared_bytes(kernel, kStages<T>);  // more than 48 KB
    return std::min(tiles, course::resident_blocks(kernel, T::THREADS, kStages<T>));
}

// course::launch(kernel, {grid, block, shared memory, stream}, arguments...) is
// kernel<<<grid, block, shared memory, stream>>>(arguments...) with a check of errors.
template <class T, int BLOCKS, class LoaderA, class LoaderB>
void launch_multiply_all(const course::Operands& operands, const course::Batch<float>& c, float alpha,
                         cudaStream_t stream) {
    const auto kernel = multiply_all<T, BLOCKS, LoaderA, LoaderB>;
    const auto tiles = course::every_tile<T>(operands);
    const unsigned grid = persistent_blocks<T>(kernel, tiles.all);
    course::launch(kernel, {grid, T::THREADS, kStages<T>, stream}, operands, tiles, c, alpha);
}

// Idea: the second pass of `unfused`. A warp for each row of C stores `fill` in dropped elements.
// Cost removed: none. The next version removes this pass.
// Still limits it: issue slots, L2 and memory, all near 60 % busy (counters). Each dropped element
// has been written before.
template <class Mask>
__global__ void fill_dropped(const Mask mask, const course::Batch<float> c, float fill) {
    const std::size_t rows = c.first.rows() * c.count;
    const std::size_t row_of_all = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / course::kWarpSize;
    if (row_of_all >= rows) return;
    const std::size_t product = row_of_all / c.first.rows();
    const std::size_t row = row_of_all % c.first.rows();
    const course::DeviceMatrix<float> matrix = c[product];
    const auto of_product = mask.of(product);
    for (std::size_t col = threadIdx.x % course::kWarpSize; col < matrix.cols(); col += course::kWarpSize) {
        if (!of_product.keeps(row, col)) matrix(row, col) = fill;
    }
}

template <class Mask>
void launch_fill_dropped(const Mask& mask, const course::Batch<float>& c, float fill, cudaStream_t stream) {
    const std::size_t rows = c.first.rows() * c.count;
    const unsigned grid = course::blocks_for(rows * course::kWarpSize, kThreads);
    fill_dropped<<<grid, kThreads, 0, stream>>>(mask, c, fill);
}

// --- The mask in the epilogue --------------------------------------------------------------------

// Idea: the epilogue applies the mask to each element while its sum is still in a register.
// Cost removed: the second pass, and writing dropped elements twice.
// Still limits it: multiply-adds. With a causal mask (day 25), almost half of them are for dropped
// elements.
template <class T, int BLOCKS, class LoaderA, class LoaderB, class Mask>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_and_mask(
    const __grid_constant__ course::Operands operands, const __grid_constant__ course::EveryTile<T> tiles,
    const __grid_constant__ Mask mask, const __grid_constant__ course::Batch<float> c, const float alpha,
    const float fill) {
    extern __shared__ float4 shared[];
    const auto epilogue = [&](const course::Tile& tile, const float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        const auto of_product = mask.of(tile.product);
        course::write_tile(at, c[tile.product], [&](int i, int j) {
            return of_product.keeps(at.row(i), at.col(j)) ? alpha * sums[i][j] : fill;
        });
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(operands, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                course::MultiplyAdd{}, epilogue);
}

template <class T, int BLOCKS, class LoaderA, class LoaderB, class Mask>
void launch_multiply_and_mask(const course::Operands& operands, const Mask& mask,
                              const course::Batch<float>& c, float alpha, float fill, cudaStream_t stream) {
    const auto kernel = multiply_and_mask<T, BLOCKS, LoaderA, LoaderB, Mask>;
    const auto tiles = course::every_tile<T>(operands);
    const unsigned grid = persistent_blocks<T>(kernel, tiles.all);
    course::launch(kernel, {grid, T::THREADS, kStages<T>, stream}, operands, tiles, mask, c, alpha, fill);
}

// --- Only tiles that keep something --------------------------------------------------------------

// Stores `fill` in a tile of C, row after row, by all threads of the block.
template <class T>
__device__ void fill_tile(const course::Tile& tile, const course::DeviceMatrix<float>& matrix, float fill) {
    constexpr unsigned QUADS = T::BN / 4;
    const std::size_t col = tile.col + threadIdx.x % QUADS * 4;
    const std::size_t end = min(tile.row + T::BM, matrix.rows());
    const bool in_packs = course::has_aligned_rows(matrix) && col + 4 <= matrix.cols();
    for (std::size_t row = tile.row + threadIdx.x / QUADS; row < end; row += T::THREADS / QUADS) {
        float* const to = &matrix(row, col);
        if (in_packs) {
            course::Pack<float, 4>{{fill, fill, fill, fill}}.store(to);
        } else {
            for (int c = 0; c < 4; ++c) {
                if (col + c < matrix.cols()) to[c] = fill;
            }
        }
    }
}

// Which part of a warp's share of a tile is kept. Bit 0: is any element kept? Bit 1: are all?
enum class Part : unsigned { kNothing = 0, kSome = 1, kAll = 3 };

// The order in which multiply_tiles() takes tiles: kept tiles only, dealt to the blocks in turn.
//
// Tiles is BandTiles (band_tiles.cuh) or ListedTiles (beyond/), which have the same members:
//
//     kept(), dropped()                the numbers of tiles with and without a kept element
//     kept_tile(i), dropped_tile(i)    where tile i of these is
//     of_warp(i, at)                   how much is kept of this warp's part of kept tile i
//     elements(i, at)                  a functor (i, j): is element (i, j) of this thread kept?
//     is_idle(i)                       need this warp not multiply kept tile i?
template <class Tiles>
struct KeptTiles {
    const Tiles& tiles;

    __device__ unsigned first() const { return blockIdx.x; }
    __device__ bool has(unsigned i) const { return i < tiles.kept(); }
    __device__ unsigned next(unsigned i) const { return i + gridDim.x; }
    __device__ course::Tile at(unsigned i) const { return tiles.kept_tile(i); }
    __device__ bool is_idle(unsigned i) const { return tiles.is_idle(i); }
};

// Idea: only kept tiles are multiplied. After each of them a block fills its share of the dropped
// tiles, so that one block stores while the other block of the SM multiplies. The mask is applied
// element by element only if a warp's part of a tile is partly kept.
// Cost removed: loads and multiply-adds of dropped tiles; most evaluations of the mask.
// Still limits it: issue slots (counters: 64 % busy; FMA 53 %, L2 52 %); with tiles twice as wide,
// latency (issue slots 59 %). The multiply-adds of kept tiles and the stores of C hardly overlap.
//
// Dropped tiles are dealt to the blocks in reverse order, so that a block with one kept tile less
// has one dropped tile more.
template <class T, int BLOCKS, class LoaderA, class LoaderB, class Tiles>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_kept_tiles(
    const __grid_constant__ course::Operands operands, const __grid_constant__ Tiles tiles,
    const __grid_constant__ course::Batch<float> c, const float alpha, const float fill) {
    extern __shared__ float4 shared[];
    unsigned kept = blockIdx.x;                     // the tile that is multiplied
    unsigned dropped = gridDim.x - 1 - blockIdx.x;  // the next tile to fill
    const auto fill_tiles = [&](unsigned most) {
        for (unsigned n = 0; n < most && dropped < tiles.dropped(); ++n) {
            const course::Tile tile = tiles.dropped_tile(dropped);
            fill_tile<T>(tile, c[tile.product], fill);
            dropped += gridDim.x;
        }
    };
    const auto epilogue = [&](const course::Tile& tile, const float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        const course::DeviceMatrix<float> matrix = c[tile.product];
        if (tiles.of_warp(kept, at) == Part::kAll) {
            course::write_tile(at, matrix, [&](int i, int j) { return alpha * sums[i][j]; });
        } else {
            const auto keeps = tiles.elements(kept, at);
            course::write_tile(at, matrix,
                               [&](int i, int j) { return keeps(i, j) ? alpha * sums[i][j] : fill; });
        }
        kept += gridDim.x;
        fill_tiles(course::ceil_div(tiles.dropped(), tiles.kept()));
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(operands, KeptTiles<Tiles>{tiles},
                                                reinterpret_cast<course::Stage<T>*>(shared),
                                                course::MultiplyAdd{}, epilogue);
    fill_tiles(tiles.dropped());  // what is left; all of them if no tile is kept
}

template <class T, int BLOCKS, class LoaderA, class LoaderB, class Tiles>
void launch_multiply_kept_tiles(const course::Operands& operands, const Tiles& tiles,
                                const course::Batch<float>& c, float alpha, float fill, cudaStream_t stream) {
    const auto kernel = multiply_kept_tiles<T, BLOCKS, LoaderA, LoaderB, Tiles>;
    const unsigned grid = persistent_blocks<T>(kernel, course::every_tile<T>(operands).all);
    course::launch(kernel, {grid, T::THREADS, kStages<T>, stream}, operands, tiles, c, alpha, fill);
}

}  // namespace day47
