// Stencils, sweep after sweep: the host API of day 11. The kernels are in stencil.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day11 {

// Cells of a grid: nz planes of ny rows of nx cells. Neighbours along x are adjacent in memory.
struct Extents {
    std::size_t nx = 0;
    std::size_t ny = 0;
    std::size_t nz = 0;

    bool operator==(const Extents&) const = default;
};

std::size_t cells(const Extents& extents);
std::string to_text(const Extents& extents);  // "nx x ny x nz"

// A grid of floats on the device, without gaps between rows and planes.
template <class T>
class DeviceGrid {
  public:
    // Throws std::invalid_argument unless `span` has as many elements as the grid has cells.
    DeviceGrid(course::DeviceSpan<T> span, const Extents& extents);

    template <class Writable>
    requires(std::is_same_v<T, const Writable> && !std::is_const_v<Writable>)
        DeviceGrid(const DeviceGrid<Writable>& other)
        : span_(other.span()), extents_(other.extents()) {}

    course::DeviceSpan<T> span() const { return span_; }
    T* data() const { return span_.data(); }
    const Extents& extents() const { return extents_; }

  private:
    course::DeviceSpan<T> span_;
    Extents extents_;
};

// Which neighbours a new value depends on, besides the cell itself.
enum class Shape {
    kStar7,   // one on either side along x, y and z
    kStar25,  // four on either side along x, y and z
    kBox27,   // all that differ by at most 1 in x, y and z
    kCross5   // one on either side along x and y: a grid of one plane
};
inline constexpr Shape kShapes[] = {Shape::kStar7, Shape::kStar25, Shape::kBox27, Shape::kCross5};

std::string_view name(Shape shape);     // "7-point", ...
std::size_t radius(Shape shape);        // how far away the furthest neighbour is
std::size_t coefficients(Shape shape);  // how many there are: one for each point

// A shape with a coefficient for each of its points, in the order in which they are added up:
//   stars  the cell; then x - 1, x + 1, x - 2, x + 2, ...; then the same along y; then along z
//   box    z slowest, x fastest, from -1 to +1 each
struct Stencil {
    Shape shape;
    std::vector<float> coefficient;
};

// Heat flow: a weighted average of the points. The weights are positive and their sum is 1, and
// they differ from each other, so that a wrong neighbour changes the result.
Stencil heat(Shape shape);

// Enqueues `steps` sweeps on `stream`. A sweep computes all cells from the grid before it; cells
// nearer to an edge of the grid than the shape's radius keep their values. `in` is not changed,
// `out` is the grid after the last sweep, or a copy if there is none. The content of `spare` is
// unspecified afterwards. The three have the same extents, at most 2^30 x 65,535 x 65,535, are
// aligned to 4 bytes, and do not overlap. Throws std::invalid_argument for a bad argument and where
// cannot_run() has a reason, CudaError when a launch fails.
using Launcher = void (*)(const Stencil& stencil, DeviceGrid<const float> in, DeviceGrid<float> out,
                          DeviceGrid<float> spare, unsigned steps, cudaStream_t stream);

struct Problem {
    Extents extents;
    unsigned steps = 1;
};

// The versions of a shape, slow to fast.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions(Shape shape);

// The reference: plain loops in double, on all cores. Throws std::invalid_argument where lengths do
// not fit.
void sweep_on_cpu(const Stencil& stencil, const Extents& extents, std::span<const double> in,
                  std::span<double> out);
std::vector<double> sweeps_on_cpu(const Stencil& stencil, const Extents& extents, std::span<const float> in,
                                  unsigned steps);

// The same in float, in the order of the kernels and with their rounding: the results are equal bit
// for bit.
std::vector<float> exact_on_cpu(const Stencil& stencil, const Extents& extents, std::span<const float> in,
                                unsigned steps);

}  // namespace day11
