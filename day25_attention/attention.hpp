// What attention is made of: the host API of day 25's building blocks. Scoring functions (scores.hpp), self-attention
// (self_attention.hpp) and the layer (attention_layer.hpp) are put together from them. No kernels here; they are in attention.cu.
//
// All matrices are row-major and have a leading dimension. Results must not overlap what is read, except where it is said.
// All functions queue their work on `stream`, accept extents of 0, and throw std::invalid_argument for shapes that do not fit
// together, CudaError when a launch fails.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/bench/variant.hpp"
#include "common/device/device_view.hpp"

namespace day25 {

// C = alpha A op(B) + beta C, where op(B) is B (depth x cols) or its transpose (B is cols x depth). With beta = 0 C is not read.
struct Product {
    course::DeviceMatrix<const float> a;
    course::DeviceMatrix<const float> b;
    course::DeviceMatrix<float> c;
    bool transpose_b = false;
    float alpha = 1;
    float beta = 0;
};

// Source of the method: PMPP chapters 5 (tiles in shared memory) and 6 (several results a thread).
using ProductLauncher = void (*)(const Product& product, cudaStream_t stream);

// rows, cols: of C.
struct ProductShape {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t depth = 0;
};

// "tiled" and "thread_tile".
using Multiply = course::Variant<ProductLauncher, ProductShape>;
std::span<const Multiply> products();

// Which keys a query must not see. Query i sees key j if
// - it is not `causal`, or j <= i (both counted from the beginning, as PyTorch's is_causal does), and
// - `padding` is empty, or padding[batch * keys + j] is 0 (PyTorch's key_padding_mask).
struct Mask {
    bool causal = false;
    course::DeviceSpan<const std::uint8_t> padding{};
};

// Which rows a score matrix has: those of all queries of all heads of all batches, one after the other; a column per key.
struct ScoreRows {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t queries = 0;

    std::size_t count() const { return batch * heads * queries; }
};

// Softmax of each row of `scores`, in place, over the keys its query sees; the others become 0. A query that sees nothing gets a
// row of zeros (PyTorch's layer: NaN). A row with a NaN or +Inf among what is seen becomes NaN where something is seen.
void masked_softmax(course::DeviceMatrix<float> scores, const ScoreRows& rows, const Mask& mask,
                    cudaStream_t stream);

// out[j][i] = in[i][j]
void transpose(course::DeviceMatrix<const float> in, course::DeviceMatrix<float> out, cudaStream_t stream);

// Every row of `out` becomes `row`: a bias, for a product with beta = 1 to be added to.
void fill_rows(course::DeviceSpan<const float> row, course::DeviceMatrix<float> out, cudaStream_t stream);

// out[i] = row i of `matrix` times `vector`. A warp per row.
void multiply_vector(course::DeviceMatrix<const float> matrix, course::DeviceSpan<const float> vector,
                     course::DeviceSpan<float> out, cudaStream_t stream);

}  // namespace day25
