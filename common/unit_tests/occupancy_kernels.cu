#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "occupancy_kernels.hpp"

namespace course::testing {
namespace {

// All of `values` are live until the last one is loaded, so each needs a register.
template <int VALUES, int SHARED, int THREADS>
__global__ __launch_bounds__(THREADS) void hold(float* data) {
    __shared__ float tile[SHARED];
    float values[VALUES];
#pragma unroll
    for (int i = 0; i < VALUES; ++i)
        values[i] = data[threadIdx.x * VALUES + i];
    tile[threadIdx.x % SHARED] = values[VALUES - 1];
    __syncthreads();
    const float factor = tile[(threadIdx.x + 1) % SHARED];
#pragma unroll
    for (int i = 0; i < VALUES; ++i)
        data[threadIdx.x * VALUES + VALUES - 1 - i] = factor * values[i];
}

template <int VALUES, int SHARED, int THREADS>
OccupancyKernel kernel() {
    const auto allow = [](std::size_t dynamic_shared) {
        CUDA_CHECK(cudaFuncSetAttribute(hold<VALUES, SHARED, THREADS>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(dynamic_shared)));
    };
    return {.name = std::to_string(VALUES) + "_values_" + std::to_string(SHARED) + "_shared",
            .most_threads = THREADS,
            .shared = SHARED * sizeof(float),
            .live_values = VALUES,
            .run =
                [] {
                    DeviceBuffer<float> data{std::span<const float>(std::vector<float>(VALUES * THREADS))};
                    hold<VALUES, SHARED, THREADS><<<1, THREADS>>>(data.data());
                    CUDA_CHECK_LAUNCH();
                    CUDA_CHECK(cudaDeviceSynchronize());
                },
            .resources =
                [allow](int threads, std::size_t dynamic_shared) {
                    allow(dynamic_shared);
                    return resources_of(hold<VALUES, SHARED, THREADS>, threads, dynamic_shared);
                },
            .blocks =
                [allow](int threads, std::size_t dynamic_shared) {
                    allow(dynamic_shared);
                    int blocks = 0;
                    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                        &blocks, hold<VALUES, SHARED, THREADS>, threads, dynamic_shared));
                    return blocks;
                }};
}

}  // namespace

std::span<const OccupancyKernel> occupancy_kernels() {
    static const std::vector<OccupancyKernel> all = {kernel<1, 1, 1024>(),      kernel<24, 33, 1024>(),
                                                     kernel<40, 1024, 768>(),   kernel<56, 4096, 640>(),
                                                     kernel<72, 1, 448>(),      kernel<100, 3000, 384>(),
                                                     kernel<120, 12288, 512>(), kernel<150, 64, 320>(),
                                                     kernel<200, 8192, 256>(),  kernel<240, 1, 128>()};
    return all;
}

}  // namespace course::testing
