// What the launchers of all versions share: workspace, and the kernel that all start with.
#pragma once

#include <cstddef>

#include "attention_backward.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/stream_buffer.hpp"
#include "row_terms.cuh"

namespace day34 {

constexpr std::size_t kMostRows = 128;  // of a tile of any version

inline std::size_t padded(std::size_t length) {
    return course::ceil_div(length, kMostRows) * kMostRows;
}

// lse and d of all rows, computed on `stream`.
class RowTermsBuffer {
  public:
    template <class T>
    RowTermsBuffer(const Gradient<T>& gradient, cudaStream_t stream)
        : padded_(padded(gradient.q.extents().length)),
          rows_(gradient.q.extents().batch * gradient.q.extents().heads * padded_),
          memory_(2 * rows_, stream) {
        const unsigned blocks = course::blocks_for(rows_, kRowWarps);
        course::launch(row_terms<T>, {blocks, kRowWarps * course::kWarpSize, 0, stream}, gradient, terms());
    }

    RowTerms terms() const { return {memory_.data(), memory_.data() + rows_, padded_}; }

  private:
    std::size_t padded_;
    std::size_t rows_;
    course::StreamBuffer<float> memory_;
};

}  // namespace day34
