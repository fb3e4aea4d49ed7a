#include <cstdint>
#include <numeric>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/block_reduce.cuh"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/random.hpp"
#include "common/device/warp.cuh"
#include "test_kernels.hpp"

namespace course::testing {
namespace {

// One thread per element; element i is at `payload + i`, even out of range.
__global__ void fill_kernel(float* payload, float value, std::int64_t first, std::int64_t count) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) payload[first + i] = value;
}

__global__ void compute_from_unwritten_kernel(float* out, const float* fresh) {
    __shared__ float tile[32];
    const unsigned i = threadIdx.x;
    out[i] += 1;
    out[32 + i] = 2 * tile[i] + 1;
    out[64 + i] = sqrtf(3 - fresh[i]);
    if (i < 8) out[96 + i] = 1;
}

__global__ void add_neighbours_kernel(float* out, const float* in) {
    out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x + 1];
}

__global__ void number_kernel(DeviceMatrix<float> out) {
    const std::size_t row = blockIdx.x;
    const std::size_t col = threadIdx.x;
    if (col < out.cols()) out(row, col) = static_cast<float>(100 * row + col);
}

__global__ void nothing() {}

__global__ void copy_packs(float* out, const float* in) {
    Pack<float, 4>::load(in + 4 * threadIdx.x).store(out + 4 * threadIdx.x);
}

// A thread must load as a pack what it has just stored as floats, and vice versa, because floats
// and the pack's word alias.
__global__ void mix_packs_and_floats(float* floats, float* sums) {
    for (int i = 0; i < 4; ++i)
        floats[i] = static_cast<float>(i + 1);
    Pack<float, 4> pack = Pack<float, 4>::load(floats);
    sums[0] = pack.value[0] + pack.value[1] + pack.value[2] + pack.value[3];
    const float before = floats[0];
    for (float& value : pack.value)
        value += 100;
    pack.store(floats);
    sums[1] = before + floats[0];
}

// All threads have different values, and for every two bit positions some thread has different
// bits there.
__host__ __device__ std::uint64_t value_of_thread(unsigned thread) {
    return Random(7, thread).next();
}

__global__ void reduce_warps(int* wrong) {
    const std::uint64_t mine = value_of_thread(threadIdx.x);
    const auto add = [](auto a, auto b) { return a + b; };
    const auto least = [](auto a, auto b) { return b < a ? b : a; };
    const auto exclusive_or = [](auto a, auto b) { return a ^ b; };
    const auto small = [](std::uint64_t value) {
        return static_cast<float>(value % 1000);
    };  // their sum is exact

    float sum4 = 0;
    double sum8 = 0;
    std::int64_t minimum = static_cast<std::int64_t>(mine);
    std::uint32_t bits = 0;
    const unsigned first_lane = threadIdx.x / kWarpSize * kWarpSize;
    for (unsigned thread = first_lane; thread < first_lane + kWarpSize; ++thread) {
        const std::uint64_t value = value_of_thread(thread);
        sum4 += small(value);
        sum8 += static_cast<double>(small(value));
        minimum = least(minimum, static_cast<std::int64_t>(value));
        bits ^= static_cast<std::uint32_t>(value);
    }
    // & and not &&: all lanes must take part in each reduction, even if a lane has found an error
    // in the previous one.
    const bool right = (warp_reduce(small(mine), add) == sum4) &
                       (warp_reduce(static_cast<double>(small(mine)), add) == sum8) &
                       (warp_reduce(static_cast<std::int64_t>(mine), least) == minimum) &
                       (warp_reduce(static_cast<std::uint32_t>(mine), exclusive_or) == bits);
    if (!right) atomicAdd(wrong, 1);
}

__global__ void draw_kernel(DeviceSpan<RandomSample> out, std::uint64_t seed) {
    out[0] = RandomSample::draw(seed);
}

// Thread t has the value -1 - (7 t + round) mod kThreads. The largest value is -1, in another lane
// each round, and the identity of the maximum must be below it. Sums of whole numbers are exact.
template <int kThreads>
__global__ void reduce_block(int* wrong) {
    constexpr float kSum = -static_cast<float>(kThreads) * (kThreads + 1) / 2;
    for (int round = 0; round < 3; ++round) {
        const float value =
            -1.0f - static_cast<float>((7 * threadIdx.x + static_cast<unsigned>(round)) % kThreads);
        const float max = block_reduce<kThreads>(value, Max{});
        const float sum = block_reduce<kThreads>(value, Sum{});
        if (max != -1.0f || sum != kSum) atomicAdd(wrong, 1);
    }
}

}  // namespace

void fill(DeviceSpan<float> out, float value, std::int64_t first, std::int64_t count, cudaStream_t stream) {
    if (count == 0) return;
    constexpr int kBlock = 128;
    fill_kernel<<<static_cast<unsigned>((count + kBlock - 1) / kBlock), kBlock, 0, stream>>>(
        out.data(), value, first, count);
    CUDA_CHECK_LAUNCH();
}

void compute_from_unwritten(DeviceSpan<float> out, DeviceSpan<const float> fresh) {
    compute_from_unwritten_kernel<<<1, 32>>>(out.data(), fresh.data());
    CUDA_CHECK_LAUNCH();
}

void add_neighbours(DeviceSpan<float> out, DeviceSpan<const float> in) {
    add_neighbours_kernel<<<1, static_cast<unsigned>(out.size())>>>(out.data(), in.data());
    CUDA_CHECK_LAUNCH();
}

void number_matrix(DeviceMatrix<float> out) {
    number_kernel<<<static_cast<unsigned>(out.rows()), 64>>>(out);
    CUDA_CHECK_LAUNCH();
}

void launch_too_many_threads() {
    nothing<<<1, 4096>>>();
    CUDA_CHECK_LAUNCH();
}

__host__ __device__ RandomSample RandomSample::draw(std::uint64_t seed) {
    RandomSample sample;
    Random bits(seed);
    Random below(seed);
    Random integer(seed);
    Random uniform(seed);
    Random normal(seed);
    for (int i = 0; i < 4; ++i) {
        sample.bits[i] = bits.next();
        sample.below[i] = below.below(1000);
        sample.integer[i] = integer.integer(-5, 5);
        sample.uniform[i] = uniform.uniform(0.1f, 0.7f);
        sample.normal[i] = normal.normal();
    }
    return sample;
}

RandomSample draw_on_device(std::uint64_t seed) {
    DeviceBuffer<RandomSample> out(1);
    draw_kernel<<<1, 1>>>(out.span(), seed);
    CUDA_CHECK_LAUNCH();
    return out.to_host()[0];
}

unsigned resident_blocks_of_a_small_kernel(int block_size) {
    return resident_blocks(nothing, block_size);
}

bool packs_copy_right() {
    std::vector<float> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    const DeviceBuffer<float> in{std::span<const float>(numbers)};
    DeviceBuffer<float> out(numbers.size());
    copy_packs<<<1, 16>>>(out.data(), in.data());
    CUDA_CHECK_LAUNCH();
    return is_aligned(out.data(), 16) && !is_aligned(out.data() + 1, 16) && out.to_host() == numbers;
}

bool packs_and_floats_see_each_other() {
    DeviceBuffer<float> floats(4);
    DeviceBuffer<float> sums(2);
    mix_packs_and_floats<<<1, 1>>>(floats.data(), sums.data());
    CUDA_CHECK_LAUNCH();
    return sums.to_host() == std::vector<float>{1 + 2 + 3 + 4, 1 + 101};
}

int lanes_with_a_wrong_reduction() {
    const int none = 0;
    DeviceBuffer<int> wrong{std::span(&none, 1)};
    reduce_warps<<<1, 3 * kWarpSize>>>(wrong.data());
    CUDA_CHECK_LAUNCH();
    return wrong.to_host()[0];
}

int threads_with_a_wrong_block_reduction() {
    const int none = 0;
    DeviceBuffer<int> wrong{std::span(&none, 1)};
    reduce_block<32><<<2, 32>>>(wrong.data());
    reduce_block<96><<<2, 96>>>(wrong.data());
    reduce_block<1024><<<2, 1024>>>(wrong.data());
    CUDA_CHECK_LAUNCH();
    return wrong.to_host()[0];
}

}  // namespace course::testing
