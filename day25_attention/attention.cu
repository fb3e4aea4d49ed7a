// Day 25's host functions around the kernels of parts 2 and 3: argument checks, choices by shape,
// the versions of the product. The launches are under the kernels.
#include <array>
#include <cmath>

#include "attention.cuh"
#include "attention.hpp"
#include "beyond/initial_weights.cuh"
#include "beyond/keys_transposed.cuh"
#include "beyond/softmax_short_rows.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"

namespace day25 {
namespace {

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
void multiply(const Product& product, cudaStream_t stream) {
    const auto& [a, b, c, transpose_b, alpha, beta] = product;
    const std::size_t depth = transpose_b ? b.cols() : b.rows();
    const std::size_t cols = transpose_b ? b.rows() : b.cols();
    course::require(a.rows() == c.rows() && cols == c.cols() && a.cols() == depth, "day25: product: A is ", a,
                    ", B ", b, transpose_b ? " (transposed)" : "", " and C ", c,
                    "; expected m x k, k x n (transposed: n x k) and m x n");
    course::require(!overlap(a, c) && !overlap(b, c),
                    "day25: product: C overlaps A or B; expected that it does not");
    if (c.rows() == 0 || c.cols() == 0) return;
    if (transpose_b) {
        launch_multiply_matrices<Tile, true>(a, b, c, alpha, beta, stream);
    } else {
        launch_multiply_matrices<Tile, false>(a, b, c, alpha, beta, stream);
    }
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

std::span<const ProductVersion> product_versions() {
    static const std::array<ProductVersion, 2> list = {{
        {"tiled", "32 x 32 tiles, one result a thread", multiply<OneResult>, product_work},
        {"thread_tile", "64 x 64 tiles, 4 x 4 results a thread", multiply<SixteenResults>, product_work},
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
    const MaskedRows masked{rows.heads * rows.queries, rows.queries, mask.causal,
                            mask.padding.empty() ? nullptr : mask.padding.data()};
    with_width(in_packs(scores), [&]<int WIDTH>() {
        if (scores.cols() <= std::size_t{kMostPacks} * kSoftmaxThreads * WIDTH) {
            launch_softmax_short_rows<WIDTH>(scores, masked, stream);
        } else {
            launch_softmax_long_rows<WIDTH>(scores, masked, stream);
        }
    });
}

void transpose(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    course::require(in.rows() == out.cols() && in.cols() == out.rows(), "day25: transpose: in is ", in,
                    " and out ", out, "; expected rows and columns exchanged");
    course::require(!overlap(in, out), "day25: transpose: out overlaps in; expected that it does not");
    if (in.rows() == 0 || in.cols() == 0) return;
    launch_transpose_tiles(in, out, stream);
    CUDA_CHECK_LAUNCH();
}

void fill_rows(DeviceSpan<const float> row, DeviceMatrix<float> out, cudaStream_t stream) {
    course::require(row.size() == out.cols(), "day25: fill_rows: row has ", row.size(),
                    " elements; expected ", out.cols(), ", the columns of out");
    course::require(!overlap(DeviceMatrix<const float>(row, 1, row.size()), out),
                    "day25: fill_rows: out overlaps row; expected that it does not");
    if (out.rows() == 0 || out.cols() == 0) return;
    with_width(in_packs(out) && course::is_aligned(row.data(), 16),
               [&]<int WIDTH>() { launch_fill_rows<WIDTH>(row, out, stream); });
}

float xavier_scale(Xavier distribution, std::size_t inputs, std::size_t outputs) {
    if (inputs + outputs == 0) return 0.0f;
    const double factor = distribution == Xavier::kUniform ? 6.0 : 2.0;
    return static_cast<float>(std::sqrt(factor / static_cast<double>(inputs + outputs)));
}

void draw_xavier(Xavier distribution, DeviceSpan<float> transposed, std::size_t inputs, std::uint64_t seed,
                 std::uint64_t first) {
    if (transposed.empty()) return;
    const std::size_t outputs = transposed.size() / inputs;
    launch_draw_weights(distribution, transposed, inputs, outputs,
                        xavier_scale(distribution, inputs, outputs), seed, first);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day25
