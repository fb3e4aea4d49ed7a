// softmax(scale Q K^T) V, for all heads of all batches: the host API of day 25's second part.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "attention.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "multiplier.hpp"

namespace day25 {

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

// Memory for one shape, made once: above all, unless the method is fused, scores of batch x heads x queries x keys. One call at a time.
class SelfAttention {
  public:
    // `method`: an entry of methods(), which lives as long as the program. Throws std::invalid_argument when it cannot do the widths.
    SelfAttention(const Method& method, const AttentionShape& shape);

    // The tokens of a batch follow one another in rows, a head's columns lie side by side:
    //   q: batch queries x heads width     k: batch keys x heads width
    //   v: batch keys x heads value_width  out: batch queries x heads value_width
    // so that q, k and v may be pieces of one larger matrix. Nothing of `out` may overlap them. A query that sees no key gets zeros; a
    // key that is masked for some queries still needs a value that is a number: 0 times NaN is NaN.
    // Throws std::invalid_argument where a matrix is not as the constructor was told or the method cannot do it, CudaError when a launch fails.
    // `fused` needs a finite scale above 0, fewer than 2^30 queries and keys, and that out does not lie between rows of q, k or v either.
    // Source of the method: A. Vaswani et al., "Attention is all you need", 2017, section 3.2.
    void operator()(course::DeviceMatrix<const float> q, course::DeviceMatrix<const float> k,
                    course::DeviceMatrix<const float> v, course::DeviceMatrix<float> out, float scale,
                    const Mask& mask, cudaStream_t stream);

    // The same for fewer batches, queries or keys than the constructor was told; heads and widths must be equal.
    void operator()(const AttentionShape& shape, course::DeviceMatrix<const float> q,
                    course::DeviceMatrix<const float> k, course::DeviceMatrix<const float> v,
                    course::DeviceMatrix<float> out, float scale, const Mask& mask, cudaStream_t stream);

  private:
    const Method& method_;
    AttentionShape largest_;
    std::unique_ptr<Multiplier> multiplier_;
    course::DeviceBuffer<float> scores_;
    course::DeviceBuffer<float> keys_transposed_;  // of a batch; empty where not needed
};

// A piece of a matrix: `rows` x `cols` elements from (row, col) on. Throws std::invalid_argument unless they are all inside.
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

}  // namespace day25
