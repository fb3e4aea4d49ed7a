#include "common/check/expected_products.hpp"

#include <stdexcept>
#include <string>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/matmul_reference.hpp"
#include "common/check/verify_on_device.hpp"

namespace course {
namespace {

double multiply_adds(const ProductShape& shape) {
    return static_cast<double>(shape.count) * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
           static_cast<double>(shape.k);
}

}  // namespace

ExpectedProducts::ExpectedProducts(const ProductShape& shape, float alpha, std::span<const float> a,
                                   std::span<const float> b)
    : ExpectedProducts(shape, alpha, a, b, is_cpu_stand_in() || multiply_adds(shape) <= kMostOnHost) {}

ExpectedProducts::ExpectedProducts(const ProductShape& shape, float alpha, std::span<const float> a,
                                   std::span<const float> b, bool on_host)
    : shape_(shape), on_host_(on_host) {
    const std::size_t elements = shape.count * shape.m * shape.n;
    if (on_host_) {
        product_.resize(elements);
        magnitude_.resize(elements);
        multiply_batch_on_cpu(shape.count, shape.m, shape.n, shape.k, alpha, a, b, 0, product_, magnitude_);
    } else {
        product_on_device_ = DeviceBuffer<double>(elements);
        magnitude_on_device_ = DeviceBuffer<double>(elements);
        const DeviceBuffer<float> a_there(a);
        const DeviceBuffer<float> b_there(b);
        multiply_batch_on_device(shape.count, shape.m, shape.n, shape.k, alpha, a_there.span(),
                                 b_there.span(), product_on_device_.span(), magnitude_on_device_.span());
        CUDA_CHECK(cudaDeviceSynchronize());  // the operands are needed until then
    }
}

void ExpectedProducts::fill_dropped(std::span<const std::uint8_t> keep, float fill) {
    const std::size_t in_product = shape_.m * shape_.n;
    const std::size_t elements = shape_.count * in_product;
    if (keep.size() != in_product && keep.size() != elements) {
        throw std::invalid_argument("fill_dropped: keep has " + std::to_string(keep.size()) +
                                    " elements; expected " + std::to_string(in_product) + " or " +
                                    std::to_string(elements) +
                                    ", one for each element of one or all products");
    }
    if (on_host_) {
#pragma omp parallel for
        for (std::size_t i = 0; i < elements; ++i) {
            if (keep[i % keep.size()] != 0) continue;
            product_[i] = static_cast<double>(fill);
            magnitude_[i] = 0;
        }
    } else {
        const DeviceBuffer<std::uint8_t> keep_there(keep);
        fill_dropped_on_device(keep_there.span(), static_cast<double>(fill), product_on_device_.span(),
                               magnitude_on_device_.span());
    }
}

VerifyResult ExpectedProducts::verify(GuardedBuffer<float>& c) const {
    const Bound bound{.terms = shape_.k + 1, .growth = Growth::kSquareRoot};
    VerifyResult result = on_host_ ? course::verify(c.to_host(), product_, bound, magnitude_, shape_.n)
                                   : course::verify_on_device(c.span(), product_on_device_.span(), bound,
                                                              magnitude_on_device_.span(), shape_.n);
    result.damage = c.damage();
    return result;
}

std::vector<float> each_transposed(std::span<const float> matrices, std::size_t rows, std::size_t cols) {
    std::vector<float> others(matrices.size());
    if (others.empty()) return others;
#pragma omp parallel for
    for (std::size_t row = 0; row < matrices.size() / rows; ++row) {  // of those that are written
        const std::size_t begin = row / cols * rows * cols + row % cols;
        for (std::size_t i = 0; i < rows; ++i)
            others[row * rows + i] = matrices[begin + i * cols];
    }
    return others;
}

}  // namespace course
