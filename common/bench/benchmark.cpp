#include "common/bench/benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "common/bench/event_timer.hpp"
#include "common/bench/head_start.hpp"
#include "common/bench/nvtx_range.hpp"
#include "common/check/check.hpp"

namespace course {
namespace {

constexpr double kBatchMs = 0.5;
constexpr int kLargestBatch = 256;
constexpr int kHeadStart = 10;  // microseconds for each launch

using HostClock = std::chrono::steady_clock;

double seconds_since(HostClock::time_point begin) {
    return std::chrono::duration<double>(HostClock::now() - begin).count();
}

// Takes samples until one of the limits is reached.
template <class Sample>
Measurement repeat(const RepeatLimits& limits, const Sample& sample_ms) {
    Sampler sampler(limits);
    const HostClock::time_point begin = HostClock::now();
    std::optional<StopReason> stop;
    while (!stop) {
        sampler.add(sample_ms());
        stop = sampler.stop_reason(seconds_since(begin));
    }
    Measurement measurement;
    measurement.ms = summarize(sampler.samples());
    measurement.stopped_by = *stop;
    return measurement;
}

}  // namespace

std::string_view name(L2State state) {
    return state == L2State::kWarm ? "warm" : "flushed";
}

int launches_per_repeat(double launch_ms) {
    if (!(launch_ms >= 0))
        throw std::invalid_argument("launches_per_repeat: expected a time of 0 ms or more");
    const double wanted = std::ceil(kBatchMs / std::max(launch_ms, kBatchMs / kLargestBatch));
    return static_cast<int>(std::min<double>(wanted, kLargestBatch));
}

Measurement measure_warm(const std::string& label, const std::function<void(cudaStream_t)>& launch,
                         const RepeatLimits& limits, cudaStream_t stream) {
    const NvtxRange range(label + " warm");
    EventTimer timer(stream);

    // The first launch loads the code and raises the clocks; the second one is timed to estimate
    // how long a launch takes.
    launch(stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    timer.start();
    launch(stream);
    timer.stop();
    const int batch = launches_per_repeat(timer.elapsed_ms());

    Measurement measurement = repeat(limits, [&] {
        // An untimed launch fills the cache first. The GPU is kept busy while the host queues the
        // timed launches, so that only GPU time is measured, without the few microseconds that the
        // host needs for each launch.
        launch(stream);
        give_head_start(kHeadStart * (1 + batch), stream);
        timer.start();
        for (int i = 0; i < batch; ++i)
            launch(stream);
        timer.stop();
        return static_cast<double>(timer.elapsed_ms()) / batch;
    });
    measurement.launches_per_repeat = batch;
    measurement.l2 = L2State::kWarm;
    return measurement;
}

Measurement measure_flushed(const std::string& label, const std::function<void(cudaStream_t)>& launch,
                            L2Flush& flush, const RepeatLimits& limits, cudaStream_t stream) {
    const NvtxRange range(label + " flushed");
    EventTimer timer(stream);
    launch(stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));

    // Only one launch per repeat: a second one would no longer find the cache flushed. The flush
    // itself serves as the head start.
    Measurement measurement = repeat(limits, [&] {
        flush(stream);
        timer.start();
        launch(stream);
        timer.stop();
        return static_cast<double>(timer.elapsed_ms());
    });
    measurement.l2 = L2State::kFlushed;
    return measurement;
}

Measurement measure_on_host(const std::function<void()>& work, const RepeatLimits& limits, bool warm_up) {
    CUDA_CHECK(cudaDeviceSynchronize());
    if (warm_up) work();
    return repeat(limits, [&] {
        const HostClock::time_point begin = HostClock::now();
        work();
        return seconds_since(begin) * 1e3;
    });
}

}  // namespace course
