// Step 15: FP32 accuracy from tensor cores.
//
// Change:     mma.sync on TF32 numbers, three instructions for each product, instead of
//             multiply-adds on CUDA cores. The main loop has the stages of step 12; A does not have
//             to be transposed, so both tiles are copied 16 bytes at a time.
// Why:        tensor cores multiply TF32 many times faster than CUDA cores multiply FP32, more than
//             three times.
// Prediction: faster than any step before. Short sums on tensor cores, and the rest on CUDA cores,
//             keep the error below FP32's.
// Counter:    smsp__inst_executed.sum: an instruction of the tensor cores does 1024 multiply-adds,
//             one of the CUDA cores 32.
// Measured:   about 70 TFLOP/s, 1.4 times cuBLAS in FP32; the largest error is a fifth of FP32's.
// Limit:      tensor cores (counters: 67 % busy).
// Next:       the rate of mma.sync; and splitting: a lane splits 24 operands for every 48
//             instructions of the tensor cores. A larger warp tile would need fewer, but register
//             pressure is too high for it.
//
// TF32 has the exponents of FP32, but 10 bits of mantissa instead of 23. So each operand is split
// into two TF32 numbers, and three of their four products are added up:
//
//     x = big + small        big: x rounded to TF32        small: the rest, at most 2^-11 of x
//     x y = big big + small big + big small
//
// What that costs in accuracy: common/tile/tf32_split.cuh.
//
// H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance", 2022.
#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "beyond.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/tf32_split.cuh"
#include "launch.hpp"
#include "tile.cuh"

namespace gemm {
namespace {

using course::split;
using course::SplitOperands;

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 64;
constexpr int BK = 32;  // columns of A's tile, rows of B's
constexpr int WM = 64;  // a warp's tile of C: WM x WN
constexpr int WN = 32;
constexpr int STAGES = 3;
constexpr int BLOCKS = 2;  // that an SM runs at the same time
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
static_assert(BM % WM == 0 && BN % WN == 0, "WM must divide BM, WN must divide BN");

constexpr int DOWN = WM / 16;   // instructions that cover a warp's tile: DOWN x ACROSS,
constexpr int ACROSS = WN / 8;  // 16 x 8 results each
static_assert(WM % 16 == 0 && WN % 32 == 0, "a warp's tile is made of parts of 16 rows and 32 columns");

// Tensor cores do not round their sums but cut them off, always towards zero. Over a long sum these
// errors add up. So tensor cores sum RUN terms only; a CUDA core, which rounds to nearest, adds
// that sum to the others. RUN = 8 would need such an addition for every three instructions of the
// tensor cores. A larger RUN needs fewer of them, but more registers: a run's sums are live for all
// results at the same time.
constexpr int RUN = 32;
static_assert(RUN % 8 == 0 && BK % RUN == 0, "BK must be a multiple of RUN, RUN a multiple of 8");

// A lane's results: four of each instruction.
using Sums = float[DOWN][ACROSS][4];

// One stage: both tiles row by row, as they are in global memory. Without the XOR there would be
// bank conflicts. It moves groups of four columns (quads), so that a float4 remains one.
//
//   access, of a warp             lanes at a time                             wavefronts
//   load A, two of a row          16: 4 rows x 8 columns                               2
//   load B, float4                8: 4 rows, every other one, x 8 columns              4
//   copy, float4                  8: whole rows                                        4
//
// Rows of 32 floats all start at bank 0, rows of 16 at bank 0 or 16. The XOR moves rows that would
// meet to other banks, so an access takes no more wavefronts than its bytes need.
struct alignas(16) Stage {
    float a[BM][BK];
    float b[BK][BN];

    static_assert(BK == 16 || BK == 32, "quad_of_a is worked out for rows of 16 and 32 floats");
    static __device__ unsigned quad_of_a(unsigned row, unsigned quad) {
        return quad ^ row * BK / 32 % (BK / 8) * 2;
    }
    static __device__ unsigned quad_of_b(unsigned row, unsigned quad) { return quad ^ row / 2 % 4 * 2; }
};

// This thread's copies of ROWS x COLS tiles. Adjacent threads copy adjacent quads.
template <int ROWS, int COLS, int VEC>
class Copies {
    static constexpr int QUADS = COLS / 4;                // in a row of the tile
    static constexpr int ROWS_AT_ONCE = THREADS / QUADS;  // that the block copies
    static_assert(THREADS % QUADS == 0 && ROWS % ROWS_AT_ONCE == 0,
                  "Copies: every thread must copy the same number of quads");

  public:
    // The first tile starts at (row, col).
    __device__ Copies(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col)
        : from_(matrix.data() + (row + first_row()) * matrix.leading_dimension() + col + quad() * 4),
          leading_dimension_(matrix.leading_dimension()) {}

    // Issues the copies of a tile of which `rows` x `cols` elements are in range; the others are
    // zero-filled. Quad `quad` of row `row` is stored as quad swizzle(row, quad).
    template <class Swizzle>
    __device__ void issue(float (&tile)[ROWS][COLS], int rows, int cols, Swizzle swizzle) const {
        const int below = rows - static_cast<int>(first_row());
        const int inside = min(max(cols - static_cast<int>(quad()) * 4, 0), 4);
#pragma unroll
        for (int down = 0; down < ROWS; down += ROWS_AT_ONCE) {
            const unsigned row = first_row() + down;
            const int count = down < below ? inside : 0;
            float* const to = &tile[row][swizzle(row, quad()) * 4];
            const float* const from = from_ + down * leading_dimension_;
            if constexpr (VEC == 4) {
                course::ptx::cp_async_16(to, from, static_cast<unsigned>(count) * sizeof(float));
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    course::ptx::cp_async_4(to + j, from + j, j < count);
            }
        }
    }

    __device__ void move_right() {
        from_ += COLS;
    }
    __device__ void move_down() {
        from_ += ROWS * leading_dimension_;
    }

  private:
    static __device__ unsigned first_row() {
        return threadIdx.x / QUADS;
    }
    static __device__ unsigned quad() {
        return threadIdx.x % QUADS;
    }

    const float* from_;
    std::size_t leading_dimension_;
};

// Lane 4 g + t, and where its warp's tile starts in the block's.
struct Lane {
    unsigned row = threadIdx.x / 32 / (BN / WN) * WM;
    unsigned col = threadIdx.x / 32 % (BN / WN) * WN;
    unsigned g = threadIdx.x % 32 / 4;
    unsigned t = threadIdx.x % 4;
};

// The lane's operands from 16 rows of A, the i-th of the warp's tile, and columns k to k + 7, in
// the layout of mma_m16n8k8_tf32().
//
// That layout gives a lane columns t and t + 4. But a sum may add its terms in any order, as long
// as A and B agree. So the lane takes columns 2 t and 2 t + 1, which are adjacent: one 8-byte load.
__device__ SplitOperands<4> load_a(const Stage& stage, const Lane& lane, unsigned k, int i) {
    const unsigned row = lane.row + lane.g + i * 16;
    const unsigned col = Stage::quad_of_a(lane.g, k / 4 + lane.t / 2) * 4 + lane.t % 2 * 2;
    const auto upper = course::Pack<float, 2>::load(&stage.a[row][col]);
    const auto lower = course::Pack<float, 2>::load(&stage.a[row + 8][col]);
    return split({upper.value[0], lower.value[0], upper.value[1], lower.value[1]});
}

// The lane's operands from rows k to k + 7 of B and 32 columns, the i-th of the warp's tile, for
// four instructions. Column g of instruction j is column 4 g + j of the 32: one 16-byte load for
// each row.
__device__ void load_b(const Stage& stage, const Lane& lane, unsigned k, int i,
                       SplitOperands<2> (&b)[ACROSS]) {
    const unsigned row = k + lane.t * 2;
    const unsigned col = Stage::quad_of_b(row, lane.col / 4 + lane.g + i * 8) * 4;
    const auto first = course::Pack<float, 4>::load(&stage.b[row][col]);
    const auto second = course::Pack<float, 4>::load(&stage.b[row + 1][col]);
#pragma unroll
    for (int j = 0; j < 4; ++j)
        b[i * 4 + j] = split({first.value[j], second.value[j]});
}

// sums += A B for columns k to k + RUN - 1 of A's tile and the same rows of B's.
__device__ void multiply_run(const Stage& stage, const Lane& lane, unsigned k, Sums& sums) {
    using course::ptx::mma_m16n8k8_tf32;
    Sums run = {};
#pragma unroll
    for (int step = 0; step < RUN; step += 8) {
        SplitOperands<2> b[ACROSS];
#pragma unroll
        for (int i = 0; i < ACROSS / 4; ++i)
            load_b(stage, lane, k + step, i, b);
#pragma unroll
        for (int i = 0; i < DOWN; ++i) {
            const SplitOperands<4> a = load_a(stage, lane, k + step, i);
            // One product for all columns after the other, so that no instruction waits for the
            // result of the one before it. The small products come first: while the sum is small,
            // less of them is cut off.
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
                mma_m16n8k8_tf32(run[i][j], a.small, b[j].big);
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
                mma_m16n8k8_tf32(run[i][j], a.big, b[j].small);
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
                mma_m16n8k8_tf32(run[i][j], a.big, b[j].big);
            if (step + 8 < RUN) continue;
#pragma unroll
            for (int j = 0; j < ACROSS * 4; ++j)
                sums[i][j / 4][j % 4] += run[i][j / 4][j % 4];
        }
    }
}

// sums += A B, for the BM x BN tile of C at `origin`. All threads of the block call it. `stages`
// are STAGES stages in shared memory.
template <int VEC>
__device__ void multiply_tf32x3(const Sgemm& gemm, const Origin& origin, Stage* stages, Sums& sums) {
    static_assert(STAGES >= 2, "one stage is multiplied, at least one is in flight");
    constexpr int AHEAD = STAGES - 1;  // tiles in flight, at most
    const auto within = [](std::size_t end, std::size_t begin, int most) {
        return static_cast<int>(min(end - min(begin, end), static_cast<std::size_t>(most)));
    };
    const int rows = within(gemm.m(), origin.row, BM);
    const int cols = within(gemm.n(), origin.col, BN);
    const auto tiles = static_cast<int>(course::ceil_div<std::size_t>(gemm.k(), BK));
    Copies<BM, BK, VEC> copies_of_a(gemm.a, origin.row, 0);
    Copies<BK, BN, VEC> copies_of_b(gemm.b, 0, origin.col);
    // Past the last tile, a group is empty. So every wait means the same: all but the AHEAD - 1
    // newest groups are complete.
    const auto copy = [&](int tile) {
        if (tile < tiles) {
            Stage& stage = stages[tile % STAGES];
            const int depth = within(gemm.k(), static_cast<std::size_t>(tile) * BK, BK);
            copies_of_a.issue(stage.a, rows, depth, Stage::quad_of_a);
            copies_of_b.issue(stage.b, depth, cols, Stage::quad_of_b);
            copies_of_a.move_right();
            copies_of_b.move_down();
        }
        course::ptx::cp_async_commit();
    };

    const Lane lane;
    for (int tile = 0; tile < AHEAD; ++tile)
        copy(tile);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        course::ptx::cp_async_wait<AHEAD - 1>();
        __syncthreads();  // the tile is complete; the stage of the one before is safe to overwrite
        copy(tile + AHEAD);
        // Unrolled, the loads of all runs would come first, and need more registers than there are.
#pragma unroll 1
        for (unsigned k = 0; k < BK; k += RUN)
            multiply_run(stages[tile % STAGES], lane, k, sums);
    }
}

// Stores the block's results to the tile of C at `origin`. Of each 32 columns, a lane has the eight
// from 8 t on: columns 2 t and 2 t + 1 of four instructions.
template <int VEC>
__device__ void write_tensor_tile(const Sgemm& gemm, const Origin& origin, const Sums& sums) {
    const Lane lane;
#pragma unroll
    for (int i = 0; i < DOWN * 2; ++i) {
#pragma unroll
        for (int j = 0; j < ACROSS; j += 4) {
            float neighbours[8];
#pragma unroll
            for (int n = 0; n < 8; ++n)
                neighbours[n] = sums[i / 2][j + n % 4][i % 2 * 2 + n / 4];
            write_row_of_packs<VEC, 1>(gemm, origin.row + lane.row + lane.g + i * 8,
                                       origin.col + lane.col + lane.t * 8 + j * 8, neighbours);
        }
    }
}

template <int VEC>
__global__ __launch_bounds__(THREADS, BLOCKS) void sgemm_tf32x3(Sgemm gemm) {
    extern __shared__ float4 shared[];
    wait_for_kernel_in_front();
    const Origin origin = origin_of_tile<BM, BN>(gemm, blockIdx.x);
    Sums sums = {};
    multiply_tf32x3<VEC>(gemm, origin, reinterpret_cast<Stage*>(shared), sums);
    // Inf does not survive being split: Inf = Inf + NaN. Inf + 0 would be no better, because it
    // meets the small part of 1, which is 0. The same holds for the largest numbers, which TF32
    // rounds to Inf. All of them leave NaN or Inf in a sum: then the block computes its tile again.
    if (__syncthreads_or(!all_finite(sums))) {
        write_fp32_tile<BM, BN>(gemm, origin, THREADS);
    } else {
        write_tensor_tile<VEC>(gemm, origin, sums);
    }
}

using Launcher = BlockPerTile<BM, BN, THREADS, sgemm_tf32x3<4>, sgemm_tf32x3<1>, sizeof(Stage) * STAGES>;

void launch(const Sgemm& gemm, cudaStream_t stream) {
    const std::string reason = why_no_tf32({});
    if (!reason.empty()) throw std::invalid_argument("sgemm: " + reason);
    Launcher::launch(gemm, stream);
}

}  // namespace

// A new GPU is not enough: code built for an older one, which the driver translates, has no
// instructions for tensor cores.
std::string why_no_tf32(const Shape&) {
    int device = 0;
    int major = 0;
    cudaFuncAttributes kernel{};
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA_CHECK(cudaFuncGetAttributes(&kernel, sgemm_tf32x3<4>));
    if (major >= 8 && kernel.ptxVersion >= 80) return "";
    return "needs TF32 tensor cores: compute capability 8.0, and code built for it; this GPU has " +
           std::to_string(major) + ".x, the code is for " + std::to_string(kernel.ptxVersion / 10) + ".x";
}

Kernel tf32x3() {
    return {launch, Launcher::resources};
}

}  // namespace gemm
