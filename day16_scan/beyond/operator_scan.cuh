// Day 16, beyond sums: a scan with any associative operator.
//
// An operator is a type with a Value (a multiple of 4 bytes), its neutral element, and a function
// apply(left, right) that need not commute. Segments, keys and recurrences are operators, too.
#pragma once

#include "look_back.cuh"

namespace day16 {

template <class T>
struct Sum {
    using Value = T;
    static __host__ __device__ Value neutral() { return 0; }
    static __host__ __device__ Value apply(Value left, Value right) { return left + right; }
};

// Sums that restart in each segment. A value describes a range of elements: `begins` is set if a
// segment starts in the range, and `sum` is the sum of the range's last segment. If a segment
// starts in the right range, the left sum is ignored. S. Sengupta, M. Harris and others, "Scan
// primitives for GPU computing", 2007.
struct SegmentedSum {
    struct Value {
        float sum;
        unsigned begins;
    };
    static __host__ __device__ Value neutral() { return {0, 0}; }
    static __host__ __device__ Value apply(Value left, Value right) {
        return {right.begins ? right.sum : left.sum + right.sum, left.begins | right.begins};
    }
};

// The maps x -> factor x + offset, the left one first. Their scan solves the recurrence x[i] =
// factor[i] x[i - 1] + offset[i]. G. Blelloch, "Prefix sums and their applications", 1990.
struct Affine {
    struct Value {
        float factor;
        float offset;
    };
    static __host__ __device__ Value neutral() { return {1, 0}; }
    static __host__ __device__ Value apply(Value left, Value right) {
        return {left.factor * right.factor, right.factor * left.offset + right.offset};
    }
};

// --- In a warp and in a block -----------------------------------------------------------------------

// `value` of the lane `distance` before this one (1) or after it (-1). Values are multiples of 4
// bytes.
template <int kDirection, class Value>
__device__ Value shuffle(const Value& value, int distance) {
    constexpr int kWords = sizeof(Value) / sizeof(unsigned);
    unsigned words[kWords];
    memcpy(words, &value, sizeof(value));
#pragma unroll
    for (unsigned& word : words)
        word = kDirection > 0 ? __shfl_up_sync(kWholeWarp, word, distance)
                              : __shfl_down_sync(kWholeWarp, word, distance);
    Value result;
    memcpy(&result, words, sizeof(result));
    return result;
}

// The combined values of all threads before this one in the block. `total` gets those of all
// threads.
template <class Op>
__device__ typename Op::Value combined_before(typename Op::Value value, typename Op::Value& total) {
    using Value = typename Op::Value;
    __shared__ Value of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const Value left = shuffle<1>(value, stride);
        if (lane >= stride) value = Op::apply(left, value);
    }
    const Value left = shuffle<1>(value, 1);
    if (lane == kWarpSize - 1) of_warp[warp] = value;
    __syncthreads();
    Value before = Op::neutral();
    total = Op::neutral();
    for (int w = 0; w < kWarps; ++w) {
        if (w == warp) before = total;
        total = Op::apply(total, of_warp[w]);
    }
    return lane == 0 ? before : Op::apply(before, left);
}

// --- Between blocks ---------------------------------------------------------------------------------

// A value of 8 bytes does not fit into a word with its state. Another block may observe two stores
// in either order, unless a fence separates them.
template <class Value>
struct Published {
    Board board;      // the words hold only states
    Value* sums;      // of each tile
    Value* prefixes;  // of each tile and all before it
};

template <class Value>
__device__ void publish(const Published<Value>& published, Draw drawn, State state, const Value& value) {
    (state == kSum ? published.sums : published.prefixes)[drawn.number] = value;
    __threadfence();  // release: a thread that reads the state can read the value
    store_relaxed(&published.board.words[drawn.number], make_word(drawn.launch, state, 0U));
}

// Like look_back(), but in order, because Op need not be commutative: the lane whose tile is
// further left has the left operand. Only lane 0 gets the result.
template <class Op>
__device__ typename Op::Value look_back_in_order(const Published<typename Op::Value>& published, Draw drawn) {
    using Value = typename Op::Value;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    Value result = Op::neutral();
    for (long long nearest = static_cast<long long>(drawn.number) - 1;; nearest -= kWarpSize) {
        const long long mine = nearest - lane;
        unsigned state = kPrefix;  // before the first tile
        do {
            if (mine >= 0) state = state_of(load_relaxed(&published.board.words[mine]), drawn.launch);
        } while (__any_sync(kWholeWarp, state == 0));
        __threadfence();  // acquire
        const unsigned prefixes = __ballot_sync(kWholeWarp, state == kPrefix);
        const int last = prefixes != 0 ? __ffs(static_cast<int>(prefixes)) - 1 : kWarpSize - 1;
        Value part = Op::neutral();
        if (mine >= 0 && lane <= last) part = (state == kSum ? published.sums : published.prefixes)[mine];
        for (int stride = 1; stride < kWarpSize; stride *= 2) {
            const Value left = shuffle<-1>(part, stride);
            if (lane + stride < kWarpSize) part = Op::apply(left, part);
        }
        result = Op::apply(part, result);  // complete in lane 0 only
        if (prefixes != 0) return result;
    }
}

// --- The kernel -------------------------------------------------------------------------------------

constexpr int kOwn = 11;                      // elements of a thread: odd, so reads have no conflicts
constexpr int kOperatorTile = kBlock * kOwn;  // 2,816

// Idea: decoupled_lookback with Op::apply in place of additions. load(i) makes the value of element
// i, store(i, value) takes the scan up to it.
// Cost removed: a kernel for each operator.
// Still limits it: values of 8 bytes need twice the shared memory and shuffles of floats.
template <class Op, class Load, class Store>
__global__ void __launch_bounds__(kBlock)
    operator_scan(Load load, Store store, std::size_t n, Published<typename Op::Value> published) {
    using Value = typename Op::Value;
    __shared__ Value tile[kOperatorTile];
    __shared__ Draw shared_draw;
    __shared__ Value before_tile;
    if (threadIdx.x == 0) shared_draw = draw(published.board, gridDim.x);
    __syncthreads();
    const Draw drawn = shared_draw;
    const std::size_t first = std::size_t{drawn.number} * kOperatorTile;

    for (int k = static_cast<int>(threadIdx.x); k < kOperatorTile; k += kBlock)
        tile[k] = first + k < n ? load(first + k) : Op::neutral();
    __syncthreads();
    Value own[kOwn];
    Value sum = Op::neutral();
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
        own[k] = tile[threadIdx.x * kOwn + k];
        sum = Op::apply(sum, own[k]);
    }
    Value total;
    const Value before = combined_before<Op>(sum, total);
    if (threadIdx.x < kWarpSize) {
        if (threadIdx.x == 0) publish(published, drawn, drawn.number == 0 ? kPrefix : kSum, total);
        Value found = Op::neutral();
        if (drawn.number > 0) {
            found = look_back_in_order<Op>(published, drawn);
            if (threadIdx.x == 0) publish(published, drawn, kPrefix, Op::apply(found, total));
        }
        if (threadIdx.x == 0) before_tile = found;
    }
    __syncthreads();
    sum = Op::apply(before_tile, before);
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
        sum = Op::apply(sum, own[k]);
        tile[threadIdx.x * kOwn + k] = sum;
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < kOperatorTile; k += kBlock)
        if (first + k < n) store(first + k, tile[k]);
}

}  // namespace day16
