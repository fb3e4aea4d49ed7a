#include "thread_name.hpp"

#include <cstdio>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {
namespace {

using Coordinates = std::array<char, 36>;

Coordinates coordinates(uint3 index, dim3 extent) {
    Coordinates text;
    if (extent.z > 1) {
        std::snprintf(text.data(), text.size(), "(%u,%u,%u)", index.x, index.y, index.z);
    } else if (extent.y > 1) {
        std::snprintf(text.data(), text.size(), "(%u,%u)", index.x, index.y);
    } else {
        std::snprintf(text.data(), text.size(), "%u", index.x);
    }
    return text;
}

}  // namespace

ThreadName name_of_running_block() {
    ThreadName name;
    std::snprintf(name.data(), name.size(), "block %s", coordinates(blockIdx, gridDim).data());
    return name;
}

ThreadName name_of_running_thread() {
    ThreadName name;
    std::snprintf(name.data(), name.size(), "block %s, thread %s", coordinates(blockIdx, gridDim).data(),
                  coordinates(threadIdx, blockDim).data());
    return name;
}

}  // namespace cuda_on_cpu
