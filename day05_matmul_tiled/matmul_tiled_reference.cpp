#include "common/check/matmul_reference.hpp"
#include "matmul_tiled.hpp"

namespace day05 {

void multiply_on_cpu(Shape shape, std::span<const float> a, std::span<const float> b,
                     std::span<double> product, std::span<double> magnitude) {
    course::multiply_on_cpu(shape.rows, shape.cols, shape.depth, 1, a, b, 0, product, magnitude);
}

}  // namespace day05
