// Day 13, beyond: alignments themselves, gaps that cost by opening and extending them, and one query
// against many sequences. The kernels are in traceback.cuh, affine.cuh and database.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "wavefronts.hpp"

namespace day13 {

// --- Traceback -----------------------------------------------------------------------------------

// A step of an alignment: what it takes from the two sequences.
enum class Step : std::uint8_t {
    kPair = 1,  // the next symbol of each, equal or not
    kOnlyA,     // the next symbol of a, which is deleted
    kOnlyB,     // the next symbol of b, which is inserted
};

struct Alignment {
    int score = 0;  // or the edit distance
    // It takes symbols a_begin to a_end - 1 of a, and b_begin to b_end - 1 of b.
    int a_begin = 0, a_end = 0;
    int b_begin = 0, b_end = 0;
    int steps = 0;
};

// Of a lane that has computed the end of an alignment, or of a strip.
struct End {
    int score;
    int i, j;  // symbols of a and of b up to there
};

// Device memory for sequences of at most `m` and `n` symbols: two bits for each cell, and a little
// more. Two calls that may run at the same time need two of them.
class TraceWorkspace {
  public:
    // Throws std::invalid_argument for more than kMostSymbols, CudaError when there is no memory.
    TraceWorkspace(std::size_t m, std::size_t n);
    TraceWorkspace(const TraceWorkspace&) = delete;
    TraceWorkspace& operator=(const TraceWorkspace&) = delete;

    std::size_t m() const { return m_; }
    std::size_t n() const { return n_; }
    std::uint8_t* directions() { return directions_.data(); }
    int* row() { return row_.data(); }
    int* board() { return board_.data(); }
    End* ends() { return ends_.data(); }

  private:
    std::size_t m_;
    std::size_t n_;
    course::DeviceBuffer<std::uint8_t> directions_;  // 32 for each strip and each of its n + 31 steps
    course::DeviceBuffer<int> row_;                  // n + 1
    course::DeviceBuffer<int> board_;                // of strips: tickets, and a word for each strip
    course::DeviceBuffer<End> ends_;                 // the best end in each strip
};

// Enqueues on `stream`: an alignment of all of a with all of b that costs the edit distance. Its
// steps are the last `steps` elements of `script`, which has a.size() + b.size() elements; the
// others are left alone. Where several predecessors of a cell cost the same, a pair is preferred,
// then kOnlyA. Either sequence may be empty. `alignment` has one element. Throws
// std::invalid_argument for a bad argument, CudaError when a launch fails.
using TraceLauncher = void (*)(course::DeviceSpan<const Symbol> a, course::DeviceSpan<const Symbol> b,
                               course::DeviceSpan<Step> script, course::DeviceSpan<Alignment> alignment,
                               TraceWorkspace& workspace, cudaStream_t stream);
using TraceVersion = course::Version<TraceLauncher, Sequences>;
std::span<const TraceVersion> trace_versions();

// The same for the best local alignment (Smith and Waterman). It ends where the score is highest;
// of several such cells, in the one with the smallest j, and of these, the smallest i. Scores of 0
// are those of an empty alignment, without steps, at the beginning.
using LocalTraceLauncher = void (*)(course::DeviceSpan<const Symbol> a, course::DeviceSpan<const Symbol> b,
                                    const Scoring& scoring, course::DeviceSpan<Step> script,
                                    course::DeviceSpan<Alignment> alignment, TraceWorkspace& workspace,
                                    cudaStream_t stream);
using LocalTraceVersion = course::Version<LocalTraceLauncher, Sequences>;
std::span<const LocalTraceVersion> local_trace_versions();

// The reference: plain loops over a whole table. The steps, from the first to the last one.
struct TracedOnCpu {
    Alignment alignment;
    std::vector<Step> steps;
};
TracedOnCpu trace_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b);
TracedOnCpu local_trace_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b, const Scoring& scoring);

}  // namespace day13
