// The reference of masked products: all elements, and then those that are not kept are filled.
#include <stdexcept>
#include <string>

#include "common/check/matmul_reference.hpp"
#include "masked_matmul.hpp"

namespace day47 {

MaskedOnCpu multiply_masked_on_cpu(const MaskedShape& shape, float alpha, std::span<const float> a,
                                   std::span<const float> b, std::span<const std::uint8_t> keep, float fill) {
    const std::size_t in_product = shape.m * shape.n;
    if (keep.size() != shape.count * in_product) {
        throw std::invalid_argument("multiply_masked_on_cpu: keep has " + std::to_string(keep.size()) +
                                    " elements; expected " + std::to_string(shape.count * in_product) +
                                    ", one for each element of all products");
    }
    MaskedOnCpu result{std::vector<double>(keep.size()), std::vector<double>(keep.size())};
    for (std::size_t i = 0; i < shape.count; ++i) {
        course::multiply_on_cpu(shape.m, shape.n, shape.k, alpha,
                                a.subspan(i * shape.m * shape.k, shape.m * shape.k),
                                b.subspan(i * shape.k * shape.n, shape.k * shape.n), 0,
                                std::span(result.values).subspan(i * in_product, in_product),
                                std::span(result.magnitudes).subspan(i * in_product, in_product));
    }
    for (std::size_t e = 0; e < keep.size(); ++e) {
        if (keep[e] != 0) continue;
        result.values[e] = static_cast<double>(fill);
        result.magnitudes[e] = 0;
    }
    return result;
}

std::vector<std::uint8_t> band_as_bytes(const Mask& mask, std::size_t m, std::size_t n) {
    std::vector<std::uint8_t> bytes(m * n);
    const std::int64_t lowest = mask.below == INT64_MIN ? INT64_MAX : -mask.below;
    for (std::size_t e = 0; e < bytes.size(); ++e) {
        const auto right =
            static_cast<std::int64_t>(e % n) - static_cast<std::int64_t>(e / n);  // of the diagonal
        bytes[e] = lowest <= right && right <= mask.above ? 1 : 0;
    }
    return bytes;
}

}  // namespace day47
