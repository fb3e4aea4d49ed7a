#include "common/bench/random_products.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/device/random.hpp"

namespace course {

std::vector<Dims> random_matmuls(const RandomShapes& how) {
    constexpr std::size_t kSteps = 7;  // 1 to 64
    Random random(how.seed);
    const auto draw = [&](double least, double most) {
        const double unit = static_cast<double>(random.next() >> 11) * 0x1p-53;
        return static_cast<std::size_t>(std::lround(std::exp2(least + unit * (most - least))));
    };
    std::vector<Dims> shapes;
    for (std::size_t i = 0; i < how.count; ++i) {
        Dims dims = {draw(how.least, how.most), draw(how.least, how.most), draw(how.least, how.most)};
        if (i % 4 == 3) dims[i / 4 % 3] = draw(how.thinnest, how.least);
        for (std::size_t& extent : dims) {
            const std::size_t step =
                std::max(how.multiple, std::min(std::size_t{1} << i % kSteps, std::bit_floor(extent)));
            extent = std::max(extent / step, std::size_t{1}) * step;
        }
        shapes.push_back(dims);
    }
    return shapes;
}

}  // namespace course
