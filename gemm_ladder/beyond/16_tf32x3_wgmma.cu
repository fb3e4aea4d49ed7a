// Step 16: FP32 accuracy from tensor cores, by wgmma.
//
// Change:     the products of step 15 by wgmma, Hopper's instruction of four warps, on tiles that
//             TMA copies (day 41). B goes through registers, A is read from shared memory.
// Why:        mma.sync reaches little more than half of the rate that wgmma has.
// Prediction: TBD
// Counter:    TBD
// Measured:   TBD
// Next:       TBD
//
// wgmma has a left factor, in shared memory or in registers, and a right one, always in shared
// memory. Of 32-bit numbers, both must be K-major in shared memory: rows of neighbours along K. A
// is, B is not. But in registers a factor has no order. So B is the left factor, and the result is
// C^T:
//
//     C^T = B^T A^T        left: 64 columns of B, in registers        right: BM rows of A
//
// Each lane splits what it has loaded of B. A is split by the warps of the producer: they write the
// small parts to shared memory, beside the tile that TMA has copied there. Nothing need be written
// for the big parts: tensor cores do not look at the last 13 bits of a float.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "common/device/cluster_launch.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/raster_order.cuh"
#include "common/tile/tf32_split.cuh"
#include "launch.hpp"
#include "tf32x3_wgmma.hpp"
#include "tile.cuh"

namespace gemm {
namespace {

namespace ptx = course::ptx;
using course::RasterOrder;
using course::SplitFactors;

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 32;  // 128 bytes: a row of a tile in shared memory
constexpr int STAGES = 4;
constexpr int WARPGROUP = 128;      // threads
constexpr int CONSUMERS = BN / 64;  // warpgroups that multiply: 64 columns of C each
constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int BAND = 8;  // rows of tiles: see RasterOrder
constexpr int BOX = 32;  // columns of B that TMA copies at a time

// How TMA sees the factors.
struct Maps {
    CUtensorMap a;  // boxes of BM x BK
    CUtensorMap b;  // of BK x BOX
};

// In shared memory. Rows are 128 bytes, and TMA swizzles them: sixteen bytes c of row r are stored
// as c ^ (r % 8).
struct alignas(1024) Ring {
    float a[STAGES][BM][BK];
    float a_small[STAGES][BM][BK];
    float b[STAGES][BN / BOX][BK][BOX];
    // Phases of a stage: TMA has copied its tiles; A is split; the consumers are done with it.
    ptx::MBarrier copied[STAGES];
    ptx::MBarrier split[STAGES];
    ptx::MBarrier empty[STAGES];
    unsigned not_finite;  // is one of the block's results Inf or NaN?

    // Called by all threads of the block.
    __device__ void init() {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < STAGES; ++stage) {
                ptx::mbarrier_init(&copied[stage], 1);
                ptx::mbarrier_init(&split[stage], WARPGROUP / 32);
                ptx::mbarrier_init(&empty[stage], CONSUMERS);
            }
            ptx::fence_mbarrier_init();
            not_finite = 0;
        }
        __syncthreads();
    }
};

// Columns k to k + BK - 1 of A and the same rows of B, of the tile of C at (row, col). One thread
// calls it.
__device__ void load_stage(Ring& ring, int stage, const Maps& maps, int row, int col, int k) {
    ptx::MBarrier* const copied = &ring.copied[stage];
    ptx::mbarrier_arrive_expect(copied, sizeof ring.a[stage] + sizeof ring.b[stage]);
    ptx::tma_load(ring.a[stage], &maps.a, k, row, copied);
    for (int box = 0; box < BN / BOX; ++box)
        ptx::tma_load(ring.b[stage][box], &maps.b, col + box * BOX, k, copied);
}

// The small parts of A's tile. big = x with its last 13 bits cut off: nearest_tf32() would be twice
// as close, but then big parts would have to be written, too. small is rounded: half of the lowest
// bit that tensor cores look at is added. All of it is element by element, so the swizzle does not
// matter.
__device__ void split_stage(Ring& ring, int stage) {
    const auto* const a = reinterpret_cast<const float4*>(ring.a[stage]);
    auto* const a_small = reinterpret_cast<float4*>(ring.a_small[stage]);
    const auto small = [](float x) {
        const float big = __uint_as_float(__float_as_uint(x) & 0xffffe000u);
        return __uint_as_float(__float_as_uint(x - big) + 0x1000u);
    };
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x) % WARPGROUP; i < BM * BK / 4; i += WARPGROUP) {
        const float4 x = a[i];
        a_small[i] = {small(x.x), small(x.y), small(x.z), small(x.w)};
    }
}

// The producer: one thread loads stages, as soon as they are empty; all split them.
__device__ void produce(Ring& ring, const Maps& maps, int row, int col, int first_step, int steps) {
    const bool loads = threadIdx.x % WARPGROUP == 0;
    const auto load = [&](int step) {
        if (!loads || step >= steps) return;
        ptx::mbarrier_wait(&ring.empty[step % STAGES], (step / STAGES + 1) % 2);
        load_stage(ring, step % STAGES, maps, row, col, (first_step + step) * BK);
    };
    for (int step = 0; step < STAGES - 1; ++step)
        load(step);
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        ptx::mbarrier_wait(&ring.copied[stage], step / STAGES % 2);
        split_stage(ring, stage);
        ptx::fence_proxy_async();  // wgmma will read what these threads have written
        __syncwarp();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&ring.split[stage]);
        load(step + STAGES - 1);
        __syncwarp();
    }
}

// Lane 4 g + t of warp w of a consumer has columns 8 h + g of 16 in the layout of wgmma, h = 0 and
// 1. Which columns of C these are is free, as long as lanes load and store the same. With two
// neighbours for h, a lane loads 8 bytes. They are taken from two boxes, and in a box from quads
// (groups of four columns) w and w + 4: so 16 lanes, which load rows t and t + 4 at the same time,
// need each bank once.
struct Lane {
    int warp = static_cast<int>(threadIdx.x) % WARPGROUP / 32;
    int g = static_cast<int>(threadIdx.x) % 32 / 4;
    int t = static_cast<int>(threadIdx.x) % 4;

    __device__ int box() const { return g / 4; }
    __device__ int quad() const { return g / 2 % 2 * 4 + warp; }
    __device__ int in_quad() const { return g % 2 * 2; }
    // The first of the two columns, among the 64 of the consumer.
    __device__ int col() const { return box() * BOX + quad() * 4 + in_quad(); }
};

constexpr int STEPS = BK / 8;  // instructions along K
using Left = SplitFactors<4>[STEPS];

// The lane's factors of B: rows 8 step + t and 8 step + t + 4 of two columns.
__device__ void load_left(const float (&boxes)[2][BK][BOX], const Lane& lane, Left& left) {
    const float* const upper = &boxes[lane.box()][lane.t][(lane.quad() ^ lane.t) * 4 + lane.in_quad()];
    const float* const lower =
        &boxes[lane.box()][lane.t + 4][(lane.quad() ^ (lane.t + 4)) * 4 + lane.in_quad()];
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const auto first = course::Pack<float, 2>::load(upper + step * 8 * BOX);
        const auto second = course::Pack<float, 2>::load(lower + step * 8 * BOX);
        left[step] = course::split({first.value[0], first.value[1], second.value[0], second.value[1]});
    }
}

// No instruction: `left` keeps its registers until here. For the compiler, they are free when the
// products have been issued.
__device__ void hold_left(Left& left) {
#pragma unroll
    for (auto& factors : left) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            ptx::hold(factors.big[i]);
            ptx::hold(factors.small[i]);
        }
    }
}

// A lane's results: register 4 j + 2 h + i is the one of row 8 j + 2 t + i of the tile and its
// column h.
using Sums = float[BM / 2];

// Issues the products of a stage: run = B^T A^T. The small products come first: while the sum is
// small, less of them is cut off.
__device__ void multiply_stage(const Ring& ring, int stage, const Left& left, Sums& run) {
    const std::uint64_t big = ptx::descriptor_k_major(ring.a[stage]);
    const std::uint64_t small = ptx::descriptor_k_major(ring.a_small[stage]);
    ptx::wgmma_fence();
    ptx::wgmma_tf32_set(run, left[0].small, big);
    ptx::wgmma_tf32(run, left[0].big, small);
#pragma unroll
    for (int step = 1; step < STEPS; ++step) {
        ptx::wgmma_tf32(run, left[step].small, ptx::advanced(big, step * 32));
        ptx::wgmma_tf32(run, left[step].big, ptx::advanced(small, step * 32));
    }
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
        ptx::wgmma_tf32(run, left[step].big, ptx::advanced(big, step * 32));
    ptx::wgmma_commit();
}

// A consumer: sums of 64 columns of the tile. As in step 15, tensor cores sum BK terms only.
__device__ void consume(Ring& ring, int consumer, int steps, Sums& sums) {
    const Lane lane;
    Sums run;
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        ptx::mbarrier_wait(&ring.copied[stage], step / STAGES % 2);
        ptx::mbarrier_wait(&ring.split[stage], step / STAGES % 2);
        Left left;
        load_left(*reinterpret_cast<const float(*)[2][BK][BOX]>(ring.b[stage][consumer * 2]), lane, left);
        multiply_stage(ring, stage, left, run);
        ptx::wgmma_wait<0>();
        hold_left(left);
        if (threadIdx.x % WARPGROUP == 0) ptx::mbarrier_arrive(&ring.empty[stage]);
#pragma unroll
        for (int i = 0; i < BM / 2; ++i)
            sums[i] += run[i];
    }
}

// Stores a consumer's results. PAIRS: both columns of a lane in one access.
__device__ void write_results(const Sgemm& gemm, const Origin& origin, const Sums& sums) {
    const Lane lane;
    const std::size_t col = origin.col + lane.col();
    const bool pairs = gemm.c.leading_dimension() % 2 == 0 && course::is_aligned(gemm.c.data(), 8);
#pragma unroll
    for (int j = 0; j < BM / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float both[] = {sums[4 * j + i], sums[4 * j + 2 + i]};
            const std::size_t row = origin.row + j * 8 + lane.t * 2 + i;
            if (pairs) {
                write_row_of_packs<2, 1>(gemm, row, col, both);
            } else {
                write_row_of_packs<1, 1>(gemm, row, col, both);
            }
        }
    }
}

// Split-K, as in step 11: `count` blocks share a tile, each with `steps` steps along K. With more
// than one, part i of the sums is stored to `sums`, from row i `rows` on: whole tiles.
struct Splits {
    int count;
    int steps;
    std::size_t rows;
    DeviceMatrix<float> sums;
};

__global__ __launch_bounds__(THREADS, 1) void sgemm_tf32x3_wgmma(const __grid_constant__ Maps maps,
                                                                 const __grid_constant__ Sgemm gemm,
                                                                 const RasterOrder order,
                                                                 const __grid_constant__ Splits splits) {
    extern __shared__ __align__(1024) unsigned char shared[];
    Ring& ring = *reinterpret_cast<Ring*>(shared);
    ring.init();
    const int tiles = order.rows * order.columns;
    const int split = static_cast<int>(blockIdx.x) / tiles;
    const auto [tile_row, tile_col] = order.tile(static_cast<int>(blockIdx.x) % tiles);
    const int row = tile_row * BM;
    const int col = tile_col * BN;
    const int first_step = split * splits.steps;
    const int all_steps = static_cast<int>(course::ceil_div<std::size_t>(gemm.k(), BK));
    const int steps = min(splits.steps, all_steps - first_step);
    const int consumer = static_cast<int>(threadIdx.x) / WARPGROUP;
    if (consumer == CONSUMERS) {
        ptx::registers_decrease<24>();
        return produce(ring, maps, row, col, first_step, steps);
    }
    ptx::registers_increase<240>();
    Sums sums = {};
    consume(ring, consumer, steps, sums);
    const Origin origin{static_cast<std::size_t>(row), static_cast<std::size_t>(col)};
    const Origin own{origin.row, origin.col + consumer * 64};
    if (splits.count > 1)
        return write_results({gemm.a, gemm.b, splits.sums}, {own.row + split * splits.rows, own.col}, sums);
    // Inf and NaN: as in step 15.
    if (!all_finite(sums)) atomicOr(&ring.not_finite, 1u);
    ptx::named_barrier(1, CONSUMERS * WARPGROUP);
    if (ring.not_finite != 0) {
        write_fp32_tile<BM, BN>(gemm, origin, CONSUMERS * WARPGROUP);
    } else {
        write_results(gemm, own, sums);
    }
}

// Adds up the parts: a thread for each element of C.
__global__ void add_splits(const __grid_constant__ Sgemm gemm, const __grid_constant__ Splits splits) {
    const std::size_t element = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row = element / gemm.n();
    const std::size_t col = element % gemm.n();
    if (row >= gemm.m()) return;
    float sum = 0;
#pragma unroll 8
    for (int split = 0; split < splits.count; ++split)
        sum += splits.sums(split * splits.rows + row, col);
    if (!isfinite(sum)) sum = fp32_element(gemm, row, col);
    write_element(gemm, row, col, sum);
}

// The numbers only: `sums` is empty.
Splits splits_of(const Shape& shape, int wanted) {
    const auto steps = static_cast<int>(course::ceil_div<std::size_t>(shape.k, BK));
    const int each = course::ceil_div(steps, std::max(wanted, 1));
    return {.count = steps == 0 ? 1 : course::ceil_div(steps, each),
            .steps = each,
            .rows = course::ceil_div<std::size_t>(shape.m, BM) * BM,
            .sums = {}};
}

std::size_t pitch_of(const Shape& shape) {
    return course::ceil_div<std::size_t>(shape.n, 2) * 2;  // pairs are stored
}

}  // namespace

std::string why_no_tf32_wgmma(const Shape&) {
    return course::why_no_hopper();
}

std::string why_no_tf32_wgmma(const Sgemm& gemm) {
    if (gemm.k() == 0) return "";
    for (const auto& [name, matrix] : {std::pair("A ", gemm.a), {"B ", gemm.b}}) {
        const std::string reason = course::why_no_tensor_map(matrix);
        if (!reason.empty()) return name + reason;
    }
    return "";
}

ScratchSize tf32x3_wgmma_scratch(const Shape& shape, int splits) {
    const Splits all = splits_of(shape, splits);
    return {.partial = all.count == 1 ? 0 : all.count * all.rows * pitch_of(shape)};
}

void launch_tf32x3_wgmma(int wanted_splits, const Sgemm& gemm, cudaStream_t stream) {
    if (gemm.m() == 0 || gemm.n() == 0) return;
    Maps maps{};
    if (gemm.k() > 0) {
        maps.a = course::make_tensor_map(gemm.a, BM, BK);
        maps.b = course::make_tensor_map(gemm.b, BK, BOX);
    }
    const Shape shape{gemm.m(), gemm.n(), gemm.k()};
    Splits splits = splits_of(shape, wanted_splits);
    if (splits.count > 1)
        splits.sums = {gemm.scratch.partial, splits.count * splits.rows, shape.n, pitch_of(shape)};
    const RasterOrder order = course::make_order(gemm.c, BM, BN, BAND);
    const course::ClusterLaunch how{
        .threads = THREADS, .shared = sizeof(Ring), .cluster = 1, .persistent = false};
    how.start(sgemm_tf32x3_wgmma, course::blocks_of(order, splits.count), stream, maps, gemm, order, splits);
    if (splits.count == 1) return;
    constexpr unsigned kThreads = 128;
    course::launch(add_splits, {course::blocks_for(gemm.m() * gemm.n(), kThreads), kThreads, 0, stream}, gemm,
                   splits);
}

course::KernelResources tf32x3_wgmma_resources() {
    course::allow_shared_bytes(sgemm_tf32x3_wgmma, sizeof(Ring));
    return course::resources_of(sgemm_tf32x3_wgmma, THREADS, sizeof(Ring));
}

}  // namespace gemm
