#include "common/bench/cublas_sgemm.hpp"
#include "common/check/check.hpp"
#include "masked_matmul.cuh"
#include "masked_matmul_peer.hpp"

namespace day47 {

std::function<void(cudaStream_t)> make_cublas_then_fill(const MaskedMatmul& matmul) {
    const auto multiply = course::make_cublas_sgemm(matmul.operands, matmul.c, matmul.alpha);
    if (!multiply) return {};
    const Band band{static_cast<int>(matmul.mask.below), static_cast<int>(matmul.mask.above)};
    return [=](cudaStream_t stream) {
        multiply(stream);
        launch_fill_dropped(band, matmul.c, matmul.fill, stream);
        CUDA_CHECK_LAUNCH();
    };
}

}  // namespace day47
