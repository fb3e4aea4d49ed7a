// Block-wide primitives of CUB. All threads store their values in the temporary storage; after a
// barrier the first thread combines them in order. As in CUB, a barrier is needed before the
// storage is reused; an inspection finds that it is missing (StorageUse).
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <algorithm>
#include <vector>

#include "cuda_on_cpu/cub/warp.h"
#include "cuda_on_cpu/host_memory.h"

namespace cub {

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS,
    BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <int X, int Y, int Z>
__device__ unsigned RowMajorTid(int = 0, int = 0, int = 0) {
    return threadIdx.x + X * (threadIdx.y + Y * threadIdx.z);
}

// The first member of every temporary storage. An operation begins with a write by the block's
// first thread, and ends with reads by all. So without a barrier between two operations on one
// storage, or on two in a union, the inspector sees a race.
struct StorageUse {
    unsigned word;
    __device__ void begin(unsigned thread) {
        if (thread == 0) word = 0;
    }
    // A volatile copy, so that the compiler keeps the read.
    __device__ void end() const {
        const volatile unsigned seen = word;
        static_cast<void>(seen);
    }
};
template <class T, int Count>
struct UsedValues {
    StorageUse use;
    ThreadValues<T, Count> values;
    __device__ T& operator[](unsigned i) { return values[i]; }
};

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce {
    static constexpr int kThreads = X * Y * Z;

  public:
    using TempStorage = UsedValues<T, kThreads>;

    __device__ explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

    // The result is valid in thread 0. `valid` is the number of threads, from the first, that take
    // part.
    template <class Operator>
    __device__ T Reduce(T input, Operator combine, int valid = kThreads) {
        const unsigned thread = RowMajorTid<X, Y, Z>();
        storage_.use.begin(thread);
        storage_[thread] = input;
        __syncthreads();
        T sum = input;
        for (int i = 1; thread == 0 && i < valid; ++i)
            sum = combine(sum, storage_[i]);
        storage_.use.end();
        return sum;
    }
    template <int Items, class Operator>
    __device__ T Reduce(T (&inputs)[Items], Operator combine) {
        T sum = inputs[0];
        for (int i = 1; i < Items; ++i)
            sum = combine(sum, inputs[i]);
        return Reduce(sum, combine);
    }
    __device__ T Sum(T input, int valid = kThreads) { return Reduce(input, cub::Sum(), valid); }
    template <int Items>
    __device__ T Sum(T (&inputs)[Items]) {
        return Reduce(inputs, cub::Sum());
    }

  private:
    TempStorage& storage_;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
    static constexpr int kThreads = X * Y * Z;

  public:
    struct TempStorage {
        StorageUse use;
        // The inputs, then for each thread the combination of all values before its own.
        ThreadValues<T, kThreads> values;
        // Of the block, and the prefix.
        ThreadValues<T, 2> aggregate;
    };

    __device__ explicit BlockScan(TempStorage& storage) : storage_(storage) {}

    __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, Sum()); }
    __device__ void InclusiveSum(T input, T& output, T& aggregate) {
        InclusiveScan(input, output, Sum(), aggregate);
    }
    template <class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void InclusiveSum(T input, T& output,
                                                                          Prefix& prefix) {
        InclusiveScan(input, output, Sum(), prefix);
    }
    __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), Sum()); }
    __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
        ExclusiveScan(input, output, T(0), Sum(), aggregate);
    }
    template <class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void ExclusiveSum(T input, T& output,
                                                                          Prefix& prefix) {
        ExclusiveScan(input, output, Sum(), prefix);
    }
    template <int Items, class... Rest>
    __device__ void InclusiveSum(T (&input)[Items], T (&output)[Items], Rest&... rest) {
        InclusiveScan(input, output, Sum(), rest...);
    }
    template <int Items>
    __device__ void ExclusiveSum(T (&input)[Items], T (&output)[Items]) {
        ExclusiveScan(input, output, T(0), Sum());
    }
    template <int Items>
    __device__ void ExclusiveSum(T (&input)[Items], T (&output)[Items], T& aggregate) {
        ExclusiveScan(input, output, T(0), Sum(), aggregate);
    }
    template <int Items, class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void ExclusiveSum(T (&input)[Items],
                                                                          T (&output)[Items],
                                                                          Prefix& prefix) {
        ExclusiveScan(input, output, Sum(), prefix);
    }

    template <class Operator>
    __device__ void InclusiveScan(T input, T& output, Operator combine) {
        T aggregate;
        InclusiveScan(input, output, combine, aggregate);
    }
    template <class Operator>
    __device__ void InclusiveScan(T input, T& output, Operator combine, T& aggregate) {
        T before = input;
        const bool first = !scan(input, before, combine, aggregate);
        output = first ? input : combine(before, input);
    }
    // The first warp calls `prefix(aggregate)`, which returns the value that precedes the block.
    template <class Operator, class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void InclusiveScan(T input, T& output,
                                                                           Operator combine, Prefix& prefix) {
        ExclusiveScan(input, output, combine, prefix);
        output = combine(output, input);
    }
    template <class Operator>
    __device__ void ExclusiveScan(T input, T& output, T initial, Operator combine) {
        T aggregate;
        ExclusiveScan(input, output, initial, combine, aggregate);
    }
    template <class Operator>
    __device__ void ExclusiveScan(T input, T& output, T initial, Operator combine, T& aggregate) {
        T before = input;
        const bool first = !scan(input, before, combine, aggregate);
        output = first ? initial : combine(initial, before);
    }
    template <class Operator, class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void ExclusiveScan(T input, T& output,
                                                                           Operator combine, Prefix& prefix) {
        T before = input, aggregate;
        const bool first = !scan(input, before, combine, aggregate);
        if (RowMajorTid<X, Y, Z>() < 32) {
            const T value = prefix(aggregate);
            if (RowMajorTid<X, Y, Z>() == 0) storage_.aggregate[1] = value;
        }
        __syncthreads();
        output = first ? storage_.aggregate[1] : combine(storage_.aggregate[1], before);
        storage_.use.end();
    }
    // Without an initial value thread 0's output is undefined.
    template <class Operator>
    __device__ void ExclusiveScan(T input, T& output, Operator combine) {
        T aggregate;
        scan(input, output, combine, aggregate);
    }

    // Several consecutive items for each thread; `rest` as above.
    template <int Items, class Operator>
    __device__ void InclusiveScan(T (&input)[Items], T (&output)[Items], Operator combine) {
        T aggregate;
        InclusiveScan(input, output, combine, aggregate);
    }
    template <int Items, class Operator>
    __device__ void InclusiveScan(T (&input)[Items], T (&output)[Items], Operator combine, T& aggregate) {
        T before = input[0];
        const bool first = !scan(total(input, combine), before, combine, aggregate);
        for (int i = 0; i < Items; ++i) {
            before = i == 0 && first ? input[0] : combine(before, input[i]);
            output[i] = before;
        }
    }
    template <int Items, class Operator, class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void InclusiveScan(T (&input)[Items],
                                                                           T (&output)[Items],
                                                                           Operator combine, Prefix& prefix) {
        T before;
        ExclusiveScan(total(input, combine), before, combine, prefix);
        for (int i = 0; i < Items; ++i) {
            before = combine(before, input[i]);
            output[i] = before;
        }
    }
    template <int Items, class Operator, class... Rest>
    __device__ void ExclusiveScan(T (&input)[Items], T (&output)[Items], T initial, Operator combine,
                                  Rest&... rest) {
        T before;
        ExclusiveScan(total(input, combine), before, initial, combine, rest...);
        spread(input, output, before, combine);
    }
    template <int Items, class Operator, class Prefix>
    requires std::is_invocable_v<Prefix&, T> __device__ void ExclusiveScan(T (&input)[Items],
                                                                           T (&output)[Items],
                                                                           Operator combine, Prefix& prefix) {
        T before;
        ExclusiveScan(total(input, combine), before, combine, prefix);
        spread(input, output, before, combine);
    }

  private:
    // `before` becomes the combination of all values before this thread's; returns false if there
    // are none.
    template <class Operator>
    __device__ bool scan(const T& input, T& before, Operator combine, T& aggregate) {
        const unsigned thread = RowMajorTid<X, Y, Z>();
        storage_.use.begin(thread);
        storage_.values[thread] = input;
        __syncthreads();
        if (thread == 0) {
            T sum = input;
            for (int i = 1; i < kThreads; ++i) {
                const T item = storage_.values[i];
                storage_.values[i] = sum;
                sum = combine(sum, item);
            }
            storage_.aggregate[0] = sum;
        }
        __syncthreads();
        aggregate = storage_.aggregate[0];
        if (thread > 0) before = storage_.values[thread];
        storage_.use.end();
        return thread > 0;
    }
    template <int Items, class Operator>
    __device__ static T total(T (&input)[Items], Operator combine) {
        T sum = input[0];
        for (int i = 1; i < Items; ++i)
            sum = combine(sum, input[i]);
        return sum;
    }
    template <int Items, class Operator>
    __device__ static void spread(T (&input)[Items], T (&output)[Items], T before, Operator combine) {
        for (int i = 0; i < Items; ++i) {
            const T item = input[i];
            output[i] = before;
            before = combine(before, item);
        }
    }

    TempStorage& storage_;
};

template <class T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int = 0>
class BlockLoad {
    static constexpr int kThreads = X * Y * Z;
    static constexpr bool kTransposes = Algorithm >= BLOCK_LOAD_TRANSPOSE;

  public:
    using TempStorage = UsedValues<T, kTransposes ? kThreads * Items : 1>;

    __device__ explicit BlockLoad(TempStorage& storage) : storage_(&storage) {}
    __device__ BlockLoad() : storage_(nullptr) {}

    template <class Iterator>
    __device__ void Load(Iterator from, T (&items)[Items], int valid = kThreads * Items) {
        load(from, items, valid, [](T&) {});
    }
    template <class Iterator, class Default>
    __device__ void Load(Iterator from, T (&items)[Items], int valid, Default otherwise) {
        load(from, items, valid, [&](T& item) { item = otherwise; });
    }

  private:
    template <class Iterator, class Otherwise>
    __device__ void load(Iterator from, T (&items)[Items], int valid, Otherwise otherwise) {
        const int thread = RowMajorTid<X, Y, Z>();
        constexpr bool kStriped = kTransposes || Algorithm == BLOCK_LOAD_STRIPED;
        if constexpr (kTransposes) storage_->use.begin(static_cast<unsigned>(thread));
        for (int i = 0; i < Items; ++i) {
            const int position = kStriped ? i * kThreads + thread : thread * Items + i;
            otherwise(items[i]);
            if (position < valid) items[i] = from[position];
            if constexpr (kTransposes) (*storage_)[position] = items[i];
        }
        if constexpr (kTransposes) {
            __syncthreads();
            for (int i = 0; i < Items; ++i)
                items[i] = (*storage_)[thread * Items + i];
            storage_->use.end();
        }
    }

    TempStorage* storage_;
};

template <class T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int = 0>
class BlockStore {
    static constexpr int kThreads = X * Y * Z;
    static constexpr bool kTransposes = Algorithm >= BLOCK_STORE_TRANSPOSE;

  public:
    using TempStorage = UsedValues<T, kTransposes ? kThreads * Items : 1>;

    __device__ explicit BlockStore(TempStorage& storage) : storage_(&storage) {}
    __device__ BlockStore() : storage_(nullptr) {}

    template <class Iterator>
    __device__ void Store(Iterator to, T (&items)[Items], int valid = kThreads * Items) {
        const int thread = RowMajorTid<X, Y, Z>();
        if constexpr (kTransposes) {
            storage_->use.begin(static_cast<unsigned>(thread));
            for (int i = 0; i < Items; ++i)
                (*storage_)[thread * Items + i] = items[i];
            __syncthreads();
        }
        constexpr bool kStriped = kTransposes || Algorithm == BLOCK_STORE_STRIPED;
        for (int i = 0; i < Items; ++i) {
            const int position = kStriped ? i * kThreads + thread : thread * Items + i;
            if (position >= valid) continue;
            if constexpr (kTransposes) {
                to[position] = (*storage_)[position];
            } else {
                to[position] = items[i];
            }
        }
        if constexpr (kTransposes) storage_->use.end();
    }

  private:
    TempStorage* storage_;
};

// Blocked: thread t holds Items consecutive items. Striped: its items are as many positions apart
// as the block has threads.
template <class T, int X, int Items, bool = false, int Y = 1, int Z = 1, int = 0>
class BlockExchange {
    static constexpr int kThreads = X * Y * Z;

  public:
    using TempStorage = UsedValues<T, kThreads * Items>;

    __device__ explicit BlockExchange(TempStorage& storage) : storage_(storage) {}

    template <class Output>
    __device__ void StripedToBlocked(const T (&input)[Items], Output (&output)[Items]) {
        exchange(
            input, output, [](int thread, int i) { return i * kThreads + thread; },
            [](int thread, int i) { return thread * Items + i; });
    }
    template <class Output>
    __device__ void BlockedToStriped(const T (&input)[Items], Output (&output)[Items]) {
        exchange(
            input, output, [](int thread, int i) { return thread * Items + i; },
            [](int thread, int i) { return i * kThreads + thread; });
    }
    // Item i goes to position ranks[i] of the block.
    template <class Output, class Rank>
    __device__ void ScatterToBlocked(const T (&input)[Items], Output (&output)[Items], Rank (&ranks)[Items]) {
        exchange(
            input, output, [&](int, int i) { return static_cast<int>(ranks[i]); },
            [](int thread, int i) { return thread * Items + i; });
    }
    template <class Output, class Rank>
    __device__ void ScatterToStriped(const T (&input)[Items], Output (&output)[Items], Rank (&ranks)[Items]) {
        exchange(
            input, output, [&](int, int i) { return static_cast<int>(ranks[i]); },
            [](int thread, int i) { return i * kThreads + thread; });
    }

  private:
    template <class Output, class To, class From>
    __device__ void exchange(const T (&input)[Items], Output (&output)[Items], To to, From from) {
        const int thread = RowMajorTid<X, Y, Z>();
        storage_.use.begin(static_cast<unsigned>(thread));
        for (int i = 0; i < Items; ++i)
            storage_[to(thread, i)] = input[i];
        __syncthreads();
        for (int i = 0; i < Items; ++i)
            output[i] = storage_[from(thread, i)];
        storage_.use.end();
    }

    TempStorage& storage_;
};

template <class Key, int X, int Items, class Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1, int = 0>
class BlockRadixSort {
    static constexpr int kThreads = X * Y * Z, kBits = 8 * sizeof(Key);

  public:
    struct TempStorage {
        StorageUse use;
        ThreadValues<Key, kThreads * Items> keys;
        ThreadValues<Value, kThreads * Items> values;
    };

    __device__ explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}

    __device__ void Sort(Key (&keys)[Items], int begin = 0, int end = kBits) {
        sort(keys, no_values_, begin, end, false, false);
    }
    __device__ void Sort(Key (&keys)[Items], Value (&values)[Items], int begin = 0, int end = kBits) {
        sort(keys, values, begin, end, false, false);
    }
    __device__ void SortDescending(Key (&keys)[Items], int begin = 0, int end = kBits) {
        sort(keys, no_values_, begin, end, true, false);
    }
    __device__ void SortDescending(Key (&keys)[Items], Value (&values)[Items], int begin = 0,
                                   int end = kBits) {
        sort(keys, values, begin, end, true, false);
    }
    __device__ void SortBlockedToStriped(Key (&keys)[Items], int begin = 0, int end = kBits) {
        sort(keys, no_values_, begin, end, false, true);
    }
    __device__ void SortBlockedToStriped(Key (&keys)[Items], Value (&values)[Items], int begin = 0,
                                         int end = kBits) {
        sort(keys, values, begin, end, false, true);
    }
    __device__ void SortDescendingBlockedToStriped(Key (&keys)[Items], int begin = 0, int end = kBits) {
        sort(keys, no_values_, begin, end, true, true);
    }
    __device__ void SortDescendingBlockedToStriped(Key (&keys)[Items], Value (&values)[Items], int begin = 0,
                                                   int end = kBits) {
        sort(keys, values, begin, end, true, true);
    }

  private:
    __device__ void sort(Key (&keys)[Items], Value (&values)[Items], int begin, int end, bool descending,
                         bool striped) {
        const int thread = RowMajorTid<X, Y, Z>();
        storage_.use.begin(static_cast<unsigned>(thread));
        for (int i = 0; i < Items; ++i) {
            storage_.keys[thread * Items + i] = keys[i];
            storage_.values[thread * Items + i] = values[i];
        }
        __syncthreads();
        if (thread == 0) {
            const cuda_on_cpu::UsesHostMemory for_all;
            std::vector<std::pair<Key, Value>> all;
            for (int i = 0; i < kThreads * Items; ++i)
                all.emplace_back(storage_.keys[i], storage_.values[i]);
            std::stable_sort(all.begin(), all.end(), [=](const auto& a, const auto& b) {
                const auto x = radix_of(a.first, begin, end), y = radix_of(b.first, begin, end);
                return descending ? y < x : x < y;
            });
            for (int i = 0; i < kThreads * Items; ++i) {
                storage_.keys[i] = all[i].first;
                storage_.values[i] = all[i].second;
            }
        }
        __syncthreads();
        for (int i = 0; i < Items; ++i) {
            const int position = striped ? i * kThreads + thread : thread * Items + i;
            keys[i] = storage_.keys[position];
            values[i] = storage_.values[position];
        }
        storage_.use.end();
    }

    TempStorage& storage_;
    Value no_values_[Items] = {};
};

// Counts how often each value occurs in the block's items. The counters may be in shared or in
// global memory. As in CUB, other threads need a barrier before they read them; BLOCK_HISTO_ATOMIC
// has no temporary storage to speak of.
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
template <class T, int X, int Items, int Bins, BlockHistogramAlgorithm Algorithm = BLOCK_HISTO_SORT,
          int Y = 1, int Z = 1, int = 0>
class BlockHistogram {
    static constexpr bool kSorts = Algorithm == BLOCK_HISTO_SORT;

  public:
    struct TempStorage {
        StorageUse use;
    };

    __device__ explicit BlockHistogram(TempStorage& storage) : storage_(storage) {}

    template <class Counter>
    __device__ void InitHistogram(Counter (&histogram)[Bins]) {
        for (int bin = RowMajorTid<X, Y, Z>(); bin < Bins; bin += X * Y * Z)
            histogram[bin] = 0;
    }
    template <class Counter>
    __device__ void Composite(T (&items)[Items], Counter (&histogram)[Bins]) {
        if constexpr (kSorts) {
            storage_.use.begin(RowMajorTid<X, Y, Z>());
            __syncthreads();
        }
        for (const T& item : items)
            atomicAdd(&histogram[static_cast<std::size_t>(item)], Counter{1});
        if constexpr (kSorts) storage_.use.end();
    }
    template <class Counter>
    __device__ void Histogram(T (&items)[Items], Counter (&histogram)[Bins]) {
        if constexpr (kSorts) storage_.use.begin(RowMajorTid<X, Y, Z>());
        InitHistogram(histogram);
        __syncthreads();
        Composite(items, histogram);
    }

  private:
    TempStorage& storage_;
};

// Flags items that differ from the previous one (heads) or the next one (tails).
template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockDiscontinuity {
    static constexpr int kThreads = X * Y * Z;

  public:
    struct TempStorage {
        StorageUse use;
        ThreadValues<T, kThreads> first, last;
    };

    __device__ explicit BlockDiscontinuity(TempStorage& storage) : storage_(storage) {}

    template <int Items, class Flag, class Differs>
    __device__ void FlagHeads(Flag (&flags)[Items], T (&items)[Items], Differs differs) {
        const int thread = share(items);
        for (int i = 0; i < Items; ++i)
            flags[i] = i > 0        ? static_cast<Flag>(differs(items[i - 1], items[i]))
                       : thread > 0 ? static_cast<Flag>(differs(storage_.last[thread - 1], items[0]))
                                    : static_cast<Flag>(1);
        storage_.use.end();
    }
    template <int Items, class Flag, class Differs>
    __device__ void FlagHeads(Flag (&flags)[Items], T (&items)[Items], Differs differs, T before_the_tile) {
        FlagHeads(flags, items, differs);
        if (RowMajorTid<X, Y, Z>() == 0) flags[0] = static_cast<Flag>(differs(before_the_tile, items[0]));
    }
    template <int Items, class Flag, class Differs>
    __device__ void FlagTails(Flag (&flags)[Items], T (&items)[Items], Differs differs) {
        const int thread = share(items);
        for (int i = 0; i < Items; ++i)
            flags[i] = i + 1 < Items ? static_cast<Flag>(differs(items[i], items[i + 1]))
                       : thread + 1 < kThreads
                           ? static_cast<Flag>(differs(items[i], storage_.first[thread + 1]))
                           : static_cast<Flag>(1);
        storage_.use.end();
    }
    template <int Items, class Flag, class Differs>
    __device__ void FlagTails(Flag (&flags)[Items], T (&items)[Items], Differs differs, T behind_the_tile) {
        FlagTails(flags, items, differs);
        if (RowMajorTid<X, Y, Z>() == kThreads - 1)
            flags[Items - 1] = static_cast<Flag>(differs(items[Items - 1], behind_the_tile));
    }

  private:
    template <int Items>
    __device__ int share(const T (&items)[Items]) {
        const int thread = RowMajorTid<X, Y, Z>();
        storage_.use.begin(static_cast<unsigned>(thread));
        storage_.first[thread] = items[0];
        storage_.last[thread] = items[Items - 1];
        __syncthreads();
        return thread;
    }

    TempStorage& storage_;
};

// Sorts the block's items by a comparison; equal items keep their order.
template <class Key, int X, int Items, class Value = NullType, int Y = 1, int Z = 1>
class BlockMergeSort {
    static constexpr int kThreads = X * Y * Z, kAll = kThreads * Items;

  public:
    struct TempStorage {
        StorageUse use;
        ThreadValues<Key, kAll> keys;
        ThreadValues<Value, kAll> values;
    };

    __device__ explicit BlockMergeSort(TempStorage& storage) : storage_(storage) {}

    template <class Less>
    __device__ void Sort(Key (&keys)[Items], Less less) {
        sort(keys, no_values_, less, kAll);
    }
    template <class Less>
    __device__ void Sort(Key (&keys)[Items], Less less, int valid, Key) {
        sort(keys, no_values_, less, valid);
    }
    template <class Less>
    __device__ void Sort(Key (&keys)[Items], Value (&values)[Items], Less less) {
        sort(keys, values, less, kAll);
    }
    template <class Less>
    __device__ void StableSort(Key (&keys)[Items], Less less) {
        sort(keys, no_values_, less, kAll);
    }
    template <class Less>
    __device__ void StableSort(Key (&keys)[Items], Value (&values)[Items], Less less) {
        sort(keys, values, less, kAll);
    }

  private:
    template <class Less>
    __device__ void sort(Key (&keys)[Items], Value (&values)[Items], Less less, int valid) {
        const int thread = RowMajorTid<X, Y, Z>();
        storage_.use.begin(static_cast<unsigned>(thread));
        for (int i = 0; i < Items; ++i) {
            storage_.keys[thread * Items + i] = keys[i];
            storage_.values[thread * Items + i] = values[i];
        }
        __syncthreads();
        if (thread == 0) {
            const cuda_on_cpu::UsesHostMemory for_all;
            std::vector<std::pair<Key, Value>> all;
            for (int i = 0; i < valid; ++i)
                all.emplace_back(storage_.keys[i], storage_.values[i]);
            std::stable_sort(all.begin(), all.end(),
                             [&](const auto& a, const auto& b) { return less(a.first, b.first); });
            for (int i = 0; i < valid; ++i) {
                storage_.keys[i] = all[i].first;
                storage_.values[i] = all[i].second;
            }
        }
        __syncthreads();
        for (int i = 0; i < Items; ++i) {
            keys[i] = storage_.keys[thread * Items + i];
            values[i] = storage_.values[thread * Items + i];
        }
        storage_.use.end();
    }

    TempStorage& storage_;
    Value no_values_[Items] = {};
};

}  // namespace cub

#include "cuda_on_cpu/macros_back.h"
