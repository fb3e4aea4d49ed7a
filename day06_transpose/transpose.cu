// Day 6's host code: checks of arguments and the list of versions. The kernels and their launches
// are in transpose.cuh, beyond/transpose_any.cuh and beyond/skinny.cuh.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "beyond/skinny.cuh"
#include "beyond/transpose_any.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "transpose.cuh"
#include "transpose.hpp"

namespace day06 {
namespace {

using course::ceil_div;
using course::require;
using course::shape_text;

constexpr std::size_t kMaxGridX = std::numeric_limits<int>::max();
constexpr std::size_t kMaxGridY = 65535;

template <class T>
void check_arguments(DeviceMatrix<const T> in, DeviceMatrix<T> out) {
    require(out.rows() == in.cols() && out.cols() == in.rows(), "transpose: in is ", in, ", out is ", out,
            "; expected out to be ", in.cols(), " x ", in.rows());
    require(!overlap(in, out), "transpose: out overlaps in; expected no common element");
}

// --- Versions of transpose.cuh: floats, 32-bit indices, one tile per block -----------------------

// The extent that the grid's y counts: rows of `in`, or its columns.
enum class GridY { kRows, kCols };

template <GridY GRID_Y>
std::string float_constraint(const Problem& problem) {
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    if (problem.element_bytes != 4)
        return "elements have " + std::to_string(problem.element_bytes) +
               " bytes; this version moves 4-byte elements";
    if (problem.rows == 0 || problem.cols == 0) return "";
    if (problem.in_ld > kMost / problem.rows || problem.out_ld > kMost / problem.cols)
        return "rows * leading dimension is more than 2^31 - 1; this version counts elements in an int";
    const std::size_t along_y = GRID_Y == GridY::kRows ? problem.rows : problem.cols;
    if (ceil_div<std::size_t>(along_y, kTile) > kMaxGridY)
        return std::to_string(along_y) + (GRID_Y == GridY::kRows ? " rows" : " columns") +
               " are more tiles than the 65535 of a grid's y";
    return "";
}

template <auto kLaunch, GridY GRID_Y>
void move_floats(DeviceMatrix<const std::uint32_t> in, DeviceMatrix<std::uint32_t> out, cudaStream_t stream) {
    check_arguments(in, out);
    const std::string reason = float_constraint<GRID_Y>(problem_of(in, out));
    require(reason.empty(), "transpose: ", reason);
    if (in.rows() == 0 || in.cols() == 0) return;  // a grid must have a block
    kLaunch(reinterpret_cast<const float*>(in.data()), static_cast<int>(in.leading_dimension()),
            reinterpret_cast<float*>(out.data()), static_cast<int>(out.leading_dimension()),
            static_cast<int>(in.rows()), static_cast<int>(in.cols()), stream);
    CUDA_CHECK_LAUNCH();
}

void no_halves(DeviceMatrix<const std::uint16_t> in, DeviceMatrix<std::uint16_t> out, cudaStream_t) {
    check_arguments(in, out);
    require(false, "transpose: ", float_constraint<GridY::kRows>(problem_of(in, out)));
}

// --- Versions of transpose_any.cuh ---------------------------------------------------------------

void check_grid(const TileGrid& grid, std::size_t rows, std::size_t cols) {
    require(grid.across <= kMaxGridX / grid.down, "transpose: ", shape_text(rows, cols), " has ",
            shape_text(grid.down, grid.across), " tiles; a grid has at most 2^31 - 1 blocks");
}

std::string vectorised_constraint(const Problem& problem) {
    if (problem.rows == 0 || problem.cols == 0) return "";
    const std::size_t pack = 16 / problem.element_bytes;
    if (problem.rows % pack == 0 && problem.cols % pack == 0 && problem.packs_aligned) return "";
    return shape_text(problem.rows, problem.cols) + " with leading dimensions " +
           std::to_string(problem.in_ld) + " and " + std::to_string(problem.out_ld) +
           "; this version needs multiples of " + std::to_string(pack) + " and 16-byte aligned matrices";
}

template <class T>
void move_packs(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    check_arguments(in, out);
    const std::string reason = vectorised_constraint(problem_of(in, out));
    require(reason.empty(), "transpose: ", reason);
    if (in.rows() == 0 || in.cols() == 0) return;
    check_grid(tile_grid(in.rows(), in.cols(), kPackedEdge<T>, kPackedEdge<T>), in.rows(), in.cols());
    launch_vectorised<T>(in, out, stream);
    CUDA_CHECK_LAUNCH();
}

// Do all rows of the matrix start at multiples of `bytes`?
template <class T>
bool rows_aligned(DeviceMatrix<T> matrix, std::size_t bytes) {
    return course::is_aligned(matrix.data(), bytes) &&
           (matrix.rows() == 1 || matrix.leading_dimension() * sizeof(T) % bytes == 0);
}

template <class T>
using AnyLaunch = void (*)(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream);

template <class T, AnyLaunch<T> kWithoutHalo, AnyLaunch<T> kWithHalo, int kTileRows>
void move_aligned(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    constexpr int kSector = 32 / sizeof(T);  // the rows of a halo
    check_arguments(in, out);
    if (in.rows() == 0 || in.cols() == 0) return;
    check_grid(tile_grid(shifted_rows<kSector>(in.rows()), in.cols(), kTileRows, kEdge), in.rows(),
               in.cols());
    (rows_aligned(out, 32) ? kWithoutHalo : kWithHalo)(in, out, stream);
    CUDA_CHECK_LAUNCH();
}

std::string skinny_constraint(const Problem& problem) {
    if (std::min(problem.rows, problem.cols) <= kMostFew) return "";
    return shape_text(problem.rows, problem.cols) + "; this version needs at most 32 rows or 32 columns";
}

template <class T>
void move_skinny(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    check_arguments(in, out);
    const std::string reason = skinny_constraint(problem_of(in, out));
    require(reason.empty(), "transpose: ", reason);
    if (in.rows() == 0 || in.cols() == 0) return;
    launch_skinny<T>(in, out, stream);
    CUDA_CHECK_LAUNCH();
}

// Each element is read once and written once.
course::Work work(const Problem& problem) {
    const double bytes = static_cast<double>(problem.rows) * static_cast<double>(problem.cols) *
                         static_cast<double>(problem.element_bytes);
    return {.bytes = 2 * bytes, .written = bytes};
}

template <auto kLaunch, GridY GRID_Y = GridY::kRows>
Transpose float_version(const char* name, const char* idea) {
    return {name, idea, {move_floats<kLaunch, GRID_Y>, no_halves}, work, float_constraint<GRID_Y>};
}

}  // namespace

// --- The list ------------------------------------------------------------------------------------

std::span<const Transpose> versions() {
    static const std::array<Transpose, 8> list = {{
        float_version<launch_naive>("naive", "a thread per element; strided stores"),
        float_version<launch_strided_loads, GridY::kCols>("strided_loads", "the same with strided loads"),
        float_version<launch_tiled>("tiled", "a tile is turned in shared memory"),
        float_version<launch_padded>("padded", "a tile without bank conflicts"),
        float_version<launch_coarsened>("coarsened", "four elements per thread"),
        float_version<launch_swizzled>("swizzled", "an XOR instead of the padding"),
        {"vectorised",
         "16-byte accesses",
         {move_packs<std::uint32_t>, move_packs<std::uint16_t>},
         work,
         vectorised_constraint},
        {"aligned",
         "tiles begin at sectors of out",
         {move_aligned<std::uint32_t, launch_aligned<0>, launch_aligned<8>, kEdge>,
          move_aligned<std::uint16_t, launch_aligned_pairs<0>, launch_aligned_pairs<16>, kPairedRows>},
         work},
    }};
    return list;
}

std::span<const Transpose> skinny_versions() {
    static const std::array<Transpose, 1> list = {{
        {"skinny",
         "long tiles of few rows or columns",
         {move_skinny<std::uint32_t>, move_skinny<std::uint16_t>},
         work,
         skinny_constraint},
    }};
    return list;
}

}  // namespace day06
