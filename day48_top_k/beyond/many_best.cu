// Day 48, beyond: host code of many_best.cuh.
#include <algorithm>
#include <cstdint>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/tile/distance.hpp"
#include "many_best.cuh"
#include "many_best.hpp"

namespace day48 {
namespace {

void check_k(std::size_t k, std::size_t n) {
    course::require(k >= 1 && k <= n, "top-k matmul: k is ", k, "; expected 1 to ", n,
                    ", the number of columns of op(B)");
}

// The scratch memory: the norms, the last key of each row, the results of a pass, the matrix of
// distances.
struct Layout {
    std::size_t rows;  // of all products
    std::size_t n;
    std::size_t norm_words;
    std::size_t in_pass;  // results of a row

    explicit Layout(const TopKShape& shape)
        : rows(shape.m * shape.count),
          n(shape.n),
          norm_words(course::ceil_div<std::size_t>(
              course::norms_size(shape.metric, shape.m, shape.n, shape.count), 2)),
          in_pass(std::min(shape.k, kMostBest)) {
        check_k(shape.k, shape.n);
    }

    // A value and an index together take a word, as a key does.
    std::size_t pass_begin() const { return norm_words + rows; }
    std::size_t matrix_begin() const { return pass_begin() + rows * in_pass; }
    std::size_t words() const { return matrix_begin() + course::ceil_div<std::size_t>(rows * n, 2); }
};

}  // namespace

std::size_t passes_of(std::size_t k) {
    return course::ceil_div(k, kMostBest);
}

std::size_t many_best_scratch_size(const TopKShape& shape) {
    return Layout(shape).words();
}

void launch_many_best(const TopKMatmul& matmul, cudaStream_t stream) {
    const course::Operands& operands = matmul.operands;
    course::check_operands(operands, "top-k matmul");
    const Layout layout(
        TopKShape{operands.m(), operands.n(), operands.k(), operands.count(), matmul.k, matmul.metric});
    const std::size_t results = layout.rows * matmul.k;
    course::require(matmul.values.size() == results, "top-k matmul: values has ", matmul.values.size(),
                    " elements; expected ", results, ", ", matmul.k, " for each row");
    course::require(matmul.indices.size() == results, "top-k matmul: indices has ", matmul.indices.size(),
                    " elements; expected ", results, ", ", matmul.k, " for each row");
    course::require(matmul.scratch.size() >= layout.words(), "top-k matmul: scratch has ",
                    matmul.scratch.size(), " elements; expected at least ", layout.words());
    if (layout.rows == 0) return;

    Key* const last = matmul.scratch.data() + layout.norm_words;
    auto* const pass_values = reinterpret_cast<float*>(matmul.scratch.data() + layout.pass_begin());
    auto* const pass_indices = reinterpret_cast<std::uint32_t*>(pass_values + layout.rows * layout.in_pass);
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + layout.matrix_begin());
    course::launch_distances(matmul.metric, operands, matmul.scratch.data(), distances, stream);
    CUDA_CHECK(cudaMemsetAsync(last, 0, layout.rows * sizeof *last, stream));

    const float sign = matmul.order == Order::kSmallest ? 1.0f : -1.0f;
    const RowsAfter left{distances, layout.n, sign, last};
    for (std::size_t begin = 0; begin < matmul.k; begin += kMostBest) {
        const std::size_t size = std::min(kMostBest, matmul.k - begin);
        launch_select_after(left, layout.rows, static_cast<unsigned>(size), pass_values, pass_indices,
                            stream);
        launch_append_pass({pass_values, pass_indices, begin, size, matmul.k}, layout.rows, sign,
                           matmul.values.data(), matmul.indices.data(), last, stream);
        CUDA_CHECK_LAUNCH();
    }
}

}  // namespace day48
