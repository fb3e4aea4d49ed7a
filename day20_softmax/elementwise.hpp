// Functions of one element, beyond the core of day 20: out[i] = f(in[i]). The kernel is in
// beyond/elementwise.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/work.hpp"
#include "common/device/device_view.hpp"

namespace day20 {

// One function: its launcher and its exact values.
struct Elementwise {
    std::string name;     // "gelu"
    std::string formula;  // "x Phi(x)"
    // Enqueues out[i] = f(in[i]) on `stream`. Lengths must be equal; 0 is legal. `out` may be `in`,
    // or must not overlap it. Any alignment of 4 bytes works. Throws std::invalid_argument
    // otherwise, CudaError when the launch fails.
    void (*launcher)(course::DeviceSpan<const float> in, course::DeviceSpan<float> out, cudaStream_t stream);
    double (*exact)(double x);
    // The error allowed at x, as a multiple of epsilon * |f(x)|: the roundings of the result, and those
    // of the argument of exp() or erfc(), multiplied by the function's condition number.
    double (*roundings)(double x);
};

// The magnitude for verify() with factor 1: roundings(x) |f(x)|, plus the loss where a factor of f(x)
// is denormal or underflows while the other factor, x, is not small.
double error_magnitude(const Elementwise& function, double x);

// relu, sigmoid, tanh, gelu (with the normal distribution's Phi) and gelu_tanh (its usual
// approximation).
std::span<const Elementwise> elementwise_functions();

course::Work elementwise_work(std::size_t n);

}  // namespace day20
