// Checks of arguments. A failed one throws std::invalid_argument with a message that names the
// argument, its value and what was expected:
//
//     require(out.size() == 1, "reduction: out has ", out.size(), " elements; expected 1");
//     require(c.rows() == a.rows(), "sgemm: A is ", a, " and C is ", c, "; expected as many rows");
//
// The parts of the message are joined only when the check fails, so a successful check costs one
// comparison. A part is text, a number, a matrix (printed as its shape), or a value of a type with
// its own function to_text().
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace course {

inline std::string to_text(std::string_view text) {
    return std::string(text);
}
// A bool is printed as true or false, and a char as itself. A floating-point number is printed as
// the shortest text that converts back to the same number: 0.1, 3, 1e-07.
template <class Number>
requires std::integral<Number> || std::floating_point<Number> std::string to_text(Number number) {
    if constexpr (std::same_as<Number, bool>) {
        return number ? "true" : "false";
    } else if constexpr (std::same_as<Number, char>) {
        return std::string(1, number);
    } else if constexpr (std::integral<Number>) {
        return std::to_string(number);
    } else {
        char text[64];
        return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
    }
}

// "3 x 4": the text of a shape in messages, test names and tables.
template <class... Extents>
std::string shape_text(std::size_t first, Extents... others) {
    return (std::to_string(first) + ... + (" x " + std::to_string(others)));
}

// The same for anything with rows() and cols(): DeviceMatrix, GuardedMatrix, ...
template <class Matrix>
requires requires(const Matrix& m) {
    m.rows();
    m.cols();
}
std::string shape_text(const Matrix& matrix) {
    return shape_text(matrix.rows(), matrix.cols());
}

template <class Matrix>
requires requires(const Matrix& m) {
    m.rows();
    m.cols();
}
std::string to_text(const Matrix& matrix) {
    return shape_text(matrix);
}

template <class... Parts>
void require(bool condition, const Parts&... parts) {
    if (!condition) throw std::invalid_argument((to_text(parts) + ...));
}

}  // namespace course
