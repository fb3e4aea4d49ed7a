// The selective scan of state space models (A. Gu and T. Dao, "Mamba: linear-time sequence modeling
// with selective state spaces", 2023): many recurrences whose coefficients depend on the input. The
// kernels are in selective_scan.cuh.
//
// Each channel of each sequence of the batch has `states` numbers h[n], all 0 before the first time
// step. At time t, with the channel's delta = delta[t] and x = x[t],
//
//     h[n] = exp(delta a[n]) h[n] + delta b[n][t] x           for every state n
//     y[t] = sum over n of c[n][t] h[n]  +  d x
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day16 {

struct SelectiveShape {
    std::size_t batch = 1;
    std::size_t channels = 1;
    std::size_t length = 0;  // time steps
    std::size_t states = 1;  // at most kMostStates
};
inline constexpr std::size_t kMostStates = 1024;

// Packed arrays, the last extent is contiguous. `y` overlaps no input.
struct SelectiveScan {
    SelectiveShape shape;
    course::DeviceSpan<const float> x;      // batch x channels x length
    course::DeviceSpan<const float> delta;  // batch x channels x length
    course::DeviceSpan<const float> a;      // channels x states
    course::DeviceSpan<const float> b;      // batch x states x length: the same for all channels
    course::DeviceSpan<const float> c;      // batch x states x length
    course::DeviceSpan<const float> d;      // channels
    course::DeviceSpan<float> y;            // batch x channels x length
};

// Enqueues the scan on `stream`. Any extent may be 0, except that states is at least 1. Products of
// consecutive exp(delta a) must be finite, as they are where delta >= 0 and a <= 0. Throws
// std::invalid_argument for a bad argument, CudaError when a launch fails.
using SelectiveLauncher = void (*)(const SelectiveScan& scan, cudaStream_t stream);

// The versions, slow to fast.
using SelectiveVersion = course::Version<SelectiveLauncher, SelectiveShape>;
std::span<const SelectiveVersion> selective_versions();

// The same arrays on the host.
struct SelectiveInputs {
    SelectiveShape shape;
    std::vector<float> x, delta, a, b, c, d;
};

// The reference: one time step after the other, in double. |y - values| <= 2^-24 magnitudes for
// every version (up to terms of 2^-48), which is a Bound with kSelectiveFactor; the derivation is
// in selective_scan_reference.cpp.
struct SelectiveOnCpu {
    std::vector<double> values;
    std::vector<double> magnitudes;
};
SelectiveOnCpu selective_scan_on_cpu(const SelectiveInputs& inputs);
inline constexpr double kSelectiveFactor = 0.5 * 1.001;  // verify() counts in 2^-23

}  // namespace day16
