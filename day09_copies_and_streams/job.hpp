// What a version of day 9 is given: the data, and the size of the work.
#pragma once

#include <cstddef>

namespace day09 {

// Where the host's data of a job lies. It determines which versions can run, and how fast a copy
// is.
enum class HostMemory {
    kPageable,  // malloc: the operating system may move a page, or write it to disk
    kPinned,    // cudaMallocHost: pages that stay where they are, so that the device can reach them
    kManaged,   // cudaMallocManaged: pages that move to where they are used
};

// n floats of `in` are copied to the device, a kernel computes n floats from them, and these are
// copied back to `out`.
struct Job {
    const float* in = nullptr;  // host memory of the version's kind
    float* out = nullptr;       // likewise; no byte in common with `in`
    std::size_t n = 0;          // 0 is legal
    int steps = 1;              // fused multiply-adds per element: how long the kernel takes. >= 0
    int chunks = 8;             // into how many pieces the versions with chunks cut the data. >= 1
};

// One step moves x by a ten-thousandth of the way to 1. A fused multiply-add rounds once, so host
// and device compute the same bits.
inline constexpr float kFactor = 0.9999f;
inline constexpr float kAddend = 0.0001f;

}  // namespace day09
