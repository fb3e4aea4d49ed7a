// Day 11's launchers: argument checks, the size of the grid, the order of the sweeps, the lists of
// versions. The kernels are in stencil.cuh, ring.cuh, bulk_ring.cuh, shapes.cuh, temporal.cuh and
// temporal_planes.cuh.
#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "bulk_ring.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "ring.cuh"
#include "shapes.cuh"
#include "stencil.cuh"
#include "stencil.hpp"
#include "temporal.cuh"
#include "temporal_planes.cuh"

namespace day11 {
namespace {

using course::require;

constexpr std::size_t kMostAlongX = std::size_t{1} << 30;
constexpr std::size_t kMostAlongYZ = 65535;  // blocks that a CUDA grid has along y and z

void check(const Stencil& stencil, const DeviceGrid<const float>& in, const DeviceGrid<float>& out,
           const DeviceGrid<float>& spare) {
    const std::size_t expected = coefficients(stencil.shape);
    require(stencil.coefficient.size() == expected, "stencil: ", stencil.coefficient.size(),
            " coefficients for a ", name(stencil.shape), " stencil; expected ", expected);
    const Extents& extents = in.extents();
    require(out.extents() == extents, "stencil: in is ", to_text(extents), " and out is ",
            to_text(out.extents()), "; expected the same extents");
    require(spare.extents() == extents, "stencil: in is ", to_text(extents), " and spare is ",
            to_text(spare.extents()), "; expected the same extents");
    require(extents.nx <= kMostAlongX && extents.ny <= kMostAlongYZ && extents.nz <= kMostAlongYZ,
            "stencil: in is ", to_text(extents), "; expected at most ", kMostAlongX, " x ", kMostAlongYZ,
            " x ", kMostAlongYZ);
    require(stencil.shape != Shape::kCross5 || extents.nz <= 1, "stencil: in is ", to_text(extents),
            "; expected one plane for a 5-point stencil");
    require(!overlap(in.span(), out.span()), "stencil: out overlaps in; expected no cell in common");
    require(!overlap(in.span(), spare.span()), "stencil: spare overlaps in; expected no cell in common");
    require(!overlap(out.span(), spare.span()), "stencil: spare overlaps out; expected no cell in common");
}

Grid grid_of(const Extents& extents) {
    return {static_cast<int>(extents.nx), static_cast<int>(extents.ny), static_cast<int>(extents.nz)};
}

unsigned blocks(int cells, int of_block) {
    return static_cast<unsigned>(course::ceil_div(cells, of_block));
}

Seven seven(const Stencil& stencil) {
    const std::vector<float>& k = stencil.coefficient;
    return {k[0], k[1], k[2], k[3], k[4], k[5], k[6]};
}

Five five(const Stencil& stencil) {
    const std::vector<float>& k = stencil.coefficient;
    return {k[0], k[1], k[2], k[3], k[4]};
}

template <class Coefficients>
Coefficients array_of(const Stencil& stencil) {
    Coefficients all{};
    std::ranges::copy(stencil.coefficient, all.k);
    return all;
}

// What a trip through memory works on. kAligned kernels need 16-byte aligned rows in all grids.
struct Trip {
    const Stencil& stencil;
    Grid grid;
    const float* in;
    float* out;
    bool aligned;
    cudaStream_t stream;
};

// Does `steps` sweeps in trips. `depths`: how many sweeps a trip may have, the largest first and 1
// last. run(trip, sweeps) enqueues one trip. Results alternate between `out` and `spare`, and end
// in `out`.
template <class Run>
void sweep(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out, DeviceGrid<float> spare,
           unsigned steps, cudaStream_t stream, std::initializer_list<unsigned> depths, Run run) {
    check(stencil, in, out, spare);
    if (in.span().empty()) return;
    if (steps == 0) {
        CUDA_CHECK(cudaMemcpyAsync(out.data(), in.data(), in.span().size() * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
        return;
    }
    const bool aligned = in.extents().nx % kLaneCells == 0 && course::is_aligned(in.data(), sizeof(Quad)) &&
                         course::is_aligned(out.data(), sizeof(Quad)) &&
                         course::is_aligned(spare.data(), sizeof(Quad));
    unsigned trips = 0;
    unsigned left = steps;
    for (const unsigned depth : depths) {
        trips += left / depth;
        left %= depth;
    }
    const float* from = in.data();
    left = steps;
    for (const unsigned depth : depths) {
        for (; left >= depth; left -= depth, --trips) {
            float* to = trips % 2 == 1 ? out.data() : spare.data();
            run(Trip{stencil, grid_of(in.extents()), from, to, aligned, stream}, depth);
            from = to;
        }
    }
}

// A launcher of one sweep at a time: kRun(trip).
template <void (*kRun)(const Trip&)>
void one_by_one(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                DeviceGrid<float> spare, unsigned steps, cudaStream_t stream) {
    sweep(stencil, in, out, spare, steps, stream, {1}, [](const Trip& trip, unsigned) { kRun(trip); });
}

// --- 7-point -------------------------------------------------------------------------------------

void basic(const Trip& t) {
    const dim3 grid(blocks(t.grid.nx, kTile), blocks(t.grid.ny, kTile), blocks(t.grid.nz, kTile));
    course::launch(stencil_basic, {.grid = grid, .block = dim3(kTile, kTile, kTile), .stream = t.stream},
                   t.in, t.out, t.grid, seven(t.stencil));
}

void shared_tile(const Trip& t) {
    const dim3 grid(blocks(t.grid.nx, kInnerTile), blocks(t.grid.ny, kInnerTile),
                    blocks(t.grid.nz, kInnerTile));
    course::launch(stencil_shared_tile,
                   {.grid = grid, .block = dim3(kTile, kTile, kTile), .stream = t.stream}, t.in, t.out,
                   t.grid, seven(t.stencil));
}

template <auto kKernel>
void plane_tiles(const Trip& t) {
    const dim3 grid(blocks(t.grid.nx, kInnerPlaneTile), blocks(t.grid.ny, kInnerPlaneTile),
                    blocks(t.grid.nz, kPlanesOfBlock));
    course::launch(kKernel, {.grid = grid, .block = dim3(kPlaneTile, kPlaneTile), .stream = t.stream}, t.in,
                   t.out, t.grid, seven(t.stencil));
}

void register_tiled_float4(const Trip& t) {
    constexpr int kPlanes = 32;
    // 32 warps, as many as possible side by side along x, because there each edge of a block costs
    // a sector of 32 bytes for one cell.
    const int warps_x = std::min(static_cast<int>(blocks(t.grid.nx, kWarpCells)), 8);
    const int across = warps_x > 4 ? 8 : warps_x > 2 ? 4 : warps_x;
    const int down = 32 / across;
    const dim3 grid(blocks(t.grid.nx, kWarpCells * across), blocks(t.grid.ny, kThreadRows * down),
                    blocks(t.grid.nz, kPlanes));
    const dim3 block(course::kWarpSize, static_cast<unsigned>(across), static_cast<unsigned>(down));
    course::launch(t.aligned ? stencil_register_tiled_float4<true> : stencil_register_tiled_float4<false>,
                   {.grid = grid, .block = block, .stream = t.stream}, t.in, t.out, t.grid, seven(t.stencil),
                   kPlanes);
}

// Throws where a version has a reason not to run. Queried once, because the query takes
// microseconds.
template <std::string (*kReason)(const Problem&)>
void refuse_where(const char* version) {
    static const std::string reason = kReason({});
    require(reason.empty(), "stencil: ", version, " ", reason);
}

template <int kRadius, bool kAligned>
void launch_async_ring(const Trip& t) {
    using Shape = RingShape<kRadius>;
    using Planes = Ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead>;
    const unsigned across = blocks(t.grid.nx, kWarpCells);
    const unsigned down = blocks(t.grid.ny, Planes::kTileRows);
    int planes = Shape::kPlanes;
    if constexpr (kRadius == 4) {
        // Where all blocks run at the same time with longer marches, as with 512^3 cells, halos
        // along z are loaded less often.
        const auto parts = static_cast<int>(course::multiprocessors() / (std::size_t{across} * down));
        if (parts >= 1) planes = std::max(planes, course::ceil_div(t.grid.nz, parts));
    }
    const dim3 grid(across, down, blocks(t.grid.nz, planes));
    course::launch(
        stencil_async_ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead, Shape::kBlocks, kAligned>,
        {.grid = grid,
         .block = dim3(course::kWarpSize, Shape::kWarps),
         .shared_bytes = sizeof(Planes),
         .stream = t.stream},
        t.in, t.out, t.grid, array_of<Star<kRadius>>(t.stencil), planes);
}

// cp.async, and room for the planes.
template <int kRadius>
std::string ring_constraint(const Problem&) {
    using Shape = RingShape<kRadius>;
    using Planes = Ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead>;
    return course::why_no_tensor_cores(
        stencil_async_ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead, Shape::kBlocks, true>,
        sizeof(Planes));
}

template <int kRadius>
void async_ring(const Trip& t) {
    refuse_where<ring_constraint<kRadius>>("async_ring");
    t.aligned ? launch_async_ring<kRadius, true>(t) : launch_async_ring<kRadius, false>(t);
}

std::string needs_hopper(const Problem&) {
    return course::why_no_hopper();
}

// Bulk copies move multiples of 16 bytes. Other grids use async_ring.
void bulk_ring(const Trip& t) {
    refuse_where<needs_hopper>("bulk_ring");
    if (!t.aligned) return async_ring<1>(t);
    launch_bulk_ring(t.in, t.out, t.grid, array_of<Star<1>>(t.stencil), t.stream);
}

constexpr unsigned kPlaneSweeps = 4;
constexpr int kFrontRows = 3;
constexpr int kFrontWarps = 16;
constexpr int kFrontAhead = 1;

template <int kSweeps, bool kAligned>
void launch_stream_planes(const Trip& t) {
    using Tile = Front<kSweeps, kFrontRows, kFrontWarps, kFrontAhead>;
    constexpr auto kKernel =
        stencil_stream_planes<kSweeps, kFrontRows, kFrontWarps, kFrontAhead, 1, kAligned>;
    const unsigned across = blocks(t.grid.nx, Tile::kInnerCols);
    const unsigned down = blocks(t.grid.ny, Tile::kInnerRows);
    // Into how many parts is z cut? More parts keep more SMs busy, but each part has 2 * kSweeps
    // planes of halo. A block takes a step per plane, and an SM runs one block at a time.
    const std::size_t at_a_time = course::multiprocessors();
    int planes = t.grid.nz;
    std::size_t fewest_steps = std::numeric_limits<std::size_t>::max();
    for (int parts = 1; parts <= 16; ++parts) {
        const int of_part = course::ceil_div(t.grid.nz, parts);
        const std::size_t rounds =
            course::ceil_div<std::size_t>(std::size_t{across} * down * blocks(t.grid.nz, of_part), at_a_time);
        const std::size_t steps = rounds * static_cast<std::size_t>(of_part + 2 * kSweeps);
        if (steps >= fewest_steps) continue;
        fewest_steps = steps;
        planes = of_part;
    }
    course::launch(kKernel,
                   {.grid = dim3(across, down, blocks(t.grid.nz, planes)),
                    .block = dim3(course::kWarpSize, kFrontWarps),
                    .shared_bytes = sizeof(Tile),
                    .stream = t.stream},
                   t.in, t.out, t.grid, seven(t.stencil), planes);
}

std::string streaming_constraint(const Problem&) {
    return course::why_no_tensor_cores(
        stencil_stream_planes<kPlaneSweeps, kFrontRows, kFrontWarps, kFrontAhead, 1, true>,
        sizeof(Front<kPlaneSweeps, kFrontRows, kFrontWarps, kFrontAhead>));
}

void streaming_planes(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                      DeviceGrid<float> spare, unsigned steps, cudaStream_t stream) {
    refuse_where<streaming_constraint>("streaming");
    sweep(stencil, in, out, spare, steps, stream, {kPlaneSweeps, 1}, [](const Trip& t, unsigned sweeps) {
        if (sweeps == 1) return register_tiled_float4(t);
        t.aligned ? launch_stream_planes<kPlaneSweeps, true>(t)
                  : launch_stream_planes<kPlaneSweeps, false>(t);
    });
}

// --- 25-point, 27-point, 5-point -----------------------------------------------------------------

dim3 basic_grid(const Grid& grid) {
    return {blocks(grid.nx, kBasicCols), blocks(grid.ny, kBasicRows), static_cast<unsigned>(grid.nz)};
}
constexpr dim3 kBasicBlock(kBasicCols, kBasicRows);

void basic_star(const Trip& t) {
    course::launch(stencil_basic_star<4>,
                   {.grid = basic_grid(t.grid), .block = kBasicBlock, .stream = t.stream}, t.in, t.out,
                   t.grid, array_of<Star<4>>(t.stencil));
}

void basic_box(const Trip& t) {
    course::launch(stencil_basic_box, {.grid = basic_grid(t.grid), .block = kBasicBlock, .stream = t.stream},
                   t.in, t.out, t.grid, array_of<Box>(t.stencil));
}

void register_tiled_box(const Trip& t) {
    constexpr int kPlanes = 64;
    const dim3 grid(blocks(t.grid.nx, kBasicCols), blocks(t.grid.ny, kBasicRows), blocks(t.grid.nz, kPlanes));
    course::launch(stencil_register_tiled_box, {.grid = grid, .block = kBasicBlock, .stream = t.stream}, t.in,
                   t.out, t.grid, array_of<Box>(t.stencil), kPlanes);
}

void basic_cross(const Trip& t) {
    course::launch(stencil_basic_cross,
                   {.grid = basic_grid(t.grid), .block = kBasicBlock, .stream = t.stream}, t.in, t.out,
                   t.grid, five(t.stencil));
}

void overlapped_tile(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                     DeviceGrid<float> spare, unsigned steps, cudaStream_t stream) {
    sweep(stencil, in, out, spare, steps, stream, {kSquareSweeps, 3, 2, 1},
          [](const Trip& t, unsigned sweeps) {
              const int inner = kSquare - 2 * static_cast<int>(sweeps);
              course::launch(stencil_overlapped_tile,
                             {.grid = dim3(blocks(t.grid.nx, inner), blocks(t.grid.ny, inner)),
                              .block = dim3(32, kSquareThreads),
                              .stream = t.stream},
                             t.in, t.out, t.grid, five(t.stencil), static_cast<int>(sweeps));
          });
}

constexpr unsigned kRowSweeps = 8;
constexpr unsigned kFewRowSweeps = 4;

template <int kSweeps, bool kAligned>
void launch_stream_rows(const Trip& t) {
    constexpr auto kKernel = stencil_stream_rows<kSweeps, kAligned>;
    constexpr int kThreads = 32 * kStripWarps;
    const unsigned strips = blocks(t.grid.nx, kStripWarps * (kWarpCells - 2 * kHaloCells<kSweeps>));
    // As many marches as can be resident, but each at least four times as long as its halo.
    const unsigned marches = std::max(course::resident_blocks(kKernel, kThreads) / strips, 1u);
    const int rows = std::max(course::ceil_div(t.grid.ny, static_cast<int>(marches)), 8 * kSweeps);
    course::launch(
        kKernel,
        {.grid = dim3(strips, blocks(t.grid.ny, rows)), .block = dim3(32, kStripWarps), .stream = t.stream},
        t.in, t.out, t.grid, five(t.stencil), rows);
}

template <int kSweeps>
void stream_rows(const Trip& t) {
    t.aligned ? launch_stream_rows<kSweeps, true>(t) : launch_stream_rows<kSweeps, false>(t);
}

void streaming_rows(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                    DeviceGrid<float> spare, unsigned steps, cudaStream_t stream) {
    sweep(stencil, in, out, spare, steps, stream, {kRowSweeps, kFewRowSweeps, 1},
          [](const Trip& t, unsigned sweeps) {
              if (sweeps == kRowSweeps) return stream_rows<kRowSweeps>(t);
              sweeps == kFewRowSweeps ? stream_rows<kFewRowSweeps>(t) : stream_rows<1>(t);
          });
}

// --- Lists ---------------------------------------------------------------------------------------

// Each trip, of kDepth sweeps, reads and writes every cell once.
template <Shape kShape, unsigned kDepth = 1>
course::Work work(const Problem& problem) {
    const auto all_cells = static_cast<double>(cells(problem.extents));
    const double moved = all_cells * course::ceil_div(problem.steps, kDepth);
    return {.bytes = 2 * sizeof(float) * moved,
            .written = sizeof(float) * moved,
            .flops = (2 * static_cast<double>(coefficients(kShape)) - 1) * all_cells * problem.steps};
}

std::span<const Version> versions_star7() {
    static const std::array<Version, 8> list = {{
        {"basic", "a thread per cell", one_by_one<basic>, work<Shape::kStar7>},
        {"shared_tile", "a tile in shared memory", one_by_one<shared_tile>, work<Shape::kStar7>},
        {"coarsened_z", "three planes of a tile", one_by_one<plane_tiles<stencil_coarsened_z>>,
         work<Shape::kStar7>},
        {"register_tiled", "the own column in registers", one_by_one<plane_tiles<stencil_register_tiled>>,
         work<Shape::kStar7>},
        {"register_tiled_float4", "four cells of two rows a thread", one_by_one<register_tiled_float4>,
         work<Shape::kStar7>},
        {"async_ring", "planes copied ahead", one_by_one<async_ring<1>>, work<Shape::kStar7>,
         ring_constraint<1>},
        {"bulk_ring", "planes copied ahead by the copy engine", one_by_one<bulk_ring>, work<Shape::kStar7>,
         needs_hopper},
        {"streaming", "several sweeps in a trip", streaming_planes, work<Shape::kStar7, kPlaneSweeps>,
         streaming_constraint},
    }};
    return list;
}

std::span<const Version> versions_star25() {
    static const std::array<Version, 2> list = {{
        {"basic", "a thread per cell", one_by_one<basic_star>, work<Shape::kStar25>},
        {"async_ring", "planes copied ahead", one_by_one<async_ring<4>>, work<Shape::kStar25>,
         ring_constraint<4>},
    }};
    return list;
}

std::span<const Version> versions_box27() {
    static const std::array<Version, 2> list = {{
        {"basic", "a thread per cell", one_by_one<basic_box>, work<Shape::kBox27>},
        {"register_tiled", "three planes in registers", one_by_one<register_tiled_box>, work<Shape::kBox27>},
    }};
    return list;
}

std::span<const Version> versions_cross5() {
    static const std::array<Version, 3> list = {{
        {"basic", "a thread per cell", one_by_one<basic_cross>, work<Shape::kCross5>},
        {"overlapped_tile", "several sweeps of a tile", overlapped_tile, work<Shape::kCross5, kSquareSweeps>},
        {"streaming", "several sweeps in a trip", streaming_rows, work<Shape::kCross5, kRowSweeps>},
    }};
    return list;
}

}  // namespace

std::size_t cells(const Extents& extents) {
    return extents.nx * extents.ny * extents.nz;
}

std::string to_text(const Extents& extents) {
    return course::shape_text(extents.nx, extents.ny, extents.nz);
}

template <class T>
DeviceGrid<T>::DeviceGrid(course::DeviceSpan<T> span, const Extents& extents)
    : span_(span), extents_(extents) {
    require(span.size() == cells(extents), "DeviceGrid: the span has ", span.size(),
            " elements and the grid ", to_text(extents), "; expected ", cells(extents));
}
template class DeviceGrid<float>;
template class DeviceGrid<const float>;

std::string_view name(Shape shape) {
    static constexpr std::array<std::string_view, 4> kNames = {"7-point", "25-point", "27-point", "5-point"};
    return kNames.at(static_cast<std::size_t>(shape));
}

std::size_t radius(Shape shape) {
    return shape == Shape::kStar25 ? 4 : 1;
}

std::size_t coefficients(Shape shape) {
    static constexpr std::array<std::size_t, 4> kCounts = {7, 25, 27, 5};
    return kCounts.at(static_cast<std::size_t>(shape));
}

Stencil heat(Shape shape) {
    const std::size_t count = coefficients(shape);
    std::vector<float> k(count);
    const auto n = static_cast<float>(count);
    for (std::size_t i = 0; i < count; ++i)
        k[i] = (1.0f + 0.5f * (static_cast<float>(i) - (n - 1) / 2) / n) / n;
    return {shape, k};
}

std::span<const Version> versions(Shape shape) {
    switch (shape) {
        case Shape::kStar7:
            return versions_star7();
        case Shape::kStar25:
            return versions_star25();
        case Shape::kBox27:
            return versions_box27();
        default:
            return versions_cross5();
    }
}

}  // namespace day11
