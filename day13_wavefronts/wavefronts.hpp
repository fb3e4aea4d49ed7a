// Wavefronts: the host API of day 13. The kernels are in wavefronts.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day13 {

using Symbol = std::uint8_t;

// --- Edit distance -------------------------------------------------------------------------------

// Sequences of up to 2^30 symbols each; how many cells they have together is not limited.
inline constexpr std::size_t kMostSymbols = std::size_t{1} << 30;

// Device memory for intermediate results: for sequences of at most `m` and `n` symbols, about 12
// bytes for each of a and 4 for each of b. Two calls that may run at the same time, on two streams,
// need two workspaces.
class Workspace {
  public:
    // On the current device. Throws std::invalid_argument for more than kMostSymbols, CudaError
    // when there is no memory.
    Workspace(std::size_t m, std::size_t n);
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t m() const { return m_; }
    std::size_t n() const { return n_; }
    int* words() { return words_.data(); }
    int* corners() { return corners_.data(); }
    int* row() { return row_.data(); }
    int* board() { return board_.data(); }

  private:
    std::size_t m_;
    std::size_t n_;
    course::DeviceBuffer<int> words_;    // 3 (m + 1)
    course::DeviceBuffer<int> corners_;  // one for each diagonal of tiles
    course::DeviceBuffer<int> row_;      // n + 1, of versions whose result is no row
    course::DeviceBuffer<int> board_;    // of strips: tickets, and a word for each strip
};

struct Sequences {
    std::size_t m = 0;  // symbols of a
    std::size_t n = 0;  // symbols of b
    double cells() const { return static_cast<double>(m) * static_cast<double>(n); }
};

// Enqueues on `stream`: distances[j] = the edit distance (Levenshtein) of a and the first j symbols
// of b, for j = 0 to n. Insertions, deletions and replacements of one symbol cost 1 each. Either
// sequence may be empty. `distances` has n + 1 elements and overlaps neither sequence. Throws
// std::invalid_argument for a bad argument, CudaError when a launch fails.
using EditLauncher = void (*)(course::DeviceSpan<const Symbol> a, course::DeviceSpan<const Symbol> b,
                              course::DeviceSpan<int> distances, Workspace& workspace, cudaStream_t stream);

using EditVersion = course::Version<EditLauncher, Sequences>;
std::span<const EditVersion> edit_versions();

// --- Beyond: the same sweep with other rules -----------------------------------------------------

// The score of an alignment: `match` for each pair of equal symbols, `mismatch` for each pair of
// others, `gap` for each symbol without a partner.
struct Scoring {
    int match = 2;      // > 0
    int mismatch = -1;  // <= 0
    int gap = -2;       // <= 0
};

// Throws std::invalid_argument for signs other than these, and where `pairs` matches, or one of the
// others, might exceed a score of 2^30.
void check_scoring(const Scoring& scoring, std::size_t pairs);

// Enqueues on `stream`: *score = the best score of an alignment of any part of a with any part of b
// (Smith and Waterman); 0, of empty parts, if there is no better one. Either sequence may be empty.
// Throws std::invalid_argument for a bad argument, also where scores might exceed 2^30, CudaError
// when a launch fails.
using LocalLauncher = void (*)(course::DeviceSpan<const Symbol> a, course::DeviceSpan<const Symbol> b,
                               const Scoring& scoring, course::DeviceSpan<int> score, Workspace& workspace,
                               cudaStream_t stream);

using LocalVersion = course::Version<LocalLauncher, Sequences>;
std::span<const LocalVersion> local_versions();

// Enqueues on `stream`: distances[j] = the discrete Frechet distance of curve a and the first j
// points of curve b, for j = 1 to n; distances[0] is infinity, or 0 if a is empty, too. Coordinates
// are finite, and squares of distances must not overflow; that is not checked. Throws as above.
void frechet_distances(course::DeviceSpan<const float2> a, course::DeviceSpan<const float2> b,
                       course::DeviceSpan<float> distances, Workspace& workspace, cudaStream_t stream);

// --- All shortest paths --------------------------------------------------------------------------

inline constexpr std::size_t kMostVertices = std::size_t{1} << 17;  // 64 GB

// Enqueues on `stream` the method of Floyd and Warshall. `distance` has n x n elements, row-major:
// in row i and column j first the weight of the edge from vertex i to vertex j, infinity where
// there is none, and afterwards the length of the shortest path. Before, the diagonal is 0 (a
// vertex reaches itself without an edge). Weights may be negative. A negative cycle is not an
// error: it leaves a negative element on the diagonal, and then other elements have no meaning. NaN
// and minus infinity are not allowed; neither is checked. A sum of weights is rounded to float, so
// versions agree exactly where all sums are exact. Throws std::invalid_argument unless n is at most
// kMostVertices and `distance` has n * n elements, CudaError when a launch fails.
using PathLauncher = void (*)(course::DeviceSpan<float> distance, std::size_t n, cudaStream_t stream);

using PathVersion = course::Version<PathLauncher, std::size_t>;
std::span<const PathVersion> path_versions();

// --- On the CPU ----------------------------------------------------------------------------------

// The references: plain loops. Edit distance: the last row, n + 1 elements. Shortest paths: in
// double; n x n elements are replaced by the lengths.
std::vector<int> edit_distances_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b);
void shortest_paths_on_cpu(std::span<double> distance, std::size_t n);
// One row of them, by Dijkstra's method, for weights of at least 0.
std::vector<double> shortest_paths_from_on_cpu(std::span<const float> weights, std::size_t n,
                                               std::size_t source);
int local_score_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b, const Scoring& scoring);
std::vector<double> frechet_distances_on_cpu(std::span<const float2> a, std::span<const float2> b);

}  // namespace day13
