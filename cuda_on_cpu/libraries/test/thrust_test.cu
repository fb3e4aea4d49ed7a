// The Thrust of the Linux distribution: its device vectors contain device memory, and its
// algorithms respect the order of streams.
#include <gtest/gtest.h>
#include <thrust/copy.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/system_error.h>
#include <thrust/transform.h>
#include <thrust/unique.h>
#include <thrust/universal_vector.h>

#include <thread>
#include <vector>

__global__ void twice(int* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}

__global__ void fails(int* x) {
    x[100] = 0;
}

namespace {

struct Square {
    __host__ __device__ int operator()(int x) const { return x * x; }
};

struct NotMultipleOf20 {
    __host__ __device__ bool operator()(int x) const { return x % 20 != 0; }
};

struct Product {
    __host__ __device__ int operator()(const thrust::tuple<int, int>& pair) const {
        return thrust::get<0>(pair) * thrust::get<1>(pair);
    }
};

template <class Vector>
std::vector<int> values(const Vector& v) {
    std::vector<int> host(v.size());
    thrust::copy(v.begin(), v.end(), host.begin());
    return host;
}

// A file that distinguishes host and device code may use Thrust, too.
struct PlusArchitecture {
    __host__ __device__ int operator()(int x) const {
#ifdef __CUDA_ARCH__
        return x + 1;
#else
        return x + 2;
#endif
    }
};
__global__ void transform_one(int* x) {
    *x = PlusArchitecture()(*x);
}

TEST(Thrust, FilesMayMentionTheArchitecture) {
    thrust::device_vector<int> x(1, 10);
    transform_one<<<1, 1>>>(thrust::raw_pointer_cast(x.data()));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(values(x), std::vector<int>{11});
    EXPECT_EQ(PlusArchitecture()(10), 12);
}

TEST(Thrust, KernelsMayUseTheMemoryOfDeviceVectors) {
    thrust::host_vector<int> host(3);
    thrust::sequence(host.begin(), host.end(), 1);
    thrust::device_vector<int> device = host;
    twice<<<1, 32>>>(thrust::raw_pointer_cast(device.data()), 3);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    thrust::transform(device.begin(), device.end(), device.begin(), Square());
    EXPECT_EQ(values(device), (std::vector<int>{4, 16, 36}));
    EXPECT_EQ(device[1], 16);
    cudaPointerAttributes attributes{};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, thrust::raw_pointer_cast(device.data())), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    thrust::universal_vector<int> shared(2, 7);
    twice<<<1, 32>>>(thrust::raw_pointer_cast(shared.data()), 2);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(shared[1], 14);
}

TEST(Thrust, AlgorithmsTakeMemoryOfCudaMalloc) {
    int* raw = nullptr;
    cudaMalloc(&raw, 4 * sizeof(int));
    const thrust::device_ptr<int> pointer(raw);
    thrust::sequence(pointer, pointer + 4);
    EXPECT_EQ(thrust::reduce(thrust::device, raw, raw + 4), 6);
    thrust::inclusive_scan(thrust::device, raw, raw + 4, raw);
    EXPECT_EQ(pointer[3], 6);
    cudaFree(raw);
    const thrust::device_ptr<int> own = thrust::device_malloc<int>(2);
    thrust::fill(own, own + 2, 3);
    twice<<<1, 32>>>(thrust::raw_pointer_cast(own), 2);
    EXPECT_EQ(thrust::reduce(own, own + 2), 12);
    thrust::device_free(own);
}

TEST(Thrust, SortsSelectsAndCombines) {
    thrust::device_vector<int> keys(std::vector<int>{3, 1, 2, 3}), items(std::vector<int>{30, 10, 20, 31});
    thrust::stable_sort_by_key(keys.begin(), keys.end(), items.begin());
    EXPECT_EQ(values(items), (std::vector<int>{10, 20, 30, 31}));
    thrust::device_vector<int> selected(4);
    const auto end = thrust::copy_if(items.begin(), items.end(), selected.begin(), NotMultipleOf20());
    EXPECT_EQ(end - selected.begin(), 3);
    EXPECT_EQ(thrust::unique(keys.begin(), keys.end()) - keys.begin(), 3);
    const auto zipped =
        thrust::make_zip_iterator(thrust::make_tuple(thrust::make_counting_iterator(0), items.begin()));
    EXPECT_EQ(thrust::transform_reduce(zipped, zipped + 4, Product(), 0, thrust::plus<int>()), 20 + 60 + 93);
    const auto permuted = thrust::make_permutation_iterator(items.begin(), keys.begin());  // keys: 1 2 3
    EXPECT_EQ(thrust::reduce(permuted, permuted + 3), 20 + 30 + 31);
}

__global__ void sum_in_block(const int* x, int* sum) {
    using Reduce = cub::BlockReduce<int, 64>;
    __shared__ Reduce::TempStorage storage;
    const int total = Reduce(storage).Sum(x[threadIdx.x]);
    if (threadIdx.x == 0) *sum = total;
}

TEST(Thrust, BringsCubAlong) {
    thrust::device_vector<int> x(64, 3), sum(1);
    sum_in_block<<<1, 64>>>(thrust::raw_pointer_cast(x.data()), thrust::raw_pointer_cast(sum.data()));
    EXPECT_EQ(sum[0], 192);
}

TEST(Thrust, PoliciesNameAStream) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    thrust::device_vector<int> x(100, 1);
    twice<<<1, 128, 0, stream>>>(thrust::raw_pointer_cast(x.data()), 100);
    EXPECT_EQ(thrust::reduce(thrust::cuda::par.on(stream), x.begin(), x.end()), 200);
    thrust::sort(thrust::cuda::par_nosync.on(stream), x.begin(), x.end(), thrust::greater<int>());
    cudaStreamDestroy(stream);
}

TEST(Thrust, ReadsElementsBehindTheKernelsBefore) {
    thrust::device_vector<int> x(10, 3);
    twice<<<1, 32>>>(thrust::raw_pointer_cast(x.data()), 10);
    const int fourth = x[4];
    twice<<<1, 32>>>(thrust::raw_pointer_cast(x.data()), 10);
    x[3] = x[2] + 1;
    EXPECT_EQ(fourth, 6);
    EXPECT_EQ(x[3], 13);
}

// Numbers are sorted by their digits, in temporary memory.
TEST(Thrust, SortsNumbersInAStream) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    thrust::device_vector<int> x(1000);
    thrust::sequence(x.begin(), x.end());
    thrust::reverse(x.begin(), x.end());
    thrust::device_vector<float> of(x);
    thrust::sort(thrust::cuda::par.on(stream), x.begin(), x.end());
    thrust::sort_by_key(thrust::cuda::par, of.begin(), of.end(), x.begin());
    cudaStreamDestroy(stream);
    EXPECT_EQ(of[7], 7);
    EXPECT_EQ(x[7], 992);
}

TEST(Thrust, RunsInSeveralHostThreads) {
    std::vector<long> sums(4);
    std::vector<std::thread> threads;
    for (int id = 0; id < 4; ++id) {
        threads.emplace_back([&sums, id] {
            cudaStream_t stream = nullptr;
            cudaStreamCreate(&stream);
            for (int repeat = 0; repeat < 20; ++repeat) {
                const int n = 1000 + 17 * id + repeat;
                thrust::device_vector<int> x(static_cast<std::size_t>(n));
                thrust::sequence(thrust::cuda::par.on(stream), x.begin(), x.end(), 1);
                twice<<<n / 128 + 1, 128, 0, stream>>>(thrust::raw_pointer_cast(x.data()), n);
                thrust::sort(thrust::cuda::par.on(stream), x.begin(), x.end(), thrust::greater<int>());
                thrust::inclusive_scan(x.begin(), x.end(), x.begin());
                sums[static_cast<std::size_t>(id)] += x.back() - long{n} * (n + 1);
            }
            cudaStreamDestroy(stream);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(sums, std::vector<long>(4));
}

// The context is lost after this test, so it is the last one.
TEST(ThrustErrors, AKernelThatHasFailedEndsTheNextAlgorithm) {
    thrust::device_vector<int> x(1);
    fails<<<1, 1>>>(thrust::raw_pointer_cast(x.data()));
    try {
        thrust::reduce(x.begin(), x.end());
        ADD_FAILURE() << "expected thrust::system_error";
    } catch (const thrust::system_error& error) {
        EXPECT_EQ(error.code().value(), cudaErrorIllegalAddress);
    }
    cudaDeviceReset();
}

}  // namespace
