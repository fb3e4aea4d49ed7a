// Step 11: several blocks for each tile of C.
//
// Change:     SPLIT = 2 blocks share a tile of C. Each adds up half of the tiles along K with the
//             main loop of step 10 and stores its sums in scratch memory: split s has tiles s, s +
//             SPLIT..., so the splits differ by at most one tile. Then the sums are added up and
//             alpha and beta applied, by a second kernel, or in 11_split_k_in_kernel by the last of
//             the tile's blocks to finish. That reduction is a pipeline of 5 stages with cp.async,
//             which step 12 explains: a copy from global to shared memory that does not pass
//             through registers. Commit closes a group of copies; wait<N> waits until at most N
//             groups are in flight. A round is one float4 of each split. Four rounds are in flight
//             while one is added up, because a single round would expose the latency of memory.
// Why:        C of 1024 x 1024 has 64 tiles; an H200 has 132 SMs. With two blocks for each tile,
//             128 of them have work.
// Prediction: 1024^3: up to twice as fast. 4096^3: slower than step 10, which has enough with its
//             1024 blocks: 128 MiB of sums are written and read again, about 0.07 ms of 2.8 at 4
//             TB/s. In the kernel, much of it is still in the L2 cache, and other tiles are
//             multiplied in the meantime.
// Counter:    launch__waves_per_multiprocessor; dram__bytes_write.sum; gpu__time_duration.sum of
//             both kernels.
// Measured:   not as predicted at 4096^3: about 49 TFLOP/s, 1 % more than step 10, not less. 11a,
//             which only splits K, is slower. As predicted at 1024^3: 102 us, step 10 184. But
//             that step had lost as much: step 7 took 101 us.
// Limit:      multiply-adds (counters: FMA 78 % busy, issue slots 82 %).
// Next:       work comes in whole tiles, so the last wave of blocks does not fill the GPU; and B's
//             tiles pass through registers.
//
// Three kernels separate the changes: 11a_split_k_alone splits, 11_split_k changes the order of
// the sums, and 11_split_k_in_kernel does without the second launch.
#include <cuda/atomic>

#include "../edges.cuh"
#include "../launch.hpp"
#include "common/device/ptx.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 16;  // columns of A's tile, rows of B's
constexpr int TM = 16;  // a thread's results: TM x TN
constexpr int TN = 8;
static_assert(BM % TM == 0 && BN % TN == 0, "TM must divide BM, TN must divide BN");
static_assert(TM % 4 == 0 && TN % 4 == 0, "a fragment is a whole number of float4");
constexpr int WM = 64;  // a warp's tile of C: WM x WN
constexpr int WN = 64;
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int LANES_M = WM / TM;  // a warp's lanes: LANES_M x LANES_N
constexpr int LANES_N = WN / TN;
constexpr int ROUND = LANES_M * 4;  // rows of the first float4 of all lanes
static_assert(LANES_M * LANES_N == 32, "WM / TM x WN / TN must be the 32 lanes of a warp");
static_assert(BK % 2 == 0, "BK must be even: the ping-pong buffer has to be back at 0 when a tile ends");
static_assert(BM % 32 == 0 && WM % 32 == 0, "the XOR must stay in a warp's tile");

// Row `row` of A is in column swizzled(k, row) of row k of its tile. One store of a warp has 8 rows
// of A and four float4 of each: each of the four goes to 8 banks of its own. The XOR moves groups
// of four, so that a float4 remains one.
__device__ int swizzled(int k, int row) {
    return row ^ (k / 4 * 8);
}

constexpr int SPLIT = 2;            // blocks that share a tile of C
constexpr int QUADS = TM * TN / 4;  // float4 of a thread's results
static_assert(SPLIT >= 2, "at least two blocks share a tile");

struct alignas(16) Tiles {
    float a[2][BK][BM];  // two stages, transposed and swizzled
    float b[2][BK][BN];
};

// Where the block's tile of C starts. Tile 1 is to the right of tile 0.
struct Origin {
    std::size_t row;
    std::size_t col;
};

__device__ Origin origin_of(const Sgemm& gemm, unsigned tile) {
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    return {std::size_t{tile / tiles_across} * BM, std::size_t{tile % tiles_across} * BN};
}

// Thread to C: a warp has WM x WN of the tile. A lane has groups of four rows, LANES_M groups
// apart, and groups of four columns, LANES_N groups apart; the first starts at (row, col).
__device__ int row_of_thread() {
    return threadIdx.x / 32 / (BN / WN) * WM + threadIdx.x % 32 / LANES_N * 4;
}

__device__ int col_of_thread() {
    return threadIdx.x / 32 % (BN / WN) * WN + threadIdx.x % LANES_N * 4;
}

// The main loop of step 10, over the tiles `split`, split + SPLIT... along K. All threads of the
// block call it.
__device__ void multiply_tiles(const Sgemm& gemm, unsigned tile, int split, Tiles& shared,
                               float (&sums)[TM][TN]) {
    auto& a_tile = shared.a;
    auto& b_tile = shared.b;
    const auto [row0, col0] = origin_of(gemm, tile);
    const int thread = threadIdx.x;
    const int row = row_of_thread();
    const int col = col_of_thread();
    // Thread to loads: a float4 of A's tile, from (a_row, a_col) on, and those A_DOWN rows further
    // down; of B's likewise.
    constexpr int A_DOWN = THREADS * 4 / BK;
    constexpr int B_DOWN = THREADS * 4 / BN;
    const int a_row = thread / (BK / 4);
    const int a_col = thread % (BK / 4) * 4;
    const int b_row = thread / (BN / 4);
    const int b_col = thread % (BN / 4) * 4;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col + split * BK;
    const float* b = gemm.b.data() + (b_row + split * BK) * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);
    const bool rows_fit = row0 + BM <= gemm.m();  // all of the tile's
    const bool cols_fit = col0 + BN <= gemm.n();

    float4 a_next[BM / A_DOWN];  // what this thread has loaded of the next tile of A
    float4 b_next[BK / B_DOWN];  // and of B
    const auto load_next = [&](std::size_t k0) {
        if (k0 + BK <= gemm.k() && rows_fit) {  // the whole tile is in range
#pragma unroll
            for (int n = 0; n < BM / A_DOWN; ++n)
                a_next[n] = *reinterpret_cast<const float4*>(a + n * A_DOWN * lda);
        } else {
            const int depth = remaining(gemm.k(), k0);
#pragma unroll
            for (int n = 0; n < BM / A_DOWN; ++n)
                a_next[n] =
                    load4_or_zero(a + n * A_DOWN * lda, a_row + n * A_DOWN < rows ? depth - a_col : 0);
        }
        if (k0 + BK <= gemm.k() && cols_fit) {
#pragma unroll
            for (int n = 0; n < BK / B_DOWN; ++n)
                b_next[n] = *reinterpret_cast<const float4*>(b + n * B_DOWN * ldb);
        } else {
            const int depth = remaining(gemm.k(), k0);
#pragma unroll
            for (int n = 0; n < BK / B_DOWN; ++n)
                b_next[n] =
                    load4_or_zero(b + n * B_DOWN * ldb, b_row + n * B_DOWN < depth ? cols - b_col : 0);
        }
    };
    const auto store_next = [&](int stage) {
#pragma unroll
        for (int n = 0; n < BM / A_DOWN; ++n) {
            a_tile[stage][a_col + 0][swizzled(a_col + 0, a_row + n * A_DOWN)] = a_next[n].x;
            a_tile[stage][a_col + 1][swizzled(a_col + 1, a_row + n * A_DOWN)] = a_next[n].y;
            a_tile[stage][a_col + 2][swizzled(a_col + 2, a_row + n * A_DOWN)] = a_next[n].z;
            a_tile[stage][a_col + 3][swizzled(a_col + 3, a_row + n * A_DOWN)] = a_next[n].w;
        }
#pragma unroll
        for (int n = 0; n < BK / B_DOWN; ++n)
            *reinterpret_cast<float4*>(&b_tile[stage][b_row + n * B_DOWN][b_col]) = b_next[n];
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][col + j * LANES_N], &b_fragment[buffer][j]);
        // swizzled(k, row + i * LANES_M) in two parts. four_bits permutes the lane's own float4: an
        // immediate offset, free. lane_bits changes the address: one XOR.
        const int mask = k / 4 * 8;
        const int lane_bits = mask % ROUND;
        const int four_bits = mask - lane_bits;
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][(row ^ lane_bits) + (i * LANES_M ^ four_bits)], &a_fragment[buffer][i]);
    };

    int stage = 0;
    load_next(split * BK);
    store_next(stage);
    __syncthreads();  // the first tiles are complete
    load_fragments(stage, 0, 0);
    for (std::size_t k0 = split * BK; k0 < gemm.k(); k0 += SPLIT * BK) {
        a += SPLIT * BK;
        b += SPLIT * BK * ldb;
        load_next(k0 + SPLIT * BK);  // after the last tile: zeros, which are not used
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 == BK) {
                stage ^= 1;
                store_next(stage);
                __syncthreads();  // the next tiles are complete; these are safe to overwrite
            }
            load_fragments(stage, (k + 1) % BK, (k + 1) % 2);
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[k % 2][i] * b_fragment[k % 2][j];
                }
            }
        }
    }
}

// Scratch memory: a thread's results in `split` of `tile`, float4 by float4; adjacent threads have
// adjacent float4.
__device__ float4* partial(const Sgemm& gemm, unsigned tile, int split, int quad) {
    float4* const all = reinterpret_cast<float4*>(gemm.scratch.partial.data());
    return all + (std::size_t{tile} * SPLIT + split) * QUADS * THREADS + quad * THREADS + threadIdx.x;
}

// SWAPPED: of two adjacent sums, the second comes first.
template <bool SWAPPED>
__device__ void store_partial(const Sgemm& gemm, unsigned tile, int split, const float (&sums)[TM][TN]) {
#pragma unroll
    for (int quad = 0; quad < QUADS; ++quad) {
        const float* const s = &sums[quad * 4 / TN][quad * 4 % TN];
        *partial(gemm, tile, split, quad) =
            SWAPPED ? float4{s[1], s[0], s[3], s[2]} : float4{s[0], s[1], s[2], s[3]};
    }
}

// 11a_split_k_alone <false>: partial sums in their natural order.
// Prediction: 1024^3: up to twice as fast as step 10. 4096^3: slower, and by more than the traffic.
//             A multiply-add reads three registers: sum, a, b. Even and odd registers are two
//             banks; two operands from one bank are read one after the other. a[i] comes from the
//             reuse cache (the snake, step 5), so only sum and b[j] are read. A float4 is four
//             consecutive registers, the first of them even. So b[j], which was loaded as part of a
//             float4, is in an even register for even j. Now sums[i][j] is stored as part of a
//             float4, too, so it is in an even register as well. (Step 10 stores alpha * sum, which
//             takes other registers.) In SASS, four of five multiply-adds read two registers of one
//             bank; in step 10 one of seven.
// Measured:   45.3 TFLOP/s at 4096^3 (3036 us), 7 % slower than step 10, as predicted. 1024^3: 104
//             us, 1.8 times as fast as step 10: that is what split-K alone is worth.
//
// 11_split_k <true>: of two adjacent sums, the second one first.
// Prediction: sums[i][j] is in an odd register for even j, and in SASS one of eleven
//             multiply-adds reads two registers of one bank. At least as fast as step 10 with the
//             traffic taken off.
// Measured:   as predicted: 49.1 TFLOP/s at 4096^3, 9 % faster than 11a. 1024^3: 102 us.
template <bool SWAPPED>
__global__ __launch_bounds__(THREADS, 2) void sgemm_split_k(Sgemm gemm) {
    __shared__ Tiles shared;
    const unsigned tile = blockIdx.x / SPLIT;
    const int split = blockIdx.x % SPLIT;
    float sums[TM][TN] = {};  // TM x TN results of this thread
    multiply_tiles(gemm, tile, split, shared, sums);
    store_partial<SWAPPED>(gemm, tile, split, sums);
}

constexpr int REDUCE_STAGES = 5;  // of the pipeline that adds up partial sums
static_assert(REDUCE_STAGES >= 2, "one stage to read and at least one to load");

// Adds up the splits' partial sums of a tile, always in the same order, and stores them to C. While
// a thread adds up one float4 of each split, those of the next REDUCE_STAGES - 1 rounds are in
// flight. A thread reads only what it has copied itself: no barrier is needed.
template <bool SWAPPED>
__device__ void reduce_tile(const Sgemm& gemm, unsigned tile,
                            float4 (&shared)[REDUCE_STAGES][SPLIT][THREADS]) {
    const auto [row0, col0] = origin_of(gemm, tile);
    const auto copy = [&](int quad) {
        if (quad < QUADS) {
#pragma unroll
            for (int split = 0; split < SPLIT; ++split)
                course::ptx::cp_async_16(&shared[quad % REDUCE_STAGES][split][threadIdx.x],
                                         partial(gemm, tile, split, quad));
        }
        // Past the end as well, so that a wait always counts the same.
        course::ptx::cp_async_commit();
    };
    for (int quad = 0; quad < REDUCE_STAGES - 1; ++quad)
        copy(quad);
    for (int quad = 0; quad < QUADS; ++quad) {
        copy(quad + REDUCE_STAGES - 1);
        course::ptx::cp_async_wait<REDUCE_STAGES - 1>();  // this round has arrived
        float sums[4] = {};
#pragma unroll
        for (int split = 0; split < SPLIT; ++split) {
            const float4 four = shared[quad % REDUCE_STAGES][split][threadIdx.x];
            sums[0] += SWAPPED ? four.y : four.x;
            sums[1] += SWAPPED ? four.x : four.y;
            sums[2] += SWAPPED ? four.w : four.z;
            sums[3] += SWAPPED ? four.z : four.w;
        }
        const int i = quad * 4 / TN;
        const int j = quad * 4 % TN;
        store4(gemm, row0 + row_of_thread() + i / 4 * LANES_M * 4 + i % 4,
               col0 + col_of_thread() + j * LANES_N, sums);
    }
}

// A block for each tile of C adds up the splits' partial sums.
template <bool SWAPPED>
__global__ __launch_bounds__(THREADS) void sgemm_reduce_splits(Sgemm gemm) {
    __shared__ float4 shared[REDUCE_STAGES][SPLIT][THREADS];
    reduce_tile<SWAPPED>(gemm, blockIdx.x, shared);
}

// 11_split_k_in_kernel: the last block of a tile to finish reduces the partial sums, while other
// tiles are still being multiplied.
// Prediction: no second launch, and the partial sums are still in the L2 cache: at least as fast as
//             11_split_k.
// Measured:   as predicted: as fast at 4096^3, 1 % faster at 1024^3.
__global__ __launch_bounds__(THREADS, 2) void sgemm_split_k_in_kernel(Sgemm gemm) {
    __shared__ union {
        Tiles tiles;
        float4 reduce[REDUCE_STAGES][SPLIT][THREADS];
    } shared;
    __shared__ bool is_last;
    const unsigned tile = blockIdx.x / SPLIT;
    const int split = blockIdx.x % SPLIT;
    float sums[TM][TN] = {};  // TM x TN results of this thread
    multiply_tiles(gemm, tile, split, shared.tiles, sums);
    store_partial<true>(gemm, tile, split, sums);

    __syncthreads();  // all threads have stored their sums and no longer read the tiles
    if (threadIdx.x == 0) {
        // Release: a block that draws a later ticket (day 23) sees this block's sums. Acquire: this
        // block sees those of all earlier tickets.
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> ticket(gemm.scratch.tickets[tile]);
        is_last = ticket.fetch_add(1, cuda::memory_order_acq_rel) == SPLIT - 1;
        if (is_last) ticket.store(0, cuda::memory_order_relaxed);  // for the next launch
    }
    __syncthreads();  // is_last is set
    if (is_last) reduce_tile<true>(gemm, tile, shared.reduce);
}

// The host side: SPLIT blocks for each tile; then, unless they add up in the kernel, one for each
// tile.
template <bool IN_KERNEL>
ScratchSize scratch(const Shape& shape) {
    const std::size_t tiles = tiles_in<BM, BN>(shape.m, shape.n);
    return {.partial = tiles * SPLIT * BM * BN, .tickets = IN_KERNEL ? tiles : 0};
}

template <bool IN_KERNEL, bool SWAPPED>
constexpr auto kMultiply = IN_KERNEL ? sgemm_split_k_in_kernel : sgemm_split_k<SWAPPED>;

template <bool IN_KERNEL, bool SWAPPED>
void launch(const Sgemm& given, cudaStream_t stream) {
    const Sgemm gemm = checked(given, scratch<IN_KERNEL>({given.m(), given.n(), given.k()}));
    const unsigned tiles = tiles_of<BM, BN>(gemm);
    if (tiles == 0) return;
    if (!rows_are_aligned(gemm)) return launch_unaligned(gemm, stream);
    const unsigned blocks = course::blocks_for(std::size_t{tiles} * SPLIT, 1);
    course::launch(kMultiply<IN_KERNEL, SWAPPED>, {blocks, THREADS, 0, stream}, gemm);
    if (!IN_KERNEL) course::launch(sgemm_reduce_splits<SWAPPED>, {tiles, THREADS, 0, stream}, gemm);
}

template <bool IN_KERNEL, bool SWAPPED>
Kernel split() {
    return {.launch = launch<IN_KERNEL, SWAPPED>,
            .resources = [] { return course::resources_of(kMultiply<IN_KERNEL, SWAPPED>, THREADS); },
            .scratch = scratch<IN_KERNEL>};
}

}  // namespace

Kernel split_k_alone() {
    return split<false, false>();
}

Kernel split_k() {
    return split<false, true>();
}

Kernel split_k_in_kernel() {
    return split<true, true>();
}

}  // namespace gemm
