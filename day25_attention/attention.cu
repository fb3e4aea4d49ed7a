// Day 25: attention, softmax(Q K^T / sqrt(d)) V, from its parts.                              PMPP chapters 5, 6, 10, 16
//
//   part                         files                         what it adds
//   1  scoring functions         scores.*                      how well does each encoder state match the decoder's?
//   2  self-attention            self_attention.*              a score for each pair of tokens, softmax, weighted sum
//   3  the layer                 attention_layer.*             heads, projections, biases, masks, Xavier
//
// This file has the kernels that several parts need, and what limits them:
//
//   multiply          A B or A B^T, any shape; Tile decides                    shared memory; the ladder goes further
//   softmax_*_rows    masked softmax of every row of the scores, in place      memory: read and written once more
//   transpose_tiles   through shared memory, so that both sides are rows       memory
//   fill_rows         the bias in every row, for a product to add to           memory
//   multiply_rows     a matrix times a vector: a warp per row                  memory: every weight is used once
//
//   ./course run day25                                          all parts, verified and timed
//   ./course run day25 --size 1x1x2048x512                      batch x heads x tokens x columns of a head
#include <algorithm>
#include <array>
#include <limits>

#include "attention.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "matmul_tile.cuh"

namespace day25 {

using course::DeviceMatrix;
using course::DeviceSpan;

namespace {

// --- Matrix products -------------------------------------------------------------------------------------------------

// Idea: tiles of both factors in shared memory, TM x TN results per thread in registers; B transposed is only loaded differently.
// Cost removed: with 32 x 32 x 1 x 1, 31 of 32 global loads; with 64 x 64 and 4 x 4 also 3 of 4 shared loads.
// Still limits it: shared loads, and a load that nothing is computed during. The ladder's later steps remove both.
template <class Tile, bool TRANSPOSE_B>
__global__ void __launch_bounds__(Tile::THREADS)
    multiply(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c, float alpha,
             float beta) {
    __shared__ typename Tile::Shared shared;
    const std::size_t tiles_across = course::ceil_div<std::size_t>(c.cols(), Tile::BN);
    const std::size_t row0 = blockIdx.x / tiles_across * Tile::BM;
    const std::size_t col0 = blockIdx.x % tiles_across * Tile::BN;

    Tile tile;
    tile.template multiply<TRANSPOSE_B>(a, b, row0, col0, shared);

    for (int i = 0; i < Tile::TM; ++i) {
        for (int j = 0; j < Tile::TN; ++j) {
            const std::size_t row = row0 + Tile::row() + i * Tile::ROWS;
            const std::size_t col = col0 + Tile::col() + j * Tile::COLS;
            if (row >= c.rows() || col >= c.cols()) continue;
            const float old = beta == 0 ? 0.0f : beta * c(row, col);
            c(row, col) = alpha * tile.sum[i][j] + old;
        }
    }
}

// --- Softmax -----------------------------------------------------------------------------------------------------------

constexpr int kSoftmaxThreads = 256;
constexpr int kSoftmaxWarps = kSoftmaxThreads / course::kWarpSize;
constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// op over the values of all threads of the block, the result in every thread. `parts` is not used for anything else.
template <class Op>
__device__ float block_reduce(float value, Op op, float (&parts)[kSoftmaxWarps]) {
    value = course::warp_reduce(value, op);
    if (threadIdx.x % course::kWarpSize == 0) parts[threadIdx.x / course::kWarpSize] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < kSoftmaxWarps; ++i)
        value = op(value, parts[i]);
    return value;
}

// The keys that one row's query sees.
struct Visible {
    std::size_t end;              // none from here on
    const std::uint8_t* padding;  // or null

    __device__ bool operator()(std::size_t key) const {
        return key < end && (padding == nullptr || padding[key] == 0);
    }
};

// What row r of the scores needs to know about its mask.
struct MaskedRows {
    std::size_t rows_per_batch;
    std::size_t queries;
    bool causal;
    const std::uint8_t* padding;

    __device__ Visible visible(std::size_t row, std::size_t keys) const {
        return {causal ? ::min(keys, row % queries + 1) : keys,
                padding == nullptr ? nullptr : padding + row / rows_per_batch * keys};
    }
};

// Calls body(pack, key) for the packs of a row that this thread has.
template <int WIDTH, class Body>
__device__ void for_each_pack(const float* row, std::size_t end, Body body) {
    for (std::size_t key = threadIdx.x * WIDTH; key < end; key += kSoftmaxThreads * WIDTH)
        body(course::Pack<float, WIDTH>::load(row + key), key);
}

// What softmax is over a row whose maximum is `max`. Where all that is seen is -Inf, or nothing is: anything but -Inf - (-Inf).
struct Exponential {
    float shift;

    explicit __device__ Exponential(float max) : shift(max == -kInfinity ? 0.0f : max) {}
    __device__ float operator()(float x) const { return exp2f((x - shift) * kLog2E); }
    static __device__ float scale(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }
};

// Idea: a block per row, which its threads keep in registers, PACKS packs each: maximum, sum of exponentials, quotient. A masked score is passed
// over, never read as a number.
// Cost removed: a pass that would write -Inf into masked scores; with a causal mask, reading what lies beyond the diagonal.
// Still limits it: memory, once in and once out.
template <int WIDTH, int PACKS>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax_short_rows(DeviceMatrix<float> scores, MaskedRows rows) {
    __shared__ float maxima[kSoftmaxWarps];
    __shared__ float sums[kSoftmaxWarps];
    float* const row = scores.data() + blockIdx.x * scores.leading_dimension();
    const Visible visible = rows.visible(blockIdx.x, scores.cols());
    course::Pack<float, WIDTH> x[PACKS];
    const auto key = [](int pack) { return (pack * kSoftmaxThreads + threadIdx.x) * WIDTH; };

    float max = -kInfinity;
    for (int p = 0; p < PACKS; ++p)
        if (key(p) < visible.end) x[p] = course::Pack<float, WIDTH>::load(row + key(p));
    for (int p = 0; p < PACKS; ++p) {
        for (int i = 0; i < WIDTH; ++i) {
            x[p].value[i] = visible(key(p) + i) ? x[p].value[i] : -kInfinity;
            max = fmaxf(max, x[p].value[i]);
        }
    }
    const Exponential exponential(block_reduce(max, Max{}, maxima));

    float sum = 0;
    for (int p = 0; p < PACKS; ++p)
        for (int i = 0; i < WIDTH; ++i)
            sum += x[p].value[i] = exponential(x[p].value[i]);
    const float scale = Exponential::scale(block_reduce(sum, Sum{}, sums));

    for (int p = 0; p < PACKS; ++p) {
        for (int i = 0; i < WIDTH; ++i)
            x[p].value[i] = visible(key(p) + i) ? x[p].value[i] * scale : 0.0f;
        if (key(p) < scores.cols()) x[p].store(row + key(p));
    }
}

// Idea: the same for rows of any length, which are read three times.
// Cost removed: the registers, and with them the limit.
// Still limits it: memory; of the second and third time the L1 cache answers what fits.
template <int WIDTH>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax_long_rows(DeviceMatrix<float> scores, MaskedRows rows) {
    __shared__ float maxima[kSoftmaxWarps];
    __shared__ float sums[kSoftmaxWarps];
    float* const row = scores.data() + blockIdx.x * scores.leading_dimension();
    const Visible visible = rows.visible(blockIdx.x, scores.cols());

    float max = -kInfinity;
    for_each_pack<WIDTH>(row, visible.end, [&](const auto& x, std::size_t key) {
        for (int i = 0; i < WIDTH; ++i)
            max = visible(key + i) ? fmaxf(max, x.value[i]) : max;
    });
    const Exponential exponential(block_reduce(max, Max{}, maxima));

    float sum = 0;
    for_each_pack<WIDTH>(row, visible.end, [&](const auto& x, std::size_t key) {
        for (int i = 0; i < WIDTH; ++i)
            sum += visible(key + i) ? exponential(x.value[i]) : 0.0f;
    });
    const float scale = Exponential::scale(block_reduce(sum, Sum{}, sums));

    for_each_pack<WIDTH>(row, scores.cols(), [&](auto x, std::size_t key) {
        for (int i = 0; i < WIDTH; ++i)
            x.value[i] = visible(key + i) ? exponential(x.value[i]) * scale : 0.0f;
        x.store(row + key);
    });
}

// --- Moving ------------------------------------------------------------------------------------------------------------

constexpr int kTransposeTile = 32;
constexpr int kTransposeRows = 8;

// Idea: a 32 x 32 tile is read along its rows and written along its columns, which it changes between in shared memory.
// Cost removed: scattered writes, 4 useful bytes in a sector of 32.
// Still limits it: memory.
__global__ void transpose_tiles(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    __shared__ float tile[kTransposeTile][kTransposeTile + 1];
    const std::size_t tiles_across = course::ceil_div<std::size_t>(in.cols(), kTransposeTile);
    const std::size_t row0 = blockIdx.x / tiles_across * kTransposeTile;
    const std::size_t col0 = blockIdx.x % tiles_across * kTransposeTile;
    const unsigned x = threadIdx.x;
    for (unsigned y = threadIdx.y; y < kTransposeTile; y += kTransposeRows)
        if (row0 + y < in.rows() && col0 + x < in.cols()) tile[y][x] = in(row0 + y, col0 + x);
    __syncthreads();
    for (unsigned y = threadIdx.y; y < kTransposeTile; y += kTransposeRows)
        if (col0 + y < out.rows() && row0 + x < out.cols()) out(col0 + y, row0 + x) = tile[x][y];
}

constexpr int kFillThreads = 256;
constexpr int kFillRows = 8;

// Idea: a thread keeps its pack of the row and writes it to several rows.
// Cost removed: reading the row again for each.
// Still limits it: memory: everything is written once, and read again by the product.
template <int WIDTH>
__global__ void __launch_bounds__(kFillThreads)
    fill_rows_kernel(DeviceSpan<const float> row, DeviceMatrix<float> out, unsigned blocks_per_row) {
    const std::size_t col =
        (static_cast<std::size_t>(blockIdx.x % blocks_per_row) * kFillThreads + threadIdx.x) * WIDTH;
    const std::size_t first = static_cast<std::size_t>(blockIdx.x / blocks_per_row) * kFillRows;
    if (col >= out.cols()) return;
    const auto pack = course::Pack<float, WIDTH>::load(row.data() + col);
    for (std::size_t i = first; i < ::min(first + kFillRows, out.rows()); ++i)
        pack.store(&out(i, col));
}

constexpr int kWarpsPerBlock = 8;

// Idea: a warp per row: lanes multiply what lies side by side and add up by shuffles.
// Cost removed: scattered reads of a thread per row.
// Still limits it: memory; few rows do not fill the GPU.
template <int WIDTH>
__global__ void __launch_bounds__(kWarpsPerBlock* course::kWarpSize)
    multiply_rows(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector, DeviceSpan<float> out) {
    const std::size_t row =
        static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / course::kWarpSize;
    if (row >= matrix.rows()) return;
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const float* const values = matrix.data() + row * matrix.leading_dimension();
    float sum = 0;
    for (std::size_t i = lane * WIDTH; i < matrix.cols(); i += course::kWarpSize * WIDTH) {
        const auto x = course::Pack<float, WIDTH>::load(values + i);
        const auto y = course::Pack<float, WIDTH>::load(vector.data() + i);
        for (int w = 0; w < WIDTH; ++w)
            sum += x.value[w] * y.value[w];
    }
    sum = course::warp_reduce(sum, Sum{});
    if (lane == 0) out[row] = sum;
}

// --- Launchers -----------------------------------------------------------------------------------------------------------

// Whole rows of aligned float4?
template <class T>
bool in_packs(const DeviceMatrix<T>& matrix) {
    return course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 4 == 0 &&
           matrix.cols() % 4 == 0;
}

// Calls launch<4>() or launch<1>().
template <class Launch>
void with_width(bool packs, Launch launch) {
    if (packs) {
        launch.template operator()<4>();
    } else {
        launch.template operator()<1>();
    }
    CUDA_CHECK_LAUNCH();
}

template <class Tile>
void launch_product(const Product& product, cudaStream_t stream) {
    const auto& [a, b, c, transpose_b, alpha, beta] = product;
    const std::size_t depth = transpose_b ? b.cols() : b.rows();
    const std::size_t cols = transpose_b ? b.rows() : b.cols();
    course::require(a.rows() == c.rows() && cols == c.cols() && a.cols() == depth, "day25: product: A is ", a,
                    ", B ", b, transpose_b ? " (transposed)" : "", " and C ", c,
                    "; expected m x k, k x n (transposed: n x k) and m x n");
    course::require(!overlap(a, c) && !overlap(b, c),
                    "day25: product: C overlaps A or B; expected that it does not");
    const std::size_t tiles =
        course::ceil_div<std::size_t>(c.rows(), Tile::BM) * course::ceil_div<std::size_t>(c.cols(), Tile::BN);
    if (tiles == 0) return;
    const auto kernel = transpose_b ? multiply<Tile, true> : multiply<Tile, false>;
    kernel<<<course::blocks_for(tiles, 1), Tile::THREADS, 0, stream>>>(a, b, c, alpha, beta);
    CUDA_CHECK_LAUNCH();
}

course::Work product_work(const ProductShape& shape) {
    const auto m = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.cols);
    const auto k = static_cast<double>(shape.depth);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k};
}

}  // namespace

std::span<const Multiply> products() {
    static const std::array<Multiply, 2> list = {{
        {"tiled", "32 x 32 tiles, one result a thread", launch_product<Tile<32, 32, 32, 1, 1>>, product_work},
        {"thread_tile", "64 x 64 tiles, 4 x 4 results a thread", launch_product<Tile<64, 64, 16, 4, 4>>,
         product_work},
    }};
    return list;
}

void masked_softmax(DeviceMatrix<float> scores, const ScoreRows& rows, const Mask& mask,
                    cudaStream_t stream) {
    course::require(scores.rows() == rows.count(), "day25: masked_softmax: scores have ", scores.rows(),
                    " rows; expected batch x heads x queries = ", rows.count());
    course::require(mask.padding.empty() || mask.padding.size() == rows.batch * scores.cols(),
                    "day25: masked_softmax: padding has ", mask.padding.size(),
                    " elements; expected none or batch x keys = ", rows.batch * scores.cols());
    if (scores.rows() == 0 || scores.cols() == 0) return;
    const unsigned blocks = course::blocks_for(scores.rows(), 1);
    const MaskedRows masked{rows.heads * rows.queries, rows.queries, mask.causal,
                            mask.padding.empty() ? nullptr : mask.padding.data()};
    with_width(in_packs(scores), [&]<int WIDTH>() {
        constexpr std::size_t kOnePack = kSoftmaxThreads * WIDTH;
        const auto kernel = scores.cols() <= kOnePack       ? softmax_short_rows<WIDTH, 1>
                            : scores.cols() <= 2 * kOnePack ? softmax_short_rows<WIDTH, 2>
                            : scores.cols() <= 4 * kOnePack ? softmax_short_rows<WIDTH, 4>
                                                            : softmax_long_rows<WIDTH>;
        kernel<<<blocks, kSoftmaxThreads, 0, stream>>>(scores, masked);
    });
}

void transpose(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    course::require(in.rows() == out.cols() && in.cols() == out.rows(), "day25: transpose: in is ", in,
                    " and out ", out, "; expected rows and columns exchanged");
    course::require(!overlap(in, out), "day25: transpose: out overlaps in; expected that it does not");
    const std::size_t tiles = course::ceil_div<std::size_t>(in.rows(), kTransposeTile) *
                              course::ceil_div<std::size_t>(in.cols(), kTransposeTile);
    if (tiles == 0) return;
    transpose_tiles<<<course::blocks_for(tiles, 1), dim3(kTransposeTile, kTransposeRows), 0, stream>>>(in,
                                                                                                       out);
    CUDA_CHECK_LAUNCH();
}

void fill_rows(DeviceSpan<const float> row, DeviceMatrix<float> out, cudaStream_t stream) {
    course::require(row.size() == out.cols(), "day25: fill_rows: row has ", row.size(),
                    " elements; expected ", out.cols(), ", the columns of out");
    course::require(!overlap(DeviceMatrix<const float>(row, 1, row.size()), out),
                    "day25: fill_rows: out overlaps row; expected that it does not");
    if (out.rows() == 0 || out.cols() == 0) return;
    with_width(in_packs(out) && course::is_aligned(row.data(), 16), [&]<int WIDTH>() {
        const unsigned across =
            course::blocks_for(course::ceil_div<std::size_t>(out.cols(), WIDTH), kFillThreads);
        const std::size_t down = course::ceil_div<std::size_t>(out.rows(), kFillRows);
        fill_rows_kernel<WIDTH>
            <<<course::blocks_for(across * down, 1), kFillThreads, 0, stream>>>(row, out, across);
    });
}

void multiply_vector(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector, DeviceSpan<float> out,
                     cudaStream_t stream) {
    course::require(vector.size() == matrix.cols() && out.size() == matrix.rows(),
                    "day25: multiply_vector: matrix is ", matrix, ", vector has ", vector.size(),
                    " elements and out ", out.size(), "; expected as many as columns and rows");
    course::require(!overlap(out, vector) && !overlap(DeviceMatrix<float>(out, 1, out.size()), matrix),
                    "day25: multiply_vector: out overlaps matrix or vector; expected that it does not");
    if (matrix.rows() == 0) return;
    with_width(in_packs(matrix) && course::is_aligned(vector.data(), 16), [&]<int WIDTH>() {
        multiply_rows<WIDTH><<<course::blocks_for(matrix.rows(), kWarpsPerBlock),
                               kWarpsPerBlock * course::kWarpSize, 0, stream>>>(matrix, vector, out);
    });
}

}  // namespace day25
