// Warp-wide primitives of CUB. The lanes store their values in the temporary storage; the first
// lane, or each lane, combines them in order.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include "cuda_on_cpu/cub/types.h"

namespace cub {

__device__ inline unsigned LaneId() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}
__device__ inline unsigned WarpId() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

// Values of `Count` threads in raw storage: variables in shared memory cannot have constructors.
template <class T, int Count>
struct ThreadValues {
    alignas(T) unsigned char bytes[Count * sizeof(T)];
    __device__ T& operator[](unsigned i) { return reinterpret_cast<T*>(bytes)[i]; }
};

// The lanes that work together.
template <int Threads>
struct LogicalWarp {
    static_assert(Threads >= 1 && Threads <= 32);
    // `Threads` is not a power of two: the logical warp consists of the warp's first lanes.
    static constexpr bool kWhole = (32 % Threads) != 0;

    unsigned lane = kWhole ? LaneId() : LaneId() % Threads;
    unsigned first = LaneId() - lane;

    // Its lanes that exist in the block.
    __device__ unsigned mask() const {
        const unsigned in_block = blockDim.x * blockDim.y * blockDim.z - 32 * WarpId();
        const unsigned count = in_block <= first            ? 0
                               : in_block - first < Threads ? in_block - first
                                                            : Threads;
        return (count == 32 ? ~0u : (1u << count) - 1) << first;
    }
    __device__ unsigned count() const { return __popc(mask()); }
};

template <class T, int Threads = 32, int = 0>
class WarpReduce {
  public:
    using TempStorage = ThreadValues<T, Threads>;

    __device__ explicit WarpReduce(TempStorage& storage) : storage_(storage) {}

    // The result is valid in the first lane. `valid` is the number of lanes, from the first, that
    // take part.
    template <class Operator>
    __device__ T Reduce(T input, Operator combine, int valid = Threads) {
        return reduce(input, combine, 0, valid);
    }
    __device__ T Sum(T input, int valid = Threads) { return Reduce(input, cub::Sum(), valid); }

    // Segments begin where a flag is set; the result is valid in each segment's first lane.
    template <class Operator, class Flag>
    __device__ T HeadSegmentedReduce(T input, Flag head, Operator combine) {
        const unsigned heads = __ballot_sync(warp_.mask(), head) >> warp_.first;
        return reduce(input, combine, warp_.lane, segment_end(heads >> 1 << 1));
    }
    template <class Flag>
    __device__ T HeadSegmentedSum(T input, Flag head) {
        return HeadSegmentedReduce(input, head, cub::Sum());
    }
    // Segments end where a flag is set.
    template <class Operator, class Flag>
    __device__ T TailSegmentedReduce(T input, Flag tail, Operator combine) {
        const unsigned tails = __ballot_sync(warp_.mask(), tail) >> warp_.first;
        return reduce(input, combine, warp_.lane, segment_end(tails << 1));
    }
    template <class Flag>
    __device__ T TailSegmentedSum(T input, Flag tail) {
        return TailSegmentedReduce(input, tail, cub::Sum());
    }

  private:
    // `begins` is the mask of lanes at which a segment begins. Returns the next one after this
    // lane.
    __device__ int segment_end(unsigned begins) const {
        const unsigned later = warp_.lane == 31 ? 0 : begins >> (warp_.lane + 1) << (warp_.lane + 1);
        return later == 0 ? Threads : __ffs(later) - 1;
    }
    template <class Operator>
    __device__ T reduce(T input, Operator combine, unsigned begin, int end) {
        storage_[warp_.lane] = input;
        __syncwarp(warp_.mask());
        const unsigned last = end < static_cast<int>(warp_.count()) ? end : warp_.count();
        T sum = input;
        if (warp_.lane == begin) {
            for (unsigned i = begin + 1; i < last; ++i)
                sum = combine(sum, storage_[i]);
        }
        __syncwarp(warp_.mask());
        return sum;
    }

    TempStorage& storage_;
    LogicalWarp<Threads> warp_;
};

template <class T, int Threads = 32, int = 0>
class WarpScan {
  public:
    using TempStorage = ThreadValues<T, Threads>;

    __device__ explicit WarpScan(TempStorage& storage) : storage_(storage) {}

    __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
    __device__ void InclusiveSum(T input, T& output, T& aggregate) {
        InclusiveScan(input, output, cub::Sum(), aggregate);
    }
    __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), cub::Sum()); }
    __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
        ExclusiveScan(input, output, T(0), cub::Sum(), aggregate);
    }

    template <class Operator>
    __device__ void InclusiveScan(T input, T& output, Operator combine) {
        T aggregate;
        InclusiveScan(input, output, combine, aggregate);
    }
    template <class Operator>
    __device__ void InclusiveScan(T input, T& output, Operator combine, T& aggregate) {
        share(input);
        output = storage_[0];
        for (unsigned i = 1; i <= warp_.lane; ++i)
            output = combine(output, storage_[i]);
        aggregate = output;
        for (unsigned i = warp_.lane + 1; i < warp_.count(); ++i)
            aggregate = combine(aggregate, storage_[i]);
        __syncwarp(warp_.mask());
    }
    template <class Operator>
    __device__ void ExclusiveScan(T input, T& output, T initial, Operator combine) {
        T aggregate;
        ExclusiveScan(input, output, initial, combine, aggregate);
    }
    template <class Operator>
    __device__ void ExclusiveScan(T input, T& output, T initial, Operator combine, T& aggregate) {
        share(input);
        T before = initial;
        for (unsigned i = 0; i < warp_.lane; ++i)
            before = combine(before, storage_[i]);
        aggregate = storage_[0];
        for (unsigned i = 1; i < warp_.count(); ++i)
            aggregate = combine(aggregate, storage_[i]);
        output = before;
        __syncwarp(warp_.mask());
    }
    // Without an initial value the first lane's output is undefined.
    template <class Operator>
    __device__ void ExclusiveScan(T input, T& output, Operator combine) {
        share(input);
        if (warp_.lane > 0) {
            T before = storage_[0];
            for (unsigned i = 1; i < warp_.lane; ++i)
                before = combine(before, storage_[i]);
            output = before;
        }
        __syncwarp(warp_.mask());
    }
    __device__ T Broadcast(T input, unsigned source) {
        share(input);
        const T value = storage_[source];
        __syncwarp(warp_.mask());
        return value;
    }

  private:
    __device__ void share(const T& input) {
        storage_[warp_.lane] = input;
        __syncwarp(warp_.mask());
    }

    TempStorage& storage_;
    LogicalWarp<Threads> warp_;
};

}  // namespace cub

#include "cuda_on_cpu/macros_back.h"
