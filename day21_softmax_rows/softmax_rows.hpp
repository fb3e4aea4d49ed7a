// Softmax of each row of a matrix: the host API of day 21. The kernels are in softmax_rows.cuh
// and in beyond/.
//
//     softmax      y[i] = exp(x[i] - max) / sum_j exp(x[j] - max)
//     log-softmax  y[i] = x[i] - max - log(sum_j exp(x[j] - max))
//
// Finite inputs of any size are allowed. A row with a NaN or a +Inf in it, or with nothing but
// -Inf, has no softmax: the whole row becomes NaN, as in PyTorch. A -Inf beside finite values is a
// probability of 0.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "max_sum.hpp"

namespace day21 {

// "softmax", "log_softmax"
std::string name(Output output);

struct Problem {
    std::size_t rows = 0;
    std::size_t cols = 0;
    Output output = Output::kSoftmax;
};

// The number of parts that any version exchanges between blocks; less than 1 % of the data, except
// for short rows.
std::size_t workspace_size(std::size_t rows, std::size_t cols);

// Enqueues the softmax of each row of `in` into the same row of `out` on `stream`. Shapes must be
// equal; no rows or no columns is legal. `out` may be `in` (the same address and leading
// dimension), or must not overlap it. Any alignment of 4 bytes and any leading dimension work; rows
// of whole, 16-byte aligned packs are faster.
// `workspace` has at least workspace_size(rows, cols) elements with any content. No other work may
// use it until this work is done.
// Throws std::invalid_argument for a bad argument and for what the version cannot run, CudaError
// when a launch fails.
using Launcher = void (*)(Output output, course::DeviceMatrix<const float> in,
                          course::DeviceMatrix<float> out, course::DeviceSpan<MaxSum> workspace,
                          cudaStream_t stream);

// The versions, from short rows to long ones, and last `auto`, which chooses by the shape.
using Softmax = course::Version<Launcher, Problem>;
std::span<const Softmax> versions();

// The version that `auto` runs for this problem.
const Softmax& chosen_for(const Problem& problem);

// The reference, for rows without gaps between them, in double. A log-softmax below the range of a
// float is -Inf. Throws std::invalid_argument when a length is not rows * cols.
void softmax_on_cpu(const Problem& problem, std::span<const float> in, std::span<double> out);

// The bound for comparing a version with softmax_on_cpu: the magnitudes that verify() scales with
// 2 * epsilon, one per element. `expected` is softmax_on_cpu's result. The README derives it.
void error_magnitudes(const Problem& problem, std::span<const float> in, std::span<const double> expected,
                      std::span<double> magnitude);

}  // namespace day21
