// Day 11's host code: argument checks, the order of the sweeps, the lists of versions. The kernels
// and their launches are in stencil.cuh and beyond/.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "beyond/any_grid.cuh"
#include "beyond/bulk_ring.hpp"
#include "beyond/register_tiled_float4.cuh"
#include "beyond/ring.cuh"
#include "beyond/shapes.cuh"
#include "beyond/temporal.cuh"
#include "beyond/temporal_planes.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "stencil.cuh"
#include "stencil.hpp"

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
            CUDA_CHECK_LAUNCH();
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

// One sweep, kLaunch(in, out, grid, weights, stream), with the weights by name ...
template <auto kLaunch>
void seven_points(const Trip& t) {
    kLaunch(t.in, t.out, t.grid, seven(t.stencil), t.stream);
}

// ... or in an array.
template <auto kLaunch, class Coefficients>
void points(const Trip& t) {
    kLaunch(t.in, t.out, t.grid, array_of<Coefficients>(t.stencil), t.stream);
}

void register_tiled_float4(const Trip& t) {
    t.aligned ? seven_points<launch_register_tiled_float4<true>>(t)
              : seven_points<launch_register_tiled_float4<false>>(t);
}

void basic_cross(const Trip& t) {
    launch_basic_cross(t.in, t.out, t.grid, five(t.stencil), t.stream);
}

// Throws where a version has a reason not to run. Queried once, because the query takes
// microseconds.
template <std::string (*kReason)(const Problem&)>
void refuse_where(const char* version) {
    static const std::string reason = kReason({});
    require(reason.empty(), "stencil: ", version, " ", reason);
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
    t.aligned ? points<launch_async_ring<kRadius, true>, Star<kRadius>>(t)
              : points<launch_async_ring<kRadius, false>, Star<kRadius>>(t);
}

std::string needs_hopper(const Problem&) {
    return course::why_no_hopper();
}

// Bulk copies move multiples of 16 bytes. Other grids use async_ring.
void bulk_ring(const Trip& t) {
    refuse_where<needs_hopper>("bulk_ring");
    t.aligned ? points<launch_bulk_ring<1>, Star<1>>(t) : async_ring<1>(t);
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
        t.aligned ? seven_points<launch_stream_planes<kPlaneSweeps, true>>(t)
                  : seven_points<launch_stream_planes<kPlaneSweeps, false>>(t);
    });
}

void overlapped_tile(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                     DeviceGrid<float> spare, unsigned steps, cudaStream_t stream) {
    sweep(
        stencil, in, out, spare, steps, stream, {kSquareSweeps, 3, 2, 1}, [](const Trip& t, unsigned sweeps) {
            launch_overlapped_tile(t.in, t.out, t.grid, five(t.stencil), static_cast<int>(sweeps), t.stream);
        });
}

template <int kSweeps>
void stream_rows(const Trip& t) {
    const auto launch = t.aligned ? launch_stream_rows<kSweeps, true> : launch_stream_rows<kSweeps, false>;
    launch(t.in, t.out, t.grid, five(t.stencil), t.stream);
}

void streaming_rows(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                    DeviceGrid<float> spare, unsigned steps, cudaStream_t stream) {
    sweep(stencil, in, out, spare, steps, stream, {kRowSweeps, kFewRowSweeps, 1},
          [](const Trip& t, unsigned sweeps) {
              if (sweeps == kRowSweeps) return stream_rows<kRowSweeps>(t);
              sweeps == kFewRowSweeps ? stream_rows<kFewRowSweeps>(t) : stream_rows<1>(t);
          });
}

// any_grid takes the march whose threads suit the grid. Its constants are those that were fastest
// on an H200, where 27 grids were tried.
constexpr std::size_t kLarge = std::size_t{1} << 22;  // cells, from which on vectors pay

// Whether four cells at a time pay: rows of quads, which leave at most a quarter of a warp idle.
bool takes_quads(const Trip& t) {
    const std::size_t cells = static_cast<std::size_t>(t.grid.nx) * t.grid.ny * t.grid.nz;
    const int idle = static_cast<int>(blocks_along(t.grid.nx, kWarpCells)) * kWarpCells - t.grid.nx;
    return t.aligned && cells >= kLarge && idle <= t.grid.nx / 3;
}

template <int kRadius, int kAxes, int kRows, int kCols>
void march_star(const Trip& t, int most_planes) {
    launch_march(stencil_march_star<kRadius, kAxes, kRows, kCols>, kRows, kCols, most_planes, t.in, t.out,
                 t.grid, array_of<Arms<kRadius, kAxes>>(t.stencil), t.stream);
}

bool is_narrow(const Trip& t) {
    return t.grid.nx <= course::kWarpSize;
}

void any_grid_star7(const Trip& t) {
    if (takes_quads(t))
        return launch_register_tiled_float4<true, 4, 4>(t.in, t.out, t.grid, seven(t.stencil), t.stream);
    is_narrow(t) ? march_star<1, 3, 1, 1>(t, 16) : march_star<1, 3, 1, 2>(t, 8);
}

void any_grid_star25(const Trip& t) {
    if (takes_quads(t) && ring_constraint<4>({}).empty()) return async_ring<4>(t);
    is_narrow(t) ? march_star<4, 3, 2, 1>(t, 8) : march_star<4, 3, 2, 2>(t, 16);
}

void any_grid_box27(const Trip& t) {
    constexpr int kRows = 4;
    launch_march(stencil_march_box<kRows>, kRows, 1, 32, t.in, t.out, t.grid, array_of<Box>(t.stencil),
                 t.stream);
}

void any_grid_cross5(const Trip& t) {
    const bool large = static_cast<std::size_t>(t.grid.nx) * t.grid.ny >= kLarge;
    large ? march_star<1, 2, 8, 2>(t, 1) : march_star<1, 2, 1, 4>(t, 1);
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
    static const std::array<Version, 9> list = {{
        {"basic", "a thread per cell", one_by_one<seven_points<launch_basic>>, work<Shape::kStar7>},
        {"shared_tile", "a tile in shared memory", one_by_one<seven_points<launch_shared_tile>>,
         work<Shape::kStar7>},
        {"coarsened_z", "three planes of a tile", one_by_one<seven_points<launch_coarsened_z>>,
         work<Shape::kStar7>},
        {"register_tiled", "the own column in registers", one_by_one<seven_points<launch_register_tiled>>,
         work<Shape::kStar7>},
        {"register_tiled_float4", "four cells of two rows a thread", one_by_one<register_tiled_float4>,
         work<Shape::kStar7>},
        {"async_ring", "planes copied ahead", one_by_one<async_ring<1>>, work<Shape::kStar7>,
         ring_constraint<1>},
        {"bulk_ring", "planes copied ahead by the copy engine", one_by_one<bulk_ring>, work<Shape::kStar7>,
         needs_hopper},
        {"any_grid", "marches as long as the grid allows", one_by_one<any_grid_star7>, work<Shape::kStar7>},
        {"streaming", "several sweeps in a trip", streaming_planes, work<Shape::kStar7, kPlaneSweeps>,
         streaming_constraint},
    }};
    return list;
}

std::span<const Version> versions_star25() {
    static const std::array<Version, 3> list = {{
        {"basic", "a thread per cell", one_by_one<points<launch_basic_star<4>, Star<4>>>,
         work<Shape::kStar25>},
        {"async_ring", "planes copied ahead", one_by_one<async_ring<4>>, work<Shape::kStar25>,
         ring_constraint<4>},
        {"any_grid", "marches as long as the grid allows", one_by_one<any_grid_star25>, work<Shape::kStar25>},
    }};
    return list;
}

std::span<const Version> versions_box27() {
    static const std::array<Version, 3> list = {{
        {"basic", "a thread per cell", one_by_one<points<launch_basic_box, Box>>, work<Shape::kBox27>},
        {"register_tiled", "three planes in registers", one_by_one<points<launch_register_tiled_box, Box>>,
         work<Shape::kBox27>},
        {"any_grid", "marches as long as the grid allows", one_by_one<any_grid_box27>, work<Shape::kBox27>},
    }};
    return list;
}

std::span<const Version> versions_cross5() {
    static const std::array<Version, 4> list = {{
        {"basic", "a thread per cell", one_by_one<basic_cross>, work<Shape::kCross5>},
        {"any_grid", "lanes with cells far apart", one_by_one<any_grid_cross5>, work<Shape::kCross5>},
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
