// out[col][row] = in[row][col]: the host API of day 6. No kernels here; they are in transpose.cuh
// and beyond/transpose_any.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day06 {

// Queues the transpose of `in` into `out` on `stream`. Each matrix has its own leading dimension.
// Elements are moved bit by bit. What lies between the rows of `out` stays as it is. A matrix
// without elements is fine: nothing is queued.
// Throws std::invalid_argument when out is not cols x rows, when it overlaps `in`, or when the
// version cannot run the problem. CudaError when the launch fails.
template <class T>
using LauncherOf = void (*)(course::DeviceMatrix<const T> in, course::DeviceMatrix<T> out,
                            cudaStream_t stream);

// A version for each element size. The first versions move only words; their `halves` always
// throws.
struct Launcher {
    LauncherOf<std::uint32_t> words;
    LauncherOf<std::uint16_t> halves;

    void operator()(course::DeviceMatrix<const std::uint32_t> in, course::DeviceMatrix<std::uint32_t> out,
                    cudaStream_t stream) const {
        words(in, out, stream);
    }
    void operator()(course::DeviceMatrix<const std::uint16_t> in, course::DeviceMatrix<std::uint16_t> out,
                    cudaStream_t stream) const {
        halves(in, out, stream);
    }
};

// What decides whether a version can run.
struct Problem {
    std::size_t rows;  // of in
    std::size_t cols;
    std::size_t in_ld;
    std::size_t out_ld;
    std::size_t element_bytes;  // 2 or 4
    bool packs_aligned;         // all rows of both matrices are 16-byte aligned
};

template <class T>
Problem problem_of(course::DeviceMatrix<const T> in, course::DeviceMatrix<T> out) {
    const auto aligned = [](const auto& matrix) {
        return reinterpret_cast<std::uintptr_t>(matrix.data()) % 16 == 0 &&
               matrix.leading_dimension() * sizeof(T) % 16 == 0;
    };
    return {.rows = in.rows(),
            .cols = in.cols(),
            .in_ld = in.leading_dimension(),
            .out_ld = out.leading_dimension(),
            .element_bytes = sizeof(T),
            .packs_aligned = aligned(in) && aligned(out)};
}

// The versions, in the order of the lesson.
using Transpose = course::Version<Launcher, Problem>;
std::span<const Transpose> versions();

// For at most 32 rows or at most 32 columns, beside them.
std::span<const Transpose> skinny_versions();

// The same on the CPU. Both matrices without padding: in has rows * cols elements, and so has out.
// Throws std::invalid_argument when they do not.
void transpose_on_cpu(std::span<const std::uint32_t> in, std::size_t rows, std::size_t cols,
                      std::span<std::uint32_t> out);
void transpose_on_cpu(std::span<const std::uint16_t> in, std::size_t rows, std::size_t cols,
                      std::span<std::uint16_t> out);

}  // namespace day06
