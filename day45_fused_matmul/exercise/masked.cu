// To work through: fill in what says TODO, then ./course check day45. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Day 45, part four: products of which a mask keeps a part, and the rest is filled.
//
//   version            idea                                                        limited by
//   unfused            the whole product, then a pass that fills                   all multiply-adds; what is filled is written twice
//   element_mask       the epilogue looks at the mask for each element             all multiply-adds
//   skip_tiles         only tiles that keep something are multiplied, the others   multiply-adds of those, and writing C
//                      filled in between; elements are looked at where a warp's
//                      part of a tile is kept in part
//   skip_large_tiles   the same with tiles twice as wide: fewer loads, more of
//                      them along the edges of what is kept
//
//   ./course run day45 --variant skip_tiles --size 4x512x512x64
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "fused_matmul.hpp"
#include "mask.cuh"
#include "masked.hpp"
#include "matmul.cuh"
#include "write_tile.cuh"

namespace day45 {
namespace {

constexpr int kThreads = 256;

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: a warp for each row of the finished products fills what the mask does not keep.
// Cost removed: none; this is what is to be avoided.
// Still limits it: memory: most of this was written before.
template <class Elements>
__global__ void fill_rest(const Elements mask, const Batch<float> c, float fill) {
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

// The epilogue that asks the mask about each element.
template <class Elements>
struct WriteKept {
    Elements mask;
    Batch<float> c;
    float alpha;
    float fill;

    struct State {};
    template <class T>
    __device__ State begin() const {
        return {};
    }

    template <class T>
    __device__ void take(State&, const Results<T>& at, const float (&sums)[T::TM][T::TN]) const {
        // TODO day45/skip, about 30 minutes.
        // Alpha times the product where a mask keeps an element, `fill` elsewhere. `write_tile(at, matrix,
        // value)` is given (`write_tile.cuh`): it asks `value(i, j)` for each of the thread's elements that
        // lies in the matrix, and writes it.
        //
        // `WriteKept::take` asks about each element: `mask.of(product).keeps(row, col)`.
        //
        // `WriteAndFill::take` knows more. `tiles.of_warp(state.kept, at)` says how much of the warp's part
        // of this tile is kept: where that is `Part::kAll`, nobody need ask. Elsewhere
        // `tiles.elements(state.kept, at)` is a functor: is element (i, j) of this thread kept? `state.kept`
        // is this tile's number among those that keep something; the block's next one is `gridDim.x` further
        // on. Then it fills some of the tiles that keep nothing, as many as there are for each of those that
        // keep something, rounded up.
        //
        // `fill_some` fills at most `most` of the block's share of them. `state.dropped` is the number of the
        // next one: `tiles.dropped_tile(i)` is where tile i is, `tiles.dropped()` how many there are, and
        // `fill_tile<T>(tile, matrix, fill)` fills one. The block's next one is `gridDim.x` further on. `end`
        // is given, and fills what is left.
    }

    template <class T, class Walk>
    __device__ void end(const State&, const Walk&) const {}
};

// The tiles that keep something, dealt to the blocks one by one.
template <class Tiles>
struct KeptTiles {
    Tiles tiles;

    __device__ const KeptTiles& walk() const { return *this; }
    __device__ unsigned first() const { return blockIdx.x; }
    __device__ bool has(unsigned i) const { return i < tiles.kept(); }
    __device__ unsigned next(unsigned i) const { return i + gridDim.x; }
    __device__ Tile at(unsigned i) const { return tiles.kept_tile(i); }
    __device__ bool is_idle(unsigned i) const { return tiles.is_idle(i); }
};

// Row after row, all of the block's threads.
template <class T>
__device__ void fill_tile(const Tile& tile, const course::DeviceMatrix<float>& matrix, float fill) {
    constexpr unsigned QUADS = T::BN / 4;
    const std::size_t col = tile.col + threadIdx.x % QUADS * 4;
    const std::size_t end = min(tile.row + T::BM, matrix.rows());
    const bool in_packs = has_aligned_rows(matrix) && col + 4 <= matrix.cols();
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

// The epilogue that goes with it. After each tile that was multiplied a block fills its share of the others, so that there is always
// something to write while the next block of the multiprocessor multiplies. Blocks with a tile less of the ones have one more of the others.
template <class Tiles>
struct WriteAndFill {
    Tiles tiles;
    Batch<float> c;
    float alpha;
    float fill;

    struct State {
        unsigned kept;     // the tile that is multiplied
        unsigned dropped;  // the next one to be filled
    };

    template <class T>
    __device__ State begin() const {
        return {blockIdx.x, gridDim.x - 1 - blockIdx.x};
    }

    template <class T>
    __device__ void take(State& state, const Results<T>& at, const float (&sums)[T::TM][T::TN]) const {
        // TODO day45/skip: this one too, see WriteKept::take.
    }

    template <class T, class Walk>
    __device__ void end(State& state, const Walk&) const {
        fill_some<T>(state, tiles.dropped());
    }

  private:
    // At most so many.
    template <class T>
    __device__ void fill_some(State& state, unsigned most) const {
        // TODO day45/skip: this one too, see WriteKept::take.
    }
};

// Four bytes of a row, the first one lowest; 0 for those outside.
__device__ std::uint32_t four_bytes(const course::DeviceMatrix<const std::uint8_t>& matrix, std::size_t row,
                                    std::size_t col) {
    const std::uint8_t* const from = &matrix(row, col);
    if (row < matrix.rows() && col + 4 <= matrix.cols() && reinterpret_cast<std::uintptr_t>(from) % 4 == 0)
        return *reinterpret_cast<const std::uint32_t*>(from);
    std::uint32_t word = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        if (row < matrix.rows() && col + c < matrix.cols()) word |= std::uint32_t{from[c]} << 8 * c;
    }
    return word;
}

// Idea: a block for each tile of the mask, whose threads look at the elements of which they will have the results.
// Cost removed: for each product, a byte to be read for each element; and all work where nothing is kept.
// Still limits it: memory: the bytes are read, and an eighth of them written.
template <class T>
__global__ __launch_bounds__(T::THREADS) void build_levels(const Batch<const std::uint8_t> arrays,
                                                           const Levels<T> levels) {
    // TODO day45/levels, about 40 minutes.
    // What is to be known of an array of bytes, found once: a block for each tile of `levels.all()`, block
    // after block in the order that `levels.all().at(blockIdx.x)` gives. Three levels:
    //
    // - elements: `levels.bits(blockIdx.x)` is this thread's `typename Levels<T>::Bits`, words of 32 bits in
    //   `value[]`. Element (i, j) of its results is bit `i * T::TN + j`, counted through the words from the
    //   lowest bit on; 1 where the byte is not 0. What lies outside the matrix is 0.
    // - warps: two bits for each, warp 0 lowest: a `Part`, of those of its elements that lie within the
    //   matrix. No element at all is `Part::kNothing`.
    // - tiles: thread 0 appends an `Entry{tile, warps}` to one of two lists. `levels.kept_entry(i)` is entry
    //   i of the tiles that keep something, `levels.dropped_entry(i)` of the others; `levels.kept()` and
    //   `levels.dropped()` count them, and are 0 when the kernel begins. All blocks append at the same time.
    //
    // `Results<T> at{tile}` says where the thread's elements are, `at.row(i)` and `at.col(j)`.
    // `four_bytes(matrix, row, col)` reads four neighbours of a row, the first one in the lowest byte, and 0
    // for those outside; columns `at.col(j)` to `at.col(j + 3)` are neighbours for `j` a multiple of 4.
}

// --- Launchers -------------------------------------------------------------------------------------------------------

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("masked matmul: " + message);
}

std::string text(std::size_t count, std::size_t rows, std::size_t cols) {
    return std::to_string(count) + " of " + std::to_string(rows) + " x " + std::to_string(cols);
}

// False: there is nothing to do.
bool is_worth_a_launch(const MaskedMatmul& matmul) {
    const Factors& factors = matmul.factors;
    const Mask& mask = matmul.mask;
    check(factors, "masked matmul");
    const auto& c = matmul.c.first;
    check_output(factors, matmul.c, "masked matmul");
    if (mask.kind == Mask::Kind::kArray) {
        const auto& bytes = mask.bytes.first;
        require(bytes.rows() == factors.m() && bytes.cols() == factors.n() &&
                    (mask.bytes.count == 1 || mask.bytes.count == factors.count()),
                "the mask's arrays are " + text(mask.bytes.count, bytes.rows(), bytes.cols()) +
                    "; expected 1 or " + text(factors.count(), factors.m(), factors.n()));
        require(mask.bytes.pointers.empty() || mask.bytes.pointers.size() == mask.bytes.count,
                "the mask has " + std::to_string(mask.bytes.pointers.size()) + " pointers for " +
                    std::to_string(mask.bytes.count) + " arrays; expected one for each");
    } else {
        require(-mask.below <= mask.above, "the band is from " + std::to_string(mask.below) +
                                               " below the diagonal to " + std::to_string(mask.above) +
                                               " above it; expected a sum of at least 0");
    }
    return c.rows() != 0 && c.cols() != 0 && matmul.c.count != 0;
}

Band band_of(const Mask& mask) {
    const auto clamped = [](std::int64_t distance) {
        return static_cast<int>(std::clamp(distance, -Mask::kFar, Mask::kFar));
    };
    return {clamped(mask.below), clamped(mask.above)};
}

// Arrays that differ from each other.
std::size_t arrays_of(const Batch<const std::uint8_t>& bytes) {
    return bytes.stride == 0 && bytes.pointers.empty() ? std::min<std::size_t>(bytes.count, 1) : bytes.count;
}

// Calls `work` with the mask, element by element.
template <class Work>
void with_elements(const Mask& mask, const Work& work) {
    if (mask.kind == Mask::Kind::kBand) {
        work(band_of(mask));
    } else {
        work(Bytes{mask.bytes, arrays_of(mask.bytes) == 1});
    }
}

void launch_unfused(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    course::find_variant(variants(), "fitted")
        .launcher({.factors = matmul.factors, .c = matmul.c, .alpha = matmul.alpha}, stream);
    const std::size_t rows = matmul.c.first.rows() * matmul.c.count;
    with_elements(matmul.mask, [&](const auto& mask) {
        fill_rest<<<course::blocks_for(rows * course::kWarpSize, kThreads), kThreads, 0, stream>>>(
            mask, matmul.c, matmul.fill);
        CUDA_CHECK_LAUNCH();
    });
}

template <class T, int BLOCKS>
void launch_element_mask(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    with_elements(matmul.mask, [&]<class Elements>(const Elements& mask) {
        const auto walk = every_tile<T>(matmul.factors);
        const Matmul<T, BLOCKS, EveryTile<T>, WriteKept<Elements>> kernel;
        kernel.launch(std::min(walk.all, kernel.resident_blocks()), matmul.factors, walk,
                      {mask, matmul.c, matmul.alpha, matmul.fill}, stream);
    });
}

template <class T>
std::size_t levels_size(const Batch<const std::uint8_t>& bytes) {
    return Levels<T>::size(bytes.first.rows(), bytes.first.cols(), arrays_of(bytes));
}

template <class T>
Levels<T> levels_of(const Batch<const std::uint8_t>& bytes, const course::DeviceSpan<std::uint32_t>& memory) {
    const std::size_t needed = levels_size<T>(bytes);
    require(memory.size() >= needed, "the mask's levels have " + std::to_string(memory.size()) +
                                         " elements; expected at least " + std::to_string(needed) +
                                         ", as MaskLevels of this version has");
    require(course::is_aligned(memory.data(), 16),
            "the mask's levels are not aligned; expected a multiple of 16 bytes");
    return {memory.data(), bytes.first.rows(), bytes.first.cols(), arrays_of(bytes)};
}

template <class T>
void launch_build_levels(const Batch<const std::uint8_t>& bytes, course::DeviceSpan<std::uint32_t> memory,
                         cudaStream_t stream) {
    const Levels<T> levels = levels_of<T>(bytes, memory);
    if (levels.all().all == 0) return;
    CUDA_CHECK(cudaMemsetAsync(memory.data(), 0, 2 * sizeof(std::uint32_t), stream));  // the counts
    build_levels<T><<<levels.all().all, T::THREADS, 0, stream>>>(bytes, levels);
    CUDA_CHECK_LAUNCH();
}

template <class T, int BLOCKS>
void launch_skip_tiles(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const Factors& factors = matmul.factors;
    const auto launch = [&]<class Tiles>(const Tiles& tiles) {
        const Matmul<T, BLOCKS, KeptTiles<Tiles>, WriteAndFill<Tiles>> kernel;
        kernel.launch(std::min(every_tile<T>(factors).all, kernel.resident_blocks()), factors, {tiles},
                      {tiles, matmul.c, matmul.alpha, matmul.fill}, stream);
    };
    if (matmul.mask.kind == Mask::Kind::kBand) {
        launch(BandTiles<T>(band_of(matmul.mask), factors));
    } else {
        const auto& bytes = matmul.mask.bytes;
        launch(ListedTiles<T>(levels_of<T>(bytes, matmul.mask.levels),
                              static_cast<unsigned>(factors.count() / arrays_of(bytes))));
    }
}

course::Work work(const MaskedShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = sizeof(float) * count * (m * k + k * n + m * n) + static_cast<double>(shape.mask_bytes),
            .written = sizeof(float) * count * m * n,
            .flops = 2 * static_cast<double>(shape.kept) * k};
}

constexpr Masker without_levels(void (*launch)(const MaskedMatmul&, cudaStream_t)) {
    return {launch, [](const Batch<const std::uint8_t>&) { return std::size_t{0}; },
            [](const Batch<const std::uint8_t>&, course::DeviceSpan<std::uint32_t>, cudaStream_t) {}};
}

template <class T, int BLOCKS>
constexpr Masker with_levels() {
    return {launch_skip_tiles<T, BLOCKS>, levels_size<T>, launch_build_levels<T>};
}

}  // namespace

std::span<const Masked> masked_variants() {
    static const std::array list = {
        Masked{.name = "unfused",
               .idea = "the whole product, then a pass that fills the rest",
               .launcher = without_levels(launch_unfused),
               .work = work},
        Masked{.name = "element_mask",
               .idea = "the epilogue looks at the mask for each element",
               .launcher = without_levels(launch_element_mask<SquareTile, 2>),
               .work = work},
        Masked{.name = "skip_tiles",
               .idea = "tiles that keep nothing are filled, and not multiplied",
               .launcher = with_levels<SquareTile, 2>(),
               .work = work},
        Masked{.name = "skip_large_tiles",
               .idea = "the same with tiles twice as wide",
               .launcher = with_levels<LargeTile, 1>(),
               .work = work},
    };
    return list;
}

}  // namespace day45
