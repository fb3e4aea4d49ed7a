// Facts about the device from the CUDA runtime: a GPU, or the CPU stand-in.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace course::tool {

// "shared memory per block" -> "48 KiB (227 KiB on request)".
using Fact = std::pair<std::string, std::string>;

struct DeviceReport {
    std::string problem;  // why there is no usable device; empty if there is one
    std::vector<Fact> facts;
};

DeviceReport inspect_device();

// Measures now how fast this GPU copies and multiplies. Empty on the CPU, where such figures are
// meaningless.
std::vector<Fact> measure_device();

}  // namespace course::tool
