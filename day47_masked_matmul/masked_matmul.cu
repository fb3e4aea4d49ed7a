// Day 47: products of which a mask keeps a part, and the rest is filled.
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
//   ./course run day47 --variant skip_tiles --size 4x512x512x64
#include <algorithm>
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/fused_matmul.cuh"
#include "mask.cuh"
#include "masked_matmul.hpp"

namespace day47 {
namespace {

constexpr int kThreads = 256;

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: a warp for each row of the finished products fills what the mask does not keep.
// Cost removed: none; this is what is to be avoided.
// Still limits it: memory: most of this was written before.
template <class Elements>
__global__ void fill_rest(const Elements mask, const course::Batch<float> c, float fill) {
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
    course::Batch<float> c;
    float alpha;
    float fill;

    struct State {};
    template <class T>
    __device__ State begin() const {
        return {};
    }

    template <class T>
    __device__ void take(State&, const course::ThreadTileCoords<T>& at,
                         const float (&sums)[T::TM][T::TN]) const {
        const auto of_product = mask.of(at.tile.product);
        course::write_tile(at, c[at.tile.product], [&](int i, int j) {
            return of_product.keeps(at.row(i), at.col(j)) ? alpha * sums[i][j] : fill;
        });
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
    __device__ course::Tile at(unsigned i) const { return tiles.kept_tile(i); }
    __device__ bool is_idle(unsigned i) const { return tiles.is_idle(i); }
};

// Row after row, all of the block's threads.
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

// The epilogue that goes with it. After each tile that was multiplied a block fills its share of the others, so that there is always
// something to write while the next block of the multiprocessor multiplies. Blocks with a tile less of the ones have one more of the others.
template <class Tiles>
struct WriteAndFill {
    Tiles tiles;
    course::Batch<float> c;
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
    __device__ void take(State& state, const course::ThreadTileCoords<T>& at,
                         const float (&sums)[T::TM][T::TN]) const {
        const course::DeviceMatrix<float> matrix = c[at.tile.product];
        if (tiles.of_warp(state.kept, at) == Part::kAll) {
            course::write_tile(at, matrix, [&](int i, int j) { return alpha * sums[i][j]; });
        } else {
            const auto keeps = tiles.elements(state.kept, at);
            course::write_tile(at, matrix,
                               [&](int i, int j) { return keeps(i, j) ? alpha * sums[i][j] : fill; });
        }
        state.kept += gridDim.x;
        fill_some<T>(state, course::ceil_div(tiles.dropped(), tiles.kept()));
    }

    template <class T, class Walk>
    __device__ void end(State& state, const Walk&) const {
        fill_some<T>(state, tiles.dropped());
    }

  private:
    // At most so many.
    template <class T>
    __device__ void fill_some(State& state, unsigned most) const {
        for (unsigned n = 0; n < most && state.dropped < tiles.dropped(); ++n) {
            const course::Tile tile = tiles.dropped_tile(state.dropped);
            fill_tile<T>(tile, c[tile.product], fill);
            state.dropped += gridDim.x;
        }
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
__global__ __launch_bounds__(T::THREADS) void build_levels(const course::Batch<const std::uint8_t> arrays,
                                                           const Levels<T> levels) {
    __shared__ unsigned warps;
    if (threadIdx.x == 0) warps = 0;
    __syncthreads();
    const course::ThreadTileCoords<T> at{levels.all().at(blockIdx.x)};
    const course::DeviceMatrix<const std::uint8_t> matrix = arrays[at.tile.product];
    std::uint32_t fours[T::TM][T::TN / 4];  // all on their way before one is looked at
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; j += 4)
            fours[i][j / 4] = four_bytes(matrix, at.row(i), at.col(j));
    }
    typename Levels<T>::Bits bits{};
#pragma unroll
    for (int e = 0; e < T::TM * T::TN; ++e) {
        const std::uint32_t four = fours[e / T::TN][e % T::TN / 4];
        if ((four >> e % 4 * 8 & 0xff) != 0) bits.value[e / 32] |= 1u << e % 32;
    }
    levels.bits(blockIdx.x) = bits;

    int kept = 0;
    for (const std::uint32_t word : bits.value)
        kept += __popc(word);
    int rows = 0;  // within the matrix
    int cols = 0;
    for (int i = 0; i < T::TM; ++i)
        rows += at.row(i) < matrix.rows() ? 1 : 0;
    for (int j = 0; j < T::TN; ++j)
        cols += at.col(j) < matrix.cols() ? 1 : 0;
    const bool any = __any_sync(course::kWholeWarp, kept != 0);
    const bool all = any && __all_sync(course::kWholeWarp, kept == rows * cols);
    const Part part = all ? Part::kAll : any ? Part::kSome : Part::kNothing;
    if (threadIdx.x % course::kWarpSize == 0)
        atomicOr(&warps, static_cast<unsigned>(part) << threadIdx.x / course::kWarpSize * 2);
    __syncthreads();
    if (threadIdx.x != 0) return;
    // In any order: no result depends on it.
    auto& entry = warps != 0 ? levels.kept_entry(atomicAdd(&levels.kept(), 1u))
                             : levels.dropped_entry(atomicAdd(&levels.dropped(), 1u));
    entry = {blockIdx.x, warps};
}

// --- Launchers -------------------------------------------------------------------------------------------------------

// False: there is nothing to do.
bool is_worth_a_launch(const MaskedMatmul& matmul) {
    const course::Factors& factors = matmul.factors;
    const Mask& mask = matmul.mask;
    course::check_factors(factors, "masked matmul");
    const auto& c = matmul.c.first;
    course::check_output(factors, matmul.c, "masked matmul");
    if (mask.kind == Mask::Kind::kArray) {
        const auto& bytes = mask.bytes.first;
        course::require(bytes.rows() == factors.m() && bytes.cols() == factors.n() &&
                            (mask.bytes.count == 1 || mask.bytes.count == factors.count()),
                        "masked matmul: the mask's arrays are ", mask.bytes.count, " of ", bytes,
                        "; expected 1 or ", factors.count(), " of ", factors.m(), " x ", factors.n());
        course::require(mask.bytes.pointers.empty() || mask.bytes.pointers.size() == mask.bytes.count,
                        "masked matmul: the mask has ", mask.bytes.pointers.size(), " pointers for ",
                        mask.bytes.count, " arrays; expected one for each");
    } else {
        course::require(-mask.below <= mask.above, "masked matmul: the band is from ", mask.below,
                        " below the diagonal to ", mask.above, " above it; expected a sum of at least 0");
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
std::size_t arrays_of(const course::Batch<const std::uint8_t>& bytes) {
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
    using T = course::LargeTile;
    const auto walk = course::every_tile<T>(matmul.factors);
    const course::FusedMatmul<T, 1, course::EveryTile<T>, course::WriteTile, course::MultiplyAdd,
                              course::Packs::kOfBoth>
        product;
    product.launch(std::min(walk.all, product.resident_blocks()), matmul.factors, walk,
                   {matmul.c, matmul.alpha, 0}, stream);
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
        const auto walk = course::every_tile<T>(matmul.factors);
        const course::FusedMatmul<T, BLOCKS, course::EveryTile<T>, WriteKept<Elements>> kernel;
        kernel.launch(std::min(walk.all, kernel.resident_blocks()), matmul.factors, walk,
                      {mask, matmul.c, matmul.alpha, matmul.fill}, stream);
    });
}

template <class T>
std::size_t levels_size(const course::Batch<const std::uint8_t>& bytes) {
    return Levels<T>::size(bytes.first.rows(), bytes.first.cols(), arrays_of(bytes));
}

template <class T>
Levels<T> levels_of(const course::Batch<const std::uint8_t>& bytes,
                    const course::DeviceSpan<std::uint32_t>& memory) {
    const std::size_t needed = levels_size<T>(bytes);
    course::require(memory.size() >= needed, "masked matmul: the mask's levels have ", memory.size(),
                    " elements; expected at least ", needed, ", as MaskLevels of this version has");
    course::require(course::is_aligned(memory.data(), 16),
                    "masked matmul: the mask's levels are not aligned; expected a multiple of 16 bytes");
    return {memory.data(), bytes.first.rows(), bytes.first.cols(), arrays_of(bytes)};
}

template <class T>
void launch_build_levels(const course::Batch<const std::uint8_t>& bytes,
                         course::DeviceSpan<std::uint32_t> memory, cudaStream_t stream) {
    const Levels<T> levels = levels_of<T>(bytes, memory);
    if (levels.all().all == 0) return;
    CUDA_CHECK(cudaMemsetAsync(memory.data(), 0, 2 * sizeof(std::uint32_t), stream));  // the counts
    build_levels<T><<<levels.all().all, T::THREADS, 0, stream>>>(bytes, levels);
    CUDA_CHECK_LAUNCH();
}

template <class T, int BLOCKS>
void launch_skip_tiles(const MaskedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const course::Factors& factors = matmul.factors;
    const auto launch = [&]<class Tiles>(const Tiles& tiles) {
        const course::FusedMatmul<T, BLOCKS, KeptTiles<Tiles>, WriteAndFill<Tiles>> kernel;
        kernel.launch(std::min(course::every_tile<T>(factors).all, kernel.resident_blocks()), factors,
                      {tiles}, {tiles, matmul.c, matmul.alpha, matmul.fill}, stream);
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
    return {launch, [](const course::Batch<const std::uint8_t>&) { return std::size_t{0}; },
            [](const course::Batch<const std::uint8_t>&, course::DeviceSpan<std::uint32_t>, cudaStream_t) {}};
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
               .launcher = without_levels(launch_element_mask<course::SquareTile, 2>),
               .work = work},
        Masked{.name = "skip_tiles",
               .idea = "tiles that keep nothing are filled, and not multiplied",
               .launcher = with_levels<course::SquareTile, 2>(),
               .work = work},
        Masked{.name = "skip_large_tiles",
               .idea = "the same with tiles twice as wide",
               .launcher = with_levels<course::LargeTile, 1>(),
               .work = work},
    };
    return list;
}

}  // namespace day47
