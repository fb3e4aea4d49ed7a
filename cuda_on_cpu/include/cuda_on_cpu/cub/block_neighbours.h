// Block-wide primitives of CUB in which a thread takes items of other threads: differences of
// adjacent items, shifts, and the decoding of run lengths. As in CUB, a barrier is needed before
// the temporary storage is reused.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include "cuda_on_cpu/cub/block.h"

namespace cub {

// out[i] = op(in[i], in[i - 1]) or op(in[i], in[i + 1]). The first, or last, item of the block
// stays as it is unless the item of the adjacent tile is given.
template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockAdjacentDifference {
    static constexpr int kThreads = X * Y * Z;

  public:
    struct TempStorage {
        ThreadValues<T, kThreads> first, last;
    };

    __device__ explicit BlockAdjacentDifference(TempStorage& storage) : storage_(storage) {}

    template <int Items, class Output, class Difference>
    __device__ void SubtractLeft(T (&in)[Items], Output (&out)[Items], Difference op) {
        left(in, out, op, kThreads * Items, nullptr);
    }
    template <int Items, class Output, class Difference>
    __device__ void SubtractLeft(T (&in)[Items], Output (&out)[Items], Difference op, T before_the_tile) {
        left(in, out, op, kThreads * Items, &before_the_tile);
    }
    // Items from `valid` on stay as they are.
    template <int Items, class Output, class Difference>
    __device__ void SubtractLeftPartialTile(T (&in)[Items], Output (&out)[Items], Difference op, int valid) {
        left(in, out, op, valid, nullptr);
    }
    template <int Items, class Output, class Difference>
    __device__ void SubtractLeftPartialTile(T (&in)[Items], Output (&out)[Items], Difference op, int valid,
                                            T before_the_tile) {
        left(in, out, op, valid, &before_the_tile);
    }
    template <int Items, class Output, class Difference>
    __device__ void SubtractRight(T (&in)[Items], Output (&out)[Items], Difference op) {
        right(in, out, op, kThreads * Items, nullptr);
    }
    template <int Items, class Output, class Difference>
    __device__ void SubtractRight(T (&in)[Items], Output (&out)[Items], Difference op, T behind_the_tile) {
        right(in, out, op, kThreads * Items, &behind_the_tile);
    }
    template <int Items, class Output, class Difference>
    __device__ void SubtractRightPartialTile(T (&in)[Items], Output (&out)[Items], Difference op, int valid) {
        right(in, out, op, valid, nullptr);
    }

  private:
    template <int Items>
    __device__ int share(const T (&items)[Items]) {
        const int thread = static_cast<int>(RowMajorTid<X, Y, Z>());
        storage_.first[thread] = items[0];
        storage_.last[thread] = items[Items - 1];
        __syncthreads();
        return thread;
    }
    // From the last item to the first: `in` and `out` may be the same array.
    template <int Items, class Output, class Difference>
    __device__ void left(T (&in)[Items], Output (&out)[Items], Difference op, int valid, const T* before) {
        const int thread = share(in);
        for (int i = Items - 1; i >= 0; --i) {
            const int place = thread * Items + i;
            if (place >= valid) {
                out[i] = in[i];
            } else if (i > 0) {
                out[i] = op(in[i], in[i - 1]);
            } else if (thread > 0) {
                out[i] = op(in[i], storage_.last[thread - 1]);
            } else {
                out[i] = before == nullptr ? static_cast<Output>(in[i]) : op(in[i], *before);
            }
        }
    }
    template <int Items, class Output, class Difference>
    __device__ void right(T (&in)[Items], Output (&out)[Items], Difference op, int valid, const T* behind) {
        const int thread = share(in);
        for (int i = 0; i < Items; ++i) {
            const int place = thread * Items + i;
            const bool is_last = place == kThreads * Items - 1;
            if (place + 1 >= valid) {
                out[i] = is_last && behind != nullptr ? op(in[i], *behind) : static_cast<Output>(in[i]);
            } else if (i + 1 < Items) {
                out[i] = op(in[i], in[i + 1]);
            } else {
                out[i] = op(in[i], storage_.first[thread + 1]);
            }
        }
    }

    TempStorage& storage_;
};

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockShuffle {
    static constexpr int kThreads = X * Y * Z;

  public:
    using TempStorage = ThreadValues<T, kThreads>;

    __device__ explicit BlockShuffle(TempStorage& storage) : storage_(storage) {}

    // The item of the thread `distance` places further; outside the block the output stays.
    __device__ void Offset(T in, T& out, int distance = 1) {
        const int from = share(in) + distance;
        if (from >= 0 && from < kThreads) out = storage_[static_cast<unsigned>(from)];
    }
    __device__ void Rotate(T in, T& out, unsigned distance = 1) {
        out = storage_[(static_cast<unsigned>(share(in)) + distance) % kThreads];
    }
    // All items of the block, one place up or down. The first, or last, item of the block stays.
    template <int Items>
    __device__ void Up(T (&in)[Items], T (&out)[Items]) {
        const int thread = share(in[Items - 1]);
        for (int i = Items - 1; i > 0; --i)
            out[i] = in[i - 1];
        if (thread > 0) out[0] = storage_[static_cast<unsigned>(thread - 1)];
    }
    template <int Items>
    __device__ void Up(T (&in)[Items], T (&out)[Items], T& last_of_block) {
        Up(in, out);
        last_of_block = storage_[kThreads - 1];
    }
    template <int Items>
    __device__ void Down(T (&in)[Items], T (&out)[Items]) {
        const int thread = share(in[0]);
        for (int i = 0; i + 1 < Items; ++i)
            out[i] = in[i + 1];
        if (thread + 1 < kThreads) out[Items - 1] = storage_[static_cast<unsigned>(thread + 1)];
    }
    template <int Items>
    __device__ void Down(T (&in)[Items], T (&out)[Items], T& first_of_block) {
        Down(in, out);
        first_of_block = storage_[0];
    }

  private:
    __device__ int share(const T& item) {
        const unsigned thread = RowMajorTid<X, Y, Z>();
        storage_[thread] = item;
        __syncthreads();
        return static_cast<int>(thread);
    }

    TempStorage& storage_;
};

// Runs of equal items, given as items and lengths, become those items again, a window of
// X * Y * Z * Decoded of them at a time.
template <class Item, int X, int Runs, int Decoded, class Offset = unsigned, int Y = 1, int Z = 1>
class BlockRunLengthDecode {
    static constexpr int kThreads = X * Y * Z, kRuns = kThreads * Runs;

  public:
    struct TempStorage {
        ThreadValues<Item, kRuns> items;
        ThreadValues<Offset, kRuns + 1> begins;
    };

    template <class Length, class Total>
    __device__ BlockRunLengthDecode(TempStorage& storage, Item (&items)[Runs], Length (&lengths)[Runs],
                                    Total& total)
        : storage_(storage) {
        const unsigned thread = RowMajorTid<X, Y, Z>();
        for (int i = 0; i < Runs; ++i) {
            storage_.items[thread * Runs + i] = items[i];
            storage_.begins[thread * Runs + i + 1] = static_cast<Offset>(lengths[i]);
        }
        if (thread == 0) storage_.begins[0] = 0;
        __syncthreads();
        if (thread == 0) {
            for (int i = 1; i <= kRuns; ++i)
                storage_.begins[i] += storage_.begins[i - 1];
        }
        __syncthreads();
        total = static_cast<Total>(storage_.begins[kRuns]);
    }
    // The first items of the runs instead of their lengths.
    __device__ BlockRunLengthDecode(TempStorage& storage, Item (&items)[Runs], Offset (&begins)[Runs])
        : storage_(storage) {
        const unsigned thread = RowMajorTid<X, Y, Z>();
        for (int i = 0; i < Runs; ++i) {
            storage_.items[thread * Runs + i] = items[i];
            storage_.begins[thread * Runs + i] = begins[i];
        }
        if (thread == 0) storage_.begins[kRuns] = static_cast<Offset>(-1);
        __syncthreads();
    }

    // With the place of each item in its run. Items behind the last run are those of the last run.
    template <class Relative>
    __device__ void RunLengthDecode(Item (&decoded)[Decoded], Relative (&places)[Decoded], Offset from = 0) {
        for (int i = 0; i < Decoded; ++i) {
            const auto at = static_cast<Offset>(from + RowMajorTid<X, Y, Z>() * Decoded + i);
            unsigned low = 0, high = kRuns;  // the last run that begins at or before `at`
            while (high - low > 1) {
                const unsigned middle = (low + high) / 2;
                (storage_.begins[middle] <= at ? low : high) = middle;
            }
            decoded[i] = storage_.items[low];
            places[i] = static_cast<Relative>(at - storage_.begins[low]);
        }
    }
    __device__ void RunLengthDecode(Item (&decoded)[Decoded], Offset from = 0) {
        Offset places[Decoded];
        RunLengthDecode(decoded, places, from);
    }

  private:
    TempStorage& storage_;
};

}  // namespace cub

#include "cuda_on_cpu/macros_back.h"
