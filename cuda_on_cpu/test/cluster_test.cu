// Clusters: their shape, shared memory of other blocks, and their barrier.
#include <cooperative_groups.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "on_device.cuh"

namespace cg = cooperative_groups;

namespace {

template <class... Parameters, class... Arguments>
cudaError_t launch_clusters(void (*kernel)(Parameters...), dim3 grid, dim3 block, dim3 cluster,
                            std::size_t dynamic_shared, Arguments... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster.x;
    attribute.val.clusterDim.y = cluster.y;
    attribute.val.clusterDim.z = cluster.z;
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = dynamic_shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// ---- Shape --------------------------------------------------------------------------------------

struct Shape {
    uint3 block_index, dim_blocks, thread_index, dim_threads;
    unsigned block_rank, num_blocks, thread_rank, num_threads;
    unsigned long long cluster_rank, num_clusters;
};

__device__ unsigned mismatches(dim3 a, dim3 b) {
    return (a.x != b.x) + (a.y != b.y) + (a.z != b.z);
}

__device__ void describe(Shape* shapes, unsigned* disagreements) {
    const cg::cluster_group cluster = cg::this_cluster();
    const cg::grid_group grid = cg::this_grid();
    shapes[grid.thread_rank()] = {cluster.block_index(), cluster.dim_blocks(),  cluster.thread_index(),
                                  cluster.dim_threads(), cluster.block_rank(),  cluster.num_blocks(),
                                  cluster.thread_rank(), cluster.num_threads(), grid.cluster_rank(),
                                  grid.num_clusters()};
    const unsigned different = mismatches(__clusterDim(), cluster.dim_blocks()) +
                               mismatches(__clusterRelativeBlockIdx(), cluster.block_index()) +
                               mismatches(__clusterGridDimInClusters(), grid.dim_clusters()) +
                               mismatches(__clusterIdx(), grid.cluster_index()) +
                               (__clusterRelativeBlockRank() != cluster.block_rank()) +
                               (__clusterSizeInBlocks() != cluster.num_blocks());
    if (different != 0) atomicAdd(disagreements, different);
}

__global__ void describe_cluster(Shape* shapes, unsigned* disagreements) {
    describe(shapes, disagreements);
}
__global__ void __cluster_dims__(2, 1, 2) describe_fixed_cluster(Shape* shapes, unsigned* disagreements) {
    describe(shapes, disagreements);
}

unsigned volume(dim3 d) {
    return d.x * d.y * d.z;
}
dim3 index_in(dim3 extent, unsigned i) {
    return dim3(i % extent.x, i / extent.x % extent.y, i / extent.x / extent.y);
}
unsigned rank_in(dim3 extent, dim3 index) {
    return (index.z * extent.y + index.y) * extent.x + index.x;
}

void expect_dims(uint3 got, dim3 expected) {
    EXPECT_EQ(got.x, expected.x);
    EXPECT_EQ(got.y, expected.y);
    EXPECT_EQ(got.z, expected.z);
}

void expect_shapes(const std::vector<Shape>& shapes, dim3 grid, dim3 block, dim3 cluster) {
    for (unsigned i = 0; i < shapes.size(); ++i) {
        const dim3 b = index_in(grid, i / volume(block));
        const dim3 t = index_in(block, i % volume(block));
        const dim3 in_cluster(b.x % cluster.x, b.y % cluster.y, b.z % cluster.z);
        const dim3 clusters(grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z);
        const Shape& got = shapes[i];
        expect_dims(got.block_index, in_cluster);
        expect_dims(got.dim_blocks, cluster);
        expect_dims(got.thread_index, dim3(in_cluster.x * block.x + t.x, in_cluster.y * block.y + t.y,
                                           in_cluster.z * block.z + t.z));
        expect_dims(got.dim_threads, dim3(cluster.x * block.x, cluster.y * block.y, cluster.z * block.z));
        EXPECT_EQ(got.block_rank, rank_in(cluster, in_cluster));
        EXPECT_EQ(got.num_blocks, volume(cluster));
        EXPECT_EQ(got.thread_rank, rank_in(cluster, in_cluster) * volume(block) + rank_in(block, t));
        EXPECT_EQ(got.num_threads, volume(cluster) * volume(block));
        EXPECT_EQ(got.cluster_rank,
                  rank_in(clusters, dim3(b.x / cluster.x, b.y / cluster.y, b.z / cluster.z)));
        EXPECT_EQ(got.num_clusters, volume(clusters));
        if (::testing::Test::HasFailure()) return;
    }
}

TEST(Clusters, KnowTheirShape) {
    const dim3 grid(4, 6, 2), block(3, 2, 4);
    for (const dim3 cluster : {dim3(1, 1, 1), dim3(2, 1, 1), dim3(2, 2, 2), dim3(4, 2, 1), dim3(1, 3, 2)}) {
        DeviceVector<Shape> shapes(volume(grid) * volume(block));
        DeviceVector<unsigned> disagreements(1);
        ASSERT_EQ(
            launch_clusters(describe_cluster, grid, block, cluster, 0, shapes.data(), disagreements.data()),
            cudaSuccess);
        expect_shapes(shapes.to_host(), grid, block, cluster);
        EXPECT_EQ(disagreements.to_host()[0], 0u);
    }
}

TEST(Clusters, OfAKernelThatFixesThem) {
    const dim3 grid(4, 3, 2), block(8, 2, 2);
    DeviceVector<Shape> shapes(volume(grid) * volume(block));
    DeviceVector<unsigned> disagreements(1);
    describe_fixed_cluster<<<grid, block>>>(shapes.data(), disagreements.data());
    expect_shapes(shapes.to_host(), grid, block, dim3(2, 1, 2));
    EXPECT_EQ(disagreements.to_host()[0], 0u);
}

__global__ void ask_whether_given(unsigned* given) {
    *given = __clusterDimIsSpecified();
}
__global__ void __cluster_dims__(2, 1, 1) ask_whether_given_by_the_kernel(unsigned* given) {
    if (blockIdx.x == 0) *given = __clusterDimIsSpecified();
}
TEST(Clusters, KnowWhetherTheyWereAskedFor) {
    DeviceVector<unsigned> ordinary({7}), launched({7}), fixed({7});
    ask_whether_given<<<2, 1>>>(ordinary.data());
    ASSERT_EQ(launch_clusters(ask_whether_given, 2, 1, 2, 0, launched.data()), cudaSuccess);
    ask_whether_given_by_the_kernel<<<2, 1>>>(fixed.data());
    EXPECT_EQ(ordinary.to_host()[0], 0u);
    EXPECT_EQ(launched.to_host()[0], 1u);
    EXPECT_EQ(fixed.to_host()[0], 1u);
}

TEST(Clusters, OfAnOrdinaryLaunchHaveOneBlock) {
    const dim3 grid(3, 2), block(5);
    DeviceVector<Shape> shapes(volume(grid) * volume(block));
    DeviceVector<unsigned> disagreements(1);
    describe_cluster<<<grid, block>>>(shapes.data(), disagreements.data());
    expect_shapes(shapes.to_host(), grid, block, dim3(1, 1, 1));
    EXPECT_EQ(disagreements.to_host()[0], 0u);
}

// ---- Shared memory of other blocks --------------------------------------------------------------

constexpr unsigned kThreads = 64;

// Every block writes its own numbers and reads those of the next block of its cluster.
__global__ void read_next_block(int* results) {
    __shared__ int fixed[kThreads];
    extern __shared__ int dynamic[];
    const cg::cluster_group cluster = cg::this_cluster();
    const int number = static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
    fixed[threadIdx.x] = number;
    dynamic[threadIdx.x] = -number;
    cluster.sync();
    const int next = static_cast<int>((cluster.block_rank() + 1) % cluster.num_blocks());
    const int* theirs = cluster.map_shared_rank(fixed, next);
    const int* dynamic_theirs = cluster.map_shared_rank(dynamic, next);
    int* result = results + (blockIdx.x * kThreads + threadIdx.x) * 4;
    result[0] = theirs[kThreads - 1 - threadIdx.x];
    result[1] = dynamic_theirs[threadIdx.x];
    result[2] =
        static_cast<int>(cluster.query_shared_rank(theirs) * 16 + cluster.query_shared_rank(&fixed[1]));
    result[3] =
        static_cast<int>(cluster.query_shared_rank(dynamic_theirs) * 16 + cluster.query_shared_rank(dynamic));
    cluster.sync();  // a block must not end while others read its memory
}

TEST(Clusters, ReadSharedMemoryOfOtherBlocks) {
    for (const unsigned size : {1U, 2U, 4U, 8U}) {
        const unsigned blocks = 16;
        DeviceVector<int> results(blocks * kThreads * 4);
        ASSERT_EQ(
            launch_clusters(read_next_block, blocks, kThreads, size, kThreads * sizeof(int), results.data()),
            cudaSuccess);
        const std::vector<int> got = results.to_host();
        for (unsigned i = 0; i < blocks * kThreads; ++i) {
            const unsigned block = i / kThreads, thread = i % kThreads, rank = block % size;
            const unsigned next_rank = (rank + 1) % size;
            const unsigned next = block - rank + next_rank;
            ASSERT_EQ(got[i * 4], static_cast<int>(next * 1000 + kThreads - 1 - thread))
                << "cluster of " << size;
            ASSERT_EQ(got[i * 4 + 1], -static_cast<int>(next * 1000 + thread)) << "cluster of " << size;
            ASSERT_EQ(got[i * 4 + 2], static_cast<int>(next_rank * 16 + rank)) << "cluster of " << size;
            ASSERT_EQ(got[i * 4 + 3], static_cast<int>(next_rank * 16 + rank)) << "cluster of " << size;
        }
    }
}

// Whose shared memory is it? 1: of a block of the cluster, 2: of the block itself.
__global__ void name_memory(unsigned* results) {
    __shared__ unsigned own;
    extern __shared__ unsigned words[];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    const auto kind = [](const void* pointer) {
        return __isClusterShared(pointer) + 2 * __isCtaShared(pointer);
    };
    unsigned* const result = results + 5 * blockIdx.x;
    result[0] = kind(&own);
    result[1] = kind(&words[3]);
    result[2] = kind(cluster.map_shared_rank(&own, static_cast<int>(next)));
    result[3] = kind(cluster.map_shared_rank(words, static_cast<int>(next)));
    result[4] = kind(results);
    cluster.sync();
}
TEST(Clusters, KnowWhoseSharedMemoryItIs) {
    for (const unsigned size : {1U, 2U, 4U}) {
        DeviceVector<unsigned> results(5 * 4);
        ASSERT_EQ(launch_clusters(name_memory, 4, 1, size, 64, results.data()), cudaSuccess);
        const std::vector<unsigned> got = results.to_host();
        const unsigned of_next = size == 1 ? 3 : 1;
        for (unsigned i = 0; i < got.size(); ++i)
            EXPECT_EQ(got[i], i % 5 < 2 ? 3u : i % 5 < 4 ? of_next : 0u) << i << ", cluster of " << size;
    }
}

// A histogram whose bins are spread over the blocks of the cluster.
__global__ void __cluster_dims__(4, 1, 1)
    count_values(const unsigned* values, unsigned count, unsigned* histogram, unsigned bins_per_block) {
    extern __shared__ unsigned bins[];
    const cg::cluster_group cluster = cg::this_cluster();
    for (unsigned bin = threadIdx.x; bin < bins_per_block; bin += blockDim.x)
        bins[bin] = 0;
    cluster.sync();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const int owner = static_cast<int>(values[i] / bins_per_block);
        atomicAdd(cluster.map_shared_rank(bins, owner) + values[i] % bins_per_block, 1u);
    }
    cluster.sync();
    unsigned* result = histogram + cluster.block_rank() * bins_per_block;
    for (unsigned bin = threadIdx.x; bin < bins_per_block; bin += blockDim.x)
        atomicAdd(&result[bin], bins[bin]);
}

TEST(Clusters, HistogramInDistributedSharedMemory) {
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    constexpr unsigned kBins = 100;
    std::vector<unsigned> values = random_words(20'000), expected(kBins);
    for (unsigned& value : values) {
        value %= kBins;
        ++expected[value];
    }
    DeviceVector<unsigned> device_values(values), histogram(kBins);
    const auto count = static_cast<unsigned>(values.size());
    count_values<<<8, 96, kBins / 4 * sizeof(unsigned)>>>(device_values.data(), count, histogram.data(),
                                                          kBins / 4);
    EXPECT_EQ(histogram.to_host(), expected);
}

// ---- The barrier --------------------------------------------------------------------------------

// Numbers wander from block to block; the barrier is written in all the ways there are.
template <int way>
__global__ void wander(int* results, int rounds) {
    __shared__ int mailbox[2];
    const cg::cluster_group cluster = cg::this_cluster();
    const int next = static_cast<int>((cluster.block_rank() + 1) % cluster.num_blocks());
    int value = static_cast<int>(blockIdx.x);
    cluster.sync();  // every block has begun
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) *cluster.map_shared_rank(&mailbox[round % 2], next) = value;
        if constexpr (way == 0) {
            cg::sync(cluster);
        } else if constexpr (way == 1) {
            auto token = cluster.barrier_arrive();
            cluster.barrier_wait(std::move(token));
        } else if constexpr (way == 2) {
            cluster.barrier_arrive();
            __syncthreads();  // has nothing to do with the cluster's barrier
            cluster.barrier_wait();
        } else if constexpr (way == 3) {
            __cluster_barrier_arrive();
            __cluster_barrier_wait();
        } else {
            cg::thread_group(cluster).sync();
        }
        value = mailbox[round % 2];
    }
    results[blockIdx.x * blockDim.x + threadIdx.x] = value;
    cluster.sync();
}

template <int way>
void expect_wandering(unsigned size) {
    constexpr unsigned kBlocks = 8, kBlock = 40;
    constexpr int kRounds = 7;
    DeviceVector<int> results(kBlocks * kBlock);
    ASSERT_EQ(launch_clusters(wander<way>, kBlocks, kBlock, size, 0, results.data(), kRounds), cudaSuccess);
    const std::vector<int> got = results.to_host();
    for (unsigned i = 0; i < got.size(); ++i) {
        const unsigned block = i / kBlock, rank = block % size;
        ASSERT_EQ(got[i], static_cast<int>(block - rank + (rank + size * kRounds - kRounds) % size))
            << "way " << way << ", cluster of " << size << ", thread " << i;
    }
}

TEST(Clusters, BarrierInAllItsForms) {
    for (const unsigned size : {1U, 2U, 4U, 8U}) {
        expect_wandering<0>(size);
        expect_wandering<1>(size);
        expect_wandering<2>(size);
        expect_wandering<3>(size);
        expect_wandering<4>(size);
    }
}

// A thread that is past the barrier answers one of its block that polls before it waits.
__global__ void __cluster_dims__(2, 1, 1) answer_past_the_barrier(volatile int* flag) {
    const cg::cluster_group cluster = cg::this_cluster();
    cluster.barrier_arrive();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        while (*flag == 0)
            ;
        *flag = 2;
    }
    cluster.barrier_wait();
    if (blockIdx.x == 0 && threadIdx.x == 32) *flag = 1;
}

TEST(Clusters, BarrierPassedByAThreadThatAnotherPolls) {
    DeviceVector<int> flag(1);
    answer_past_the_barrier<<<2, 64>>>(flag.data());
    EXPECT_EQ(flag.to_host()[0], 2);
}

__global__ void some_threads_end(int* results) {
    __shared__ int sum;
    const cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
    cluster.sync();
    if (threadIdx.x % 32 >= 16) return;  // ended threads count as arrived
    atomicAdd(cluster.map_shared_rank(&sum, 0), 1);
    cluster.sync();
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}

TEST(Clusters, BarrierWithoutThreadsThatHaveEnded) {
    DeviceVector<int> results(4);
    ASSERT_EQ(launch_clusters(some_threads_end, 4, 64, 2, 0, results.data()), cudaSuccess);
    EXPECT_EQ(results.to_host(), (std::vector<int>{64, 0, 64, 0}));
}

// ---- What is refused, and what goes wrong -------------------------------------------------------

__global__ void nothing() {}

TEST(ClusterFailures, LaunchesThatCannotBe) {
    EXPECT_NE(launch_clusters(nothing, 6, 32, 4, 0), cudaSuccess);  // the grid is not a multiple
    EXPECT_NE(launch_clusters(nothing, 32, 32, 16, 0),
              cudaSuccess);  // more than 8 blocks must be allowed first
    static_cast<void>(cudaGetLastError());
    ASSERT_EQ(cudaFuncSetAttribute(nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), cudaSuccess);
    EXPECT_EQ(launch_clusters(nothing, 32, 32, 16, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

#ifdef CUDA_ON_CPU  // on a GPU these would hang or do something undefined

void expect_failure(void (*kernel)(), cudaError_t error, const std::vector<std::string>& report) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(launch_clusters(kernel, 4, 64, 2, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    const std::string printed = ::testing::internal::GetCapturedStderr();
    for (const std::string& part : report) {
        EXPECT_NE(printed.find(part), std::string::npos) << "no '" << part << "' in: " << printed;
    }
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

std::string here(int line) {
    return "cluster_test.cu:" + std::to_string(line);
}

constexpr int kSyncLine = __LINE__ + 3;
__global__ void half_a_block_waits() {
    if (blockIdx.x == 1 && threadIdx.x < 32) {
        cg::this_cluster().sync();
    } else {
        __syncthreads();
        cg::this_cluster().sync();
    }
}

TEST(ClusterFailures, HalfABlockWaitsForTheCluster) {
    expect_failure(half_a_block_waits, cudaErrorLaunchTimeout,
                   {"deadlock in block (1,0,0)", here(kSyncLine)});
}

constexpr int kRankLine = __LINE__ + 3;
__global__ void map_to_nowhere() {
    __shared__ int number;
    cg::this_cluster().map_shared_rank(&number, 2);
}
constexpr int kMapLine = __LINE__ + 3;
__global__ void map_a_local_variable() {
    int number = 0;
    cg::this_cluster().map_shared_rank(&number, 1);
}
constexpr int kQueryLine = __LINE__ + 3;
__global__ void query_a_local_variable() {
    int number = 0;
    cg::this_cluster().query_shared_rank(&number);
}

TEST(ClusterFailures, AddressesThatAreNotThere) {
    expect_failure(map_to_nowhere, cudaErrorLaunchFailure, {"block 2", "2 block(s)", here(kRankLine)});
    expect_failure(map_a_local_variable, cudaErrorIllegalAddress,
                   {"does not point to shared memory", here(kMapLine)});
    expect_failure(query_a_local_variable, cudaErrorIllegalAddress,
                   {"not to shared memory", here(kQueryLine)});
}

constexpr int kWaitLine = __LINE__ + 2;
__global__ void wait_without_arriving() {
    cg::this_cluster().barrier_wait();
}
constexpr int kArriveLine = __LINE__ + 3;
__global__ void arrive_twice() {
    cg::this_cluster().barrier_arrive();
    cg::this_cluster().barrier_arrive();
}
__global__ void arrive_and_end() {
    cg::this_cluster().barrier_arrive();
}

TEST(ClusterFailures, HalvesOfTheBarrier) {
    expect_failure(wait_without_arriving, cudaErrorLaunchFailure,
                   {"without barrier_arrive", here(kWaitLine)});
    expect_failure(arrive_twice, cudaErrorLaunchFailure, {"barrier_arrive again", here(kArriveLine)});
    expect_failure(arrive_and_end, cudaErrorLaunchFailure, {"between barrier_arrive and barrier_wait"});
}

#endif

}  // namespace
