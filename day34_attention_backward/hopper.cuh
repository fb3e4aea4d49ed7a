// Day 34, the versions with Hopper's TMA and wgmma, for FP16 and BF16. Days 41 and 27 come first.
//
//   a block     128 keys, and all tiles of rows of Q that see them
//   a producer  one thread loads Q, d_out and the row terms; another one adds dQ to global memory
//   consumers   two warpgroups, 64 keys each: dK and dV stay in their registers
//
// A consumer computes S^T = K Q^T and dP^T = V d_out^T, with its keys as rows. So P^T and dS^T are
// in registers, rounded to pairs, the left factors of dV = P^T d_out and dK = dS^T Q (day 27). Only
// dQ = dS K sums over all keys of the block: dS goes through shared memory, transposed by stmatrix.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/ptx.cuh"
#include "common/device/ptx_hopper.cuh"
#include "parts.cuh"

namespace day34 {

namespace ptx = course::ptx;

constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2;
constexpr int kHopperThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kKeys = 64 * kConsumers;  // of a block
constexpr int kStagesQ = 3;             // of Q: the scores of the next tile are computed early
constexpr int kStagesDOut = 2;          // of d_out
constexpr int kPart = 64 * 64;          // of dQ: what a consumer has of a tile

// Rows of Q in a tile. Sums of 64 columns leave registers for more rows.
template <int D>
constexpr int kRows = D == 64 ? 128 : 64;

// How TMA sees a tensor: heads of batches, each a matrix of its own. Rows out of range are
// zero-filled.
struct Maps {
    CUtensorMap q;      // boxes of kRows rows, 64 columns
    CUtensorMap d_out;  // as q
    CUtensorMap k;      // boxes of kKeys keys, 64 columns
    CUtensorMap v;      // as k
};

template <class T>
struct Problem {
    HeadsView<T> dk;
    HeadsView<T> dv;
    RowTerms terms;
    float* dq;       // [head][tile of rows][consumer][kPart], in the order of their registers
    unsigned* done;  // [head][tile of rows]: tiles of keys that have been added; ordered
    unsigned* ticket;
    int row_tiles;
    int key_tiles;
    int diagonal;  // row i sees the keys up to i + diagonal
    float scale;
};

// ROWS rows in shared memory: boxes of 64 columns, rows of 128 bytes, swizzled.
template <class T, int COLUMNS, int ROWS>
struct alignas(1024) Box {
    T element[COLUMNS / 64][ROWS * 64];
};

template <class T, int D>
struct HopperMemory {
    Box<T, D, kKeys> k;
    Box<T, D, kKeys> v;
    Box<T, D, kRows<D>> q[kStagesQ];
    Box<T, D, kRows<D>> d_out[kStagesDOut];
    Box<T, kKeys, kRows<D>> ds[2];
    float4 dq[kConsumers][kPart / 4];
    float lse[kStagesQ][kRows<D>];
    float d[kStagesDOut][kRows<D>];
    ptx::MBarrier keys_full;
    ptx::MBarrier q_full[kStagesQ];  // Q and lse
    ptx::MBarrier q_empty[kStagesQ];
    ptx::MBarrier d_out_full[kStagesDOut];  // d_out and d
    ptx::MBarrier d_out_empty[kStagesDOut];
    ptx::MBarrier dq_full;
    ptx::MBarrier dq_empty;
    unsigned number;  // of the block
};

template <class T, int D>
__device__ void init_barriers(HopperMemory<T, D>& memory) {
    ptx::mbarrier_init(&memory.keys_full, 1);
    ptx::mbarrier_init(&memory.dq_full, kConsumers * kWarpgroup);
    ptx::mbarrier_init(&memory.dq_empty, 1);
    for (int stage = 0; stage < kStagesQ; ++stage) {
        ptx::mbarrier_init(&memory.q_full[stage], 1);
        ptx::mbarrier_init(&memory.q_empty[stage], kConsumers);
    }
    for (int stage = 0; stage < kStagesDOut; ++stage) {
        ptx::mbarrier_init(&memory.d_out_full[stage], 1);
        ptx::mbarrier_init(&memory.d_out_empty[stage], kConsumers);
    }
    ptx::fence_mbarrier_init();
}

// The stage of a step and the parity of its phase.
template <int STAGES>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// One thread of a consumer arrives for all of them.
__device__ inline void release(ptx::MBarrier* empty) {
    if (threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(empty);
}

// Keys of a block, and the first tile of rows that sees them.
struct KeyTile {
    int tile;
    int first;  // key
    int begin;  // tile of rows
    std::size_t head;
};

// With a causal mask the first keys are seen by most rows: their blocks start first, so that the
// last ones to end are short. ORDERED: the last keys come first, see write_queries.
template <class T, int D, bool ORDERED>
__device__ KeyTile key_tile(const Problem<T>& problem, unsigned number) {
    KeyTile keys{};
    keys.tile = static_cast<int>(number % static_cast<unsigned>(problem.key_tiles));
    if (ORDERED) keys.tile = problem.key_tiles - 1 - keys.tile;
    keys.first = keys.tile * kKeys;
    keys.begin = max(0, keys.first - problem.diagonal) / kRows<D>;
    keys.head = number / static_cast<unsigned>(problem.key_tiles);
    return keys;
}

// --- The producer's threads ----------------------------------------------------------------------

template <class T, int D, int ROWS>
__device__ void load(Box<T, D, ROWS>& to, const CUtensorMap& map, int row, int head, int batch,
                     ptx::MBarrier* full) {
    for (int c = 0; c < D / 64; ++c)
        ptx::tma_load(to.element[c], &map, c * 64, row, head, batch, full);
}

template <class T, int D>
__device__ void produce(HopperMemory<T, D>& memory, const Maps& maps, const Problem<T>& problem,
                        const KeyTile& keys) {
    constexpr int ROWS = kRows<D>;
    const auto heads = static_cast<std::size_t>(problem.dk.extents().heads);
    const auto head = static_cast<int>(keys.head % heads);
    const auto batch = static_cast<int>(keys.head / heads);
    ptx::mbarrier_arrive_expect(&memory.keys_full, sizeof(memory.k) + sizeof(memory.v));
    load(memory.k, maps.k, keys.first, head, batch, &memory.keys_full);
    load(memory.v, maps.v, keys.first, head, batch, &memory.keys_full);
    RingPosition<kStagesQ> at_q;
    RingPosition<kStagesDOut> at;
    for (int tile = keys.begin; tile < problem.row_tiles; ++tile, at_q.advance(), at.advance()) {
        const std::size_t row = keys.head * problem.terms.padded + static_cast<std::size_t>(tile * ROWS);
        ptx::MBarrier* const q_full = &memory.q_full[at_q.stage];
        ptx::mbarrier_wait(&memory.q_empty[at_q.stage], at_q.parity ^ 1);
        ptx::mbarrier_arrive_expect(q_full, sizeof(memory.q[0]) + sizeof(memory.lse[0]));
        load(memory.q[at_q.stage], maps.q, tile * ROWS, head, batch, q_full);
        ptx::bulk_load(memory.lse[at_q.stage], problem.terms.lse + row, sizeof(memory.lse[0]), q_full);
        ptx::MBarrier* const d_out_full = &memory.d_out_full[at.stage];
        ptx::mbarrier_wait(&memory.d_out_empty[at.stage], at.parity ^ 1);
        ptx::mbarrier_arrive_expect(d_out_full, sizeof(memory.d_out[0]) + sizeof(memory.d[0]));
        load(memory.d_out[at.stage], maps.d_out, tile * ROWS, head, batch, d_out_full);
        ptx::bulk_load(memory.d[at.stage], problem.terms.d + row, sizeof(memory.d[0]), d_out_full);
    }
}

// Adds the block's part of dQ to the sums in global memory, tile after tile: 32 KB per bulk
// reduction, which L2 carries out. ORDERED: in turns. With a causal mask a block reaches a tile of
// rows the sooner the later its keys are, so the last keys come first, and no block waits long.
template <class T, int D, bool ORDERED>
__device__ void write_queries(HopperMemory<T, D>& memory, const Problem<T>& problem, const KeyTile& keys) {
    unsigned parity = 0;
    for (int tile = keys.begin; tile < problem.row_tiles; ++tile, parity ^= 1) {
        const std::size_t number =
            keys.head * static_cast<std::size_t>(problem.row_tiles) + static_cast<std::size_t>(tile);
        ptx::mbarrier_wait(&memory.dq_full, parity);
        if constexpr (ORDERED) {
            const int last_key = min(tile * kRows<D> + kRows<D> - 1, (1 << 30) - 1) + problem.diagonal;
            const int turn = min(last_key / kKeys, problem.key_tiles - 1) - keys.tile;
            while (atomicAdd(&problem.done[number], 0u) != static_cast<unsigned>(turn)) {
            }
            __threadfence();
        }
        ptx::bulk_reduce_add(problem.dq + number * (kConsumers * kPart), &memory.dq[0][0].x,
                             sizeof(memory.dq));
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
        ptx::mbarrier_arrive(&memory.dq_empty);
        if constexpr (ORDERED) {
            ptx::tma_store_wait<0>();
            __threadfence();
            atomicAdd(&problem.done[number], 1u);
        }
    }
    ptx::tma_store_wait<0>();
}

// --- Products ------------------------------------------------------------------------------------

// Values are made here: the compiler must not move arithmetic across a wait for products.
template <int COUNT>
__device__ void hold(float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        ptx::hold(values[i]);
}
template <int COUNT>
__device__ void clear(float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        values[i] = 0;
    hold(values);
}

// Issues out = keys rows^T: 64 keys of a consumer x ROWS rows of Q or d_out.
template <class T, int D, int ROWS>
__device__ void multiply_rows(const Box<T, D, kKeys>& keys, int group, const Box<T, D, ROWS>& rows,
                              float (&out)[ROWS / 2]) {
    const std::uint64_t a = ptx::descriptor_k_major(keys.element[0] + group * 64 * 64);
    const std::uint64_t b = ptx::descriptor_k_major(rows.element[0]);
    ptx::wgmma_set<T, false>(out, a, b);
#pragma unroll
    for (int c = 16; c < D; c += 16)
        ptx::wgmma<T, false>(out, ptx::advanced(a, c / 64 * sizeof(keys.element[0]) + c % 64 * 2),
                             ptx::advanced(b, c / 64 * sizeof(rows.element[0]) + c % 64 * 2));
}

// Issues sums += left rows: 64 keys x D. The left factor is P^T or dS^T, in registers.
template <class T, int D, int ROWS>
__device__ void add_rows(const unsigned (&left)[ROWS / 16][4], const Box<T, D, ROWS>& rows,
                         float (&sums)[D / 2]) {
    const std::uint64_t b = ptx::descriptor_mn_major(rows.element[0], sizeof(rows.element[0]));
#pragma unroll
    for (int row = 0; row < ROWS; row += 16)
        ptx::wgmma<T, true>(sums, left[row / 16], ptx::advanced(b, row * 128));
}

// Issues dq = dS K, a consumer's part: 64 columns of 64 rows, or 64 rows of 64 columns.
template <class T, int D, int ROWS>
__device__ void multiply_keys(const Box<T, kKeys, ROWS>& ds, const Box<T, D, kKeys>& keys, int group,
                              float (&dq)[32]) {
    const std::uint64_t a = ptx::descriptor_k_major(ds.element[0] + (D == 64 ? group * 64 * 64 : 0));
    const std::uint64_t b =
        ptx::descriptor_mn_major(keys.element[D == 64 ? 0 : group], sizeof(keys.element[0]));
    ptx::wgmma_set<T, true>(dq, a, b);
#pragma unroll
    for (int key = 16; key < kKeys; key += 16)
        ptx::wgmma<T, true>(dq, ptx::advanced(a, key / 64 * sizeof(ds.element[0]) + key % 64 * 2),
                            ptx::advanced(b, key * 128));
}

// --- Weights and their gradients -----------------------------------------------------------------
//
// Register 4 j + 2 h + i of lane 4 g + t in warp w: key 16 w + g + 8 h, row 8 j + 2 t + i of Q.

// Scores of rows that do not see a key become -Inf. Key h is seen from row first_row[h] on.
template <int COUNT>
__device__ void mask(float (&scores)[COUNT], int first_upper, int first_lower) {
    const int row = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int first = i / 2 % 2 == 0 ? first_upper : first_lower;
        scores[i] = i / 4 * 8 + row + i % 2 >= first ? scores[i] : -kInfinity;
    }
}

// Scores become weights, exp2(score scale - lse).
template <int COUNT>
__device__ void weigh(float (&scores)[COUNT], const float* lse, float scale) {
    const int row = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < COUNT / 4; ++j) {
        const float2 shift = *reinterpret_cast<const float2*>(lse + j * 8 + row);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float* const two = &scores[4 * j + 2 * h];
            two[0] = ptx::exp2_approx(fmaf(two[0], scale, -shift.x));
            two[1] = ptx::exp2_approx(fmaf(two[1], scale, -shift.y));
        }
    }
}

// The registers of weights are, rounded to pairs, those of a left factor.
template <class T, int COUNT>
__device__ void round_weights(const float (&weights)[COUNT], unsigned (&p)[COUNT / 8][4]) {
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        p[i / 4][i % 4] = pair<T>(weights[2 * i], weights[2 * i + 1]);
}

// Masks and weighs the scores of a consumer's keys and a tile of rows.
template <class T, int D>
__device__ void weigh_tile(const Problem<T>& problem, const KeyTile& keys, int group, int tile,
                           const float* lse, float (&scores)[kRows<D> / 2]) {
    const int row = tile * kRows<D>;
    const int length_k = problem.dk.length();
    if (keys.first + kKeys > min(row + problem.diagonal + 1, length_k)) {
        const int thread = static_cast<int>(threadIdx.x);
        const int key = keys.first + group * 64 + thread / 32 % 4 * 16 + thread % 32 / 4;
        const auto first_row = [&](int of) { return of < length_k ? of - problem.diagonal - row : kRows<D>; };
        mask(scores, first_row(key), first_row(key + 8));
    }
    weigh(scores, lse, problem.scale * kLog2E);
}

// dS = P (dP - d), rounded.
template <class T, int COUNT>
__device__ void differentiate(const unsigned (&p)[COUNT / 8][4], const float (&dp)[COUNT], const float* d,
                              unsigned (&ds)[COUNT / 8][4]) {
    const int row = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < COUNT / 4; ++j) {
        const float2 mean = *reinterpret_cast<const float2*>(d + j * 8 + row);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 4 * j + 2 * h;
            const float2 weights = both_of<T>(p[j / 2][j % 2 * 2 + h]);
            ds[j / 2][j % 2 * 2 + h] =
                pair<T>(weights.x * (dp[i] - mean.x), weights.y * (dp[i + 1] - mean.y));
        }
    }
}

// dS^T from registers to dS in shared memory: stmatrix stores each 8 x 8 matrix transposed.
template <class T, int ROWS>
__device__ void store_transposed(Box<T, kKeys, ROWS>& to, int group, const unsigned (&ds)[ROWS / 16][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int chunk = warp * 2 + lane / 8 % 2;  // of eight keys
#pragma unroll
    for (int j = 0; j < ROWS / 16; ++j) {
        const int row = j * 16 + lane / 16 * 8 + lane % 8;
        ptx::stmatrix_x4_trans(&to.element[group][row * 64 + (chunk ^ row % 8) * 8], ds[j]);
    }
}

// 64 keys from `first` on: dK or dV to global memory.
template <class T, int D>
__device__ void store_keys(const HeadsView<T>& view, std::size_t head, int first, const float (&sums)[D / 2],
                           float factor) {
    const int thread = static_cast<int>(threadIdx.x);
    const int col = thread % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int key = first + thread / 32 % 4 * 16 + thread % 32 / 4 + h * 8;
        if (key >= view.length()) continue;
        T* const to = row_of(view, head, static_cast<std::size_t>(key)) + col;
#pragma unroll
        for (int j = 0; j < D / 8; ++j) {
            if (j * 8 >= view.dim()) continue;
            const float* const two = &sums[4 * j + 2 * h];
            *reinterpret_cast<unsigned*>(to + j * 8) = pair<T>(two[0] * factor, two[1] * factor);
        }
    }
}

// --- The kernel ----------------------------------------------------------------------------------

// Idea: TMA and wgmma. Sums and left factors stay in registers, except for dS. A consumer's
// arithmetic runs under its own products:
//
//     products      dP dV | S of the next tile, dQ, dK
//     arithmetic       dS | weights of the next tile, dQ to shared memory
//
// Cost removed: fragments, and atomics of single floats: dQ is added 32 KB at a time.
// Still limits it: shared memory. A product of 64 x 64 reads both factors at the full rate of the
// tensor cores, and registers have no room for larger ones.
template <class T, int D, bool ORDERED>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attention_gradients(const __grid_constant__ Maps maps, const Problem<T> problem) {
    constexpr int ROWS = kRows<D>;
    extern __shared__ __align__(1024) unsigned char bytes[];
    auto& memory = *reinterpret_cast<HopperMemory<T, D>*>(bytes);
    if (threadIdx.x == 0) {
        init_barriers(memory);
        memory.number = ORDERED ? atomicAdd(problem.ticket, 1u) : blockIdx.x;
    }
    __syncthreads();
    const KeyTile keys = key_tile<T, D, ORDERED>(problem, memory.number);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of the consumers; -1: the producer

    if (group < 0) {
        ptx::registers_decrease<24>();
        if (threadIdx.x == 0) produce(memory, maps, problem, keys);
        if (threadIdx.x == 32) write_queries<T, D, ORDERED>(memory, problem, keys);
        return;
    }
    ptx::registers_increase<240>();
    float dk[D / 2];           // 64 keys x D per warpgroup
    float dv[D / 2];           // 64 keys x D
    float scores[ROWS / 2];    // 64 keys x ROWS; then weights
    unsigned p[ROWS / 16][4];  // weights, rounded
    unsigned ds[ROWS / 16][4];
    clear(dk);
    clear(dv);
    RingPosition<kStagesQ> at_q;  // of the newest scores
    RingPosition<kStagesDOut> at;
    unsigned dq_parity = 1;
    ptx::mbarrier_wait(&memory.keys_full, 0);
    if (keys.begin < problem.row_tiles) {
        ptx::mbarrier_wait(&memory.q_full[0], 0);
        ptx::wgmma_fence();
        multiply_rows(memory.k, group, memory.q[0], scores);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(scores);
        weigh_tile<T, D>(problem, keys, group, keys.begin, memory.lse[0], scores);
    }
    int stage = 0;  // of Q
    for (int tile = keys.begin; tile < problem.row_tiles; ++tile, at.advance(), dq_parity ^= 1) {
        float dp[ROWS / 2];
        float dq[32];
        ptx::mbarrier_wait(&memory.d_out_full[at.stage], at.parity);
        ptx::wgmma_fence();
        multiply_rows(memory.v, group, memory.d_out[at.stage], dp);
        ptx::wgmma_commit();
        round_weights<T>(scores, p);
        ptx::wgmma_fence();
        add_rows<T, D, ROWS>(p, memory.d_out[at.stage], dv);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();  // dP is there; dV is not
        hold(dp);
        differentiate<T, ROWS / 2>(p, dp, memory.d[at.stage], ds);
        store_transposed<T, ROWS>(memory.ds[tile % 2], group, ds);
        ptx::fence_proxy_async();

        // The next scores. After the last tile they are computed for nothing: products under a
        // condition would be carried out one by one.
        if (tile + 1 < problem.row_tiles) {
            at_q.advance();
            ptx::mbarrier_wait(&memory.q_full[at_q.stage], at_q.parity);
        }
        ptx::wgmma_wait<0>();  // dV is there, and p safe to overwrite
        hold(dv);
        ptx::wgmma_fence();
        multiply_rows(memory.k, group, memory.q[at_q.stage], scores);
        ptx::wgmma_commit();
        ptx::named_barrier(1, kConsumers * kWarpgroup);  // dS of both consumers is there
        release(&memory.d_out_empty[at.stage]);
        multiply_keys<T, D, ROWS>(memory.ds[tile % 2], memory.k, group, dq);
        ptx::wgmma_commit();
        add_rows<T, D, ROWS>(ds, memory.q[stage], dk);
        ptx::wgmma_commit();
        ptx::wgmma_wait<2>();  // the next scores are there
        hold(scores);
        weigh_tile<T, D>(problem, keys, group, tile + 1, memory.lse[at_q.stage], scores);

        // This wait loops. So it ends the basic block, at whose begin ptxas would put the wait for
        // products, ahead of the exponentials.
        ptx::mbarrier_wait(&memory.dq_empty, dq_parity);
        ptx::wgmma_wait<1>();  // dQ is there; dK is not
        hold(dq);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            memory.dq[group][i * kWarpgroup + static_cast<int>(threadIdx.x) % kWarpgroup] = {
                dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]};
        ptx::fence_proxy_async();
        ptx::mbarrier_arrive(&memory.dq_full);
        ptx::wgmma_wait<0>();  // dK is there
        hold(dk);
        release(&memory.q_empty[stage]);
        stage = at_q.stage;
    }
    store_keys<T, D>(problem.dk, keys.head, keys.first + group * 64, dk, problem.scale);
    store_keys<T, D>(problem.dv, keys.head, keys.first + group * 64, dv, 1.0f);
}

// dq = scale times the sums, which are in the order of registers. A thread has 8 columns of a row.
template <class T, int D>
__global__ void finish_queries(const HeadsView<T> dq, const float* sums, int row_tiles, float scale,
                               std::size_t packs) {
    constexpr int ROWS = kRows<D>;
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= packs) return;
    const int pack = static_cast<int>(index % (D / 8));
    const std::size_t row = index / (D / 8) % dq.extents().length;
    const std::size_t head = index / (D / 8) / dq.extents().length;
    if (pack * 8 >= dq.dim()) return;
    const std::size_t tile = row / ROWS;
    const auto in_tile = static_cast<int>(row % ROWS);
    const int group = D == 64 ? in_tile / 64 : pack / 8;
    const int in_part = in_tile % 64;
    const float* const part = sums + ((head * static_cast<std::size_t>(row_tiles) + tile) * kConsumers +
                                      static_cast<std::size_t>(group)) *
                                         kPart;
    // Registers 4 j + 2 h and the next one, of lanes 4 g to 4 g + 3.
    const int j = pack % 8;
    const int thread = in_part / 16 * 32 + in_part % 8 * 4;
    const int h = in_part / 8 % 2;
    unsigned bits[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        const float2 two = *reinterpret_cast<const float2*>(part + (j * kWarpgroup + thread + t) * 4 + h * 2);
        bits[t] = pair<T>(two.x * scale, two.y * scale);
    }
    *reinterpret_cast<uint4*>(row_of(dq, head, row) + pack * 8) = {bits[0], bits[1], bits[2], bits[3]};
}

}  // namespace day34
