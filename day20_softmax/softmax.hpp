// Softmax of each row of a matrix: the host API of day 20. No kernels here: softmax.cu has those for one row, one idea after
// the other, softmax_rows.cu those for many rows.
//
//     softmax      y[i] = exp(x[i] - max) / sum_j exp(x[j] - max)
//     log-softmax  y[i] = x[i] - max - log(sum_j exp(x[j] - max))
//
// The maximum changes nothing in exact arithmetic; it keeps exp() from overflowing. Finite inputs of any size are fine.
// A row with a NaN or a +Inf in it, or with nothing but -Inf, has no softmax: all of it becomes NaN, as in PyTorch.
// A -Inf beside finite values is a probability of 0.
//
// Methods: PMPP chapter 10 (reduction); M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/variant.hpp"
#include "common/device/device_view.hpp"

namespace day20 {

enum class Output { kSoftmax, kLogSoftmax };

// "softmax", "log_softmax"
std::string name(Output output);

struct Problem {
    std::size_t rows = 0;
    std::size_t cols = 0;
    Output output = Output::kSoftmax;
};

// What is known of a row, or of a part of one: its maximum, and the sum of exp(x - maximum). Of no values: -Inf and 0.
struct alignas(8) MaxSum {
    float max;
    float sum;
};

// How many MaxSum any version needs to exchange between blocks; less than 1 % of the data, but for short rows.
std::size_t workspace_size(std::size_t rows, std::size_t cols);

// Queues the softmax of each row of `in` into the same row of `out`, on `stream`. Shapes must be equal; no rows or no columns
// is legal. `out` may be `in` (the same address and leading dimension), or must lie apart from it. Any alignment of 4 bytes
// and any leading dimension will do; rows of whole, aligned 16-byte packs are faster.
// `workspace` has at least workspace_size(rows, cols) elements, any content, and belongs to this work until it is done.
// Throws std::invalid_argument for arguments unlike that and for what the variant cannot run, CudaError when a launch fails.
using Launcher = void (*)(Output output, course::DeviceMatrix<const float> in,
                          course::DeviceMatrix<float> out, course::DeviceSpan<MaxSum> workspace,
                          cudaStream_t stream);

// The versions: those for one row, those for many, and last `auto`, which picks by the shape.
using Softmax = course::Variant<Launcher, Problem>;
std::span<const Softmax> variants();

// The variant that `auto` runs for this problem.
const Softmax& chosen_for(const Problem& problem);

// The same on the CPU, for rows that follow one another: a row a core, everything in double. A result below what a float can
// hold (log-softmax of numbers 10^38 apart) is -Inf. Throws std::invalid_argument when the lengths are not rows * cols.
void softmax_on_cpu(const Problem& problem, std::span<const float> in, std::span<double> out);

// The bound for comparing a version with softmax_on_cpu: the magnitudes that verify() scales with 2 * epsilon, one per element.
// `expected` is softmax_on_cpu's result. The README derives it.
void error_magnitudes(const Problem& problem, std::span<const float> in, std::span<const double> expected,
                      std::span<double> magnitude);

}  // namespace day20
