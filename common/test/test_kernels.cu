#include <numeric>
#include <vector>

#include "common/check.hpp"
#include "common/device_buffer.hpp"
#include "common/grid.hpp"
#include "common/pack.cuh"
#include "common/random.hpp"
#include "test_kernels.hpp"

namespace course::testing {
namespace {

// One thread an element; element i lives at `payload + i`, wherever that may be.
__global__ void fill_kernel(float* payload, float value, std::int64_t first, std::int64_t count) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) payload[first + i] = value;
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

__global__ void draw_kernel(DeviceSpan<RandomSample> out, std::uint64_t seed) {
    out[0] = RandomSample::draw(seed);
}

}  // namespace

void fill(DeviceSpan<float> out, float value, std::int64_t first, std::int64_t count, cudaStream_t stream) {
    if (count == 0) return;
    constexpr int kBlock = 128;
    fill_kernel<<<static_cast<unsigned>((count + kBlock - 1) / kBlock), kBlock, 0, stream>>>(
        out.data(), value, first, count);
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

}  // namespace course::testing
