// Step 15: FP32 accuracy from tensor cores (3xTF32).
//
// Change:     mma.sync on TF32 numbers, three for each product, instead of multiply-adds on CUDA
//             cores. The pipeline is that of step 12, but A is not transposed, so both tiles are
//             copied by float4. A warp has 64 x 32 results.
// Why:        tensor cores multiply TF32 many times faster than CUDA cores multiply FP32, more than
//             three times.
// Prediction: faster than any step before; short sums on tensor cores and the rest on CUDA cores
//             keep the error below FP32's.
// Counter:    smsp__inst_executed.sum: an instruction of the tensor cores does 1024 multiply-adds,
//             one of CUDA cores 32.
// Measured:   about 70 TFLOP/s, 1.4 times cuBLAS in FP32; the largest error is a fifth of FP32's.
// Next:       the rate of mma.sync; and splitting: a lane splits 24 factors for every 48
//             instructions of the tensor cores. A larger tile of the warp needs fewer, but then
//             registers run out.
//
// TF32 has the exponent of FP32, but 10 bits of mantissa. A factor becomes the sum of two such numbers,
// big + small, and a product three products: big big + small big + big small. What is left out, and how
// large the error is: common/tile/tf32_split.cuh.
//
// Tensor cores do not round their sums to nearest but truncate them. Over a long sum this adds up. So
// they only sum RUN terms; CUDA cores add these short sums, and round to nearest. The shorter the runs,
// the more additions; the longer, the more registers, because the sums of a run stand beside all others.
// H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the
// FP32 theoretical peak performance", 2022.
#include <stdexcept>
#include <string>

#include "../edges.cuh"
#include "beyond.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/tf32_split.cuh"
#include "launch.hpp"

namespace gemm {
namespace {

using course::SplitFactors;

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 64;
constexpr int BK = 32;  // columns of A's tile, rows of B's
constexpr int WM = 64;  // a warp's tile of C: WM x WN
constexpr int WN = 32;
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int MMAS_M = WM / 16;  // an mma.sync has 16 x 8 results
constexpr int MMAS_N = WN / 8;
constexpr int STAGES = 3;
constexpr int AHEAD = STAGES - 1;  // tiles in flight or complete
constexpr int RUN = 32;            // terms that tensor cores sum
constexpr int BLOCKS = 2;          // that must fit on a multiprocessor
static_assert(BM % WM == 0 && BN % WN == 0, "the warps' tiles must cover the block's");
static_assert(WM % 16 == 0 && WN % 32 == 0, "a warp's tile is a whole number of 16 x 32 parts");
static_assert(BK == 32, "swizzled_a() and swizzled_b() are made for rows of 32 floats of A");
static_assert(RUN % 8 == 0 && BK % RUN == 0, "a tile is a whole number of runs, a run of mma.sync");
static_assert(STAGES >= 2, "one stage to multiply and at least one to copy to");

struct alignas(16) Stage {
    float a[BM][BK];
    float b[BK][BN];
};

// Both tiles are stored row by row, but four columns at a time in another order: four columns number
// `quad` of row `row` are at number swizzled_a(row, quad).
//
// Of A, a lane loads two neighbours of a row, 8 bytes for 16 lanes at a time: 4 rows, 8 columns. All
// rows begin at bank 0; the XOR moves those that would meet. Of B, it loads four neighbours of a row, 16
// bytes for 8 lanes at a time: 4 rows, every other one, 8 columns; the XOR moves each of the rows to
// other banks. Copies write whole rows. So no access has a bank conflict.
__device__ inline int swizzled_a(int row, int quad) {
    return quad ^ row % 4 * 2;
}

__device__ inline int swizzled_b(int row, int quad) {
    return quad ^ row / 2 % 4 * 2;
}

// Is no Inf or NaN among a thread's sums? 0 times a number is 0; 0 times an Inf or a NaN is NaN.
__device__ inline bool all_finite(const float (&sums)[MMAS_M][MMAS_N][4]) {
    float zero = 0;
#pragma unroll
    for (int i = 0; i < MMAS_M; ++i) {
#pragma unroll
        for (int j = 0; j < MMAS_N; ++j) {
#pragma unroll
            for (int n = 0; n < 4; ++n)
                zero += 0 * sums[i][j][n];
        }
    }
    return zero == 0;
}

// The tile of C at (row0, col0) in FP32, element by element: slow, but rare.
__device__ inline void store_fp32_tile(const Sgemm& gemm, std::size_t row0, std::size_t col0) {
    for (int element = static_cast<int>(threadIdx.x); element < BM * BN; element += THREADS) {
        const std::size_t row = row0 + element / BN;
        const std::size_t col = col0 + element % BN;
        if (row >= gemm.m() || col >= gemm.n()) continue;
        float sum = 0;
        for (std::size_t k = 0; k < gemm.k(); ++k)
            sum += gemm.a(row, k) * gemm.b(k, col);
        store(gemm, row, col, sum);
    }
}

// ALIGNED: every row of A, B and C is a whole number of aligned float4.
template <bool ALIGNED>
__global__ __launch_bounds__(THREADS, BLOCKS) void sgemm_tf32x3(Sgemm gemm) {
    extern __shared__ float4 shared[];
    Stage* const stages = reinterpret_cast<Stage*>(shared);
    // The block's tile of C begins at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: the warp's tile begins at (warp_row, warp_col); lane 4 g + t has, of each mma.sync,
    // what common/device/ptx.cuh describes.
    const int warp_row = thread / 32 / (BN / WN) * WM;
    const int warp_col = thread / 32 % (BN / WN) * WN;
    const int g = thread % 32 / 4;
    const int t = thread % 4;
    // Thread to copies: float4 number a_quad of row a_row of A's tile, and those A_DOWN rows further
    // down; of B's likewise.
    constexpr int A_DOWN = THREADS * 4 / BK;
    constexpr int B_DOWN = THREADS * 4 / BN;
    static_assert(BM % A_DOWN == 0 && BK % B_DOWN == 0, "all threads copy equally many float4");
    const int a_row = thread / (BK / 4);
    const int a_quad = thread % (BK / 4);
    const int b_row = thread / (BN / 4);
    const int b_quad = thread % (BN / 4);
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_quad * 4;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_quad * 4;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);
    const int tiles = static_cast<int>((gemm.k() + BK - 1) / BK);

    // Copies the first `count` of four neighbours, and zeros for the others.
    const auto copy4 = [&](float* to, const float* from, int count) {
        count = max(min(count, 4), 0);
        if (ALIGNED) {
            course::ptx::cp_async_16(to, from, count * sizeof(float));
        } else {
#pragma unroll
            for (int n = 0; n < 4; ++n)
                course::ptx::cp_async_4(to + n, from + n, n < count);
        }
    };
    const auto copy_next = [&](int tile) {
        if (tile < tiles) {
            Stage& stage = stages[tile % STAGES];
            const int depth = remaining(gemm.k(), std::size_t{1} * tile * BK);
#pragma unroll
            for (int m = 0; m < BM; m += A_DOWN)
                copy4(&stage.a[a_row + m][swizzled_a(a_row + m, a_quad) * 4], a + m * lda,
                      a_row + m < rows ? depth - a_quad * 4 : 0);
#pragma unroll
            for (int k = 0; k < BK; k += B_DOWN)
                copy4(&stage.b[b_row + k][swizzled_b(b_row + k, b_quad) * 4], b + k * ldb,
                      b_row + k < depth ? cols - b_quad * 4 : 0);
            a += BK;
            b += BK * ldb;
        }
        // A group for every tile, even an empty one, so that a wait always counts the same.
        course::ptx::cp_async_commit();
    };
    // Factors for mma.sync. The order of k within an mma.sync is free, as long as A and B agree: columns
    // t and t + 4 of A are neighbours here, 2 t and 2 t + 1.
    const auto load_a = [&](const Stage& stage, int k, int i) {
        const int row = warp_row + i * 16 + g;
        const int col = swizzled_a(g, k / 4 + t / 2) * 4 + t % 2 * 2;
        const float2 upper = *reinterpret_cast<const float2*>(&stage.a[row][col]);
        const float2 lower = *reinterpret_cast<const float2*>(&stage.a[row + 8][col]);
        return course::split<4>({upper.x, lower.x, upper.y, lower.y});
    };
    // Column g of mma.sync number j + n, n < 4, is column 4 g + n of 32.
    const auto load_b = [&](const Stage& stage, int k, int j, SplitFactors<2>(&factors)[MMAS_N]) {
        const int row = k + t * 2;
        const int col = swizzled_b(row, warp_col / 4 + j * 2 + g) * 4;
        float first[4];
        float second[4];
        load4(&stage.b[row][col], first);
        load4(&stage.b[row + 1][col], second);
#pragma unroll
        for (int n = 0; n < 4; ++n)
            factors[j + n] = course::split<2>({first[n], second[n]});
    };

    for (int tile = 0; tile < AHEAD; ++tile)
        copy_next(tile);
    float sums[MMAS_M][MMAS_N][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        course::ptx::cp_async_wait<AHEAD - 1>();
        __syncthreads();  // this tile is complete; the one before it is safe to overwrite
        copy_next(tile + AHEAD);
        const Stage& stage = stages[tile % STAGES];
        // Not unrolled: the loads of all runs would come first and take too many registers.
#pragma unroll 1
        for (int k0 = 0; k0 < BK; k0 += RUN) {
            float run[MMAS_M][MMAS_N][4] = {};
#pragma unroll
            for (int k = 0; k < RUN; k += 8) {
                SplitFactors<2> b_factors[MMAS_N];
#pragma unroll
                for (int j = 0; j < MMAS_N; j += 4)
                    load_b(stage, k0 + k, j, b_factors);
#pragma unroll
                for (int i = 0; i < MMAS_M; ++i) {
                    const SplitFactors<4> a_factors = load_a(stage, k0 + k, i);
                    // One product for all columns in turn, so that no instruction needs the result of
                    // the one before it. The small products first, before a large sum truncates them.
#pragma unroll
                    for (int j = 0; j < MMAS_N; ++j)
                        course::ptx::mma_m16n8k8_tf32(run[i][j], a_factors.small, b_factors[j].big);
#pragma unroll
                    for (int j = 0; j < MMAS_N; ++j)
                        course::ptx::mma_m16n8k8_tf32(run[i][j], a_factors.big, b_factors[j].small);
#pragma unroll
                    for (int j = 0; j < MMAS_N; ++j)
                        course::ptx::mma_m16n8k8_tf32(run[i][j], a_factors.big, b_factors[j].big);
                    if (k + 8 < RUN) continue;
#pragma unroll
                    for (int j = 0; j < MMAS_N * 4; ++j)
                        sums[i][j / 4][j % 4] += run[i][j / 4][j % 4];
                }
            }
        }
    }

    // An Inf does not survive the split: Inf = Inf + NaN. Nor do the largest numbers, which TF32 rounds
    // to Inf. Both leave an Inf or a NaN in a sum: then the block computes its tile again in FP32.
    if (__syncthreads_or(!all_finite(sums))) return store_fp32_tile(gemm, row0, col0);

        // Of each 32 columns a lane has the 8 from 8 t on: columns 2 t and 2 t + 1 of four mma.sync.
#pragma unroll
    for (int i = 0; i < MMAS_M * 2; ++i) {
        const std::size_t row = row0 + warp_row + i * 8 + g;
#pragma unroll
        for (int j = 0; j < MMAS_N; j += 4) {
            const std::size_t col = col0 + warp_col + j * 8 + t * 8;
#pragma unroll
            for (int n = 0; n < 8; n += 4) {
                float four[4];
#pragma unroll
                for (int m = 0; m < 4; ++m)
                    four[m] = sums[i / 2][j + m][i % 2 * 2 + n / 4];
                if (ALIGNED) {
                    store4(gemm, row, col + n, four);
                } else {
#pragma unroll
                    for (int m = 0; m < 4; ++m)
                        store(gemm, row, col + n + m, four[m]);
                }
            }
        }
    }
}

// The host side.
Kernel kernel() {
    return block_per_tile_in_dynamic_memory<BM, BN, THREADS, sizeof(Stage) * STAGES, sgemm_tf32x3<true>,
                                            sgemm_tf32x3<false>>();
}

void launch(const Sgemm& gemm, cudaStream_t stream) {
    const std::string reason = why_no_tf32({});
    if (!reason.empty()) throw std::invalid_argument("sgemm: " + reason);
    kernel().launch(gemm, stream);
}

}  // namespace

// Code built for older GPUs, which the driver has translated for this one, has no mma.sync either.
std::string why_no_tf32(const Shape&) {
    int device = 0;
    int major = 0;
    cudaFuncAttributes attributes{};
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, sgemm_tf32x3<true>));
    if (major >= 8 && attributes.ptxVersion >= 80) return "";
    return "needs TF32 tensor cores: compute capability 8.0, and code built for it; this GPU has " +
           std::to_string(major) + ".x, the code is for " + std::to_string(attributes.ptxVersion / 10) + ".x";
}

Kernel tf32x3() {
    return {launch, kernel().resources};
}

}  // namespace gemm
