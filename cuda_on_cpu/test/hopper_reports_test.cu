// What the stand-in makes visible of mbarriers, bulk copies and products of warpgroups used
// wrongly. What they do when used rightly is tested in common/unit_tests/, on GPUs as well.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

namespace {

using namespace cuda_on_cpu::ptx;

constexpr float kOld = -7;

// ---- mbarriers ----------------------------------------------------------------------------------

enum class Misuse { no_init, no_arrivals, two_arrivals_too_many, after_inval, parity, bytes, fine };

__global__ void misuse(Misuse kind) {
    __shared__ MBarrier barrier;
    if (kind != Misuse::no_init) mbarrier_init(&barrier, kind == Misuse::no_arrivals ? 0 : 1);
    fence_mbarrier_init();
    if (kind == Misuse::after_inval) mbarrier_inval(&barrier);
    if (kind == Misuse::two_arrivals_too_many) {
        mbarrier_arrive_expect(&barrier, 16);
        mbarrier_arrive(&barrier);
    }
    if (kind == Misuse::bytes) mbarrier_arrive_expect(&barrier, 1 << 20);
    if (kind == Misuse::parity) mbarrier_wait(&barrier, 2);
    mbarrier_arrive(&barrier);
    mbarrier_wait(&barrier, 0);
}
std::string report_of_misuse(Misuse kind, cudaError_t expected = cudaErrorLaunchFailure) {
    return report_of(expected, [kind] { misuse<<<1, 1>>>(kind); });
}
TEST(Mbarrier, MisuseIsReported) {
    EXPECT_EQ(report_of_misuse(Misuse::fine, cudaSuccess), "");
    EXPECT_TRUE(mentions(report_of_misuse(Misuse::no_init), {"misuse", "has not been initialised"}));
    EXPECT_TRUE(mentions(report_of_misuse(Misuse::after_inval), {"has not been initialised"}));
    EXPECT_TRUE(mentions(report_of_misuse(Misuse::no_arrivals),
                         {"mbarrier_init: 0 arrivals; expected 1 to 1048575"}));
    EXPECT_TRUE(mentions(report_of_misuse(Misuse::two_arrivals_too_many),
                         {"one arrival more than the 1 that the mbarrier's phase takes"}));
    EXPECT_TRUE(
        mentions(report_of_misuse(Misuse::bytes), {"1048576 bytes expected", "counts up to 1048575"}));
    EXPECT_TRUE(mentions(report_of_misuse(Misuse::parity), {"parity of 2; expected 0 or 1"}));
}

__global__ void initialise_by(unsigned threads, bool invalidate) {
    __shared__ MBarrier barrier;
    if (threadIdx.x < threads) {
        mbarrier_init(&barrier, 1);
        if (invalidate) mbarrier_inval(&barrier);
    }
}
TEST(Mbarrier, ASecondInitialisationIsReported) {
    EXPECT_EQ(report_of(cudaSuccess, [] { initialise_by<<<2, 32>>>(1, false); }), "");
    EXPECT_EQ(report_of(cudaSuccess, [] { initialise_by<<<1, 32>>>(2, true); }), "");
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { initialise_by<<<1, 32>>>(2, false); }),
                         {"initialise_by", "mbarrier_init", "has been initialised already"}));
}

constexpr int kWaitLine = __LINE__ + 9;
__global__ void wait_for_arrivals(unsigned expected, unsigned parity) {
    __shared__ MBarrier barrier;
    if (threadIdx.x == 0) {
        mbarrier_init(&barrier, expected);
        fence_mbarrier_init();
    }
    __syncthreads();
    mbarrier_arrive(&barrier);
    mbarrier_wait(&barrier, parity);
}
TEST(Mbarrier, ADeadlockIsReported) {
    EXPECT_EQ(report_of(cudaSuccess, [] { wait_for_arrivals<<<1, 40>>>(40, 0); }), "");
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchTimeout, [] { wait_for_arrivals<<<1, 40>>>(41, 0); }),
                         {"deadlock", "40 thread(s) wait", "mbarrier_wait", at_line(kWaitLine),
                          "for parity 0: phase of parity 0, 1 of 41 arrivals missing, 0 bytes missing"}));
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchTimeout, [] { wait_for_arrivals<<<1, 64>>>(32, 0); }), {""}));
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchTimeout, [] { wait_for_arrivals<<<1, 32>>>(32, 1); }),
                         {"for parity 1: phase of parity 1, 32 of 32 arrivals missing"}));
}

__global__ void arrive_at_the_other(unsigned missing, bool fenced) {
    __shared__ MBarrier barrier;
    if (threadIdx.x == 0) {
        mbarrier_init(&barrier, 2);
        if (fenced) fence_mbarrier_init();
    }
    cluster_arrive();
    cluster_wait();
    if (threadIdx.x < 2 && blockIdx.x != missing) mbarrier_arrive_at(&barrier, threadIdx.x);
    mbarrier_wait(&barrier, 0);
    cluster_arrive();
    cluster_wait();
}
template <class... Parameters, class... Arguments>
void launch_cluster(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, std::size_t shared,
                    Arguments... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, arguments...);
}
TEST(Mbarrier, ADeadlockOfAClusterIsReported) {
    EXPECT_EQ(report_of(cudaSuccess, [] { launch_cluster(arrive_at_the_other, 2, 32, 0, 7u, true); }), "");
    EXPECT_TRUE(mentions(
        report_of(cudaErrorLaunchTimeout, [] { launch_cluster(arrive_at_the_other, 2, 32, 0, 1u, true); }),
        {"deadlock in block", "and in block", "1 of 2 arrivals missing"}));
    EXPECT_TRUE(mentions(
        report_of(cudaErrorLaunchFailure, [] { launch_cluster(arrive_at_the_other, 2, 32, 0, 7u, false); }),
        {"without fence.mbarrier_init"}));
}

__global__ void name_a_barrier(unsigned id, unsigned threads, unsigned others) {
    named_barrier(id, threadIdx.x < 32 ? threads : others);
}
TEST(NamedBarrier, MisuseIsReported) {
    EXPECT_EQ(report_of(cudaSuccess, [] { name_a_barrier<<<1, 64>>>(15, 64, 64); }), "");
    for (const unsigned id : {0u, 16u}) {
        EXPECT_TRUE(
            mentions(report_of(cudaErrorLaunchFailure, [id] { name_a_barrier<<<1, 64>>>(id, 64, 64); }),
                     {"expected a number of 1 to 15"}));
    }
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { name_a_barrier<<<1, 64>>>(1, 33, 33); }),
                         {"multiple of 32 threads"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { name_a_barrier<<<1, 96>>>(1, 64, 96); }),
                         {"others wait there for"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchTimeout, [] { name_a_barrier<<<1, 96>>>(1, 64, 64); }),
                         {"deadlock", "named_barrier", "number 1, 32 of 64 threads there"}));
}

// ---- Bulk loads ---------------------------------------------------------------------------------

// A matrix of 32 x 32: element i is i + 1. Boxes of 8 rows, 1024 bytes.
class Matrix {
  public:
    Matrix() : data_(numbers()) {
        const cuuint64_t extents[] = {32, 32}, pitch[] = {128};
        const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
        EXPECT_EQ(
            cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data_.data(), extents, pitch,
                                   box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
    }
    std::vector<float> to_host() const { return data_.to_host(); }

    CUtensorMap map;

  private:
    static std::vector<float> numbers() {
        std::vector<float> values(1024);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i + 1);
        return values;
    }
    DeviceVector<float> data_;
};

// Three stages; the second is waited for first.
__global__ void look_too_early(const __grid_constant__ CUtensorMap map, float* out) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<float(*)[256]>(memory);
    __shared__ MBarrier full[3];
    for (MBarrier& barrier : full)
        mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    for (int stage = 0; stage < 3; ++stage) {
        stages[stage][0] = kOld;
        mbarrier_arrive_expect(&full[stage], 1024);
        tma_load(stages[stage], &map, 0, 8 * stage, &full[stage]);
    }
    for (const int awaited : {1, 0, 2}) {
        for (int stage = 0; stage < 3; ++stage)
            *out++ = stages[stage][0];
        mbarrier_wait(&full[awaited], 0);
    }
    *out = stages[2][0];
}
TEST(BulkLoad, IsNotThereBeforeItsBarrierWasWaitedFor) {
    Matrix matrix;
    DeviceVector<float> out(10);
    look_too_early<<<1, 1, 3072>>>(matrix.map, out.data());
    const std::vector<float> got = out.to_host();
    const float seen[] = {0, 0, 0, 0, 257, 0, 1, 257, 0, 513};  // 0: NaN
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(std::isnan(got[i]) ? 0 : got[i], seen[i]) << i;
}

// Box (0, 6) of each of 2 x 3 matrices of 10 x 32, and of one that does not exist: 4 rows exist.
__global__ void load_matrices(const __grid_constant__ CUtensorMap map, float* out) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const box = reinterpret_cast<float*>(memory);
    __shared__ MBarrier full;
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    unsigned parity = 0;
    for (int j = 0; j < 3; ++j) {
        for (int i = 0; i < 3; ++i, parity ^= 1) {
            mbarrier_arrive_expect(&full, 1024);
            tma_load(box, &map, 0, 6, i, j, &full);
            mbarrier_wait(&full, parity);
            *out++ = box[0];
            *out++ = box[3 * 32 + 31];
            *out++ = box[4 * 32];
        }
    }
}
TEST(BulkLoad, ReachesEachMatrixOfFourExtents) {
    std::vector<float> numbers(2 * 3 * 10 * 32);
    for (std::size_t n = 0; n < numbers.size(); ++n)
        numbers[n] = static_cast<float>(n + 1);
    DeviceVector<float> data(numbers), out(27);
    const cuuint64_t extents[] = {32, 10, 2, 3}, pitch[] = {128, 1280, 2560};
    const cuuint32_t box[] = {32, 8, 1, 1}, steps[] = {1, 1, 1, 1};
    CUtensorMap map;
    ASSERT_EQ(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, data.data(), extents, pitch,
                                     box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                     CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    load_matrices<<<1, 1, 1024>>>(map, out.data());
    const std::vector<float> got = out.to_host();
    for (int j = 0; j < 3; ++j) {
        for (int i = 0; i < 3; ++i) {
            const float* const three = &got[(j * 3 + i) * 3];
            const auto first = static_cast<float>(j * 640 + i * 320 + 6 * 32 + 1);
            EXPECT_EQ(three[0], i < 2 ? first : 0) << i << ", " << j;
            EXPECT_EQ(three[1], i < 2 ? first + 127 : 0) << i << ", " << j;
            EXPECT_EQ(three[2], 0) << "the next matrix's rows are out of range";
        }
    }
    Matrix of_two;
    EXPECT_TRUE(mentions(
        report_of(cudaErrorLaunchFailure, [&] { load_matrices<<<1, 1, 1024>>>(of_two.map, out.data()); }),
        {"a tensor map of 2 extent(s); expected 4"}));
}

enum class Load {
    fine,
    unpublished,
    too_few_bytes,
    too_many_bytes,
    misaligned,
    outside,
    no_map,
    not_awaited,
    no_barrier,
    odd_column,
    before_its_phase
};
__global__ void load_badly(const __grid_constant__ CUtensorMap map, Load kind) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ MBarrier barrier;
    if (kind != Load::no_barrier) mbarrier_init(&barrier, 1);
    if (kind != Load::unpublished) fence_mbarrier_init();
    CUtensorMap none = map;
    none.opaque[0] = 1;
    const unsigned bytes = kind == Load::too_few_bytes ? 1008 : kind == Load::too_many_bytes ? 1040 : 1024;
    if (kind == Load::before_its_phase) mbarrier_arrive(&barrier);
    if (kind != Load::no_barrier && kind != Load::before_its_phase) mbarrier_arrive_expect(&barrier, bytes);
    const unsigned offset = kind == Load::misaligned ? 64 : kind == Load::outside ? 128 : 0;
    tma_load(  //
        memory + offset, kind == Load::no_map ? &none : &map, kind == Load::odd_column ? 3 : 0, 0, &barrier);
    if (kind == Load::before_its_phase) mbarrier_arrive_expect(&barrier, bytes);
    if (kind != Load::not_awaited) mbarrier_wait(&barrier, kind == Load::before_its_phase ? 1 : 0);
}
std::string report_of_load(Load kind, cudaError_t expected = cudaErrorLaunchFailure) {
    Matrix matrix;
    return report_of(expected, [&] { load_badly<<<1, 1, 1024>>>(matrix.map, kind); });
}
TEST(BulkLoad, MisuseIsReported) {
    EXPECT_EQ(report_of_load(Load::fine, cudaSuccess), "");
    EXPECT_TRUE(
        mentions(report_of_load(Load::unpublished), {"load_badly", "fence.mbarrier_init", "missing"}));
    EXPECT_TRUE(mentions(report_of_load(Load::too_few_bytes), {"16 bytes more have come", "told to expect"}));
    EXPECT_TRUE(mentions(report_of_load(Load::too_many_bytes, cudaErrorLaunchTimeout),
                         {"deadlock", "0 of 1 arrivals missing, 16 bytes missing"}));
    EXPECT_TRUE(
        mentions(report_of_load(Load::misaligned, cudaErrorMisalignedAddress), {"multiple of 128 bytes"}));
    EXPECT_TRUE(mentions(report_of_load(Load::outside, cudaErrorIllegalAddress),
                         {"not in the block's shared memory"}));
    EXPECT_TRUE(mentions(report_of_load(Load::no_map), {"cuTensorMapEncodeTiled has not made"}));
    EXPECT_TRUE(mentions(report_of_load(Load::not_awaited),
                         {"ended before the bulk copy", "hopper_reports_test.cu"}));
    EXPECT_TRUE(mentions(report_of_load(Load::no_barrier), {"has not been initialised"}));
    EXPECT_TRUE(mentions(report_of_load(Load::odd_column, cudaErrorIllegalInstruction),
                         {"begins in column 3", "multiple of 16 bytes"}));
    EXPECT_EQ(report_of_load(Load::before_its_phase, cudaSuccess), "");
}

// The first box alone completes the bytes that were expected.
__global__ void expect_one_of_two(const __grid_constant__ CUtensorMap map) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ MBarrier barrier;
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&barrier, 1024);
    tma_load(memory, &map, 0, 0, &barrier);
    tma_load(memory + 1024, &map, 0, 8, &barrier);
    mbarrier_wait(&barrier, 0);
}
TEST(BulkLoad, APhaseThatEndsTooEarlyIsReported) {
    Matrix matrix;
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchFailure, [&] { expect_one_of_two<<<1, 1, 2048>>>(matrix.map); }),
                 {"phase ended before all bytes had come", "too few"}));
}

__global__ void read_freed_memory(const __grid_constant__ CUtensorMap map) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ MBarrier barrier;
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&barrier, 1024);
    tma_load(memory, &map, 0, 24, &barrier);
    mbarrier_wait(&barrier, 0);
}
TEST(BulkLoad, OfMemoryThatIsNoneIsReported) {
    CUtensorMap map;
    {
        Matrix matrix;
        map = matrix.map;
    }
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [&] { read_freed_memory<<<1, 1, 1024>>>(map); }),
                         {"no memory that a kernel may use"}));
}

// 2 images of 4 x 6 pixels with 64 channels, and a filter of 3 x 3 with padding 1: the bounding box
// is from -1 to 4 along columns and from -1 to 2 along rows.
class Images {
  public:
    Images() : data_(std::vector<std::uint16_t>(2 * 4 * 6 * 64, 1)) {
        const cuuint64_t extents[] = {64, 6, 4, 2}, pitches[] = {128, 6 * 128, 24 * 128};
        const int corner[] = {-1, -1};
        const cuuint32_t steps[] = {1, 1, 1, 1};
        EXPECT_EQ(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, data_.data(), extents,
                                          pitches, corner, corner, 64, 8, steps,
                                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  CUDA_SUCCESS);
    }

    CUtensorMap map;

  private:
    DeviceVector<std::uint16_t> data_;
};
struct FirstPixel {
    int channel = 0;
    int column = -1;
    int row = -1;
    bool awaited = true;
};
__global__ void load_pixels(const __grid_constant__ CUtensorMap map, FirstPixel first, unsigned bytes,
                            std::uint16_t* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* const pixels = reinterpret_cast<std::uint16_t*>(memory);
    __shared__ MBarrier full;
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    pixels[0] = 7;
    mbarrier_arrive_expect(&full, bytes);
    tma_load_im2col(memory, &map, first.channel, first.column, first.row, 0, 1, 1, &full);
    if (first.awaited) mbarrier_wait(&full, 0);
    *out = pixels[0];
    if (!first.awaited) mbarrier_wait(&full, 0);
}
std::string report_of_pixels(const CUtensorMap& map, const FirstPixel& first,
                             cudaError_t expected = cudaErrorLaunchFailure, unsigned bytes = 1024,
                             std::uint16_t seen = 1) {
    DeviceVector<std::uint16_t> out(1);
    const std::string report =
        report_of(expected, [&] { load_pixels<<<1, 1, 1024>>>(map, first, bytes, out.data()); });
    if (expected == cudaSuccess) {
        EXPECT_EQ(out.to_host()[0], seen);
    }
    return report;
}
TEST(Im2colLoad, MisuseIsReported) {
    constexpr std::uint16_t kPoison = 0xfffe;
    Images images;
    EXPECT_EQ(report_of_pixels(images.map, {}, cudaSuccess), "");
    EXPECT_EQ(report_of_pixels(images.map, {.column = 4, .row = 2}, cudaSuccess), "");
    EXPECT_EQ(report_of_pixels(images.map, {.awaited = false}, cudaSuccess, 1024, kPoison), "");
    EXPECT_TRUE(mentions(report_of_pixels(images.map, {.column = -2}),
                         {"begins in column -2", "from -1 to 4", "load_pixels"}));
    EXPECT_TRUE(mentions(report_of_pixels(images.map, {.row = 3}), {"begins in row 3", "from -1 to 2"}));
    EXPECT_TRUE(mentions(report_of_pixels(images.map, {.channel = 4}, cudaErrorIllegalInstruction),
                         {"column 4", "multiple of 16 bytes"}));
    EXPECT_TRUE(mentions(report_of_pixels(images.map, {}, cudaErrorLaunchFailure, 896),
                         {"128 bytes more have come", "told to expect"}));
    EXPECT_TRUE(mentions(report_of_pixels(Matrix().map, {}), {"cuTensorMapEncodeIm2col has not made"}));
    EXPECT_TRUE(mentions(
        report_of(cudaErrorLaunchFailure, [&] { load_badly<<<1, 1, 1024>>>(images.map, Load::fine); }),
        {"cuTensorMapEncodeTiled has not made"}));
}

__global__ void copy_to_all(const __grid_constant__ CUtensorMap map, unsigned blocks, bool stay) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ MBarrier barrier;
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&barrier, 1024);
    cluster_arrive();
    cluster_wait();
    if (cluster_rank() == 0)
        tma_load_multicast(memory, &map, 0, 0, &barrier, static_cast<std::uint16_t>(blocks));
    if (stay) mbarrier_wait(&barrier, 0);
    cluster_arrive();
    cluster_wait();
}
TEST(BulkLoad, ToBlocksOfTheCluster) {
    Matrix matrix;
    const auto report = [&](cudaError_t expected, unsigned blocks, bool stay) {
        return report_of(expected,
                         [&] { launch_cluster(copy_to_all, 2, 1, 1024, matrix.map, blocks, stay); });
    };
    EXPECT_EQ(report(cudaSuccess, 3, true), "");
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, 4, true), {"the cluster has 2 block(s)"}));
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, 0, true), {"the cluster has 2 block(s)"}));
    EXPECT_TRUE(mentions(report(cudaErrorLaunchTimeout, 1, true), {"deadlock", "1024 bytes missing"}));
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, 2, false), {"ended before the bulk copy"}));
}

// Of one dimension: as late as boxes.
enum class Bytes { fine, read_too_early, not_awaited, misaligned, outside, of_no_memory };
__global__ void load_bytes(float* out, const float* in, Bytes kind) {
    extern __shared__ __align__(16) float row[];
    __shared__ MBarrier barrier;
    for (int i = 0; i < 16; ++i)
        row[i] = kOld;
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&barrier, 64);
    isa::bulk_load(row + (kind == Bytes::misaligned ? 1
                          : kind == Bytes::outside  ? 4
                                                    : 0),
                   in + (kind == Bytes::of_no_memory ? 1 << 20 : 0), 64, &barrier);
    if (kind == Bytes::fine) mbarrier_wait(&barrier, 0);
    for (int i = 0; i < 16; ++i)
        out[i] = row[i];
    if (kind == Bytes::read_too_early) mbarrier_wait(&barrier, 0);
}
std::string report_of_bytes(Bytes kind, cudaError_t expected, std::vector<float>* seen = nullptr) {
    std::vector<float> numbers(16);
    for (int i = 0; i < 16; ++i)
        numbers[i] = static_cast<float>(i);
    DeviceVector<float> in(numbers), out(16);
    const std::string report =
        report_of(expected, [&] { load_bytes<<<1, 1, 64>>>(out.data(), in.data(), kind); });
    if (seen != nullptr) *seen = out.to_host();
    return report;
}
TEST(BulkLoad, OfOneDimensionIsThereAfterTheWaitOnly) {
    std::vector<float> seen;
    EXPECT_EQ(report_of_bytes(Bytes::fine, cudaSuccess, &seen), "");
    for (int i = 0; i < 16; ++i)
        EXPECT_EQ(seen[i], static_cast<float>(i));
    EXPECT_EQ(report_of_bytes(Bytes::read_too_early, cudaSuccess, &seen), "");
    for (const float value : seen)
        EXPECT_TRUE(std::isnan(value)) << value;
}
TEST(BulkLoad, MisuseOfOneDimensionIsTold) {
    EXPECT_TRUE(mentions(report_of_bytes(Bytes::not_awaited, cudaErrorLaunchFailure),
                         {"ended before the bulk copy", "hopper_reports_test.cu"}));
    EXPECT_TRUE(mentions(report_of_bytes(Bytes::misaligned, cudaErrorMisalignedAddress),
                         {"cp.async.bulk of 64 bytes", "multiples of 16 bytes"}));
    EXPECT_TRUE(mentions(report_of_bytes(Bytes::outside, cudaErrorIllegalAddress),
                         {"not in the block's shared memory"}));
    EXPECT_TRUE(mentions(report_of_bytes(Bytes::of_no_memory, cudaErrorIllegalAddress),
                         {"cp.async.bulk of 64 bytes", "no memory that a kernel may use"}));
}

// ---- Bulk stores --------------------------------------------------------------------------------

enum class Store { fine, overwritten, no_fence, stale, end_at_once, negative };
__global__ void store_badly(const __grid_constant__ CUtensorMap map, Store kind) {
    extern __shared__ __align__(128) float box[];
    for (int i = 0; i < 256; ++i)
        box[i] = kOld;
    if (kind != Store::no_fence) fence_proxy_async();
    tma_store(&map, 0, kind == Store::negative ? -8 : 8, box);
    tma_store_commit();
    if (kind == Store::end_at_once) return;
    if (kind != Store::overwritten) tma_store_wait_read<0>();
    box[5] = 2 * kOld;
    if (kind != Store::stale) fence_proxy_async();
    tma_store(&map, 0, 16, box);
    tma_store_commit();
    tma_store_wait_read<0>();
}
TEST(BulkStore, MisuseIsReported) {
    const auto report = [](Store kind, cudaError_t expected = cudaErrorLaunchFailure) {
        Matrix matrix;
        return report_of(expected, [&] { store_badly<<<1, 1, 1024>>>(matrix.map, kind); });
    };
    EXPECT_TRUE(mentions(report(Store::no_fence), {"store_badly", "no thread has called fence.proxy.async"}));
    EXPECT_TRUE(
        mentions(report(Store::negative, cudaErrorIllegalInstruction), {"row -8; expected none below 0"}));
    EXPECT_TRUE(mentions(report(Store::stale), {"written after the last fence.proxy.async"}));
    EXPECT_TRUE(mentions(report(Store::overwritten), {"written while a bulk store read it"}));
    EXPECT_TRUE(mentions(report(Store::end_at_once), {"ended while 1 bulk store(s)", "wait_group.read"}));
}
TEST(BulkStore, StoresWhatWasThereWhenItWasAskedFor) {
    Matrix matrix;
    EXPECT_EQ(report_of(cudaSuccess, [&] { store_badly<<<1, 1, 1024>>>(matrix.map, Store::fine); }), "");
    const std::vector<float> got = matrix.to_host();
    EXPECT_EQ(got[255], 256);
    EXPECT_EQ(got[256], kOld);
    EXPECT_EQ(got[256 + 5], kOld);
    EXPECT_EQ(got[512 + 4], kOld);
    EXPECT_EQ(got[512 + 5], 2 * kOld);
    EXPECT_EQ(got[768], 769);
}

// Of one dimension: 16 floats. The thread copies what is in global memory after it has waited, or
// not.
__global__ void store_bytes_badly(float* out, float* seen, Store kind) {
    __shared__ __align__(128) float values[16];
    for (int i = 0; i < 16; ++i)
        values[i] = static_cast<float>(i);
    if (kind != Store::no_fence) fence_proxy_async();
    isa::bulk_store(kind == Store::negative ? values : out, values, 64);
    tma_store_commit();
    if (kind == Store::end_at_once) return;
    if (kind == Store::overwritten) values[5] = 50;
    seen[0] = out[5];
    tma_store_wait_read<0>();
    seen[1] = out[5];
    tma_store_wait<0>();
    seen[2] = out[5];
}
TEST(BulkStore, OfOneDimensionWritesAsLateAsItMay) {
    std::vector<float> seen;
    const auto report = [&seen](Store kind, cudaError_t expected = cudaErrorLaunchFailure) {
        DeviceVector<float> out(std::vector<float>(16, kOld));
        DeviceVector<float> seen_there(3);
        const std::string text =
            report_of(expected, [&] { store_bytes_badly<<<1, 1>>>(out.data(), seen_there.data(), kind); });
        if (expected == cudaSuccess) seen = seen_there.to_host();
        return text;
    };
    EXPECT_EQ(report(Store::fine, cudaSuccess), "");
    EXPECT_EQ(seen, (std::vector<float>{kOld, kOld, 5}));
    EXPECT_TRUE(mentions(report(Store::no_fence), {"no thread has called fence.proxy.async"}));
    EXPECT_TRUE(mentions(report(Store::overwritten), {"written while a bulk store read it"}));
    EXPECT_TRUE(mentions(report(Store::end_at_once), {"ended while 1 bulk store(s)", "wait_group.read"}));
    EXPECT_TRUE(
        mentions(report(Store::negative, cudaErrorIllegalAddress),
                 {"cp.async.bulk of 64 bytes", "the destination is no memory that a kernel may use"}));
}

// ---- Products of warpgroups ---------------------------------------------------------------------

enum class Product {
    fine,
    no_fence,
    no_second_fence,
    no_proxy_fence,
    no_later_proxy_fence,
    written_after_fence,
    read_early,
    written_early,
    written_late,
    operand_overwritten,
    other_descriptors,
    three_warps,
    one_warp_less,
    outside,
    base_offset
};

// All elements of A are 1, of B 2; rows of 128 bytes, swizzled or not. D begins with 3.
__global__ void multiply_badly(Product kind, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* const operands = reinterpret_cast<__half*>(memory);
    for (unsigned i = threadIdx.x; i < 16 * 1024; i += blockDim.x)
        operands[i] = i < 4096 ? __half(1.0f) : __half(2.0f);
    if (kind != Product::no_proxy_fence) fence_proxy_async();
    __syncthreads();
    const unsigned warp = threadIdx.x / 32;
    std::uint64_t a = 1ULL << 62 | 64ULL << 32 | __cvta_generic_to_shared(memory) >> 4;
    const std::uint64_t b = a + (8192 >> 4);
    if (kind == Product::outside) a += 28672 >> 4;
    if (kind == Product::base_offset) a |= 1ULL << 49;
    if (kind == Product::other_descriptors && warp == 2) a += 2;
    float d[64];
    for (float& sum : d)
        sum = 3;
    if (kind != Product::no_fence) wgmma_fence();
    if (kind == Product::one_warp_less && warp == 3) return;
    wgmma<__half, false>(d, a, b);
    wgmma_commit();
    if (kind == Product::written_early) d[7] = 0;
    if (kind == Product::read_early) out[threadIdx.x] = d[5];
    wgmma<__half, false>(d, a, b);
    wgmma_commit();
    wgmma_wait<1>();
    if (kind == Product::operand_overwritten) operands[0] = __half(5.0f);
    if (kind == Product::fine) out[threadIdx.x] = d[5];
    if (kind == Product::written_late) d[7] = 0;
    wgmma_wait<0>();
    if (kind == Product::no_second_fence) d[63] += 1;
    if (kind == Product::no_second_fence) wgmma<__half, false>(d, a, b);
    if (kind == Product::written_after_fence) {
        wgmma_fence();
        d[63] += 1;
        wgmma<__half, false>(d, a, b);
    }
    if (kind == Product::no_later_proxy_fence) {
        operands[threadIdx.x] = __half(4.0f);
        __syncthreads();
        wgmma_fence();
        wgmma<__half, false>(d, a, b);
    }
    if (kind != Product::read_early) out[128 + threadIdx.x] = d[0];
}
std::string report_of_product(Product kind, std::vector<float>* seen = nullptr,
                              cudaError_t expected = cudaErrorLaunchFailure) {
    DeviceVector<float> out(256);
    const std::string report = report_of(expected, [&] {
        multiply_badly<<<1, kind == Product::three_warps ? 96 : 128, 32 * 1024>>>(kind, out.data());
    });
    if (seen != nullptr) *seen = out.to_host();
    return report;
}
TEST(Wgmma, SumsAreNaNUntilTheyAreWaitedFor) {
    std::vector<float> seen;
    EXPECT_EQ(report_of_product(Product::fine, &seen, cudaSuccess), "");
    EXPECT_TRUE(std::isnan(seen[0]) && std::isnan(seen[127])) << "the second product is under way";
    EXPECT_EQ(seen[128], 3 + 2 * 32);
    EXPECT_EQ(report_of_product(Product::read_early, &seen, cudaSuccess), "");
    EXPECT_TRUE(std::isnan(seen[0]) && std::isnan(seen[127]));
}
TEST(Wgmma, OperandsMustNotChangeWhileAProductReadsThem) {
    EXPECT_TRUE(mentions(report_of_product(Product::operand_overwritten),
                         {"multiply_badly", "shared memory was written while a product read it",
                          "hopper_reports_test.cu", "wgmma.wait_group"}));
}

// Warps 0 to 3 multiply and say that the operands are safe to overwrite; warp 4 overwrites one.
__global__ void give_operands_away(bool early, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ MBarrier empty;
    auto* const operands = reinterpret_cast<__half*>(memory);
    for (unsigned i = threadIdx.x; i < 16 * 1024; i += blockDim.x)
        operands[i] = __half(1.0f);
    if (threadIdx.x == 0) mbarrier_init(&empty, 128);
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x >= 128) {
        mbarrier_wait(&empty, 0);
        operands[threadIdx.x] = __half(5.0f);
        return;
    }
    const std::uint64_t a = 1ULL << 62 | 64ULL << 32 | __cvta_generic_to_shared(memory) >> 4;
    float d[64] = {};
    wgmma_fence();
    wgmma<__half, false>(d, a, a + (8192 >> 4));
    wgmma_commit();
    if (early) mbarrier_arrive(&empty);
    wgmma_wait<0>();
    if (!early) mbarrier_arrive(&empty);
    out[threadIdx.x] = d[0];
}
TEST(Wgmma, OperandsThatAreGivenAwayEarlyAreReportedInAnyOrder) {
    DeviceVector<float> out(128);
    EXPECT_EQ(report_of(cudaSuccess, [&] { give_operands_away<<<1, 160, 32 * 1024>>>(false, out.data()); }),
              "");
    EXPECT_EQ(out.to_host()[0], 16);
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure,
                                   [&] { give_operands_away<<<1, 160, 32 * 1024>>>(true, out.data()); }),
                         {"give_operands_away", "shared memory was written while a product read it"}));
}

TEST(Wgmma, MisuseIsReported) {
    EXPECT_TRUE(mentions(report_of_product(Product::no_fence),
                         {"multiply_badly", "no wgmma.fence before the first"}));
    EXPECT_TRUE(
        mentions(report_of_product(Product::no_second_fence), {"written after the last wgmma.fence"}));
    EXPECT_TRUE(mentions(report_of_product(Product::no_proxy_fence), {"fence.proxy.async"}));
    EXPECT_TRUE(mentions(report_of_product(Product::no_later_proxy_fence), {"fence.proxy.async"}));
    EXPECT_TRUE(
        mentions(report_of_product(Product::written_after_fence), {"written after the last wgmma.fence"}));
    EXPECT_TRUE(mentions(report_of_product(Product::written_early), {"wgmma.wait_group is missing"}));
    EXPECT_TRUE(mentions(report_of_product(Product::written_late), {"wgmma.wait_group is missing"}));
    EXPECT_TRUE(mentions(report_of_product(Product::other_descriptors), {"different products"}));
    EXPECT_TRUE(mentions(report_of_product(Product::three_warps), {"needs four warps"}));
    EXPECT_TRUE(mentions(report_of_product(Product::one_warp_less, nullptr, cudaErrorLaunchTimeout),
                         {"deadlock", "96 thread(s) wait", "wgmma_wait"}));
    EXPECT_TRUE(mentions(report_of_product(Product::outside), {"outside the block's dynamic shared memory"}));
    EXPECT_TRUE(mentions(report_of_product(Product::base_offset), {"base offset is not modelled"}));
}

enum class Left { fine, read_early, written_early, written_after_fence, no_fence };

// A is in registers: A(row, k) = 16 row + k. B is the identity, so D(row, n) is A(row, n) for n <
// 16 and 0 elsewhere.
__global__ void multiply_from_registers(Left kind, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* const b = reinterpret_cast<__half*>(memory);
    for (unsigned i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
        const unsigned n = i / 64, k = (i % 64 / 8 ^ n % 8) * 8 + i % 8;
        b[i] = n == k ? __half(1.0f) : __half(0.0f);
    }
    fence_proxy_async();
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x / 32 * 16 + lane / 4;
    const unsigned column = lane % 4 * 2;
    unsigned a[4];
    for (unsigned r = 0; r < 4; ++r) {
        const unsigned first = 16 * (row + r % 2 * 8) + column + r / 2 * 8;
        a[r] = __half_as_ushort(__half(static_cast<float>(first))) |
               static_cast<unsigned>(__half_as_ushort(__half(static_cast<float>(first + 1)))) << 16;
    }
    float d[32] = {};
    if (kind == Left::no_fence) wgmma_wait<0>();
    if (kind != Left::no_fence) wgmma_fence();
    wgmma<__half, false>(d, a, 1ULL << 62 | 64ULL << 32 | __cvta_generic_to_shared(memory) >> 4);
    wgmma_commit();
    if (kind == Left::written_early) a[2] = 0;
    if (kind == Left::read_early) out[threadIdx.x] = d[3];
    wgmma_wait<0>();
    if (kind == Left::written_after_fence) {
        wgmma_fence();
        a[2] = 0;
        wgmma<__half, false>(d, a, 1ULL << 62 | 64ULL << 32 | __cvta_generic_to_shared(memory) >> 4);
    }
    if (kind != Left::fine) return;
    for (unsigned r = 0; r < 32; ++r)
        out[(row + r / 2 % 2 * 8) * 64 + r / 4 * 8 + column + r % 2] = d[r];
}
std::string report_of_left(Left kind, std::vector<float>* seen = nullptr,
                           cudaError_t expected = cudaErrorLaunchFailure) {
    DeviceVector<float> out(64 * 64);
    const std::string report =
        report_of(expected, [&] { multiply_from_registers<<<1, 128, 8192>>>(kind, out.data()); });
    if (seen != nullptr) *seen = out.to_host();
    return report;
}
TEST(Wgmma, TakesTheLeftOperandFromRegisters) {
    std::vector<float> seen;
    EXPECT_EQ(report_of_left(Left::fine, &seen, cudaSuccess), "");
    for (int row = 0; row < 64; ++row) {
        for (int n = 0; n < 64; ++n)
            ASSERT_EQ(seen[row * 64 + n], n < 16 ? 16 * row + n : 0) << row << ", " << n;
    }
    EXPECT_EQ(report_of_left(Left::read_early, &seen, cudaSuccess), "");
    EXPECT_TRUE(std::isnan(seen[0]) && std::isnan(seen[127]));
}
TEST(Wgmma, RegistersOfTheLeftOperandMustNotChange) {
    EXPECT_TRUE(mentions(report_of_left(Left::written_early),
                         {"multiply_from_registers", "registers of A", "wgmma.wait_group is missing"}));
    EXPECT_TRUE(mentions(report_of_left(Left::written_after_fence),
                         {"registers of A were written after the last wgmma.fence"}));
    EXPECT_TRUE(mentions(report_of_left(Left::no_fence), {"wgmma.fence"}));
}

// Two warpgroups multiply the same operands. Each overwrites one when its own product is there.
__global__ void overwrite_for_others(bool waits, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* const operands = reinterpret_cast<__half*>(memory);
    for (unsigned i = threadIdx.x; i < 8 * 1024; i += blockDim.x)
        operands[i] = __half(1.0f);
    fence_proxy_async();
    __syncthreads();
    const std::uint64_t a = 1ULL << 62 | 64ULL << 32 | __cvta_generic_to_shared(memory) >> 4;
    float d[32] = {};
    wgmma_fence();
    wgmma<__half, false>(d, a, a + (8192 >> 4));
    wgmma_commit();
    wgmma_wait<0>();
    if (waits) __syncthreads();
    operands[threadIdx.x] = __half(5.0f);
    out[threadIdx.x] = d[0];
}
TEST(Wgmma, AWarpgroupRunsAheadOfAnother) {
    DeviceVector<float> out(256);
    EXPECT_EQ(report_of(cudaSuccess, [&] { overwrite_for_others<<<1, 256, 16 * 1024>>>(true, out.data()); }),
              "");
    EXPECT_EQ(out.to_host()[255], 16);
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure,
                                   [&] { overwrite_for_others<<<1, 256, 16 * 1024>>>(false, out.data()); }),
                         {"overwrite_for_others", "shared memory was written while a product read it"}));
}

// TF32: A(row, k) = 8 row + k + 1, in registers. B(k, n) = 1 + 2^-10 where n = 8 + k, and all bits
// that TF32 does not have are set as well; 0 elsewhere.
__global__ void multiply_tf32(bool twice, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* const b = reinterpret_cast<unsigned*>(memory);
    for (unsigned i = threadIdx.x; i < 32 * 32; i += blockDim.x) {
        const unsigned n = i / 32, k = (i % 32 / 4 ^ n % 8) * 4 + i % 4;
        b[i] = n == 8 + k ? 0x3f803fffu : 0u;
    }
    fence_proxy_async();
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    const unsigned row = threadIdx.x / 32 * 16 + lane / 4;
    unsigned a[4];
    for (unsigned r = 0; r < 4; ++r)
        a[r] = __float_as_uint(static_cast<float>(8 * (row + r % 2 * 8) + lane % 4 + r / 2 * 4 + 1));
    float d[16];
    for (float& sum : d)
        sum = 7;
    const std::uint64_t place = 1ULL << 62 | 64ULL << 32 | __cvta_generic_to_shared(memory) >> 4;
    wgmma_fence();
    wgmma_tf32_set(d, a, place);
    if (twice) wgmma_tf32(d, a, place);
    wgmma_commit();
    wgmma_wait<0>();
    for (unsigned r = 0; r < 16; ++r)
        out[(row + r / 2 % 2 * 8) * 32 + r / 4 * 8 + lane % 4 * 2 + r % 2] = d[r];
}
TEST(Wgmma, TakesTenBitsOfTheMantissaOfTf32) {
    for (const bool twice : {false, true}) {
        DeviceVector<float> out(64 * 32);
        EXPECT_EQ(report_of(cudaSuccess, [&] { multiply_tf32<<<1, 128, 4096>>>(twice, out.data()); }), "");
        const std::vector<float> seen = out.to_host();
        for (int row = 0; row < 64; ++row) {
            for (int n = 0; n < 32; ++n) {
                const float a = n >= 8 && n < 16 ? static_cast<float>(8 * row + n - 8 + 1) : 0;
                ASSERT_EQ(seen[row * 32 + n], (twice ? 2 : 1) * a * (1 + 0x1p-10f)) << row << ", " << n;
            }
        }
    }
}

__global__ void give_registers_away() {
    if (threadIdx.x < 20) registers_decrease<40>();
}
TEST(Registers, AreForWholeWarps) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { give_registers_away<<<1, 32>>>(); }),
                         {"setmaxnreg"}));
}

// ---- Tensor maps --------------------------------------------------------------------------------

struct Encoding {
    std::uint64_t address = 1 << 20;
    cuuint64_t extents[2] = {100, 50};
    cuuint64_t pitch = 208;
    cuuint32_t box[2] = {64, 16};
    cuuint32_t steps[2] = {1, 1};
    cuuint32_t rank = 2;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
};
std::string refusal_of(const Encoding& e, CUresult expected = CUDA_ERROR_INVALID_VALUE) {
    CUtensorMap map;
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, e.rank,
                                     reinterpret_cast<void*>(e.address), e.extents, &e.pitch, e.box, e.steps,
                                     CU_TENSOR_MAP_INTERLEAVE_NONE, e.swizzle,
                                     CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              expected);
    return testing::internal::GetCapturedStderr();
}
TEST(TensorMap, RefusesWhatADriverRefuses) {
    EXPECT_EQ(refusal_of({}, CUDA_SUCCESS), "");
    EXPECT_TRUE(mentions(refusal_of({.address = (1 << 20) + 8}), {"begin at a multiple of 16 bytes"}));
    EXPECT_TRUE(mentions(refusal_of({.address = 0}), {"begin at a multiple of 16 bytes"}));
    EXPECT_TRUE(mentions(refusal_of({.extents = {0, 50}}), {"extent 0 is 0; expected 1 to 2^32"}));
    EXPECT_TRUE(mentions(refusal_of({.extents = {100, (1ULL << 32) + 1}}), {"extent 1 is 4294967297"}));
    EXPECT_TRUE(mentions(refusal_of({.pitch = 200}), {"stride 0 is 200 bytes; expected a multiple of 16"}));
    EXPECT_TRUE(mentions(refusal_of({.pitch = 1ULL << 40}), {"below 2^40"}));
    EXPECT_TRUE(mentions(refusal_of({.box = {64, 257}}), {"extent 1 is 257; expected 1 to 256"}));
    EXPECT_TRUE(mentions(refusal_of({.box = {0, 16}}), {"extent 0 is 0; expected 1 to 256"}));
    EXPECT_TRUE(mentions(refusal_of({.box = {20, 16}}), {"rows are 40 bytes; expected a multiple of 16"}));
    EXPECT_TRUE(
        mentions(refusal_of({.box = {72, 16}}), {"rows are 144 bytes; this swizzle takes at most 128"}));
    EXPECT_TRUE(mentions(refusal_of({.steps = {1, 9}}), {"element stride 1 is 9; expected 1 to 8"}));
    EXPECT_TRUE(mentions(refusal_of({.rank = 0}), {"rank 0; expected 1 to 5"}));
    EXPECT_TRUE(mentions(refusal_of({.box = {32, 16}}, CUDA_ERROR_NOT_SUPPORTED), {"not modelled"}));
    EXPECT_TRUE(mentions(refusal_of({.steps = {1, 2}}, CUDA_ERROR_NOT_SUPPORTED), {"not modelled"}));
}

struct Im2colEncoding {
    std::uint64_t address = 1 << 20;
    cuuint64_t extents[4] = {64, 6, 4, 2};
    cuuint64_t pitches[3] = {128, 768, 3072};
    int lower[2] = {-1, -1};
    int upper[2] = {-1, -1};
    cuuint32_t channels = 64;
    cuuint32_t pixels = 128;
    cuuint32_t steps[4] = {1, 1, 1, 1};
    cuuint32_t rank = 4;
};
std::string refusal_of(const Im2colEncoding& e, CUresult expected = CUDA_ERROR_INVALID_VALUE) {
    CUtensorMap map;
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, e.rank,
                                      reinterpret_cast<void*>(e.address), e.extents, e.pitches, e.lower,
                                      e.upper, e.channels, e.pixels, e.steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              expected);
    return testing::internal::GetCapturedStderr();
}
TEST(TensorMap, RefusesWhatADriverRefusesOfIm2col) {
    EXPECT_EQ(refusal_of(Im2colEncoding{}, CUDA_SUCCESS), "");
    EXPECT_EQ(refusal_of(Im2colEncoding{.pixels = 1024}, CUDA_SUCCESS), "");
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.pixels = 1025}), {"1025; expected 1 to 1024"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.channels = 0}), {"0; expected 1 to 256"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.channels = 72}),
                         {"cuTensorMapEncodeIm2col", "144 bytes; this swizzle takes at most 128"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.address = (1 << 20) + 8}), {"multiple of 16 bytes"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.pitches = {128, 760, 3072}}), {"stride 1 is 760 bytes"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.steps = {1, 9, 1, 1}}),
                         {"element stride 1 is 9; expected 1 to 8"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.lower = {-1, -129}}),
                         {"lower corner 1 is -129; expected -128 to 127"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.upper = {128, 0}}),
                         {"upper corner 0 is 128; expected -128 to 127"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.lower = {0, 0}, .upper = {0, -4}}),
                         {"from 0 to -1 in direction 1", "at least one pixel"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.rank = 2}), {"rank 2; expected 3 to 5"}));
    EXPECT_TRUE(mentions(refusal_of(Im2colEncoding{.rank = 3}, CUDA_ERROR_NOT_SUPPORTED), {"not modelled"}));
}

}  // namespace
