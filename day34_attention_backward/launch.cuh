// Code that the host files share: the versions of other files, workspace, and gradients of 0.
#pragma once

#include <cstddef>

#include "attention_backward.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/stream_buffer.hpp"
#include "parts.cuh"

namespace day34 {

// The versions of beyond/tensor_cores.cu, and those of beyond/hopper.cu, which is compiled for
// compute capability 9.0a alone.
template <class T>
Version<T> tensor_cores();
template <class T>
Version<T> hopper();
template <class T>
Version<T> hopper_ordered();

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
        launch_row_terms(gradient, terms(), stream);
        CUDA_CHECK_LAUNCH();
    }

    RowTerms terms() const { return {memory_.data(), memory_.data() + rows_, padded_}; }

  private:
    std::size_t padded_;
    std::size_t rows_;
    course::StreamBuffer<float> memory_;
};

// Zeros for a gradient to which no score contributes.
constexpr int kFinishThreads = 256;

template <class T>
__global__ void clear_rows(const HeadsView<T> view, std::size_t elements) {
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= elements) return;
    const Extents e = view.extents();
    row_of(view, index / e.dim / e.length, index / e.dim % e.length)[index % e.dim] = T(0.0f);
}
template <class T>
void clear(const HeadsView<T>& view, cudaStream_t stream) {
    const Extents e = view.extents();
    const std::size_t elements = e.batch * e.heads * e.length * e.dim;
    if (elements > 0)
        course::launch(clear_rows<T>,
                       {course::blocks_for(elements, kFinishThreads), kFinishThreads, 0, stream}, view,
                       elements);
}

// Without rows or without keys all gradients are 0: writes them, and returns true.
template <class T>
bool cleared(const Gradient<T>& g, cudaStream_t stream) {
    if (g.q.length() > 0 && g.k.length() > 0) return false;
    clear(g.dq, stream);
    clear(g.dk, stream);
    clear(g.dv, stream);
    return true;
}

// Throws unless all rows can be loaded and stored 16 bytes at a time.
template <class T>
void require_aligned_rows(const Gradient<T>& g) {
    const auto aligned = [](const auto&... views) { return (rows_are_aligned(views) && ...); };
    course::require(aligned(g.q, g.k, g.v, g.out, g.d_out, g.dq, g.dk, g.dv),
                    "attention backward: a row begins between multiples of 16 bytes; expected addresses and "
                    "strides that are multiples of 16 bytes");
}

}  // namespace day34
