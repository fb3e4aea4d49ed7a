// Host API of day 25: the parts of attention, and self-attention put together from them. The
// scoring functions are in scores.hpp, the layer in attention_layer.hpp.
//
// All matrices are row-major and have a leading dimension. Results must not overlap inputs, except
// where a comment allows it. All functions queue their work on `stream`, accept extents of 0, and
// throw std::invalid_argument for shapes that do not fit together, CudaError if a launch fails.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"
#include "common/device/random.hpp"

namespace day25 {

// --- Parts ---------------------------------------------------------------------------------------

// C = alpha A op(B) + beta C. op(B) is B (depth x cols), or its transpose (B is cols x depth). If
// beta is 0, C is not read.
struct Product {
    course::DeviceMatrix<const float> a;
    course::DeviceMatrix<const float> b;
    course::DeviceMatrix<float> c;
    bool transpose_b = false;
    float alpha = 1;
    float beta = 0;
};

// rows, cols: of C.
struct ProductShape {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t depth = 0;
};

// "tiled" and "thread_tile".
using ProductLauncher = void (*)(const Product& product, cudaStream_t stream);
using ProductVersion = course::Version<ProductLauncher, ProductShape>;
std::span<const ProductVersion> product_versions();

// Which keys a query does not see. Query i sees key j if
// - `causal` is false, or j <= i (both counted from the first, as PyTorch's is_causal does), and
// - `padding` is empty, or padding[batch * keys + j] is 0 (PyTorch's key_padding_mask).
struct Mask {
    bool causal = false;
    course::DeviceSpan<const std::uint8_t> padding{};
};

// The rows of a matrix of scores: all queries of all heads of all batches, one after the other. It
// has a column per key.
struct ScoreRows {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t queries = 0;

    std::size_t count() const { return batch * heads * queries; }
};

// Softmax of each row of `scores`, in place, over the keys that its query sees; all other elements
// become 0. A query that sees no key gets a row of zeros (PyTorch's layer: NaN). A row with a NaN
// or +Inf among the visible scores becomes NaN where keys are visible.
void masked_softmax(course::DeviceMatrix<float> scores, const ScoreRows& rows, const Mask& mask,
                    cudaStream_t stream);

// out[j][i] = in[i][j]
void transpose(course::DeviceMatrix<const float> in, course::DeviceMatrix<float> out, cudaStream_t stream);

// Every row of `out` becomes `row`: a bias, to which a product with beta = 1 adds.
void fill_rows(course::DeviceSpan<const float> row, course::DeviceMatrix<float> out, cudaStream_t stream);

// out[i] = row i of `matrix` times `vector`. A warp per row.
void multiply_vector(course::DeviceMatrix<const float> matrix, course::DeviceSpan<const float> vector,
                     course::DeviceSpan<float> out, cudaStream_t stream);

// Xavier's weights (X. Glorot, Y. Bengio, 2010) have the variance 2 / (inputs + outputs), which
// keeps that of the values from layer to layer. kUniform: all within +-sqrt(6 / (inputs +
// outputs)). kNormal: few are large, none is more than six standard deviations.
enum class Xavier { kUniform, kNormal };

// Of kUniform the bound, of kNormal the standard deviation; 0 without inputs and outputs.
float xavier_scale(Xavier distribution, std::size_t inputs, std::size_t outputs);

// The weight with this number, the same on the CPU and on the device. A uniform one takes one
// number of the generator, a normal one four.
__host__ __device__ inline float xavier_weight(Xavier distribution, std::uint64_t seed, std::uint64_t number,
                                               float scale) {
    if (scale == 0) return 0.0f;
    return distribution == Xavier::kUniform ? course::Random(seed, number).uniform(-scale, scale)
                                            : scale * course::Random(seed, 4 * number).normal();
}

// Weights first, first + 1, ... of a matrix of `inputs` columns, stored transposed. On the default
// stream.
void draw_xavier(Xavier distribution, course::DeviceSpan<float> transposed, std::size_t inputs,
                 std::uint64_t seed, std::uint64_t first);

// Does the matrix consist of whole rows of aligned float4?
template <class T>
bool in_packs(const course::DeviceMatrix<T>& matrix) {
    return course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 4 == 0 &&
           matrix.cols() % 4 == 0;
}

// A piece of a matrix: `rows` x `cols` elements from (row, col) on. Throws std::invalid_argument
// unless all are inside.
template <class T>
course::DeviceMatrix<T> piece(const course::DeviceMatrix<T>& matrix, std::size_t row, std::size_t rows,
                              std::size_t col, std::size_t cols) {
    course::require(row + rows <= matrix.rows() && col + cols <= matrix.cols(), "day25: piece: ", rows, " x ",
                    cols, " at (", row, ", ", col, ") of ", matrix, "; expected that it lies inside");
    if (rows == 0 || cols == 0) return {course::DeviceSpan<T>{}, rows, cols};
    const std::size_t ld = matrix.leading_dimension();
    return {
        course::DeviceSpan<T>::from_device_pointer(matrix.data() + row * ld + col, (rows - 1) * ld + cols),
        rows, cols, ld};
}

// --- Versions of self-attention ------------------------------------------------------------------

// Computes the matrix products: with a kernel of this day, or with the ladder.
class MatmulBackend {
  public:
    MatmulBackend() = default;
    MatmulBackend(const MatmulBackend&) = delete;
    MatmulBackend& operator=(const MatmulBackend&) = delete;
    virtual ~MatmulBackend() = default;

    // Queues a product. Products that may run at the same time need a backend each, because it may
    // own scratch memory.
    virtual void multiply(const Product& product, cudaStream_t stream) = 0;

    // May Product::transpose_b be set?
    virtual bool takes_transposed() const = 0;
};

// How a version computes attention.
struct Implementation {
    // Makes a backend with scratch memory for products of these shapes. Other shapes work too,
    // perhaps slower.
    std::unique_ptr<MatmulBackend> (*make_backend)(std::span<const ProductShape> shapes);
    // Day 26's kernel instead of products and softmax. The backend is for the layer's projections.
    bool fused = false;
    // kOther: tensor cores may be used.
    course::Arithmetic arithmetic = course::Arithmetic::kFp32;
};

// The properties that determine whether a version can run.
struct AttentionTask {
    std::size_t width = 0;        // of a head's queries and keys
    std::size_t value_width = 0;  // of its values
    bool padding = false;         // is there a mask for padding?
};

// "tiled", "thread_tile", "ladder" and "fused".
using Version = course::Version<Implementation, AttentionTask>;
std::span<const Version> versions();

// --- Self-attention ------------------------------------------------------------------------------

// `width`: of a head's queries and keys; `value_width`: of its values and results.
struct AttentionShape {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t queries = 0;
    std::size_t keys = 0;
    std::size_t width = 0;
    std::size_t value_width = 0;

    ScoreRows score_rows() const { return {batch, heads, queries}; }
    course::Work work() const;
};

// softmax(scale Q K^T) V for all heads of all batches. The constructor allocates the memory for one
// shape: unless the version is fused, batch x heads x queries x keys scores. One call at a time.
class SelfAttention {
  public:
    // `version`: an entry of versions(). Throws std::invalid_argument if it cannot do the widths.
    SelfAttention(const Version& version, const AttentionShape& shape);

    // The tokens of a batch are consecutive rows, the columns of a head are adjacent:
    //   q: batch queries x heads width     k: batch keys x heads width
    //   v: batch keys x heads value_width  out: batch queries x heads value_width
    // so q, k and v may be pieces of one larger matrix. `out` must not overlap them. A query that
    // sees no key gets zeros. The value of a masked key must be a number, because 0 times NaN is
    // NaN.
    // Throws std::invalid_argument if a matrix does not have the constructor's shape or the version
    // cannot do it. `fused` has the requirements of common/device/fused_attention.hpp, too: a
    // finite scale above 0, fewer than 2^30 queries and keys, and an out that does not lie between
    // rows of q, k or v. Source of the method: A. Vaswani et al., "Attention is all you need",
    // 2017, section 3.2.
    void operator()(course::DeviceMatrix<const float> q, course::DeviceMatrix<const float> k,
                    course::DeviceMatrix<const float> v, course::DeviceMatrix<float> out, float scale,
                    const Mask& mask, cudaStream_t stream);

    // The same for fewer batches, queries or keys than the constructor's; heads and widths must be
    // equal.
    void operator()(const AttentionShape& shape, course::DeviceMatrix<const float> q,
                    course::DeviceMatrix<const float> k, course::DeviceMatrix<const float> v,
                    course::DeviceMatrix<float> out, float scale, const Mask& mask, cudaStream_t stream);

  private:
    const Version& version_;
    AttentionShape largest_;
    std::unique_ptr<MatmulBackend> backend_;
    course::DeviceBuffer<float> scores_;
    course::DeviceBuffer<float> keys_transposed_;  // of a batch; empty where not needed
};

}  // namespace day25
