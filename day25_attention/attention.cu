// Day 25's launchers of the kernels in attention.cuh: argument checks, grids, the versions of the
// product.
#include <array>
#include <cmath>

#include "attention.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"

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
    const auto kernel = transpose_b ? multiply_matrices<Tile, true> : multiply_matrices<Tile, false>;
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

std::span<const ProductVersion> product_versions() {
    static const std::array<ProductVersion, 2> list = {{
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

float xavier_bound(std::size_t inputs, std::size_t outputs) {
    return inputs + outputs == 0 ? 0.0f
                                 : static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs + outputs)));
}

void draw_xavier(DeviceSpan<float> transposed, std::size_t inputs, std::uint64_t seed, std::uint64_t first) {
    if (transposed.empty()) return;
    const std::size_t outputs = transposed.size() / inputs;
    draw_weights<<<course::blocks_for(transposed.size(), kDrawThreads), kDrawThreads>>>(
        transposed, inputs, outputs, xavier_bound(inputs, outputs), seed, first);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day25
