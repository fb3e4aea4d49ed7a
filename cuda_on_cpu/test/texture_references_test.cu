// Texture references, as programs for CUDA 11 and older have them: fetches of each form against
// plain loops, and what is reported when they are used wrongly. Filtering and addressing in all
// their combinations are tested with texture objects, in textures_test.cu.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

texture<float> floats;
static texture<float4, 1, cudaReadModeElementType> quads;
texture<unsigned char, cudaTextureType2D, cudaReadModeNormalizedFloat> grey;
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
texture<float, 2> image, second;
texture<float, 2> filtered(1, cudaFilterModeLinear, cudaAddressModeWrap);
texture<float, 1> row_texture;
texture<short, 3> volume;
texture<int, cudaTextureType2DLayered> layers;
texture<float> never_bound;
namespace scoped {
::texture<int2, 1> pairs;
}

namespace {

template <class T>
std::vector<T> counted(std::size_t n, int factor = 7) {
    std::vector<T> values(n);
    for (std::size_t i = 0; i < n; ++i)
        values[i] = static_cast<T>((static_cast<int>(i) * factor) % 251);
    return values;
}

// Element (x, y, z) is different from its neighbours in each direction.
__global__ void fetch_floats(float* out, int n, int first) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) out[i] = tex1Dfetch(floats, first + i);
}
__global__ void fetch_quads(float4* out, int n) {
    const int i = static_cast<int>(threadIdx.x);
    if (i < n) out[i] = tex1Dfetch(quads, i);
}
__global__ void fetch_pairs(int2* out) {
    out[threadIdx.x] = tex1Dfetch(scoped::pairs, static_cast<int>(threadIdx.x));
}
__global__ void fetch_image(float* out, int width, float by) {
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(threadIdx.y);
    out[y * width + x] = tex2D(image, static_cast<float>(x) + by, static_cast<float>(y) + by);
}
__global__ void fetch_second(float* out) {
    *out = tex2D(second, 1.5F, 0.5F);
}
__global__ void fetch_grey(float* out, int width) {
    out[threadIdx.y * width + threadIdx.x] =
        tex2D(grey, static_cast<float>(threadIdx.x), static_cast<float>(threadIdx.y));
}
__global__ void fetch_colours(float4* out, int width) {
    out[threadIdx.y * width + threadIdx.x] =
        tex2D(colours, static_cast<float>(threadIdx.x), static_cast<float>(threadIdx.y));
}
__global__ void fetch_filtered(float* out, int n) {
    out[threadIdx.x] = tex2D(filtered, static_cast<float>(threadIdx.x) / static_cast<float>(n), 0.5F);
}
__global__ void fetch_row(float* out) {
    out[threadIdx.x] = tex1D(row_texture, static_cast<float>(threadIdx.x) - 2);
}
__global__ void fetch_volume(short* out, int width, int height) {
    out[(threadIdx.z * height + threadIdx.y) * width + threadIdx.x] =
        tex3D(volume, static_cast<float>(threadIdx.x), static_cast<float>(threadIdx.y),
              static_cast<float>(threadIdx.z));
}
__global__ void fetch_layers(int* out, int width, int height) {
    out[(threadIdx.z * height + threadIdx.y) * width + threadIdx.x] =
        tex2DLayered(layers, static_cast<float>(threadIdx.x), static_cast<float>(threadIdx.y),
                     static_cast<int>(threadIdx.z));
}

TEST(TextureReferences, OfLinearMemory) {
    constexpr int kN = 301;
    const auto values = counted<float>(kN);
    DeviceVector<float> memory(values);
    DeviceVector<float> out(std::vector<float>(kN + 3, NAN));
    size_t offset = 99;
    ASSERT_EQ(cudaBindTexture(&offset, floats, memory.data(), kN * sizeof(float)), cudaSuccess);
    EXPECT_EQ(offset, 0U);
    fetch_floats<<<2, 160>>>(out.data(), kN + 2, -1);
    const auto got = out.to_host();
    EXPECT_EQ(got[0], 0) << "outside";
    EXPECT_EQ(got[kN + 1], 0) << "outside";
    EXPECT_TRUE(std::isnan(got[kN + 2]));
    EXPECT_TRUE(std::equal(values.begin(), values.end(), got.begin() + 1));
    EXPECT_EQ(cudaUnbindTexture(floats), cudaSuccess);
}

TEST(TextureReferences, WithoutASizeAreOfTheWholeAllocation) {
    const auto values = counted<float>(64);
    DeviceVector<float> memory(values), out(66);
    testing::internal::CaptureStderr();
    ASSERT_EQ(cudaBindTexture(0, floats, memory.data()), cudaSuccess);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    fetch_floats<<<1, 96>>>(out.data(), 66, 0);
    auto expected = values;
    expected.resize(66, 0);
    EXPECT_EQ(out.to_host(), expected);
}

TEST(TextureReferences, AnAddressBetweenIsBoundWithAnOffset) {
    const auto values = counted<float>(400);
    DeviceVector<float> memory(values), out(40);
    size_t offset = 0;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    ASSERT_EQ(cudaBindTexture(&offset, floats, memory.data() + 131, format, 200 * sizeof(float)),
              cudaSuccess);
    EXPECT_EQ(offset, 3 * sizeof(float)) << "131 floats are 524 bytes, 12 behind 512";
    fetch_floats<<<1, 40>>>(out.data(), 40, static_cast<int>(offset / sizeof(float)));
    const auto got = out.to_host();
    EXPECT_TRUE(std::equal(got.begin(), got.end(), values.begin() + 131));
    size_t again = 0;
    EXPECT_EQ(cudaGetTextureAlignmentOffset(&again, floats), cudaSuccess);
    EXPECT_EQ(again, offset);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaBindTexture(nullptr, floats, memory.data() + 131, 64), cudaErrorInvalidValue);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"cudaBindTexture:", "12 bytes behind a multiple", "offset is null", "'floats'"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(TextureReferences, OfVectorsAndInANamespace) {
    std::vector<float4> values(9);
    std::vector<int2> pairs(9);
    for (int i = 0; i < 9; ++i) {
        values[i] = make_float4(i, 10 + i, 20 + i, -i);
        pairs[i] = make_int2(-i, i * i);
    }
    DeviceVector<float4> memory(values), out(9);
    DeviceVector<int2> more(pairs), out_pairs(9);
    ASSERT_EQ(cudaBindTexture(0, quads, memory.data(), 9 * sizeof(float4)), cudaSuccess);
    ASSERT_EQ(cudaBindTexture(0, scoped::pairs, more.data(), 9 * sizeof(int2)), cudaSuccess);
    fetch_quads<<<1, 32>>>(out.data(), 9);
    fetch_pairs<<<1, 9>>>(out_pairs.data());
    for (int i = 0; i < 9; ++i) {
        const float4 got = out.to_host()[i];
        EXPECT_EQ(got.x, values[i].x);
        EXPECT_EQ(got.y, values[i].y);
        EXPECT_EQ(got.z, values[i].z);
        EXPECT_EQ(got.w, values[i].w);
        EXPECT_EQ(out_pairs.to_host()[i].x, pairs[i].x);
        EXPECT_EQ(out_pairs.to_host()[i].y, pairs[i].y);
    }
}

TEST(TextureReferences, OfRowsWithAPitch) {
    constexpr int kWidth = 13, kHeight = 5;
    const auto values = counted<float>(kWidth * kHeight, 11);
    float* memory = nullptr;
    size_t pitch = 0;
    ASSERT_EQ(cudaMallocPitch(&memory, &pitch, kWidth * sizeof(float), kHeight), cudaSuccess);
    ASSERT_EQ(cudaMemcpy2D(memory, pitch, values.data(), kWidth * sizeof(float), kWidth * sizeof(float),
                           kHeight, cudaMemcpyHostToDevice),
              cudaSuccess);
    DeviceVector<float> out(std::vector<float>(kWidth * kHeight, NAN));
    size_t offset = 1;
    image.addressMode[0] = cudaAddressModeClamp;
    image.addressMode[1] = cudaAddressModeBorder;
    ASSERT_EQ(cudaBindTexture2D(&offset, image, memory, image.channelDesc, kWidth, kHeight, pitch),
              cudaSuccess);
    EXPECT_EQ(offset, 0U);
    fetch_image<<<1, dim3(kWidth, kHeight)>>>(out.data(), kWidth, 0.5F);
    EXPECT_EQ(out.to_host(), values);
    // One element further in both directions: the columns clamp, the rows have a border of zeros.
    fetch_image<<<1, dim3(kWidth, kHeight)>>>(out.data(), kWidth, 1.25F);
    const auto got = out.to_host();
    for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
            const float expected =
                y + 1 < kHeight ? values[(y + 1) * kWidth + std::min(x + 1, kWidth - 1)] : 0;
            EXPECT_EQ(got[y * kWidth + x], expected) << x << ", " << y;
        }
    }
    EXPECT_EQ(cudaUnbindTexture(image), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

template <class T>
cudaArray_t array_of(const std::vector<T>& values, cudaExtent extent, unsigned flags = 0) {
    cudaArray_t array = nullptr;
    const auto format = cudaCreateChannelDesc<T>();
    EXPECT_EQ(cudaMalloc3DArray(&array, &format, extent, flags), cudaSuccess);
    cudaMemcpy3DParms copy{};
    const size_t rows = std::max<size_t>(extent.height, 1);
    copy.srcPtr =
        make_cudaPitchedPtr(const_cast<T*>(values.data()), extent.width * sizeof(T), extent.width, rows);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(extent.width, rows, std::max<size_t>(extent.depth, 1));
    copy.kind = cudaMemcpyHostToDevice;
    EXPECT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
    return array;
}

TEST(TextureReferences, OfArraysAreNormalised) {
    constexpr int kWidth = 6, kHeight = 3;
    const auto values = counted<unsigned char>(kWidth * kHeight, 83);
    cudaArray_t array = array_of(values, make_cudaExtent(kWidth, kHeight, 0));
    DeviceVector<float> out(kWidth * kHeight);
    ASSERT_EQ(cudaBindTextureToArray(grey, array), cudaSuccess);
    fetch_grey<<<1, dim3(kWidth, kHeight)>>>(out.data(), kWidth);
    const auto got = out.to_host();
    for (int i = 0; i < kWidth * kHeight; ++i)
        EXPECT_EQ(got[i], static_cast<float>(values[i]) / 255.0F);
    EXPECT_EQ(cudaFreeArray(array), cudaSuccess);

    std::vector<uchar4> pixels(kWidth * kHeight);
    for (int i = 0; i < kWidth * kHeight; ++i)
        pixels[i] = make_uchar4(i, 255 - i, 3 * i, 128);
    cudaArray_t four = array_of(pixels, make_cudaExtent(kWidth, kHeight, 0));
    cudaChannelFormatDesc format;
    ASSERT_EQ(cudaGetChannelDesc(&format, four), cudaSuccess);
    ASSERT_EQ(cudaBindTextureToArray(colours, four, format), cudaSuccess);
    DeviceVector<float4> rgba(kWidth * kHeight);
    fetch_colours<<<1, dim3(kWidth, kHeight)>>>(rgba.data(), kWidth);
    for (int i = 0; i < kWidth * kHeight; ++i) {
        EXPECT_EQ(rgba.to_host()[i].y, static_cast<float>(pixels[i].y) / 255.0F);
        EXPECT_EQ(rgba.to_host()[i].z, static_cast<float>(pixels[i].z) / 255.0F);
    }
    EXPECT_EQ(cudaFreeArray(four), cudaSuccess);
}

// The attributes of the constructor: normalised coordinates, a linear filter, and wrapping.
TEST(TextureReferences, OfAConstructorWithAttributes) {
    constexpr int kN = 8;
    const auto values = counted<float>(kN, 37);
    cudaArray_t array = array_of(values, make_cudaExtent(kN, 1, 0));
    DeviceVector<float> out(2 * kN);
    ASSERT_EQ(cudaBindTextureToArray(filtered, array), cudaSuccess);
    fetch_filtered<<<1, 2 * kN>>>(out.data(), kN);
    const auto got = out.to_host();
    for (int i = 0; i < 2 * kN; ++i)
        EXPECT_EQ(got[i], (values[(i + kN - 1) % kN] + values[i % kN]) / 2) << i;
    EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST(TextureReferences, OfOneAndThreeDimensionsAndOfLayers) {
    const auto line = counted<float>(5);
    cudaArray_t one = array_of(line, make_cudaExtent(5, 0, 0));
    DeviceVector<float> out(9);
    ASSERT_EQ(cudaBindTextureToArray(row_texture, one), cudaSuccess);
    fetch_row<<<1, 9>>>(out.data());
    for (int i = 0; i < 9; ++i)
        EXPECT_EQ(out.to_host()[i], line[std::clamp(i - 2, 0, 4)]);

    constexpr int kWidth = 4, kHeight = 3, kDepth = 5;
    const auto values = counted<short>(kWidth * kHeight * kDepth);
    cudaArray_t three = array_of(values, make_cudaExtent(kWidth, kHeight, kDepth));
    DeviceVector<short> out3(values.size());
    ASSERT_EQ(cudaBindTextureToArray(volume, three), cudaSuccess);
    fetch_volume<<<1, dim3(kWidth, kHeight, kDepth)>>>(out3.data(), kWidth, kHeight);
    EXPECT_EQ(out3.to_host(), values);

    const auto integers = counted<int>(kWidth * kHeight * kDepth, 5);
    cudaArray_t layered = array_of(integers, make_cudaExtent(kWidth, kHeight, kDepth), cudaArrayLayered);
    DeviceVector<int> out_layers(integers.size());
    ASSERT_EQ(cudaBindTextureToArray(layers, layered), cudaSuccess);
    fetch_layers<<<1, dim3(kWidth, kHeight, kDepth)>>>(out_layers.data(), kWidth, kHeight);
    EXPECT_EQ(out_layers.to_host(), integers);
    for (cudaArray_t array : {one, three, layered})
        EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

// The functions of C, and a reference that is found by its address.
TEST(TextureReferences, ByPointer) {
    DeviceVector<float> memory(counted<float>(8)), out(8);
    const textureReference* found = nullptr;
    ASSERT_EQ(cudaGetTextureReference(&found, &floats), cudaSuccess);
    EXPECT_EQ(found, &floats);
    EXPECT_EQ(found->channelDesc.x, 32);
    EXPECT_EQ(found->normalized, 0);
    ASSERT_EQ(cudaBindTexture(nullptr, found, memory.data(), &found->channelDesc, 8 * sizeof(float)),
              cudaSuccess);
    fetch_floats<<<1, 8>>>(out.data(), 8, 0);
    EXPECT_EQ(out.to_host(), counted<float>(8));
    EXPECT_EQ(cudaUnbindTexture(found), cudaSuccess);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaGetTextureReference(&found, "floats"), cudaErrorInvalidTexture);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(), {"is no texture reference", "&name"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidTexture);
}

// A launch reads what is bound when it is issued, also where it runs later.
TEST(TextureReferences, AreBoundForLaunchesBeforeTheNextBinding) {
    const auto first = counted<float>(16, 3), other = counted<float>(16, 5);
    DeviceVector<float> a(first), b(other), out_a(16), out_b(16);
    cudaStream_t stream;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaBindTexture(0, floats, a.data(), 64), cudaSuccess);
    fetch_floats<<<1, 16, 0, stream>>>(out_a.data(), 16, 0);
    ASSERT_EQ(cudaBindTexture(0, floats, b.data(), 64), cudaSuccess);
    fetch_floats<<<1, 16, 0, stream>>>(out_b.data(), 16, 0);
    ASSERT_EQ(cudaUnbindTexture(floats), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(out_a.to_host(), first);
    EXPECT_EQ(out_b.to_host(), other);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

constexpr int kUnboundLine = __LINE__ + 2;
__global__ void fetch_unbound(float* out) {
    *out = tex1Dfetch(never_bound, 0);
}

TEST(TextureReferenceReports, OfOneThatIsNotBound) {
    DeviceVector<float> out(1);
    const std::string report =
        report_of(cudaErrorInvalidTexture, [&] { fetch_unbound<<<1, 1>>>(out.data()); });
    EXPECT_TRUE(mentions(report, {"tex1Dfetch: the texture reference 'never_bound' is not bound",
                                  at_line(kUnboundLine), "cudaBindTexture"}));
}

TEST(TextureReferenceReports, OfOneThatIsUnbound) {
    DeviceVector<float> memory(4), out(1);
    ASSERT_EQ(cudaBindTexture(0, floats, memory.data(), 16), cudaSuccess);
    ASSERT_EQ(cudaUnbindTexture(floats), cudaSuccess);
    EXPECT_TRUE(
        mentions(report_of(cudaErrorInvalidTexture, [&] { fetch_floats<<<1, 1>>>(out.data(), 1, 0); }),
                 {"'floats' is not bound"}));
    size_t offset = 0;
    EXPECT_EQ(cudaGetTextureAlignmentOffset(&offset, floats), cudaErrorInvalidTextureBinding);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidTextureBinding);
}

// The second of two names of one declaration.
TEST(TextureReferenceReports, OfLinearMemoryReadAsAPlane) {
    DeviceVector<float> memory(256), out(1);
    EXPECT_TRUE(mentions(report_of(cudaErrorInvalidTexture, [&] { fetch_second<<<1, 1>>>(out.data()); }),
                         {"tex2D: the texture reference 'second'"}));
    const textureReference* reference = &second;
    ASSERT_EQ(cudaBindTexture(0, reference, memory.data(), &second.channelDesc, 1024), cudaSuccess);
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [&] { fetch_second<<<1, 1>>>(out.data()); }),
                         {"tex2D: the texture is linear memory, which tex1Dfetch reads"}));
}

TEST(TextureReferenceReports, OfAHostPointerAndOfOtherElements) {
    const std::vector<float> host(16);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaBindTexture(0, floats, host.data(), 64), cudaErrorInvalidValue);
    EXPECT_TRUE(
        mentions(testing::internal::GetCapturedStderr(),
                 {"not device memory", "cudaBindTexture: the texture reference 'floats' is not bound"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    cudaArray_t array = array_of(std::vector<int>(4), make_cudaExtent(2, 2, 0));
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaBindTextureToArray(image, array), cudaSuccess);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"cudaBindTextureToArray: elements of 32, 0, 0, 0 bits (kind 0) are bound to the "
                          "texture reference 'image'"}));
    EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
    filtered.filterMode = cudaFilterModePoint;
}

// --- What else programs of that time do ------------------------------------------------------------

// A histogram without atomics: the lane whose tag is in the counter has counted, the others of its
// warp try again. A thread that is stopped between its store and its look would count twice.
__device__ int counted_with_tag(volatile unsigned* counter, unsigned tag) {
    unsigned count;
    do {
        count = *counter & 0x07FFFFFFU;
        count = tag | (count + 1);
        *counter = count;
    } while (*counter != count);
    return static_cast<int>(count & 0x07FFFFFFU) - 1;
}
__global__ void count_with_tags(unsigned* out, int each) {
    __shared__ volatile unsigned counters[4];
    if (threadIdx.x < 4) counters[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < each; ++i)
        counted_with_tag(counters + (static_cast<int>(threadIdx.x) + i) % 3, threadIdx.x << 27);
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = counters[threadIdx.x] & 0x07FFFFFFU;
}

TEST(OldPrograms, CountWithTagsInTheCounter) {
    constexpr int kEach = 9000;
    DeviceVector<unsigned> out(4);
    count_with_tags<<<1, 32>>>(out.data(), kEach);
    EXPECT_EQ(out.to_host(), (std::vector<unsigned>{32 * kEach / 3, 32 * kEach / 3, 32 * kEach / 3, 0}));
}

}  // namespace
