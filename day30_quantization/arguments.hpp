// What the files of this day share on the host: checks of arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"

namespace day30 {

using course::DeviceMatrix;
using course::DeviceSpan;

inline void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument(message);
}

inline std::string shape(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

// Throws std::invalid_argument unless `matrix`, called `what`, has this shape.
template <class T>
void require_shape(const std::string& what, DeviceMatrix<T> matrix, std::size_t rows, std::size_t cols) {
    require(matrix.rows() == rows && matrix.cols() == cols,
            what + " is " + shape(matrix.rows(), matrix.cols()) + "; expected " + shape(rows, cols));
}

inline void require_size(const std::string& what, std::size_t size, std::size_t expected) {
    require(size == expected,
            what + " has " + std::to_string(size) + " elements; expected " + std::to_string(expected));
}

// The memory from the first element to the last.
template <class T>
DeviceSpan<T> extent(DeviceSpan<T> span) {
    return span;
}
template <class T>
DeviceSpan<T> extent(DeviceMatrix<T> m) {
    const bool empty = m.rows() == 0 || m.cols() == 0;
    return DeviceSpan<T>::from_device_pointer(m.data(),
                                              empty ? 0 : (m.rows() - 1) * m.leading_dimension() + m.cols());
}

// A matrix as bytes.
template <class T>
DeviceMatrix<const std::byte> bytes_of(DeviceMatrix<T> m) {
    const auto* const data = reinterpret_cast<const std::byte*>(m.data());
    return {DeviceSpan<const std::byte>::from_device_pointer(data, extent(m).size() * sizeof(T)), m.rows(),
            m.cols() * sizeof(T), m.leading_dimension() * sizeof(T)};
}

// Two matrices may lie side by side in a larger one.
template <class A, class B>
bool have_memory_in_common(DeviceMatrix<A> a, DeviceMatrix<B> b) {
    return course::overlap(bytes_of(a), bytes_of(b));
}
template <class A, class B>
bool have_memory_in_common(A a, B b) {
    return course::overlap(extent(a), extent(b));
}

template <class Out, class In>
void require_apart(const std::string& out_name, Out out, const std::string& in_name, In in) {
    require(!have_memory_in_common(out, in),
            out_name + " overlaps " + in_name + "; expected no memory in common");
}

inline std::size_t remainder_by_16(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16;
}

// Does every row begin at a multiple of `bytes`?
template <class T>
bool rows_are_aligned(DeviceMatrix<T> matrix, std::size_t bytes) {
    return course::is_aligned(matrix.data(), bytes) &&
           (matrix.rows() <= 1 || matrix.leading_dimension() * sizeof(T) % bytes == 0);
}

// Throws std::invalid_argument unless every row of `matrix`, called `what`, begins at a multiple of 16 bytes.
template <class T>
void require_aligned_rows(const std::string& what, DeviceMatrix<T> matrix) {
    require(rows_are_aligned(matrix, 16),
            what + " has an address % 16 of " + std::to_string(remainder_by_16(matrix.data())) +
                " and rows that are " + std::to_string(matrix.leading_dimension() * sizeof(T)) +
                " bytes apart; expected 0 and a multiple of 16");
}

// Throws std::invalid_argument unless a block of `block` values may share a scale.
inline void require_block(const std::string& function, std::size_t block) {
    require(block >= 16 && block <= 256 && (block & (block - 1)) == 0,
            function + ": block is " + std::to_string(block) + "; expected 16, 32, 64, 128 or 256");
}

// More than 48 KB of dynamic shared memory must be asked for.
template <class Function>
void allow_shared(Function* kernel, std::size_t bytes) {
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

}  // namespace day30
