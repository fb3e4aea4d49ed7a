// 16-byte aligned copies of matrices that TMA cannot address.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "common/check/check.hpp"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/stream_buffer.hpp"
#include "common/device/tensor_map.hpp"

namespace course {

// Idea: copy the matrix so that its rows are 16-byte aligned. A thread stores 16 bytes.
// Cost removed: products without TMA.
// Still limits it: memory bandwidth. An element of A is copied once and multiplied N times, an
// element of B M times. If N or M is small, the copies take a noticeable part of the time.
template <class T>
__global__ void copy_rows(DeviceMatrix<const T> from, DeviceMatrix<T> to) {
    constexpr int kInPack = 16 / sizeof(T);
    const std::size_t in_row = to.leading_dimension() / kInPack;
    const std::size_t number = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row = number / in_row;
    const std::size_t first = number % in_row * kInPack;
    if (row >= from.rows()) return;
    Pack<T, kInPack> pack{};
    for (int i = 0; i < kInPack; ++i)
        if (first + i < from.cols()) pack.value[i] = from(row, first + i);
    pack.store(to.data() + number * kInPack);
}

// The matrix itself if TMA can address it, or its aligned copy.
template <class T>
class Aligned {
  public:
    Aligned(const DeviceMatrix<const T>& matrix, cudaStream_t stream) : matrix_(matrix) {
        if (matrix.rows() == 0 || matrix.cols() == 0 || why_no_tensor_map(matrix).empty()) return;
        constexpr std::size_t kInPack = 16 / sizeof(T);
        constexpr unsigned kThreads = 256;
        const std::size_t pitch = ceil_div(matrix.cols(), kInPack) * kInPack;
        copy_.emplace(matrix.rows() * pitch, stream);
        const DeviceMatrix<T> copy(copy_->span(), matrix.rows(), matrix.cols(), pitch);
        const unsigned blocks = blocks_for(matrix.rows() * (pitch / kInPack), kThreads);
        copy_rows<T><<<blocks, kThreads, 0, stream>>>(matrix, copy);
        CUDA_CHECK_LAUNCH();
        matrix_ = copy;
    }

    const DeviceMatrix<const T>& matrix() const { return matrix_; }

  private:
    DeviceMatrix<const T> matrix_;
    std::optional<StreamBuffer<T>> copy_;
};

}  // namespace course
