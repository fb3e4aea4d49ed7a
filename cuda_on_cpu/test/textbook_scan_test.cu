// Prefix sums, the way textbooks build them up: inside a block, over many blocks, in a single pass;
// and what they are good for, stream compaction.
#include <algorithm>
#include <numeric>
#include <vector>

#include "textbook.cuh"

namespace {

constexpr int kBlock = 256;
const std::vector<int> kSizes = {1, 31, 32, 33, 255, 256, 257, 511, 512, 513, 4099};

std::vector<int> inclusive_scan_on_host(const std::vector<int>& in) {
    std::vector<int> out(in.size());
    std::partial_sum(in.begin(), in.end(), out.begin());
    return out;
}

std::vector<int> exclusive_scan_on_host(const std::vector<int>& in) {
    std::vector<int> out(in.size());
    std::exclusive_scan(in.begin(), in.end(), out.begin(), 0);
    return out;
}

// ---- Hillis and Steele, "Data parallel algorithms", 1986: log n steps, each adds the value `offse

// One block; blockDim.x >= n. Two buffers, so that a step never reads what it writes.
template <class T>
__global__ void hillis_steele(const T* in, T* out, int n) {
    extern __shared__ unsigned char bytes[];
    T* from = reinterpret_cast<T*>(bytes);
    T* to = from + blockDim.x;
    const int i = threadIdx.x;
    from[i] = i < n ? in[i] : T(0);
    __syncthreads();
    for (unsigned offset = 1; offset < blockDim.x; offset *= 2) {
        to[i] = i >= static_cast<int>(offset) ? from[i] + from[i - offset] : from[i];
        __syncthreads();
        T* const swapped = from;
        from = to;
        to = swapped;
    }
    if (i < n) out[i] = from[i];
}

TEST(TextbookScan, HillisSteele) {
    for (const int n : {1, 2, 31, 32, 33, 500, 1000, 1024}) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 1000);
        int* const device_in = upload(in);
        int* const device_out = device_array<int>(in.size());
        const int threads = ceil_div(n, 32) * 32;
        hillis_steele<<<1, threads, 2 * threads * sizeof(int)>>>(device_in, device_out, n);
        expect_same(download(device_out, in.size()), inclusive_scan_on_host(in));
        release(device_in, device_out);
    }
}

// In place: reading and writing are kept apart by a second barrier.
__global__ void hillis_steele_in_place(double* data, int n) {
    __shared__ double tile[kBlock];
    const unsigned t = threadIdx.x;
    tile[t] = static_cast<int>(t) < n ? data[t] : 0.0;
    for (unsigned offset = 1; offset < kBlock; offset <<= 1) {
        __syncthreads();
        double left = 0.0;
        if (t >= offset) left = tile[t - offset];
        __syncthreads();
        tile[t] += left;
    }
    if (static_cast<int>(t) < n) data[t] = tile[t];
}

TEST(TextbookScan, HillisSteeleInPlace) {
    for (const int n : {1, 100, 255, 256}) {
        SCOPED_TRACE(n);
        const std::vector<int> whole = random_ints(n, 1 << 20);
        const std::vector<double> in(whole.begin(), whole.end());
        std::vector<double> expected(in.size());
        std::partial_sum(in.begin(), in.end(), expected.begin());
        double* const device = upload(in);
        hillis_steele_in_place<<<1, kBlock>>>(device, n);
        expect_same(download(device, in.size()), expected);
        release(device);
    }
}

// ---- Blelloch, "Prefix sums and their applications", 1990: up a tree of sums and down again -----

// Each block scans 2 kBlock values (exclusive) and leaves their sum in block_sums.
__global__ void blelloch(const int* in, int* out, int* block_sums, int n) {
    constexpr int kValues = 2 * kBlock;
    __shared__ int tree[kValues];
    const int t = threadIdx.x;
    const int base = blockIdx.x * kValues;
    for (int i = t; i < kValues; i += kBlock)
        tree[i] = base + i < n ? in[base + i] : 0;

    int stride = 1;
    for (int nodes = kBlock; nodes > 0; nodes >>= 1) {
        __syncthreads();
        if (t < nodes) tree[stride * (2 * t + 2) - 1] += tree[stride * (2 * t + 1) - 1];
        stride *= 2;
    }
    if (t == 0) {
        if (block_sums != nullptr) block_sums[blockIdx.x] = tree[kValues - 1];
        tree[kValues - 1] = 0;
    }
    for (int nodes = 1; nodes < kValues; nodes *= 2) {
        stride >>= 1;
        __syncthreads();
        if (t < nodes) {
            const int left = stride * (2 * t + 1) - 1;
            const int right = stride * (2 * t + 2) - 1;
            const int sum = tree[left];
            tree[left] = tree[right];
            tree[right] += sum;
        }
    }
    __syncthreads();
    for (int i = t; i < kValues; i += kBlock) {
        if (base + i < n) out[base + i] = tree[i];
    }
}

__global__ void add_block_offsets(int* data, const int* offsets, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += offsets[i / (2 * kBlock)];
}

// Scan each block, scan the sums of the blocks in the same way, add them.
void exclusive_scan(const int* in, int* out, int n) {
    const int blocks = ceil_div(n, 2 * kBlock);
    if (blocks == 1) {
        blelloch<<<1, kBlock>>>(in, out, nullptr, n);
        return;
    }
    int* const sums = device_array<int>(blocks);
    blelloch<<<blocks, kBlock>>>(in, out, sums, n);
    exclusive_scan(sums, sums, blocks);
    add_block_offsets<<<ceil_div(n, kBlock), kBlock>>>(out, sums, n);
    release(sums);
}

TEST(TextbookScan, BlellochOverManyBlocks) {
    std::vector<int> sizes = kSizes;
    sizes.push_back(2 * kBlock * 2 * kBlock + 1);  // three levels
    for (const int n : sizes) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 100);
        int* const device_in = upload(in);
        int* const device_out = device_array<int>(in.size());
        exclusive_scan(device_in, device_out, n);
        expect_same(download(device_out, in.size()), exclusive_scan_on_host(in));
        release(device_in, device_out);
    }
}

// ---- With shuffles: a warp scans in registers, the block scans the sums of its warps ------------

template <class T, class Operation>
__device__ T warp_inclusive_scan(T value, Operation combine) {
    const unsigned lane = threadIdx.x % warpSize;
#pragma unroll
    for (unsigned offset = 1; offset < 32; offset *= 2) {
        const T left = __shfl_up_sync(0xffffffff, value, offset);
        if (lane >= offset) value = combine(left, value);
    }
    return value;
}

// Returns the inclusive scan of the block's values. `warp_sums` has room for one value per warp.
template <class T, class Operation>
__device__ T block_inclusive_scan(T value, T* warp_sums, Operation combine) {
    const unsigned lane = threadIdx.x % warpSize;
    const unsigned warp = threadIdx.x / warpSize;
    value = warp_inclusive_scan(value, combine);
    if (lane == 31) warp_sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        const T sum = warp_sums[min(lane, blockDim.x / warpSize - 1)];
        const T scanned = warp_inclusive_scan(sum, combine);
        __syncwarp();  // the last sum is read by all lanes beyond it, and a shuffle orders no memory accesses
        if (lane < blockDim.x / warpSize) warp_sums[lane] = scanned;
    }
    __syncthreads();
    return warp > 0 ? combine(warp_sums[warp - 1], value) : value;
}

struct Plus {
    template <class T>
    __host__ __device__ T operator()(T a, T b) const {
        return a + b;
    }
};
struct Maximum {
    template <class T>
    __host__ __device__ T operator()(T a, T b) const {
        return a > b ? a : b;
    }
};

template <class T, class Operation>
__global__ void shuffle_scan(const T* in, T* out, int n, T neutral, Operation combine) {
    __shared__ T warp_sums[32];
    const int i = threadIdx.x;
    const T value = block_inclusive_scan(i < n ? in[i] : neutral, warp_sums, combine);
    if (i < n) out[i] = value;
}

TEST(TextbookScan, ShufflesSumAndMaximum) {
    for (const int n : {1, 31, 32, 33, 255, 256, 1000, 1024}) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 1000000);
        int* const device_in = upload(in);
        int* const device_out = device_array<int>(in.size());
        shuffle_scan<<<1, 1024>>>(device_in, device_out, n, 0, Plus());
        expect_same(download(device_out, in.size()), inclusive_scan_on_host(in));
        shuffle_scan<<<1, 1024>>>(device_in, device_out, n, -2000000, Maximum());
        std::vector<int> maxima(in.size());
        std::partial_sum(in.begin(), in.end(), maxima.begin(), Maximum());
        expect_same(download(device_out, in.size()), maxima);
        release(device_in, device_out);
    }
}

// ---- Decoupled look-back: Merrill and Garland, "Single-pass parallel prefix scan", 2016 ---------

// Flags beside values. A tile publishes its own sum first, and its prefix, the sum of everything up
// to its end, as soon as it is known. A later tile looks back over sums until it finds a prefix.
struct TileState {
    enum : int { kNothing, kSum, kPrefix };
    volatile int* flag;
    volatile int* sum;
    volatile int* prefix;
};

__device__ int look_back(const TileState& state, int tile) {
    int before = 0;
    for (int p = tile - 1; p >= 0;) {
        const int flag = state.flag[p];
        if (flag == TileState::kPrefix) {
            __threadfence();
            return before + state.prefix[p];
        }
        if (flag == TileState::kSum) {
            __threadfence();
            before += state.sum[p];
            --p;
        }
    }
    return before;
}

__global__ void single_pass_scan(const int* in, int* out, TileState state, int* next_tile, int n) {
    __shared__ int warp_sums[32];
    __shared__ int tile;
    __shared__ int before;
    if (threadIdx.x == 0) tile = atomicAdd(next_tile, 1);  // so every wait is for a block that has started
    __syncthreads();
    const int i = tile * kBlock + threadIdx.x;
    const int value = block_inclusive_scan(i < n ? in[i] : 0, warp_sums, Plus());
    if (threadIdx.x == kBlock - 1) {
        state.sum[tile] = value;
        __threadfence();
        state.flag[tile] = TileState::kSum;
        before = look_back(state, tile);
        state.prefix[tile] = before + value;
        __threadfence();
        state.flag[tile] = TileState::kPrefix;
    }
    __syncthreads();
    if (i < n) out[i] = before + value;
}

TEST(TextbookScan, SinglePassWithFlags) {
    std::vector<int> sizes = kSizes;
    sizes.push_back(50021);
    for (const int n : sizes) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 100);
        const int tiles = ceil_div(n, kBlock);
        int* const device_in = upload(in);
        int* const device_out = device_array<int>(in.size());
        int* const flags = device_array<int>(3 * tiles + 1);
        CUDA_CHECK(cudaMemset(flags, 0, (3 * tiles + 1) * sizeof(int)));
        const TileState state{flags, flags + tiles, flags + 2 * tiles};
        single_pass_scan<<<tiles, kBlock>>>(device_in, device_out, state, flags + 3 * tiles, n);
        expect_same(download(device_out, in.size()), inclusive_scan_on_host(in));
        release(device_in, device_out, flags);
    }
}

// Flag and value in one 64-bit word, read and written whole, so that no fence is needed; a warp
// looks at 32 tiles at a time.
class PackedState {
  public:
    __device__ static unsigned long long pack(unsigned flag, int value) {
        return static_cast<unsigned long long>(flag) << 32 | static_cast<unsigned>(value);
    }
    __device__ static unsigned flag(unsigned long long word) { return static_cast<unsigned>(word >> 32); }
    __device__ static int value(unsigned long long word) { return static_cast<int>(word & 0xffffffffULL); }
};

__device__ int look_back_as_warp(const volatile unsigned long long* state, int tile) {
    const int lane = threadIdx.x % 32;
    int before = 0;
    for (int last = tile - 1;; last -= 32) {
        const int mine = last - lane;
        unsigned long long word =
            PackedState::pack(TileState::kPrefix, 0);  // before the first tile there is nothing
        do {
            if (mine >= 0) word = state[mine];
        } while (__any_sync(0xffffffff, PackedState::flag(word) == TileState::kNothing));
        const unsigned prefixes = __ballot_sync(0xffffffff, PackedState::flag(word) == TileState::kPrefix);
        const int nearest = prefixes != 0 ? __ffs(prefixes) - 1 : 31;
        before += __reduce_add_sync(0xffffffff, lane <= nearest ? PackedState::value(word) : 0);
        if (prefixes != 0) return before;
    }
}

__global__ void single_pass_scan_packed(const int* in, int* out, volatile unsigned long long* state,
                                        int* next_tile, int n) {
    __shared__ int warp_sums[32];
    __shared__ int tile;
    __shared__ int sum;
    __shared__ int before;
    if (threadIdx.x == 0) tile = atomicAdd(next_tile, 1);
    __syncthreads();
    const int i = tile * kBlock + threadIdx.x;
    const int value = block_inclusive_scan(i < n ? in[i] : 0, warp_sums, Plus());
    if (threadIdx.x == kBlock - 1) sum = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) state[tile] = PackedState::pack(TileState::kSum, sum);
        const int found = look_back_as_warp(state, tile);
        if (threadIdx.x == 0) {
            state[tile] = PackedState::pack(TileState::kPrefix, found + sum);
            before = found;
        }
    }
    __syncthreads();
    if (i < n) out[i] = before + value;
}

TEST(TextbookScan, SinglePassPacked) {
    std::vector<int> sizes = kSizes;
    sizes.push_back(50021);
    for (const int n : sizes) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 100);
        const int tiles = ceil_div(n, kBlock);
        int* const device_in = upload(in);
        int* const device_out = device_array<int>(in.size());
        unsigned long long* const state = device_array<unsigned long long>(tiles);
        int* const next_tile = upload(std::vector<int>{0});
        CUDA_CHECK(cudaMemset(state, 0, tiles * sizeof(*state)));
        single_pass_scan_packed<<<tiles, kBlock>>>(device_in, device_out, state, next_tile, n);
        expect_same(download(device_out, in.size()), inclusive_scan_on_host(in));
        release(device_in, device_out, state, next_tile);
    }
}

// ---- Stream compaction: a scan of 0 and 1 says where each kept value goes -----------------------

struct IsPositive {
    __host__ __device__ bool operator()(int value) const { return value > 0; }
};

template <class T, class Predicate>
__global__ void mark(const T* in, int* kept, int n, Predicate keep) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kept[i] = keep(in[i]) ? 1 : 0;
}

template <class T>
__global__ void scatter(const T* in, const int* kept, const int* place, T* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && kept[i]) out[place[i]] = in[i];
}

TEST(TextbookScan, StreamCompaction) {
    for (const int n : kSizes) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 100);
        std::vector<int> expected;
        std::copy_if(in.begin(), in.end(), std::back_inserter(expected), IsPositive());

        int* const device_in = upload(in);
        int* const device_out = upload(std::vector<int>(in.size(), -1));
        int* const kept = device_array<int>(in.size());
        int* const place = device_array<int>(in.size());
        mark<<<ceil_div(n, kBlock), kBlock>>>(device_in, kept, n, IsPositive());
        exclusive_scan(kept, place, n);
        scatter<<<ceil_div(n, kBlock), kBlock>>>(device_in, kept, place, device_out, n);
        expected.resize(in.size(), -1);  // nothing is written behind the last
        expect_same(download(device_out, in.size()), expected);
        release(device_in, device_out, kept, place);
    }
}

}  // namespace
