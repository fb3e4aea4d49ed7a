// Checks of arguments that are matrices. Each throws std::invalid_argument with a message that
// names the argument:
//
//     require_shape("int8_matmul: c", c, a.rows(), w.rows());
//     require_apart("int8_matmul: c", c, "a", a);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check/require.hpp"
#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"

namespace course {

// The name of an argument in a message, where the function is itself a parameter: "function:
// argument".
struct Argument {
    std::string_view function;
    std::string_view name;
};
inline std::string to_text(const Argument& argument) {
    return std::string(argument.function) + ": " + std::string(argument.name);
}

template <class Name, class T>
void require_shape(const Name& name, DeviceMatrix<T> matrix, std::size_t rows, std::size_t cols) {
    require(matrix.rows() == rows && matrix.cols() == cols, name, " is ", matrix, "; expected ", rows, " x ",
            cols);
}

template <class Name>
void require_size(const Name& name, std::size_t size, std::size_t expected) {
    require(size == expected, name, " has ", size, " elements; expected ", expected);
}

// The memory of an argument, from its first element to its last.
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

// Two matrices are compared row by row, so they may lie side by side in a larger one.
template <class A, class B>
bool have_memory_in_common(DeviceMatrix<A> a, DeviceMatrix<B> b) {
    return overlap(a, b);
}
template <class A, class B>
bool have_memory_in_common(A a, B b) {
    return overlap(extent(a), extent(b));
}

template <class Name, class Out, class In>
void require_apart(const Name& out_name, Out out, std::string_view in_name, In in) {
    require(!have_memory_in_common(out, in), out_name, " overlaps ", in_name,
            "; expected no memory in common");
}

inline std::size_t remainder_by_16(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16;
}

// Does every row start at a multiple of `bytes`?
template <class T>
bool rows_are_aligned(DeviceMatrix<T> matrix, std::size_t bytes) {
    return is_aligned(matrix.data(), bytes) &&
           (matrix.rows() <= 1 || matrix.leading_dimension() * sizeof(T) % bytes == 0);
}

// Throws unless every row starts at a multiple of 16 bytes.
template <class T>
void require_aligned_rows(std::string_view name, DeviceMatrix<T> matrix) {
    require(rows_are_aligned(matrix, 16), name, " has an address % 16 of ", remainder_by_16(matrix.data()),
            " and rows that are ", matrix.leading_dimension() * sizeof(T),
            " bytes apart; expected 0 and a multiple of 16");
}

}  // namespace course
