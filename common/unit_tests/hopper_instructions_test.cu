// Instructions of compute capability 9.0a through common/device/ptx_hopper.cuh: requirements that
// hold on such a GPU and on the stand-in. Addresses in shared memory are computed independently
// here, from the figures in NVIDIA's "Parallel Thread Execution ISA".
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using namespace course;
using Bytes = std::vector<unsigned char>;

class HopperInstructions : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped()) return;
        int major = 0;
        CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
        if (major != 9)
            GTEST_SKIP() << "needs a GPU of compute capability 9.0; this one has " << major << ".x";
    }
};

template <class Kernel, class... Arguments>
void launch(Kernel* kernel, unsigned blocks, unsigned threads, unsigned cluster, std::size_t shared,
            Arguments... arguments) {
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
    CUDA_CHECK(cudaDeviceSynchronize());
}

// ---- mbarriers ----------------------------------------------------------------------------------

// Thread 0 passes numbers to the other threads through one variable, which is safe to overwrite
// when all of them have read it.
__global__ void pass_on(int* out, int rounds) {
    __shared__ ptx::MBarrier full;
    __shared__ ptx::MBarrier empty;
    __shared__ int place;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&empty, blockDim.x - 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const unsigned parity = static_cast<unsigned>(round) % 2;
        if (threadIdx.x == 0) {
            ptx::mbarrier_wait(&empty,
                               parity ^ 1);  // initially, the phase before the first one counts as complete
            place = (round + 1) * (round + 1);
            ptx::mbarrier_arrive(&full);
        } else {
            ptx::mbarrier_wait(&full, parity);
            sum += place;
            ptx::mbarrier_arrive(&empty);
        }
    }
    out[threadIdx.x] = sum;
}

TEST_F(HopperInstructions, PhasesOfAnMbarrierAlternate) {
    constexpr unsigned kThreads = 97;
    DeviceBuffer<int> out(kThreads);
    launch(pass_on, 1, kThreads, 1, 0, out.data(), 7);
    std::vector<int> expected(kThreads, 1 + 4 + 9 + 16 + 25 + 36 + 49);
    expected[0] = 0;
    EXPECT_EQ(out.to_host(), expected);
}

// Every block of a cluster waits for one arrival from each of them.
__global__ void meet_at_mbarriers(int* out, int rounds) {
    __shared__ ptx::MBarrier barrier;
    __shared__ int rounds_done;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 3);
        ptx::fence_mbarrier_init();
        rounds_done = 0;
    }
    ptx::cluster_arrive();
    ptx::cluster_wait();
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x < 3) ptx::mbarrier_arrive_at(&barrier, threadIdx.x);
        ptx::mbarrier_wait(&barrier, static_cast<unsigned>(round) % 2);
        __syncthreads();
        if (threadIdx.x == 0) ++rounds_done;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = rounds_done * 10 + static_cast<int>(ptx::cluster_rank());
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

TEST_F(HopperInstructions, BlocksOfAClusterArriveAtEachOthersMbarriers) {
    DeviceBuffer<int> out(6);
    launch(meet_at_mbarriers, 6, 64, 3, 0, out.data(), 5);
    EXPECT_EQ(out.to_host(), (std::vector<int>{50, 51, 52, 50, 51, 52}));
}

__global__ void meet_in_pairs(int* out) {
    __shared__ int places[8];
    const unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) places[warp] = static_cast<int>(warp) + 1;
    ptx::named_barrier(1 + warp / 2, 64);
    out[threadIdx.x] = places[warp ^ 1];
}

TEST_F(HopperInstructions, WarpsMeetAtNamedBarriers) {
    DeviceBuffer<int> out(256);
    launch(meet_in_pairs, 1, 256, 1, 0, out.data());
    const std::vector<int> got = out.to_host();
    for (int i = 0; i < 256; ++i)
        EXPECT_EQ(got[i], (i / 32 ^ 1) + 1) << i;
}

// ---- Bulk copies --------------------------------------------------------------------------------

constexpr unsigned kSpan[] = {16, 32, 64, 128};  // of CUtensorMapSwizzle 0 (none) to 3

CUtensorMap make_map(CUtensorMapDataType type, void* address, std::uint64_t columns, std::uint64_t rows,
                     std::uint64_t pitch, unsigned box_columns, unsigned box_rows,
                     CUtensorMapSwizzle swizzle) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    CUDA_CHECK(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    CUtensorMap map{};
    const cuuint64_t extents[] = {columns, rows};
    const cuuint32_t box[] = {box_columns, box_rows};
    const cuuint32_t steps[] = {1, 1};
    EXPECT_EQ(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
                  &map, type, 2, address, extents, &pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
}

// The offset of byte `i` of a box. A line of 128 bytes has eight 16-byte chunks, and the index of
// a chunk within the swizzle span is XORed with the index of the line.
unsigned swizzled_place(unsigned i, unsigned span) {
    const unsigned line = i / 128, piece = i % 128 / 16;
    const unsigned pieces = span / 16;
    const unsigned changed = piece / pieces * pieces + (piece % pieces ^ line % pieces);
    return line * 128 + changed * 16 + i % 16;
}

__global__ void load_box(const __grid_constant__ CUtensorMap map, int column, int row, unsigned bytes,
                         unsigned char* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ ptx::MBarrier barrier;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect(&barrier, bytes);
        ptx::tma_load(memory, &map, column, row, &barrier);
    }
    __syncthreads();
    ptx::mbarrier_wait(&barrier, 0);
    for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x)
        out[i] = memory[i];
}

// Copies `in` to shared memory unchanged and stores the box from there, so TMA removes the
// swizzle.
__global__ void store_box(const __grid_constant__ CUtensorMap map, int column, int row, unsigned bytes,
                          const unsigned char* in) {
    extern __shared__ __align__(1024) unsigned char memory[];
    for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x)
        memory[i] = in[i];
    ptx::fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::tma_store(&map, column, row, memory);
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x)
        memory[i] = 0xee;
    if (threadIdx.x == 0) ptx::tma_store_wait<0>();
}

struct Box {
    CUtensorMapDataType type;
    unsigned element_size;
    CUtensorMapSwizzle swizzle;
    unsigned columns;
    unsigned rows;
};
constexpr Box kBoxes[] = {{CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, CU_TENSOR_MAP_SWIZZLE_128B, 64, 24},
                          {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, CU_TENSOR_MAP_SWIZZLE_128B, 32, 16},
                          {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, CU_TENSOR_MAP_SWIZZLE_64B, 32, 40},
                          {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, CU_TENSOR_MAP_SWIZZLE_32B, 8, 33},
                          {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, CU_TENSOR_MAP_SWIZZLE_NONE, 12, 7},
                          {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, CU_TENSOR_MAP_SWIZZLE_NONE, 48, 5},
                          {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, CU_TENSOR_MAP_SWIZZLE_128B, 128, 24},
                          {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, CU_TENSOR_MAP_SWIZZLE_128B, 32, 16}};
// First elements of boxes: inside a matrix of 70 columns and 45 rows, across each of its borders,
// and outside. The columns are multiples of 16 bytes for each type, because a GPU supports no
// others.
constexpr int kPlaces[][2] = {{0, 0},     {16, 8},  {64, 0},  {64, 40},  {-16, 0}, {0, -3},
                              {-16, -16}, {48, 44}, {80, 10}, {16, 100}, {-64, 5}, {32, 44}};

class BoxTest : public HopperInstructions, public testing::WithParamInterface<Box> {
  protected:
    static constexpr unsigned kColumns = 70, kRows = 45;

    // Row-major, padded to a multiple of 16 bytes.
    unsigned pitch() const { return (kColumns * GetParam().element_size + 15) / 16 * 16 + 32; }
    unsigned row_bytes() const { return GetParam().columns * GetParam().element_size; }
    unsigned bytes() const { return row_bytes() * GetParam().rows; }
    unsigned shared() const { return (bytes() + 1023) / 1024 * 1024; }
    CUtensorMap map_of(DeviceBuffer<unsigned char>& matrix) const {
        return make_map(GetParam().type, matrix.data(), kColumns, kRows, pitch(), GetParam().columns,
                        GetParam().rows, GetParam().swizzle);
    }
};
INSTANTIATE_TEST_SUITE_P(HopperInstructions, BoxTest, testing::ValuesIn(kBoxes));

TEST_P(BoxTest, IsLoadedWithZerosForWhatLiesOutside) {
    Random random(41);
    Bytes matrix(pitch() * kRows);
    for (unsigned char& byte : matrix)
        byte = static_cast<unsigned char>(1 + random.below(255));
    DeviceBuffer<unsigned char> device{std::span<const unsigned char>(matrix)};
    DeviceBuffer<unsigned char> out(bytes());
    for (const auto& [column, row] : kPlaces) {
        SCOPED_TRACE("box at column " + std::to_string(column) + ", row " + std::to_string(row));
        launch(load_box, 1, 128, 1, shared(), map_of(device), column, row, bytes(), out.data());
        Bytes expected(bytes());
        for (unsigned i = 0; i < bytes(); ++i) {
            const int r = row + static_cast<int>(i / row_bytes());
            const int c = column + static_cast<int>(i % row_bytes() / GetParam().element_size);
            const bool inside = r >= 0 && r < int{kRows} && c >= 0 && c < int{kColumns};
            expected[swizzled_place(i, kSpan[GetParam().swizzle])] =
                inside
                    ? matrix[static_cast<unsigned>(r) * pitch() +
                             static_cast<unsigned>(c) * GetParam().element_size + i % GetParam().element_size]
                    : 0;
        }
        ASSERT_EQ(out.to_host(), expected);
    }
}

// The last 16-byte chunk of a row that contains an element of the matrix is written as a whole,
// including the padding of the row.
TEST_P(BoxTest, IsStoredExceptForWhatLiesOutside) {
    Random random(42);
    Bytes box(bytes());
    for (unsigned char& byte : box)
        byte = static_cast<unsigned char>(1 + random.below(255));
    DeviceBuffer<unsigned char> device_box{std::span<const unsigned char>(box)};
    DeviceBuffer<unsigned char> device(pitch() * kRows);
    for (const auto& [column, row] : kPlaces) {
        if (column < 0 || row < 0) continue;  // GPUs do not store there
        SCOPED_TRACE("box at column " + std::to_string(column) + ", row " + std::to_string(row));
        CUDA_CHECK(cudaMemset(device.data(), 0, device.bytes()));
        launch(store_box, 1, 128, 1, shared(), map_of(device), column, row, bytes(),
               static_cast<const unsigned char*>(device_box.data()));
        Bytes expected(device.size());
        for (unsigned i = 0; i < bytes(); ++i) {
            const unsigned r = static_cast<unsigned>(row) + i / row_bytes();
            const unsigned byte = static_cast<unsigned>(column) * GetParam().element_size + i % row_bytes();
            if (r < kRows && byte / 16 * 16 < kColumns * GetParam().element_size)
                expected[r * pitch() + byte] = box[swizzled_place(i, kSpan[GetParam().swizzle])];
        }
        ASSERT_EQ(device.to_host(), expected);
    }
}

// ---- Columns of pixels (im2col) -----------------------------------------------------------------

struct Window {
    int channels, columns, rows, images;  // of the tensor
    int lower[2], upper[2];               // columns, rows
    unsigned stride[2];
    unsigned pixels;  // of a load
};
constexpr Window kWindows[] = {
    // A filter of 3 columns and 2 rows, padding 1.
    {64, 7, 5, 3, {-1, -1}, {-1, 0}, {1, 1}, 24},
    // Of 1 x 4, padding 2 to the left and 0 above, other strides along columns and rows.
    {72, 11, 6, 2, {-2, 0}, {-1, 0}, {2, 3}, 16},
    // One pixel per image.
    {8, 3, 3, 20, {0, 0}, {-2, -2}, {1, 1}, 17}};

__global__ void load_pixels(const __grid_constant__ CUtensorMap map, int channel, int column, int row,
                            int image, unsigned right, unsigned down, unsigned bytes, unsigned char* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ ptx::MBarrier barrier;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect(&barrier, bytes);
        ptx::tma_load_im2col(memory, &map, channel, column, row, image, static_cast<std::uint16_t>(right),
                             static_cast<std::uint16_t>(down), &barrier);
    }
    __syncthreads();
    ptx::mbarrier_wait(&barrier, 0);
    for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x)
        out[i] = memory[i];
}

CUtensorMap make_map(const Window& w, void* address) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &entry, 12000, cudaEnableDefault,
                                                &found));
    const auto extent = [](int e) { return static_cast<cuuint64_t>(e); };
    const cuuint64_t extents[] = {extent(w.channels), extent(w.columns), extent(w.rows), extent(w.images)};
    const cuuint64_t pitches[] = {2 * extents[0], 2 * extents[0] * extents[1],
                                  2 * extents[0] * extents[1] * extents[2]};
    const cuuint32_t steps[] = {1, w.stride[0], w.stride[1], 1};
    CUtensorMap map{};
    EXPECT_EQ(reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(entry)(
                  &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, address, extents, pitches, w.lower, w.upper, 64,
                  w.pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
}

TEST_F(HopperInstructions, AnIm2colLoadWalksThroughTheBoundingBox) {
    for (const Window& w : kWindows) {
        const auto at = [&](int image, int row, int column, int channel) {
            return static_cast<unsigned>(((image * w.rows + row) * w.columns + column) * w.channels +
                                         channel);
        };
        std::vector<std::uint16_t> images(at(w.images, 0, 0, 0));
        for (std::size_t i = 0; i < images.size(); ++i)
            images[i] = static_cast<std::uint16_t>(i % 65521 + 1);
        DeviceBuffer<std::uint16_t> device{std::span<const std::uint16_t>(images)};
        const unsigned bytes = w.pixels * 128;
        DeviceBuffer<unsigned char> out(bytes);
        const CUtensorMap map = make_map(w, device.data());

        // All pixels of the bounding boxes, in order: column, row, image.
        std::vector<std::array<int, 3>> pixels;
        for (int image = 0; image < w.images + 1; ++image)
            for (int row = w.lower[1]; row <= w.rows - 1 + w.upper[1]; row += static_cast<int>(w.stride[1]))
                for (int column = w.lower[0]; column <= w.columns - 1 + w.upper[0];
                     column += static_cast<int>(w.stride[0]))
                    pixels.push_back({column, row, image});

        for (const unsigned first : {0u, 1u, 5u, 13u})
            for (const int channel : {0, 64, -8})
                for (const auto& [right, down] : {std::array{0, 0}, {2, 0}, {0, 1}, {3, 1}}) {
                    SCOPED_TRACE("pixel " + std::to_string(first) + ", channel " + std::to_string(channel) +
                                 ", " + std::to_string(right) + " to the right, " + std::to_string(down) +
                                 " down");
                    launch(load_pixels, 1, 128, 1, (bytes + 1023) / 1024 * 1024, map, channel,
                           pixels[first][0], pixels[first][1], pixels[first][2], static_cast<unsigned>(right),
                           static_cast<unsigned>(down), bytes, out.data());
                    Bytes expected(bytes);
                    for (unsigned i = 0; i < w.pixels * 64; ++i) {
                        if (first + i / 64 >= pixels.size()) continue;
                        const auto& [x, y, image] = pixels[first + i / 64];
                        const int c = channel + static_cast<int>(i % 64);
                        const bool inside = x + right >= 0 && x + right < w.columns && y + down >= 0 &&
                                            y + down < w.rows && image < w.images && c >= 0 && c < w.channels;
                        if (inside)
                            std::memcpy(&expected[swizzled_place(i * 2, 128)],
                                        &images[at(image, y + down, x + right, c)], 2);
                    }
                    ASSERT_EQ(out.to_host(), expected);
                }
    }
}

__global__ void prefetch_map(const __grid_constant__ CUtensorMap map) {
    ptx::prefetch(&map);
}

TEST_F(HopperInstructions, ATensorMapMayBePrefetched) {
    DeviceBuffer<float> matrix(1024);
    launch(prefetch_map, 1, 1, 1, 0,
           make_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, matrix.data(), 32, 32, 128, 32, 8,
                    CU_TENSOR_MAP_SWIZZLE_NONE));
}

// Each block loads one box for the whole cluster (multicast).
__global__ void share_boxes(const __grid_constant__ CUtensorMap map, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* const boxes = reinterpret_cast<float(*)[256]>(memory);
    __shared__ ptx::MBarrier barrier;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect(&barrier, 4 * sizeof(boxes[0]));
    }
    ptx::cluster_arrive();
    ptx::cluster_wait();
    const unsigned rank = ptx::cluster_rank();
    if (threadIdx.x == 0)
        ptx::tma_load_multicast(boxes[rank], &map, 0, static_cast<int>(rank * 8), &barrier, 0xf);
    ptx::mbarrier_wait(&barrier, 0);
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x)
        out[blockIdx.x * 1024 + i] = boxes[i / 256][i % 256];
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

TEST_F(HopperInstructions, AMulticastReachesAllBlocksOfItsMask) {
    std::vector<float> matrix(1024);
    for (std::size_t i = 0; i < matrix.size(); ++i)
        matrix[i] = static_cast<float>(i + 1);
    DeviceBuffer<float> device{std::span<const float>(matrix)};
    DeviceBuffer<float> out(8 * 1024);
    const CUtensorMap map = make_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, device.data(), 32, 32, 128, 32, 8,
                                     CU_TENSOR_MAP_SWIZZLE_NONE);
    launch(share_boxes, 8, 64, 4, 4096, map, out.data());
    const std::vector<float> got = out.to_host();
    for (unsigned block = 0; block < 8; ++block)
        ASSERT_EQ(std::vector<float>(got.begin() + block * 1024, got.begin() + (block + 1) * 1024), matrix)
            << block;
}

// ---- MMA of warpgroups (wgmma) ------------------------------------------------------------------

template <class T>
using SumOf = std::conditional_t<std::is_integral_v<T>, int, float>;

// Registers: 4 j + 2 h + i of lane 4 g + t in warp w is D(16 w + 8 h + g, 8 j + 2 t + i).
template <class T, bool kBRowMajor, int N>
__global__ void multiply(const unsigned char* image, unsigned bytes, unsigned b_begins,
                         std::uint64_t a_layout, std::uint64_t b_layout, SumOf<T>* c) {
    extern __shared__ __align__(1024) unsigned char memory[];
    for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x)
        memory[i] = image[i];
    ptx::fence_proxy_async();
    __syncthreads();
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const unsigned column = threadIdx.x % 4 * 2;
    SumOf<T> d[N / 2];
    for (int r = 0; r < N / 2; ++r)
        d[r] = c[(row + r / 2 % 2 * 8) * N + column + r / 4 * 8 + r % 2];
    const auto place = [&](unsigned offset) { return ptx::detail::shared_window(memory + offset) >> 4; };
    ptx::wgmma_fence();
    ptx::wgmma<T, kBRowMajor>(d, a_layout | place(0), b_layout | place(b_begins));
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    for (int r = 0; r < N / 2; ++r)
        c[(row + r / 2 % 2 * 8) * N + column + r / 4 * 8 + r % 2] = d[r];
}

struct Layout {
    CUtensorMapSwizzle swizzle;
    bool mn_major;
    unsigned leading;  // bytes
    unsigned stride;

    std::uint64_t bits() const {
        constexpr std::uint64_t kMode[] = {0, 3, 2, 1};
        return kMode[swizzle] << 62 | std::uint64_t{stride / 16} << 32 | std::uint64_t{leading / 16} << 16;
    }
    // The offset of element (mn, k) with `size` bytes. Eight lines of a span lie one below the
    // other; they run along k, or along m or n.
    unsigned place(unsigned mn, unsigned k, unsigned size) const {
        const unsigned span = kSpan[swizzle];
        const unsigned in_line = mn_major ? mn : k;
        const unsigned line = mn_major ? k : mn;
        // Without a swizzle, "leading" is the distance along k and "stride" the distance along m
        // or n. With one, "leading" is the distance from one span to the next in a line, and
        // "stride" the distance from eight lines to the next eight.
        const bool plain = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE;
        const unsigned next_span = plain && mn_major ? stride : leading;
        const unsigned next_lines = plain && mn_major ? leading : stride;
        return swizzled_place(in_line * size / span * next_span + line / 8 * next_lines + line % 8 * span +
                                  in_line * size % span,
                              span);
    }
};

template <class T, bool kBRowMajor, int N>
void expect_products(const Layout& a_layout, const Layout& b_layout) {
    constexpr unsigned kB = 16 * 1024, kBytes = 64 * 1024;
    constexpr unsigned kDepth = 32 / sizeof(T);
    constexpr int kLowest = std::is_integral_v<T> ? -128 : -8;
    using Sum = SumOf<T>;
    Random random(43);
    const auto number = [&] { return random.integer(kLowest, -kLowest - 1); };
    Bytes image(kBytes, 0xff);  // NaN, or -1, between the elements
    std::vector<int> a(64 * kDepth), b(kDepth * N);
    std::vector<Sum> c(64 * N), expected(64 * N);
    const auto put = [&image](unsigned place, int value) {
        const T element(static_cast<float>(value));
        std::memcpy(&image.at(place), &element, sizeof element);
    };
    for (unsigned m = 0; m < 64; ++m) {
        for (unsigned k = 0; k < kDepth; ++k)
            put(a_layout.place(m, k, sizeof(T)), a[m * kDepth + k] = number());
    }
    for (unsigned n = 0; n < N; ++n) {
        for (unsigned k = 0; k < kDepth; ++k)
            put(kB + b_layout.place(n, k, sizeof(T)), b[k * N + n] = number());
    }
    for (unsigned m = 0; m < 64; ++m) {
        for (unsigned n = 0; n < N; ++n) {
            // Sums of integers start at the ends of their range, so half of them wrap.
            // Floating-point sums are small enough to be exact.
            int begin = number();
            if (std::is_integral_v<T>)
                begin = n % 2 == 0 ? std::numeric_limits<int>::max() : std::numeric_limits<int>::min();
            auto sum = static_cast<unsigned>(begin);
            for (unsigned k = 0; k < kDepth; ++k)
                sum += static_cast<unsigned>(a[m * kDepth + k] * b[k * N + n]);
            c[m * N + n] = static_cast<Sum>(begin);
            expected[m * N + n] = static_cast<Sum>(static_cast<int>(sum));
        }
    }
    const DeviceBuffer<unsigned char> device_image{std::span<const unsigned char>(image)};
    DeviceBuffer<Sum> device_c{std::span<const Sum>(c)};
    launch(multiply<T, kBRowMajor, N>, 1, 128, 1, kBytes, device_image.data(), kBytes, kB, a_layout.bits(),
           b_layout.bits(), device_c.data());
    ASSERT_EQ(device_c.to_host(), expected)
        << "A swizzled " << a_layout.swizzle << ", B swizzled " << b_layout.swizzle << ", N " << N
        << (kBRowMajor ? ", row-major B" : "");
}

constexpr Layout kKMajor[] = {{CU_TENSOR_MAP_SWIZZLE_128B, false, 16, 1024},
                              {CU_TENSOR_MAP_SWIZZLE_64B, false, 16, 512},
                              {CU_TENSOR_MAP_SWIZZLE_32B, false, 16, 256},
                              {CU_TENSOR_MAP_SWIZZLE_NONE, false, 128, 256},
                              {CU_TENSOR_MAP_SWIZZLE_NONE, false, 8192, 128}};
constexpr Layout kMnMajor[] = {{CU_TENSOR_MAP_SWIZZLE_128B, true, 8192, 1024},
                               {CU_TENSOR_MAP_SWIZZLE_64B, true, 1024, 512},
                               {CU_TENSOR_MAP_SWIZZLE_32B, true, 512, 256},
                               {CU_TENSOR_MAP_SWIZZLE_NONE, true, 128, 256},
                               {CU_TENSOR_MAP_SWIZZLE_NONE, true, 8192, 128}};

TEST_F(HopperInstructions, ProductsFindTheirOperandsInEveryLayout) {
    for (const Layout& a : kKMajor) {
        expect_products<__half, false, 128>(a, kKMajor[0]);
        expect_products<__half, true, 128>(a, kMnMajor[0]);
    }
    for (const Layout& b : kKMajor)
        expect_products<__half, false, 256>(kKMajor[0], b);
    for (const Layout& b : kMnMajor)
        expect_products<__half, true, 256>(kKMajor[0], b);
    expect_products<__nv_bfloat16, true, 256>(kKMajor[0], kMnMajor[0]);
    expect_products<__nv_bfloat16, false, 128>(kKMajor[1], kKMajor[2]);
    for (const Layout& layout : kKMajor) {
        expect_products<std::int8_t, false, 128>(layout, kKMajor[0]);
        expect_products<std::int8_t, false, 256>(kKMajor[0], layout);
    }
    expect_products<__nv_fp8_e4m3, false, 128>(kKMajor[0], kKMajor[0]);
    expect_products<__nv_fp8_e4m3, false, 256>(kKMajor[2], kKMajor[0]);
    expect_products<__nv_fp8_e5m2, false, 128>(kKMajor[0], kKMajor[3]);
    expect_products<__nv_fp8_e5m2, false, 256>(kKMajor[0], kKMajor[0]);
}

// A in registers: each holds four consecutive bytes of a row, register 2 j + h those of row 8 h +
// g.
template <class T, bool kBRowMajor, int N>
__global__ void multiply_registers(const unsigned* a, const unsigned char* image, unsigned bytes,
                                   std::uint64_t b_layout, float* c) {
    extern __shared__ __align__(1024) unsigned char memory[];
    for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x)
        memory[i] = image[i];
    ptx::fence_proxy_async();
    __syncthreads();
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    unsigned left[4];
    for (unsigned r = 0; r < 4; ++r)
        left[r] = a[(row + r % 2 * 8) * 8 + r / 2 * 4 + threadIdx.x % 4];
    float d[N / 2];
    for (float& sum : d)
        sum = 1;
    ptx::wgmma_fence();
    ptx::wgmma<T, kBRowMajor>(d, left, b_layout | ptx::detail::shared_window(memory) >> 4);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    for (int r = 0; r < N / 2; ++r)
        c[(row + r / 2 % 2 * 8) * N + threadIdx.x % 4 * 2 + r / 4 * 8 + r % 2] = d[r];
}

template <class T, bool kBRowMajor, int N>
void expect_products_of_registers(const Layout& b_layout) {
    constexpr unsigned kDepth = 32 / sizeof(T);
    Random random(44);
    Bytes image(32 * 1024, 0xff);
    std::vector<T> a(64 * kDepth);
    std::vector<float> expected(64 * N, 1.0f);
    for (T& element : a)
        element = T(static_cast<float>(random.integer(-8, 7)));
    for (unsigned n = 0; n < N; ++n) {
        for (unsigned k = 0; k < kDepth; ++k) {
            const T element(static_cast<float>(random.integer(-8, 7)));
            std::memcpy(&image.at(b_layout.place(n, k, sizeof(T))), &element, sizeof element);
            for (unsigned m = 0; m < 64; ++m)
                expected[m * N + n] += static_cast<float>(a[m * kDepth + k]) * static_cast<float>(element);
        }
    }
    std::vector<unsigned> words(64 * 8);
    std::memcpy(words.data(), a.data(), 64 * 32);
    const DeviceBuffer<unsigned> device_a{std::span<const unsigned>(words)};
    const DeviceBuffer<unsigned char> device_image{std::span<const unsigned char>(image)};
    DeviceBuffer<float> c(64 * N);
    launch(multiply_registers<T, kBRowMajor, N>, 1, 128, 1, 32 * 1024, device_a.data(), device_image.data(),
           32 * 1024, b_layout.bits(), c.data());
    ASSERT_EQ(c.to_host(), expected) << sizeof(T) << " bytes, N " << N;
}

TEST_F(HopperInstructions, ProductsTakeTheirLeftOperandFromRegisters) {
    expect_products_of_registers<__half, true, 128>(kMnMajor[0]);
    expect_products_of_registers<__nv_bfloat16, false, 64>(kKMajor[0]);
    expect_products_of_registers<__nv_fp8_e4m3, false, 64>(kKMajor[0]);
    expect_products_of_registers<__nv_fp8_e4m3, false, 128>(kKMajor[0]);
}

// ---- Matrices to shared memory ------------------------------------------------------------------

__global__ void store_matrices(std::uint16_t* out) {
    __shared__ __align__(16) std::uint16_t tile[32 * 8];
    const unsigned lane = threadIdx.x;
    unsigned r[4];
    for (unsigned m = 0; m < 4; ++m) {
        const unsigned low = m * 64 + lane / 4 * 8 + lane % 4 * 2;
        r[m] = low | (low + 1) << 16;
    }
    ptx::stmatrix_x4(&tile[lane * 8], r);
    __syncwarp();
    for (unsigned i = 0; i < 8; ++i)
        out[lane * 8 + i] = tile[lane * 8 + i];
}

TEST_F(HopperInstructions, MatricesAreStoredRowByRow) {
    DeviceBuffer<std::uint16_t> out(256);
    launch(store_matrices, 1, 32, 1, 0, out.data());
    const std::vector<std::uint16_t> got = out.to_host();
    for (unsigned i = 0; i < 256; ++i)
        EXPECT_EQ(got[i], i);
}

__global__ void store_transposed(std::uint16_t* out) {
    __shared__ __align__(16) std::uint16_t tile[256];
    const unsigned lane = threadIdx.x;
    unsigned r[4];
    for (unsigned m = 0; m < 4; ++m) {
        // Element (i, j) of matrix m is 64 m + 8 j + i.
        const unsigned low = m * 64 + lane % 4 * 2 * 8 + lane / 4;
        r[m] = low | (low + 8) << 16;
    }
    ptx::stmatrix_x4_trans(&tile[lane * 8], r);
    __syncwarp();
    for (unsigned i = 0; i < 8; ++i)
        out[lane * 8 + i] = tile[lane * 8 + i];
}

TEST_F(HopperInstructions, MatricesAreStoredColumnByColumn) {
    DeviceBuffer<std::uint16_t> out(256);
    launch(store_transposed, 1, 32, 1, 0, out.data());
    const std::vector<std::uint16_t> got = out.to_host();
    for (unsigned i = 0; i < 256; ++i)
        EXPECT_EQ(got[i], i);
}

// ---- Sums in global memory ----------------------------------------------------------------------

// Each block adds 0, 1, 2, ... times its number plus 1 to `sums`.
__global__ void add_in_bulk(float* sums) {
    __shared__ __align__(16) float values[64];
    values[threadIdx.x] = static_cast<float>(threadIdx.x * (blockIdx.x + 1));
    ptx::fence_proxy_async();
    __syncthreads();
    if (threadIdx.x > 0) return;
    ptx::bulk_reduce_add(sums, values, sizeof(values) / 2);
    ptx::tma_store_commit();
    ptx::bulk_reduce_add(sums + 32, values + 32, sizeof(values) / 2);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
}

TEST_F(HopperInstructions, BlocksAddToTheSameSumsInBulk) {
    DeviceBuffer<float> sums(std::span<const float>(std::vector<float>(64, 0.5f)));
    launch(add_in_bulk, 4, 64, 1, 0, sums.data());
    const std::vector<float> got = sums.to_host();
    for (unsigned i = 0; i < 64; ++i)
        EXPECT_EQ(got[i], 0.5f + static_cast<float>(10 * i));
}

}  // namespace
