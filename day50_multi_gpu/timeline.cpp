// Day 50: events around sweeps and copies.
#include "timeline.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "domain.hpp"

namespace day50 {
namespace {

double us_between(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, from, to));
    return ms * 1e3;
}

}  // namespace

Timeline::Timeline(Domain& domain) : domain_(domain) {
    domain_.timeline = this;
}

Timeline::~Timeline() {
    domain_.timeline = nullptr;
    for (const cudaEvent_t event : events_)
        static_cast<void>(cudaEventDestroy(event));
}

// On the current device.
cudaEvent_t Timeline::new_event() {
    CUDA_CHECK(cudaEventCreate(&events_.emplace_back(nullptr)));
    return events_.back();
}

void Timeline::begin(const Rank& rank, cudaStream_t stream, const char* what) {
    const cudaEvent_t first = new_event();
    spans_.push_back({&rank, stream == rank.middle ? "middle" : "edges", what, first, new_event()});
    CUDA_CHECK(cudaEventRecord(first, stream));
}

// Spans do not nest, so it is the last one. A destructor calls this: it reports nothing.
void Timeline::end(cudaStream_t stream) {
    static_cast<void>(cudaEventRecord(spans_.back().end, stream));
}

// The shortest of several ways there and back. It takes a few microseconds, so the time of the
// event there is known to one or two.
Timeline::Clock Timeline::clock_of(const Rank& rank, cudaEvent_t zero) {
    const Rank& first = domain_.ranks()[0];
    Clock best;
    double shortest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 20; ++i) {
        const OnDevice on(first.device);
        const cudaEvent_t before = new_event();
        const cudaEvent_t after = new_event();
        CUDA_CHECK(cudaEventRecord(before, first.edges));
        CUDA_CHECK(cudaStreamWaitEvent(rank.edges, before));
        Clock clock;
        {
            const OnDevice there(rank.device);
            clock.event = new_event();
            CUDA_CHECK(cudaEventRecord(clock.event, rank.edges));
        }
        CUDA_CHECK(cudaStreamWaitEvent(first.edges, clock.event));
        CUDA_CHECK(cudaEventRecord(after, first.edges));
        CUDA_CHECK(cudaEventSynchronize(after));
        const double both_ways = us_between(before, after);
        clock.time = us_between(zero, before) + both_ways / 2;
        if (both_ways < shortest) best = clock;
        shortest = std::min(shortest, both_ways);
    }
    return best;
}

std::vector<Timeline::Bar> Timeline::bars() {
    const std::span<const Rank> ranks = domain_.ranks();
    for (const Rank& rank : ranks) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    std::vector<Clock> clocks;
    {
        const OnDevice on(ranks[0].device);
        const cudaEvent_t zero = new_event();
        CUDA_CHECK(cudaEventRecord(zero, ranks[0].edges));
        for (const Rank& rank : ranks)
            clocks.push_back(clock_of(rank, zero));
    }
    std::vector<Bar> bars;
    for (const Timed& span : spans_) {
        const auto r = static_cast<std::size_t>(span.rank - ranks.data());
        const auto time = [&](cudaEvent_t event) {
            return clocks[r].time - us_between(event, clocks[r].event);
        };
        bars.push_back({static_cast<int>(r), span.stream, span.what, time(span.begin), time(span.end)});
    }
    if (bars.empty()) return bars;
    const double first = std::ranges::min(bars, {}, &Bar::begin).begin;
    for (Bar& bar : bars) {
        bar.begin -= first;
        bar.end -= first;
    }
    return bars;
}

}  // namespace day50
