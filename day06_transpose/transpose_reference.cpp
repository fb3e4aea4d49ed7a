#include "common/check/require.hpp"
#include "transpose.hpp"

namespace day06 {
namespace {

template <class T>
void transpose(std::span<const T> in, std::size_t rows, std::size_t cols, std::span<T> out) {
    course::require(in.size() == rows * cols && out.size() == rows * cols, "transpose_on_cpu: in has ",
                    in.size(), " elements, out has ", out.size(), "; expected ",
                    course::shape_text(rows, cols), " each");
#pragma omp parallel for
    for (std::size_t col = 0; col < cols; ++col) {
        for (std::size_t row = 0; row < rows; ++row)
            out[col * rows + row] = in[row * cols + col];
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
