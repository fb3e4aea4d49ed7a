// Sorting and merging: compare-and-swap networks, radix sort bit by bit, merge by binary search.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "textbook.cuh"

namespace {

constexpr int kBlock = 256;

// ---- Bitonic sort: Batcher, "Sorting networks and their applications", 1968 ---------------------

template <class T>
__device__ void compare_exchange(T& a, T& b, bool ascending) {
    if ((b < a) == ascending) {
        const T kept = a;
        a = b;
        b = kept;
    }
}

// A block sorts a power of two of values, two per thread, in shared memory.
template <class T>
__global__ void bitonic_shared(T* data) {
    extern __shared__ int raw[];
    T* const values = reinterpret_cast<T*>(raw);
    const unsigned n = 2 * blockDim.x;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        values[i] = data[i];
    for (unsigned run = 2; run <= n; run <<= 1) {
        for (unsigned distance = run / 2; distance > 0; distance >>= 1) {
            __syncthreads();
            const unsigned low = 2 * threadIdx.x - (threadIdx.x & (distance - 1));
            compare_exchange(values[low], values[low + distance], (low & run) == 0);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        data[i] = values[i];
}

TEST(TextbookSort, BitonicShared) {
    for (const int n : {2, 32, 64, 128, 1024, 2048}) {
        SCOPED_TRACE(n);
        std::vector<int> values = random_ints(n, n / 2);  // with repetitions
        int* const device = upload(values);
        bitonic_shared<<<1, n / 2, n * sizeof(int)>>>(device);
        std::sort(values.begin(), values.end());
        expect_same(download(device, values.size()), values);
        release(device);
    }
}

// One step of the network on data of any (power of two) length; the launch is the barrier between
// steps.
__global__ void bitonic_step(float* data, int distance, int run) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int partner = i ^ distance;
    if (partner > i) compare_exchange(data[i], data[partner], (i & run) == 0);
}

TEST(TextbookSort, BitonicGlobal) {
    for (const int n : {1, 2, 33, 255, 1025, 3000}) {
        SCOPED_TRACE(n);
        std::vector<float> values = random_floats(n);
        int padded = kBlock;
        while (padded < n)
            padded *= 2;
        std::vector<float> with_padding = values;
        with_padding.resize(padded, INFINITY);
        float* const device = upload(with_padding);
        for (int run = 2; run <= padded; run *= 2) {
            for (int distance = run / 2; distance > 0; distance /= 2) {
                bitonic_step<<<padded / kBlock, kBlock>>>(device, distance, run);
            }
        }
        std::sort(values.begin(), values.end());
        expect_same(download(device, values.size()), values);
        release(device);
    }
}

// In registers: partners exchange by shuffle.
__global__ void bitonic_warp(unsigned* data) {
    const unsigned lane = threadIdx.x % 32;
    unsigned value = data[blockIdx.x * blockDim.x + threadIdx.x];
    for (unsigned run = 2; run <= 32; run *= 2) {
        for (unsigned distance = run / 2; distance > 0; distance /= 2) {
            const unsigned other = __shfl_xor_sync(~0u, value, distance);
            const bool ascending = (lane & run) == 0;
            const bool lower = (lane & distance) == 0;
            value = lower == ascending ? min(value, other) : max(value, other);
        }
    }
    data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

TEST(TextbookSort, BitonicWarp) {
    std::vector<unsigned> values;
    for (const int value : random_ints(4 * 96, 1000000))
        values.push_back(static_cast<unsigned>(value));
    unsigned* const device = upload(values);
    bitonic_warp<<<4, 96>>>(device);
    for (std::size_t warp = 0; warp < values.size(); warp += 32) {
        std::sort(values.begin() + static_cast<long>(warp), values.begin() + static_cast<long>(warp) + 32);
    }
    expect_same(download(device, values.size()), values);
    release(device);
}

// Odd-even transposition sort, one block, until nothing changes.
__global__ void odd_even_sort(short* data, int n) {
    __shared__ short values[kBlock];
    const int t = threadIdx.x;
    if (t < n) values[t] = data[t];
    __syncthreads();
    int changed = 0;
    do {
        changed = 0;
        for (int parity = 0; parity < 2; ++parity) {
            if (t % 2 == parity && t + 1 < n && values[t + 1] < values[t]) {
                compare_exchange(values[t], values[t + 1], true);
                changed = 1;
            }
            __syncthreads();
        }
    } while (__syncthreads_or(changed));
    if (t < n) data[t] = values[t];
}

TEST(TextbookSort, OddEvenTransposition) {
    for (const int n : {1, 2, 31, 100, 256}) {
        SCOPED_TRACE(n);
        const std::vector<int> whole = random_ints(n, 1000);
        std::vector<short> values(whole.begin(), whole.end());
        short* const device = upload(values);
        odd_even_sort<<<1, kBlock>>>(device, n);
        std::sort(values.begin(), values.end());
        expect_same(download(device, values.size()), values);
        release(device);
    }
}

// ---- Radix sort ---------------------------------------------------------------------------------

// A block sorts kBlock keys by one bit after the other: zeros keep their order in front, ones
// theirs behind. The split counts with ballots: lanes before me in my warp, warps before mine in
// the block.
template <int kThreads>
class BlockSplit {
  public:
    struct Storage {
        int zeros_of_warp[kThreads / 32];
    };

    __device__ explicit BlockSplit(Storage& storage) : storage_(storage) {}

    // Where this thread's key goes.
    __device__ int place(bool one) {
        const unsigned zeros = __ballot_sync(0xffffffffu, !one);
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        if (lane == 0) storage_.zeros_of_warp[warp] = __popc(zeros);
        __syncthreads();
        int zeros_before = __popc(zeros & ((1u << lane) - 1));
        int all_zeros = 0;
        for (int w = 0; w < kThreads / 32; ++w) {
            if (w < warp) zeros_before += storage_.zeros_of_warp[w];
            all_zeros += storage_.zeros_of_warp[w];
        }
        __syncthreads();
        const int ones_before = static_cast<int>(threadIdx.x) - zeros_before;
        return one ? all_zeros + ones_before : zeros_before;
    }

  private:
    Storage& storage_;
};

template <int kThreads, class Key>
__global__ void __launch_bounds__(kThreads) radix_sort_block(Key* keys, int bits) {
    using Split = BlockSplit<kThreads>;
    __shared__ typename Split::Storage storage;
    __shared__ Key sorted[kThreads];
    Split split(storage);
    Key key = keys[blockIdx.x * kThreads + threadIdx.x];
    for (int bit = 0; bit < bits; ++bit) {
        sorted[split.place((key >> bit & 1) != 0)] = key;
        __syncthreads();
        key = sorted[threadIdx.x];  // the next split has barriers enough before `sorted` is written again
    }
    keys[blockIdx.x * kThreads + threadIdx.x] = key;
}

TEST(TextbookSort, RadixInBlocks) {
    constexpr int kBits = 20;
    Random random;
    std::vector<std::uint64_t> keys(3 * kBlock);
    for (auto& key : keys)
        key = static_cast<std::uint64_t>(random.below(1 << kBits));
    std::uint64_t* const device = upload(keys);
    radix_sort_block<kBlock><<<3, kBlock>>>(device, kBits);
    for (int b = 0; b < 3; ++b)
        std::sort(keys.begin() + b * kBlock, keys.begin() + (b + 1) * kBlock);
    expect_same(download(device, keys.size()), keys);
    release(device);
}

// Over many blocks, four bits at a time: count the digits of each block, scan the counts, scatter.
constexpr int kDigitBits = 4;
constexpr int kDigits = 1 << kDigitBits;

__device__ unsigned digit_of(unsigned key, int shift) {
    return key >> shift & (kDigits - 1);
}

// counts[digit][block], so that one scan gives every block its place for every digit.
__global__ void count_digits(const unsigned* keys, int* counts, int n, int shift) {
    __shared__ int histogram[kDigits];
    if (threadIdx.x < kDigits) histogram[threadIdx.x] = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&histogram[digit_of(keys[i], shift)], 1);
    __syncthreads();
    if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = histogram[threadIdx.x];
}

// One thread is enough here.
__global__ void scan_counts(int* counts, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        const int count = counts[i];
        counts[i] = sum;
        sum += count;
    }
}

__global__ void scatter_by_digit(const unsigned* keys, const int* values, unsigned* keys_out, int* values_out,
                                 const int* places, int n, int shift) {
    __shared__ unsigned digits[kBlock];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned digit = i < n ? digit_of(keys[i], shift) : kDigits;
    digits[threadIdx.x] = digit;
    __syncthreads();
    if (i >= n) return;
    int equal_before = 0;
    for (unsigned t = 0; t < threadIdx.x; ++t)
        equal_before += digits[t] == digit ? 1 : 0;
    const int place = places[digit * gridDim.x + blockIdx.x] + equal_before;
    keys_out[place] = keys[i];
    values_out[place] = values[i];
}

TEST(TextbookSort, RadixPairsOverManyBlocks) {
    for (const int n : {1, 255, 256, 257, 2999}) {
        SCOPED_TRACE(n);
        std::vector<std::pair<unsigned, int>> pairs;
        const std::vector<int> numbers = random_ints(n, 500);
        for (int i = 0; i < n; ++i)
            pairs.emplace_back(static_cast<unsigned>(numbers[i] + 500), i);
        std::vector<unsigned> keys;
        std::vector<int> values;
        for (const auto& [key, value] : pairs) {
            keys.push_back(key);
            values.push_back(value);
        }
        const int blocks = ceil_div(n, kBlock);
        unsigned* from_keys = upload(keys);
        unsigned* to_keys = device_array<unsigned>(keys.size());
        int* from_values = upload(values);
        int* to_values = device_array<int>(values.size());
        int* const counts = device_array<int>(kDigits * blocks);
        for (int shift = 0; shift < 12; shift += kDigitBits) {
            count_digits<<<blocks, kBlock>>>(from_keys, counts, n, shift);
            scan_counts<<<1, 1>>>(counts, kDigits * blocks);
            scatter_by_digit<<<blocks, kBlock>>>(from_keys, from_values, to_keys, to_values, counts, n,
                                                 shift);
            std::swap(from_keys, to_keys);
            std::swap(from_values, to_values);
        }
        std::stable_sort(pairs.begin(), pairs.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (int i = 0; i < n; ++i)
            std::tie(keys[i], values[i]) = pairs[i];
        expect_same(download(from_keys, keys.size()), keys);
        expect_same(download(from_values, values.size()), values);  // stable
        release(from_keys, to_keys, from_values, to_values, counts);
    }
}

// ---- Merge: Green, Odeh, Birk, "Merge path", 2012 -----------------------------------------------

// How many of the first `diagonal` merged values come from a.
__host__ __device__ int merge_path(const int* a, int a_count, const int* b, int b_count, int diagonal) {
    int low = max(0, diagonal - b_count);
    int high = min(diagonal, a_count);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Each thread merges kPerThread values, wherever its piece begins.
template <int kPerThread>
__global__ void merge_sorted(const int* __restrict__ a, int a_count, const int* __restrict__ b, int b_count,
                             int* __restrict__ out) {
    const int diagonal = (blockIdx.x * blockDim.x + threadIdx.x) * kPerThread;
    if (diagonal >= a_count + b_count) return;
    int i = merge_path(a, a_count, b, b_count, diagonal);
    int j = diagonal - i;
    for (int k = 0; k < kPerThread && diagonal + k < a_count + b_count; ++k) {
        const bool take_a = j == b_count || (i < a_count && a[i] <= b[j]);
        out[diagonal + k] = take_a ? a[i++] : b[j++];
    }
}

TEST(TextbookSort, MergePath) {
    const std::vector<std::pair<int, int>> sizes = {{1, 1}, {1, 1000}, {999, 2}, {257, 511}, {1000, 1000}};
    for (const auto& [a_count, b_count] : sizes) {
        SCOPED_TRACE(testing::Message() << a_count << " and " << b_count);
        std::vector<int> a = random_ints(a_count, 300);
        std::vector<int> b = random_ints(b_count, 300, kSeed + 1);
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        std::vector<int> merged(a.size() + b.size());
        std::merge(a.begin(), a.end(), b.begin(), b.end(), merged.begin());
        int* const device_a = upload(a);
        int* const device_b = upload(b);
        int* const device_out = device_array<int>(merged.size());
        constexpr int kPerThread = 7;
        const int blocks = ceil_div(a_count + b_count, 128 * kPerThread);
        merge_sorted<kPerThread><<<blocks, 128>>>(device_a, a_count, device_b, b_count, device_out);
        expect_same(download(device_out, merged.size()), merged);
        release(device_a, device_b, device_out);
    }
}

// Merge sort, bottom up: the launch is the barrier between passes.
TEST(TextbookSort, MergeSort) {
    constexpr int kCount = 1500;
    std::vector<int> values = random_ints(kCount, 400);
    int* from = upload(values);
    int* to = device_array<int>(values.size());
    for (int width = 1; width < kCount; width *= 2) {
        for (int start = 0; start < kCount; start += 2 * width) {
            const int a_count = std::min(width, kCount - start);
            const int b_count = std::min(width, kCount - start - a_count);
            merge_sorted<16><<<ceil_div(a_count + b_count, 16 * 32), 32>>>(
                from + start, a_count, from + start + a_count, b_count, to + start);
        }
        std::swap(from, to);
    }
    std::sort(values.begin(), values.end());
    expect_same(download(from, values.size()), values);
    release(from, to);
}

}  // namespace
