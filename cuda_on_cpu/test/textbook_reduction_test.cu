// Reductions: the classic ladder from interleaved addressing to the unrolled last warp (Harris,
// "Optimizing parallel reduction in CUDA", 2007), then shuffles, the last block with a fence, a
// cooperative grid, and what is built on them.
#include <cooperative_groups.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <numeric>
#include <vector>

#include "textbook.cuh"

namespace cg = cooperative_groups;

namespace {

constexpr int kBlock = 256;
const std::vector<int> kSizes = {1, 31, 32, 33, 255, 256, 257, 511, 513, 10007};

// ---- Seven steps --------------------------------------------------------------------------------

__global__ void interleaved_divergent(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + t;
    values[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0) values[t] += values[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = values[0];
}

__global__ void interleaved_strided(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + t;
    values[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned index = 2 * stride * t;
        if (index < blockDim.x) values[index] += values[index + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = values[0];
}

__global__ void sequential(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + t;
    values[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (t < stride) values[t] += values[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = values[0];
}

__global__ void first_add_during_load(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    const int i = blockIdx.x * blockDim.x * 2 + t;
    int sum = i < n ? in[i] : 0;
    if (i + static_cast<int>(blockDim.x) < n) sum += in[i + blockDim.x];
    values[t] = sum;
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (t < stride) values[t] = sum = sum + values[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sum;
}

// The last warp needs no block barrier; lanes still have to wait for each other between reading and
// writing.
__device__ void reduce_last_warp(volatile int* values, unsigned t) {
    int sum = values[t];
    for (int offset = 32; offset > 0; offset >>= 1) {
        sum += values[t + offset];
        __syncwarp();
        values[t] = sum;
        __syncwarp();
    }
}

__global__ void unrolled_last_warp(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    const int i = blockIdx.x * blockDim.x * 2 + t;
    values[t] = (i < n ? in[i] : 0) + (i + static_cast<int>(blockDim.x) < n ? in[i + blockDim.x] : 0);
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 32; stride >>= 1) {
        if (t < stride) values[t] += values[t + stride];
        __syncthreads();
    }
    if (t < 32) reduce_last_warp(values, t);
    if (t == 0) out[blockIdx.x] = values[0];
}

template <unsigned kThreads>
__global__ void completely_unrolled(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    const int i = blockIdx.x * kThreads * 2 + t;
    values[t] = (i < n ? in[i] : 0) + (i + static_cast<int>(kThreads) < n ? in[i + kThreads] : 0);
    __syncthreads();
    if (kThreads >= 512) {
        if (t < 256) values[t] += values[t + 256];
        __syncthreads();
    }
    if (kThreads >= 256) {
        if (t < 128) values[t] += values[t + 128];
        __syncthreads();
    }
    if (kThreads >= 128) {
        if (t < 64) values[t] += values[t + 64];
        __syncthreads();
    }
    if (t < 32) reduce_last_warp(values, t);
    if (t == 0) out[blockIdx.x] = values[0];
}

template <unsigned kThreads>
__global__ void many_per_thread(const int* in, int* out, int n) {
    extern __shared__ int values[];
    const unsigned t = threadIdx.x;
    int sum = 0;
    for (int i = blockIdx.x * kThreads + t; i < n; i += kThreads * gridDim.x)
        sum += in[i];
    values[t] = sum;
    __syncthreads();
#pragma unroll
    for (unsigned stride = kThreads / 2; stride > 32; stride >>= 1) {
        if (t < stride) values[t] += values[t + stride];
        __syncthreads();
    }
    if (t < 32) reduce_last_warp(values, t);
    if (t == 0) out[blockIdx.x] = values[0];
}

using Reduction = void (*)(const int*, int*, int);

struct Step {
    const char* name;
    Reduction kernel;
    int per_thread;  // values that a thread loads
};

class TextbookReductionStep : public testing::TestWithParam<Step> {};

TEST_P(TextbookReductionStep, IsTheSum) {
    const Step& step = GetParam();
    for (const int n : kSizes) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 1000);
        const int blocks = std::max(1, ceil_div(n, kBlock * step.per_thread));
        int* const device_in = upload(in);
        int* const device_out = device_array<int>(blocks);
        step.kernel<<<blocks, kBlock, kBlock * sizeof(int)>>>(device_in, device_out, n);
        const std::vector<int> sums = download(device_out, blocks);
        EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0), std::accumulate(in.begin(), in.end(), 0));
        release(device_in, device_out);
    }
}

INSTANTIATE_TEST_SUITE_P(Ladder, TextbookReductionStep,
                         testing::Values(Step{"interleaved_divergent", interleaved_divergent, 1},
                                         Step{"interleaved_strided", interleaved_strided, 1},
                                         Step{"sequential", sequential, 1},
                                         Step{"first_add_during_load", first_add_during_load, 2},
                                         Step{"unrolled_last_warp", unrolled_last_warp, 2},
                                         Step{"completely_unrolled", completely_unrolled<kBlock>, 2},
                                         Step{"many_per_thread", many_per_thread<kBlock>, 8}),
                         [](const auto& step) { return std::string(step.param.name); });

// ---- Shuffles -----------------------------------------------------------------------------------

template <class T>
__inline__ __device__ T warp_reduce_sum(T value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

template <class T>
__inline__ __device__ T block_reduce_sum(T value) {
    static __shared__ T partial[32];
    const int lane = threadIdx.x % warpSize;
    const int warp = threadIdx.x / warpSize;
    value = warp_reduce_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / warpSize ? partial[lane] : T(0);
    if (warp == 0) value = warp_reduce_sum(value);
    return value;
}

template <class In, class Out>
__global__ void reduce_with_shuffles(const In* in, Out* out, int n) {
    Out sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += in[i];
    sum = block_reduce_sum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

TEST(TextbookReduction, ShufflesAndOneAtomicPerBlock) {
    for (const int n : kSizes) {
        SCOPED_TRACE(n);
        const std::vector<int> whole = random_ints(n, 1 << 20);
        const std::vector<double> real(whole.begin(), whole.end());
        int* const ints = upload(whole);
        double* const doubles = upload(real);
        int* const int_sum = upload(std::vector<int>{0});
        double* const double_sum = upload(std::vector<double>{0.0});
        reduce_with_shuffles<<<3, 128>>>(ints, int_sum, n);
        reduce_with_shuffles<<<5, 1024>>>(doubles, double_sum, n);
        EXPECT_EQ(download(int_sum, 1)[0], std::accumulate(whole.begin(), whole.end(), 0));
        EXPECT_EQ(download(double_sum, 1)[0], std::accumulate(real.begin(), real.end(), 0.0));
        release(ints, doubles, int_sum, double_sum);
    }
}

// ---- The last block to finish adds what the others left -----------------------------------------

__device__ unsigned int finished_blocks = 0;

__global__ void reduce_in_one_launch(const float* in, volatile float* partial, float* out, int n) {
    __shared__ bool is_last;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += in[i];
    sum = block_reduce_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();  // the sum is visible before the count is
        const unsigned int ticket = atomicInc(&finished_blocks, gridDim.x);
        is_last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last) {
        sum = 0.0f;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
            sum += partial[i];
        sum = block_reduce_sum(sum);
        if (threadIdx.x == 0) {
            *out = sum;
            finished_blocks = 0;  // ready for the next launch
        }
    }
}

TEST(TextbookReduction, LastBlockWithAFence) {
    constexpr int kBlocks = 37;
    for (const int n : {1, 1000, 20011}) {
        SCOPED_TRACE(n);
        std::vector<float> in;
        for (const int value : random_ints(n, 100))
            in.push_back(static_cast<float>(value));  // exact in any order
        float* const device_in = upload(in);
        float* const partial = device_array<float>(kBlocks);
        float* const out = device_array<float>(1);
        for (int launch = 0; launch < 3; ++launch) {
            CUDA_CHECK(cudaMemset(out, 0xff, sizeof(float)));
            reduce_in_one_launch<<<kBlocks, 128>>>(device_in, partial, out, n);
            EXPECT_EQ(download(out, 1)[0], std::accumulate(in.begin(), in.end(), 0.0f));
        }
        release(device_in, partial, out);
    }
}

// ---- Dot product: all blocks of a cooperative grid meet -----------------------------------------

__global__ void dot(const float* a, const float* b, double* partial, double* result, int n) {
    const cg::grid_group grid = cg::this_grid();
    const cg::thread_block block = cg::this_thread_block();
    double sum = 0.0;
    for (auto i = grid.thread_rank(); i < static_cast<unsigned long long>(n); i += grid.size()) {
        sum += static_cast<double>(a[i]) * b[i];
    }
    sum = block_reduce_sum(sum);
    if (block.thread_rank() == 0) partial[blockIdx.x] = sum;
    grid.sync();
    for (int active = gridDim.x; active > 1;) {  // a tree over the blocks
        const int half = (active + 1) / 2;
        if (grid.thread_rank() < static_cast<unsigned long long>(active - half)) {
            partial[grid.thread_rank()] += partial[grid.thread_rank() + half];
        }
        active = half;
        grid.sync();
    }
    if (grid.thread_rank() == 0) *result = partial[0];
}

TEST(TextbookReduction, DotProductOfACooperativeGrid) {
    int cooperative = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    if (!cooperative) GTEST_SKIP() << "this device has no cooperative launch";
    int per_multiprocessor = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, dot, 64, 0));
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    const int blocks = std::min(7, per_multiprocessor * properties.multiProcessorCount);
    for (int n : {1, 63, 64, 65, 5003}) {
        SCOPED_TRACE(n);
        const std::vector<float> a = random_floats(n);
        const std::vector<float> b = random_floats(n, kSeed + 1);
        float* device_a = upload(a);
        float* device_b = upload(b);
        double* partial = device_array<double>(blocks);
        double* result = device_array<double>(1);
        void* arguments[] = {&device_a, &device_b, &partial, &result, &n};
        CUDA_CHECK(cudaLaunchCooperativeKernel((void*)dot, dim3(blocks), dim3(64), arguments, 0, nullptr));
        double expected = 0.0;
        for (int i = 0; i < n; ++i)
            expected += static_cast<double>(a[i]) * b[i];
        EXPECT_NEAR(download(result, 1)[0], expected, 1e-12 * n);
        release(device_a, device_b, partial, result);
    }
}

// ---- Built on reductions ------------------------------------------------------------------------

// The position of the greatest value, the first of equals: two values travel together.
struct Greatest {
    float value;
    int index;
};

__device__ Greatest better(Greatest a, Greatest b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

__global__ void argmax(const float* in, int* out, int n) {
    __shared__ Greatest of_warp[kBlock / 32];
    Greatest best = {-INFINITY, INT_MAX};
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        best = better(best, {in[i], i});
    for (int offset = 16; offset > 0; offset /= 2) {
        Greatest other;
        other.value = __shfl_down_sync(0xffffffff, best.value, offset);
        other.index = __shfl_down_sync(0xffffffff, best.index, offset);
        best = better(best, other);
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (const Greatest& candidate : of_warp)
            best = better(best, candidate);
        *out = best.index;
    }
}

TEST(TextbookReduction, Argmax) {
    for (const int n : kSizes) {
        SCOPED_TRACE(n);
        std::vector<float> in;
        for (const int value : random_ints(n, 50))
            in.push_back(static_cast<float>(value));  // many equal ones
        float* const device_in = upload(in);
        int* const out = device_array<int>(1);
        argmax<<<1, kBlock>>>(device_in, out, n);
        EXPECT_EQ(download(out, 1)[0], std::max_element(in.begin(), in.end()) - in.begin());
        release(device_in, out);
    }
}

// Softmax in one pass over the row: Milakov, Gimelshein, "Online normalizer calculation for
// softmax", 2018.
struct alignas(8) Normalizer {
    float maximum;
    float sum;

    __device__ static Normalizer merge(Normalizer a, Normalizer b) {
        const bool a_greater = a.maximum > b.maximum;
        const Normalizer& big = a_greater ? a : b;
        const Normalizer& small = a_greater ? b : a;
        if (small.maximum == -INFINITY) return big;
        return {big.maximum, big.sum + small.sum * expf(small.maximum - big.maximum)};
    }
};

// A warp per row.
__global__ void softmax_online(const float* in, float* out, int rows, int columns) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    in += row * columns;
    out += row * columns;
    Normalizer total = {-INFINITY, 0.0f};
    for (int c = threadIdx.x; c < columns; c += warpSize)
        total = Normalizer::merge(total, {in[c], 1.0f});
    for (int mask = 16; mask > 0; mask /= 2) {
        const Normalizer other = {__shfl_xor_sync(0xffffffff, total.maximum, mask),
                                  __shfl_xor_sync(0xffffffff, total.sum, mask)};
        total = Normalizer::merge(total, other);
    }
    for (int c = threadIdx.x; c < columns; c += warpSize)
        out[c] = expf(in[c] - total.maximum) / total.sum;
}

TEST(TextbookReduction, OnlineSoftmax) {
    constexpr int kRows = 13;
    for (const int columns : {1, 31, 32, 33, 257}) {
        SCOPED_TRACE(columns);
        std::vector<float> in = random_floats(kRows * columns);
        for (float& value : in)
            value *= 90.0f;  // exp() of the values themselves would overflow
        std::vector<double> expected(in.size());
        for (int r = 0; r < kRows; ++r) {
            const auto row = in.begin() + r * columns;
            const double maximum = *std::max_element(row, row + columns);
            double sum = 0.0;
            for (int c = 0; c < columns; ++c)
                sum += std::exp(row[c] - maximum);
            for (int c = 0; c < columns; ++c)
                expected[r * columns + c] = std::exp(row[c] - maximum) / sum;
        }
        float* const device_in = upload(in);
        float* const device_out = device_array<float>(in.size());
        softmax_online<<<ceil_div(kRows, 4), dim3(32, 4)>>>(device_in, device_out, kRows, columns);
        expect_near(download(device_out, in.size()), expected, 1e-5);
        release(device_in, device_out);
    }
}

// Monte-Carlo pi with a generator of its own in each thread: Marsaglia, "Xorshift RNGs", 2003.
class XorShift {
  public:
    __host__ __device__ explicit XorShift(unsigned seed) : state_(seed * 747796405u + 2891336453u) {
        for (int i = 0; i < 8; ++i)
            next();
    }
    __host__ __device__ unsigned next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_;
    }
    __host__ __device__ float uniform() { return static_cast<float>(next() >> 8) * (1.0f / (1 << 24)); }

  private:
    unsigned state_;
};

__host__ __device__ int points_in_circle(unsigned seed, int points) {
    XorShift random(seed);
    int inside = 0;
    for (int i = 0; i < points; ++i) {
        const float x = random.uniform();
        const float y = random.uniform();
        inside += x * x + y * y < 1.0f ? 1 : 0;
    }
    return inside;
}

__global__ void monte_carlo(unsigned long long* inside, int points_per_thread) {
    const unsigned seed = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const unsigned long long sum =
        block_reduce_sum<unsigned long long>(points_in_circle(seed, points_per_thread));
    if (threadIdx.x == 0) atomicAdd(inside, sum);
}

TEST(TextbookReduction, MonteCarloPi) {
    constexpr int kBlocks = 9;
    constexpr int kThreads = 128;
    constexpr int kPoints = 200;
    unsigned long long* const inside = upload(std::vector<unsigned long long>{0});
    monte_carlo<<<kBlocks, kThreads>>>(inside, kPoints);
    long expected = 0;
    for (unsigned seed = 1; seed <= kBlocks * kThreads; ++seed)
        expected += points_in_circle(seed, kPoints);
    const auto got = static_cast<double>(download(inside, 1)[0]);
    EXPECT_NEAR(got, static_cast<double>(expected), 4.0);  // a compiler may fuse x * x + y * y
    EXPECT_NEAR(4.0 * got / (kBlocks * kThreads * kPoints), 3.14159265, 0.02);
    release(inside);
}

}  // namespace
