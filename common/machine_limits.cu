#include <algorithm>
#include <functional>
#include <stdexcept>

#include "common/check.hpp"
#include "common/device_buffer.hpp"
#include "common/event_timer.hpp"
#include "common/machine.hpp"
#include "common/machine_limits.hpp"

namespace course {
namespace {

constexpr int kBlock = 256;
constexpr int kInFlight = 4;  // float4 loads each thread asks for before it uses the first
constexpr std::size_t kTile = std::size_t{kBlock} * kInFlight;
constexpr int kChains = 8;  // independent sums a thread: enough to hide the latency of an FMA
constexpr int kBlocksPerMultiprocessor = 32;
constexpr int kRepeats = 20;
constexpr float kNever =
    1234.5f;  // a sum that does not occur; comparing with it keeps the work from being dropped

// Block b moves elements [b * kTile, (b + 1) * kTile); a thread takes every kBlock-th of them.
__global__ void copy_stream(DeviceSpan<float4> out, DeviceSpan<const float4> in) {
    const std::size_t first = blockIdx.x * kTile + threadIdx.x;
    float4 values[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
        values[i] = in[first + i * kBlock];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
        out[first + i * kBlock] = values[i];
}

__global__ void triad_stream(DeviceSpan<float4> out, DeviceSpan<const float4> a, DeviceSpan<const float4> b) {
    const std::size_t first = blockIdx.x * kTile + threadIdx.x;
    float4 left[kInFlight];
    float4 right[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        left[i] = a[first + i * kBlock];
        right[i] = b[first + i * kBlock];
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        const float4 x = left[i];
        const float4 y = right[i];
        out[first + i * kBlock] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

__global__ void read_stream(DeviceSpan<float4> out, DeviceSpan<const float4> in) {
    const std::size_t first = blockIdx.x * kTile + threadIdx.x;
    float4 values[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
        values[i] = in[first + i * kBlock];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
        sum += values[i].x + values[i].y + values[i].z + values[i].w;
    if (sum == kNever) out[first] = values[0];
}

__global__ void fma_chains(DeviceSpan<float> out, int rounds, float scale, float shift) {
    float x[kChains];
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain)
        x[chain] = static_cast<float>(threadIdx.x + chain);
#pragma unroll 16
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int chain = 0; chain < kChains; ++chain)
            x[chain] = fmaf(x[chain], scale, shift);
    }
    float sum = 0;
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain)
        sum += x[chain];
    if (sum == kNever) out[0] = sum;
}

// The shortest of several runs: a limit is what the machine can do, not what it does on average.
double best_seconds(const std::function<void()>& launch) {
    EventTimer timer;
    launch();
    float best_ms = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        launch();  // untimed: keeps the GPU busy while the host queues the timed one
        timer.start();
        launch();
        timer.stop();
        const float ms = timer.elapsed_ms();
        best_ms = repeat == 0 ? ms : std::min(best_ms, ms);
    }
    return static_cast<double>(best_ms) * 1e-3;
}

int multiprocessors() {
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    int count = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

double best_flops_per_second(int rounds) {
    DeviceBuffer<float> out(1);
    const int blocks = kBlocksPerMultiprocessor * multiprocessors();
    const double seconds = best_seconds([&] {
        fma_chains<<<blocks, kBlock>>>(out.span(), rounds, 0.999f, 0.001f);
        CUDA_CHECK_LAUNCH();
    });
    return 2.0 * kChains * rounds * kBlock * blocks / seconds;
}

}  // namespace

MachineLimits measure_machine_limits(std::size_t stream_bytes, int fma_rounds) {
    const auto tiles = static_cast<unsigned>(stream_bytes / (kTile * sizeof(float4)));
    if (tiles == 0 || fma_rounds < 1) {
        throw std::invalid_argument("measure_machine_limits: expected stream_bytes >= " +
                                    std::to_string(kTile * sizeof(float4)) + " and fma_rounds >= 1, got " +
                                    std::to_string(stream_bytes) + " and " + std::to_string(fma_rounds));
    }
    DeviceBuffer<float4> a(tiles * kTile);
    DeviceBuffer<float4> b(tiles * kTile);
    DeviceBuffer<float4> c(tiles * kTile);
    CUDA_CHECK(cudaMemset(a.data(), 0, a.bytes()));
    CUDA_CHECK(cudaMemset(b.data(), 0, b.bytes()));

    MachineLimits limits;
    const auto try_pattern = [&](const char* pattern, double bytes, const std::function<void()>& launch) {
        limits.streams.push_back({pattern, bytes / best_seconds(launch)});
    };
    const auto bytes = static_cast<double>(a.bytes());
    try_pattern("cudaMemcpy", 2 * bytes, [&] {
        CUDA_CHECK(cudaMemcpyAsync(c.data(), a.data(), a.bytes(), cudaMemcpyDeviceToDevice));
    });
    try_pattern("copy", 2 * bytes, [&] {
        copy_stream<<<tiles, kBlock>>>(c.span(), a.span());
        CUDA_CHECK_LAUNCH();
    });
    try_pattern("triad", 3 * bytes, [&] {
        triad_stream<<<tiles, kBlock>>>(c.span(), a.span(), b.span());
        CUDA_CHECK_LAUNCH();
    });
    try_pattern("read", bytes, [&] {
        read_stream<<<tiles, kBlock>>>(c.span(), a.span());
        CUDA_CHECK_LAUNCH();
    });
    limits.memory = *std::max_element(
        limits.streams.begin(), limits.streams.end(),
        [](const auto& x, const auto& y) { return x.bytes_per_second < y.bytes_per_second; });
    limits.flops_per_second = best_flops_per_second(fma_rounds);
    limits.l2_bytes = l2_cache_bytes();
    return limits;
}

const std::optional<MachineLimits>& machine_limits() {
    static const std::optional<MachineLimits> limits = []() -> std::optional<MachineLimits> {
        if (is_cpu_stand_in()) return std::nullopt;
        constexpr std::size_t kStreamBytes = std::size_t{1} << 30;
        constexpr int kFmaRounds = 2048;
        std::size_t free_bytes = 0;
        std::size_t total_bytes = 0;
        CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
        return measure_machine_limits(std::min(kStreamBytes, free_bytes / 4), kFmaRounds);
    }();
    return limits;
}

}  // namespace course
