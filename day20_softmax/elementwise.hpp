// Functions of one element, the warm-up of day 20: out[i] = f(in[i]). No kernels here; they are in elementwise.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/work.hpp"
#include "common/device/device_view.hpp"

namespace day20 {

// One function: how to run it, and what it should give.
struct Elementwise {
    std::string name;     // "gelu"
    std::string formula;  // "x Phi(x)"
    // Queues out[i] = f(in[i]) on `stream`. Lengths must be equal; 0 is legal. `out` may be `in`, or must lie apart from it.
    // Any alignment of 4 bytes will do. Throws std::invalid_argument otherwise, CudaError when the launch fails.
    void (*launcher)(course::DeviceSpan<const float> in, course::DeviceSpan<float> out, cudaStream_t stream);
    double (*exact)(double x);
    // Error allowed at x, as a multiple of epsilon * |f(x)|: roundings made, and those of the argument of exp() or erfc(),
    // which count as often as the function multiplies relative changes.
    double (*roundings)(double x);
};

// The magnitude for verify() with factor 1: roundings(x) |f(x)|, and what is lost where a factor of f(x) is too small for a float's
// full precision, or for a float at all, while the other factor, x, is not small.
double error_magnitude(const Elementwise& function, double x);

// relu, sigmoid, tanh, gelu (with the normal distribution's Phi) and gelu_tanh (its usual approximation).
std::span<const Elementwise> elementwise_functions();

course::Work elementwise_work(std::size_t n);

}  // namespace day20
