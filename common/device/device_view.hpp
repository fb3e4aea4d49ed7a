// Views of device memory: host functions pass them on, and kernels take them as arguments.
//
// The type `float*` does not show whether it points to host or to device memory. These types do,
// because only a DeviceBuffer and the explicit from_device_pointer() create them. They own no
// memory and can be copied freely.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace course {

// `size` consecutive elements, like std::span.
template <class T>
class DeviceSpan {
  public:
    DeviceSpan() = default;

    static __host__ __device__ DeviceSpan from_device_pointer(T* data, std::size_t size) {
        return DeviceSpan(data, size);
    }

    // Converts a writable view to a read-only view.
    template <class Writable>
    requires(std::is_same_v<T, const Writable> && !std::is_const_v<Writable>) __host__ __device__
        DeviceSpan(const DeviceSpan<Writable>& other)
        : data_(other.data()), size_(other.size()) {}

    // For kernels only: the host cannot dereference a device pointer, and nvcc reports an attempt.
    __device__ T& operator[](std::size_t index) const { return data_[index]; }

    __host__ __device__ T* data() const { return data_; }
    __host__ __device__ std::size_t size() const { return size_; }
    __host__ __device__ bool empty() const { return size_ == 0; }

    // Elements [offset, offset + count). Throws std::out_of_range unless all of them are in range.
    DeviceSpan subspan(std::size_t offset, std::size_t count) const {
        if (offset > size_ || count > size_ - offset) {
            throw std::out_of_range("DeviceSpan::subspan: offset " + std::to_string(offset) + " + count " +
                                    std::to_string(count) + " must lie within size " + std::to_string(size_));
        }
        return DeviceSpan(count == 0 ? data_ : data_ + offset, count);
    }

  private:
    __host__ __device__ DeviceSpan(T* data, std::size_t size) : data_(data), size_(size) {}

    T* data_ = nullptr;
    std::size_t size_ = 0;
};

// rows x cols elements, row-major. Row r starts r * leading_dimension elements after the first
// element (leading_dimension >= cols).
template <class T>
class DeviceMatrix {
  public:
    DeviceMatrix() = default;

    // A view of `span` as a matrix. Throws std::invalid_argument when the span is too short.
    DeviceMatrix(DeviceSpan<T> span, std::size_t rows, std::size_t cols, std::size_t leading_dimension)
        : data_(span.data()), rows_(rows), cols_(cols), leading_dimension_(leading_dimension) {
        const bool wide_enough = leading_dimension >= cols;
        const bool inside = rows == 0 || cols == 0 ||
                            (cols <= span.size() && (leading_dimension == 0 ||
                                                     rows - 1 <= (span.size() - cols) / leading_dimension));
        if (!wide_enough || !inside) {
            throw std::invalid_argument(
                "DeviceMatrix: " + std::to_string(rows) + " x " + std::to_string(cols) +
                " with leading_dimension " + std::to_string(leading_dimension) +
                " does not fit: expected leading_dimension >= cols and a span of " +
                "(rows - 1) * leading_dimension + cols elements, got " + std::to_string(span.size()));
        }
    }

    DeviceMatrix(DeviceSpan<T> span, std::size_t rows, std::size_t cols)
        : DeviceMatrix(span, rows, cols, cols) {}

    template <class Writable>
    requires(std::is_same_v<T, const Writable> && !std::is_const_v<Writable>) __host__ __device__
        DeviceMatrix(const DeviceMatrix<Writable>& other)
        : data_(other.data()),
          rows_(other.rows()),
          cols_(other.cols()),
          leading_dimension_(other.leading_dimension()) {}

    __device__ T& operator()(std::size_t row, std::size_t col) const {
        return data_[row * leading_dimension_ + col];
    }

    // A matrix of the same shape and leading dimension at another address.
    __host__ __device__ DeviceMatrix at(T* data) const {
        DeviceMatrix other = *this;
        other.data_ = data;
        return other;
    }

    __host__ __device__ T* data() const { return data_; }
    __host__ __device__ std::size_t rows() const { return rows_; }
    __host__ __device__ std::size_t cols() const { return cols_; }
    __host__ __device__ std::size_t leading_dimension() const { return leading_dimension_; }

  private:
    T* data_ = nullptr;
    std::size_t rows_ = 0;
    std::size_t cols_ = 0;
    std::size_t leading_dimension_ = 0;
};

// Do two spans share a byte?
template <class A, class B>
bool overlap(const DeviceSpan<A>& a, const DeviceSpan<B>& b) {
    if (a.empty() || b.empty()) return false;
    const auto a_begin = reinterpret_cast<std::uintptr_t>(a.data());
    const auto b_begin = reinterpret_cast<std::uintptr_t>(b.data());
    return a_begin < b_begin + b.size() * sizeof(B) && b_begin < a_begin + a.size() * sizeof(A);
}

// Do two matrices share a byte? This is also exact for submatrices side by side in one larger
// matrix, whose rows alternate in memory. If the leading dimensions differ, matrices whose memory
// interleaves count as overlapping, even if they share no element.
template <class A, class B>
bool overlap(const DeviceMatrix<A>& a, const DeviceMatrix<B>& b) {
    if (a.rows() == 0 || a.cols() == 0 || b.rows() == 0 || b.cols() == 0) return false;
    const auto end = [](const auto& m) {
        return reinterpret_cast<std::uintptr_t>(m.data() + (m.rows() - 1) * m.leading_dimension() + m.cols());
    };
    const auto a_begin = reinterpret_cast<std::uintptr_t>(a.data());
    const auto b_begin = reinterpret_cast<std::uintptr_t>(b.data());
    if (end(a) <= b_begin || end(b) <= a_begin) return false;
    const std::size_t pitch = a.leading_dimension() * sizeof(A);
    if (pitch != b.leading_dimension() * sizeof(B)) return true;
    const std::size_t b_after_a =
        b_begin >= a_begin ? (b_begin - a_begin) % pitch : (pitch - (a_begin - b_begin) % pitch) % pitch;
    return b_after_a < a.cols() * sizeof(A) || b_after_a + b.cols() * sizeof(B) > pitch;
}

static_assert(std::is_trivially_copyable_v<DeviceSpan<float>> &&
                  std::is_trivially_copyable_v<DeviceMatrix<float>>,
              "a kernel argument is copied byte by byte");

}  // namespace course
