#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "common/bench/random_products.hpp"
#include "common/check/check.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"

namespace course {
namespace {

constexpr int kThreads = 256;

// Stores element i of the packed rows x cols matrices op(X) twice: as a float, and as T at its
// position in X.
template <class T>
__global__ void fill_normal(DeviceSpan<T> values, DeviceSpan<float> of_op, std::size_t rows, std::size_t cols,
                            bool is_transposed, std::uint64_t seed) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= of_op.size()) return;
    Random random(seed, i * 4);  // a normal number takes four draws
    const float normal = random.normal();
    const T value = [normal] {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(normal * 10.5f);  // the normal numbers lie within +-6
        } else {
            return T(normal);
        }
    }();
    of_op[i] = static_cast<float>(value);
    const std::size_t matrix = i / (rows * cols);
    const std::size_t row = i / cols % rows;
    const std::size_t col = i % cols;
    values[is_transposed ? (matrix * cols + col) * rows + row : i] = value;
}

__global__ void round_to_integers(DeviceSpan<const double> from, DeviceSpan<std::int32_t> to) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < to.size()) to[i] = static_cast<std::int32_t>(from[i]);
}

// Fills the operand, and returns op() of it as floats.
template <class T>
DeviceBuffer<float> fill(DeviceBuffer<T>& operand, std::size_t rows, std::size_t cols, Op op,
                         std::uint64_t seed) {
    DeviceBuffer<float> of_op(operand.size());
    if (operand.size() == 0) return of_op;
    fill_normal<T><<<blocks_for(operand.size(), kThreads), kThreads>>>(operand.span(), of_op.span(), rows,
                                                                       cols, op == Op::kTranspose, seed);
    CUDA_CHECK_LAUNCH();
    return of_op;
}

}  // namespace

template <class T>
RandomProducts<T>::RandomProducts(const ProductShape& shape, Op op_a, Op op_b)
    : shape_(shape),
      op_a_(op_a),
      op_b_(op_b),
      a_(shape.count * shape.m * shape.k),
      b_(shape.count * shape.k * shape.n),
      c_(shape.count * shape.m * shape.n),
      product_(c_.size()),
      magnitude_(c_.size()) {
    const DeviceBuffer<float> a = fill(a_, shape.m, shape.k, op_a, 1);
    const DeviceBuffer<float> b = fill(b_, shape.k, shape.n, op_b, 1 + (std::uint64_t{1} << 40));
    multiply_batch_on_device(shape.count, shape.m, shape.n, shape.k, 1, a.span(), b.span(), product_.span(),
                             magnitude_.span());
    CUDA_CHECK(cudaDeviceSynchronize());  // the float arrays are freed at the end of this function
}

template <class T>
VerifyResult RandomProducts<T>::verify(const Bound& bound) {
    VerifyResult result;
    if constexpr (std::is_integral_v<T>) {
        DeviceBuffer<std::int32_t> exact(product_.size());
        if (exact.size() > 0) {
            round_to_integers<<<blocks_for(exact.size(), kThreads), kThreads>>>(
                std::as_const(product_).span(), exact.span());
            CUDA_CHECK_LAUNCH();
        }
        result = verify_exact_on_device<std::int32_t>(c_.span(), std::as_const(exact).span());
    } else {
        result = verify_on_device(c_.span(), std::as_const(product_).span(), bound,
                                  std::as_const(magnitude_).span(), shape_.n);
    }
    result.damage = c_.damage();
    return result;
}

template class RandomProducts<float>;
template class RandomProducts<__nv_bfloat16>;
template class RandomProducts<std::int8_t>;
template class RandomProducts<__nv_fp8_e4m3>;

}  // namespace course
