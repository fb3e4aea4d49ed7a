// Day 13's host code: argument checks and the lists of versions. The kernels and their launches are
// in wavefronts.cuh and beyond/.
#include <algorithm>
#include <array>
#include <string>

#include "beyond/strips.cuh"
#include "beyond/wide_tiles.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "wavefronts.cuh"
#include "wavefronts.hpp"

namespace day13 {
namespace {

using course::DeviceSpan;
using course::require;

int checked_length(const char* what, std::size_t length) {
    require(length <= kMostSymbols, "edit distance: ", what, " has ", length,
            " symbols; expected at most 2^30");
    return static_cast<int>(length);
}

void check_arguments(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<int> distances,
                     const Workspace& workspace) {
    checked_length("a", a.size());
    checked_length("b", b.size());
    require(distances.size() == b.size() + 1, "edit distance: distances has ", distances.size(),
            " elements; expected one more than b has symbols, ", b.size() + 1);
    require(!overlap(a, distances), "edit distance: distances overlaps a; expected no element in common");
    require(!overlap(b, distances), "edit distance: distances overlaps b; expected no element in common");
    require(workspace.m() >= a.size() && workspace.n() >= b.size(), "edit distance: workspace is for ",
            workspace.m(), " and ", workspace.n(), " symbols; expected at least as many as a and b have, ",
            a.size(), " and ", b.size());
}

// Without symbols on one side, D(m, j) is m + j.
__global__ void edit_borders(int m, int n, int* distances) {
    const int j = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
    if (j <= n) distances[j] = m + j;
}

void enqueue_borders(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<int> distances,
                     Workspace& workspace, cudaStream_t stream) {
    check_arguments(a, b, distances, workspace);
    edit_borders<<<course::blocks_for(b.size() + 1, kBlock), kBlock, 0, stream>>>(
        static_cast<int>(a.size()), static_cast<int>(b.size()), distances.data());
    CUDA_CHECK_LAUNCH();
}

// A launch for each anti-diagonal: longer sequences would take many seconds.
std::string constraint_of_diagonals(const Sequences& size) {
    return size.m + size.n <= std::size_t{1} << 18 ? "" : "more than 2^18 launches would take long";
}

void enqueue_diagonals(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<int> distances,
                       Workspace& workspace, cudaStream_t stream) {
    check_arguments(a, b, distances, workspace);
    if (a.empty() || b.empty()) return enqueue_borders(a, b, distances, workspace, stream);
    const std::string why = constraint_of_diagonals({a.size(), b.size()});
    require(why.empty(), "edit distance: ", why);
    launch_diagonals(a.data(), static_cast<int>(a.size()), b.data(), static_cast<int>(b.size()),
                     distances.data(), workspace.words(), stream);
    CUDA_CHECK_LAUNCH();
}

// Versions with tiles. Without a symbol there is no tile.
template <auto kLaunch>
void enqueue_tiles(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<int> distances,
                   Workspace& workspace, cudaStream_t stream) {
    if (a.empty() || b.empty()) return enqueue_borders(a, b, distances, workspace, stream);
    check_arguments(a, b, distances, workspace);
    const Borders borders{distances.data(), workspace.words(), workspace.corners()};
    kLaunch(a.data(), static_cast<int>(a.size()), b.data(), static_cast<int>(b.size()), borders, stream);
    CUDA_CHECK_LAUNCH();
}

template <int kEach>
void enqueue_strips(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<int> distances,
                    Workspace& workspace, cudaStream_t stream) {
    if (a.empty() || b.empty()) return enqueue_borders(a, b, distances, workspace, stream);
    check_arguments(a, b, distances, workspace);
    launch_sweep_strips<kEach>(EditRule{}, a.data(), static_cast<int>(a.size()), b.data(),
                               static_cast<int>(b.size()), distances.data(), workspace.board(), nullptr,
                               stream);
    CUDA_CHECK_LAUNCH();
}

constexpr std::size_t kLeastStrip = kWarpSize * 4;  // rows of the smallest strip

template <int kEach>
void enqueue_local(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, const Scoring& scoring,
                   DeviceSpan<int> score, Workspace& workspace, cudaStream_t stream) {
    require(score.size() == 1, "local alignment: score has ", score.size(), " elements; expected 1");
    require(!overlap(a, score) && !overlap(b, score),
            "local alignment: score overlaps a or b; expected no element in common");
    require(workspace.m() >= a.size() && workspace.n() >= b.size(), "local alignment: workspace is for ",
            workspace.m(), " and ", workspace.n(), " symbols; expected at least as many as a and b have, ",
            a.size(), " and ", b.size());
    check_scoring(scoring, std::min(a.size(), b.size()));
    CUDA_CHECK(cudaMemsetAsync(score.data(), 0, sizeof(int), stream));
    if (a.empty() || b.empty()) return;
    const LocalRule rule{scoring.match, scoring.mismatch, scoring.gap};
    launch_sweep_strips<kEach>(rule, a.data(), static_cast<int>(a.size()), b.data(),
                               static_cast<int>(b.size()), workspace.row(), workspace.board(), score.data(),
                               stream);
    CUDA_CHECK_LAUNCH();
}

template <auto kLaunch>
void enqueue_paths(DeviceSpan<float> distance, std::size_t n, cudaStream_t stream) {
    require(n <= kMostVertices, "shortest paths: n is ", n, "; expected at most 2^17 vertices");
    require(distance.size() == n * n, "shortest paths: distance has ", distance.size(),
            " elements; expected n * n, ", n * n);
    if (n == 0) return;
    kLaunch(distance.data(), static_cast<int>(n), stream);
    CUDA_CHECK_LAUNCH();
}

// Passes over the whole matrix: more would take many seconds.
std::string constraint_of_per_vertex(const std::size_t& n) {
    return n <= 8192 ? "" : "more than 8192 passes over the matrix would take long";
}

std::string constraint_of_blocked(const std::size_t& n) {
    return n <= 8192 ? "" : "more than 256 rounds would take seconds";
}

// The sequences are read and the last row is written. Cells are computed in integers.
course::Work edit_work(const Sequences& size) {
    const double written = static_cast<double>((size.n + 1) * sizeof(int));
    return {.bytes = static_cast<double>(size.m + size.n) + written,
            .written = written,
            .arithmetic = course::Arithmetic::kOther};
}

course::Work local_work(const Sequences& size) {
    return {.bytes = static_cast<double>(size.m + size.n + sizeof(int)),
            .written = sizeof(int),
            .arithmetic = course::Arithmetic::kOther};
}

// An addition and a minimum for each of n^3 cells. The limit that machines are measured for is that
// of multiply-adds, which count as two operations but are one instruction. Additions and minima are
// one instruction each, so here each counts as two, too: the limit is that of issuing instructions.
course::Work path_work(const std::size_t& n) {
    const auto vertices = static_cast<double>(n);
    const double matrix = vertices * vertices * sizeof(float);
    return {.bytes = 2 * matrix, .written = matrix, .flops = 4 * vertices * vertices * vertices};
}

}  // namespace

void check_scoring(const Scoring& scoring, std::size_t pairs) {
    constexpr std::int64_t kMostScore = std::int64_t{1} << 30;
    require(scoring.match > 0 && scoring.mismatch <= 0 && scoring.gap <= 0,
            "local alignment: match, mismatch and gap are ", scoring.match, ", ", scoring.mismatch, " and ",
            scoring.gap, "; expected match > 0, the others <= 0");
    const auto shorter = static_cast<std::int64_t>(pairs);
    require(scoring.match <= kMostScore / std::max<std::int64_t>(shorter, 1) &&
                scoring.mismatch >= -kMostScore && scoring.gap >= -kMostScore,
            "local alignment: match, mismatch and gap are ", scoring.match, ", ", scoring.mismatch, " and ",
            scoring.gap, "; expected scores of up to 2^30 for ", shorter, " pairs");
}

Workspace::Workspace(std::size_t m, std::size_t n)
    : m_(static_cast<std::size_t>(checked_length("a", m))),
      n_(static_cast<std::size_t>(checked_length("b", n))),
      words_(3 * (m + 1)),
      corners_(m / kTile + n / kTile + 2),
      row_(n + 1),
      board_(m / kLeastStrip + 2) {}

void frechet_distances(DeviceSpan<const float2> a, DeviceSpan<const float2> b, DeviceSpan<float> distances,
                       Workspace& workspace, cudaStream_t stream) {
    require(distances.size() == b.size() + 1, "frechet_distances: distances has ", distances.size(),
            " elements; expected one more than b has points, ", b.size() + 1);
    require(!overlap(a, distances) && !overlap(b, distances),
            "frechet_distances: distances overlaps a or b; expected no element in common");
    require(workspace.m() >= a.size() && workspace.n() >= b.size(), "frechet_distances: workspace is for ",
            workspace.m(), " and ", workspace.n(), " points; expected at least as many as a and b have, ",
            a.size(), " and ", b.size());
    const auto m = static_cast<int>(a.size());
    const auto n = static_cast<int>(b.size());
    if (m == 0 || n == 0) {
        launch_frechet_borders(distances.data(), n + 1, m == 0, stream);
    } else {
        launch_sweep_strips<4>(FrechetRule{}, a.data(), m, b.data(), n, distances.data(), workspace.board(),
                               nullptr, stream);
        launch_take_roots(distances.data(), n + 1, stream);
    }
    CUDA_CHECK_LAUNCH();
}

std::span<const EditVersion> edit_versions() {
    static const std::array<EditVersion, 6> list = {{
        {"diagonals", "a launch for each anti-diagonal", enqueue_diagonals, edit_work,
         constraint_of_diagonals},
        {"tiles", "a launch for each anti-diagonal of tiles", enqueue_tiles<launch_tiles>, edit_work},
        {"register_rows", "four rows of a tile per thread, in registers", enqueue_tiles<launch_register_rows>,
         edit_work},
        {"strips", "one launch, a warp for 128 rows, shuffles", enqueue_strips<4>, edit_work},
        {"strips_256", "a warp for 256 rows", enqueue_strips<8>, edit_work},
        {"strips_512", "a warp for 512 rows", enqueue_strips<16>, edit_work},
    }};
    return list;
}

std::span<const LocalVersion> local_versions() {
    static const std::array<LocalVersion, 3> list = {{
        {"local_strips", "one launch, a warp for 128 rows, shuffles", enqueue_local<4>, local_work},
        {"local_strips_256", "a warp for 256 rows", enqueue_local<8>, local_work},
        {"local_strips_512", "a warp for 512 rows", enqueue_local<16>, local_work},
    }};
    return list;
}

std::span<const PathVersion> path_versions() {
    static const std::array<PathVersion, 4> list = {{
        {"per_vertex", "a launch for each vertex", enqueue_paths<launch_per_vertex>, path_work,
         constraint_of_per_vertex},
        {"blocked", "32 vertices in three launches", enqueue_paths<launch_blocked>, path_work,
         constraint_of_blocked},
        {"register_tiles", "4 x 4 cells per thread", enqueue_paths<launch_register_tiles>, path_work},
        {"wide_tiles", "8 x 8 cells per thread, 64 vertices a round", enqueue_paths<launch_wide_tiles>,
         path_work},
    }};
    return list;
}

}  // namespace day13
