// Day 50: the reference, one grid on the CPU.
#include <cmath>
#include <cstddef>
#include <utility>

#include "common/check/require.hpp"
#include "multi_gpu.hpp"

namespace day50 {

std::vector<float> steps_on_cpu(const Extents& extents, std::span<const float> in, unsigned steps) {
    course::require(in.size() == extents.cells(), "steps_on_cpu: in has ", in.size(), " cells; expected ",
                    extents.cells());
    constexpr float kCentre = 0.4f;
    constexpr float kAt[] = {0.05f, 0.025f, 0.015f, 0.01f};
    const std::size_t row = extents.nx;
    const std::size_t plane = extents.plane();
    const auto is_inside = [](std::size_t at, std::size_t extent) {
        return at >= kRadius && at + kRadius < extent;
    };
    std::vector<float> before(in.begin(), in.end());
    std::vector<float> after = before;
    for (unsigned step = 0; step < steps; ++step) {
#pragma omp parallel for
        for (std::size_t z = 0; z < extents.nz; ++z) {
            for (std::size_t y = 0; y < extents.ny; ++y) {
                for (std::size_t x = 0; x < extents.nx; ++x) {
                    if (!is_inside(x, extents.nx) || !is_inside(y, extents.ny) || !is_inside(z, extents.nz))
                        continue;
                    const std::size_t i = z * plane + y * row + x;
                    float sum = kCentre * before[i];
                    for (std::size_t d = 1; d <= kRadius; ++d)
                        for (const std::size_t stride : {std::size_t{1}, row, plane})
                            sum = std::fma(kAt[d - 1], before[i - d * stride] + before[i + d * stride], sum);
                    after[i] = sum;
                }
            }
        }
        std::swap(before, after);
    }
    return before;
}

}  // namespace day50
