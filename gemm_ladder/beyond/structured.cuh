// SYRK, SYMM and TRMM: products with a matrix of which half is known.
//
// Change:     a block has a tile of C, and loops only over those steps along K that are not known to
//             be zero (TRMM); there are blocks only for tiles of the triangle (SYRK); the operand
//             that is symmetric is loaded from the triangle that is stored (SYMM).
// Why:        SYRK and TRMM need half of the multiply-adds of the full product; SYMM needs all of
//             them, but half of the memory.
// Prediction: 4096, 132 SMs: SYRK has 528 tiles of 128 x 128, two full waves of two blocks per SM,
//             where the full product has 3.88: half its time. TRMM: as many steps, and rows of tiles
//             of any length; long ones first, so that the blocks end at about the same time. SYMM:
//             as long as the full product.
// Measured:   4096, H200: the full product of step 14 takes 2.62 ms. SYRK takes 1.53 ms, and of a
//             transposed A 1.36 (1.72 and 1.92 times as fast); TRMM 1.56 (1.67 times). SYMM takes
//             2.95 ms, not as long as the full product. cuBLAS: 1.76, 1.58, 1.74 and 3.30 ms. At
//             1024, SYRK and TRMM on small tiles are slower than the full product: 73 and 75 µs
//             beside 55.
// Limit:      not profiled yet. SYRK of A has two K-major operands, which are copied float by float,
//             and is 12 % slower than SYRK of a transposed A, whose copies are float4.
// Next:       equal shares of the steps (step 13) for small sizes; copies without a loop for the
//             tiles that TRMM's diagonal crosses.
//
// In one picture, for tiles of BM x BM; the numbers of TRMM are steps of BM along K:
//
//     SYRK, lower: 10 blocks         TRMM, lower A on the left: 16 blocks
//     0                              1 1 1 1
//     1 2                            2 2 2 2
//     3 4 5                          3 3 3 3
//     6 7 8 9                        4 4 4 4      <- these start first
//
// The main loop is that of step 12, with the stages and fragments of common/tile/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/fragments.cuh"
#include "common/tile/loader.cuh"
#include "common/tile/tile_order.cuh"
#include "common/tile/tile_shape.cuh"
#include "structured.hpp"

namespace gemm {

// --- The operands --------------------------------------------------------------------------------

enum class Form { kGeneral, kSymmetric, kTriangular };

// One of the two operands. Its element (e, k) is that of row or column e of C, and of k: A(e, k) on
// the left, B(k, e) on the right.
struct StructuredOperand {
    course::DeviceMatrix<const float> matrix{};
    bool k_major = true;  // element (e, k) is matrix(e, k), otherwise matrix(k, e)
    Form form = Form::kGeneral;
    bool below = true;      // not general: stored where k <= e, otherwise where k >= e
    bool unit = false;      // triangular: ones on the diagonal
    bool in_packs = false;  // rows are 16-byte aligned, and whole numbers of float4

    __host__ __device__ std::size_t extent() const { return k_major ? matrix.rows() : matrix.cols(); }

    __device__ const float& stored(std::size_t e, std::size_t k) const {
        return k_major ? matrix(e, k) : matrix(k, e);
    }
    __device__ bool is_stored(std::size_t e, std::size_t k) const { return below ? k <= e : k >= e; }

    // The k of elements (e, k) that may differ from 0.
    __device__ std::size_t begin(std::size_t e) const { return form == Form::kTriangular && !below ? e : 0; }
    __device__ std::size_t end(std::size_t e, std::size_t depth) const {
        return form == Form::kTriangular && below ? min(e + 1, depth) : depth;
    }

    // Element (e, k), by definition. With kTriangular only where it may differ from 0.
    __device__ float element(std::size_t e, std::size_t k) const {
        if (form == Form::kTriangular && unit && e == k) return 1;
        if (form == Form::kSymmetric && !is_stored(e, k)) return stored(k, e);
        return stored(e, k);
    }
};

// What is known of an operand when the kernel is compiled.
enum class Layout { kRows, kColumns, kSquare };  // K-major; MN-major; symmetric or triangular

// A thread's copies of the tiles of one operand: EXTENT of e, T::BK of k.
//
// K-major rows are copied float by float, and become columns of the stage. MN-major ones stay rows:
// float4 by float4 if they are aligned. So a symmetric matrix is K-major on one side of its
// diagonal and MN-major on the other.
template <class T, int EXTENT, Layout LAYOUT>
class StructuredCopies {
    static constexpr int BK = T::BK;
    static constexpr int ROWS = T::THREADS / BK;      // K-major: rows of a pass of all threads
    static constexpr int DEEP = T::THREADS / EXTENT;  // MN-major, float by float: values of k of a pass
    static constexpr int QUADS = EXTENT / 4;          // MN-major, float4 by float4: those of one k
    static constexpr int DEEP_QUADS = T::THREADS / QUADS;
    static_assert(EXTENT % ROWS == 0 && T::THREADS % EXTENT == 0 && BK % DEEP == 0 && BK % DEEP_QUADS == 0,
                  "StructuredCopies: every thread must copy the same number of floats");
    static constexpr int STRIDE = EXTENT + course::Stage<T>::PAD;

  public:
    __device__ StructuredCopies(const StructuredOperand& operand, std::size_t first, std::size_t depth)
        : operand_(operand),
          first_(first),
          depth_(depth),
          inside_(static_cast<int>(min(operand.extent() - first, std::size_t{EXTENT}))) {}

    // The steps that this tile needs: from the first k on, which is a multiple of BK, to the last.
    __device__ std::size_t begin() const {
        return operand_.form == Form::kTriangular && !operand_.below ? first_ : 0;
    }
    __device__ std::size_t end() const {
        return operand_.form == Form::kTriangular && operand_.below ? min(first_ + EXTENT, depth_) : depth_;
    }

    // Issues the copies of elements (first..., k...). Out-of-range elements are zero-filled.
    __device__ void issue(std::size_t k, float (&tile)[BK][STRIDE]) const {
        if constexpr (LAYOUT == Layout::kRows) {
            rows(k, tile);
        } else if constexpr (LAYOUT == Layout::kColumns) {
            columns(k, tile);
        } else {
            const bool all_below = k + BK <= first_ + 1;      // k <= e for all of them
            const bool all_above = first_ + EXTENT <= k + 1;  // k >= e
            if (!all_below && !all_above) {
                on_diagonal(k, tile);
            } else if (operand_.k_major ==
                       (operand_.form == Form::kTriangular || all_below == operand_.below)) {
                rows(k, tile);
            } else {
                columns(k, tile);
            }
        }
    }

  private:
    __device__ bool is_whole(std::size_t k) const { return inside_ == EXTENT && k + BK <= depth_; }
    __device__ int deep(std::size_t k) const { return static_cast<int>(min(depth_ - k, std::size_t{BK})); }

    __device__ void rows(std::size_t k, float (&tile)[BK][STRIDE]) const {
        const int e = static_cast<int>(threadIdx.x) / BK;
        const int thread_k = static_cast<int>(threadIdx.x) % BK;
        const std::size_t pitch = operand_.matrix.leading_dimension();
        const float* from = operand_.matrix.data() + (first_ + e) * pitch + k + thread_k;
        const std::size_t step = ROWS * pitch;
        if (is_whole(k)) {
#pragma unroll
            for (int n = 0; n < EXTENT / ROWS; ++n)
                course::ptx::cp_async_4(&tile[thread_k][e + n * ROWS], from + n * step);
        } else {
            const bool in_depth = thread_k < deep(k);
#pragma unroll
            for (int n = 0; n < EXTENT / ROWS; ++n) {
                course::ptx::cp_async_4(&tile[thread_k][e + n * ROWS], from + n * step,
                                        in_depth && e + n * ROWS < inside_);
            }
        }
    }

    __device__ void columns(std::size_t k, float (&tile)[BK][STRIDE]) const {
        const std::size_t pitch = operand_.matrix.leading_dimension();
        if (operand_.in_packs) {
            const int thread_k = static_cast<int>(threadIdx.x) / QUADS;
            const int e = static_cast<int>(threadIdx.x) % QUADS * 4;
            const float* const from = operand_.matrix.data() + (k + thread_k) * pitch + first_ + e;
            const int valid = e < inside_ ? deep(k) : 0;
#pragma unroll
            for (int n = 0; n < BK; n += DEEP_QUADS) {
                course::ptx::cp_async_16(&tile[thread_k + n][e], from + n * pitch,
                                         thread_k + n < valid ? 16 : 0);
            }
        } else {
            const int thread_k = static_cast<int>(threadIdx.x) / EXTENT;
            const int e = static_cast<int>(threadIdx.x) % EXTENT;
            const float* const from = operand_.matrix.data() + (k + thread_k) * pitch + first_ + e;
            const int valid = e < inside_ ? deep(k) : 0;
#pragma unroll
            for (int n = 0; n < BK; n += DEEP) {
                course::ptx::cp_async_4(&tile[thread_k + n][e], from + n * pitch, thread_k + n < valid);
            }
        }
    }

    // A tile that the diagonal crosses: each element is looked up. 1 is stored, not copied.
    __device__ void on_diagonal(std::size_t k, float (&tile)[BK][STRIDE]) const {
        const int thread_k = static_cast<int>(threadIdx.x) % BK;
        const std::size_t this_k = k + thread_k;
#pragma unroll 1
        for (int e = static_cast<int>(threadIdx.x) / BK; e < EXTENT; e += ROWS) {
            const std::size_t this_e = first_ + e;
            float* const to = &tile[thread_k][e];
            const bool stored = operand_.is_stored(this_e, this_k);
            const bool in_range = e < inside_ && this_k < depth_;
            if (operand_.form == Form::kTriangular && operand_.unit && this_e == this_k && in_range) {
                *to = 1;
            } else if (operand_.form == Form::kSymmetric && !stored) {
                course::ptx::cp_async_4(
                    to, in_range ? &operand_.stored(this_k, this_e) : operand_.matrix.data(), in_range);
            } else {
                const bool valid = in_range && stored;
                course::ptx::cp_async_4(to, valid ? &operand_.stored(this_e, this_k) : operand_.matrix.data(),
                                        valid);
            }
        }
    }

    const StructuredOperand& operand_;
    std::size_t first_;
    std::size_t depth_;
    int inside_;  // of EXTENT that are in range
};

// --- The tiles -----------------------------------------------------------------------------------

// Which tile a block has.
struct StructuredTiles {
    enum class Order {
        kRows,      // row after row
        kLastRow,   // the same from the last row on
        kLastCol,   // column after column, from the last one on
        kFirstCol,  // column after column
        kLower,     // the lower triangle, row after row
        kUpper,     // the upper triangle, column after column
    };
    Order order;
    unsigned down;
    unsigned across;

    struct At {
        unsigned row;
        unsigned col;
    };

    __host__ __device__ std::size_t count() const {
        return order == Order::kLower || order == Order::kUpper ? std::size_t{down} * (down + 1) / 2
                                                                : std::size_t{down} * across;
    }
    __host__ __device__ At at(unsigned i) const {
        if (order == Order::kLower || order == Order::kUpper) {
            const unsigned line = row_in_triangle(i);
            const auto place = static_cast<unsigned>(i - std::size_t{line} * (line + 1) / 2);
            return order == Order::kLower ? At{line, place} : At{place, line};
        }
        if (order == Order::kFirstCol) return {i % down, i / down};
        if (order == Order::kLastCol) return {i % down, across - 1 - i / down};
        return {order == Order::kRows ? i / across : down - 1 - i / across, i % across};
    }
};

// C = alpha left right + beta C.
struct StructuredProduct {
    StructuredOperand left{};
    StructuredOperand right{};
    course::DeviceMatrix<float> c;
    std::size_t depth = 0;  // K
    float alpha = 1;
    float beta = 0;
    StructuredTiles tiles{};

    // Is element (row, col) of C written?
    __device__ bool writes(std::size_t row, std::size_t col) const {
        if (row >= c.rows() || col >= c.cols()) return false;
        return tiles.order == StructuredTiles::Order::kLower   ? col <= row
               : tiles.order == StructuredTiles::Order::kUpper ? row <= col
                                                               : true;
    }
    __device__ float updated(float sum, const float& before) const {
        return beta == 0 ? alpha * sum : alpha * sum + beta * before;
    }
};

// --- The kernel ----------------------------------------------------------------------------------

// sums += the product of `steps` steps along K; issue(step, stage) issues the copies of one. As in
// step 12: T::STAGES - 1 steps are in flight while one is multiplied.
template <class T, class Issue>
__device__ void multiply_steps(int steps, Issue issue, course::Stage<T>* stages,
                               float (&sums)[T::TM][T::TN]) {
    static_assert(T::BK % 2 == 0,
                  "multiply_steps: BK must be even: fragments are back at 0 when a step ends");
    constexpr int AHEAD = T::STAGES - 1;
    const course::Place place = course::place_of_thread<T>(static_cast<int>(threadIdx.x));
#pragma unroll
    for (int step = 0; step < AHEAD; ++step) {
        if (step < steps) issue(step, stages[step]);
        course::ptx::cp_async_commit();
    }
    // The last step reads one row of a stage that nothing may have filled: with K = 0, all of it.
    if (steps < T::STAGES) {
        for (int i = static_cast<int>(threadIdx.x); i < T::BM; i += T::THREADS)
            stages[steps].a[0][i] = 0;
        for (int i = static_cast<int>(threadIdx.x); i < T::BN; i += T::THREADS)
            stages[steps].b[0][i] = 0;
    }
    course::ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete

    course::Fragments<T> fragments[2];
    fragments[0].read(stages[0], 0, place);
    int full = 0;
    int free = AHEAD;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == T::COPY_AT) {
                if (step + AHEAD < steps) issue(step + AHEAD, stages[free]);
                course::ptx::cp_async_commit();
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == T::BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete; this one is safe to overwrite
                full = full + 1 == T::STAGES ? 0 : full + 1;
            }
            course::multiply_and_read_ahead<T>(fragments[k % 2], sums, fragments[(k + 1) % 2], stages[full],
                                               (k + 1) % T::BK, place);
        }
    }
}

// Is none of a thread's sums Inf or NaN? 0 times a number is 0; 0 times Inf or NaN is NaN.
template <int TM, int TN>
__device__ bool are_finite(const float (&sums)[TM][TN]) {
    float zero = 0;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j)
            zero += 0 * sums[i][j];
    }
    return zero == 0;
}

// Epilogue: C of the tile. `whole`: all of its elements are written.
template <class T>
__device__ void update_tile(const StructuredProduct& product, const course::ThreadTileCoords<T>& at,
                            bool whole, const float (&sums)[T::TM][T::TN]) {
    if (whole && course::has_aligned_rows(product.c)) {
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; j += 4) {
                float* const to = &product.c(at.row(i), at.col(j));
                course::Pack<float, 4> four{};
                if (product.beta != 0) four = course::Pack<float, 4>::load(to);
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    four.value[n] = product.updated(sums[i][j + n], four.value[n]);
                four.store(to);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; ++j) {
                if (!product.writes(at.row(i), at.col(j))) continue;
                float& element = product.c(at.row(i), at.col(j));
                element = product.updated(sums[i][j], element);
            }
        }
    }
}

// The tile at (row, col), element by element, from the elements alone that differ from 0 by
// definition: slow, but needed only for Inf and NaN.
template <class T>
__device__ void update_tile_by_definition(const StructuredProduct& product, std::size_t first_row,
                                          std::size_t first_col) {
    for (int i = static_cast<int>(threadIdx.x); i < T::BM * T::BN; i += T::THREADS) {
        const std::size_t row = first_row + i / T::BN;
        const std::size_t col = first_col + i % T::BN;
        if (!product.writes(row, col)) continue;
        const std::size_t begin = max(product.left.begin(row), product.right.begin(col));
        const std::size_t end =
            min(product.left.end(row, product.depth), product.right.end(col, product.depth));
        float sum = 0;
        for (std::size_t k = begin; k < end; ++k)
            sum += product.left.element(row, k) * product.right.element(col, k);
        float& element = product.c(row, col);
        element = product.updated(sum, element);
    }
}

// Idea: a block computes one tile, from the steps along K in which neither operand is zero.
// Cost removed: half of the multiply-adds (SYRK, TRMM).
//
// A tile that the diagonal of a triangular operand crosses multiplies zeros, too, with elements of
// the other operand that its results do not depend on. 0 times Inf or NaN is NaN. So if a sum is
// not finite, the block computes its tile again by definition.
template <class T, int BLOCKS, Layout LEFT, Layout RIGHT>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_structured(
    const __grid_constant__ StructuredProduct product) {
    extern __shared__ float4 shared[];
    const StructuredTiles::At tile = product.tiles.at(blockIdx.x);
    const std::size_t row = std::size_t{tile.row} * T::BM;
    const std::size_t col = std::size_t{tile.col} * T::BN;
    const StructuredCopies<T, T::BM, LEFT> left(product.left, row, product.depth);
    const StructuredCopies<T, T::BN, RIGHT> right(product.right, col, product.depth);
    const std::size_t begin = max(left.begin(), right.begin());
    const std::size_t end = min(left.end(), right.end());
    const int steps = begin < end ? static_cast<int>(course::ceil_div<std::size_t>(end - begin, T::BK)) : 0;

    float sums[T::TM][T::TN] = {};
    multiply_steps<T>(
        steps,
        [&](int step, course::Stage<T>& stage) {
            const std::size_t k = begin + static_cast<std::size_t>(step) * T::BK;
            left.issue(k, stage.a);
            right.issue(k, stage.b);
        },
        reinterpret_cast<course::Stage<T>*>(shared), sums);

    if constexpr (LEFT == Layout::kSquare || RIGHT == Layout::kSquare) {
        const bool has_zeros =
            product.left.form == Form::kTriangular || product.right.form == Form::kTriangular;
        if (has_zeros && __syncthreads_or(are_finite(sums) ? 0 : 1) != 0) {
            update_tile_by_definition<T>(product, row, col);
            return;
        }
    }
    const course::ThreadTileCoords<T> at{{0, row, col}};
    // All of the tile is written if two of its corners are: they are the first to leave a triangle.
    const bool whole = product.writes(row + T::BM - 1, col) && product.writes(row, col + T::BN - 1) &&
                       row + T::BM <= product.c.rows() && col + T::BN <= product.c.cols();
    update_tile<T>(product, at, whole, sums);
}

// A block for each tile.
template <class T, int BLOCKS, Layout LEFT, Layout RIGHT>
void launch_multiply_structured(const StructuredProduct& product, cudaStream_t stream) {
    constexpr std::size_t kShared = sizeof(course::Stage<T>) * T::STAGES;
    course::launch(multiply_structured<T, BLOCKS, LEFT, RIGHT>,
                   {course::blocks_for(product.tiles.count(), 1), T::THREADS, kShared, stream}, product);
}

}  // namespace gemm
