#include <algorithm>

#include "common/check/require.hpp"
#include "transpose.hpp"

namespace day06 {
namespace {

// Rows and columns of a piece whose lines of `in` and `out` stay in the cache until all of their
// elements are used.
constexpr std::size_t kPiece = 32;

template <class T>
void transpose(std::span<const T> in, std::size_t rows, std::size_t cols, std::span<T> out) {
    course::require(in.size() == rows * cols && out.size() == rows * cols, "transpose_on_cpu: in has ",
                    in.size(), " elements, out has ", out.size(), "; expected ",
                    course::shape_text(rows, cols), " each");
#pragma omp parallel for collapse(2)
    for (std::size_t first_col = 0; first_col < cols; first_col += kPiece) {
        for (std::size_t first_row = 0; first_row < rows; first_row += kPiece) {
            const std::size_t last_col = std::min(cols, first_col + kPiece);
            const std::size_t last_row = std::min(rows, first_row + kPiece);
            for (std::size_t col = first_col; col < last_col; ++col)
                for (std::size_t row = first_row; row < last_row; ++row)
                    out[col * rows + row] = in[row * cols + col];
        }
    }
}

}  // namespace

void transpose_on_cpu(std::span<const std::uint32_t> in, std::size_t rows, std::size_t cols,
                      std::span<std::uint32_t> out) {
    transpose(in, rows, cols, out);
}

void transpose_on_cpu(std::span<const std::uint16_t> in, std::size_t rows, std::size_t cols,
                      std::span<std::uint16_t> out) {
    transpose(in, rows, cols, out);
}

}  // namespace day06
