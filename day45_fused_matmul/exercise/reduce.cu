// To work through: fill in what says TODO, then ./course check day45. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Day 45, part two: minima, maxima and sums of products that are never written.
//
//   version     idea                                                              limited by
//   unfused     the matrix of distances, then a pass over it                      8 bytes to and from memory for each element
//   fused       the reduction is the epilogue; a block keeps its rows' results    multiply-adds
//
// Along columns is along rows of the transposed product: only one of the two is written down here.
//
//   ./course run day45 --variant fused --size 512x512x64
#include <algorithm>
#include <array>
#include <stdexcept>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "distance.cuh"
#include "matmul.cuh"
#include "reduce.hpp"
#include "reductions.cuh"

namespace day45 {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMostShares = 32;

// --- Kernels ---------------------------------------------------------------------------------------------------------

// What groups of LANES neighbouring lanes know, in each of them.
template <class R, int LANES>
__device__ typename R::State merge_lanes(typename R::State state) {
    // TODO day45/rows, about 25 minutes.
    // What is to be avoided, first: the matrix of distances has been written, and a block for each of its
    // rows reads it again. Any reduction R will do (`reductions.cuh`): `R::nothing()` is what is known of no
    // elements, `R::merge(a, b)` what is known of both, `R::value(state)` and `R::col(state)` are the result.
    // `R::add(states, values, col)` adds elements: `states(i)` is a reference to the state of row `i` of
    // `values`, a matrix `float values[M][N]`, and column `j` of it is column `col(j)` of the row. Columns
    // must ascend. Each thread of `reduce_rows` has one row, so `M` is 1. Let it load four elements before it
    // adds them, each `kThreads` behind the one before; where the row has no more, `R::kNeutral` stands.
    //
    // `merge_lanes`: all lanes of a group of LANES neighbours call it, each with what it knows, and each gets
    // back what all of them know. `R::shuffled(state, distance)` is the state of the lane whose number
    // differs by an exclusive or with `distance`. The next exercise needs it, too.
    //
    // `indices` is null where nobody wants them.
    return {};
}

// The epilogue: what a thread knows of its rows is kept in shared memory, because registers are full of sums. At the end the lanes of
// a row put theirs together, and a part for each warp and block goes to memory: parts[part * rows + row], a row of any product.
template <class R>
struct ReduceRows {
    Distance distance;
    std::size_t rows;  // of all products
    unsigned rows_of_tiles;
    typename R::State* parts;

    template <class T>
    struct State {
        typename R::State (*row)[T::THREADS];
    };

    template <class T>
    __device__ State<T> begin() const {
        __shared__ typename R::State row[T::TM][T::THREADS];
#pragma unroll
        for (int i = 0; i < T::TM; ++i)
            row[i][threadIdx.x] = R::nothing();
        return {row};
    }

    template <class T>
    __device__ void take(State<T>& state, const Results<T>& at, float (&sums)[T::TM][T::TN]) const {
        // TODO day45/epilogue, about 40 minutes.
        // The reduction as an epilogue: the matrix of distances is never written. A block stays in its rows
        // and goes through their tiles from left to right. `begin` is given: what a thread knows of its row
        // `i` is `state.row[i][threadIdx.x]`, in shared memory, and nobody else's.
        //
        // `take` is given a finished tile. `distance.finish(at, sums)` makes distances of the sums. Then they
        // are added, with `R::add` as in `rows`; now `sums` is the matrix. But a tile may reach beyond the
        // last column, `distance.n`.
        //
        // `end`: the block has no more tiles. `T::LANES_N` neighbouring lanes have the same rows, and columns
        // of their own. `T::BN / T::WN` warps have the same rows, too, and `shares` blocks: block b has rows
        // of tile b % `rows_of_tiles`, and is the (b / `rows_of_tiles`)-th of those that do. Each warp writes
        // what it knows of a row to memory, as a part of that row: `parts[part * rows + row]`, where `row` is
        // one of all products' rows, product after product, `distance.m` in each. `walk.at(0)` is a tile of
        // the block's rows.
        //
        // `merge_parts`: a thread for each row puts its `count` parts together.
    }

    template <class T>
    __device__ void end(const State<T>& state, const typename ShareOfRow<T>::Walk& walk) const {
        // TODO day45/epilogue: this one too, see ReduceRows::take.
    }
};

// Idea: a thread for each row puts its parts together, always in the same order.
// Cost removed: atomics, and with them results that differ from run to run.
// Still limits it: memory, for parts that are few.
template <class R>
__global__ void merge_parts(const typename R::State* parts, unsigned count, std::size_t rows, float* values,
                            std::uint32_t* indices) {
    // TODO day45/epilogue: this one too, see ReduceRows::take.
}

// Idea: a block for each row of the matrix of distances.
// Cost removed: none; this is what is to be avoided.
// Still limits it: memory: the matrix is read, and was written.
template <class R>
__global__ __launch_bounds__(kThreads) void reduce_rows(const float* distances, std::size_t cols,
                                                        float* values, std::uint32_t* indices) {
    // TODO day45/rows: this one too, see merge_lanes.
}

// --- Launchers -------------------------------------------------------------------------------------------------------

// Blocks for each of `rows` rows of `across` tiles: as few as fill the GPU well. A block takes some time of its own, in tiles kStart.
unsigned best_shares(std::size_t rows, std::size_t across) {
    constexpr double kStart = 0.5;
    const auto time = [&](unsigned shares) {
        const auto rounds = course::ceil_div<std::size_t>(rows * shares, course::multiprocessors());
        return static_cast<double>(rounds) *
               (static_cast<double>(course::ceil_div<std::size_t>(across, shares)) + kStart);
    };
    unsigned best = 1;
    for (unsigned shares = 2; shares <= std::min<std::size_t>(kMostShares, across); ++shares) {
        if (time(shares) < time(best)) best = shares;
    }
    return best;
}

// Tiles of the product along rows.
template <class T>
ShareOfRow<T> share_of_row(std::size_t m, std::size_t n, std::size_t count) {
    const std::size_t down = course::ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = course::ceil_div<std::size_t>(n, T::BN);
    return {static_cast<unsigned>(down), static_cast<unsigned>(across), course::blocks_for(down * count, 1),
            best_shares(down * count, across)};
}

using T = LargeTile;
constexpr unsigned kWarpsAcross = T::BN / T::WN;

// The scratch memory holds the norms, and then the parts of each row or the matrix of distances.
struct Plan {
    std::size_t m, n, count;  // along rows
    std::size_t norm_words;
    ShareOfRow<T> tiles;

    Plan(std::size_t rows, std::size_t cols, std::size_t products, Metric metric)
        : m(rows),
          n(cols),
          count(products),
          norm_words(course::ceil_div<std::size_t>(norms_size(metric, m, n, count), 2)),
          tiles(share_of_row<T>(m, n, count)) {}

    std::size_t fused_words() const { return norm_words + m * count * tiles.shares * kWarpsAcross; }
    std::size_t unfused_words() const { return norm_words + course::ceil_div<std::size_t>(m * count * n, 2); }
};

Plan plan_of(const ReduceShape& shape) {
    return shape.along == Along::kRows ? Plan(shape.m, shape.n, shape.count, shape.metric)
                                       : Plan(shape.n, shape.m, shape.count, shape.metric);
}

Plan plan_of(const ReducedMatmul& matmul) {
    return {matmul.factors.m(), matmul.factors.n(), matmul.factors.count(), matmul.metric};
}

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("reduced matmul: " + message);
}

// The problem along rows, checked.
ReducedMatmul along_rows(const ReducedMatmul& given) {
    ReducedMatmul matmul = given;
    if (given.along == Along::kColumns) matmul.factors = transposed(given.factors);
    matmul.along = Along::kRows;
    const Factors& factors = matmul.factors;
    check(factors, "reduced matmul");
    const std::size_t results = factors.m() * factors.count();
    const bool is_extremum = given.reduction == Reduction::kMin || given.reduction == Reduction::kMax;
    require(matmul.values.size() == results, "values has " + std::to_string(matmul.values.size()) +
                                                 " elements; expected " + std::to_string(results) +
                                                 ", one for each result");
    require(matmul.indices.empty() || matmul.indices.size() == results,
            "indices has " + std::to_string(matmul.indices.size()) + " elements; expected " +
                std::to_string(results) + ", or none");
    require(matmul.indices.empty() || is_extremum,
            "there are indices, but a " + name(given.reduction) + " has none; expected no indices");
    require(!is_extremum || results == 0 || factors.n() > 0,
            "the " + name(given.reduction) + " of no elements is asked for; expected at least one");
    return matmul;
}

void require_scratch(const ReducedMatmul& matmul, std::size_t needed) {
    require(matmul.scratch.size() >= needed, "scratch has " + std::to_string(matmul.scratch.size()) +
                                                 " elements; expected at least " + std::to_string(needed));
}

// Calls `work` with the reduction, as a type.
template <class Work>
void with_reduction(Reduction reduction, const Work& work) {
    switch (reduction) {
        case Reduction::kMin:
            return work(Extremum<false>{});
        case Reduction::kMax:
            return work(Extremum<true>{});
        case Reduction::kSum:
            return work(Sum{});
        case Reduction::kLogSumExp:
            return work(LogSumExp{});
    }
}

// Null: nobody wants them.
std::uint32_t* indices_of(const ReducedMatmul& matmul) {
    return matmul.indices.empty() ? nullptr : matmul.indices.data();
}

void launch_fused(const ReducedMatmul& given, cudaStream_t stream) {
    const ReducedMatmul matmul = along_rows(given);
    const Factors& factors = matmul.factors;
    const std::size_t rows = factors.m() * factors.count();
    if (rows == 0) return;
    const Plan plan = plan_of(matmul);
    require_scratch(matmul, plan.fused_words());
    const Distance distance = launch_distance(matmul.metric, factors, matmul.scratch.data(), stream);
    with_reduction(matmul.reduction, [&]<class R>(R) {
        auto* const parts = reinterpret_cast<typename R::State*>(matmul.scratch.data() + plan.norm_words);
        with_add(matmul.metric, [&]<class Add>(Add) {
            Matmul<T, 1, ShareOfRow<T>, ReduceRows<R>, Add>().launch(
                plan.tiles.rows * plan.tiles.shares, factors, plan.tiles,
                {distance, rows, plan.tiles.rows, parts}, stream);
        });
        merge_parts<R><<<course::blocks_for(rows, kThreads), kThreads, 0, stream>>>(
            parts, plan.tiles.shares * kWarpsAcross, rows, matmul.values.data(), indices_of(matmul));
        CUDA_CHECK_LAUNCH();
    });
}

void launch_unfused(const ReducedMatmul& given, cudaStream_t stream) {
    const ReducedMatmul matmul = along_rows(given);
    const Factors& factors = matmul.factors;
    const std::size_t rows = factors.m() * factors.count();
    if (rows == 0) return;
    const Plan plan = plan_of(matmul);
    require_scratch(matmul, plan.unfused_words());
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + plan.norm_words);
    launch_distances(matmul.metric, factors, matmul.scratch.data(), distances, stream);
    with_reduction(matmul.reduction, [&]<class R>(R) {
        reduce_rows<R><<<course::blocks_for(rows, 1), kThreads, 0, stream>>>(
            distances, factors.n(), matmul.values.data(), indices_of(matmul));
        CUDA_CHECK_LAUNCH();
    });
}

course::Work work(const ReduceShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const double results = count * (shape.along == Along::kRows ? m : n);
    return {.bytes = sizeof(float) * (count * (m * k + k * n) + results),
            .written = sizeof(float) * results,
            .flops = (shape.metric == Metric::kDifferences ? 3 : 2) * count * m * n * k};
}

}  // namespace

std::string name(Reduction reduction) {
    switch (reduction) {
        case Reduction::kMin:
            return "min";
        case Reduction::kMax:
            return "max";
        case Reduction::kSum:
            return "sum";
        case Reduction::kLogSumExp:
            return "logsumexp";
    }
    throw std::invalid_argument("name: no such reduction: " + std::to_string(static_cast<int>(reduction)));
}

std::span<const Reduce> reduce_variants() {
    static const std::array list = {
        Reduce{.name = "unfused",
               .idea = "the matrix of distances, then a pass over it",
               .launcher = {launch_unfused,
                            [](const ReduceShape& shape) { return plan_of(shape).unfused_words(); }},
               .work = work},
        Reduce{
            .name = "fused",
            .idea = "the reduction is the epilogue",
            .launcher = {launch_fused, [](const ReduceShape& shape) { return plan_of(shape).fused_words(); }},
            .work = work},
    };
    return list;
}

}  // namespace day45
