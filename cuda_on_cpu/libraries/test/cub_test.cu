// CUB over the stand-in: the results of its warp-, block- and device-wide primitives. The tests
// also hold for NVIDIA's CUB on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <cub/cub.cuh>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace {

constexpr int kThreads = 128, kItems = 3;

template <class T>
class Device {
  public:
    explicit Device(const std::vector<T>& values) : size_(values.size()) {
        cudaMalloc(&pointer_, size_ * sizeof(T));
        cudaMemcpy(pointer_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    explicit Device(std::size_t size) : Device(std::vector<T>(size)) {}
    ~Device() { cudaFree(pointer_); }
    Device(const Device&) = delete;
    operator T*() const { return pointer_; }
    std::vector<T> values() const {
        std::vector<T> all(size_);
        EXPECT_EQ(cudaMemcpy(all.data(), pointer_, size_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return all;
    }

  private:
    std::size_t size_;
    T* pointer_ = nullptr;
};

std::vector<int> numbers(int count) {
    std::vector<int> all(count);
    for (int i = 0; i < count; ++i)
        all[i] = (i * 37 + 11) % 101 - 40;
    return all;
}

struct Even {
    __host__ __device__ bool operator()(int value) const { return value % 2 == 0; }
};

struct Greater {
    __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

struct RunningPrefix {
    int total;
    __device__ int operator()(int aggregate) {
        const int before = total;
        total += aggregate;
        return before;
    }
};

__global__ void reduce_block(const int* in, int* out) {
    using Reduce = cub::BlockReduce<int, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    const int sum = Reduce(storage).Sum(in[threadIdx.x]);
    __syncthreads();
    const int most = Reduce(storage).Reduce(in[threadIdx.x], Greater(), 50);
    __syncthreads();
    int items[] = {in[threadIdx.x], 1};
    const int both = Reduce(storage).Sum(items);
    if (threadIdx.x == 0) {
        out[0] = sum;
        out[1] = most;
        out[2] = both;
    }
}

// Two tiles with a running prefix; then the exclusive maximum, starting from -1000.
__global__ void scan_block(const int* in, int* inclusive, int* exclusive, int* largest, int* aggregate) {
    using Scan = cub::BlockScan<int, kThreads>;
    __shared__ typename Scan::TempStorage storage;
    RunningPrefix prefix{100};
    for (int tile = 0; tile < 2; ++tile) {
        int items[kItems], sums[kItems];
        const int begin = (tile * kThreads + threadIdx.x) * kItems;
        for (int i = 0; i < kItems; ++i)
            items[i] = in[begin + i];
        Scan(storage).InclusiveSum(items, sums, prefix);
        __syncthreads();
        for (int i = 0; i < kItems; ++i)
            inclusive[begin + i] = sums[i];
    }
    int before = 0, total = 0;
    Scan(storage).ExclusiveSum(in[threadIdx.x], before, total);
    exclusive[threadIdx.x] = before;
    __syncthreads();
    Scan(storage).ExclusiveScan(in[threadIdx.x], before, -1000, Greater());
    largest[threadIdx.x] = before;
    if (threadIdx.x == 7) *aggregate = total;
}

__global__ void warps(const int* in, int* sums, int* scans, int* segments) {
    using Reduce = cub::WarpReduce<int>;
    using Halves = cub::WarpScan<int, 16>;
    __shared__ typename Reduce::TempStorage storage[2];
    __shared__ typename Halves::TempStorage scan_storage[4];
    const int warp = threadIdx.x / 32;
    const int sum = Reduce(storage[warp]).Sum(in[threadIdx.x], warp == 0 ? 32 : 5);
    if (threadIdx.x % 32 == 0) sums[warp] = sum;
    int scan = 0;
    Halves(scan_storage[threadIdx.x / 16]).InclusiveSum(in[threadIdx.x], scan);
    scans[threadIdx.x] = scan;
    __syncwarp();
    segments[threadIdx.x] =
        Reduce(storage[warp]).HeadSegmentedSum(1, threadIdx.x % 32 == 0 || threadIdx.x % 32 == 10);
}

template <cub::BlockLoadAlgorithm Load, cub::BlockStoreAlgorithm Store>
__global__ void sort_block(const int* in, int* out, int valid) {
    using Loader = cub::BlockLoad<int, kThreads, kItems, Load>;
    using Sorter = cub::BlockRadixSort<int, kThreads, kItems>;
    using Storer = cub::BlockStore<int, kThreads, kItems, Store>;
    __shared__ union {
        typename Loader::TempStorage load;
        typename Sorter::TempStorage sort;
        typename Storer::TempStorage store;
    } storage;
    int keys[kItems];
    Loader(storage.load).Load(in, keys, valid, 1000);
    __syncthreads();
    Sorter(storage.sort).Sort(keys);
    __syncthreads();
    Storer(storage.store).Store(out, keys, valid);
}

TEST(CubBlock, Reduces) {
    const std::vector<int> x = numbers(kThreads);
    Device<int> in(x), out(3);
    reduce_block<<<1, kThreads>>>(in, out);
    const int sum = std::accumulate(x.begin(), x.end(), 0);
    EXPECT_EQ(out.values(),
              (std::vector<int>{sum, *std::max_element(x.begin(), x.begin() + 50), sum + kThreads}));
}

TEST(CubBlock, Scans) {
    const std::vector<int> x = numbers(2 * kThreads * kItems);
    Device<int> in(x), inclusive(x.size()), exclusive(kThreads), largest(kThreads), aggregate(1);
    scan_block<<<1, kThreads>>>(in, inclusive, exclusive, largest, aggregate);
    std::vector<int> expected = x;
    expected[0] += 100;
    std::partial_sum(expected.begin(), expected.end(), expected.begin());
    EXPECT_EQ(inclusive.values(), expected);
    std::vector<int> before(kThreads), most(kThreads);
    std::exclusive_scan(x.begin(), x.begin() + kThreads, before.begin(), 0);
    std::exclusive_scan(x.begin(), x.begin() + kThreads, most.begin(), -1000, Greater());
    EXPECT_EQ(exclusive.values(), before);
    EXPECT_EQ(largest.values(), most);
    EXPECT_EQ(aggregate.values()[0], std::accumulate(x.begin(), x.begin() + kThreads, 0));
}

TEST(CubBlock, LoadsSortsAndStores) {
    const int count = kThreads * kItems - 5;
    const std::vector<int> x = numbers(count);
    std::vector<int> sorted = x;
    std::sort(sorted.begin(), sorted.end());
    Device<int> in(x), out(count), transposed(count);
    sort_block<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT><<<1, kThreads>>>(in, out, count);
    EXPECT_EQ(out.values(), sorted);
    sort_block<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>
        <<<1, kThreads>>>(in, transposed, count);
    EXPECT_EQ(transposed.values(), sorted);
}

struct Differs {
    __host__ __device__ bool operator()(int a, int b) const { return a != b; }
};

__global__ void count_and_flag(const int* in, unsigned* counts, int* heads, int* tails) {
    using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, 8>;
    using Flags = cub::BlockDiscontinuity<int, kThreads>;
    __shared__ typename Histogram::TempStorage histogram;
    __shared__ typename Flags::TempStorage flags;
    __shared__ unsigned bins[8];
    unsigned char small[kItems];
    int items[kItems], first[kItems], last[kItems];
    for (int i = 0; i < kItems; ++i) {
        items[i] = in[threadIdx.x * kItems + i];
        small[i] = static_cast<unsigned char>(items[i] & 7);
    }
    Histogram(histogram).Histogram(small, bins);
    __syncthreads();
    if (threadIdx.x < 8) counts[threadIdx.x] = bins[threadIdx.x];
    Flags(flags).FlagHeads(first, items, Differs());
    __syncthreads();
    Flags(flags).FlagTails(last, items, Differs());
    for (int i = 0; i < kItems; ++i) {
        heads[threadIdx.x * kItems + i] = first[i];
        tails[threadIdx.x * kItems + i] = last[i];
    }
}

TEST(CubBlock, CountsAndFlags) {
    const int count = kThreads * kItems;
    std::vector<int> x(count), heads(count), tails(count);
    std::vector<unsigned> counts(8);
    for (int i = 0; i < count; ++i) {
        x[i] = i * i / 7 % 5 / 2;
        ++counts[x[i] & 7];
    }
    for (int i = 0; i < count; ++i) {
        heads[i] = i == 0 || x[i - 1] != x[i];
        tails[i] = i + 1 == count || x[i] != x[i + 1];
    }
    Device<int> in(x), heads_d(count), tails_d(count);
    Device<unsigned> counts_d(8);
    count_and_flag<<<1, kThreads>>>(in, counts_d, heads_d, tails_d);
    EXPECT_EQ(counts_d.values(), counts);
    EXPECT_EQ(heads_d.values(), heads);
    EXPECT_EQ(tails_d.values(), tails);
}

struct LastDigitLess {
    __host__ __device__ bool operator()(int a, int b) const { return (a + 50) % 10 < (b + 50) % 10; }
};

__global__ void merge_sort_block(const int* in, int* out) {
    using Sorter = cub::BlockMergeSort<int, kThreads, kItems>;
    __shared__ typename Sorter::TempStorage storage;
    int keys[kItems];
    for (int i = 0; i < kItems; ++i)
        keys[i] = in[threadIdx.x * kItems + i];
    Sorter(storage).Sort(keys, LastDigitLess());
    for (int i = 0; i < kItems; ++i)
        out[threadIdx.x * kItems + i] = keys[i];
}

TEST(CubBlock, MergeSortKeepsTheOrderOfEquals) {
    std::vector<int> x = numbers(kThreads * kItems);
    Device<int> in(x), out(x.size());
    merge_sort_block<<<1, kThreads>>>(in, out);
    std::stable_sort(x.begin(), x.end(), LastDigitLess());
    EXPECT_EQ(out.values(), x);
}

TEST(CubWarp, ReducesAndScans) {
    const std::vector<int> x = numbers(64);
    Device<int> in(x), sums(2), scans(64), segments(64);
    warps<<<1, 64>>>(in, sums, scans, segments);
    EXPECT_EQ(sums.values(), (std::vector<int>{std::accumulate(x.begin(), x.begin() + 32, 0),
                                               std::accumulate(x.begin() + 32, x.begin() + 37, 0)}));
    std::vector<int> expected(64);
    for (int half = 0; half < 4; ++half)
        std::partial_sum(x.begin() + 16 * half, x.begin() + 16 * (half + 1), expected.begin() + 16 * half);
    EXPECT_EQ(scans.values(), expected);
    EXPECT_EQ(segments.values()[0], 10);
    EXPECT_EQ(segments.values()[32 + 10], 22);
}

// Queries the size of the storage, then calls again with the storage.
template <class Call>
cudaError_t twice(Call call) {
    std::size_t bytes = 0;
    if (const cudaError_t error = call(nullptr, bytes); error != cudaSuccess) return error;
    EXPECT_GT(bytes, 0u);
    void* storage = nullptr;
    cudaMalloc(&storage, bytes);
    const cudaError_t error = call(storage, bytes);
    cudaFree(storage);
    return error;
}

TEST(CubDevice, ReducesAndScans) {
    const int count = 1000;
    const std::vector<int> x = numbers(count);
    Device<int> in(x), one(1), out(count);
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceReduce::Sum(s, b, (int*)in, (int*)one, count);
              }),
              cudaSuccess);
    EXPECT_EQ(one.values()[0], std::accumulate(x.begin(), x.end(), 0));
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceReduce::Reduce(s, b, (int*)in, (int*)one, count, Greater(), -1000);
              }),
              cudaSuccess);
    EXPECT_EQ(one.values()[0], *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceScan::ExclusiveSum(s, b, (int*)in, (int*)out, count);
              }),
              cudaSuccess);
    std::vector<int> expected(count);
    std::exclusive_scan(x.begin(), x.end(), expected.begin(), 0);
    EXPECT_EQ(out.values(), expected);
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceScan::InclusiveSum(s, b, (int*)in, (int*)in, count);
              }),
              cudaSuccess);
    std::partial_sum(x.begin(), x.end(), expected.begin());
    EXPECT_EQ(in.values(), expected) << "in place";
}

TEST(CubDevice, SortsSelectsAndCounts) {
    const int count = 500;
    const std::vector<int> x = numbers(count);
    Device<int> in(x), keys(count), values(count), selected(count), number(1), bins(4);
    Device<float> reals(std::vector<float>{0.5f, -1.f, 0.f, -0.f, -3.f}), sorted(5);
    std::vector<int> positions(count);
    std::iota(positions.begin(), positions.end(), 0);
    Device<int> order(positions);
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceRadixSort::SortPairs(s, b, (int*)in, (int*)keys, (int*)order,
                                                         (int*)values, count);
              }),
              cudaSuccess);
    std::stable_sort(positions.begin(), positions.end(), [&](int a, int b) { return x[a] < x[b]; });
    EXPECT_EQ(values.values(), positions);
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceRadixSort::SortKeysDescending(s, b, (float*)reals, (float*)sorted, 5);
              }),
              cudaSuccess);
    EXPECT_EQ(sorted.values(), (std::vector<float>{0.5f, 0.f, -0.f, -1.f, -3.f}));
    const Even even;
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceSelect::If(s, b, (int*)in, (int*)selected, (int*)number, count, even);
              }),
              cudaSuccess);
    std::vector<int> chosen;
    std::copy_if(x.begin(), x.end(), std::back_inserter(chosen), even);
    const std::vector<int> got = selected.values();
    ASSERT_EQ(number.values()[0], static_cast<int>(chosen.size()));
    EXPECT_TRUE(std::equal(chosen.begin(), chosen.end(), got.begin()));
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceRunLengthEncode::Encode(s, b, (int*)keys, (int*)selected, (int*)values,
                                                            (int*)number, count);
              }),
              cudaSuccess);
    EXPECT_EQ(number.values()[0], 101);
    EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                  return cub::DeviceHistogram::HistogramEven(s, b, (int*)in, (int*)bins, 5, -40, 40, count);
              }),
              cudaSuccess);
    std::vector<int> expected(4);
    for (const int value : x) {
        if (value < 40) ++expected[(value + 40) / 20];
    }
    EXPECT_EQ(bins.values(), expected);
}

// --- Items of other threads ----------------------------------------------------------------------

struct Subtract {
    __host__ __device__ int operator()(int a, int b) const { return 3 * a - b; }
};

// Eight arrays of kThreads * kItems results.
__global__ void differences_block(const int* in, int valid, int outside, int* out) {
    using Differences = cub::BlockAdjacentDifference<int, kThreads>;
    __shared__ typename Differences::TempStorage storage;
    int items[kItems], results[8][kItems];
    for (int i = 0; i < kItems; ++i)
        items[i] = in[threadIdx.x * kItems + i];
    const Subtract op;
    Differences(storage).SubtractLeft(items, results[0], op);
    __syncthreads();
    Differences(storage).SubtractLeft(items, results[1], op, outside);
    __syncthreads();
    Differences(storage).SubtractLeftPartialTile(items, results[2], op, valid);
    __syncthreads();
    Differences(storage).SubtractLeftPartialTile(items, results[3], op, valid, outside);
    __syncthreads();
    Differences(storage).SubtractRight(items, results[4], op);
    __syncthreads();
    Differences(storage).SubtractRight(items, results[5], op, outside);
    __syncthreads();
    Differences(storage).SubtractRightPartialTile(items, results[6], op, valid);
    __syncthreads();
    Differences(storage).SubtractLeft(items, items, op);  // in place
    for (int i = 0; i < kItems; ++i)
        results[7][i] = items[i];
    for (int r = 0; r < 8; ++r)
        for (int i = 0; i < kItems; ++i)
            out[(r * kThreads + threadIdx.x) * kItems + i] = results[r][i];
}

TEST(CubBlock, SubtractsAdjacentItems) {
    constexpr int kAll = kThreads * kItems, kOutside = 1000;
    const std::vector<int> x = numbers(kAll);
    for (const int valid : {kAll, kAll - 1, 4, 1, 0}) {
        Device<int> in(x), out(8 * kAll);
        differences_block<<<1, kThreads>>>(in, valid, kOutside, out);
        const std::vector<int> got = out.values();
        const Subtract op;
        for (int i = 0; i < kAll; ++i) {
            const int left = i > 0 ? op(x[i], x[i - 1]) : x[i];
            const int first = i > 0 ? left : op(x[i], kOutside);
            const int right = i + 1 < kAll ? op(x[i], x[i + 1]) : x[i];
            const int expected[8] = {left,
                                     first,
                                     i < valid ? left : x[i],
                                     i < valid ? first : x[i],
                                     right,
                                     i + 1 < kAll ? right : op(x[i], kOutside),
                                     i + 1 < valid ? right : x[i],
                                     left};
            for (int r = 0; r < 8; ++r)
                ASSERT_EQ(got[r * kAll + i], expected[r])
                    << "form " << r << ", item " << i << ", valid " << valid;
        }
    }
}

__global__ void shuffle_block(const int* in, int* out, int* ends) {
    using Shuffle = cub::BlockShuffle<int, kThreads>;
    __shared__ typename Shuffle::TempStorage storage;
    const int thread = threadIdx.x;
    int items[kItems], up[kItems], down[kItems];
    for (int i = 0; i < kItems; ++i) {
        items[i] = in[thread * kItems + i];
        up[i] = down[i] = -7;
    }
    int further = -7, rotated = -7;
    Shuffle(storage).Offset(items[0], further, -2);
    __syncthreads();
    Shuffle(storage).Rotate(items[0], rotated, 5);
    __syncthreads();
    int last = 0, first = 0;
    Shuffle(storage).Up(items, up, last);
    __syncthreads();
    Shuffle(storage).Down(items, down, first);
    out[thread] = further;
    out[kThreads + thread] = rotated;
    for (int i = 0; i < kItems; ++i) {
        out[2 * kThreads + thread * kItems + i] = up[i];
        out[(2 + kItems) * kThreads + thread * kItems + i] = down[i];
    }
    if (thread == 3) {
        ends[0] = last;
        ends[1] = first;
    }
}

TEST(CubBlock, Shuffles) {
    constexpr int kAll = kThreads * kItems;
    const std::vector<int> x = numbers(kAll);
    Device<int> in(x), out(2 * kThreads + 2 * kAll), ends(2);
    shuffle_block<<<1, kThreads>>>(in, out, ends);
    const std::vector<int> got = out.values();
    for (int t = 0; t < kThreads; ++t) {
        EXPECT_EQ(got[t], t < 2 ? -7 : x[(t - 2) * kItems]);
        EXPECT_EQ(got[kThreads + t], x[(t + 5) % kThreads * kItems]);
    }
    for (int i = 0; i < kAll; ++i) {
        EXPECT_EQ(got[2 * kThreads + i], i == 0 ? -7 : x[i - 1]);
        EXPECT_EQ(got[2 * kThreads + kAll + i], i + 1 == kAll ? -7 : x[i + 1]);
    }
    EXPECT_EQ(ends.values(), (std::vector<int>{x.back(), x.front()}));
}

constexpr int kRuns = 2, kDecoded = 5;
__global__ void decode_runs(const int* items, const int* lengths, int* out, int* places, unsigned* total) {
    using Decode = cub::BlockRunLengthDecode<int, kThreads, kRuns, kDecoded>;
    __shared__ typename Decode::TempStorage storage;
    int mine[kRuns], runs[kRuns];
    for (int i = 0; i < kRuns; ++i) {
        mine[i] = items[threadIdx.x * kRuns + i];
        runs[i] = lengths[threadIdx.x * kRuns + i];
    }
    unsigned all = 0;
    Decode decode(storage, mine, runs, all);
    for (unsigned from = 0; from < all; from += kThreads * kDecoded) {
        int decoded[kDecoded], relative[kDecoded];
        decode.RunLengthDecode(decoded, relative, from);
        for (unsigned i = 0; i < kDecoded; ++i) {
            const unsigned at = from + threadIdx.x * kDecoded + i;
            if (at >= all) continue;
            out[at] = decoded[i];
            places[at] = relative[i];
        }
    }
    if (threadIdx.x == 0) *total = all;
}

TEST(CubBlock, DecodesRunLengths) {
    constexpr int kAll = kThreads * kRuns;
    const std::vector<int> x = numbers(kAll);
    std::vector<int> lengths(kAll), items, places;
    for (int i = 0; i < kAll; ++i) {
        lengths[i] = (i * 5) % 7;  // also of no items; more than one window in all
        for (int j = 0; j < lengths[i]; ++j) {
            items.push_back(x[i]);
            places.push_back(j);
        }
    }
    Device<int> in(x), runs(lengths), out(items.size()), relative(items.size());
    Device<unsigned> total(1);
    decode_runs<<<1, kThreads>>>(in, runs, out, relative, total);
    EXPECT_EQ(total.values()[0], items.size());
    EXPECT_GT(items.size(), static_cast<std::size_t>(kThreads * kDecoded));
    EXPECT_EQ(out.values(), items);
    EXPECT_EQ(relative.values(), places);
}

template <class T>
void expect_order(std::vector<T> ascending) {
    using Traits = cub::Traits<T>;
    using Bits = typename Traits::UnsignedBits;
    static_assert(sizeof(Bits) == sizeof(T) && std::is_unsigned_v<Bits>);
    EXPECT_TRUE(Traits::PRIMITIVE);
    EXPECT_FALSE(Traits::NULL_TYPE);
    Bits before = 0;
    for (const T value : ascending) {
        Bits bits;
        std::memcpy(&bits, &value, sizeof bits);
        const Bits key = Traits::TwiddleIn(bits);
        EXPECT_GT(key, before);
        EXPECT_EQ(Traits::TwiddleOut(key), bits);
        before = key;
    }
}

TEST(Cub, TraitsOfTypes) {
    expect_order<int>({std::numeric_limits<int>::min() + 1, -5, 0, 7, std::numeric_limits<int>::max()});
    expect_order<unsigned char>({1, 127, 128, 255});
    expect_order<float>({-1e30F, -2, -1e-30F, 0, 1e-30F, 3, 1e30F});
    expect_order<double>({-1e300, -2, 0, 3, 1e300});
    expect_order<long long>({-(1LL << 60), -1, 0, 1LL << 61});
    EXPECT_EQ(cub::Traits<int>::CATEGORY, cub::SIGNED_INTEGER);
    EXPECT_EQ(cub::Traits<unsigned>::CATEGORY, cub::UNSIGNED_INTEGER);
    EXPECT_EQ(cub::Traits<float>::CATEGORY, cub::FLOATING_POINT);
    EXPECT_EQ(cub::Traits<Subtract>::CATEGORY, cub::NOT_A_NUMBER);
    EXPECT_FALSE(cub::Traits<Subtract>::PRIMITIVE);
    EXPECT_TRUE(cub::Traits<cub::NullType>::NULL_TYPE);
    EXPECT_EQ(cub::NumericTraits<short>::Max(), 32767);
    EXPECT_EQ(cub::Traits<double>::Lowest(), std::numeric_limits<double>::lowest());
}

TEST(CubDevice, SubtractsAdjacentItems) {
    for (const int count : {0, 1, 777}) {
        const std::vector<int> x = numbers(count);
        Device<int> in(x), out(std::vector<int>(count + 1, -7));
        std::vector<int> left = x, right = x;
        const Subtract op;
        for (int i = 0; i < count; ++i) {
            if (i > 0) left[i] = op(x[i], x[i - 1]);
            if (i + 1 < count) right[i] = x[i] - x[i + 1];
        }
        EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                      return cub::DeviceAdjacentDifference::SubtractLeftCopy(s, b, (int*)in, (int*)out, count,
                                                                             op);
                  }),
                  cudaSuccess);
        left.push_back(-7);
        EXPECT_EQ(out.values(), left);
        EXPECT_EQ(twice([&](void* s, std::size_t& b) {
                      return cub::DeviceAdjacentDifference::SubtractRight(s, b, (int*)in, count);
                  }),
                  cudaSuccess);
        EXPECT_EQ(in.values(), right);
    }
}

TEST(CubDevice, SortsSegments) {
    constexpr int kCount = 500;
    const std::vector<int> x = numbers(kCount);
    // An empty one, one of one item, a gap from 300 to 310, and the end that no segment has.
    const std::vector<int> begins{0, 0, 1, 310}, ends{0, 1, 300, 490};
    std::vector<int> positions(kCount), sorted = x, down = x;
    std::iota(positions.begin(), positions.end(), 0);
    std::vector<int> order = positions;
    for (std::size_t s = 0; s < begins.size(); ++s) {
        std::stable_sort(order.begin() + begins[s], order.begin() + ends[s],
                         [&](int a, int b) { return x[a] < x[b]; });
        std::sort(sorted.begin() + begins[s], sorted.begin() + ends[s]);
        std::sort(down.begin() + begins[s], down.begin() + ends[s], std::greater<>());
    }
    Device<int> in(x), out(x), values(positions), values_out(positions), b(begins), e(ends);
    EXPECT_EQ(twice([&](void* s, std::size_t& bytes) {
                  return cub::DeviceSegmentedSort::StableSortPairs(s, bytes, (const int*)in, (int*)out,
                                                                   (const int*)values, (int*)values_out,
                                                                   kCount, 4, (int*)b, (int*)e);
              }),
              cudaSuccess);
    EXPECT_EQ(out.values(), sorted);
    EXPECT_EQ(values_out.values(), order);
    cub::DoubleBuffer<int> buffers(in, out);
    EXPECT_EQ(twice([&](void* s, std::size_t& bytes) {
                  return cub::DeviceSegmentedRadixSort::SortKeysDescending(s, bytes, buffers, kCount, 4,
                                                                           (int*)b, (int*)e);
              }),
              cudaSuccess);
    std::vector<int> got(kCount);
    cudaMemcpy(got.data(), buffers.Current(), kCount * sizeof(int), cudaMemcpyDeviceToHost);
    EXPECT_EQ(got, down);
}

struct Square {
    int* out;
    __device__ void operator()(int i) const { out[i] = i * i; }
};
struct Double {
    __device__ void operator()(int& value) const { value *= 2; }
};

TEST(CubDevice, CallsAFunctionForEach) {
    Device<int> out(std::vector<int>(9, -7));
    EXPECT_EQ(cub::DeviceFor::Bulk(8, Square{out}), cudaSuccess);
    EXPECT_EQ(cub::DeviceFor::ForEachN((int*)out, 4, Double()), cudaSuccess);
    EXPECT_EQ(cub::DeviceFor::ForEach((int*)out + 6, (int*)out + 8, Double()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(out.values(), (std::vector<int>{0, 2, 8, 18, 16, 25, 72, 98, -7}));
}

TEST(CubDevice, WorkKeepsTheOrderOfItsStream) {
    Device<int> in(std::vector<int>{1, 2}), out(1), storage(1);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    std::size_t bytes = sizeof(int);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cub::DeviceReduce::Sum(static_cast<int*>(storage), bytes, (int*)in, (int*)out, 2, stream),
              cudaSuccess);
    cudaStreamEndCapture(stream, &graph);
    EXPECT_EQ(out.values()[0], 0);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(out.values()[0], 3);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

}  // namespace
