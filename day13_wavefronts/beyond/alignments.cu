// Host code of day 13's alignments: argument checks and the lists of versions.
#include <algorithm>
#include <array>

#include "alignments.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "traceback.cuh"

namespace day13 {
namespace {

using course::DeviceSpan;
using course::require;

std::size_t checked_length(const char* what, std::size_t length) {
    require(length <= kMostSymbols, "traceback: ", what, " has ", length, " symbols; expected at most 2^30");
    return length;
}

void check_trace(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<Step> script,
                 DeviceSpan<Alignment> alignment, const TraceWorkspace& workspace) {
    require(alignment.size() == 1, "traceback: alignment has ", alignment.size(), " elements; expected 1");
    require(script.size() == a.size() + b.size(), "traceback: script has ", script.size(),
            " elements; expected as many as a and b have symbols, ", a.size() + b.size());
    require(!overlap(a, script) && !overlap(b, script),
            "traceback: script overlaps a or b; expected no element in common");
    require(workspace.m() >= a.size() && workspace.n() >= b.size(), "traceback: workspace is for ",
            workspace.m(), " and ", workspace.n(), " symbols; expected at least as many as a and b have, ",
            a.size(), " and ", b.size());
}

template <bool kHasWindows, class Rule>
void enqueue(const Rule& rule, DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b,
             DeviceSpan<Step> script, DeviceSpan<Alignment> alignment, TraceWorkspace& workspace,
             cudaStream_t stream) {
    check_trace(a, b, script, alignment, workspace);
    const auto m = static_cast<int>(a.size());
    const auto n = static_cast<int>(b.size());
    if (m == 0 || n == 0) {
        launch_trace_borders(Rule::kIsLocal, m, n, script.data(), alignment.data(), stream);
    } else {
        launch_trace<kHasWindows>(rule, a.data(), m, b.data(), n, script.data(), alignment.data(), workspace,
                                  stream);
    }
    CUDA_CHECK_LAUNCH();
}

template <bool kHasWindows>
void enqueue_trace(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<Step> script,
                   DeviceSpan<Alignment> alignment, TraceWorkspace& workspace, cudaStream_t stream) {
    enqueue<kHasWindows>(EditTraceRule{}, a, b, script, alignment, workspace, stream);
}

template <bool kHasWindows>
void enqueue_local_trace(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, const Scoring& scoring,
                         DeviceSpan<Step> script, DeviceSpan<Alignment> alignment, TraceWorkspace& workspace,
                         cudaStream_t stream) {
    check_scoring(scoring, std::min(a.size(), b.size()));
    enqueue<kHasWindows>(LocalTraceRule{{scoring.match, scoring.mismatch, scoring.gap}}, a, b, script,
                         alignment, workspace, stream);
}

// The sequences are read, and the alignment is written: at least the longer one's steps.
course::Work trace_work(const Sequences& size) {
    const auto written = static_cast<double>(std::max(size.m, size.n) + sizeof(Alignment));
    return {.bytes = static_cast<double>(size.m + size.n) + written,
            .written = written,
            .arithmetic = course::Arithmetic::kOther};
}

// A local alignment may be empty.
course::Work local_trace_work(const Sequences& size) {
    return {.bytes = static_cast<double>(size.m + size.n + sizeof(Alignment)),
            .written = sizeof(Alignment),
            .arithmetic = course::Arithmetic::kOther};
}

std::size_t strips_for(std::size_t m) {
    return course::ceil_div(std::max<std::size_t>(m, 1), std::size_t{kTraceStrip});
}

}  // namespace

TraceWorkspace::TraceWorkspace(std::size_t m, std::size_t n)
    : m_(checked_length("a", m)),
      n_(checked_length("b", n)),
      directions_(strips_for(m) * (n + kWarpSize - 1) * kWarpSize),
      row_(n + 1),
      board_(strips_for(m) + 1),
      ends_(strips_for(m)) {}

std::span<const TraceVersion> trace_versions() {
    static const std::array<TraceVersion, 2> list = {{
        {"trace_thread", "two bits for each cell, a thread walks back", enqueue_trace<false>, trace_work},
        {"trace_windows", "a warp loads windows, one lane walks", enqueue_trace<true>, trace_work},
    }};
    return list;
}

std::span<const LocalTraceVersion> local_trace_versions() {
    static const std::array<LocalTraceVersion, 2> list = {{
        {"local_trace_thread", "two bits for each cell, a thread walks back", enqueue_local_trace<false>,
         local_trace_work},
        {"local_trace_windows", "a warp loads windows, one lane walks", enqueue_local_trace<true>,
         local_trace_work},
    }};
    return list;
}

}  // namespace day13
