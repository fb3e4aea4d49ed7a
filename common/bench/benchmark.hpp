// Times a piece of GPU work: warm-up, repeats until the mean is known to 1 %, median and spread.
// common/README.md explains why each step is needed.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <string_view>

#include "common/bench/l2_flush.hpp"
#include "common/bench/statistics.hpp"

namespace course {

// What the L2 cache holds when the timed work starts: what an untimed run of the same work has
// left there, or no data that the work reads.
enum class L2State { kWarm, kFlushed };

// "warm", "flushed"
std::string_view name(L2State state);

struct Measurement {
    Statistics ms;  // of one launch
    StopReason stopped_by = StopReason::kPrecise;
    int launches_per_repeat = 1;  // launches between one pair of events; `ms` is already divided by it
    L2State l2 = L2State::kWarm;
};

// `launch` queues the work on the stream that it receives, and can be called repeatedly. `label`
// names the range in the profiler.
Measurement measure_warm(const std::string& label, const std::function<void(cudaStream_t)>& launch,
                         const RepeatLimits& limits = {}, cudaStream_t stream = nullptr);

// The same, with `flush` before each repeat, outside the timed region.
Measurement measure_flushed(const std::string& label, const std::function<void(cudaStream_t)>& launch,
                            L2Flush& flush, const RepeatLimits& limits = {}, cudaStream_t stream = nullptr);

// Times host work with the host's clock, for the CPU reference and plain loops. Without warm_up,
// the caller has run it just before.
Measurement measure_on_host(const std::function<void()>& work, const RepeatLimits& limits = {},
                            bool warm_up = true);

// How many launches to time together when one takes `launch_ms`: as many as fill 500 us, at most
// 256. The overhead around the events is about 3 us. It is then at most about 1 % of a time, so
// versions with different numbers of launches can be compared.
int launches_per_repeat(double launch_ms);

}  // namespace course
