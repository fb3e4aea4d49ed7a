#include "common/bench/cublas_sgemm.hpp"
#include "common/check/check.hpp"
#include "reduce_in_matmul.cuh"
#include "reduce_in_matmul_peer.hpp"

namespace day46 {

std::function<void(cudaStream_t)> make_cublas_then_reduce(const ReducedMatmul& matmul,
                                                          course::DeviceSpan<float> product) {
    const std::size_t m = matmul.operands.m();
    const std::size_t n = matmul.operands.n();
    const std::size_t count = matmul.operands.count();
    const auto multiply = course::make_cublas_sgemm(
        matmul.operands, {.first = {product.subspan(0, m * n), m, n}, .count = count, .stride = m * n});
    if (!multiply) return {};
    return [=](cudaStream_t stream) {
        multiply(stream);
        launch_reduce_rows<Extremum<false>>(product.data(), m * count, n, matmul.values.data(),
                                            matmul.indices.data(), stream);
        CUDA_CHECK_LAUNCH();
    };
}

}  // namespace day46
