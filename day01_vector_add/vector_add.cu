// Day 1: vector addition, c = a + b for n floats.                                    PMPP chapters 2 and 3
//
//   version           a thread adds                          what limits it
//   one_per_element   one element                            instructions and blocks: little work each
//   grid_stride       every (number of threads)-th element   4-byte accesses: many requests for few bytes
//   float4            four neighbours at a time              memory: 12 bytes must move for every addition
//
// Each reads 8 and writes 4 bytes for one addition, so the best possible time is 12 n bytes / (memory bandwidth).
//
//   ./course run day01                       all versions, verified and timed
//   ./course run day01 --variant float4 --size 268435456
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "vector_add.hpp"

namespace day01 {
namespace {

using course::DeviceSpan;
using Float4 = course::Pack<float, 4>;

constexpr int kBlockSize = 256;

// The number of this thread among all threads of the grid. size_t before the product: more than 2^24 blocks of 256 threads
// are more than 32 bits can count.
__device__ std::size_t global_thread() {
    return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: as many threads as elements; neighbouring threads take neighbouring elements, so a warp reads 128 bytes in a row.
// Cost removed: the loop of the CPU.
// Still limits it: a thread starts, adds once and is gone, and the grid must fit the data.
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = global_thread();
    if (i < n) c[i] = a[i] + b[i];
}

// Idea: as many threads as the GPU can hold at once; each goes on one whole grid further.
// Cost removed: starting a block for every 256 elements; any grid is right for any n.
// Still limits it: every access moves 4 bytes per thread, and each step of the loop waits for the one before.
__global__ void add_grid_stride(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = global_thread(); i < n; i += stride)
        c[i] = a[i] + b[i];
}

// Idea: 16 bytes per access. The pointers must be multiples of 16; up to three elements are left for single threads.
// Cost removed: three of four load and store instructions; four times the bytes in flight per thread.
// Still limits it: memory itself.
__global__ void add_float4(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = global_thread();
    const std::size_t packs = n / 4;
    if (i < packs) {
        const Float4 x = Float4::load(a + 4 * i);
        const Float4 y = Float4::load(b + 4 * i);
        Float4 sum;
        for (int k = 0; k < 4; ++k)
            sum.value[k] = x.value[k] + y.value[k];
        sum.store(c + 4 * i);
    }
    const std::size_t tail = 4 * packs + i;
    if (tail < n) c[tail] = a[tail] + b[tail];
}

// --- Launchers -------------------------------------------------------------------------------------------------------

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("vector_add: " + message);
}

// The same elements, or none in common.
bool same_or_apart(DeviceSpan<const float> in, DeviceSpan<float> out) {
    return in.data() == out.data() || !overlap(in, out);
}

void check_arguments(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c) {
    require(a.size() == c.size() && b.size() == c.size(),
            "a, b and c have " + std::to_string(a.size()) + ", " + std::to_string(b.size()) + " and " +
                std::to_string(c.size()) + " elements; expected the same number");
    require(same_or_apart(a, c), "c overlaps a but is not a; expected the same elements or none in common");
    require(same_or_apart(b, c), "c overlaps b but is not b; expected the same elements or none in common");
}

void launch_one_per_element(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                            cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;  // a grid must have a block
    const unsigned blocks = course::blocks_for(c.size(), kBlockSize);
    add_one_per_element<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

void launch_grid_stride(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                        cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;
    const unsigned needed = course::blocks_for(c.size(), kBlockSize);
    const unsigned blocks = std::min(needed, course::resident_blocks(add_grid_stride, kBlockSize));
    add_grid_stride<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

void launch_float4(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                   cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;
    for (const void* pointer : {static_cast<const void*>(a.data()), static_cast<const void*>(b.data()),
                                static_cast<const void*>(c.data())}) {
        if (!course::is_aligned(pointer, sizeof(Float4))) return launch_grid_stride(a, b, c, stream);
    }
    const unsigned blocks = course::blocks_for(course::ceil_div<std::size_t>(c.size(), 4), kBlockSize);
    add_float4<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 3 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const VectorAdd> variants() {
    static const std::array<VectorAdd, 3> list = {{
        {"one_per_element", "one thread per element", launch_one_per_element, work},
        {"grid_stride", "resident threads stride over the data", launch_grid_stride, work},
        {"float4", "16 bytes per access, scalar tail", launch_float4, work},
    }};
    return list;
}

}  // namespace day01
