// Day 37, beyond: the host code of conjugate gradients.
#include <array>

#include "beyond/fft_lines.cuh"
#include "beyond/reconstruction.cuh"
#include "beyond/reconstruction.hpp"
#include "beyond/separable.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/stream_buffer.hpp"

namespace day37 {
namespace {

using course::DeviceSpan;
using course::require;

// A power of two that has room for the differences of n voxels.
std::size_t padded_extent(std::size_t n) {
    std::size_t extent = 1;
    while (extent < 2 * n - 1)
        extent *= 2;
    return extent;
}

bool is_same(const Grid& a, const Grid& b) {
    return a.nx == b.nx && a.ny == b.ny && a.nz == b.nz;
}

// `who` begins the message.
Grid checked(const char* who, const Grid& grid) {
    for (const std::size_t n : {grid.nx, grid.ny, grid.nz}) {
        require(n >= 1 && n <= NormalOperator::kMostExtent, who, ": the grid has ", n,
                " voxels along an axis; expected 1 to 1024");
    }
    return grid;
}

constexpr std::array kNames = {"kx", "ky", "kz", "phi_re", "phi_im"};
std::array<DeviceSpan<const float>, 5> inputs_of(const KSpace& k) {
    return {k.kx, k.ky, k.kz, k.phi_re, k.phi_im};
}

// Of Q's samples and grid, and of `gridding` unless it is null.
Grid checked(const char* who, const Grid& grid, const KSpace& k, const Gridding* gridding) {
    const Grid differences = differences_of(checked(who, grid));
    const std::size_t samples = k.kx.size();
    for (std::size_t i = 0; i < kNames.size(); ++i)
        require(inputs_of(k)[i].size() == samples, who, ": ", kNames[i], " has ", inputs_of(k)[i].size(),
                " elements; expected ", samples, ", as kx");
    require(samples >= 1 && samples <= kMostSamples, who, ": ", samples, " samples; expected 1 to 2^30");
    if (gridding == nullptr) return grid;
    const Grid& has = gridding->grid();
    const Grid& field = gridding->field();
    require(is_same(has, differences) && is_same(field, grid), who, ": gridding is for ", has.nx, " x ",
            has.ny, " x ", has.nz, " voxels with ", field.nx, " x ", field.ny, " x ", field.nz,
            " in a field of view; expected ", differences.nx, " x ", differences.ny, " x ", differences.nz,
            " with ", grid.nx, " x ", grid.ny, " x ", grid.nz);
    require(samples <= gridding->samples(), who, ": gridding is for ", gridding->samples(),
            " samples; expected at least ", samples);
    return grid;
}

constexpr int kBlock = 256;
unsigned blocks_for_each(std::size_t count) {
    return course::blocks_for(count, kBlock);
}

int length(std::size_t extent) {
    return static_cast<int>(extent);
}

// Where the lines along an axis are in an array of grid `g`, x fastest.
Lines lines_x(const Grid& g) {
    return {length(g.nx), 1, g.nx, g.nx * g.ny};
}
Lines lines_y(const Grid& g) {
    return {length(g.ny), g.nx, 1, g.nx * g.ny};
}
Lines lines_z(const Grid& g) {  // x and y are one index
    return {length(g.nz), g.nx * g.ny, 1, 0};
}

void make_roots(course::DeviceBuffer<float2>& roots, std::size_t extent, cudaStream_t stream) {
    compute_roots<<<blocks_for_each(extent), kBlock, 0, stream>>>(roots.data(), length(extent));
}

void check_point_spread(const Grid& grid, const KSpace& k, const Gridding* gridding, const Image& q,
                        Workspace& workspace) {
    checked("point_spread", grid, k, gridding);
    const Grid differences = differences_of(grid);
    require(q.re.size() == differences.count() && q.im.size() == differences.count(), "point_spread: q has ",
            q.re.size(), " and ", q.im.size(), " elements; expected ", differences.count(),
            ", one per difference");
    require(!overlap(q.re, q.im), "point_spread: re overlaps im; expected no element in common");
    for (std::size_t i = 0; i < kNames.size(); ++i)
        require(!overlap(inputs_of(k)[i], q.re) && !overlap(inputs_of(k)[i], q.im),
                "point_spread: an output overlaps ", kNames[i], "; expected no element in common");
    const std::size_t samples = k.kx.size();
    require(samples <= workspace.samples(), "point_spread: the workspace is for ", workspace.samples(),
            " samples; expected at least ", samples);
    const std::size_t tables = gridding == nullptr ? axis_table_floats(samples, differences) : 0;
    require(tables <= workspace.scratch().size(), "point_spread: the workspace has ",
            workspace.scratch().size(), " floats for tables; expected at least ", tables,
            ", as one for the differences has");
}

// A float per sample each; and axis_table_floats(samples, differences), which gridding does not
// need.
struct Memory {
    float *mu_re, *mu_im, *tables;
};

// Enqueues Q of arguments that have been checked.
void enqueue_point_spread(const KSpace& k, const Grid& grid, Gridding* gridding, const Image& q,
                          const Memory& memory, cudaStream_t stream) {
    const std::size_t samples = k.kx.size();
    square_phi<<<blocks_for_each(samples), kBlock, 0, stream>>>(
        k.phi_re.data(), k.phi_im.data(), static_cast<int>(samples), memory.mu_re, memory.mu_im);
    const Weighted squares{k.kx.data(), k.ky.data(), k.kz.data(), memory.mu_re, memory.mu_im, samples};
    if (gridding != nullptr)
        gridding->sum(squares, Spreading::kTiled, q.re, q.im, stream);
    else
        sum_on_grid(squares, differences_of(grid), grid, q.re.data(), q.im.data(), memory.tables, stream);
}

}  // namespace

Grid differences_of(const Grid& grid) {
    return {2 * grid.nx - 1, 2 * grid.ny - 1, 2 * grid.nz - 1};
}

Grid padded_of(const Grid& grid) {
    return {padded_extent(grid.nx), padded_extent(grid.ny), padded_extent(grid.nz)};
}

void point_spread(const KSpace& k, const Grid& grid, const Image& q, Workspace& workspace,
                  cudaStream_t stream) {
    check_point_spread(grid, k, nullptr, q, workspace);
    enqueue_point_spread(k, grid, nullptr, q,
                         {workspace.mu_re(), workspace.mu_im(), workspace.scratch().data()}, stream);
}

void point_spread(const KSpace& k, const Grid& grid, Gridding& gridding, const Image& q, Workspace& workspace,
                  cudaStream_t stream) {
    check_point_spread(grid, k, &gridding, q, workspace);
    enqueue_point_spread(k, grid, &gridding, q, {workspace.mu_re(), workspace.mu_im(), nullptr}, stream);
}

NormalOperator::NormalOperator(const Grid& grid)
    : grid_(grid),
      padded_(padded_of(grid)),
      roots_x_(padded_.nx),
      roots_y_(padded_.ny),
      roots_z_(padded_.nz),
      along_x_(padded_.nx * grid.ny * grid.nz),
      along_xy_(padded_.nx * padded_.ny * grid.nz),
      filter_(padded_.count()) {}

NormalOperator::NormalOperator(const Grid& grid, const KSpace& k, cudaStream_t stream)
    : NormalOperator(checked("NormalOperator", grid, k, nullptr)) {
    take(k, nullptr, stream);
}

NormalOperator::NormalOperator(const Grid& grid, const KSpace& k, Gridding& gridding, cudaStream_t stream)
    : NormalOperator(checked("NormalOperator", grid, k, &gridding)) {
    take(k, &gridding, stream);
}

void NormalOperator::take(const KSpace& k, Gridding* gridding, cudaStream_t stream) {
    make_roots(roots_x_, padded_.nx, stream);
    make_roots(roots_y_, padded_.ny, stream);
    make_roots(roots_z_, padded_.nz, stream);

    const Grid differences = differences_of(grid_);
    const course::StreamBuffer<float> q(2 * differences.count(), stream);
    const course::StreamBuffer<float2> spectrum(padded_.count(), stream);
    const Image sums{q.span().subspan(0, differences.count()),
                     q.span().subspan(differences.count(), differences.count())};
    const std::size_t samples = k.kx.size();
    const course::StreamBuffer<float> mu(2 * samples, stream);
    const course::StreamBuffer<float> tables(
        gridding == nullptr ? axis_table_floats(samples, differences) : 1, stream);
    enqueue_point_spread(k, grid_, gridding, sums, {mu.data(), mu.data() + samples, tables.data()}, stream);
    wrap_differences<<<blocks_for_each(padded_.count()), kBlock, 0, stream>>>(
        sums.re.data(), sums.im.data(), differences, spectrum.data(), padded_);
    float2* const all = spectrum.data();
    const Lines x = lines_x(padded_);
    const Lines y = lines_y(padded_);
    const Lines z = lines_z(padded_);
    const int nx = length(padded_.nx);
    const int ny = length(padded_.ny);
    const int nz = length(padded_.nz);
    launch_fft_lines<Transform::kForward>(all, x, all, x, nullptr, nx, ny, nz, roots_x_.data(), stream);
    launch_fft_lines<Transform::kForward>(all, y, all, y, nullptr, ny, nx, nz, roots_y_.data(), stream);
    launch_fft_lines<Transform::kForward>(all, z, all, z, nullptr, nz, nx * ny, 1, roots_z_.data(), stream);
    keep_real<<<blocks_for_each(padded_.count()), kBlock, 0, stream>>>(all, padded_, filter_.data());
    CUDA_CHECK_LAUNCH();
}

void NormalOperator::apply(DeviceSpan<const float2> x, DeviceSpan<float2> out, cudaStream_t stream) {
    require(x.size() == grid_.count() && out.size() == grid_.count(), "NormalOperator: x and out have ",
            x.size(), " and ", out.size(), " elements; expected ", grid_.count(), ", one per voxel");
    require(x.data() == out.data() || !overlap(x, out),
            "NormalOperator: out overlaps x; expected the same array, or no element in common");
    const Grid in_x{padded_.nx, grid_.ny, grid_.nz};     // the array along_x_
    const Grid in_xy{padded_.nx, padded_.ny, grid_.nz};  // the array along_xy_
    const int nx = length(padded_.nx);
    const int ny = length(padded_.ny);
    const int nz = length(padded_.nz);
    const int rows = length(grid_.ny);
    const int planes = length(grid_.nz);
    launch_fft_lines<Transform::kForward>(x.data(), lines_x(grid_), along_x_.data(), lines_x(in_x), nullptr,
                                          nx, rows, planes, roots_x_.data(), stream);
    launch_fft_lines<Transform::kForward>(along_x_.data(), lines_y(in_x), along_xy_.data(), lines_y(in_xy),
                                          nullptr, ny, nx, planes, roots_y_.data(), stream);
    launch_fft_lines<Transform::kFilter>(along_xy_.data(), lines_z(in_xy), along_xy_.data(), lines_z(in_xy),
                                         filter_.data(), nz, nx * ny, 1, roots_z_.data(), stream);
    launch_fft_lines<Transform::kInverse>(along_xy_.data(), lines_y(in_xy), along_x_.data(), lines_y(in_x),
                                          nullptr, ny, nx, planes, roots_y_.data(), stream);
    launch_fft_lines<Transform::kInverse>(along_x_.data(), lines_x(in_x), out.data(), lines_x(grid_), nullptr,
                                          nx, rows, planes, roots_x_.data(), stream);
    CUDA_CHECK_LAUNCH();
}

ConjugateGradients::ConjugateGradients(const Grid& grid)
    : grid_(checked("ConjugateGradients", grid)),
      residual_(grid.count()),
      direction_(grid.count()),
      product_(grid.count()),
      partial_(kSumBlocks),
      curvature_(1) {}

void ConjugateGradients::solve(NormalOperator& normal, DeviceSpan<const float2> b, float lambda,
                               int iterations, DeviceSpan<float2> x, DeviceSpan<double> residuals,
                               cudaStream_t stream) {
    const std::size_t count = grid_.count();
    require(is_same(normal.grid(), grid_), "ConjugateGradients: the operator is for another grid; expected ",
            grid_.nx, " x ", grid_.ny, " x ", grid_.nz, " voxels");
    require(b.size() == count && x.size() == count, "ConjugateGradients: b and x have ", b.size(), " and ",
            x.size(), " elements; expected ", count, ", one per voxel");
    require(!overlap(b, x), "ConjugateGradients: x overlaps b; expected no element in common");
    require(lambda >= 0, "ConjugateGradients: lambda is ", lambda, "; expected at least 0");
    require(iterations >= 0 && residuals.size() == static_cast<std::size_t>(iterations) + 1,
            "ConjugateGradients: ", iterations, " iterations and ", residuals.size(),
            " residuals; expected one more than iterations");
    const unsigned blocks = blocks_for_each(count);
    double* const squares = residuals.data();
    begin_gradients<<<blocks, kBlock, 0, stream>>>(b.data(), x.data(), residual_.data(), direction_.data(),
                                                   count);
    launch_dot(residual_.data(), residual_.data(), count, partial_.data(), squares, stream);
    for (int i = 0; i < iterations; ++i) {
        normal.apply(direction_.span(), product_.span(), stream);
        add_scaled<<<blocks, kBlock, 0, stream>>>(lambda, direction_.data(), product_.data(), count);
        launch_dot(direction_.data(), product_.data(), count, partial_.data(), curvature_.data(), stream);
        step_along<<<blocks, kBlock, 0, stream>>>(squares + i, curvature_.data(), direction_.data(),
                                                  product_.data(), x.data(), residual_.data(), count);
        launch_dot(residual_.data(), residual_.data(), count, partial_.data(), squares + i + 1, stream);
        next_direction<<<blocks, kBlock, 0, stream>>>(squares + i, residual_.data(), direction_.data(),
                                                      count);
    }
    CUDA_CHECK_LAUNCH();
}

}  // namespace day37
