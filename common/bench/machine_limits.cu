#include <algorithm>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>

#include "common/bench/event_timer.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/machine_limits.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"

namespace course {
namespace {

constexpr int kBlock = 256;
constexpr int kMostInFlight = 4;
constexpr std::size_t kTile = std::size_t{kBlock} * kMostInFlight;  // arrays are whole tiles
constexpr int kChains = 8;  // independent sums a thread: enough to hide the latency of an FMA
constexpr int kBlocksPerMultiprocessor = 32;
constexpr int kRepeats = 20;
// A sum that does not occur. The comparison with it keeps the compiler from removing the work.
constexpr float kNever = 1234.5f;

// Each block moves kBlock * IN_FLIGHT consecutive elements. A thread takes every kBlock-th of
// them, and issues all of its loads before it uses the first value.
template <int IN_FLIGHT>
__device__ std::size_t first_of_thread() {
    return static_cast<std::size_t>(blockIdx.x) * kBlock * IN_FLIGHT + threadIdx.x;
}

template <int IN_FLIGHT>
__global__ void copy_stream(DeviceSpan<float4> out, DeviceSpan<const float4> in) {
    const std::size_t first = first_of_thread<IN_FLIGHT>();
    float4 values[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i)
        values[i] = in[first + i * kBlock];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i)
        out[first + i * kBlock] = values[i];
}

template <int IN_FLIGHT>
__global__ void triad_stream(DeviceSpan<float4> out, DeviceSpan<const float4> a, DeviceSpan<const float4> b) {
    const std::size_t first = first_of_thread<IN_FLIGHT>();
    float4 left[IN_FLIGHT];
    float4 right[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) {
        left[i] = a[first + i * kBlock];
        right[i] = b[first + i * kBlock];
    }
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) {
        const float4 x = left[i];
        const float4 y = right[i];
        out[first + i * kBlock] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

template <int IN_FLIGHT>
__global__ void read_stream(DeviceSpan<float4> out, DeviceSpan<const float4> in) {
    const std::size_t first = first_of_thread<IN_FLIGHT>();
    float4 values[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i)
        values[i] = in[first + i * kBlock];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i)
        sum += values[i].x + values[i].y + values[i].z + values[i].w;
    if (sum == kNever) out[first] = values[0];
}

template <int IN_FLIGHT>
__global__ void write_stream(DeviceSpan<float4> out) {
    const std::size_t first = first_of_thread<IN_FLIGHT>();
    const auto value = static_cast<float>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i)
        out[first + i * kBlock] = make_float4(value, value, value, value);
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

// The shortest of several runs, because a limit is the best time that the machine can reach, not
// the average.
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

// Keeps the fastest of all kernels with the same mix of reads and writes.
void keep_best(MachineLimits& limits, StreamRate rate, double bytes, const std::function<void()>& launch) {
    rate.bytes_per_second = bytes / best_seconds(launch);
    for (StreamRate& known : limits.streams) {
        if (known.written_share != rate.written_share) continue;
        if (rate.bytes_per_second > known.bytes_per_second) known = rate;
        return;
    }
    limits.streams.push_back(rate);
}

template <int IN_FLIGHT>
void try_streams(MachineLimits& limits, DeviceBuffer<float4>& a, DeviceBuffer<float4>& b,
                 DeviceBuffer<float4>& c) {
    const auto blocks = static_cast<unsigned>(c.size() / (kBlock * IN_FLIGHT));
    const auto bytes = static_cast<double>(c.bytes());
    keep_best(limits, {"read", 0}, bytes,
              [&] { read_stream<IN_FLIGHT><<<blocks, kBlock>>>(c.span(), a.span()); });
    keep_best(limits, {"triad", 1.0 / 3}, 3 * bytes,
              [&] { triad_stream<IN_FLIGHT><<<blocks, kBlock>>>(c.span(), a.span(), b.span()); });
    keep_best(limits, {"copy", 0.5}, 2 * bytes,
              [&] { copy_stream<IN_FLIGHT><<<blocks, kBlock>>>(c.span(), a.span()); });
    keep_best(limits, {"write", 1}, bytes, [&] { write_stream<IN_FLIGHT><<<blocks, kBlock>>>(c.span()); });
    CUDA_CHECK_LAUNCH();
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
    try_streams<1>(limits, a, b, c);
    try_streams<kMostInFlight>(limits, a, b, c);
    keep_best(limits, {"cudaMemcpy", 0.5}, 2.0 * static_cast<double>(a.bytes()),
              [&] { CUDA_CHECK(cudaMemcpyAsync(c.data(), a.data(), a.bytes(), cudaMemcpyDeviceToDevice)); });
    CUDA_CHECK_LAUNCH();
    std::sort(limits.streams.begin(), limits.streams.end(),
              [](const StreamRate& x, const StreamRate& y) { return x.written_share < y.written_share; });
    limits.flops_per_second = best_flops_per_second(fma_rounds);
    limits.l2_bytes = l2_cache_bytes();
    return limits;
}

double MachineLimits::memory_rate(double written_share) const {
    if (streams.empty() || !(written_share >= 0 && written_share <= 1)) {
        throw std::invalid_argument(
            "MachineLimits::memory_rate: expected a measured machine and a share in [0, 1], got " +
            std::to_string(written_share));
    }
    const auto above = std::find_if(streams.begin(), streams.end(), [&](const StreamRate& rate) {
        return rate.written_share >= written_share;
    });
    if (above == streams.end()) return streams.back().bytes_per_second;
    if (above == streams.begin()) return above->bytes_per_second;
    const StreamRate& below = *std::prev(above);
    const double weight =
        (written_share - below.written_share) / (above->written_share - below.written_share);
    return 1 / ((1 - weight) / below.bytes_per_second + weight / above->bytes_per_second);
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
