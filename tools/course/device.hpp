// What the CUDA runtime says of the device: a GPU, or the CPU that stands in for one.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace course::tool {

using Fact =
    std::pair<std::string, std::string>;  // "shared memory per block" -> "48 KiB (227 KiB on request)"

struct DeviceReport {
    std::string problem;  // why there is no device to use; empty when there is one
    std::vector<Fact> facts;
};

DeviceReport inspect_device();

// How fast this GPU copies and multiplies, measured now. Nothing on the CPU, where it would mean
// nothing.
std::vector<Fact> measure_device();

}  // namespace course::tool
