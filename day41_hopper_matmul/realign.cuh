// Copies of matrices whose rows TMA cannot reach.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "common/check/check.hpp"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/tensor_map.hpp"

namespace day41 {

// Idea: a copy of the matrix whose rows begin at multiples of 16 bytes. A thread makes 16 bytes of it.
// Cost removed: products without TMA.
// Still limits it: memory. An element of A is multiplied N times for its one copy, one of B M times: where one of them is small, copies show.
template <class T>
__global__ void copy_rows(course::DeviceMatrix<const T> from, course::DeviceMatrix<T> to) {
    constexpr int kAtOnce = 16 / sizeof(T);
    const std::size_t in_row = to.leading_dimension() / kAtOnce;
    const std::size_t number = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row = number / in_row;
    const std::size_t first = number % in_row * kAtOnce;
    if (row >= from.rows()) return;
    course::Pack<T, kAtOnce> pack{};
    for (int i = 0; i < kAtOnce; ++i)
        if (first + i < from.cols()) pack.value[i] = from(row, first + i);
    pack.store(to.data() + number * kAtOnce);
}

// Memory of a stream's own, from and back to CUDA's pool as the stream gets there.
template <class T>
class StreamBuffer {
  public:
    StreamBuffer(std::size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
        CUDA_CHECK(cudaMallocAsync(&data_, count * sizeof(T), stream));
    }
    StreamBuffer(const StreamBuffer&) = delete;
    StreamBuffer& operator=(const StreamBuffer&) = delete;
    ~StreamBuffer() { static_cast<void>(cudaFreeAsync(data_, stream_)); }

    course::DeviceSpan<T> span() const { return course::DeviceSpan<T>::from_device_pointer(data_, count_); }

  private:
    T* data_ = nullptr;
    std::size_t count_;
    cudaStream_t stream_;
};

// The matrix in rows that TMA can reach: itself, or its copy.
template <class T>
class Reachable {
  public:
    Reachable(const course::DeviceMatrix<const T>& matrix, cudaStream_t stream) : matrix_(matrix) {
        if (matrix.rows() == 0 || matrix.cols() == 0 || course::why_no_tensor_map(matrix).empty()) return;
        constexpr std::size_t kAtOnce = 16 / sizeof(T);
        constexpr unsigned kThreads = 256;
        const std::size_t pitch = course::ceil_div(matrix.cols(), kAtOnce) * kAtOnce;
        copy_.emplace(matrix.rows() * pitch, stream);
        const course::DeviceMatrix<T> copy(copy_->span(), matrix.rows(), matrix.cols(), pitch);
        const unsigned blocks = course::blocks_for(matrix.rows() * (pitch / kAtOnce), kThreads);
        copy_rows<T><<<blocks, kThreads, 0, stream>>>(matrix, copy);
        CUDA_CHECK_LAUNCH();
        matrix_ = copy;
    }

    const course::DeviceMatrix<const T>& matrix() const { return matrix_; }

  private:
    course::DeviceMatrix<const T> matrix_;
    std::optional<StreamBuffer<T>> copy_;
};

}  // namespace day41
