// What bulk_operator_scan (bulk_operator.cuh) scans: 64-bit integers, and values by key.
#pragma once

#include "bulk_lookback.cuh"
#include "operator_scan.cuh"

namespace day16 {

// --- Operators -----------------------------------------------------------------------------------
//
// Each has its own warp scan. A warp holds several rows of values, a value of each row in each
// lane. All rows are scanned together, so that their shuffles overlap.
//   total(value)  the values of all lanes, combined in order; every lane gets it
//   scan(rows)    each row by itself: lane l gets the combined values of lanes 0 to l
//   Kept          some values in registers

struct Sum64 : Sum<std::uint64_t> {
    template <int kCount>
    struct Kept {
        Value values[kCount];
        __device__ void set(int i, Value value) { values[i] = value; }
        __device__ Value get(int i) const { return values[i]; }
    };
    static __device__ Value total(Value value) { return sum_of_warp(value); }
    template <int kCount>
    static __device__ void scan(Value (&rows)[kCount]) {
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
        for (int stride = 1; stride < kWarpSize; stride *= 2) {
#pragma unroll
            for (Value& value : rows) {
                const Value left = __shfl_up_sync(kWholeWarp, value, stride);
                if (lane >= stride) value += left;
            }
        }
    }
};

// A vote gives all lanes the starts of segments, so only sums are shuffled.
struct SegmentedSumOfWarp : SegmentedSum {
    template <int kCount>
    struct Kept {
        float sums[kCount];
        unsigned begins;  // bit i is that of value i
        __device__ void set(int i, const Value& value) {
            sums[i] = value.sum;
            begins = i == 0 ? 0 : begins;
            if (value.begins) begins |= 1U << i;
        }
        __device__ Value get(int i) const { return {sums[i], begins >> i & 1}; }
    };
    static __device__ Value total(Value value) {
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
        const unsigned heads = __ballot_sync(kWholeWarp, value.begins != 0);
        const int last = heads != 0 ? kWarpSize - 1 - __clz(static_cast<int>(heads)) : 0;
        return {sum_of_warp(lane >= last ? value.sum : 0), heads};
    }
    template <int kCount>
    static __device__ void scan(Value (&rows)[kCount]) {
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
        int first[kCount];  // the lane where this lane's segment starts
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            rows[i].begins =
                __ballot_sync(kWholeWarp, rows[i].begins != 0) & (kWholeWarp >> (kWarpSize - 1 - lane));
            first[i] = rows[i].begins != 0 ? kWarpSize - 1 - __clz(static_cast<int>(rows[i].begins)) : 0;
        }
#pragma unroll
        for (int stride = 1; stride < kWarpSize; stride *= 2) {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                const float left = __shfl_up_sync(kWholeWarp, rows[i].sum, stride);
                if (lane >= first[i] + stride) rows[i].sum += left;
            }
        }
    }
};

// --- Sources -------------------------------------------------------------------------------------
//
// A source provides the elements. Its Stage is a tile in shared memory: kRows rows of packs
// for each warp, as in bulk_lookback. A pack is 16 bytes of the output, and the lanes of a warp
// read theirs at the same time. These sizes were the fastest of those tried.

struct Integers {
    using Op = Sum64;
    using Out = std::uint64_t;
    static constexpr int kThreads = 384;
    static constexpr unsigned kStages = 6;
    static constexpr int kPack = 2;
    static constexpr int kRows = 6;
    static constexpr int kTile = kThreads * kRows * kPack;  // 4,608
    struct alignas(16) Stage {
        std::uint64_t in[kTile];
    };
    const std::uint64_t* in;
    std::uint64_t* out;

    static __device__ unsigned bytes(std::size_t) { return sizeof(Stage); }
    __device__ void copy(Stage& stage, std::size_t first, ptx::MBarrier* full) const {
        ptx::bulk_load(stage.in, in + first, sizeof(stage.in), full);
    }
    __device__ void read(const Stage& stage, std::size_t, int pack, std::uint64_t (&values)[kPack]) const {
        const auto both = *reinterpret_cast<const ulonglong2*>(&stage.in[pack * kPack]);
        values[0] = both.x;
        values[1] = both.y;
    }
    __device__ std::uint64_t load(std::size_t i) const { return in[i]; }
    static __device__ std::uint64_t result(std::uint64_t sum) { return sum; }
};

struct ValuesByKey {
    using Op = SegmentedSumOfWarp;
    using Out = float;
    static constexpr int kThreads = 512;
    static constexpr unsigned kStages = 3;
    static constexpr int kPack = 4;
    static constexpr int kRows = 4;
    static constexpr int kTile = kThreads * kRows * kPack;  // 8,192
    struct alignas(16) Stage {
        std::int32_t before[kPack];  // the last of them is the key before the tile
        std::int32_t keys[kTile];
        float values[kTile];
    };
    const std::int32_t* keys;
    const float* values;
    float* out;

    static __device__ unsigned bytes(std::size_t first) {
        return sizeof(Stage) - (first == 0 ? sizeof(Stage::before) : 0);
    }
    __device__ void copy(Stage& stage, std::size_t first, ptx::MBarrier* full) const {
        if (first > 0) ptx::bulk_load(stage.before, keys + first - kPack, sizeof(stage.before), full);
        ptx::bulk_load(stage.keys, keys + first, sizeof(stage.keys), full);
        ptx::bulk_load(stage.values, values + first, sizeof(stage.values), full);
    }
    __device__ void read(const Stage& stage, std::size_t first, int pack,
                         SegmentedSum::Value (&elements)[kPack]) const {
        const int4 key = *reinterpret_cast<const int4*>(&stage.keys[pack * kPack]);
        const float4 value = *reinterpret_cast<const float4*>(&stage.values[pack * kPack]);
        int left = __shfl_up_sync(kWholeWarp, key.w, 1);
        if (threadIdx.x % kWarpSize == 0) {
            if (pack > 0)
                left = stage.keys[pack * kPack - 1];
            else
                left = first > 0 ? stage.before[kPack - 1] : key.x;
        }
        elements[0] = {value.x, key.x != left ? 1U : 0U};
        elements[1] = {value.y, key.y != key.x ? 1U : 0U};
        elements[2] = {value.z, key.z != key.y ? 1U : 0U};
        elements[3] = {value.w, key.w != key.z ? 1U : 0U};
    }
    __device__ SegmentedSum::Value load(std::size_t i) const {
        return {values[i], i > 0 && keys[i] != keys[i - 1] ? 1U : 0U};
    }
    static __device__ float result(SegmentedSum::Value value) { return value.sum; }
};

}  // namespace day16
