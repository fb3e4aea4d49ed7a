// Day 46: minima, maxima and sums of products that are never written.
//
//   version     idea                                                              limited by
//   unfused     the matrix of distances, then a pass over it                      8 bytes to and from memory for each element
//   fused       the reduction is the epilogue; a block keeps its rows' results    multiply-adds
//
// Along columns is along rows of the transposed product: only one of the two is written down here.
//
//   ./course run day46 --variant fused --size 512x512x64
#include <algorithm>
#include <array>
#include <stdexcept>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "common/tile/distance.cuh"
#include "common/tile/fused_matmul.cuh"
#include "reduce_in_matmul.hpp"
#include "reductions.cuh"

namespace day46 {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMostShares = 32;

// A block has a share of one row of tiles: of `down` rows of tiles in each product, each is shared by `shares` blocks.
template <class T>
struct ShareOfRow {
    unsigned down;    // rows of tiles in one product
    unsigned across;  // tiles in a row
    unsigned rows;    // of tiles in all products
    unsigned shares;

    // This block's. Worked out once: a division takes as long as many multiply-adds.
    class Walk {
      public:
        __device__ explicit Walk(const ShareOfRow& all)
            : product_(blockIdx.x % all.rows / all.down),
              row_(blockIdx.x % all.rows % all.down),
              first_(all.begin_of(blockIdx.x / all.rows)),
              end_(all.begin_of(blockIdx.x / all.rows + 1)) {}

        __device__ unsigned first() const { return first_; }
        __device__ bool has(unsigned i) const { return i < end_; }
        __device__ unsigned next(unsigned i) const { return i + 1; }
        __device__ course::Tile at(unsigned i) const {
            return {product_, std::size_t{row_} * T::BM, std::size_t{i} * T::BN};
        }

      private:
        unsigned product_;
        unsigned row_;  // of tiles
        unsigned first_;
        unsigned end_;
    };
    __device__ Walk walk() const { return Walk(*this); }

  private:
    __device__ unsigned begin_of(unsigned share) const {
        return static_cast<unsigned>(std::size_t{share} * across / shares);
    }
};

// --- Kernels ---------------------------------------------------------------------------------------------------------

// What groups of LANES neighbouring lanes know, in each of them.
template <class R, int LANES>
__device__ typename R::State merge_lanes(typename R::State state) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        state = R::merge(state, R::shuffled(state, distance));
    return state;
}

// The epilogue: what a thread knows of its rows is kept in shared memory, because registers are full of sums. At the end the lanes of
// a row put theirs together, and a part for each warp and block goes to memory: parts[part * rows + row], a row of any product.
template <class R>
struct ReduceRows {
    course::Distance distance;
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
    __device__ void take(State<T>& state, const course::ThreadTileCoords<T>& at,
                         float (&sums)[T::TM][T::TN]) const {
        distance.finish(at, sums);
        const bool is_whole = at.tile.col + T::BN <= distance.n;
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; ++j) {
                if (!is_whole && at.col(j) >= distance.n) sums[i][j] = R::kNeutral;
            }
        }
        R::add(
            [&](int i) -> auto& { return state.row[i][threadIdx.x]; }, sums,
            [&](int j) { return at.col(j); });
    }

    template <class T>
    __device__ void end(const State<T>& state, const typename ShareOfRow<T>::Walk& walk) const {
        constexpr unsigned WARPS_N = T::BN / T::WN;
        const course::ThreadTileCoords<T> at{walk.at(0)};
        const unsigned part = blockIdx.x / rows_of_tiles * WARPS_N + threadIdx.x / 32 % WARPS_N;
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
            const typename R::State row = merge_lanes<R, T::LANES_N>(state.row[i][threadIdx.x]);
            if (threadIdx.x % T::LANES_N == 0 && at.row(i) < distance.m)
                parts[part * rows + at.tile.product * distance.m + at.row(i)] = row;
        }
    }
};

// Idea: a thread for each row puts its parts together, always in the same order.
// Cost removed: atomics, and with them results that differ from run to run.
// Still limits it: memory, for parts that are few.
template <class R>
__global__ void merge_parts(const typename R::State* parts, unsigned count, std::size_t rows, float* values,
                            std::uint32_t* indices) {
    const std::size_t row = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    typename R::State state = R::nothing();
#pragma unroll 8
    for (unsigned part = 0; part < count; ++part)
        state = R::merge(state, parts[part * rows + row]);
    values[row] = R::value(state);
    if (indices != nullptr) indices[row] = R::col(state);
}

// Idea: a block for each row of the matrix of distances.
// Cost removed: none; this is what is to be avoided.
// Still limits it: memory: the matrix is read, and was written.
template <class R>
__global__ __launch_bounds__(kThreads) void reduce_rows(const float* distances, std::size_t cols,
                                                        float* values, std::uint32_t* indices) {
    constexpr int AT_ONCE = 4;  // loads of a thread on their way
    __shared__ typename R::State of_warp[kThreads / course::kWarpSize];
    const float* const row = distances + blockIdx.x * cols;
    typename R::State state = R::nothing();
    for (std::size_t begin = threadIdx.x; begin < cols; begin += AT_ONCE * kThreads) {
        float some[1][AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j)
            some[0][j] = begin + j * kThreads < cols ? row[begin + j * kThreads] : R::kNeutral;
        R::add([at = &state](int) -> typename R::State& { return *at; }, some,
               [&](int j) { return begin + j * kThreads; });
    }
    state = merge_lanes<R, course::kWarpSize>(state);
    if (threadIdx.x % course::kWarpSize == 0) of_warp[threadIdx.x / course::kWarpSize] = state;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < kThreads / course::kWarpSize; ++warp)
        state = R::merge(state, of_warp[warp]);
    values[blockIdx.x] = R::value(state);
    if (indices != nullptr) indices[blockIdx.x] = R::col(state);
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

using T = course::LargeTile;
constexpr unsigned kWarpsAcross = T::BN / T::WN;

// The scratch memory holds the norms, and then the parts of each row or the matrix of distances.
struct Plan {
    std::size_t m, n, count;  // along rows
    std::size_t norm_words;
    ShareOfRow<T> tiles;

    Plan(std::size_t rows, std::size_t cols, std::size_t products, course::Metric metric)
        : m(rows),
          n(cols),
          count(products),
          norm_words(course::ceil_div<std::size_t>(course::norms_size(metric, m, n, count), 2)),
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

// The problem along rows, checked.
ReducedMatmul along_rows(const ReducedMatmul& given) {
    ReducedMatmul matmul = given;
    if (given.along == Along::kColumns) matmul.factors = course::transposed(given.factors);
    matmul.along = Along::kRows;
    const course::Factors& factors = matmul.factors;
    course::check_factors(factors, "reduced matmul");
    const std::size_t results = factors.m() * factors.count();
    const bool is_extremum = given.reduction == Reduction::kMin || given.reduction == Reduction::kMax;
    course::require(matmul.values.size() == results, "reduced matmul: values has ", matmul.values.size(),
                    " elements; expected ", results, ", one for each result");
    course::require(matmul.indices.empty() || matmul.indices.size() == results,
                    "reduced matmul: indices has ", matmul.indices.size(), " elements; expected ", results,
                    ", or none");
    course::require(matmul.indices.empty() || is_extremum, "reduced matmul: there are indices, but a ",
                    name(given.reduction), " has none; expected no indices");
    course::require(!is_extremum || results == 0 || factors.n() > 0, "reduced matmul: the ",
                    name(given.reduction), " of no elements is asked for; expected at least one");
    return matmul;
}

void require_scratch(const ReducedMatmul& matmul, std::size_t needed) {
    course::require(matmul.scratch.size() >= needed, "reduced matmul: scratch has ", matmul.scratch.size(),
                    " elements; expected at least ", needed);
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
    const course::Factors& factors = matmul.factors;
    const std::size_t rows = factors.m() * factors.count();
    if (rows == 0) return;
    const Plan plan = plan_of(matmul);
    require_scratch(matmul, plan.fused_words());
    const course::Distance distance =
        course::launch_distance(matmul.metric, factors, matmul.scratch.data(), stream);
    with_reduction(matmul.reduction, [&]<class R>(R) {
        auto* const parts = reinterpret_cast<typename R::State*>(matmul.scratch.data() + plan.norm_words);
        course::with_add(matmul.metric, [&]<class Add>(Add) {
            course::FusedMatmul<T, 1, ShareOfRow<T>, ReduceRows<R>, Add>().launch(
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
    const course::Factors& factors = matmul.factors;
    const std::size_t rows = factors.m() * factors.count();
    if (rows == 0) return;
    const Plan plan = plan_of(matmul);
    require_scratch(matmul, plan.unfused_words());
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + plan.norm_words);
    course::launch_distances(matmul.metric, factors, matmul.scratch.data(), distances, stream);
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
            .flops = (shape.metric == course::Metric::kDifferences ? 3 : 2) * count * m * n * k};
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

}  // namespace day46
