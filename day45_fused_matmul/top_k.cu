// Day 45, part three: the k best of each row of a product that is never written. Nearest neighbours are found this way.
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
//   ./course run day45 --variant fused --size 1024x1000000x64x128
#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "common/check.hpp"
#include "common/grid.hpp"
#include "common/warp.cuh"
#include "matmul.cuh"
#include "top_k.hpp"
#include "write_tile.cuh"

namespace day45 {
namespace {

constexpr int kThreads = 256;

using T = LargeTile;

// --- Keys ------------------------------------------------------------------------------------------------------------
//
// A value and its column as one number, so that the order is exact and no two are equal: the lower, the better. Of the largest values,
// `sign` = -1 makes the smallest.

using Key = std::uint64_t;
constexpr Key kNoKey = ~Key{0};  // behind all others

__device__ Key key_of(float value, unsigned col) {
    const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes 0
    // The bits of positive floats ascend as they do, those of negative ones descend: there all are flipped, here the sign.
    const unsigned ascending = bits ^ (static_cast<unsigned>(static_cast<int>(bits) >> 31) | 0x80000000);
    return Key{isnan(value) ? 0xffffffff : ascending} << 32 | col;
}

__device__ float value_of(Key key) {
    const auto ascending = static_cast<unsigned>(key >> 32);
    return __uint_as_float(ascending >> 31 == 1 ? ascending & 0x7fffffff : ~ascending);
}

__device__ unsigned col_of(Key key) {
    return static_cast<unsigned>(key);
}

// --- What a warp does with a list of keys, in no order, all of them different ----------------------------------------

// A key that `least` to `most` of the list's `count` are not behind; count > most. Which of them does not matter: half of what is left
// is tried, and all are counted, until one will do.
__device__ Key find_bound(const Key* list, unsigned count, unsigned least, unsigned most) {
    const unsigned lane = threadIdx.x % course::kWarpSize;
    Key first = kNoKey;
    Key last = 0;
#pragma unroll 4
    for (unsigned i = lane; i < count; i += course::kWarpSize) {
        first = min(first, list[i]);
        last = max(last, list[i]);
    }
    // Fewer than `least` are not behind `low`, more than `most` are not behind `high`.
    Key low = course::warp_reduce(first, [](Key a, Key b) { return min(a, b); }) - 1;
    Key high = course::warp_reduce(last, [](Key a, Key b) { return max(a, b); });
    for (;;) {
        const Key middle = low + (high - low) / 2;
        unsigned not_behind = 0;
#pragma unroll 4
        for (unsigned i = lane; i < count; i += course::kWarpSize)
            not_behind += list[i] <= middle ? 1 : 0;
        not_behind = course::warp_reduce(not_behind, [](unsigned a, unsigned b) { return a + b; });
        if (not_behind < least) {
            low = middle;
        } else if (not_behind > most) {
            high = middle;
        } else {
            return middle;
        }
    }
}

// Copies those that are not behind `bound`, and says how many they are. `to` may be the list itself.
__device__ unsigned copy_up_to(Key bound, const Key* list, unsigned count, Key* to) {
    constexpr unsigned AT_ONCE = 4;
    const unsigned lane = threadIdx.x % course::kWarpSize;
    unsigned copied = 0;
    for (unsigned begin = 0; begin < count; begin += AT_ONCE * course::kWarpSize) {
        Key keys[AT_ONCE];
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const unsigned i = begin + j * course::kWarpSize + lane;
            keys[j] = i < count ? list[i] : kNoKey;
        }
        __syncwarp();  // all have read what is written now
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const bool is_copied = keys[j] <= bound && keys[j] != kNoKey;
            const unsigned copying = __ballot_sync(course::kWholeWarp, is_copied);
            if (is_copied) to[copied + __popc(copying & ((1u << lane) - 1))] = keys[j];
            copied += __popc(copying);
        }
    }
    __syncwarp();  // all see the copies
    return copied;
}

// --- The epilogue ----------------------------------------------------------------------------------------------------

// The list of a row has room for what a shortened one keeps, for some more before it is shortened again, and for a tile's columns.
struct ListSize {
    unsigned k;
    unsigned kept;  // k and a few more, as that is found sooner
    unsigned room;

    explicit ListSize(std::size_t best)
        : k(static_cast<unsigned>(best)),
          kept(k + k / 8),
          room(kept + std::max(k, unsigned{T::BN}) + T::BN) {}

    __device__ bool is_full(unsigned listed) const { return listed > room - T::BN; }
    __device__ bool is_worth_shortening(unsigned listed) const { return listed > (kept + room - T::BN) / 2; }
};

// A block's best of a row of tiles are a piece: k of each row. Rows of tiles r and blocks b ascend together, so that r + b is
// another one for each piece.
struct Pieces {
    Key* keys;
    unsigned k;

    __device__ Key* of(std::size_t row_of_tiles, unsigned block, std::size_t row_in_tile) const {
        return keys + ((row_of_tiles + block) * T::BM + row_in_tile) * k;
    }
};

// The epilogue, for tiles of T. Each row of a block's tile has a list in global memory. What is better than the row's bound goes to its end;
// a full list is shortened to its best, and the worst of those is the next bound.
struct ListBest {
    Distance distance;
    float sign;
    unsigned down;  // rows of tiles in one product
    ListSize size;
    Key* lists;  // T::BM for each block; 2^32 keys are more than the lists of 10,000 blocks
    Pieces pieces;

    // In shared memory, of the rows of the block's tile:
    struct Rows {
        unsigned listed[T::BM];
        // What is not less is not among the k best: k elements before it are not greater, and of equal ones the first count. Or NaN,
        // and nothing is "not less", while there are no such k.
        float bound[T::BM];
    };

    struct State {
        Rows* rows;
    };

    template <class>
    __device__ State begin() const {
        __shared__ Rows rows;
        for (unsigned row = threadIdx.x; row < T::BM; row += T::THREADS)
            start(rows, row);
        __syncthreads();
        return {&rows};
    }

    template <class>
    __device__ void take(State& state, const Results<T>& at, float (&sums)[T::TM][T::TN]) const {
        distance.finish(at, sums);
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
                sums[i][j] *= sign;
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
        }
    }

    template <class>
    __device__ void end(State& state, const EqualShares<T>& walk) const {
        const Tile last = walk.at(walk.last());
        __syncthreads();  // the last tile's lists may have been shortened
        if (!is_last_of_row(last)) finish_row(*state.rows, last);
    }

  private:
    static constexpr unsigned kWarps = T::THREADS / course::kWarpSize;

    static __device__ void start(Rows& rows, unsigned row) {
        rows.listed[row] = 0;
        rows.bound[row] = std::numeric_limits<float>::quiet_NaN();
    }
    // Of a tile's rows or columns from `begin` on, how many are within `size`.
    template <unsigned EXTENT>
    static __device__ unsigned inside_tile(std::size_t begin, std::size_t size) {
        return static_cast<unsigned>(min(size - begin, std::size_t{EXTENT}));
    }
    static __device__ unsigned row_in_tile(const Results<T>& at, int i) {
        return at.place.row + course::place_of<T::LANES_M>(0, i);
    }
    __device__ bool is_last_of_row(const Tile& tile) const {
        return tile.col + T::BN >= distance.n;
    }
    __device__ unsigned begin_of_list(unsigned row) const {
        return (blockIdx.x * T::BM + row) * size.room;
    }

    // A thread's values that are less than the row's bound. True: the row's list is full.
    __device__ bool put_aside(Rows& rows, unsigned row, const Results<T>& at, const float (&values)[T::TN],
                              float bound, unsigned inside) const {
        unsigned chosen = 0;
#pragma unroll
        for (int j = 0; j < T::TN; ++j)
            chosen |= (!(values[j] >= bound) ? 1u : 0u) << j;
        chosen &= inside;
        const unsigned count = __popc(chosen);
        const unsigned before = atomicAdd(&rows.listed[row], count);
        unsigned place = begin_of_list(row) + before;
#pragma unroll
        for (int j = 0; j < T::TN; ++j) {
            if ((chosen >> j & 1) != 0) lists[place++] = key_of(values[j], static_cast<unsigned>(at.col(j)));
        }
        return size.is_full(before + count);
    }

    // When one list is full, others nearly are: all that are worth it are shortened together, a warp for each.
    __device__ void shorten(Rows& rows) const {
        for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
            const unsigned listed = rows.listed[row];
            if (!size.is_worth_shortening(listed)) continue;
            Key* const list = lists + begin_of_list(row);
            const Key bound = find_bound(list, listed, size.k, size.kept);
            const unsigned kept = copy_up_to(bound, list, listed, list);
            if (threadIdx.x % course::kWarpSize == 0) {
                rows.listed[row] = kept;
                rows.bound[row] = value_of(bound);
            }
        }
    }

    // What a row's list holds, or the k best of it, becomes this block's piece. Then it is ready for another row of tiles.
    __device__ void finish_row(Rows& rows, const Tile& tile) const {
        const unsigned lane = threadIdx.x % course::kWarpSize;
        for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
            if (tile.row + row >= distance.m) break;
            const unsigned listed = rows.listed[row];
            const Key* const list = lists + begin_of_list(row);
            const Key bound = listed > size.k ? find_bound(list, listed, size.k, size.k) : kNoKey;
            Key* const piece = pieces.of(tile.product * down + tile.row / T::BM, blockIdx.x, row);
            for (unsigned i = copy_up_to(bound, list, listed, piece) + lane; i < size.k;
                 i += course::kWarpSize)
                piece[i] = kNoKey;
            if (lane == 0) start(rows, row);
        }
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

// or in the pieces of a row of tiles. A piece may have fewer than k, and then kNoKey.
struct RowsOfPieces {
    Pieces pieces;
    EqualShares<T> walk;
    std::size_t m;

    struct Row {
        const Key* first;  // piece's k keys
        unsigned k;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const { return first[i / k * T::BM * k + i % k]; }
    };
    __device__ Row operator[](std::size_t row) const {
        const std::size_t row_of_tiles = row / m * walk.down + row % m / T::BM;
        const auto tile = static_cast<unsigned>(row_of_tiles * walk.across);
        const unsigned block = walk.block_of(tile);
        const unsigned blocks = walk.block_of(tile + walk.across - 1) - block + 1;
        return {pieces.of(row_of_tiles, block, row % m % T::BM), pieces.k, std::size_t{blocks} * pieces.k};
    }
};

// A bitonic sort: sequences of `width` that ascend and descend by turns are made into such of twice the width. The block shares the
// `count` keys, which are a power of two.
__device__ void sort(Key* keys, unsigned count) {
    for (unsigned width = 2; width <= count; width *= 2) {
        for (unsigned distance = width / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < count / 2; i += kThreads) {
                const unsigned a = i / distance * distance * 2 + i % distance;
                const unsigned b = a + distance;
                if ((keys[a] > keys[b]) == ((a & width) == 0)) {
                    const Key key = keys[a];
                    keys[a] = keys[b];
                    keys[b] = key;
                }
            }
        }
    }
    __syncthreads();
}

// Idea: a block for each row lists, in shared memory, what is better than the k-th best so far; at the end it sorts them.
// Cost removed: sorting the whole row, or reading it more than once.
// Still limits it: memory, where rows are long; otherwise the warp that shortens the list alone.
template <class Rows>
__global__ __launch_bounds__(kThreads) void select_best(const __grid_constant__ Rows rows, unsigned k,
                                                        float sign, float* values, std::uint32_t* indices) {
    constexpr unsigned EACH = 4;                // keys that a thread looks at at a time
    constexpr unsigned STEP = EACH * kThreads;  // and the block
    constexpr unsigned ROOM = 2 * kMostBest + 2 * STEP;
    static_assert(kMostBest + kMostBest / 8 <= ROOM - STEP, "select_best: a shortened list is not full");
    __shared__ Key list[ROOM];
    __shared__ unsigned listed;
    __shared__ Key bound;
    const bool is_first_warp = threadIdx.x < course::kWarpSize;
    const auto row = rows[blockIdx.x];
    if (threadIdx.x == 0) {
        listed = 0;
        bound = kNoKey;
    }
    __syncthreads();
    for (std::size_t begin = 0; begin < row.count; begin += STEP) {
        bool is_full = false;
#pragma unroll
        for (unsigned j = 0; j < EACH; ++j) {
            const std::size_t i = begin + j * kThreads + threadIdx.x;
            const Key key = i < row.count ? row[i] : kNoKey;
            if (key >= bound) continue;
            const unsigned place = atomicAdd(&listed, 1u);
            list[place] = key;
            is_full |= place >= ROOM - STEP;
        }
        if (!__syncthreads_or(is_full)) continue;
        if (is_first_warp) {
            const unsigned count = listed;
            const Key better = find_bound(list, count, k, k + k / 8);
            const unsigned kept = copy_up_to(better, list, count, list);
            if (threadIdx.x == 0) {
                listed = kept;
                bound = better;
            }
        }
        __syncthreads();
    }
    unsigned sorted = 1;
    while (sorted < k)
        sorted *= 2;
    if (is_first_warp) {
        const unsigned count = listed;
        unsigned kept = count;
        if (count > k) kept = copy_up_to(find_bound(list, count, k, k), list, count, list);
        for (unsigned i = kept + threadIdx.x; i < sorted; i += course::kWarpSize)
            list[i] = kNoKey;
    }
    sort(list, sorted);
    for (unsigned i = threadIdx.x; i < k; i += kThreads) {
        values[std::size_t{blockIdx.x} * k + i] = sign * value_of(list[i]) + 0.0f;  // no -0
        indices[std::size_t{blockIdx.x} * k + i] = col_of(list[i]);
    }
}

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

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("top-k matmul: " + message);
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
          norm_words(course::ceil_div<std::size_t>(norms_size(shape.metric, shape.m, n, shape.count), 2)),
          walk(equal_shares(shape.m, n, shape.d, shape.count)),
          size(shape.k) {
        const std::string k = std::to_string(shape.k);
        require(shape.k >= 1 && shape.k <= kMostBest,
                "k is " + k + "; expected 1 to " + std::to_string(kMostBest));
        require(shape.k <= n, "k is " + k + ", but there are " + std::to_string(n) +
                                  " columns of op(B) to choose from; expected at most as many");
    }

    std::size_t list_words() const { return std::size_t{walk.blocks} * T::BM * size.room; }
    std::size_t piece_words() const {
        return walk.all == 0 ? 0 : (walk.all / walk.across + walk.blocks - 1) * T::BM * size.k;
    }
    std::size_t fused_words() const { return norm_words + list_words() + piece_words(); }
    std::size_t unfused_words() const { return norm_words + course::ceil_div<std::size_t>(rows * n, 2); }
};

Plan checked_plan(const TopKMatmul& matmul) {
    const Factors& factors = matmul.factors;
    check(factors, "top-k matmul");
    const Plan plan(
        TopKShape{factors.m(), factors.n(), factors.k(), factors.count(), matmul.k, matmul.metric});
    const std::size_t results = plan.rows * matmul.k;
    const auto require_size = [&](const std::string& name, std::size_t size) {
        require(size == results, name + " has " + std::to_string(size) + " elements; expected " +
                                     std::to_string(results) + ", " + std::to_string(matmul.k) +
                                     " for each row");
    };
    require_size("values", matmul.values.size());
    require_size("indices", matmul.indices.size());
    return plan;
}

void require_scratch(const TopKMatmul& matmul, std::size_t needed) {
    require(matmul.scratch.size() >= needed, "scratch has " + std::to_string(matmul.scratch.size()) +
                                                 " elements; expected at least " + std::to_string(needed));
}

float sign_of(Order order) {
    return order == Order::kSmallest ? 1 : -1;
}

// Calls `work` with what is added up, as a type.
template <class Work>
void with_add(Metric metric, const Work& work) {
    if (metric == Metric::kDifferences) {
        work(AddSquaredDifference{});
    } else {
        work(course::MultiplyAdd{});
    }
}

template <class Rows>
void launch_selection(const Rows& rows, const Plan& plan, const TopKMatmul& matmul, cudaStream_t stream) {
    select_best<<<course::blocks_for(plan.rows, 1), kThreads, 0, stream>>>(
        rows, plan.size.k, sign_of(matmul.order), matmul.values.data(), matmul.indices.data());
    CUDA_CHECK_LAUNCH();
}

void launch_fused(const TopKMatmul& matmul, cudaStream_t stream) {
    const Plan plan = checked_plan(matmul);
    if (plan.rows == 0) return;
    require_scratch(matmul, plan.fused_words());
    Key* const lists = matmul.scratch.data() + plan.norm_words;
    const Pieces pieces{lists + plan.list_words(), plan.size.k};
    const ListBest epilogue{launch_distance(matmul.metric, matmul.factors, matmul.scratch.data(), stream),
                            sign_of(matmul.order),
                            plan.walk.down,
                            plan.size,
                            lists,
                            pieces};
    with_add(matmul.metric, [&]<class Add>(Add) {
        Matmul<T, 1, EqualShares<T>, ListBest, Add>().launch(plan.walk.blocks, matmul.factors, plan.walk,
                                                             epilogue, stream);
    });
    launch_selection(RowsOfPieces{pieces, plan.walk, matmul.factors.m()}, plan, matmul, stream);
}

void launch_unfused(const TopKMatmul& matmul, cudaStream_t stream) {
    const Plan plan = checked_plan(matmul);
    if (plan.rows == 0) return;
    require_scratch(matmul, plan.unfused_words());
    const Factors& factors = matmul.factors;
    const Distance distance = launch_distance(matmul.metric, factors, matmul.scratch.data(), stream);
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + plan.norm_words);
    const auto all = course::DeviceSpan<float>::from_device_pointer(distances, plan.rows * plan.n);
    const auto walk = every_tile<T>(factors);
    const WriteTile write{{.first = {all, factors.m(), factors.n()},
                           .count = factors.count(),
                           .stride = factors.m() * factors.n()},
                          1,
                          0};
    with_add(matmul.metric, [&]<class Add>(Add) {
        Matmul<T, 1, EveryTile<T>, WriteDistances, Add>().launch(walk.all, factors, walk, {distance, write},
                                                                 stream);
    });
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
            .flops = (shape.metric == Metric::kDifferences ? 3 : 2) * count * m * n * d};
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

}  // namespace day45
