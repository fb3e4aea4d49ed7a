// Step 15: FP32 accuracy from tensor cores.
//
// The multi-stage loop of step 12, but A is not transposed, so that both tiles come by cp.async; and what a warp does with them is left to
// the tensor cores. common/tile/tf32_split.cuh says how FP32 factors get through TF32 instructions.
//
// Change:     mma.sync on TF32 numbers, three for each product, instead of multiply-adds on CUDA cores.
// Why:        tensor cores multiply TF32 many times faster than CUDA cores multiply FP32, more than three times.
// Prediction: faster than any step before; short sums on tensor cores and the rest on CUDA cores keep the error below FP32's.
// Counter:    smsp__inst_executed.sum: an instruction of the tensor cores does 1024 multiply-adds, one of CUDA cores 32.
// Measured:   about 70 TFLOP/s, 1.4 times cuBLAS in FP32; the largest error is a fifth of FP32's.
// Next:       the rate of mma.sync; and splitting: a lane splits 24 factors for every 48 instructions of the tensor cores. With a larger tile
//             of the warp it would be fewer, but then registers run out.
#include <stdexcept>
#include <string>

#include "beyond.hpp"
#include "launch.hpp"
#include "tf32x3_tile.cuh"

namespace gemm {
namespace {

using Tile = TensorTile<128, 64, 32, 64, 32, 3, 32, 2>;

// Idea: every factor is a sum of two TF32 numbers; tensor cores multiply them, and CUDA cores add up their short sums.
// Cost removed: the multiply-adds of CUDA cores, and their limit.
// Still limits it: three products for each one, and factors that every warp splits for itself.
template <class T, int VEC>
__global__ __launch_bounds__(T::THREADS, T::BLOCKS) void sgemm_tf32x3(Sgemm gemm) {
    extern __shared__ float4 shared[];
    const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, blockIdx.x);
    TensorSums<T> sums = {};
    multiply_tf32x3<T, VEC>(gemm, origin, reinterpret_cast<TensorStage<T>*>(shared), sums);
    // Split, an Inf is not what it was: Inf = Inf + NaN, and even with Inf + 0 it would meet the small part 0 of a 1. The same goes for the
    // largest numbers, which TF32 rounds to Inf. All this leaves a NaN or an Inf in the sum, and then the tile is computed again.
    if (__syncthreads_or(!all_finite<T>(sums))) {
        write_fp32_tile<T>(gemm, origin);
    } else {
        write_tensor_tile<T, VEC>(gemm, origin, sums);
    }
}

using Launcher = BlockPerTile<Tile::BM, Tile::BN, Tile::THREADS, sgemm_tf32x3<Tile, 4>, sgemm_tf32x3<Tile, 1>,
                              sizeof(TensorStage<Tile>) * Tile::STAGES, rows_are_whole_packs>;

void launch(const Sgemm& gemm, cudaStream_t stream) {
    const std::string reason = why_no_tf32({});
    if (!reason.empty()) throw std::invalid_argument("sgemm: " + reason);
    Launcher::launch(gemm, stream);
}

}  // namespace

// Also code built for older GPUs, which the driver has translated for this one, has no instructions for tensor cores.
std::string why_no_tf32(const Shape&) {
    int device = 0;
    int major = 0;
    cudaFuncAttributes kernel{};
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA_CHECK(cudaFuncGetAttributes(&kernel, sgemm_tf32x3<Tile, 4>));
    if (major >= 8 && kernel.ptxVersion >= 80) return "";
    return "needs TF32 tensor cores: compute capability 8.0, and code built for it; this GPU has " +
           std::to_string(major) + ".x, the code is for " + std::to_string(kernel.ptxVersion / 10) + ".x";
}

Kernel tf32x3() {
    return {launch, Launcher::resources};
}

}  // namespace gemm
