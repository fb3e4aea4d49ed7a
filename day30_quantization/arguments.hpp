// What the files of this day share on the host: checks of arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check/require.hpp"
#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"

namespace day30 {

using course::DeviceMatrix;
using course::DeviceSpan;

// How a message names an argument of a function that is itself a parameter: "function: argument".
struct Argument {
    std::string_view function;
    std::string_view name;
};
inline std::string to_text(const Argument& argument) {
    return std::string(argument.function) + ": " + std::string(argument.name);
}

// Throws std::invalid_argument unless `matrix`, called `what`, has this shape.
template <class What, class T>
void require_shape(const What& what, DeviceMatrix<T> matrix, std::size_t rows, std::size_t cols) {
    course::require(matrix.rows() == rows && matrix.cols() == cols, what, " is ", matrix, "; expected ", rows,
                    " x ", cols);
}

template <class What>
void require_size(const What& what, std::size_t size, std::size_t expected) {
    course::require(size == expected, what, " has ", size, " elements; expected ", expected);
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

template <class Name, class Out, class In>
void require_apart(const Name& out_name, Out out, std::string_view in_name, In in) {
    course::require(!have_memory_in_common(out, in), out_name, " overlaps ", in_name,
                    "; expected no memory in common");
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
void require_aligned_rows(std::string_view what, DeviceMatrix<T> matrix) {
    course::require(rows_are_aligned(matrix, 16), what, " has an address % 16 of ",
                    remainder_by_16(matrix.data()), " and rows that are ",
                    matrix.leading_dimension() * sizeof(T), " bytes apart; expected 0 and a multiple of 16");
}

// Throws std::invalid_argument unless a block of `block` values may share a scale.
inline void require_block(std::string_view function, std::size_t block) {
    course::require(block >= 16 && block <= 256 && (block & (block - 1)) == 0, function, ": block is ", block,
                    "; expected 16, 32, 64, 128 or 256");
}

}  // namespace day30
