// Step 13: stream-K, equal shares for all blocks.
//
// Change:     as many blocks as run at the same time; each does the same number of steps of BK
//             columns, across the borders of tiles. Where blocks share a tile, their sums go
//             through scratch memory (the fix-up).
// Why:        the last round of blocks is as full as the others, for every shape.
// Prediction: 4096^3: the loop loses no multiprocessor, where step 12 loses 3 %; but shared tiles
//             cost memory traffic and waiting. And a tile of 64 x 128 with 8 x 8 results needs all
//             that shared memory delivers: slower than step 12 on squares, faster on shapes of few
//             tiles and a deep K.
// Counter:    sm__cycles_active.avg over sm__cycles_elapsed.max nears 1; dram__bytes_write.sum.
// Measured:   about 51 TFLOP/s, a little less than step 12 on this shape.
// Next:       which tile, and which of the two ways, depends on the shape.
//
// The schedule: all steps of all tiles are numbered, one tile after the other. Of S steps, block b of
// G does those from b S / G to (b + 1) S / G. Two and a half tiles of four steps for four blocks:
//
//     step     0  1  2  3 | 4  5  6  7 | 8  9
//     tile     0  0  0  0 | 1  1  1  1 | 2  2 ...
//     block    0  0  1  1   1  2  2  3   3  3
//
// A block finishes a tile, perhaps does some whole tiles, and begins another one. A whole tile goes to
// C at once. Sums over a part of K go to scratch memory. When all blocks that share a tile have
// stored theirs, each of them adds up a part of the tile and stores it to C, always in the same order.
// M. Osama et al., "Stream-K: Work-centric parallel decomposition for dense matrix-matrix
// multiplication on the GPU", 2023.
//
// As in step 12, T holds the constants of a tile, because step 14 compiles this kernel for seven, and
// ALIGNED says that rows are whole numbers of aligned float4. multiply_tile() and store_tile() are the
// main loop and the epilogue of step 12.
#include <algorithm>
#include <cuda/atomic>
#include <stdexcept>
#include <vector>

#include "../edges.cuh"
#include "beyond.hpp"
#include "common/device/ptx.cuh"
#include "launch.hpp"
#include "tiles.hpp"

namespace gemm {
namespace {

// Which steps a block does, and which blocks share a tile.
struct Schedule {
    std::size_t steps_in_tile;
    std::size_t steps;
    unsigned blocks;

    __device__ std::size_t first_step(unsigned block) const { return block * steps / blocks; }
    // The block that does `step`: the last one with first_step(block) <= step.
    __device__ unsigned block_of(std::size_t step) const {
        return static_cast<unsigned>(((step + 1) * blocks - 1) / steps);
    }
};

// The blocks that share a tile: [first, last].
struct Owners {
    unsigned first;
    unsigned last;

    __device__ Owners(const Schedule& schedule, std::size_t tile)
        : first(schedule.block_of(tile * schedule.steps_in_tile)),
          last(schedule.block_of((tile + 1) * schedule.steps_in_tile - 1)) {}

    __device__ unsigned count() const { return last - first + 1; }
};

// Where a tile begins in C. Tile 1 is to the right of tile 0.
struct Origin {
    std::size_t row;
    std::size_t col;
};

template <class T>
__device__ Origin origin_of(const Sgemm& gemm, unsigned tile) {
    const unsigned tiles_across = (gemm.n() + T::BN - 1) / T::BN;
    return {std::size_t{tile / tiles_across} * T::BM, std::size_t{tile % tiles_across} * T::BN};
}

// Thread to C, as in step 12: where in the block's tile the warp's tile begins.
template <class T>
__device__ int row_of_warp(int thread) {
    return thread / 32 / (T::BN / T::WN) * T::WM;
}

template <class T>
__device__ int col_of_warp(int thread) {
    return thread / 32 % (T::BN / T::WN) * T::WN;
}

template <class T>
struct alignas(16) Stage {
    float a[T::BK][T::BM + 4];
    float b[T::BK][T::BN];
};

// sums += A B for the tile of C at (row0, col0) and the columns [begin, end) of A. All threads of the
// block call it; when it returns, the stages are safe to overwrite.
template <class T, bool ALIGNED>
__device__ __forceinline__ void multiply_tile(const Sgemm& gemm, const Origin& origin, std::size_t begin,
                                              std::size_t end, Stage<T>* stages,
                                              float (&sums)[T::TM][T::TN]) {
    constexpr int BM = T::BM;  // a block's tile of C: BM x BN = 64 x 128
    constexpr int BN = T::BN;
    constexpr int BK = T::BK;  // columns of A's tile, rows of B's: 16
    constexpr int TM = T::TM;  // a thread's results: TM x TN = 8 x 8
    constexpr int TN = T::TN;
    constexpr int LANES_M = T::LANES_M;  // a warp's lanes: LANES_M x LANES_N = 4 x 8
    constexpr int LANES_N = T::LANES_N;
    constexpr int AHEAD = T::STAGES - 1;  // tiles in flight or complete: 2
    static_assert(AHEAD >= 1, "one stage to multiply and at least one to copy to");
    static_assert(BK % 2 == 0, "the fragments must be back at 0 when a tile ends");
    const int thread = threadIdx.x;
    const int row = row_of_warp<T>(thread) + thread % 32 / LANES_N * 4;
    const int col = col_of_warp<T>(thread) + thread % LANES_N * 4;
    constexpr int A_RIGHT = 8;
    constexpr int A_DOWN = T::THREADS / A_RIGHT;
    constexpr int B_DOWN = T::THREADS * 4 / BN;
    static_assert(BK % A_RIGHT == 0 && BM % A_DOWN == 0 && BK % B_DOWN == 0,
                  "all threads copy equally many elements");
    const int a_row = thread / A_RIGHT;
    const int a_col = thread % A_RIGHT;
    const int b_row = thread / (BN / 4);
    const int b_col = thread % (BN / 4) * 4;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (origin.row + a_row) * lda + begin + a_col;
    const float* b = gemm.b.data() + (begin + b_row) * ldb + origin.col + b_col;
    const int rows = remaining(gemm.m(), origin.row);                     // of the tile
    const int b_count = min(remaining(gemm.n(), origin.col + b_col), 4);  // elements of this thread's float4
    const int tiles = static_cast<int>((end - begin + BK - 1) / BK);
    const int last_depth = static_cast<int>((end - begin + BK - 1) % BK) + 1;  // columns of the last one

    const auto copy_next = [&](bool WHOLE, int depth, Stage<T>& stage) {
#pragma unroll
        for (int k = 0; k < BK; k += A_RIGHT) {
#pragma unroll
            for (int m = 0; m < BM; m += A_DOWN)
                course::ptx::cp_async_4(&stage.a[a_col + k][a_row + m], a + m * lda + k,
                                        a_row + m < rows && (WHOLE || a_col + k < depth));
        }
#pragma unroll
        for (int k = 0; k < BK; k += B_DOWN) {
            float* const to = &stage.b[b_row + k][b_col];
            const float* const from = b + k * ldb;
            const int count = WHOLE || b_row + k < depth ? b_count : 0;
            if (ALIGNED) {
                course::ptx::cp_async_16(to, from, count * sizeof(float));
            } else {
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    course::ptx::cp_async_4(to + n, from + n, n < count);
            }
        }
        a += BK;
        b += BK * ldb;
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    constexpr int FOURS = (TN + TM) / 4;
    const auto load_four = [&](const Stage<T>& stage, int k, int buffer, int four) {
        const int j = four * 4;
        const int i = four * 4 - TN;
        if (i < 0) {
            load4(&stage.b[k][col + j * LANES_N], &b_fragment[buffer][j]);
        } else {
            load4(&stage.a[k][row + i * LANES_M], &a_fragment[buffer][i]);
        }
    };

#pragma unroll
    for (int tile = 0; tile < AHEAD; ++tile) {
        if (tile < tiles) copy_next(false, tile + 1 < tiles ? BK : last_depth, stages[tile]);
        course::ptx::cp_async_commit();
    }
    if (tiles < T::STAGES) {
        for (int m = thread; m < BM; m += T::THREADS)
            stages[tiles].a[0][m] = 0;
        for (int n = thread; n < BN; n += T::THREADS)
            stages[tiles].b[0][n] = 0;
    }
    course::ptx::cp_async_wait<AHEAD - 1>();  // this thread's part of the first tile has arrived
    __syncthreads();                          // the first tile is complete

    int now = 0;       // the stage that is multiplied
    int free = AHEAD;  // the stage that is copied to
#pragma unroll
    for (int four = 0; four < FOURS; ++four)
        load_four(stages[now], 0, 0, four);
    const auto multiply = [&](int tile, bool WHOLE) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == T::COPY_AT) {
                if (WHOLE || tile + AHEAD < tiles) copy_next(WHOLE, last_depth, stages[free]);
                course::ptx::cp_async_commit();
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next tile is complete; this one is safe to overwrite
                now = now + 1 == T::STAGES ? 0 : now + 1;
            }
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int four = 0; four < FOURS; ++four) {
                    if (four * TM / FOURS == i) load_four(stages[now], (k + 1) % BK, (k + 1) % 2, four);
                }
#pragma unroll
                for (int step = 0; step < TN; ++step) {  // a snake, as in step 5
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[k % 2][i] * b_fragment[k % 2][j];
                }
            }
        }
    };
    int tile = 0;
#pragma unroll 1
    for (; tile + AHEAD + 1 < tiles; ++tile)
        multiply(tile, true);
#pragma unroll 1
    for (; tile < tiles; ++tile)
        multiply(tile, false);
    __syncthreads();  // the stages are safe to overwrite
}

// A whole tile to C, through shared memory: the epilogue of step 12.
template <class T, bool ALIGNED>
__device__ void store_tile(const Sgemm& gemm, const Origin& origin, const float (&sums)[T::TM][T::TN],
                           float* shared) {
    constexpr int WN = T::WN;
    constexpr int LANES_M = T::LANES_M;
    constexpr int LANES_N = T::LANES_N;
    static_assert(T::THREADS / 32 * LANES_M * WN * sizeof(float) <= sizeof(Stage<T>) * T::STAGES,
                  "the stages must have room for a row of each thread");
    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const std::size_t col0 = origin.col + col_of_warp<T>(thread);
    float* const warp_rows = shared + thread / 32 * LANES_M * WN;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
        const std::size_t row0 = origin.row + row_of_warp<T>(thread) + i / 4 * LANES_M * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < T::TN; j += 4) {
            const float* const s = &sums[i][j];
            float* const to = &warp_rows[lane / LANES_N * WN + lane % LANES_N * 4 + j * LANES_N];
            *reinterpret_cast<float4*>(to) = {s[1], s[0], s[3], s[2]};
        }
        __syncwarp();
        if (ALIGNED) {
#pragma unroll
            for (int n = lane * 4; n < LANES_M * WN; n += 128) {
                const float4 four = *reinterpret_cast<const float4*>(&warp_rows[n]);
                const float in_order[] = {four.y, four.x, four.w, four.z};
                store4(gemm, row0 + n / WN * 4, col0 + n % WN, in_order);
            }
        } else {
#pragma unroll
            for (int n = lane; n < LANES_M * WN; n += 32)
                store(gemm, row0 + n / WN * 4, col0 + n % WN, warp_rows[n ^ 1]);
        }
        __syncwarp();
    }
}

// A tile as it is in scratch memory: float4 number `quad` belongs to thread quad % THREADS, so
// neighbouring threads have neighbouring float4.
template <class T>
inline constexpr unsigned kQuads = T::BM* T::BN / 4;

// A block shares at most two tiles with others: its sums of the tile it begins with go to slot 0,
// those of the tile it ends with to slot 1.
template <class T>
__device__ float4* partial_of(const Sgemm& gemm, unsigned block, int slot) {
    return reinterpret_cast<float4*>(gemm.scratch.partial.data()) +
           (2 * std::size_t{block} + slot) * kQuads<T>;
}

__device__ inline int slot_of(const Schedule& schedule, unsigned block, std::size_t tile) {
    return schedule.first_step(block) / schedule.steps_in_tile == tile ? 0 : 1;
}

// A thread's sums of a shared tile, swapped as in step 12.
template <class T>
__device__ void store_partial(float4* partial, const float (&sums)[T::TM][T::TN]) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; j += 4) {
            const float* const s = &sums[i][j];
            partial[(i * T::TN + j) / 4 * T::THREADS + threadIdx.x] = {s[1], s[0], s[3], s[2]};
        }
    }
}

// Adds a float4 that store_partial() has stored.
__device__ inline void add_swapped(float (&sum)[4], const float4& four) {
    sum[0] += four.y;
    sum[1] += four.x;
    sum[2] += four.w;
    sum[3] += four.z;
}

// Stores the finished float4 number `quad` of the tile at `origin` to C.
template <class T, bool ALIGNED>
__device__ void store_quad(const Sgemm& gemm, const Origin& origin, unsigned quad, const float (&sum)[4]) {
    const int thread = static_cast<int>(quad % T::THREADS);
    const int i = static_cast<int>(quad / T::THREADS) * 4 / T::TN;
    const int j = static_cast<int>(quad / T::THREADS) * 4 % T::TN;
    const std::size_t row =
        origin.row + row_of_warp<T>(thread) + thread % 32 / T::LANES_N * 4 + i / 4 * T::LANES_M * 4 + i % 4;
    const std::size_t col = origin.col + col_of_warp<T>(thread) + thread % T::LANES_N * 4 + j * T::LANES_N;
    if (ALIGNED) {
        store4(gemm, row, col, sum);
    } else {
#pragma unroll
        for (int n = 0; n < 4; ++n)
            store(gemm, row, col + n, sum[n]);
    }
}

// The fix-up of a shared tile: of its float4, this block adds up a part, from all owners, and stores it
// to C.
template <class T, bool ALIGNED>
__device__ void fix_up(const Sgemm& gemm, const Schedule& schedule, std::size_t tile, const Owners& owners) {
    constexpr unsigned AT_ONCE = 4;  // loads of a thread that are in flight at the same time
    const unsigned part = blockIdx.x - owners.first;
    const unsigned begin = part * kQuads<T> / owners.count();
    const unsigned end = (part + 1) * kQuads<T> / owners.count();
    const Origin origin = origin_of<T>(gemm, static_cast<unsigned>(tile));
    // Every owner but the first begins with this tile.
    const float4* const first_partial =
        partial_of<T>(gemm, owners.first, slot_of(schedule, owners.first, tile));
    for (unsigned first = begin + threadIdx.x; first < end; first += AT_ONCE * T::THREADS) {
        float sums[AT_ONCE][4] = {};
#pragma unroll 4
        for (unsigned block = owners.first; block <= owners.last; ++block) {
            const float4* const partial =
                block == owners.first ? first_partial : partial_of<T>(gemm, block, 0);
#pragma unroll
            for (unsigned n = 0; n < AT_ONCE; ++n) {
                const unsigned quad = first + n * T::THREADS;
                if (quad < end) add_swapped(sums[n], partial[quad]);
            }
        }
#pragma unroll
        for (unsigned n = 0; n < AT_ONCE; ++n) {
            const unsigned quad = first + n * T::THREADS;
            if (quad < end) store_quad<T, ALIGNED>(gemm, origin, quad, sums[n]);
        }
    }
}

// From so many owners on, half of a block's threads would have nothing to add up in fix_up().
template <class T>
inline constexpr unsigned kManyOwners = 2 * T::QUADS;

// The same for many owners, each with only a few float4 to finish: several threads add up the same one,
// each over some of the owners, and then one of them adds up theirs. Not inlined, so that it takes no
// registers from the main loop.
template <class T, bool ALIGNED>
__device__ __noinline__ void fix_up_of_many(const Sgemm& gemm, const Schedule& schedule, std::size_t tile,
                                            const Owners& owners, float4* shared) {
    const unsigned part = blockIdx.x - owners.first;
    const unsigned begin = part * kQuads<T> / owners.count();
    const unsigned width = (part + 1) * kQuads<T> / owners.count() - begin;
    if (width == 0) return;  // more owners than float4
    const unsigned slices = T::THREADS / width;
    const unsigned slice = threadIdx.x / width;
    const unsigned quad = begin + threadIdx.x % width;
    const int first_slot = slot_of(schedule, owners.first, tile);
    float sum[4] = {};
    if (slice < slices) {
#pragma unroll 8
        for (unsigned block = owners.first + slice; block <= owners.last; block += slices)
            add_swapped(sum, partial_of<T>(gemm, block, block == owners.first ? first_slot : 0)[quad]);
    }
    shared[threadIdx.x] = {sum[0], sum[1], sum[2], sum[3]};
    __syncthreads();  // the sums of all slices are complete
    if (slice > 0) return;
    for (unsigned other = 1; other < slices; ++other) {
        const float4 four = shared[other * width + threadIdx.x];
        sum[0] += four.x;
        sum[1] += four.y;
        sum[2] += four.z;
        sum[3] += four.w;
    }
    store_quad<T, ALIGNED>(gemm, origin_of<T>(gemm, static_cast<unsigned>(tile)), quad, sum);
}

// A tile's ticket counts the blocks that have stored their sums, then those that have finished; the
// last one resets it to 0.
using Ticket = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

template <class T, bool ALIGNED>
__global__ __launch_bounds__(T::THREADS,
                             T::BLOCKS) void sgemm_stream_k(const __grid_constant__ Sgemm gemm,
                                                            const __grid_constant__ Schedule schedule) {
    extern __shared__ float4 shared[];
    const std::size_t begin = schedule.first_step(blockIdx.x);
    const std::size_t end = schedule.first_step(blockIdx.x + 1);

    for (std::size_t step = begin; step < end;) {
        const std::size_t tile = step / schedule.steps_in_tile;
        const std::size_t first = step % schedule.steps_in_tile;
        const std::size_t count = min(schedule.steps_in_tile - first, end - step);
        const Origin origin = origin_of<T>(gemm, static_cast<unsigned>(tile));
        float sums[T::TM][T::TN] = {};  // TM x TN results of this thread
        multiply_tile<T, ALIGNED>(gemm, origin, first * T::BK, min((first + count) * T::BK, gemm.k()),
                                  reinterpret_cast<Stage<T>*>(shared), sums);
        if (count == schedule.steps_in_tile) {
            store_tile<T, ALIGNED>(gemm, origin, sums, reinterpret_cast<float*>(shared));
            __syncthreads();  // the stages are safe to overwrite
        } else {
            store_partial<T>(partial_of<T>(gemm, blockIdx.x, step == begin ? 0 : 1), sums);
            __syncthreads();  // all threads have stored their sums
            if (threadIdx.x == 0) Ticket(gemm.scratch.tickets[tile]).fetch_add(1, cuda::memory_order_release);
        }
        step += count;
    }

    // The fix-up. No block waits before it has done all its steps, and all blocks run at the same time
    // (a cooperative launch): so every wait ends.
    for (std::size_t tile = begin / schedule.steps_in_tile; tile * schedule.steps_in_tile < end; ++tile) {
        const Owners owners(schedule, tile);
        if (owners.count() == 1) continue;
        Ticket ticket(gemm.scratch.tickets[tile]);
        if (threadIdx.x == 0) {
            while (ticket.load(cuda::memory_order_acquire) < owners.count()) {
            }
        }
        __syncthreads();  // all owners' sums are visible
        if (owners.count() < kManyOwners<T>) {
            fix_up<T, ALIGNED>(gemm, schedule, tile, owners);
        } else {
            fix_up_of_many<T, ALIGNED>(gemm, schedule, tile, owners, shared);
        }
        __syncthreads();  // all threads have read
        if (threadIdx.x == 0 && ticket.fetch_add(1, cuda::memory_order_relaxed) == 2 * owners.count() - 1)
            ticket.store(0, cuda::memory_order_relaxed);
    }
}

// The host side.
template <class T>
constexpr std::size_t kShared = sizeof(Stage<T>) * T::STAGES;

// How many blocks the device runs at the same time.
template <class T>
unsigned resident() {
    const auto count = [](auto kernel) {
        course::allow_shared_bytes(kernel, kShared<T>);
        return course::resident_blocks(kernel, T::THREADS, kShared<T>);
    };
    return std::min(count(sgemm_stream_k<T, true>), count(sgemm_stream_k<T, false>));
}

template <class T>
ScratchSize scratch(const Shape& shape) {
    const std::size_t tiles = tiles_in<T::BM, T::BN>(shape.m, shape.n);
    return {.partial = std::size_t{2} * resident<T>() * T::BM * T::BN, .tickets = tiles};
}

// On `blocks` blocks, or as many as there are steps or run at the same time, if that is less.
template <class T>
void launch_on(unsigned blocks, const Sgemm& given, cudaStream_t stream) {
    if (blocks == 0) throw std::invalid_argument("sgemm: blocks is 0; expected at least 1 to share the work");
    Sgemm gemm = checked(given, scratch<T>({given.m(), given.n(), given.k()}));
    const unsigned tiles = tiles_of<T::BM, T::BN>(gemm);
    if (tiles == 0) return;
    // K = 0 has a step too, an empty one, so that C is stored.
    Schedule schedule{};
    schedule.steps_in_tile = std::max<std::size_t>(course::ceil_div<std::size_t>(gemm.k(), T::BK), 1);
    schedule.steps = schedule.steps_in_tile * tiles;
    schedule.blocks = static_cast<unsigned>(std::min<std::size_t>({blocks, resident<T>(), schedule.steps}));
    const auto kernel = rows_are_whole_float4(gemm) ? sgemm_stream_k<T, true> : sgemm_stream_k<T, false>;
    void* arguments[] = {&gemm, &schedule};
    CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(schedule.blocks), dim3(T::THREADS), arguments,
                                           kShared<T>, stream));
}

template <class T>
void launch(const Sgemm& gemm, cudaStream_t stream) {
    launch_on<T>(resident<T>(), gemm, stream);
}

template <class T>
course::KernelResources resources() {
    course::allow_shared_bytes(sgemm_stream_k<T, true>, kShared<T>);
    return course::resources_of(sgemm_stream_k<T, true>, T::THREADS, kShared<T>);
}

template <class T>
StreamK entry() {
    return {{launch<T>, resources<T>, scratch<T>}, launch_on<T>};
}

template <class... T>
std::vector<StreamK> entries(TileList<T...>) {
    return {entry<T>()...};
}

}  // namespace

Kernel stream_k() {
    return entry<Tile64x128x16>().kernel;
}

std::vector<StreamK> stream_k_of_all_tiles() {
    return entries(AllTiles{});
}

}  // namespace gemm
