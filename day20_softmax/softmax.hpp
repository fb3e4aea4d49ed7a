// Softmax of one row: the host API of day 20. The kernels are in softmax.cuh.
//
//     softmax      y[i] = exp(x[i] - max) / sum_j exp(x[j] - max)
//     log-softmax  y[i] = x[i] - max - log(sum_j exp(x[j] - max))
//
// In exact arithmetic the maximum cancels out. It keeps exp() from overflowing, so finite inputs of
// any size are allowed. A row with a NaN or a +Inf in it, or with nothing but -Inf, has no softmax:
// all of the result is NaN, as in PyTorch. A -Inf beside finite values is a probability of 0.
//
// Online softmax: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "max_sum.hpp"

namespace day20 {

// "softmax", "log_softmax"
std::string name(Output output);

struct Problem {
    std::size_t n = 0;  // elements of the row
    Output output = Output::kSoftmax;
};

// The number of parts that any version exchanges between kernels; less than 1 % of the data, except
// for short rows.
std::size_t workspace_size(std::size_t n);

// Enqueues the softmax of `in` into `out` on `stream`. Lengths must be equal; 0 is legal. `out` may
// be `in`, or must not overlap it. Any alignment of 4 bytes works.
// `workspace` has at least workspace_size(n) elements with any content. No other work may use it
// until this work is done.
// Throws std::invalid_argument for a bad argument and for what the version cannot run, CudaError
// when a launch fails.
using Launcher = void (*)(Output output, course::DeviceSpan<const float> in, course::DeviceSpan<float> out,
                          course::DeviceSpan<MaxSum> workspace, cudaStream_t stream);

// The versions, slow to fast. Only `online` also computes log-softmax.
using Softmax = course::Version<Launcher, Problem>;
std::span<const Softmax> versions();

// The reference, in double. A log-softmax below the range of a float is -Inf.
// Throws std::invalid_argument when the lengths differ.
void softmax_on_cpu(Output output, std::span<const float> in, std::span<double> out);

// The bound for comparing a version with softmax_on_cpu: the magnitudes that verify() scales with
// 2 * epsilon, one per element. `expected` is softmax_on_cpu's result. Derived where it is defined.
void error_magnitudes(Output output, std::span<const float> in, std::span<const double> expected,
                      std::span<double> magnitude);

}  // namespace day20
