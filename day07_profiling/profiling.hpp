// The host API of day 7: eight mysteries, each slow and repaired. The kernels are in
// slow_kernels/mystery1.cuh and mystery1.cuh, and so on.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day07 {

// What all mysteries look like: `in`, `work` and `out` have as many elements as Layout says for n,
// which is at least 1. `work` is memory for what lies between; its contents do not matter.
using Launch = void (*)(const float* in, std::size_t n, float* work, float* out, cudaStream_t stream);

struct Layout {
    std::size_t in = 0;
    std::size_t work = 0;
    std::size_t out = 0;
    std::size_t terms = 1;  // of the sum behind one element of the result
};

struct Mystery {
    Launch launch = nullptr;
    Layout (*layout)(std::size_t n) = nullptr;
    // The reference: plain loops in double; `magnitude` bounds the rounding errors.
    void (*on_cpu)(std::size_t n, std::span<const float> in, std::span<double> out,
                   std::span<double> magnitude) = nullptr;
    // A problem of E elements has n = E / elements, and at least 1.
    std::size_t elements = 1;
    std::size_t bench_elements = 0;  // of the problem that a GPU is timed with

    std::size_t n_of(std::size_t all) const { return all < elements ? 1 : all / elements; }
};

// mystery1, mystery1_repaired, mystery2, ...
using Version = course::Version<Mystery, std::size_t>;
std::span<const Version> versions();

// Checks the arguments and enqueues the version. Throws std::invalid_argument for a bad argument,
// CudaError when a launch fails.
void run(const Version& version, course::DeviceSpan<const float> in, std::size_t n,
         course::DeviceSpan<float> work, course::DeviceSpan<float> out, cudaStream_t stream);

}  // namespace day07
