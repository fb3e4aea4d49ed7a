// Small kernels for the tests of common/: some right, some wrong on purpose.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/device_view.hpp"

namespace course::testing {

// out[i] = value for `count` indices from `first` on: out of range if `first` and `count` lead
// there.
void fill(DeviceSpan<float> out, float value, std::int64_t first, std::int64_t count,
          cudaStream_t stream = nullptr);

// Wrong on purpose: computes 32 elements each from the output itself, from shared memory and from
// `fresh`, none of which was written, then writes 8 that are right (1) and leaves the rest. `out`
// has at least 104 elements, `fresh` 32. out[i] = in[i] + in[i + 1], one block.
void add_neighbours(DeviceSpan<float> out, DeviceSpan<const float> in);

void compute_from_unwritten(DeviceSpan<float> out, DeviceSpan<const float> fresh);

// out(r, c) = 100 r + c
void number_matrix(DeviceMatrix<float> out);

// A launch with more threads in a block than any GPU has. Throws CudaError.
void launch_too_many_threads();

// The same numbers as from RandomSample::draw, drawn by one thread of a kernel.
struct RandomSample {
    std::uint64_t bits[4];
    std::uint32_t below[4];
    std::int32_t integer[4];
    float uniform[4];
    float normal[4];

    static __host__ __device__ RandomSample draw(std::uint64_t seed);
};
RandomSample draw_on_device(std::uint64_t seed);

// The result of resident_blocks() for a kernel that uses no shared memory.
unsigned resident_blocks_of_a_small_kernel(int block_size);

// Copies 64 floats in packs of four. Returns whether the order was kept.
bool packs_copy_right();

// Stores single floats and loads them as a pack, and stores a pack and loads single floats.
// Returns whether all loads returned the stored values.
bool packs_and_floats_see_each_other();

// How many threads of three warps get another result from warp_reduce() than from a loop over
// their warp's values: sums of 4 and of 8 bytes, a minimum, and xor, where each value must count
// exactly once.
int lanes_with_a_wrong_reduction();

// How many times a thread of a block with 1, 3 or 32 warps gets a wrong result from
// block_reduce(), for the maximum and the sum of its block in turn, several times.
int threads_with_a_wrong_block_reduction();

}  // namespace course::testing
