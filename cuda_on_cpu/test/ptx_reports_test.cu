// What the stand-in makes visible of asynchronous copies and tensor-core instructions used wrongly.
// What they do when used rightly is tested in common/unit_tests/, on GPUs as well.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <mma.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

namespace {

using namespace cuda_on_cpu::ptx;

// Runs kernel(out, {1, 2, 3, ...}, arguments...) and returns what it wrote.
template <class... Parameters, class... Arguments>
std::vector<float> run(void (*kernel)(float*, const float*, Parameters...), unsigned threads,
                       std::size_t outputs, Arguments... arguments) {
    std::vector<float> numbers(64);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(i + 1);
    DeviceVector<float> in(numbers);
    DeviceVector<float> out(outputs);
    kernel<<<1, threads>>>(out.data(), in.data(), arguments...);
    return out.to_host();
}

constexpr float kOld = -7;  // what stands where a copy is going to

// ---- Copies are pending until they are waited for -----------------------------------------------

__global__ void read_too_early(float* out, const float* in) {
    __shared__ alignas(16) float tile[8];
    for (float& element : tile)
        element = kOld;
    cp_async_16(tile, in);
    cp_async_4(tile + 4, in + 4);
    cp_async_4(tile + 5, nullptr, false);
    cp_async_commit();
    for (int i = 0; i < 8; ++i)
        out[i] = tile[i];
    cp_async_wait<0>();
    for (int i = 0; i < 8; ++i)
        out[8 + i] = tile[i];
}
TEST(AsyncCopy, ReadBeforeTheWaitIsNaN) {
    const std::vector<float> out = run(read_too_early, 1, 16);
    for (int i = 0; i < 6; ++i)
        EXPECT_TRUE(std::isnan(out[i])) << i << ": " << out[i];
    EXPECT_EQ(out[6], kOld);
    EXPECT_EQ(std::vector<float>(out.begin() + 8, out.end()),
              (std::vector<float>{1, 2, 3, 4, 5, 0, kOld, kOld}));
}

template <int kPending>
__device__ void wait_and_look(float* out, const float* tile, int groups) {
    cp_async_wait<kPending>();
    for (int i = 0; i < groups; ++i)
        out[kPending * groups + i] = tile[i];
}
__global__ void wait_group_by_group(float* out, const float* in) {
    __shared__ float tile[4];
    for (int i = 0; i < 4; ++i) {
        cp_async_4(tile + i, in + i);
        if (i < 3) cp_async_commit();
    }
    wait_and_look<4>(out, tile, 4);  // more than there are
    wait_and_look<3>(out, tile, 4);
    wait_and_look<2>(out, tile, 4);
    wait_and_look<1>(out, tile, 4);
    wait_and_look<0>(out, tile, 4);
}
TEST(AsyncCopy, AWaitCompletesTheOlderGroupsOnly) {
    const std::vector<float> out = run(wait_group_by_group, 1, 20);
    for (int pending = 0; pending <= 4; ++pending) {
        for (int i = 0; i < 4; ++i) {
            const float seen = out[4 * pending + i];
            if (i < 3 - pending) {
                EXPECT_EQ(seen, static_cast<float>(i + 1)) << "copy " << i << ", wait<" << pending << ">";
            } else {  // the last one is in no group
                EXPECT_TRUE(std::isnan(seen)) << "copy " << i << ", wait<" << pending << ">: " << seen;
            }
        }
    }
}

__global__ void read_what_others_copy(float* out, const float* in, unsigned waiting) {
    __shared__ float tile[64];
    cp_async_4(tile + threadIdx.x, in + threadIdx.x);
    cp_async_commit();
    if (threadIdx.x != waiting) cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
    __syncthreads();
}
TEST(AsyncCopy, ABarrierIsNoWait) {
    const std::vector<float> out = run(read_what_others_copy, 64, 64, 40u);
    for (unsigned i = 0; i < 64; ++i) {
        if (i == 39) {
            EXPECT_TRUE(std::isnan(out[i])) << out[i];
        } else {
            EXPECT_EQ(out[i], static_cast<float>((i + 1) % 64 + 1)) << i;
        }
    }
}

__global__ void copy_and_end(float* out, const float* in) {
    __shared__ float tile[2];
    if (threadIdx.x == 0) {
        cp_async_4(tile, in);
        cp_async_commit();
        cp_async_4(tile + 1, in + 1);
        return;
    }
    __syncthreads();
    out[0] = tile[0];
    out[1] = tile[1];
}
TEST(AsyncCopy, CompletesWhenItsThreadEnds) {
    EXPECT_EQ(run(copy_and_end, 2, 2), (std::vector<float>{1, 2}));
}

// Every block begins anew, however the last one ended.
__global__ void leave_a_copy(const float* in) {
    extern __shared__ float dynamic[];
    cp_async_4(dynamic, in);
    cp_async_commit();
    __trap();
}
__global__ void wait_for_nothing(float* out) {
    extern __shared__ float dynamic[];
    dynamic[0] = kOld;
    cp_async_wait<0>();
    out[0] = dynamic[0];
}
TEST(AsyncCopy, OfABlockThatFailedIsForgotten) {
    DeviceVector<float> in(std::vector<float>{1});
    DeviceVector<float> out(1);
    testing::internal::CaptureStderr();
    leave_a_copy<<<1, 1, 4>>>(in.data());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    testing::internal::GetCapturedStderr();
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    wait_for_nothing<<<1, 1, 4>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<float>{kOld});
}

// ---- Copies that cannot be ----------------------------------------------------------------------

constexpr int kCopyLine = __LINE__ + 3;
__global__ void copy_with_offsets(const float* in, int to, int from, unsigned valid_bytes) {
    extern __shared__ float dynamic[];
    if (threadIdx.x == 3) cp_async_16(dynamic + to, in + from, valid_bytes);
}
std::string report_of_copy(cudaError_t expected, int to, int from, unsigned valid_bytes) {
    DeviceVector<float> in(1024);  // whole pages: the guard page begins right behind
    return report_of(expected, [&] { copy_with_offsets<<<1, 32, 64>>>(in.data(), to, from, valid_bytes); });
}
TEST(AsyncCopy, MisalignedIsReported) {
    EXPECT_TRUE(mentions(
        report_of_copy(cudaErrorMisalignedAddress, 0, 2, 16),
        {"copy_with_offsets", "thread (3,0,0)", "16 bytes", "misaligned", "source", at_line(kCopyLine)}));
    EXPECT_TRUE(mentions(report_of_copy(cudaErrorMisalignedAddress, 1, 0, 16),
                         {"misaligned", "destination", at_line(kCopyLine)}));
    report_of_copy(cudaErrorMisalignedAddress, 0, 1, 4);  // few valid bytes do not help
}
TEST(AsyncCopy, ReadOutsideAnAllocationIsReported) {
    EXPECT_TRUE(mentions(report_of_copy(cudaErrorIllegalAddress, 0, 1024, 4),
                         {"copy_with_offsets", "thread (3,0,0)", "illegal access",
                          "at the first byte past the end of the 4096-byte allocation", at_line(kCopyLine)}));
}
TEST(AsyncCopy, WriteOutsideDynamicSharedMemoryIsReported) {
    for (const int to : {16, -4, 32, 1 << 20}) {
        EXPECT_TRUE(mentions(
            report_of_copy(cudaErrorIllegalAddress, to, 0, 16),
            {"destination", "not in the block's shared memory", "thread (3,0,0)", at_line(kCopyLine)}))
            << to;
    }
}
TEST(AsyncCopy, MoreValidBytesThanBytesAreReported) {
    EXPECT_TRUE(
        mentions(report_of_copy(cudaErrorLaunchFailure, 0, 0, 17), {"17 of them valid", at_line(kCopyLine)}));
}

constexpr int kGlobalLine = __LINE__ + 2;
__global__ void copy_to_global(float* out, const float* in) {
    cp_async_4(out, in);
}
TEST(AsyncCopy, DestinationInGlobalMemoryIsReported) {
    DeviceVector<float> data(2);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorIllegalAddress, [&] { copy_to_global<<<1, 1>>>(data.data(), data.data() + 1); }),
        {"4 bytes", "not in the block's shared memory", at_line(kGlobalLine)}));
}

// ---- Tensor cores -------------------------------------------------------------------------------

using Products = void (*)(unsigned);
constexpr int kMmaLine = __LINE__ + 6;
template <class Sum, auto kProduct>
__global__ void multiply_with(unsigned lanes) {
    Sum d[4] = {};
    const unsigned a[4] = {}, b[2] = {};
    if (threadIdx.x >= lanes) return;
    kProduct(d, a, b, cuda_on_cpu::Site::here());
}
TEST(TensorCore, NeedsAllLanesOfAWarp) {
    const auto expect_report = [](const std::string& name, Products kernel) {
        EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [kernel] { kernel<<<1, 31>>>(31); }),
                             {"multiply_with", name, "fewer than 32", at_line(kMmaLine)}));
        EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [kernel] { kernel<<<1, 32>>>(31); }),
                             {"multiply_with", name, "ended", at_line(kMmaLine)}));
    };
    expect_report("mma_m16n8k8_tf32", multiply_with<float, mma_m16n8k8_tf32>);
    expect_report("mma_m16n8k16_f16", multiply_with<float, mma_m16n8k16_f16>);
    expect_report("mma_m16n8k16_bf16", multiply_with<float, mma_m16n8k16_bf16>);
    expect_report("mma_m16n8k32_s8", multiply_with<int, mma_m16n8k32_s8>);
}

constexpr int kTwoProductsLine = __LINE__ + 7;
__global__ void disagree_on_the_product() {
    float d[4] = {};
    const unsigned a[4] = {}, b[2] = {};
    if (threadIdx.x < 16) {
        mma_m16n8k16_f16(d, a, b);
    } else {
        mma_m16n8k16_bf16(d, a, b);
    }
}
TEST(TensorCore, LanesMustAgreeOnTheProduct) {
    const std::string report =
        report_of(cudaErrorLaunchFailure, [] { disagree_on_the_product<<<1, 32>>>(); });
    EXPECT_TRUE(mentions(report, {"mma_m16n8k16_f16", "mma_m16n8k16_bf16",
                                  at_line(descending() ? kTwoProductsLine - 2 : kTwoProductsLine)}));
}

TEST(TensorCore, ConversionTruncatesTheBitsOfANaNAsGpusDo) {
    EXPECT_EQ(to_tf32(std::bit_cast<float>(0x7fffffffu)), 0x7fffe000u);
    EXPECT_EQ(to_tf32(std::bit_cast<float>(0xff801fffu)), 0xff800000u);
}

// ---- Matrices from shared memory ----------------------------------------------------------------

// Lane 5 goes `offset` bytes away from its row.
constexpr int kLoadLine = __LINE__ + 6;
__global__ void load_with_offset(int offset, unsigned lane) {
    extern __shared__ char dynamic[];
    unsigned r[1];
    char* const row = dynamic + 16 * (threadIdx.x % 8);
    std::memset(row, 0, 16);
    ldmatrix_x1(r, threadIdx.x == lane ? row + offset : row);
}
std::string report_of_load(cudaError_t expected, int offset, unsigned lane = 5) {
    return report_of(expected, [&] { load_with_offset<<<1, 32, 128>>>(offset, lane); });
}
TEST(Ldmatrix, MisalignedRowIsReported) {
    for (const int offset : {1, 2, 4, 8, -8}) {
        EXPECT_TRUE(mentions(report_of_load(cudaErrorMisalignedAddress, offset),
                             {"load_with_offset", "ldmatrix_x1", "misaligned", "16 bytes", "thread (5,0,0)",
                              at_line(kLoadLine)}))
            << offset;
    }
}
TEST(Ldmatrix, RowOutsideSharedMemoryIsReported) {
    for (const int offset : {48, -96, 1 << 20}) {
        EXPECT_TRUE(mentions(
            report_of_load(cudaErrorIllegalAddress, offset),
            {"ldmatrix_x1", "not in the block's shared memory", "thread (5,0,0)", at_line(kLoadLine)}))
            << offset;
    }
}
TEST(Ldmatrix, RowsOfOtherLanesDoNotCount) {
    EXPECT_EQ(report_of_load(cudaSuccess, 1, 8), "");
    EXPECT_EQ(report_of_load(cudaSuccess, 1 << 20, 31), "");
    report_of_load(cudaErrorMisalignedAddress, 1, 7);
}

// Allocations end at a guard page: of the two sizes, one begins at a multiple of 32 bytes and one
// does not.
constexpr int kFragmentLine = __LINE__ + 3;
__global__ void load_fragment(const __half* matrix, unsigned leading_dimension) {
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> fragment;
    nvcuda::wmma::load_matrix_sync(fragment, matrix, leading_dimension);
}
TEST(Wmma, AMatrixIsMisalignedInItsAllocation) {
    for (const std::size_t size : {1024, 1032}) {
        DeviceVector<__half> data(size);
        for (const int offset : {0, 16, 128})
            EXPECT_EQ(report_of(cudaSuccess, [&] { load_fragment<<<1, 32>>>(data.data() + offset, 16); }),
                      "");
        for (const int offset : {1, 8, 24})
            EXPECT_TRUE(mentions(report_of(cudaErrorMisalignedAddress,
                                           [&] { load_fragment<<<1, 32>>>(data.data() + offset, 16); }),
                                 {"load_fragment", "load_matrix_sync", "misaligned", "multiple of 32 bytes",
                                  at_line(kFragmentLine)}))
                << size << ", " << offset;
        EXPECT_TRUE(mentions(
            report_of(cudaErrorMisalignedAddress, [&] { load_fragment<<<1, 32>>>(data.data(), 17); }),
            {"leading dimension", "multiple of 16 bytes", at_line(kFragmentLine)}));
    }
}

constexpr int kGlobalLoadLine = __LINE__ + 3;
__global__ void load_from_global(const float* in) {
    unsigned r[4];
    ldmatrix_x4(r, in);
}
TEST(Ldmatrix, RowInGlobalMemoryIsReported) {
    DeviceVector<float> data(64);
    EXPECT_TRUE(
        mentions(report_of(cudaErrorIllegalAddress, [&] { load_from_global<<<1, 32>>>(data.data()); }),
                 {"ldmatrix_x4", "not in the block's shared memory", at_line(kGlobalLoadLine)}));
}

constexpr int kFewLoadLine = __LINE__ + 4;
__global__ void load_with_few() {
    extern __shared__ char dynamic[];
    unsigned r[2];
    ldmatrix_x2_trans(r, dynamic);
}
TEST(Ldmatrix, NeedsAllLanesOfAWarp) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { load_with_few<<<1, 31, 16>>>(); }),
                         {"ldmatrix_x2_trans", "fewer than 32", at_line(kFewLoadLine)}));
}

// ---- Inline PTX ---------------------------------------------------------------------------------

constexpr int kAsmLine = __LINE__ + 4;
__global__ void load_by_asm(float* out, unsigned long long address) {
    __shared__ float tile[4];
    tile[0] = 1;
    asm volatile("ld.shared.f32 %0, [%1];"
                 : "=f"(*out)
                 : "l"(address == 0 ? reinterpret_cast<unsigned long long>(tile) : address));
}
TEST(InlinePtx, APointerIsNoAddressWithinSharedMemory) {
    DeviceVector<float> out(1);
    for (const unsigned long long address : {0ull, 64ull, 0x7fff0000ull}) {
        const std::string report =
            report_of(cudaErrorIllegalAddress, [&] { load_by_asm<<<1, 1>>>(out.data(), address); });
        EXPECT_TRUE(
            mentions(report, {"is not in the block's shared memory; expected what __cvta_generic_to_shared()",
                              at_line(kAsmLine)}))
            << report;
    }
}

constexpr int kMisalignedLine = __LINE__ + 3;
__global__ void load_misaligned(float* out, const float* in) {
    float x, y, z, w;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                 : "l"(in + 1));
    *out = x + y + z + w;
}
TEST(InlinePtx, MisalignedVectorsAreReported) {
    DeviceVector<float> data(8);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorMisalignedAddress, [&] { load_misaligned<<<1, 1>>>(data.data(), data.data()); }),
        {"misaligned access", at_line(kMisalignedLine)}));
}

__global__ void convert_pointer_to_global(unsigned long long* out, const float* in) {
    asm volatile("{.reg .u64 a; cvta.to.shared.u64 a, %1; st.global.u64 [%0], a;}" ::"l"(out), "l"(in));
}
TEST(InlinePtx, OnlyPointersToSharedMemoryHaveAnAddressThere) {
    DeviceVector<unsigned long long> out(1);
    DeviceVector<float> in(1);
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress,
                                   [&] { convert_pointer_to_global<<<1, 1>>>(out.data(), in.data()); }),
                         {"an address within shared memory of a pointer that is to other memory"}));
}

// Half of the warpgroup never arrives: asking again and again ends with a report, not never.
__global__ void ask_in_vain() {
    __shared__ std::uint64_t barrier;
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(address));
    asm volatile(
        "{\n.reg .pred p;\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n"
        "WAIT: mbarrier.test_wait.shared.b64 p, [%0], state;\n@!p bra WAIT;\n}" ::"r"(address));
}
TEST(InlinePtx, APhaseThatNeverEndsIsReported) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchTimeout, [] { ask_in_vain<<<1, 1>>>(); }),
                         {"deadlock", "1 of 2 arrivals missing"}));
}

}  // namespace
