// Day 48: the k best of each row of a product that is never written. Nearest neighbours are found this way.
//
//   version     idea                                                                    limited by
//   unfused     the matrix of distances, then a selection from each of its rows         8 bytes to and from memory for each element
//   fused       the epilogue puts aside what may be among the best, which soon is       multiply-adds
//               next to nothing
//
// The k best of the first n columns of a row are k of n: if columns come in no special order, one of k / n behind them is better than the
// worst of those. With k = 128, about 1,600 are put aside of the 62,500 columns that a block has where 16 share a row of a million.
// Data sorted the wrong way only take longer.
//
//   ./course run day48 --variant fused --size 1024x1000000x64x128
#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "common/tile/distance.cuh"
#include "common/tile/fused_matmul.cuh"
#include "selection.cuh"
#include "top_k.hpp"

namespace day48 {
namespace {

using T = course::LargeTile;

// All tiles of all products, row of tiles after row of tiles, in equal shares: those of a block follow each other. They are of one row, or
// the end of one and what comes after it.
template <class T>
struct EqualShares {
    unsigned down;    // rows of tiles in one product
    unsigned across;  // tiles in a row
    unsigned all;
    unsigned blocks;  // at most as many as there are tiles

    __device__ const EqualShares& walk() const { return *this; }
    __device__ unsigned first() const { return begin_of(blockIdx.x); }
    __device__ unsigned last() const { return begin_of(blockIdx.x + 1) - 1; }
    __device__ bool has(unsigned i) const { return i < begin_of(blockIdx.x + 1); }
    __device__ unsigned next(unsigned i) const { return i + 1; }
    __device__ course::Tile at(unsigned i) const {
        const unsigned row = i / across;
        return {row / down, std::size_t{row % down} * T::BM, std::size_t{i % across} * T::BN};
    }

    // The block that has tile i.
    __device__ unsigned block_of(unsigned i) const {
        return static_cast<unsigned>(((std::size_t{i} + 1) * blocks - 1) / all);
    }

  private:
    __device__ unsigned begin_of(unsigned block) const {
        return static_cast<unsigned>(std::size_t{block} * all / blocks);
    }
};

// --- The epilogue ----------------------------------------------------------------------------------------------------

// The list of a row has room for what a shortened one keeps, for a tile's columns before there is a bound, for some more until it is full, and then
// for those of one tile.
struct ListSize {
    unsigned k;
    unsigned kept;  // k and a few more, as that is found sooner
    unsigned room;

    explicit ListSize(std::size_t best)
        : k(static_cast<unsigned>(best)), kept(k + k / 8), room(kept + T::BN + k + T::BN) {}

    __device__ bool is_full(unsigned listed) const { return listed > room - T::BN; }
    __device__ bool is_worth_shortening(unsigned listed) const { return listed > (kept + room - T::BN) / 2; }
};

// What the blocks that share a row of tiles leave to each other. Rows of tiles r and blocks b ascend together, so that r + b is another
// one for each block's part of a row.
struct Pieces {
    EqualShares<T> walk;
    unsigned size;
    Key* keys;  // the best of the block's columns, `size` of each row, or fewer and kNoKey
    // A rank that k / blocks(), rounded up, of the block's elements of a row are not behind; all bits set: not known yet. All is said
    // and heard while blocks work, and nobody waits for it.
    unsigned* ranks;

    __device__ unsigned first_block(std::size_t row_of_tiles) const {
        return walk.block_of(static_cast<unsigned>(row_of_tiles * walk.across));
    }
    __device__ unsigned blocks(std::size_t row_of_tiles) const {
        const auto last = static_cast<unsigned>((row_of_tiles + 1) * walk.across - 1);
        return walk.block_of(last) - first_block(row_of_tiles) + 1;
    }
    __device__ Key* keys_of(std::size_t row_of_tiles, unsigned block, unsigned row_in_tile) const {
        return keys + ((row_of_tiles + block) * T::BM + row_in_tile) * size;
    }
    __device__ volatile unsigned& rank_of(std::size_t row_of_tiles, unsigned block,
                                          unsigned row_in_tile) const {
        return ranks[(row_of_tiles + block) * T::BM + row_in_tile];
    }
};

// The epilogue, for tiles of T. Each row of a block's tile has a list in global memory. What is better than the row's bound goes to its end.
// Bounds come from two sources. A full list is shortened to its best, and the worst of those is a bound. And each block of a row says what
// k / blocks of its elements are not greater than: of all together, k are not greater than the greatest of these.
struct ListBest {
    course::Distance distance;
    float sign;
    ListSize size;
    Key* lists;  // T::BM for each block; 2^32 keys are more than the lists of 10,000 blocks
    Pieces pieces;

    // In shared memory, of the rows of the block's tile:
    struct Rows {
        unsigned listed[T::BM];
        // What is not less is not among the k best: k elements are less than it, or k before it are not greater, and of equal ones
        // the first count. Or NaN, and nothing is "not less", while there are no such k.
        float bound[T::BM];
        unsigned first;  // the block's first tile of this row of tiles
    };

    struct State {
        Rows* rows;
    };

    template <class>
    __device__ State begin() const {
        __shared__ Rows rows;
        for (unsigned row = threadIdx.x; row < T::BM; row += T::THREADS)
            start(rows, row);
        if (threadIdx.x == 0) rows.first = pieces.walk.first() % pieces.walk.across;
        __syncthreads();
        return {&rows};
    }

    template <class>
    __device__ void take(State& state, const course::ThreadTileCoords<T>& at,
                         float (&sums)[T::TM][T::TN]) const {
        const unsigned before =
            static_cast<unsigned>(at.tile.col / T::BN) - state.rows->first;  // tiles of this row
        if (is_time_to_talk(before)) {
            read_bounds(*state.rows, at.tile);
            __syncthreads();
        }
        distance.finish(at, sums);
        if (sign < 0) negate(sums);
        const unsigned rows = inside_tile<T::BM>(at.tile.row, distance.m);
        const unsigned cols = inside_tile<T::BN>(at.tile.col, distance.n);
        unsigned inside = 0;
#pragma unroll
        for (int j = 0; j < T::TN; ++j) {
            const auto col = static_cast<unsigned>(at.place.col + course::place_of<T::LANES_N>(0, j));
            inside |= (col < cols ? 1u : 0u) << j;
        }
        bool is_full = false;
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
            const unsigned row = row_in_tile(at, i);
            const float bound = state.rows->bound[row];
            bool is_any = false;
#pragma unroll
            for (int j = 0; j < T::TN; ++j) {
                is_any |= !(sums[i][j] >= bound);
            }
            if (is_any && row < rows) is_full |= put_aside(*state.rows, row, at, sums[i], bound, inside);
        }
        is_full = __syncthreads_or(is_full);  // and all is listed
        // The main loop's barriers are between this and the next tile.
        if (is_last_of_row(at.tile)) {
            finish_row(*state.rows, at.tile);
        } else if (is_full) {
            shorten(*state.rows);
        } else if (is_time_to_talk(before + 1)) {
            publish_bounds(*state.rows, at.tile);
        }
    }

    template <class>
    __device__ void end(State& state, const EqualShares<T>& walk) const {
        const course::Tile last = walk.at(walk.last());
        __syncthreads();  // the last tile's lists may have been shortened
        if (!is_last_of_row(last)) finish_row(*state.rows, last);
    }

  private:
    static constexpr unsigned kWarps = T::THREADS / course::kWarpSize;
    static constexpr unsigned kKeysOfLane = 20;  // in registers, when the sums are not needed any more

    static __device__ void start(Rows& rows, unsigned row) {
        rows.listed[row] = 0;
        rows.bound[row] = std::numeric_limits<float>::quiet_NaN();
    }
    // Of a tile's rows or columns from `begin` on, how many are within `size`.
    template <unsigned EXTENT>
    static __device__ unsigned inside_tile(std::size_t begin, std::size_t size) {
        return static_cast<unsigned>(min(size - begin, std::size_t{EXTENT}));
    }
    static __device__ unsigned row_in_tile(const course::ThreadTileCoords<T>& at, int i) {
        return at.place.row + course::place_of<T::LANES_M>(0, i);
    }
    static __device__ void negate(float (&sums)[T::TM][T::TN]) {
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; ++j)
                sums[i][j] = -sums[i][j];
        }
    }
    __device__ std::size_t row_of_tiles(const course::Tile& tile) const {
        return tile.product * pieces.walk.down + tile.row / T::BM;
    }
    // After one tile, two, four ...: while their number doubles, k elements of the row are better than what was the k-th best.
    static __device__ bool is_time_to_talk(unsigned tiles) {
        return tiles != 0 && (tiles & (tiles - 1)) == 0;
    }
    __device__ bool is_last_of_row(const course::Tile& tile) const {
        return tile.col + T::BN >= distance.n;
    }
    __device__ unsigned begin_of_list(unsigned row) const {
        return (blockIdx.x * T::BM + row) * size.room;
    }

    // A thread's values that are less than the row's bound. True: the row's list is full.
    __device__ bool put_aside(Rows& rows, unsigned row, const course::ThreadTileCoords<T>& at,
                              const float (&values)[T::TN], float bound, unsigned inside) const {
        unsigned chosen = 0;
#pragma unroll
        for (int j = 0; j < T::TN; ++j)
            chosen |= (!(values[j] >= bound) ? 1u : 0u) << j;
        chosen &= inside;
        const unsigned count = __popc(chosen);
        const unsigned before = atomicAdd(&rows.listed[row], count);
        Key* place = lists + begin_of_list(row) + before;
        for (; chosen != 0; chosen &= chosen - 1) {
            const int which = __ffs(static_cast<int>(chosen)) - 1;
            float value = values[0];
#pragma unroll
            for (int j = 1; j < T::TN; ++j)
                value = j == which ? values[j] : value;
            *place++ = key_of(value, static_cast<unsigned>(at.col(which)));
        }
        return size.is_full(before + count);
    }

    // When one list is full, others nearly are: all that are worth it are shortened together, a warp for each.
    __device__ void shorten(Rows& rows) const {
        for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
            const unsigned listed = rows.listed[row];
            if (!size.is_worth_shortening(listed)) continue;
            Key* const list = lists + begin_of_list(row);
            const Key bound = find_bound_in_registers<kKeysOfLane>(list, listed, size.k, size.kept);
            const unsigned kept = copy_up_to(bound, list, listed, list);
            if (threadIdx.x % course::kWarpSize == 0) {
                rows.listed[row] = kept;
                rows.bound[row] = fminf(rows.bound[row], value_of(bound));  // of NaN and a number, the number
            }
        }
    }

    // To the other blocks that share the row of tiles, a warp for each row.
    __device__ void publish_bounds(const Rows& rows, const course::Tile& tile) const {
        const std::size_t of_tiles = row_of_tiles(tile);
        const unsigned share = course::ceil_div(size.k, pieces.blocks(of_tiles));
        const unsigned most = share + share / 8;
        for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
            const unsigned listed = rows.listed[row];
            if (listed <= most) continue;
            const Key bound =
                find_bound_in_registers<kKeysOfLane>(lists + begin_of_list(row), listed, share, most);
            if (threadIdx.x % course::kWarpSize == 0)
                pieces.rank_of(of_tiles, blockIdx.x, row) = rank_of(bound);
        }
    }

    // What they all say, a thread for each row.
    __device__ void read_bounds(Rows& rows, const course::Tile& tile) const {
        static_assert(T::THREADS >= T::BM, "read_bounds: a thread for each row");
        const unsigned row = threadIdx.x;
        if (row >= T::BM) return;
        const std::size_t of_tiles = row_of_tiles(tile);
        const unsigned first = pieces.first_block(of_tiles);
        const unsigned blocks = pieces.blocks(of_tiles);
        unsigned greatest = 0;
#pragma unroll 8
        for (unsigned block = 0; block < blocks; ++block)
            greatest = max(greatest, unsigned{pieces.rank_of(of_tiles, first + block, row)});
        // An equal element may have a lower column than all of those: the bound is the next greater number.
        rows.bound[row] = fminf(rows.bound[row], value_of_rank(greatest + 1));
    }

    // The best of each list become this block's piece of the row: of what nobody has a better bound for. Then it is ready for another
    // row of tiles.
    __device__ void finish_row(Rows& rows, const course::Tile& tile) const {
        publish_bounds(rows, tile);
        __syncthreads();
        read_bounds(rows, tile);
        __syncthreads();
        const unsigned lane = threadIdx.x % course::kWarpSize;
        for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
            if (tile.row + row >= distance.m) break;
            Key* const list = lists + begin_of_list(row);
            const Key heard = Key{rank_of(rows.bound[row])} << 32 | 0xffffffff;  // of NaN: all
            const unsigned listed = copy_up_to(heard, list, rows.listed[row], list);
            const Key bound = listed > pieces.size
                                  ? find_bound_in_registers<kKeysOfLane>(list, listed, size.k, pieces.size)
                                  : kNoKey;
            Key* const piece = pieces.keys_of(row_of_tiles(tile), blockIdx.x, row);
            for (unsigned i = copy_up_to(bound, list, listed, piece) + lane; i < pieces.size;
                 i += course::kWarpSize)
                piece[i] = kNoKey;
            if (lane == 0) start(rows, row);
        }
        if (threadIdx.x == 0) rows.first = 0;
    }
};

// --- Selection from rows ---------------------------------------------------------------------------------------------

// Where the keys of a row are: in a row of the matrix of distances,
struct RowsOfDistances {
    const float* distances;
    std::size_t cols;
    float sign;

    struct Row {
        const float* distances;
        float sign;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const {
            return key_of(sign * distances[i], static_cast<unsigned>(i));
        }
    };
    __device__ Row operator[](std::size_t row) const { return {distances + row * cols, sign, cols}; }
};

// or in the pieces of a row of tiles.
struct RowsOfPieces {
    Pieces pieces;
    std::size_t m;

    struct Row {
        const Key* first;  // piece's keys
        unsigned size;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const { return first[i / size * T::BM * size + i % size]; }
    };
    __device__ Row operator[](std::size_t row) const {
        const std::size_t row_of_tiles = row / m * pieces.walk.down + row % m / T::BM;
        const auto in_tile = static_cast<unsigned>(row % m % T::BM);
        return {pieces.keys_of(row_of_tiles, pieces.first_block(row_of_tiles), in_tile), pieces.size,
                std::size_t{pieces.blocks(row_of_tiles)} * pieces.size};
    }
};

// --- Launchers -------------------------------------------------------------------------------------------------------

// As many blocks as run at the same time, or fewer, where they share rows better. Beginning a row, of which at first everything is
// listed, takes a block the time of about kStart steps of the main loop; a tile's end takes that of kEnd.
EqualShares<T> equal_shares(std::size_t m, std::size_t n, std::size_t d, std::size_t count) {
    constexpr std::size_t kStart = 120;
    constexpr std::size_t kEnd = 3;
    const std::size_t down = course::ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = course::ceil_div<std::size_t>(n, T::BN);
    const std::size_t rows = down * count;
    const std::size_t all = course::blocks_for(rows * across, 1);
    const auto time = [&](std::size_t blocks) {
        // Rows that the block with the most of them has a part of.
        const std::size_t begun = blocks % rows == 0   ? 1
                                  : rows % blocks == 0 ? rows / blocks
                                                       : rows / blocks + 2;
        return course::ceil_div(all, blocks) * (course::ceil_div<std::size_t>(d, T::BK) + kEnd) +
               begun * kStart;
    };
    const std::size_t most = std::min<std::size_t>(all, course::multiprocessors());
    std::size_t best = std::min<std::size_t>(most, 1);
    for (std::size_t blocks = 2; blocks <= most; ++blocks) {
        if (time(blocks) <= time(best)) best = blocks;
    }
    return {static_cast<unsigned>(down), static_cast<unsigned>(across), static_cast<unsigned>(all),
            static_cast<unsigned>(best)};
}

// The scratch memory holds the norms, and then the blocks' lists and pieces, or the matrix of distances.
struct Plan {
    std::size_t rows;  // of all products
    std::size_t n;
    std::size_t norm_words;
    EqualShares<T> walk;
    ListSize size;

    explicit Plan(const TopKShape& shape)
        : rows(shape.m * shape.count),
          n(shape.n),
          norm_words(
              course::ceil_div<std::size_t>(course::norms_size(shape.metric, shape.m, n, shape.count), 2)),
          walk(equal_shares(shape.m, n, shape.d, shape.count)),
          size(shape.k) {
        course::require(shape.k >= 1 && shape.k <= kMostBest, "top-k matmul: k is ", shape.k,
                        "; expected 1 to ", kMostBest);
        course::require(shape.k <= n, "top-k matmul: k is ", shape.k, ", but there are ", n,
                        " columns of op(B) to choose from; expected at most as many");
    }

    std::size_t list_words() const { return std::size_t{walk.blocks} * T::BM * size.room; }
    // Rows of the pieces.
    std::size_t piece_rows() const {
        return walk.all == 0 ? 0 : (walk.all / walk.across + walk.blocks - 1) * T::BM;
    }
    std::size_t piece_words() const { return piece_rows() * size.kept; }
    std::size_t rank_words() const { return course::ceil_div<std::size_t>(piece_rows(), 2); }
    std::size_t fused_words() const { return norm_words + list_words() + piece_words() + rank_words(); }
    std::size_t unfused_words() const { return norm_words + course::ceil_div<std::size_t>(rows * n, 2); }
};

Plan checked_plan(const TopKMatmul& matmul) {
    const course::Factors& factors = matmul.factors;
    course::check_factors(factors, "top-k matmul");
    const Plan plan(
        TopKShape{factors.m(), factors.n(), factors.k(), factors.count(), matmul.k, matmul.metric});
    const std::size_t results = plan.rows * matmul.k;
    const auto require_size = [&](std::string_view name, std::size_t size) {
        course::require(size == results, "top-k matmul: ", name, " has ", size, " elements; expected ",
                        results, ", ", matmul.k, " for each row");
    };
    require_size("values", matmul.values.size());
    require_size("indices", matmul.indices.size());
    return plan;
}

void require_scratch(const TopKMatmul& matmul, std::size_t needed) {
    course::require(matmul.scratch.size() >= needed, "top-k matmul: scratch has ", matmul.scratch.size(),
                    " elements; expected at least ", needed);
}

float sign_of(Order order) {
    return order == Order::kSmallest ? 1 : -1;
}

template <class Rows>
void launch_selection(const Rows& rows, const Plan& plan, const TopKMatmul& matmul, cudaStream_t stream) {
    select_best<<<course::blocks_for(plan.rows, 1), kSelectThreads, 0, stream>>>(
        rows, plan.size.k, sign_of(matmul.order), matmul.values.data(), matmul.indices.data());
    CUDA_CHECK_LAUNCH();
}

void launch_fused(const TopKMatmul& matmul, cudaStream_t stream) {
    const Plan plan = checked_plan(matmul);
    if (plan.rows == 0) return;
    require_scratch(matmul, plan.fused_words());
    Key* const lists = matmul.scratch.data() + plan.norm_words;
    Key* const keys = lists + plan.list_words();
    auto* const ranks = reinterpret_cast<unsigned*>(keys + plan.piece_words());
    CUDA_CHECK(cudaMemsetAsync(ranks, 0xff, plan.piece_rows() * sizeof *ranks, stream));
    const Pieces pieces{plan.walk, plan.size.kept, keys, ranks};
    const ListBest epilogue{
        course::launch_distance(matmul.metric, matmul.factors, matmul.scratch.data(), stream),
        sign_of(matmul.order), plan.size, lists, pieces};
    course::with_add(matmul.metric, [&]<class Add>(Add) {
        course::FusedMatmul<T, 1, EqualShares<T>, ListBest, Add>().launch(plan.walk.blocks, matmul.factors,
                                                                          plan.walk, epilogue, stream);
    });
    launch_selection(RowsOfPieces{pieces, matmul.factors.m()}, plan, matmul, stream);
}

void launch_unfused(const TopKMatmul& matmul, cudaStream_t stream) {
    const Plan plan = checked_plan(matmul);
    if (plan.rows == 0) return;
    require_scratch(matmul, plan.unfused_words());
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + plan.norm_words);
    course::launch_distances(matmul.metric, matmul.factors, matmul.scratch.data(), distances, stream);
    launch_selection(RowsOfDistances{distances, plan.n, sign_of(matmul.order)}, plan, matmul, stream);
}

course::Work work(const TopKShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto d = static_cast<double>(shape.d);
    const double results = count * m * static_cast<double>(shape.k);
    const double written = (sizeof(float) + sizeof(std::uint32_t)) * results;
    return {.bytes = sizeof(float) * count * (m * d + d * n) + written,
            .written = written,
            .flops = (shape.metric == course::Metric::kDifferences ? 3 : 2) * count * m * n * d};
}

}  // namespace

std::string name(Order order) {
    switch (order) {
        case Order::kSmallest:
            return "smallest";
        case Order::kLargest:
            return "largest";
    }
    throw std::invalid_argument("name: no such order: " + std::to_string(static_cast<int>(order)));
}

std::span<const TopK> top_k_variants() {
    static const std::array list = {
        TopK{.name = "unfused",
             .idea = "the matrix of distances, then a selection from each of its rows",
             .launcher = {launch_unfused, [](const TopKShape& shape) { return Plan(shape).unfused_words(); }},
             .work = work},
        TopK{.name = "fused",
             .idea = "the epilogue puts aside what may be among the best",
             .launcher = {launch_fused, [](const TopKShape& shape) { return Plan(shape).fused_words(); }},
             .work = work},
    };
    return list;
}

}  // namespace day48
