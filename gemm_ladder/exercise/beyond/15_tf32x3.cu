// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 15: FP32 accuracy from tensor cores.
//
// The multi-stage loop of step 12, but A is not transposed, so that both tiles come by cp.async; and what a warp does with them is left to
// the tensor cores. common/tile/tf32_split.cuh says how FP32 factors get through TF32 instructions.
//
// Change:     mma.sync on TF32 numbers, three for each product, instead of multiply-adds on CUDA cores.
// Why:        tensor cores multiply TF32 many times faster than CUDA cores multiply FP32, more than three times.
// Prediction: faster than any step before; short sums on tensor cores and the rest on CUDA cores keep the error below FP32's.
// Counter:    smsp__inst_executed.sum: an instruction of the tensor cores does 1024 multiply-adds, one of CUDA cores 32.
// Measured:   about 67 TFLOP/s, 1.3 times cuBLAS in FP32; the largest error is a fifth of FP32's.
// Next:       the rate of mma.sync; and splitting: a lane splits 24 factors for every 48 instructions of the tensor cores. With a larger tile
//             of the warp it would be fewer, but then registers run out.
#include <stdexcept>
#include <string>

#include "../launch.hpp"
#include "beyond.hpp"
#include "tf32x3_tile.cuh"

namespace gemm {
namespace {

using Tile = TensorTile<128, 64, 32, 64, 32, 3, 32, 2>;

// Idea: every factor is a sum of two TF32 numbers; tensor cores multiply them, and CUDA cores add up their short sums.
// Cost removed: the multiply-adds of CUDA cores, and their limit.
// Still limits it: three products for each one, and factors that every warp splits for itself.
template <class T, int VEC>
__global__ __launch_bounds__(T::THREADS, T::BLOCKS) void sgemm_tf32x3(Sgemm gemm) {
    // TODO gemm_ladder/tf32x3, about 20 minutes.
    // FP32 from tensor cores: every factor is split into two TF32 numbers, and the tensor cores multiply
    // those. All of that is given: `multiply_tf32x3<T, VEC>(gemm, origin, stages, sums)` with `TensorSums<T>
    // sums`, and dynamic shared memory for T::STAGES stages, to be seen as a `TensorStage<T>*`.
    // `write_tensor_tile<T, VEC>(gemm, origin, sums)` writes the block's tile.
    //
    // One thing is left. A factor that is Inf, NaN, or so large that TF32 rounds it to Inf does not survive
    // being split: it leaves NaN or Inf in the sum. Then the block computes its tile anew with
    // `write_fp32_tile<T>(gemm, origin)`, which all of its threads call. `all_finite<T>(sums)` tells a thread
    // of its own sums.
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
