// Small kernels with known counts: tests the inspector from the instrumented access to the source
// line.
#include <cooperative_groups.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cuda_on_cpu/async_copy.h"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/inspection.h"
#include "cuda_on_cpu/ptx_async.h"
#include "cuda_on_cpu/tensor_core.h"
#include "given.cuh"

namespace {

using cuda_on_cpu::AccessLine;
using cuda_on_cpu::Inspection;
using cuda_on_cpu::InspectionOptions;
using cuda_on_cpu::KernelInspection;
using cuda_on_cpu::Operation;
using cuda_on_cpu::Space;

// Device memory filled with zeros.
template <class T>
class Buffer {
  public:
    explicit Buffer(std::size_t count) {
        EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess);
        EXPECT_EQ(cudaMemset(data_, 0, count * sizeof(T)), cudaSuccess);
    }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() const { return data_; }

  private:
    T* data_ = nullptr;
};

Inspection inspect(const std::function<void()>& launch, const InspectionOptions& options = {}) {
    cuda_on_cpu::begin_inspection(options);
    launch();
    if (cudaDeviceSynchronize() != cudaSuccess) cudaDeviceReset();
    return cuda_on_cpu::end_inspection();
}

KernelInspection inspect_one(const std::function<void()>& launch, const InspectionOptions& options = {}) {
    const Inspection seen = inspect(launch, options);
    EXPECT_EQ(seen.kernels.size(), 1u);
    return seen.kernels.empty() ? KernelInspection{} : seen.kernels.front();
}

std::vector<AccessLine> lines(const KernelInspection& kernel, Space space, Operation operation) {
    std::vector<AccessLine> found;
    for (const AccessLine& line : kernel.lines) {
        if (line.space == space && line.operation == operation) found.push_back(line);
    }
    return found;
}

// Returns the only line with this operation.
AccessLine line(const KernelInspection& kernel, Space space, Operation operation) {
    const std::vector<AccessLine> found = lines(kernel, space, operation);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? AccessLine{} : found.front();
}

// --- The host --------------------------------------------------------------------------------------

TEST(Host, CopiesThatItWaitsFor) {
    const Buffer<float> in(64), out(64);
    float* pinned = nullptr;
    ASSERT_EQ(cudaMallocHost(&pinned, 64 * sizeof(float)), cudaSuccess);
    float value[64] = {};
    const auto awaited = [](const std::function<void()>& work) {
        const Inspection seen = inspect(work);
        return std::pair(seen.awaited_copies, seen.awaited_copy_bytes);
    };
    const auto none = std::pair<std::uint64_t, std::uint64_t>(0, 0);
    const auto copy = [&](void* to, const void* from, std::size_t floats, cudaMemcpyKind kind) {
        EXPECT_EQ(cudaMemcpyAsync(to, from, floats * sizeof(float), kind, nullptr), cudaSuccess);
    };
    EXPECT_EQ(awaited([&] {
                  copy(value, in.get(), 1, cudaMemcpyDeviceToHost);
                  copy(value, in.get(), 2, cudaMemcpyDefault);
                  EXPECT_EQ(cudaMemcpy(pinned, in.get(), 12, cudaMemcpyDeviceToHost), cudaSuccess);
              }),
              (std::pair<std::uint64_t, std::uint64_t>(3, 24)));
    EXPECT_EQ(awaited([&] {
                  copy(pinned, in.get(), 64, cudaMemcpyDeviceToHost);
                  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
              }),
              none)
        << "pinned memory is copied to while the host continues";
    EXPECT_EQ(awaited([&] {
                  copy(out.get(), in.get(), 64, cudaMemcpyDeviceToDevice);
                  copy(out.get(), in.get(), 64, cudaMemcpyDefault);
                  copy(out.get(), value, 64, cudaMemcpyHostToDevice);
                  copy(value, in.get(), 0, cudaMemcpyDeviceToHost);
              }),
              none);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// --- Shared memory -------------------------------------------------------------------------------

__global__ void read_with_stride(const float* in, float* out, int stride) {
    __shared__ float tile[32 * 33];
    for (unsigned i = threadIdx.x; i < 32 * 33; i += 32)
        tile[i] = in[i];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x * stride];
}

TEST(SharedMemory, StridesOf1To33Words) {
    const Buffer<float> in(32 * 33), out(32);
    for (int stride = 1; stride <= 33; ++stride) {
        const KernelInspection kernel =
            inspect_one([&] { read_with_stride<<<1, 32>>>(in.get(), out.get(), stride); });
        const AccessLine load = line(kernel, Space::kShared, Operation::kLoad);
        EXPECT_EQ(load.requests, 1u);
        EXPECT_EQ(load.transactions, static_cast<unsigned>(std::gcd(stride, 32))) << "stride " << stride;
        EXPECT_EQ(load.ideal, 1u);
        EXPECT_EQ(load.active_lanes, 32u);
        EXPECT_EQ(load.worst.array, "tile");
        EXPECT_EQ(load.worst.offsets.at(3), 3 * 4 * stride);
        const AccessLine store = line(kernel, Space::kShared, Operation::kStore);
        EXPECT_EQ(store.requests, 33u);
        EXPECT_EQ(store.transactions, 33u);
        EXPECT_EQ(kernel.barriers, 1u);
        EXPECT_EQ(kernel.static_shared, 32u * 33 * 4);
    }
}

template <int PITCH>
__global__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][PITCH];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

TEST(SharedMemory, ATransposeWithAndWithoutPadding) {
    const Buffer<float> in(1024), out(1024);
    const KernelInspection plain =
        inspect_one([&] { transpose<32><<<1, dim3(32, 32)>>>(in.get(), out.get()); });
    EXPECT_EQ(line(plain, Space::kShared, Operation::kLoad).transactions, 32u * 32);
    EXPECT_EQ(line(plain, Space::kShared, Operation::kStore).transactions, 32u);
    const KernelInspection padded =
        inspect_one([&] { transpose<33><<<1, dim3(32, 32)>>>(in.get(), out.get()); });
    EXPECT_EQ(line(padded, Space::kShared, Operation::kLoad).transactions, 32u);
    EXPECT_NE(plain.name, padded.name);
    EXPECT_NE(plain.name.find("PITCH = 32"), std::string::npos) << plain.name;
}

__global__ void two_arrays(float* out) {
    __shared__ float row[32];
    __shared__ float column[32 * 32];
    row[threadIdx.x] = 1;
    column[threadIdx.x * 32] = 2;
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x] + column[threadIdx.x * 32];
}

TEST(SharedMemory, ArraysOfOneLineAreDistinguished) {
    const Buffer<float> out(32);
    const auto loads =
        lines(inspect_one([&] { two_arrays<<<1, 32>>>(out.get()); }), Space::kShared, Operation::kLoad);
    ASSERT_EQ(loads.size(), 2u);
    EXPECT_EQ(loads[0].source, loads[1].source);
    EXPECT_EQ(loads[0].worst.array, "column");
    EXPECT_EQ(loads[0].transactions, 32u);
    EXPECT_EQ(loads[1].worst.array, "row");
    EXPECT_EQ(loads[1].transactions, 1u);
}

__global__ void dynamic_column(float* out) {
    extern __shared__ float tile[];
    tile[threadIdx.x * 32] = 1;
    out[threadIdx.x] = 0;
}

TEST(SharedMemory, DynamicMemoryBeginsInBankZero) {
    const Buffer<float> out(32);
    const KernelInspection kernel = inspect_one([&] { dynamic_column<<<2, 32, 32 * 32 * 4>>>(out.get()); });
    const AccessLine store = line(kernel, Space::kShared, Operation::kStore);
    EXPECT_EQ(store.transactions, 64u);
    EXPECT_EQ(store.worst.offsets.at(1), 128);
    EXPECT_EQ(kernel.dynamic_shared, 4096u);
    EXPECT_EQ(kernel.static_shared, 0u);
}

__global__ void vectors(const float4* in, float4* out) {
    __shared__ float4 tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[2 * threadIdx.x % 64];
}

TEST(SharedMemory, AFloat4IsOneAccess) {
    const Buffer<float4> in(32), out(32);
    const KernelInspection kernel = inspect_one([&] { vectors<<<1, 32>>>(in.get(), out.get()); });
    const AccessLine load = line(kernel, Space::kShared, Operation::kLoad);
    EXPECT_EQ(load.bytes, 16u);
    EXPECT_EQ(load.requests, 1u);
    EXPECT_EQ(load.transactions, 8u);
    EXPECT_EQ(line(kernel, Space::kShared, Operation::kStore).transactions, 4u);
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kLoad).transactions, 16u);
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kStore).bytes, 16u);
}

template <class T>
__global__ void count_in_shared(T* out, int groups) {
    __shared__ T counters[32];
    counters[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&counters[threadIdx.x % groups], T(1));
    __syncthreads();
    out[threadIdx.x] = counters[threadIdx.x];
}

template <class T>
void expect_one_atomic_request() {
    const Buffer<T> out(32);
    for (const int groups : {1, 2, 8, 32}) {
        const KernelInspection kernel = inspect_one([&] { count_in_shared<<<1, 32>>>(out.get(), groups); });
        const AccessLine atomic = line(kernel, Space::kShared, Operation::kAtomic);
        EXPECT_EQ(atomic.requests, 1u);
        EXPECT_EQ(atomic.transactions, 32u / static_cast<unsigned>(groups));
        EXPECT_EQ(line(kernel, Space::kShared, Operation::kLoad).requests, 1u);
        // Other reads of the stand-in are not counted.
        EXPECT_EQ(kernel.global_read_bytes, 0u);
    }
}

TEST(SharedMemory, AtomicsAreOneRequest) {
    expect_one_atomic_request<int>();
}
TEST(SharedMemory, AtomicsThatTheStandInMakesOfALoopAreOneRequest) {
    expect_one_atomic_request<float>();
}

__global__ void copy_asynchronously(const float* in, float* out, int stride) {
    __shared__ float tile[32 * 32];
    cuda_on_cpu::ptx::cp_async_4(&tile[threadIdx.x * stride], &in[threadIdx.x]);
    cuda_on_cpu::ptx::cp_async_commit();
    cuda_on_cpu::ptx::cp_async_wait<0>();
    out[threadIdx.x] = tile[threadIdx.x * stride];
}

TEST(SharedMemory, AsynchronousCopiesAreOnBothSides) {
    const Buffer<float> in(32), out(32);
    const KernelInspection kernel =
        inspect_one([&] { copy_asynchronously<<<1, 32>>>(in.get(), out.get(), 8); });
    EXPECT_EQ(line(kernel, Space::kShared, Operation::kAsyncCopy).transactions, 8u);
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kAsyncCopy).transactions, 4u);
    EXPECT_EQ(kernel.global_read_bytes, 128u);
    EXPECT_TRUE(lines(kernel, Space::kGlobal, Operation::kLoad).empty());
    EXPECT_TRUE(lines(kernel, Space::kShared, Operation::kStore).empty());
}

__global__ void fill_with_zeros(const float* in, float* out, unsigned lanes_that_copy) {
    __shared__ float tile[32];
    cuda_on_cpu::ptx::cp_async_4(&tile[threadIdx.x], &in[threadIdx.x], threadIdx.x < lanes_that_copy);
    cuda_on_cpu::ptx::cp_async_commit();
    cuda_on_cpu::ptx::cp_async_wait<0>();
    out[threadIdx.x] = tile[threadIdx.x];
}

TEST(SharedMemory, ACopyOfZerosReadsNothing) {
    const Buffer<float> in(32), out(32);
    const KernelInspection kernel = inspect_one([&] { fill_with_zeros<<<1, 32>>>(in.get(), out.get(), 8); });
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kAsyncCopy).active_lanes, 8u);
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kAsyncCopy).transactions, 1u);
    EXPECT_EQ(line(kernel, Space::kShared, Operation::kAsyncCopy).active_lanes, 32u);
}

template <int PITCH>
__global__ void load_matrices(unsigned* out) {
    __shared__ alignas(16) unsigned short tile[32 * PITCH];
    for (unsigned i = threadIdx.x; i < 32 * PITCH; i += 32)
        tile[i] = 0;
    __syncthreads();
    unsigned r[4];
    cuda_on_cpu::ptx::ldmatrix_x4(r, &tile[threadIdx.x * PITCH]);
    out[threadIdx.x] = r[0];
}

TEST(SharedMemory, MatrixLoads) {
    const Buffer<unsigned> out(32);
    const auto wavefronts = [](const KernelInspection& kernel) {
        const AccessLine load = line(kernel, Space::kShared, Operation::kMatrixLoad);
        EXPECT_EQ(load.requests, 1u);
        EXPECT_EQ(load.ideal, 4u);
        EXPECT_EQ(load.worst.array, "tile");
        return load.transactions;
    };
    EXPECT_EQ(wavefronts(inspect_one([&] { load_matrices<64><<<1, 32>>>(out.get()); })), 32u);
    EXPECT_EQ(wavefronts(inspect_one([&] { load_matrices<72><<<1, 32>>>(out.get()); })), 4u);
}

template <int PITCH>
__global__ void store_matrices(const float* in, float* out) {
    __shared__ alignas(16) unsigned short tile[32 * PITCH];
    const float value = in[threadIdx.x];
    const unsigned r[4] = {};
    cuda_on_cpu::ptx::stmatrix_x4(&tile[threadIdx.x * PITCH], r);
    out[threadIdx.x] = value;
}

// As stores of 16 bytes: a quarter of the warp has the rows of a matrix.
TEST(SharedMemory, MatrixStores) {
    const Buffer<float> in(32), out(32);
    const auto stores = [](const KernelInspection& kernel) {
        const AccessLine store = line(kernel, Space::kShared, Operation::kStore);
        EXPECT_EQ(store.requests, 1u);
        EXPECT_EQ(store.ideal, 4u);
        EXPECT_EQ(store.bytes, 16u);
        EXPECT_EQ(store.active_lanes, 32u);
        EXPECT_EQ(store.worst.array, "tile");
        return store.transactions;
    };
    EXPECT_EQ(stores(inspect_one([&] { store_matrices<64><<<1, 32>>>(in.get(), out.get()); })), 32u);
    EXPECT_EQ(stores(inspect_one([&] { store_matrices<72><<<1, 32>>>(in.get(), out.get()); })), 4u);
}

// --- Global memory -------------------------------------------------------------------------------

__global__ void copy(const float* in, float* out, int n, int stride, int first) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) out[i] = in[i * stride + first];
}

TEST(GlobalMemory, Strides) {
    const Buffer<float> in(32 * 40), out(32);
    for (int stride = 1; stride <= 33; ++stride) {
        const KernelInspection kernel =
            inspect_one([&] { copy<<<1, 32>>>(in.get(), out.get(), 32, stride, 0); });
        const AccessLine load = line(kernel, Space::kGlobal, Operation::kLoad);
        EXPECT_EQ(load.transactions, stride < 8 ? (31u * static_cast<unsigned>(stride) + 8) / 8 : 32u)
            << stride;
        EXPECT_EQ(load.ideal, 4u);
        EXPECT_EQ(load.bytes_used, 128u);
    }
}

TEST(GlobalMemory, AllocationsBeginAtASector) {
    // Sizes that end 4 bytes after a sector boundary: allocations here end at a page boundary, and
    // therefore begin inside a sector.
    const Buffer<float> in(33), out(33);
    EXPECT_EQ(line(inspect_one([&] { copy<<<1, 32>>>(in.get(), out.get(), 32, 1, 0); }), Space::kGlobal,
                   Operation::kLoad)
                  .transactions,
              4u);
    EXPECT_EQ(line(inspect_one([&] { copy<<<1, 32>>>(in.get(), out.get(), 32, 1, 1); }), Space::kGlobal,
                   Operation::kLoad)
                  .transactions,
              5u);
}

TEST(GlobalMemory, PartialWarps) {
    const Buffer<float> in(100), out(100);
    for (const int n : {1, 7, 17, 31, 33, 64, 95}) {
        const KernelInspection kernel = inspect_one([&] { copy<<<2, 64>>>(in.get(), out.get(), n, 1, 0); });
        const AccessLine load = line(kernel, Space::kGlobal, Operation::kLoad);
        EXPECT_EQ(load.requests, (static_cast<unsigned>(n) + 31) / 32) << n;
        EXPECT_EQ(load.active_lanes, static_cast<unsigned>(n)) << n;
        EXPECT_EQ(load.transactions, (static_cast<unsigned>(n) + 7) / 8) << n;
        EXPECT_EQ(kernel.blocks, 2u);
    }
}

struct Point {
    float x, y, z;
};

__global__ void copy_structures(const Point* in, Point* out) {
    out[threadIdx.x] = in[threadIdx.x];
}
__global__ void read_member(const Point* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x].y;
}

TEST(GlobalMemory, StructuresOf12Bytes) {
    const Buffer<Point> in(32), out(32);
    const Buffer<float> member(32);
    const AccessLine whole = line(inspect_one([&] { copy_structures<<<1, 32>>>(in.get(), out.get()); }),
                                  Space::kGlobal, Operation::kLoad);
    EXPECT_EQ(whole.bytes, 4u);
    EXPECT_EQ(whole.requests, 3u);
    EXPECT_EQ(whole.transactions, 36u);
    const AccessLine one = line(inspect_one([&] { read_member<<<1, 32>>>(in.get(), member.get()); }),
                                Space::kGlobal, Operation::kLoad);
    EXPECT_EQ(one.requests, 1u);
    EXPECT_EQ(one.transactions, 12u);
}

__global__ void read_again(const float* in, float* out, int times) {
    float sum = 0;
    for (int i = 0; i < times; ++i)
        sum += in[threadIdx.x];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}

TEST(GlobalMemory, UniqueBytesAreThoseOfAPerfectCache) {
    const Buffer<float> in(32), out(32 * 10);
    const KernelInspection kernel = inspect_one([&] { read_again<<<10, 32>>>(in.get(), out.get(), 5); });
    EXPECT_EQ(kernel.unique_read_bytes, 128u);
    // The compiler may load only once.
    EXPECT_EQ(kernel.global_read_bytes % 1280, 0u);
    EXPECT_EQ(kernel.unique_written_bytes, 1280u);
    EXPECT_EQ(kernel.global_written_bytes, 1280u);
}

__device__ float device_table[32];
__constant__ float constant_table[32];

__global__ void write_table(float value) {
    device_table[threadIdx.x] = value;
}
__global__ void read_tables(float* out) {
    out[threadIdx.x] = device_table[threadIdx.x] + constant_table[threadIdx.x];
}

TEST(GlobalMemory, DeviceVariablesCountAndConstantsDoNot) {
    const Buffer<float> out(32);
    const std::vector<float> ones(32, 1.0f);
    write_table<<<1, 32>>>(1.0f);
    ASSERT_EQ(cudaMemcpyToSymbol(constant_table, ones.data(), 128), cudaSuccess);
    const AccessLine load =
        line(inspect_one([&] { read_tables<<<1, 32>>>(out.get()); }), Space::kGlobal, Operation::kLoad);
    EXPECT_EQ(load.requests, 1u);
    EXPECT_GE(load.transactions, 4u);
    EXPECT_EQ(load.worst.array, "__device__ variables");
}

__global__ void copy_volatile(const volatile float* in, volatile float* out) {
    out[threadIdx.x] = in[threadIdx.x];
}

TEST(GlobalMemory, VolatileAccessesAreLoadsAndStores) {
    Buffer<float> in(32), out(32);
    const KernelInspection seen = inspect_one([&] { copy_volatile<<<1, 32>>>(in.get(), out.get()); });
    EXPECT_EQ(line(seen, Space::kGlobal, Operation::kLoad).transactions, 4u);
    EXPECT_EQ(line(seen, Space::kGlobal, Operation::kStore).transactions, 4u);
}

__global__ void count_in_global(unsigned* counters, int groups) {
    atomicAdd(&counters[threadIdx.x % groups], 1U);
}

TEST(GlobalMemory, Atomics) {
    const Buffer<unsigned> counters(32);
    const KernelInspection kernel = inspect_one([&] { count_in_global<<<1, 32>>>(counters.get(), 16); });
    const AccessLine atomic = line(kernel, Space::kGlobal, Operation::kAtomic);
    EXPECT_EQ(atomic.requests, 1u);
    // Two sectors; two lanes access each word.
    EXPECT_EQ(atomic.transactions, 4u);
    EXPECT_EQ(atomic.source.file, "cuda_on_cpu/inspector/test/inspection_test.cu");
    EXPECT_EQ(kernel.unique_written_bytes, 64u);
}

// A GPU serves relaxed loads as other loads: lanes that load the same word share it.
__global__ void publish_and_look(unsigned* flag, unsigned* seen) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> word(*flag);
    if (threadIdx.x == 0) word.store(1, cuda::memory_order_relaxed);
    __syncwarp();
    seen[threadIdx.x] = word.load(cuda::memory_order_relaxed);
}

TEST(GlobalMemory, AtomicLoadsAndStoresAreNoUpdates) {
    const Buffer<unsigned> flag(1), seen(32);
    const KernelInspection kernel = inspect_one([&] { publish_and_look<<<1, 32>>>(flag.get(), seen.get()); });
    const AccessLine load = line(kernel, Space::kGlobal, Operation::kAtomicLoad);
    EXPECT_EQ(load.requests, 1u);
    EXPECT_EQ(load.active_lanes, 32u);
    EXPECT_EQ(load.transactions, 1u);
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kAtomicStore).active_lanes, 1u);
    EXPECT_EQ(kernel.unique_read_bytes, 32u);
    EXPECT_EQ(kernel.unique_written_bytes, 32u + 128u);
}

__global__ void exchange(unsigned* words) {
    atomicExch(&words[threadIdx.x % 4], 1U);
}

TEST(GlobalMemory, ExchangesAreUpdatesAlsoWithoutAUseOfTheirResults) {
    const Buffer<unsigned> words(4);
    const KernelInspection kernel = inspect_one([&] { exchange<<<1, 32>>>(words.get()); });
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kAtomic).transactions, 8u);
}

// Accesses of 16 bytes, which a function of the stand-in performs.
__global__ void store_and_load_16_bytes(uint4* places) {
    uint4 value = {threadIdx.x, 0, 0, 0};
    __nv_atomic_store(&places[threadIdx.x], &value, __NV_ATOMIC_RELAXED);
    __nv_atomic_load(&places[threadIdx.x], &value, __NV_ATOMIC_RELAXED);
}

TEST(GlobalMemory, AtomicLoadsAndStoresOf16Bytes) {
    const Buffer<uint4> places(32);
    const KernelInspection kernel = inspect_one([&] { store_and_load_16_bytes<<<1, 32>>>(places.get()); });
    for (const Operation operation : {Operation::kAtomicStore, Operation::kAtomicLoad}) {
        const AccessLine atomic = line(kernel, Space::kGlobal, operation);
        EXPECT_EQ(atomic.requests, 1u);
        EXPECT_EQ(atomic.source.file, "cuda_on_cpu/inspector/test/inspection_test.cu");
    }
    EXPECT_EQ(kernel.unique_written_bytes, 512u);
}

struct Part {
    int* out;
    int first;
};
__global__ void fill_part(Part part) {
    part.out[part.first + threadIdx.x] = 1;
}
__global__ void launch_parts(int* out) {
    fill_part<<<1, 32>>>(Part{out, static_cast<int>(32 * threadIdx.x)});
}

TEST(GlobalMemory, ALaunchByAKernelIsNoAccess) {
    const Buffer<int> out(64);
    const Inspection seen = inspect([&] { launch_parts<<<1, 2>>>(out.get()); });
    ASSERT_EQ(seen.kernels.size(), 2u);
    for (const KernelInspection& kernel : seen.kernels) {
        if (kernel.name == "launch_parts")
            EXPECT_TRUE(kernel.lines.empty())
                << kernel.lines.size() << ", the first in line " << kernel.lines.front().source.line;
        else
            EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kStore).requests, 2u);
    }
}

// --- Divergence ----------------------------------------------------------------------------------

__global__ void branches(const float* in, float* out) {
    const unsigned lane = threadIdx.x;
    if (lane % 2 == 0) {
        out[lane] = in[lane];
    } else {
        out[lane] = in[63 - lane];
    }
    out[lane + 32] = in[lane + 32];
}

TEST(Divergence, BothSidesOfABranch) {
    const Buffer<float> in(64), out(64);
    const auto loads = lines(inspect_one([&] { branches<<<1, 32>>>(in.get(), out.get()); }), Space::kGlobal,
                             Operation::kLoad);
    ASSERT_EQ(loads.size(), 3u);
    EXPECT_EQ(loads[0].active_lanes, 16u);
    EXPECT_EQ(loads[1].active_lanes, 16u);
    EXPECT_EQ(loads[2].active_lanes, 32u);
    for (const AccessLine& load : loads)
        EXPECT_EQ(load.requests, 1u);
}

// Lane l executes l % 4 rounds of l % 3 steps.
__global__ void nested_loops(const float* in, float* out) {
    const unsigned lane = threadIdx.x;
    float sum = 0;
    for (unsigned round = 0; round < lane % 4; ++round) {
        sum += in[round];
        for (unsigned step = 0; step < lane % 3; ++step)
            sum *= in[32 + step];
        out[lane] = sum;
    }
    out[lane + 32] = sum;
}

TEST(Divergence, NestedLoopsOfDifferentLengths) {
    const Buffer<float> in(64), out(64);
    const KernelInspection kernel = inspect_one([&] { nested_loops<<<1, 32>>>(in.get(), out.get()); });
    const auto loads = lines(kernel, Space::kGlobal, Operation::kLoad);
    ASSERT_EQ(loads.size(), 2u);
    // Three rounds; in round r the lanes with l % 4 > r take part, in its step s those that have l
    // % 3 > s as well.
    unsigned rounds = 0, steps = 0, lanes_in_rounds = 0, lanes_in_steps = 0;
    for (unsigned r = 0; r < 3; ++r) {
        ++rounds;
        steps += 2;
        for (unsigned lane = 0; lane < 32; ++lane) {
            lanes_in_rounds += lane % 4 > r ? 1 : 0;
            lanes_in_steps += lane % 4 > r ? lane % 3 : 0;
        }
    }
    EXPECT_EQ(loads[0].requests, rounds);
    EXPECT_EQ(loads[0].active_lanes, lanes_in_rounds);
    EXPECT_EQ(loads[1].requests, steps);
    EXPECT_EQ(loads[1].active_lanes, lanes_in_steps);
    const auto stores = lines(kernel, Space::kGlobal, Operation::kStore);
    ASSERT_EQ(stores.size(), 2u);
    EXPECT_EQ(stores[1].requests, 1u);
    EXPECT_EQ(stores[1].active_lanes, 32u);
}

// Each lane reads once, at the same place as all others, but not in the same iteration.
template <class Wait>
__device__ void take_turns(const float* in, float* out, unsigned turns, Wait wait) {
    float sum = 0;
    for (unsigned turn = 0; turn < turns; ++turn) {
        if (threadIdx.x % turns == turn) sum += in[threadIdx.x];
        wait();
    }
    out[threadIdx.x] = sum;
}
__global__ void take_turns_in_a_block(const float* in, float* out, unsigned turns) {
    take_turns(in, out, turns, [] { __syncthreads(); });
}
__global__ void take_turns_in_halves(const float* in, float* out, unsigned turns) {
    take_turns(in, out, turns, [] { __syncwarp(threadIdx.x < 16 ? 0xffffU : 0xffff0000U); });
}
__global__ void __cluster_dims__(2, 1, 1)
    take_turns_in_a_cluster(const float* in, float* out, unsigned turns) {
    take_turns(in, out, turns, [] { cooperative_groups::this_cluster().sync(); });
}

TEST(Divergence, NothingGoesTogetherAcrossABarrier) {
    const Buffer<float> in(32), out(32);
    const auto requests = [&](auto kernel, unsigned blocks) {
        const KernelInspection seen = inspect_one([&] { kernel<<<blocks, 32>>>(in.get(), out.get(), 4); });
        const AccessLine load = line(seen, Space::kGlobal, Operation::kLoad);
        EXPECT_EQ(load.active_lanes, 32 * blocks);
        return load.requests;
    };
    EXPECT_EQ(requests(take_turns_in_a_block, 1), 4u);
    EXPECT_EQ(requests(take_turns_in_halves, 1), 4u);
    EXPECT_EQ(requests(take_turns_in_a_cluster, 2), 2 * 4u);
}

__global__ void halves_wait_apart(const float* in, float* out) {
    const unsigned lane = threadIdx.x;
    const unsigned half = lane < 16 ? 0xffffU : 0xffff0000U;
    float value = in[lane];
    value += __shfl_xor_sync(half, value, 1);
    out[lane] = value;
}

TEST(Divergence, HalvesOfAWarpThatWaitForThemselvesStayTogether) {
    const Buffer<float> in(32), out(32);
    const KernelInspection kernel = inspect_one([&] { halves_wait_apart<<<1, 32>>>(in.get(), out.get()); });
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kLoad).requests, 1u);
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kStore).requests, 1u);
}

// --- The rest ------------------------------------------------------------------------------------

TEST(Inspection, NamesTheLineOfTheAccess) {
    const Buffer<float> in(32), out(32);
    const AccessLine load = line(inspect_one([&] { copy<<<1, 32>>>(in.get(), out.get(), 32, 1, 0); }),
                                 Space::kGlobal, Operation::kLoad);
    EXPECT_EQ(load.source.file, "cuda_on_cpu/inspector/test/inspection_test.cu");
    EXPECT_GT(load.source.line, 200);
    EXPECT_EQ(load.worst.array, "in");
}

struct Matrices {
    std::size_t rows;
    const float* left;
    float* right;
};

__global__ void copy_in_structure(Matrices matrices) {
    matrices.right[threadIdx.x] = matrices.left[threadIdx.x];
}

template <class... Parts>
__global__ void add_parts(float* sum, const Parts*... parts) {
    sum[threadIdx.x] = (0.0f + ... + parts[threadIdx.x]);
}

TEST(Inspection, NamesGlobalMemoryAfterTheParameterThatPointsThere) {
    const Buffer<float> in(32), out(64), other(32);
    const auto array = [](const std::function<void()>& launch, Operation operation) {
        return line(inspect_one(launch), Space::kGlobal, operation).worst.array;
    };
    EXPECT_EQ(array([&] { copy<<<1, 32>>>(in.get(), out.get() + 32, 32, 1, 0); }, Operation::kStore), "out");
    EXPECT_EQ(array([&] { copy<<<1, 32>>>(in.get(), in.get(), 32, 1, 0); }, Operation::kLoad), "in and out");
    const auto in_structure = [&] { copy_in_structure<<<1, 32>>>({32, in.get(), out.get()}); };
    EXPECT_EQ(array(in_structure, Operation::kLoad), "matrices, allocation of 128 bytes");
    EXPECT_EQ(array(in_structure, Operation::kStore), "matrices, allocation of 256 bytes");
    const Matrices one = {32, in.get(), in.get()};
    EXPECT_EQ(array([&] { copy_in_structure<<<1, 32>>>(one); }, Operation::kLoad), "matrices");
    EXPECT_EQ(array([&] { add_parts<<<1, 32>>>(out.get(), in.get()); }, Operation::kLoad), "parts");
    const auto both = [&] { add_parts<<<1, 32>>>(out.get(), in.get(), other.get()); };
    const auto loads = lines(inspect_one(both), Space::kGlobal, Operation::kLoad);
    ASSERT_EQ(loads.size(), 2u);
    EXPECT_EQ(loads[0].worst.array, "parts, allocation of 128 bytes");
}

__global__ void copy_by_helper(const float* in, float* out) {
    const float element = element_of(in);
    out[threadIdx.x] = element;
}

std::string file_of_helpers_load() {
    const Buffer<float> in(32), out(32);
    return line(inspect_one([&] { copy_by_helper<<<1, 32>>>(in.get(), out.get()); }), Space::kGlobal,
                Operation::kLoad)
        .source.file;
}

TEST(Inspection, NamesTheLineInAHeaderOrTheKernelsLine) {
    EXPECT_EQ(file_of_helpers_load(), "cuda_on_cpu/inspector/test/given.cuh");
    // The variable is read once per process, so this test needs a process of its own.
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    setenv("CUDA_ON_CPU_LINES", "kernel", 1);
    EXPECT_EXIT(std::fprintf(stderr, "%s", file_of_helpers_load().c_str());
                std::exit(0), testing::ExitedWithCode(0), "^cuda_on_cpu/inspector/test/inspection_test.cu$");
    unsetenv("CUDA_ON_CPU_LINES");
}

TEST(Inspection, SamplesLargeGrids) {
    const Buffer<float> in(32 * 1000), out(32 * 1000);
    const KernelInspection kernel = inspect_one(
        [&] { copy<<<1000, 32>>>(in.get(), out.get(), 32 * 1000, 1, 0); }, {.blocks_per_launch = 10});
    EXPECT_EQ(kernel.blocks, 1000u);
    EXPECT_EQ(kernel.inspected_blocks, 10u);
    const AccessLine store = line(kernel, Space::kGlobal, Operation::kStore);
    EXPECT_EQ(store.requests, 10u);
    EXPECT_EQ(store.worst.block[0], 0u);
    for (const std::uint64_t refused : {0, 1, 32769})
        EXPECT_THROW(cuda_on_cpu::begin_inspection({.blocks_per_launch = refused}), std::invalid_argument);
}

TEST(Inspection, AddsUpTheLaunchesOfAKernel) {
    const Buffer<float> a(64), b(64);
    const Inspection seen = inspect([&] {
        copy<<<1, 64>>>(a.get(), b.get(), 64, 1, 0);
        copy<<<1, 64>>>(b.get(), a.get(), 64, 1, 0);
        copy<<<2, 32>>>(a.get(), b.get(), 64, 1, 0);
        read_again<<<1, 32>>>(a.get(), b.get(), 1);
    });
    ASSERT_EQ(seen.kernels.size(), 3u);
    EXPECT_EQ(seen.kernels[0].launches, 2u);
    EXPECT_EQ(line(seen.kernels[0], Space::kGlobal, Operation::kLoad).requests, 4u);
    EXPECT_EQ(seen.kernels[1].threads_per_block, 32u);
    EXPECT_NE(seen.kernels[2].name.find("read_again"), std::string::npos);
}

TEST(Inspection, TheWorstRequestOfSeveral) {
    const Buffer<float> in(32 * 40), out(64);
    const KernelInspection kernel = inspect_one([&] {
        copy<<<1, 32>>>(in.get(), out.get(), 32, 1, 0);
        copy<<<1, 32>>>(in.get(), out.get(), 7, 16, 3);
    });
    const AccessLine load = line(kernel, Space::kGlobal, Operation::kLoad);
    EXPECT_EQ(load.requests, 2u);
    EXPECT_EQ(load.transactions, 11u);
    EXPECT_EQ(load.worst.transactions, 7u);
    EXPECT_EQ(load.worst.active_lanes, 7u);
    EXPECT_EQ(load.worst.offsets.at(2), (2 * 16 + 3) * 4);
    EXPECT_EQ(load.worst.offsets.at(7), -1);
}

__global__ void read_often(const float* in, float* out, int times) {
    float sum = 0;
    for (int i = 0; i < times; ++i)
        sum += in[i % 8];
    out[threadIdx.x] = sum;
}

TEST(Inspection, SaysHowManyAccessesWereTooMany) {
    constexpr std::uint64_t kMost = 1 << 18;
    Buffer<float> in(8), out(1);
    const auto seen = [&](std::uint64_t times) {
        return inspect_one([&] { read_often<<<1, 1>>>(in.get(), out.get(), static_cast<int>(times)); });
    };
    EXPECT_EQ(seen(kMost - 1).dropped_accesses, 0u);
    const KernelInspection more = seen(kMost + 10);
    EXPECT_EQ(more.dropped_accesses, 11u) << "10 loads and the store";
    EXPECT_EQ(line(more, Space::kGlobal, Operation::kLoad).requests, kMost);
}

__global__ void touch_pages(float* out, std::size_t pages) {
    for (std::size_t page = threadIdx.x; page < pages; page += blockDim.x)
        out[page * 16384] = 1;
}

TEST(Inspection, SaysWhetherAllMemoryWasWatched) {
    constexpr std::size_t kMostPages = 2048;
    Buffer<float> out((kMostPages + 2) * 16384);
    const auto seen = [&](std::size_t pages) {
        return inspect_one([&] { touch_pages<<<1, 32>>>(out.get(), pages); });
    };
    EXPECT_FALSE(seen(kMostPages + 1).all_memory_watched);
    EXPECT_TRUE(seen(100).all_memory_watched) << "the next launch begins anew";
}

TEST(Inspection, SeesNothingOfKernelsBeforeAndAfter) {
    const Buffer<float> in(32), out(32);
    copy<<<1, 32>>>(in.get(), out.get(), 32, 1, 0);
    EXPECT_TRUE(inspect([] {}).kernels.empty());
    EXPECT_THROW(cuda_on_cpu::end_inspection(), std::logic_error);
}

__global__ void fail(float* out) {
    out[threadIdx.x] = 1;
    if (threadIdx.x == 5) __trap();
}

TEST(Inspection, AKernelThatFailsIsAFinding) {
    const Buffer<float> out(32);
    const KernelInspection kernel = inspect_one([&] { fail<<<1, 32>>>(out.get()); });
    ASSERT_EQ(kernel.findings.size(), 1u);
    EXPECT_NE(kernel.findings[0].message.find("__trap"), std::string::npos);
    EXPECT_EQ(kernel.findings[0].source.file, "cuda_on_cpu/inspector/test/inspection_test.cu");
    // The next inspection finds nothing.
    EXPECT_TRUE(inspect_one([&] { copy<<<1, 1>>>(out.get(), out.get(), 1, 1, 0); }).findings.empty());
}

// --- Traces ----------------------------------------------------------------------------------------

// A tile of 32 rows, each of `kPitch` words, by one warp: stored along rows, loaded along columns.
// Blocks before `working` do nothing.
template <int kPitch>
__global__ void transpose(const float* in, float* out, unsigned working) {
    __shared__ float tile[32 * kPitch];
    if (blockIdx.x < working) return;
    for (unsigned row = 0; row < 32; ++row)
        tile[row * kPitch + threadIdx.x] = in[row * 32 + threadIdx.x];
    __syncthreads();
    float sum = __shfl_xor_sync(0xFFFFFFFF, 1.0f, 1);
    for (unsigned row = 0; row < 32; ++row)
        out[row * 32 + threadIdx.x] = sum * tile[threadIdx.x * kPitch + row];
}

template <int kPitch>
KernelInspection traced_transpose(unsigned steps, unsigned working = 0, unsigned blocks = 1) {
    const Buffer<float> in(32 * 32), out(32 * 32);
    return inspect_one([&] { transpose<kPitch><<<blocks, 32>>>(in.get(), out.get(), working); },
                       {.trace_steps = steps});
}

template <int kPitch>
void compare_trace_with_lines() {
    const KernelInspection kernel = traced_transpose<kPitch>(1000);
    ASSERT_TRUE(kernel.trace.has_value());
    EXPECT_EQ(kernel.trace->steps, 4 * 32 + 2u) << "requests, the barrier and the shuffle";
    EXPECT_EQ(kernel.trace->recorded.size(), kernel.trace->steps);
    ASSERT_EQ(kernel.lines.size(), 4u);
    for (const AccessLine& line : kernel.lines) {
        AccessLine sum{.source = line.source, .space = line.space, .operation = line.operation, .worst = {}};
        for (const cuda_on_cpu::TraceStep& step : kernel.trace->recorded) {
            if (step.source != line.source || step.space != line.space || step.array != line.worst.array)
                continue;
            if (step.offsets.empty()) continue;
            ++sum.requests;
            sum.transactions += step.transactions;
            sum.ideal += step.ideal;
            sum.active_lanes += static_cast<unsigned>(__builtin_popcount(step.lanes));
            EXPECT_EQ(step.bytes, line.bytes);
            EXPECT_EQ(step.kind, line.operation == Operation::kLoad ? "load" : "store");
        }
        EXPECT_EQ(sum.requests, line.requests) << line.source.line;
        EXPECT_EQ(sum.transactions, line.transactions) << line.source.line;
        EXPECT_EQ(sum.ideal, line.ideal) << line.source.line;
        EXPECT_EQ(sum.active_lanes, line.active_lanes) << line.source.line;
    }
    const cuda_on_cpu::TraceStep& second_column = kernel.trace->recorded.at(64 + 2 + 2);
    EXPECT_EQ(second_column.array, "tile");
    EXPECT_EQ(second_column.transactions, kPitch == 32 ? 32u : 1u);
    for (std::size_t lane = 0; lane < 32; ++lane)
        EXPECT_EQ(second_column.offsets.at(lane), static_cast<std::int64_t>(4 * (lane * kPitch + 1)));
}

TEST(Trace, HasTheRequestsOfTheLinesWithoutPadding) {
    compare_trace_with_lines<32>();
}

TEST(Trace, HasTheRequestsOfTheLinesWithPadding) {
    compare_trace_with_lines<33>();
}

TEST(Trace, HasBarriersAndCollectivesInTheirPlace) {
    const KernelInspection kernel = traced_transpose<33>(1000);
    ASSERT_TRUE(kernel.trace.has_value());
    const auto& steps = kernel.trace->recorded;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].kind == "barrier", i == 64) << i;
        EXPECT_EQ(steps[i].kind == "collective", i == 65) << i;
        EXPECT_EQ(steps[i].lanes, ~0U) << i;
    }
    EXPECT_EQ(steps.at(65).source.line, steps.at(64).source.line + 1);
    EXPECT_EQ(steps.at(64).source.file, "cuda_on_cpu/inspector/test/inspection_test.cu");
}

TEST(Trace, RecordsNoMoreThanWantedAndCountsAll) {
    const KernelInspection kernel = traced_transpose<33>(7);
    ASSERT_TRUE(kernel.trace.has_value());
    EXPECT_EQ(kernel.trace->recorded.size(), 7u);
    EXPECT_EQ(kernel.trace->steps, 4 * 32 + 2u);
    EXPECT_FALSE(traced_transpose<33>(0).trace.has_value());
}

TEST(Trace, IsOfTheFirstOfTheBlocksAtWork) {
    const KernelInspection kernel = traced_transpose<33>(10, 3, 9);
    ASSERT_TRUE(kernel.trace.has_value());
    EXPECT_EQ(kernel.trace->block, (std::array<unsigned, 3>{3, 0, 0}));
    const KernelInspection none = traced_transpose<33>(10, 9, 9);
    ASSERT_TRUE(none.trace.has_value());
    EXPECT_TRUE(none.trace->recorded.empty());
}

TEST(Trace, CountsFromWhereTheParameterPoints) {
    const Buffer<float> in(1024 + 64), out(1024 + 64);
    const auto offsets = [&](std::size_t before) {
        const KernelInspection kernel = inspect_one(
            [&] { transpose<33><<<1, 32>>>(in.get() + before, out.get() + 64, 0); }, {.trace_steps = 1});
        return kernel.trace->recorded.at(0).offsets;
    };
    EXPECT_EQ(offsets(64).at(0), 0);
    EXPECT_EQ(offsets(64).at(31), 124);
    EXPECT_EQ(offsets(3).at(0), 12) << "in the middle of a sector, which would begin elsewhere";
}

// The first warp only waits.
__global__ void second_warp(const float* in, float* out) {
    __syncthreads();
    if (threadIdx.x >= 32 && threadIdx.x % 2 == 1) out[threadIdx.x] = in[threadIdx.x];
}

// The kinds of the steps of a trace, one letter each: load, store, barrier, collective,
// matrix_load.
std::string kinds(const KernelInspection& kernel) {
    std::string text;
    for (const cuda_on_cpu::TraceStep& step : kernel.trace.value().recorded)
        text += step.kind[0];
    return text;
}

// The first warp of block 0 has one load, the other warps of blocks 1 and 2 have three.
__global__ void more_in_the_middle(const float* in, float* out) {
    const unsigned i = threadIdx.x;
    if (i < 32 && blockIdx.x == 0) out[i] = in[i];
    if (i >= 32 && blockIdx.x >= 1) out[i] = in[i - 32] + in[i] + in[(i + 32) % 96];
}

TEST(Trace, IsOfTheFirstWarpWithTheMostRequests) {
    const Buffer<float> in(96), out(96);
    const KernelInspection kernel =
        inspect_one([&] { more_in_the_middle<<<3, 96>>>(in.get(), out.get()); }, {.trace_steps = 100});
    ASSERT_TRUE(kernel.trace.has_value());
    EXPECT_EQ(kernel.trace->block, (std::array<unsigned, 3>{1, 0, 0}));
    EXPECT_EQ(kernel.trace->warp, 1u);
    EXPECT_EQ(kinds(kernel), "llls");
    // Steps beyond those that are recorded do not count.
    const KernelInspection shorter =
        inspect_one([&] { more_in_the_middle<<<3, 96>>>(in.get(), out.get()); }, {.trace_steps = 2});
    EXPECT_EQ(shorter.trace.value().block, (std::array<unsigned, 3>{0, 0, 0}));
}

TEST(Trace, IsOfTheFirstWarpAtWorkInTheFirstLaunch) {
    const Buffer<float> in(64), out(64);
    const KernelInspection kernel = inspect_one(
        [&] {
            second_warp<<<1, 64>>>(in.get(), out.get());
            second_warp<<<1, 64>>>(in.get(), in.get());
        },
        {.trace_steps = 10});
    ASSERT_TRUE(kernel.trace.has_value());
    EXPECT_EQ(kernel.trace->warp, 1u);
    ASSERT_EQ(kernel.trace->recorded.size(), 3u);
    EXPECT_EQ(kernel.trace->recorded[0].kind, "barrier");
    EXPECT_EQ(kernel.trace->recorded[1].lanes, 0xAAAAAAAAU);
    EXPECT_EQ(kernel.trace->recorded[2].array, "out") << "the second launch stores to in";
    EXPECT_EQ(kernel.trace->recorded[2].offsets.at(0), -1);
    EXPECT_EQ(kernel.trace->recorded[2].offsets.at(1), 132);
}

// Block b of launch n stores b < n ? n : 0 times.
__global__ void as_often_as_said(float* out, unsigned launch) {
    for (unsigned i = 0; blockIdx.x < launch && i < launch; ++i)
        out[32 * i + threadIdx.x] = 1;
}

TEST(Trace, IsOfTheLaunchWithTheMostRequests) {
    const Buffer<float> out(3 * 32);
    const KernelInspection kernel = inspect_one(
        [&] {
            for (const unsigned launch : {1U, 3U, 0U, 2U, 3U})
                as_often_as_said<<<1 + launch % 2, 32>>>(out.get(), launch);
        },
        {.trace_steps = 10});
    EXPECT_EQ(kernel.launches, 5u);
    EXPECT_EQ(kinds(kernel), "sss");
    EXPECT_EQ(kernel.trace->block, (std::array<unsigned, 3>{0, 0, 0}));
}

unsigned lanes_at(const KernelInspection& kernel, std::size_t step) {
    return kernel.trace.value().recorded.at(step).lanes;
}

__global__ void shuffle_of_half(const float* in, float* out) {
    float value = in[threadIdx.x];
    if (threadIdx.x < 16) {
        value += __shfl_xor_sync(0xFFFF, value, 1);
        value += in[threadIdx.x + 32];
        value += __shfl_xor_sync(0xFFFF, value, 2);
    }
    out[threadIdx.x] = value;
}

TEST(Trace, HasACollectiveOfHalfAWarpAfterTheLoadsBeforeIt) {
    const Buffer<float> in(64), out(32);
    const KernelInspection kernel =
        inspect_one([&] { shuffle_of_half<<<1, 32>>>(in.get(), out.get()); }, {.trace_steps = 100});
    EXPECT_EQ(kinds(kernel), "lclcs");
    for (const std::size_t half : {1U, 2U, 3U})
        EXPECT_EQ(lanes_at(kernel, half), 0xFFFFU) << half;
    for (const std::size_t whole : {0U, 4U})
        EXPECT_EQ(lanes_at(kernel, whole), ~0U) << whole;
    EXPECT_EQ(line(kernel, Space::kGlobal, Operation::kStore).requests, 1u) << "the halves reconverge";
}

__global__ void shuffles_of_both_halves(const float* in, float* out) {
    float value = in[threadIdx.x];
    const unsigned mask = threadIdx.x < 16 ? 0xFFFF : 0xFFFF0000;
    value += __shfl_xor_sync(mask, value, 1);
    out[threadIdx.x] = value + in[threadIdx.x + 32];
}

TEST(Trace, HasACollectiveOfEachHalfBetweenTheLoadsOfAll) {
    const Buffer<float> in(64), out(32);
    const KernelInspection kernel =
        inspect_one([&] { shuffles_of_both_halves<<<1, 32>>>(in.get(), out.get()); }, {.trace_steps = 100});
    EXPECT_EQ(kinds(kernel), "lccls");
    EXPECT_EQ(lanes_at(kernel, 1) ^ lanes_at(kernel, 2), ~0U);
    EXPECT_EQ(kernel.trace->recorded.at(1).source, kernel.trace->recorded.at(2).source);
}

__global__ void half_of_the_lanes_end(const float* in, float* out) {
    float value = in[threadIdx.x];
    if (threadIdx.x >= 16) {
        out[threadIdx.x] = value;
        return;
    }
    value += __shfl_xor_sync(0xFFFF, value, 1);
    out[threadIdx.x] = value;
}

TEST(Trace, HasACollectiveAfterTheLoadsOfLanesThatHaveEnded) {
    const Buffer<float> in(32), out(32);
    const KernelInspection kernel =
        inspect_one([&] { half_of_the_lanes_end<<<1, 32>>>(in.get(), out.get()); }, {.trace_steps = 100});
    EXPECT_EQ(kinds(kernel), "lcss");
    EXPECT_EQ(lanes_at(kernel, 0), ~0U);
    EXPECT_EQ(lanes_at(kernel, 1), 0xFFFFU);
    EXPECT_EQ(lanes_at(kernel, 2), 0xFFFFU);
}

__global__ void load_then_matrix_load(const float* in, float* out) {
    __shared__ alignas(16) unsigned short tile[32 * 8];
    const float value = in[threadIdx.x];
    unsigned r[4];
    cuda_on_cpu::ptx::ldmatrix_x4(r, &tile[threadIdx.x * 8]);
    out[threadIdx.x] = value;
}

TEST(Trace, HasAMatrixLoadAfterTheLoadsBeforeIt) {
    const Buffer<float> in(32), out(32);
    const KernelInspection kernel =
        inspect_one([&] { load_then_matrix_load<<<1, 32>>>(in.get(), out.get()); }, {.trace_steps = 100});
    EXPECT_EQ(kinds(kernel), "lms") << "the load of matrices is one step, not a wait beside it";
    EXPECT_EQ(line(kernel, Space::kShared, Operation::kMatrixLoad).transactions, 4u);
}

TEST(Trace, HasAMatrixStoreAfterTheLoadsBeforeIt) {
    const Buffer<float> in(32), out(32);
    const KernelInspection kernel =
        inspect_one([&] { store_matrices<72><<<1, 32>>>(in.get(), out.get()); }, {.trace_steps = 100});
    EXPECT_EQ(kinds(kernel), "lss") << "the store of matrices is one step, not a wait beside it";
}

// Of 20 iterations the last two have other lanes, then other transactions.
__global__ void long_loop(const float* in, float* out, unsigned iterations) {
    const unsigned lane = threadIdx.x;
    float sum = 0;
    for (unsigned i = 0; i < iterations; ++i) {
        const unsigned stride = i == iterations - 1 ? 2 : 1;
        if (i != iterations - 2 || lane % 2 == 0) sum += in[lane * stride];
        __syncwarp();
    }
    out[lane] = sum;
}

TEST(Trace, LeavesOutStepsThatRepeatOthers) {
    const Buffer<float> in(64), out(32);
    const auto traced = [&](unsigned alike) {
        return inspect_one([&] { long_loop<<<1, 32>>>(in.get(), out.get(), 20); },
                           {.trace_steps = 100, .trace_alike = alike});
    };
    const std::string all = [] {
        std::string text;
        for (unsigned i = 0; i < 20; ++i)
            text += "lc";
        return text + "s";
    }();
    EXPECT_EQ(kinds(traced(0)), all);
    EXPECT_EQ(kinds(traced(20)), all);
    const KernelInspection kernel = traced(3);
    EXPECT_EQ(kernel.trace->steps, all.size());
    EXPECT_EQ(kinds(kernel), "lclclclls");
    EXPECT_EQ(lanes_at(kernel, 6), 0x55555555U) << "other lanes are another step";
    EXPECT_EQ(kernel.trace->recorded.at(7).transactions, 8u) << "as are other transactions";
    std::vector<unsigned> repeats;
    for (const cuda_on_cpu::TraceStep& step : kernel.trace->recorded)
        repeats.push_back(step.repeats);
    EXPECT_EQ(repeats, (std::vector<unsigned>{0, 0, 0, 0, 0, 2 * 15, 1, 1, 0}));
}

TEST(Trace, EndsWhereOneMoreWouldBeRecorded) {
    const Buffer<float> in(64), out(32);
    const KernelInspection kernel = inspect_one([&] { long_loop<<<1, 32>>>(in.get(), out.get(), 20); },
                                                {.trace_steps = 7, .trace_alike = 3});
    EXPECT_EQ(kinds(kernel), "lclclcl");
    EXPECT_EQ(kernel.trace->steps, 41u);
    EXPECT_EQ(kernel.trace->recorded.at(5).repeats, 30u);
    EXPECT_EQ(kernel.trace->recorded.at(6).repeats, 1u) << "up to the first that would be recorded";
}

// Four instructions of one line, as in an unrolled loop.
__global__ void four_loads_of_a_line(const float* in, float* out) {
    const unsigned i = threadIdx.x;
    out[i] = in[i] + in[i + 32] + in[i + 64] + in[i + 96];
}

TEST(Trace, LeavesOutWhatRepeatsTheSameLine) {
    const Buffer<float> in(128), out(32);
    const auto traced = [&](unsigned alike) {
        return inspect_one([&] { four_loads_of_a_line<<<1, 32>>>(in.get(), out.get()); },
                           {.trace_steps = 4, .trace_alike = alike});
    };
    EXPECT_EQ(kinds(traced(4)), "llll");
    const KernelInspection kernel = traced(2);
    EXPECT_EQ(kinds(kernel), "lls");
    EXPECT_EQ(kernel.trace->recorded.at(1).repeats, 2u);
    EXPECT_EQ(kernel.trace->steps, 5u);
}

__global__ void two_loads_of_a_line(const float* in, float* out, unsigned iterations) {
    float sum = 0;
    for (unsigned i = 0; i < iterations; ++i)
        sum += in[threadIdx.x] * in[threadIdx.x + 32 * (i % 2)];
    out[threadIdx.x] = sum;
}

TEST(Trace, CountsEachStepThatIsLeftOut) {
    const Buffer<float> in(64), out(32);
    const KernelInspection kernel =
        inspect_one([&] { two_loads_of_a_line<<<1, 32>>>(in.get(), out.get(), 20); },
                    {.trace_steps = 9, .trace_alike = 3});
    EXPECT_EQ(kinds(kernel), "llls");
    EXPECT_EQ(kernel.trace->recorded.at(2).repeats, kernel.trace->steps - 4);
}

// The first warp, which stores, waits for a bulk copy, and for the second at a named barrier.
__global__ void bulk_copies(const float* in, float* out) {
    __shared__ alignas(128) float tile[64];
    __shared__ alignas(8) cuda_on_cpu::ptx::MBarrier full;
    if (threadIdx.x == 0) {
        cuda_on_cpu::ptx::mbarrier_init(&full, 1);
        cuda_on_cpu::ptx::fence_mbarrier_init();
        cuda_on_cpu::ptx::mbarrier_arrive_expect(&full, sizeof tile);
        cuda_on_cpu::ptx::isa::bulk_load(tile, in, sizeof tile, &full);
    }
    __syncthreads();
    cuda_on_cpu::ptx::mbarrier_wait(&full, 0);
    if (threadIdx.x >= 32) {
        cuda_on_cpu::ptx::named_barrier_arrive(1, 64);
        return;
    }
    cuda_on_cpu::ptx::named_barrier(1, 64);
    out[threadIdx.x] = tile[threadIdx.x];
    out[threadIdx.x + 32] = tile[threadIdx.x + 32];
}

TEST(Trace, HasBulkCopiesAndBarriersOfSomeThreads) {
    const Buffer<float> in(64), out(64);
    const KernelInspection kernel =
        inspect_one([&] { bulk_copies<<<1, 64>>>(in.get(), out.get()); }, {.trace_steps = 100});
    ASSERT_TRUE(kernel.trace.has_value());
    std::vector<std::string> kinds_of_waits;
    for (const cuda_on_cpu::TraceStep& step : kernel.trace->recorded) {
        if (!step.offsets.empty()) continue;
        kinds_of_waits.push_back(step.kind);
        EXPECT_EQ(step.lanes, step.kind == "bulk_load" ? 1u : ~0U) << step.kind;
        EXPECT_EQ(step.bytes, step.kind == "bulk_load" ? 64 * sizeof(float) : 0) << step.kind;
        EXPECT_EQ(step.source.file, "cuda_on_cpu/inspector/test/inspection_test.cu") << step.kind;
    }
    EXPECT_EQ(kinds_of_waits, (std::vector<std::string>{"bulk_load", "barrier", "wait", "arrival", "wait"}));
}

TEST(Trace, HasBarriersOfACluster) {
    const Buffer<float> in(64), out(64);
    const KernelInspection kernel = inspect_one(
        [&] { take_turns_in_a_cluster<<<2, 32>>>(in.get(), out.get(), 1); }, {.trace_steps = 100});
    ASSERT_TRUE(kernel.trace.has_value());
    unsigned barriers = 0;
    for (const cuda_on_cpu::TraceStep& step : kernel.trace->recorded) {
        if (step.kind != "blocks_barrier") continue;
        ++barriers;
        EXPECT_EQ(step.lanes, ~0U);
        EXPECT_GT(step.source.line, 0u);
    }
    EXPECT_EQ(barriers, 1u);
}

}  // namespace
