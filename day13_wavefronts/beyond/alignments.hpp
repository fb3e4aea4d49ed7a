// Day 13, beyond: alignments themselves, gaps that cost by opening and extending them, and one
// query against many sequences. The kernels are in traceback.cuh, affine.cuh and database.cuh.
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

// --- Affine gaps ---------------------------------------------------------------------------------

// As Scoring, but a gap of k symbols scores open + k * extend.
struct AffineScoring {
    int match = 2;      // > 0
    int mismatch = -1;  // <= 0
    int open = -3;      // <= 0
    int extend = -1;    // <= 0
};

// Device memory for sequences of which b has at most `n` symbols, a at most `m`.
class AffineWorkspace {
  public:
    // Throws as TraceWorkspace does.
    AffineWorkspace(std::size_t m, std::size_t n);
    AffineWorkspace(const AffineWorkspace&) = delete;
    AffineWorkspace& operator=(const AffineWorkspace&) = delete;

    std::size_t m() const { return m_; }
    std::size_t n() const { return n_; }
    int* row() { return row_.data(); }
    int* board() { return board_.data(); }

  private:
    std::size_t m_;
    std::size_t n_;
    course::DeviceBuffer<int> row_;  // 2 (n + 1)
    course::DeviceBuffer<int> board_;
};

// Enqueues on `stream`: *score = the best score of a local alignment with affine gaps; 0 if there
// is none above 0. Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
using AffineLauncher = void (*)(course::DeviceSpan<const Symbol> a, course::DeviceSpan<const Symbol> b,
                                const AffineScoring& scoring, course::DeviceSpan<int> score,
                                AffineWorkspace& workspace, cudaStream_t stream);
using AffineVersion = course::Version<AffineLauncher, Sequences>;
std::span<const AffineVersion> affine_versions();

// The reference: plain loops over two rows.
int affine_score_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b, const AffineScoring& scoring);

// --- One query, many sequences -------------------------------------------------------------------

// In device memory, as kernels see it.
struct DatabaseView {
    const Symbol* symbols;       // sequence k has symbols begins[k] to begins[k + 1] - 1
    const std::int64_t* begins;  // count + 1
    const int* order;            // the sequences, from the longest to the shortest
    int count;
    int* row;     // of a search: an element for each symbol
    int* ticket;  // of a search: the next sequence in this order
};

// Sequences in device memory, and what a search needs beside them: 5 bytes for each symbol and 12
// for each sequence. Two searches that may run at the same time need two databases.
class Database {
  public:
    // Sequence k has symbols begins[k] to begins[k + 1] - 1; it may be empty. Throws
    // std::invalid_argument unless `begins` starts with 0, never decreases and ends with
    // symbols.size(), with at most 2^30 symbols in a sequence and 2^30 sequences; CudaError when
    // there is no memory.
    Database(std::span<const Symbol> symbols, std::span<const std::int64_t> begins);

    std::size_t count() const { return order_.size(); }
    std::size_t longest() const { return longest_; }
    double symbols() const { return static_cast<double>(symbols_.size()); }
    DatabaseView view();

  private:
    std::size_t longest_ = 0;
    course::DeviceBuffer<Symbol> symbols_;
    course::DeviceBuffer<std::int64_t> begins_;
    course::DeviceBuffer<int> order_;
    course::DeviceBuffer<int> row_;
    course::DeviceBuffer<int> ticket_;
};

struct Search {
    std::size_t query = 0;      // symbols
    std::size_t sequences = 0;  // of the database
    double symbols = 0;         // of the database
    int most = 0;               // the highest score that is possible
    double cells() const { return static_cast<double>(query) * symbols; }
};

// Enqueues on `stream`: scores[k] = the best local alignment's score of the query and sequence k of
// the database. Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
using SearchLauncher = void (*)(course::DeviceSpan<const Symbol> query, Database& database,
                                const Scoring& scoring, course::DeviceSpan<int> scores, cudaStream_t stream);
using SearchVersion = course::Version<SearchLauncher, Search>;
std::span<const SearchVersion> search_versions();

// The reference: local_score_on_cpu() for each sequence.
std::vector<int> search_on_cpu(std::span<const Symbol> query, std::span<const Symbol> symbols,
                               std::span<const std::int64_t> begins, const Scoring& scoring);

}  // namespace day13
