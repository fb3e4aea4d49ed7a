// Matrix products with few results in each (few_results.hpp).
//
//   kernel               for                                what limits it
//   multiply_by_lanes    thousands of tiny products         the launch; loads, each used once
//   multiply_part_of_k   a tile of results, and a deep K    the launches, and loads of 128 k at a time
//   add_parts            the second step of the latter      the launch
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/operands.hpp"
#include "common/device/warp.cuh"
#include "common/tile/few_results.hpp"

namespace course::few {

constexpr unsigned kThreads = 256;

// Integers are summed without a sign: they wrap, and the sum as an int has the same bits.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, unsigned, float>;

template <class T>
__device__ Wrapping<T> number(T element) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<unsigned>(static_cast<int>(element));
    } else {
        return static_cast<float>(element);
    }
}

// An operand of one product: element (i, k) of A, or (k, i) of B, is data[i * along_i + k *
// along_k].
template <class T>
struct Vectors {
    const T* data;
    std::size_t along_i, along_k;

    __device__ Wrapping<T> operator()(std::size_t i, std::size_t k) const {
        return number(data[i * along_i + k * along_k]);
    }
};

template <class T>
__device__ Vectors<T> rows_of_a(const OperandsOf<T>& operands, std::size_t product) {
    const DeviceMatrix<const T> a = operands.a[product];
    const std::size_t ld = a.leading_dimension();
    return operands.op_a == Op::kNone ? Vectors<T>{a.data(), ld, 1} : Vectors<T>{a.data(), 1, ld};
}

template <class T>
__device__ Vectors<T> columns_of_b(const OperandsOf<T>& operands, std::size_t product) {
    const DeviceMatrix<const T> b = operands.b[product];
    const std::size_t ld = b.leading_dimension();
    return operands.op_b == Op::kNone ? Vectors<T>{b.data(), 1, ld} : Vectors<T>{b.data(), ld, 1};
}

template <class T>
__device__ void store_result(FewSum<T>& c, Wrapping<T> sum, FewSum<T> alpha, FewSum<T> beta) {
    using S = Wrapping<T>;
    const S scaled = static_cast<S>(alpha) * sum;
    c = static_cast<FewSum<T>>(beta == 0 ? scaled : scaled + static_cast<S>(beta) * static_cast<S>(c));
}

// Which result of which product.
struct Place {
    unsigned product, row, col;
};
__device__ inline Place place_of(unsigned result, unsigned m, unsigned n) {
    const unsigned product = result / (m * n);
    const unsigned in_product = result - product * (m * n);
    return {product, in_product / n, in_product % n};
}

constexpr unsigned kAhead = 8;  // k whose elements are loaded before the first is multiplied

// Idea: kLanes adjacent lanes have a result. Each multiplies every kLanes-th k, and shuffles add
// up.
// Cost removed: tiles that are almost empty, and barriers.
// Still limits it: the launch, for tiny products. Each loaded element is used for one result.
template <class T, unsigned kLanes>
__global__ void __launch_bounds__(kThreads)
    multiply_by_lanes(OperandsOf<T> operands, Batch<FewSum<T>> c, FewSum<T> alpha, FewSum<T> beta,
                      unsigned results) {
    const std::size_t thread = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    const auto result = static_cast<unsigned>(thread / kLanes);
    const bool exists = thread / kLanes < results;
    const auto n = static_cast<unsigned>(operands.n());
    const Place at = exists ? place_of(result, static_cast<unsigned>(operands.m()), n) : Place{};
    Wrapping<T> sum = 0;
    if (exists) {
        const Vectors<T> a = rows_of_a(operands, at.product);
        const Vectors<T> b = columns_of_b(operands, at.product);
        const auto depth = alpha == 0 ? 0 : static_cast<unsigned>(operands.k());
        unsigned k = threadIdx.x % kLanes;
        for (; k + (kAhead - 1) * kLanes < depth; k += kAhead * kLanes) {
            Wrapping<T> of_a[kAhead];
            Wrapping<T> of_b[kAhead];
#pragma unroll
            for (unsigned i = 0; i < kAhead; ++i) {
                of_a[i] = a(at.row, k + i * kLanes);
                of_b[i] = b(at.col, k + i * kLanes);
            }
#pragma unroll
            for (unsigned i = 0; i < kAhead; ++i)
                sum += of_a[i] * of_b[i];
        }
        for (; k < depth; k += kLanes)
            sum += a(at.row, k) * b(at.col, k);
    }
    for (unsigned distance = kLanes / 2; distance > 0; distance /= 2)
        sum += __shfl_down_sync(kWholeWarp, sum, distance, kLanes);
    if (exists && threadIdx.x % kLanes == 0) store_result<T>(c[at.product](at.row, at.col), sum, alpha, beta);
}

constexpr unsigned kEdge = 16;                 // results of a tile, in both directions
constexpr unsigned kDepth = 128;               // k that a block loads at a time
constexpr unsigned kOwn = 4;                   // a thread adds to 4 x 4 results
constexpr unsigned kTeam = 16;                 // threads that together have all results of the tile
constexpr unsigned kTeams = kThreads / kTeam;  // each takes every 16th k
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kLoads = kEdge * kDepth / kThreads;  // of each operand, by each thread
constexpr unsigned kPitch = kEdge + 4;                  // rows stay 16-byte aligned

// Loads kDepth k of 16 rows of A, or columns of B, into registers, and stores them to shared memory
// as tile[k][i]. Adjacent threads load adjacent elements of memory, so either k or i is the same in
// all loads of a thread.
template <class T>
class Slab {
  public:
    // From k = `begin` to before `end`; from vector `first` to before `vectors`.
    __device__ Slab(const Vectors<T>& from, unsigned first, unsigned vectors, unsigned begin, unsigned end)
        : runs_along_k_(from.along_k == 1),
          k_(runs_along_k_ ? threadIdx.x % kDepth : threadIdx.x / kEdge),
          i_(runs_along_k_ ? threadIdx.x / kDepth : threadIdx.x % kEdge),
          k_step_(runs_along_k_ ? 0 : kThreads / kEdge),
          i_step_(runs_along_k_ ? kThreads / kDepth : 0),
          k_left_(end - begin),
          i_left_(vectors - first),
          next_(from.data + (std::size_t{first} + i_) * from.along_i +
                (std::size_t{begin} + k_) * from.along_k),
          to_next_load_(i_step_ * from.along_i + k_step_ * from.along_k),
          to_next_slab_(kDepth * from.along_k) {}

    // The next kDepth k; zero outside.
    __device__ void load() {
        const T* at = next_;
#pragma unroll
        for (unsigned load = 0; load < kLoads; ++load) {
            const bool exists = i_ + load * i_step_ < i_left_ && k_ + load * k_step_ < k_left_;
            loaded_[load] = exists ? number(*at) : Wrapping<T>{0};
            at += to_next_load_;
        }
        next_ += to_next_slab_;
        k_left_ = k_left_ > kDepth ? k_left_ - kDepth : 0;
    }

    __device__ void store(Wrapping<T> (&tile)[kDepth][kPitch]) const {
#pragma unroll
        for (unsigned load = 0; load < kLoads; ++load)
            tile[k_ + load * k_step_][i_ + load * i_step_] = loaded_[load];
    }

  private:
    bool runs_along_k_;
    unsigned k_, i_;            // of this thread's first load
    unsigned k_step_, i_step_;  // to the next one
    unsigned k_left_, i_left_;
    const T* next_;
    std::size_t to_next_load_, to_next_slab_;  // elements
    Wrapping<T> loaded_[kLoads];
};

// Idea: many blocks share the K of a tile of 16 x 16 results, and store what each has summed. In a
// block, 16 teams of threads share the K of a slab. A thread has 4 x 4 results in registers, so
// that eight elements from shared memory serve sixteen multiplications.
// Cost removed: one block, or the eight of a cluster, that work through a deep K while the others
// are idle.
// Still limits it: the latency of the loads; the next slab is loaded while this one is multiplied.
//
// parts[split][result] are the sums. `part` is how many k a block has.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    multiply_part_of_k(OperandsOf<T> operands, Wrapping<T>* parts, unsigned part, unsigned tiles_across,
                       unsigned tiles) {
    using S = Wrapping<T>;
    __shared__ union {
        struct {
            alignas(16) S a[kDepth][kPitch];
            alignas(16) S b[kDepth][kPitch];
        } slab;
        S of_warp[kWarps][kEdge][kEdge];
    } shared;
    const auto m = static_cast<unsigned>(operands.m());
    const auto n = static_cast<unsigned>(operands.n());
    const unsigned product = blockIdx.x / tiles;
    const unsigned tile = blockIdx.x % tiles;
    const unsigned first_row = tile / tiles_across * kEdge;
    const unsigned first_col = tile % tiles_across * kEdge;
    const Vectors<T> a = rows_of_a(operands, product);
    const Vectors<T> b = columns_of_b(operands, product);
    const auto depth = static_cast<unsigned>(operands.k());
    const unsigned begin = min(depth, blockIdx.y * part);
    const unsigned end = min(depth, begin + part);
    const unsigned team = threadIdx.x / kTeam;
    const unsigned own_row = threadIdx.x % kTeam / 4 * kOwn;
    const unsigned own_col = threadIdx.x % 4 * kOwn;

    S sums[kOwn][kOwn] = {};
    Slab<T> slab_of_a(a, first_row, m, begin, end);
    Slab<T> slab_of_b(b, first_col, n, begin, end);
    slab_of_a.load();
    slab_of_b.load();
    for (unsigned k = begin; k < end; k += kDepth) {
        slab_of_a.store(shared.slab.a);
        slab_of_b.store(shared.slab.b);
        __syncthreads();
        slab_of_a.load();
        slab_of_b.load();
        for (unsigned step = team; step < kDepth; step += kTeams)
#pragma unroll
            for (unsigned i = 0; i < kOwn; ++i)
#pragma unroll
                for (unsigned j = 0; j < kOwn; ++j)
                    sums[i][j] += shared.slab.a[step][own_row + i] * shared.slab.b[step][own_col + j];
        __syncthreads();  // all have read the slab
    }

    // A warp has two teams.
    for (unsigned i = 0; i < kOwn; ++i) {
        for (unsigned j = 0; j < kOwn; ++j) {
            const S of_both = sums[i][j] + __shfl_xor_sync(kWholeWarp, sums[i][j], kTeam);
            if (threadIdx.x % 32 < kTeam)
                shared.of_warp[threadIdx.x / 32][own_row + i][own_col + j] = of_both;
        }
    }
    __syncthreads();
    const unsigned row = threadIdx.x / kEdge;
    const unsigned col = threadIdx.x % kEdge;
    if (first_row + row >= m || first_col + col >= n) return;
    S sum = 0;
    for (unsigned warp = 0; warp < kWarps; ++warp)
        sum += shared.of_warp[warp][row][col];
    const std::size_t results = std::size_t{gridDim.x / tiles} * m * n;
    const std::size_t result = (std::size_t{product} * m + first_row + row) * n + first_col + col;
    parts[blockIdx.y * results + result] = sum;
}

constexpr unsigned kTogether = 8;                   // results of a block of add_parts()
constexpr unsigned kAdders = kThreads / kTogether;  // threads that share the parts of a result

// Adds the sums of the parts, always in the same order, and stores C.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_parts(const Wrapping<T>* parts, unsigned splits, Batch<FewSum<T>> c, FewSum<T> alpha, FewSum<T> beta,
              unsigned m, unsigned n, unsigned results) {
    __shared__ Wrapping<T> sums[kAdders][kTogether];
    const unsigned own = threadIdx.x % kTogether;
    const unsigned adder = threadIdx.x / kTogether;
    const std::size_t result = std::size_t{blockIdx.x} * kTogether + own;
    const unsigned end = result < results ? splits : 0;
    Wrapping<T> sum = 0;
#pragma unroll 4
    for (unsigned split = adder; split < end; split += kAdders)
        sum += parts[std::size_t{split} * results + result];
    sums[adder][own] = sum;
    __syncthreads();
    if (adder > 0 || result >= results) return;
#pragma unroll
    for (unsigned other = 1; other < kAdders; ++other)
        sum += sums[other][own];
    const Place at = place_of(static_cast<unsigned>(result), m, n);
    store_result<T>(c[at.product](at.row, at.col), sum, alpha, beta);
}

}  // namespace course::few
