#include "transpose_plain_loop.hpp"

namespace day06 {
namespace {

template <class T>
void transpose(std::span<const T> in, std::size_t rows, std::size_t cols, std::span<T> out, int threads) {
#pragma omp parallel for num_threads(threads)
    for (std::size_t col = 0; col < cols; ++col)
        for (std::size_t row = 0; row < rows; ++row)
            out[col * rows + row] = in[row * cols + col];
}

}  // namespace

void transpose_plainly(std::span<const std::uint32_t> in, std::size_t rows, std::size_t cols,
                       std::span<std::uint32_t> out, int threads) {
    transpose(in, rows, cols, out, threads);
}

void transpose_plainly(std::span<const std::uint16_t> in, std::size_t rows, std::size_t cols,
                       std::span<std::uint16_t> out, int threads) {
    transpose(in, rows, cols, out, threads);
}

}  // namespace day06
