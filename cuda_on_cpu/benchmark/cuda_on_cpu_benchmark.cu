// How fast are kernels on the CPU? Times a handful of kernels that stress different parts of the
// runtime:
//
//   vector add                 starting threads that never wait
//   matmul, 32x32 tiles        1024-thread blocks with two barriers per tile
//   SGEMM, register-tiled      arithmetic inside one thread, few barriers
//   reduction with shuffles    warp collectives mixed with loads
//   barrier, shuffle           nothing but the switch from thread to thread
//
// Every result is verified. Targets hold for two cores and -O2 or better; nothing is asserted.
//
//   build/cpu/bin/cuda_on_cpu_benchmark
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

constexpr int kRuns = 9;
constexpr int kElements = 1 << 20;
constexpr int kMatrix = 512;   // rows and columns
constexpr int kThreads = 256;  // per block, where nothing else is said
constexpr int kRounds = 1000;  // barriers or shuffles per thread

void check(cudaError_t error, const char* call, int line) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(error));
    std::exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

// ---- Kernels ------------------------------------------------------------------------------------

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) c[i] = a[i] + b[i];
}

// C = A B, square, n a multiple of the tile; one thread per element of C.
template <int kTile>
__global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[kTile][kTile];
    __shared__ float tile_b[kTile][kTile];
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(threadIdx.y);
    const int row = static_cast<int>(blockIdx.y) * kTile + y;
    const int column = static_cast<int>(blockIdx.x) * kTile + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += kTile) {
        tile_a[y][x] = a[row * n + k0 + x];
        tile_b[y][x] = b[(k0 + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kTile; ++k)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// C = A B, square, n a multiple of the tile; a block of 256 threads makes BM x BN of C, each thread
// TM x TN of it.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
    sgemm_register_tiled(const float* a, const float* b, float* c, int n) {
    constexpr int kBlock = (BM / TM) * (BN / TN);
    __shared__ float tile_a[BK][BM];  // transposed
    __shared__ float tile_b[BK][BN];
    const int thread = static_cast<int>(threadIdx.x);
    const int row0 = static_cast<int>(blockIdx.y) * BM;
    const int column0 = static_cast<int>(blockIdx.x) * BN;
    const int thread_row = thread / (BN / TN) * TM;
    const int thread_column = thread % (BN / TN) * TN;

    float sums[TM][TN] = {};
    for (int k0 = 0; k0 < n; k0 += BK) {
        for (int i = thread; i < BM * BK; i += kBlock)
            tile_a[i % BK][i / BK] = a[(row0 + i / BK) * n + k0 + i % BK];
        for (int i = thread; i < BK * BN; i += kBlock)
            tile_b[i / BN][i % BN] = b[(k0 + i / BN) * n + column0 + i % BN];
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            float left[TM];
            float right[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                left[i] = tile_a[k][thread_row + i];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                right[j] = tile_b[k][thread_column + j];
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sums[i][j] += left[i] * right[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j)
            c[(row0 + thread_row + i) * n + column0 + thread_column + j] = sums[i][j];
    }
}

__device__ float warp_sum(float value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

__global__ void reduce_shuffle(const float* in, float* out, int n) {
    __shared__ float warp_sums[kThreads / 32];
    const int stride = static_cast<int>(gridDim.x * blockDim.x);
    float sum = 0.0f;
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += stride)
        sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < kThreads / 32 ? warp_sums[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

__global__ void only_barriers(int rounds, int* out) {
    for (int i = 0; i < rounds; ++i)
        __syncthreads();
    out[threadIdx.x] = rounds;
}

// A value that goes round the warp: after 32 k steps it is back at its lane.
__global__ void only_shuffles(int rounds, int* out) {
    int value = static_cast<int>(threadIdx.x);
    const int source = static_cast<int>((threadIdx.x + 1) % 32);
    for (int i = 0; i < rounds; ++i)
        value = __shfl_sync(0xffffffffu, value, source);
    out[threadIdx.x] = value;
}

// ---- Timing and verification --------------------------------------------------------------------

struct Times {
    double best_ms;
    double median_ms;
};

Times time_of(const std::function<void()>& work) {
    std::vector<double> runs;
    work();  // not counted: pages and worker threads come into being
    for (int run = 0; run < kRuns; ++run) {
        const auto start = std::chrono::steady_clock::now();
        work();
        CHECK(cudaDeviceSynchronize());
        runs.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    CHECK(cudaGetLastError());
    std::sort(runs.begin(), runs.end());
    return {runs.front(), runs[runs.size() / 2]};
}

void print_row(const char* what, double best, double median, const char* unit, double target, bool right) {
    char bound[32] = "-";
    if (target > 0) std::snprintf(bound, sizeof bound, "%g %s", target, unit);
    std::printf("%-40s %8.2f %8.2f %-3s %9s   %s\n", what, best, median, unit, bound,
                !right                        ? "WRONG RESULT"
                : target > 0 && best > target ? "missed"
                : target > 0                  ? "ok"
                                              : "");
}

template <class T>
std::vector<T> to_host(const T* device, int count) {
    std::vector<T> host(static_cast<std::size_t>(count));
    CHECK(cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

template <class T>
T* to_device(const std::vector<T>& host) {
    T* device = nullptr;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

// Small whole numbers, so that every sum is exact in any order.
std::vector<float> whole_numbers(int count, int modulus) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<float>(i * 7 % modulus - modulus / 2);
    return values;
}

bool is_product(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c,
                int n) {
    for (int row = 0; row < n; row += 37) {
        for (int column = 0; column < n; ++column) {
            double sum = 0.0;
            for (int k = 0; k < n; ++k)
                sum += static_cast<double>(a[row * n + k]) * b[k * n + column];
            if (c[row * n + column] != static_cast<float>(sum)) return false;
        }
    }
    return true;
}

// ---- The list -----------------------------------------------------------------------------------

void benchmark_vector_add() {
    const std::vector<float> a = whole_numbers(kElements, 1001);
    const std::vector<float> b = whole_numbers(kElements, 501);
    float* const device_a = to_device(a);
    float* const device_b = to_device(b);
    float* const device_c = to_device(std::vector<float>(a.size()));
    const Times times = time_of(
        [&] { vector_add<<<kElements / kThreads, kThreads>>>(device_a, device_b, device_c, kElements); });
    const std::vector<float> c = to_host(device_c, kElements);
    bool right = true;
    for (std::size_t i = 0; i < c.size(); ++i)
        right = right && c[i] == a[i] + b[i];
    print_row("vector add, 1 M", times.best_ms, times.median_ms, "ms", 20, right);
    for (float* pointer : {device_a, device_b, device_c})
        CHECK(cudaFree(pointer));
}

void benchmark_matmul() {
    constexpr int kTile = 32;
    const std::vector<float> a = whole_numbers(kMatrix * kMatrix, 13);
    const std::vector<float> b = whole_numbers(kMatrix * kMatrix, 11);
    float* const device_a = to_device(a);
    float* const device_b = to_device(b);
    float* const device_c = to_device(std::vector<float>(a.size()));
    Times times = time_of([&] {
        matmul_tiled<kTile><<<dim3(kMatrix / kTile, kMatrix / kTile), dim3(kTile, kTile)>>>(
            device_a, device_b, device_c, kMatrix);
    });
    print_row("matmul 512^3, 32x32 tiles", times.best_ms, times.median_ms, "ms", 350,
              is_product(a, b, to_host(device_c, kMatrix * kMatrix), kMatrix));

    CHECK(cudaMemset(device_c, 0, a.size() * sizeof(float)));
    times = time_of([&] {
        sgemm_register_tiled<128, 128, 8, 8, 8>
            <<<dim3(kMatrix / 128, kMatrix / 128), 256>>>(device_a, device_b, device_c, kMatrix);
    });
    print_row("SGEMM 512^3, 128x128x8 register-tiled", times.best_ms, times.median_ms, "ms", 60,
              is_product(a, b, to_host(device_c, kMatrix * kMatrix), kMatrix));
    for (float* pointer : {device_a, device_b, device_c})
        CHECK(cudaFree(pointer));
}

void benchmark_reduction(const char* name, int elements_per_thread, double target) {
    const std::vector<float> in = whole_numbers(kElements, 9);
    float* const device_in = to_device(in);
    float* const device_out = to_device(std::vector<float>(1));
    const Times times = time_of([&] {
        CHECK(cudaMemset(device_out, 0, sizeof(float)));
        reduce_shuffle<<<kElements / kThreads / elements_per_thread, kThreads>>>(device_in, device_out,
                                                                                 kElements);
    });
    double sum = 0.0;
    for (const float value : in)
        sum += value;
    print_row(name, times.best_ms, times.median_ms, "ms", target,
              to_host(device_out, 1)[0] == static_cast<float>(sum));
    for (float* pointer : {device_in, device_out})
        CHECK(cudaFree(pointer));
}

void benchmark_switches() {
    int* const device_out = to_device(std::vector<int>(kThreads));
    constexpr double kNanosecondsEach = 1e6 / (static_cast<double>(kThreads) * kRounds);

    Times times = time_of([&] { only_barriers<<<1, kThreads>>>(kRounds, device_out); });
    bool right = true;
    for (const int value : to_host(device_out, kThreads))
        right = right && value == kRounds;
    print_row("barrier, per thread of a block of 256", times.best_ms * kNanosecondsEach,
              times.median_ms * kNanosecondsEach, "ns", 50, right);

    times = time_of([&] { only_shuffles<<<1, kThreads>>>(kRounds, device_out); });
    const std::vector<int> values = to_host(device_out, kThreads);
    right = true;
    for (int i = 0; i < kThreads; ++i)
        right = right && values[i] == i / 32 * 32 + (i + kRounds) % 32;
    print_row("shuffle, per thread of a block of 256", times.best_ms * kNanosecondsEach,
              times.median_ms * kNanosecondsEach, "ns", 50, right);
    CHECK(cudaFree(device_out));
}

}  // namespace

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s; best and median of %d runs\n\n", properties.name, kRuns);
    std::printf("%-40s %8s %8s     %9s\n", "", "best", "median", "target");
    benchmark_vector_add();
    benchmark_matmul();
    benchmark_reduction("shuffle reduction, 1 M, 32 per thread", 32, 20);
    benchmark_reduction("shuffle reduction, 1 M, 1 per thread", 1, 0);
    benchmark_switches();
}
