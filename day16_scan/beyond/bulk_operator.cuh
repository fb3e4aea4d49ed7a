// Day 16: bulk_lookback with any operator. What it scans is in bulk_sources.cuh. Needs compute
// capability 9.0.
#pragma once

#include "bulk_lookback.cuh"
#include "operator_scan.cuh"

namespace day16 {

constexpr unsigned kOpAhead = 2;  // rounds between the publication of a tile's sum and its results

// --- Words ---------------------------------------------------------------------------------------

// A value of 8 bytes is published as two words, each with its half and the state. A reader has the
// value when both are of this launch, so no fence is needed.
struct Halves {
    Word low;
    Word high;
};

template <class Value>
__device__ void publish_halves(const Board& board, std::size_t tile, unsigned launch, const Value& value) {
    static_assert(sizeof(Value) == 8);
    unsigned halves[2];
    memcpy(halves, &value, sizeof(value));
    store_relaxed(&board.words[tile * 2], make_word(launch, kSum, halves[0]));
    store_relaxed(&board.words[tile * 2 + 1], make_word(launch, kSum, halves[1]));
}

__device__ inline Halves load_halves(const Board& board, std::size_t tile) {
    return {load_relaxed(&board.words[tile * 2]), load_relaxed(&board.words[tile * 2 + 1])};
}

__device__ inline bool arrived(const Halves& halves, unsigned launch) {
    return state_of(halves.low, launch) != 0 && state_of(halves.high, launch) != 0;
}

template <class Value>
__device__ Value value_of(const Halves& halves) {
    const unsigned bits[2] = {static_cast<unsigned>(halves.low), static_cast<unsigned>(halves.high)};
    Value value;
    memcpy(&value, bits, sizeof(value));
    return value;
}

// --- The kernel ----------------------------------------------------------------------------------

// The last lane's value.
template <class Value>
__device__ Value last_of_warp(const Value& value) {
    unsigned words[2];
    memcpy(words, &value, sizeof(value));
    for (unsigned& word : words)
        word = __shfl_sync(kWholeWarp, word, kWarpSize - 1);
    Value last;
    memcpy(&last, words, sizeof(last));
    return last;
}

// A block's shared memory. A Source defines the operator and the tile sizes, and provides the
// elements.
template <class Source>
struct OperatorStages {
    static constexpr int kOpWarps = Source::kThreads / kWarpSize;
    typename Source::Stage tiles[Source::kStages];
    typename Source::Op::Value before[kOpAhead + 1][kOpWarps];  // in the tile, of each warp's part
    ptx::MBarrier full[Source::kStages];
};

// Idea: bulk_lookback with Op::apply in place of additions. A tile is scanned when it arrives, as
// if nothing came before it. Each thread keeps its results in registers until kOpAhead rounds
// later, when the look-back has found what comes before.
// Cost removed: the stalls of operator_scan; and the second scan of bulk_lookback, which scans a
// tile once for its sum and once more for its results.
// Still limits it: memory bandwidth; values of 8 bytes take twice the shuffles.
//
// As for bulk_lookback, all blocks must run at the same time. Every run gives the same bits. All
// arrays of `source` are 16-byte aligned.
template <class Source>
__global__ void __launch_bounds__(Source::kThreads)
    bulk_operator_scan(Source source, std::size_t n, Board board) {
    using Op = typename Source::Op;
    using Value = typename Op::Value;
    constexpr int kOpWarps = OperatorStages<Source>::kOpWarps;
    constexpr unsigned kOpStages = Source::kStages;
    constexpr int kOpRows = Source::kRows;
    constexpr int kPack = Source::kPack;
    constexpr int kElements = Source::kTile;
    extern __shared__ __align__(128) unsigned char memory[];
    OperatorStages<Source>& shared = *reinterpret_cast<OperatorStages<Source>*>(memory);
    __shared__ Value of_warps[2][kOpWarps];
    __shared__ Value found[2][kOpWarps];
    __shared__ unsigned shared_launch;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const int my_pack = warp * kOpRows * kWarpSize + lane;
    const std::size_t blocks = gridDim.x;
    const std::size_t tiles = (n + kElements - 1) / kElements;
    const auto is_whole = [&](std::size_t tile) { return (tile + 1) * kElements <= n; };

    const auto begin_copy = [&](unsigned round) {
        const std::size_t tile = round * blocks + blockIdx.x;
        if (!is_whole(tile)) return;
        const unsigned stage = round % kOpStages;
        ptx::mbarrier_arrive_expect(&shared.full[stage], Source::bytes(tile * kElements));
        source.copy(shared.tiles[stage], tile * kElements, &shared.full[stage]);
    };
    const auto read_pack = [&](std::size_t tile, unsigned stage, int row, Value(&values)[kPack]) {
        const int pack = my_pack + row * kWarpSize;
        if (is_whole(tile)) return source.read(shared.tiles[stage], tile * kElements, pack, values);
        for (int k = 0; k < kPack; ++k) {
            const std::size_t i = tile * kElements + pack * kPack + k;
            values[k] = i < n ? source.load(i) : Op::neutral();
        }
    };

    if (threadIdx.x == 0) {
        for (ptx::MBarrier& full : shared.full)
            ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
        for (unsigned round = 0; round < kOpStages; ++round)
            begin_copy(round);
        shared_launch = draw(board, tiles * 2).launch;
    }
    __syncthreads();
    const unsigned launch = shared_launch;
    const int lookers = static_cast<int>(blocks + kWarpSize - 1) / kWarpSize;  // warps that look back

    Value prefix = Op::neutral();  // of all tiles before the one that this block stored last
    Halves word = {0, 0};          // of the tile that this thread looks at
        // This thread's elements of the newest tiles, scanned within the warp's part; the oldest
        // first.
    typename Op::template Kept<kOpRows * kPack> kept[kOpAhead + 1] = {};
    for (unsigned round = 0;; ++round) {
        // 1. The scan of this warp's part of this round's tile.
        const std::size_t tile = round * blocks + blockIdx.x;
        const unsigned stage = round % kOpStages;
        if (tile < tiles) {
            if (is_whole(tile)) ptx::mbarrier_wait(&shared.full[stage], round / kOpStages % 2);
            Value values[kOpRows][kPack];
            Value rows[kOpRows];
#pragma unroll
            for (int row = 0; row < kOpRows; ++row) {
                read_pack(tile, stage, row, values[row]);
#pragma unroll
                for (int k = 1; k < kPack; ++k)
                    values[row][k] = Op::apply(values[row][k - 1], values[row][k]);
                rows[row] = values[row][kPack - 1];
            }
            Op::scan(rows);
            Value before_row = Op::neutral();
#pragma unroll
            for (int row = 0; row < kOpRows; ++row) {
                const Value left = shuffle<1>(rows[row], 1);
                const Value before = lane == 0 ? before_row : Op::apply(before_row, left);
#pragma unroll
                for (int k = 0; k < kPack; ++k)
                    kept[kOpAhead].set(row * kPack + k, Op::apply(before, values[row][k]));
                before_row = Op::apply(before_row, last_of_warp(rows[row]));
            }
            if (lane == 0) of_warps[round % 2][warp] = before_row;
        }

        // 2. The look-back of the tile of kOpAhead rounds ago: at the tiles from old - blocks to
        //    old - 1.
        const std::size_t old = tile - kOpAhead * blocks;
        const bool has_old = round >= kOpAhead && old < tiles;
        if (has_old && warp < lookers) {
            const bool looks = threadIdx.x < blocks && old + threadIdx.x >= blocks;
            while (looks && !arrived(word, launch))
                word = load_halves(board, old - blocks + threadIdx.x);
            const Value of_words = Op::total(looks ? value_of<Value>(word) : Op::neutral());
            if (lane == 0) found[round % 2][warp] = of_words;
        }
        __syncthreads();  // of_warps and found are complete; all threads have read this round's stage
        if (threadIdx.x == 0) begin_copy(round + kOpStages);
        if (warp == kOpWarps - 1 && tile < tiles) {
            Value of_warp[] = {lane < kOpWarps ? of_warps[round % 2][lane] : Op::neutral()};
            Op::scan(of_warp);
            if (lane == kWarpSize - 1) publish_halves(board, tile, launch, of_warp[0]);
            const Value left = shuffle<1>(of_warp[0], 1);
            if (lane < kOpWarps)
                shared.before[round % (kOpAhead + 1)][lane] = lane == 0 ? Op::neutral() : left;
        }

        if (has_old) {
            // The words for the next round are loaded early; usually they have been published
            // already.
            word = {0, 0};
            if (threadIdx.x < blocks && old + blocks < tiles) word = load_halves(board, old + threadIdx.x);

            // 3. The results of that tile.
            prefix = Op::apply(prefix, Op::total(lane < lookers ? found[round % 2][lane] : Op::neutral()));
            const Value before = Op::apply(prefix, shared.before[(round - kOpAhead) % (kOpAhead + 1)][warp]);
#pragma unroll
            for (int row = 0; row < kOpRows; ++row) {
                typename Source::Out results[kPack];
#pragma unroll
                for (int k = 0; k < kPack; ++k)
                    results[k] = Source::result(Op::apply(before, kept[0].get(row * kPack + k)));
                store_pack(results, source.out, n, old * kElements + (my_pack + row * kWarpSize) * kPack);
            }
        } else if (round >= kOpAhead) {
            break;
        }
#pragma unroll
        for (unsigned newer = 1; newer <= kOpAhead; ++newer)
            kept[newer - 1] = kept[newer];
    }
}

}  // namespace day16
