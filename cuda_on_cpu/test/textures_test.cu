// Textures, surfaces and arrays. What a fetch gives is compared with the formulas of the CUDA C++
// Programming Guide, appendix "Texture Fetching", computed in double precision. A GPU rounds the
// weights of its linear filter to 8 bits behind the point: the tolerance is one such unit for each
// filtered coordinate, times the largest difference between elements.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

constexpr double kWeightUnit = 1.0 / 256;

// --- The reference -------------------------------------------------------------------------------

struct Sampling {
    cudaTextureAddressMode mode;
    cudaTextureFilterMode filter;
    bool normalized;
};

// The index that is read in the place of `i`; -1 is the border.
int addressed(const Sampling& s, int i, int size) {
    if (i >= 0 && i < size) return i;
    switch (s.mode) {
        case cudaAddressModeWrap:
            return ((i % size) + size) % size;
        case cudaAddressModeMirror: {
            const int rest = ((i % (2 * size)) + 2 * size) % (2 * size);
            return rest < size ? rest : 2 * size - 1 - rest;
        }
        case cudaAddressModeBorder:
            return -1;
        default:
            return std::clamp(i, 0, size - 1);
    }
}

// One coordinate: up to two indices and their weights.
struct Taps {
    int index[2];
    double weight[2];
};

Taps taps(const Sampling& s, double coordinate, int size) {
    const double x = s.normalized ? coordinate * size : coordinate;
    if (s.filter == cudaFilterModePoint)
        return {{addressed(s, static_cast<int>(std::floor(x)), size), -1}, {1, 0}};
    const double below = std::floor(x - 0.5);
    const int i = static_cast<int>(below);
    const double weight = x - 0.5 - below;
    return {{addressed(s, i, size), addressed(s, i + 1, size)}, {1 - weight, weight}};
}

struct Volume {
    int width, height, depth;
    std::vector<float> values;
};

double reference(const Volume& v, const Sampling& s, const float3& at, int dimensions) {
    const Taps x = taps(s, at.x, v.width);
    const Taps y = dimensions > 1 ? taps(s, at.y, v.height) : Taps{{0, 0}, {1, 0}};
    const Taps z = dimensions > 2 ? taps(s, at.z, v.depth) : Taps{{0, 0}, {1, 0}};
    double sum = 0;
    for (int c = 0; c < 2; ++c) {
        for (int b = 0; b < 2; ++b) {
            for (int a = 0; a < 2; ++a) {
                const double weight = x.weight[a] * y.weight[b] * z.weight[c];
                if (weight == 0 || x.index[a] < 0 || y.index[b] < 0 || z.index[c] < 0) continue;
                sum += weight * v.values[static_cast<std::size_t>(
                                    (z.index[c] * v.height + y.index[b]) * v.width + x.index[a])];
            }
        }
    }
    return sum;
}

// --- Making textures -----------------------------------------------------------------------------

cudaTextureDesc description_of(const Sampling& s, cudaTextureReadMode read = cudaReadModeElementType) {
    cudaTextureDesc description{};
    for (auto& mode : description.addressMode)
        mode = s.mode;
    description.filterMode = s.filter;
    description.readMode = read;
    description.normalizedCoords = s.normalized;
    return description;
}

constexpr Sampling kPoint{cudaAddressModeClamp, cudaFilterModePoint, false};
constexpr Sampling kLinear{cudaAddressModeClamp, cudaFilterModeLinear, false};

// An array with the given elements.
class Array {
  public:
    template <class T>
    Array(const std::vector<T>& elements, const cudaChannelFormatDesc& format, cudaExtent extent,
          unsigned flags = cudaArrayDefault) {
        EXPECT_EQ(cudaMalloc3DArray(&array_, &format, extent, flags), cudaSuccess);
        cudaMemcpy3DParms copy{};
        const std::size_t height = std::max<std::size_t>(1, extent.height);
        copy.srcPtr = make_cudaPitchedPtr(const_cast<T*>(elements.data()), extent.width * sizeof(T),
                                          extent.width, height);
        copy.dstArray = array_;
        copy.extent = make_cudaExtent(extent.width, height, std::max<std::size_t>(1, extent.depth));
        copy.kind = cudaMemcpyHostToDevice;
        EXPECT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
    }
    ~Array() { EXPECT_EQ(cudaFreeArray(array_), cudaSuccess); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    cudaArray_t get() const { return array_; }
    cudaResourceDesc resource() const {
        cudaResourceDesc resource{};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array_;
        return resource;
    }

  private:
    cudaArray_t array_ = nullptr;
};

class Texture {
  public:
    Texture(const cudaResourceDesc& resource, const cudaTextureDesc& description) {
        EXPECT_EQ(cudaCreateTextureObject(&object_, &resource, &description, nullptr), cudaSuccess);
    }
    ~Texture() { EXPECT_EQ(cudaDestroyTextureObject(object_), cudaSuccess); }
    Texture(const Texture&) = delete;
    Texture& operator=(const Texture&) = delete;
    operator cudaTextureObject_t() const { return object_; }

  private:
    cudaTextureObject_t object_ = 0;
};

class Surface {
  public:
    explicit Surface(const Array& array) {
        const cudaResourceDesc resource = array.resource();
        EXPECT_EQ(cudaCreateSurfaceObject(&object_, &resource), cudaSuccess);
    }
    ~Surface() { EXPECT_EQ(cudaDestroySurfaceObject(object_), cudaSuccess); }
    Surface(const Surface&) = delete;
    Surface& operator=(const Surface&) = delete;
    operator cudaSurfaceObject_t() const { return object_; }

  private:
    cudaSurfaceObject_t object_ = 0;
};

cudaResourceDesc linear_memory(void* pointer, std::size_t bytes, const cudaChannelFormatDesc& format) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = pointer;
    resource.res.linear.sizeInBytes = bytes;
    resource.res.linear.desc = format;
    return resource;
}

template <class Function, class Out>
__global__ void evaluate(Function function, Out* results, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) results[i] = function(i);
}

// function(0), function(1), ... function(count - 1), computed on the device
template <class Out, class Function>
std::vector<Out> evaluated(Function function, int count) {
    DeviceVector<Out> results(static_cast<std::size_t>(count));
    evaluate<<<static_cast<unsigned>(count + 127) / 128, 128>>>(function, results.data(), count);
    return results.to_host();
}

struct Fetch {
    cudaTextureObject_t texture;
    const float3* points;
    int dimensions;

    __device__ float operator()(int i) const {
        const float3 p = points[i];
        return dimensions == 1   ? tex1D<float>(texture, p.x)
               : dimensions == 2 ? tex2D<float>(texture, p.x, p.y)
                                 : tex3D<float>(texture, p.x, p.y, p.z);
    }
};

// --- Addressing and filtering --------------------------------------------------------------------

// From 1.5 times the size before the texture to 1.5 times behind it. Steps of 1/8, which a GPU's
// weights have exactly, and which begin at 1/16, so that no point lies between two elements; or
// random ones for a linear filter.
std::vector<float> coordinates(int size, bool normalized, bool random, unsigned seed) {
    std::vector<float> all;
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> anywhere(-1.5F * static_cast<float>(size),
                                                   2.5F * static_cast<float>(size));
    for (int i = 0; i < 4 * 8 * size; ++i) {
        const float regular = -1.5F * static_cast<float>(size) + static_cast<float>(i) / 8 + 1.0F / 16;
        const float x = random ? anywhere(generator) : regular;
        all.push_back(normalized ? x / static_cast<float>(size) : x);
    }
    return all;
}

std::vector<float3> points(const Volume& v, bool normalized, bool random) {
    const std::vector<float> x = coordinates(v.width, normalized, random, 1);
    const std::vector<float> y = coordinates(v.height, normalized, random, 2);
    const std::vector<float> z = coordinates(v.depth, normalized, random, 3);
    std::vector<float3> all;
    for (std::size_t i = 0; i < 2000; ++i)  // other periods, so that all kinds of corners come up
        all.push_back({x[i % x.size()], y[(i * 7) % y.size()], z[(i * 13) % z.size()]});
    return all;
}

struct Case {
    int dimensions;
    Sampling sampling;
};

const char* const kModes[] = {"wrap", "clamp", "mirror", "border"};

// Where coordinates are exact. In three dimensions an H200 rounds each of the eight weights to 8
// bits.
double exact_tolerance(int dimensions) {
#ifdef CUDA_ON_CPU
    static_cast<void>(dimensions);
    return 1e-5;
#else
    return dimensions == 3 ? 8 * kWeightUnit / 2 : 1e-5;
#endif
}

class Sampled : public testing::TestWithParam<Case> {};

TEST_P(Sampled, AsTheProgrammingGuideSays) {
    const auto [dimensions, sampling] = GetParam();
#ifndef CUDA_ON_CPU
    if (dimensions == 1 && sampling.filter == cudaFilterModeLinear && sampling.mode == cudaAddressModeBorder)
        GTEST_SKIP()
            << "an H200 halves what a linear filter takes beyond the ends of a 1D array with borders; "
               "the programming guide does not say so";
#endif
    // Powers of two: normalised coordinates are exact. Other sizes for random points.
    for (const bool random : {false, true}) {
        if (random && sampling.filter == cudaFilterModePoint) continue;
        Volume v{random ? 13 : 16,
                 dimensions < 2 ? 1
                 : random       ? 7
                                : 8,
                 dimensions < 3 ? 1
                 : random       ? 5
                                : 4,
                 {}};
        std::mt19937 generator(7);
        std::uniform_real_distribution<float> value(-1, 1);
        for (int i = 0; i < v.width * v.height * v.depth; ++i)
            v.values.push_back(value(generator));
        const cudaExtent extent = make_cudaExtent(static_cast<std::size_t>(v.width),
                                                  dimensions < 2 ? 0 : static_cast<std::size_t>(v.height),
                                                  dimensions < 3 ? 0 : static_cast<std::size_t>(v.depth));
        const Array array(v.values, cudaCreateChannelDesc<float>(), extent);
        const Texture texture(array.resource(), description_of(sampling));
        const std::vector<float3> where = points(v, sampling.normalized, random);
        DeviceVector<float3> device_points(where);
        const std::vector<float> got = evaluated<float>(Fetch{texture, device_points.data(), dimensions},
                                                        static_cast<int>(where.size()));
        Sampling expected = sampling;
        const bool periodic = sampling.mode == cudaAddressModeWrap || sampling.mode == cudaAddressModeMirror;
        if (!sampling.normalized && periodic) expected.mode = cudaAddressModeClamp;
        const double tolerance = sampling.filter == cudaFilterModePoint ? 0
                                 : random                               ? dimensions * kWeightUnit * 2
                                                                        : exact_tolerance(dimensions);
        for (std::size_t i = 0; i < where.size(); ++i)
            ASSERT_NEAR(got[i], reference(v, expected, where[i], dimensions), tolerance)
                << where[i].x << ", " << where[i].y << ", " << where[i].z << (random ? " (random)" : "");
    }
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const int dimensions : {1, 2, 3}) {
        for (const auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
            for (const bool normalized : {false, true}) {
                for (int mode = 0; mode < 4; ++mode)
                    all.push_back(
                        {dimensions, {static_cast<cudaTextureAddressMode>(mode), filter, normalized}});
            }
        }
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Textures, Sampled, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& test) {
                             const Sampling& s = test.param.sampling;
                             return std::to_string(test.param.dimensions) + "d_" +
                                    (s.filter == cudaFilterModePoint ? "point" : "linear") +
                                    (s.normalized ? "_normalised_" : "_") + kModes[s.mode];
                         });

// --- Types ---------------------------------------------------------------------------------------

template <class T>
struct FetchElement {
    cudaTextureObject_t texture;
    __device__ T operator()(int i) const { return tex1Dfetch<T>(texture, i); }
};
template <class T>
struct FetchColumn {
    cudaTextureObject_t texture;
    __device__ T operator()(int i) const { return tex1D<T>(texture, static_cast<float>(i) + 0.5F); }
};

template <class Element, class Result = Element>
std::vector<Result> read_back(const std::vector<Element>& elements, const cudaChannelFormatDesc& format,
                              cudaTextureReadMode read = cudaReadModeElementType) {
    const Array array(elements, format, make_cudaExtent(elements.size(), 0, 0));
    const Texture texture(array.resource(), description_of(kPoint, read));
    return evaluated<Result>(FetchColumn<Result>{texture}, static_cast<int>(elements.size()));
}

template <class T>
std::vector<T> random_elements(std::size_t count) {
    std::vector<T> elements(count);
    std::mt19937 generator(3);
    for (T& element : elements) {
        unsigned char bytes[sizeof(T)];
        for (unsigned char& byte : bytes)
            byte = static_cast<unsigned char>(generator() % 127);  // no NaN among floats
        std::memcpy(&element, bytes, sizeof element);
    }
    return elements;
}

template <class T>
void expect_same_bytes(const std::vector<T>& got, const std::vector<T>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)), 0);
}

template <class T>
class ElementTypes : public testing::Test {};
using Types = testing::Types<char, uchar4, short, ushort2, int, uint4, float, float4>;
TYPED_TEST_SUITE(ElementTypes, Types);

TYPED_TEST(ElementTypes, ComeBackUnchanged) {
    const auto elements = random_elements<TypeParam>(37);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<TypeParam>();
    EXPECT_EQ(static_cast<std::size_t>(format.x + format.y + format.z + format.w), 8 * sizeof(TypeParam));
    expect_same_bytes(read_back(elements, format), elements);

    DeviceVector<TypeParam> memory(elements);
    const Texture texture(linear_memory(memory.data(), 37 * sizeof(TypeParam), format), cudaTextureDesc{});
    expect_same_bytes(evaluated<TypeParam>(FetchElement<TypeParam>{texture}, 37), elements);
}

TEST(Textures, IntegersBecomeNormalisedFloats) {
    const auto normalized = cudaReadModeNormalizedFloat;
    const auto bytes =
        read_back<unsigned char, float>({0, 51, 255}, cudaCreateChannelDesc<unsigned char>(), normalized);
    EXPECT_FLOAT_EQ(bytes[0], 0);
    EXPECT_FLOAT_EQ(bytes[1], 0.2F);
    EXPECT_FLOAT_EQ(bytes[2], 1);
    const auto words =
        read_back<short, float>({-32768, -32767, 0, 32767}, cudaCreateChannelDesc<short>(), normalized);
    EXPECT_FLOAT_EQ(words[0], -1);
    EXPECT_FLOAT_EQ(words[1], -1);
    EXPECT_FLOAT_EQ(words[2], 0);
    EXPECT_FLOAT_EQ(words[3], 1);
    const auto colours =
        read_back<char4, float4>({{127, -128, 0, -127}}, cudaCreateChannelDesc<char4>(), normalized);
    EXPECT_FLOAT_EQ(colours[0].x, 1);
    EXPECT_FLOAT_EQ(colours[0].y, -1);
    EXPECT_FLOAT_EQ(colours[0].z, 0);
    EXPECT_FLOAT_EQ(colours[0].w, -1);
}

TEST(Textures, HalfPrecisionIsReadAsFloat) {
    const std::vector<__half> elements = {__float2half(0.5F), __float2half(-2048), __float2half(65504)};
    const auto got = read_back<__half, float>(elements, cudaCreateChannelDescHalf());
    EXPECT_EQ(got, (std::vector<float>{0.5F, -2048, 65504}));
}

TEST(Textures, FetchesOutsideLinearMemoryGiveZero) {
    DeviceVector<float> memory(std::vector<float>{1, 2, 3, 4});
    const Texture texture(linear_memory(memory.data(), 4 * sizeof(float), cudaCreateChannelDesc<float>()),
                          cudaTextureDesc{});
    const auto got = evaluated<float>(FetchElement<float>{texture}, 8);
    EXPECT_EQ(got, (std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0}));
}

// --- Kinds of resources --------------------------------------------------------------------------

struct FetchRow {
    cudaTextureObject_t texture;
    int row;
    __device__ float operator()(int i) const {
        float value;
        tex2D(&value, texture, static_cast<float>(i) + 0.5F, static_cast<float>(row) + 0.5F);
        return value;
    }
};

TEST(Textures, PitchedMemoryIsReadInTwoDimensions) {
    constexpr std::size_t kWidth = 5, kHeight = 3;
    float* memory = nullptr;
    std::size_t pitch = 0;
    ASSERT_EQ(cudaMallocPitch(&memory, &pitch, kWidth * sizeof(float), kHeight), cudaSuccess);
    std::vector<float> elements(kWidth * kHeight);
    for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = static_cast<float>(i);
    ASSERT_EQ(cudaMemcpy2D(memory, pitch, elements.data(), kWidth * sizeof(float), kWidth * sizeof(float),
                           kHeight, cudaMemcpyHostToDevice),
              cudaSuccess);
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = kWidth;
    resource.res.pitch2D.height = kHeight;
    resource.res.pitch2D.pitchInBytes = pitch;
    const Texture texture(resource, description_of(kPoint));
    EXPECT_EQ(evaluated<float>(FetchRow{texture, 2}, 6), (std::vector<float>{10, 11, 12, 13, 14, 14}));
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

struct FetchLayers {
    cudaTextureObject_t texture;
    bool two_dimensional;
    __device__ float operator()(int i) const {
        const int layer = i - 1;  // -1 counts as a large unsigned number
        return two_dimensional ? tex2DLayered<float>(texture, 1.0F, 0.5F, layer)
                               : tex1DLayered<float>(texture, 1.0F, layer);
    }
};

TEST(Textures, LayersAreNotFilteredAndClamp) {
    const std::vector<float> elements = {0, 2, 10, 12, 20, 22};  // three layers of two
    for (const bool two_dimensional : {false, true}) {
        const Array array(elements, cudaCreateChannelDesc<float>(),
                          make_cudaExtent(2, two_dimensional ? 1 : 0, 3), cudaArrayLayered);
        const Texture texture(array.resource(), description_of(kLinear));
        EXPECT_EQ(evaluated<float>(FetchLayers{texture, two_dimensional}, 5),
                  (std::vector<float>{21, 1, 11, 21, 21}));
    }
}

struct FetchDirection {
    cudaTextureObject_t texture;
    const float3* directions;
    __device__ float operator()(int i) const {
        return texCubemap<float>(texture, directions[i].x, directions[i].y, directions[i].z);
    }
};

TEST(Textures, CubemapsAreReadByDirection) {
    // Face f has the elements 10 f + 0 to 3: (0, 0), (1, 0), (0, 1), (1, 1).
    std::vector<float> elements;
    for (int face = 0; face < 6; ++face) {
        for (int i = 0; i < 4; ++i)
            elements.push_back(static_cast<float>(10 * face + i));
    }
    const Array array(elements, cudaCreateChannelDesc<float>(), make_cudaExtent(2, 2, 6), cudaArrayCubemap);
    Sampling sampling = kPoint;
    sampling.normalized = true;
    const Texture texture(array.resource(), description_of(sampling));
    // Per face: s and t of the guide's table, each with a sign.
    const std::vector<float3> directions = {{1, 0.5F, 0.5F},  {1, -0.5F, -0.5F}, {-1, 0.5F, 0.5F},
                                            {0.5F, 1, 0.5F},  {0.5F, -1, 0.5F},  {0.5F, 0.5F, 1},
                                            {0.5F, 0.5F, -1}, {-0.5F, -0.5F, -1}};
    DeviceVector<float3> device_directions(directions);
    EXPECT_EQ(evaluated<float>(FetchDirection{texture, device_directions.data()}, 8),
              (std::vector<float>{0, 3, 11, 23, 31, 41, 50, 53}));
}

struct FetchLevel {
    cudaTextureObject_t texture;
    bool by_gradient;
    __device__ float operator()(int i) const {
        const float level = static_cast<float>(i) / 4;
        // One pixel covers 2^level of the 8 elements.
        const float step = exp2f(level) / 8;
        return by_gradient ? tex2DGrad<float>(texture, 0.5F, 0.5F, make_float2(step, 0), make_float2(0, step))
                           : tex2DLod<float>(texture, 0.5F, 0.5F, level);
    }
};

TEST(Textures, LevelsOfAMipmap) {
    cudaMipmappedArray_t mipmap = nullptr;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    ASSERT_EQ(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(8, 8, 0), 3), cudaSuccess);
    for (unsigned level = 0; level < 3; ++level) {
        cudaArray_t array = nullptr;
        ASSERT_EQ(cudaGetMipmappedArrayLevel(&array, mipmap, level), cudaSuccess);
        cudaExtent extent{};
        ASSERT_EQ(cudaArrayGetInfo(nullptr, &extent, nullptr, array), cudaSuccess);
        ASSERT_EQ(extent.width, 8U >> level);
        ASSERT_EQ(extent.height, 8U >> level);
        const std::vector<float> elements(64, static_cast<float>(level));
        ASSERT_EQ(cudaMemcpy2DToArray(array, 0, 0, elements.data(), extent.width * sizeof(float),
                                      extent.width * sizeof(float), extent.height, cudaMemcpyHostToDevice),
                  cudaSuccess);
    }
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc description = description_of({cudaAddressModeClamp, cudaFilterModeLinear, true});
    description.maxMipmapLevelClamp = 1.75F;
    {
        description.mipmapFilterMode = cudaFilterModeLinear;
        const Texture texture(resource, description);
        const std::vector<float> expected = {0, 0.25F, 0.5F, 0.75F, 1, 1.25F, 1.5F, 1.75F, 1.75F, 1.75F};
        EXPECT_EQ(evaluated<float>(FetchLevel{texture, false}, 10), expected);
        const std::vector<float> got = evaluated<float>(FetchLevel{texture, true}, 10);
        for (std::size_t i = 0; i < got.size(); ++i)
            EXPECT_NEAR(got[i], expected[i], 0.05) << i;  // the logarithm of a GPU's texture unit is coarse
    }
    {
        description.mipmapFilterMode = cudaFilterModePoint;
        const Texture texture(resource, description);
        const auto got = evaluated<float>(FetchLevel{texture, false}, 8);
        EXPECT_EQ(got[1], 0);
        EXPECT_EQ(got[3], 1);
        EXPECT_EQ(got[4], 1);
        EXPECT_EQ(got[5], 1);
        EXPECT_EQ(got[7], 2);
    }
    EXPECT_EQ(cudaFreeMipmappedArray(mipmap), cudaSuccess);
}

struct Gather {
    cudaTextureObject_t texture;
    __device__ float4 operator()(int channel) const {
        return tex2Dgather<float4>(texture, 1.0F, 1.0F, channel);
    }
};

TEST(Textures, GatherGivesOneChannelOfFourElements) {
    const std::vector<float2> elements = {{0, 10}, {1, 11}, {2, 12}, {3, 13}};
    const Array array(elements, cudaCreateChannelDesc<float2>(), make_cudaExtent(2, 2, 0),
                      cudaArrayTextureGather);
    const Texture texture(array.resource(), description_of(kPoint));
    const std::vector<float4> got = evaluated<float4>(Gather{texture}, 2);
    for (int channel = 0; channel < 2; ++channel) {
        const float base = 10.0F * static_cast<float>(channel);
        EXPECT_EQ(got[static_cast<std::size_t>(channel)].x, base + 2);
        EXPECT_EQ(got[static_cast<std::size_t>(channel)].y, base + 3);
        EXPECT_EQ(got[static_cast<std::size_t>(channel)].z, base + 1);
        EXPECT_EQ(got[static_cast<std::size_t>(channel)].w, base);
    }
}

// --- Surfaces ------------------------------------------------------------------------------------

struct Exchange {
    cudaSurfaceObject_t surface;
    __device__ int operator()(int i) const {
        const int x = i % 4 * static_cast<int>(sizeof(int));
        const int y = i / 4;
        const int before = surf2Dread<int>(surface, x, y);
        surf2Dwrite(before + 100, surface, x, y);
        return before;
    }
};
struct Outside {
    cudaSurfaceObject_t surface;
    __device__ int operator()(int i) const {
        const int x = (i - 2) * static_cast<int>(sizeof(int));
        surf2Dwrite(-1, surface, -4, 0, cudaBoundaryModeZero);
        surf2Dwrite(-1, surface, 16, 0, cudaBoundaryModeZero);
        return surf2Dread<int>(surface, x, 0, cudaBoundaryModeZero) +
               1000 * surf2Dread<int>(surface, x, 7, cudaBoundaryModeClamp);
    }
};

TEST(Surfaces, AreReadAndWrittenByBytes) {
    std::vector<int> elements = {1, 2, 3, 4, 5, 6, 7, 8};
    const Array array(elements, cudaCreateChannelDesc<int>(), make_cudaExtent(4, 2, 0),
                      cudaArraySurfaceLoadStore);
    const Surface surface(array);
    EXPECT_EQ(evaluated<int>(Exchange{surface}, 8), elements);
    for (int& element : elements)
        element += 100;
    std::vector<int> written(8);
    ASSERT_EQ(cudaMemcpy2DFromArray(written.data(), 16, array.get(), 0, 0, 16, 2, cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(written, elements);
    EXPECT_EQ(evaluated<int>(Outside{surface}, 8),
              (std::vector<int>{105000, 105000, 105101, 106102, 107103, 108104, 108000, 108000}));
}

struct Slices {
    cudaSurfaceObject_t volume, layers;
    __device__ int operator()(int i) const {
        short2 value;
        surf3Dread(&value, volume, 0, 0, i);
        surf2DLayeredwrite(value, layers, 4, 0, 2 - i);
        return value.x + value.y;
    }
};

TEST(Surfaces, OfThreeDimensionsAndLayers) {
    const std::vector<short2> elements = {{1, 10}, {0, 0}, {2, 20}, {0, 0}, {3, 30}, {0, 0}};
    const auto format = cudaCreateChannelDesc<short2>();
    const Array volume(elements, format, make_cudaExtent(2, 1, 3), cudaArraySurfaceLoadStore);
    const Array layers(elements, format, make_cudaExtent(2, 1, 3),
                       cudaArraySurfaceLoadStore | cudaArrayLayered);
    const Surface read(volume);
    const Surface written(layers);
    EXPECT_EQ(evaluated<int>(Slices{read, written}, 3), (std::vector<int>{11, 22, 33}));
    std::vector<short2> got(6);
    cudaMemcpy3DParms copy{};
    copy.srcArray = layers.get();
    copy.dstPtr = make_cudaPitchedPtr(got.data(), 2 * sizeof(short2), 2, 1);
    copy.extent = make_cudaExtent(2, 1, 3);
    copy.kind = cudaMemcpyDeviceToHost;
    ASSERT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
    EXPECT_EQ(got[1].x, 3);
    EXPECT_EQ(got[3].y, 20);
    EXPECT_EQ(got[5].x, 1);
    EXPECT_EQ(got[4].x, 3);
}

// --- Copies --------------------------------------------------------------------------------------

TEST(Copies, OfABoxInThreeDimensions) {
    const cudaExtent whole = make_cudaExtent(5 * sizeof(int), 4, 3);
    cudaPitchedPtr pitched{};
    ASSERT_EQ(cudaMalloc3D(&pitched, whole), cudaSuccess);
    EXPECT_GE(pitched.pitch, whole.width);
    ASSERT_EQ(cudaMemset3D(pitched, 0, whole), cudaSuccess);
    std::vector<int> box(2 * 3 * 2);
    for (std::size_t i = 0; i < box.size(); ++i)
        box[i] = static_cast<int>(i) + 1;
    cudaMemcpy3DParms to_device{};
    to_device.srcPtr = make_cudaPitchedPtr(box.data(), 2 * sizeof(int), 2, 3);
    to_device.dstPtr = pitched;
    to_device.dstPos = make_cudaPos(3 * sizeof(int), 1, 1);
    to_device.extent = make_cudaExtent(2 * sizeof(int), 3, 2);
    to_device.kind = cudaMemcpyHostToDevice;
    ASSERT_EQ(cudaMemcpy3DAsync(&to_device), cudaSuccess);
    std::vector<int> got(5 * 4 * 3);
    cudaMemcpy3DParms to_host{};
    to_host.srcPtr = pitched;
    to_host.dstPtr = make_cudaPitchedPtr(got.data(), 5 * sizeof(int), 5, 4);
    to_host.extent = whole;
    to_host.kind = cudaMemcpyDeviceToHost;
    ASSERT_EQ(cudaMemcpy3D(&to_host), cudaSuccess);
    for (int z = 0; z < 3; ++z) {
        for (int y = 0; y < 4; ++y) {
            for (int x = 0; x < 5; ++x) {
                const bool inside = x >= 3 && y >= 1 && z >= 1;
                EXPECT_EQ(got[static_cast<std::size_t>((z * 4 + y) * 5 + x)],
                          inside ? ((z - 1) * 3 + y - 1) * 2 + x - 3 + 1 : 0);
            }
        }
    }
    EXPECT_EQ(cudaFree(pitched.ptr), cudaSuccess);
}

TEST(Copies, BetweenArrays) {
    const std::vector<int> elements = {1, 2, 3, 4, 5, 6};
    const auto format = cudaCreateChannelDesc<int>();
    const Array from(elements, format, make_cudaExtent(3, 2, 0));
    const Array to(std::vector<int>(6), format, make_cudaExtent(3, 2, 0));
    ASSERT_EQ(cudaMemcpy2DArrayToArray(to.get(), 4, 0, from.get(), 0, 0, 8, 2), cudaSuccess);
    std::vector<int> got(6);
    ASSERT_EQ(cudaMemcpy2DFromArray(got.data(), 12, to.get(), 0, 0, 12, 2, cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 0, 4, 5}));
}

TEST(Arrays, TellWhatTheyAre) {
    const Array array(std::vector<ushort4>(12), cudaCreateChannelDesc<ushort4>(), make_cudaExtent(3, 2, 2),
                      cudaArrayLayered | cudaArraySurfaceLoadStore);
    cudaChannelFormatDesc format{};
    cudaExtent extent{};
    unsigned flags = 0;
    ASSERT_EQ(cudaArrayGetInfo(&format, &extent, &flags, array.get()), cudaSuccess);
    EXPECT_EQ(format.w, 16);
    EXPECT_EQ(format.f, cudaChannelFormatKindUnsigned);
    EXPECT_EQ(extent.width, 3U);
    EXPECT_EQ(extent.depth, 2U);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaArrayLayered | cudaArraySurfaceLoadStore));
}

// Which code it is differs between functions; that it is an error does not.
TEST(Arrays, ImpossibleOnesAreErrors) {
    cudaArray_t array = nullptr;
    const auto format = cudaCreateChannelDesc<float>();
    const auto three = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
    EXPECT_NE(cudaMallocArray(&array, &three, 4, 4), cudaSuccess);
    EXPECT_NE(cudaMallocArray(&array, &format, 0, 4), cudaSuccess);
    EXPECT_NE(cudaMallocArray(&array, &format, 1 << 20, 0), cudaSuccess);
    EXPECT_NE(cudaMalloc3DArray(&array, &format, make_cudaExtent(4, 5, 6), cudaArrayCubemap), cudaSuccess);
    const Array plain(std::vector<float>(8), format, make_cudaExtent(4, 2, 0));
    const float values[8] = {};
    EXPECT_NE(cudaMemcpy2DToArray(plain.get(), 4, 0, values, 16, 16, 2, cudaMemcpyHostToDevice), cudaSuccess);
#ifdef CUDA_ON_CPU  // without cudaArraySurfaceLoadStore it is undefined; a GPU does not tell
    const cudaResourceDesc resource = plain.resource();
    cudaSurfaceObject_t surface = 0;
    EXPECT_NE(cudaCreateSurfaceObject(&surface, &resource), cudaSuccess);
#endif
    static_cast<void>(cudaGetLastError());
}

TEST(Textures, ImpossibleOnesAreErrors) {
    cudaTextureObject_t texture = 0;
    const Array integers(std::vector<int>(4), cudaCreateChannelDesc<int>(), make_cudaExtent(4, 0, 0));
    const cudaResourceDesc resource = integers.resource();
    cudaTextureDesc description = description_of(kLinear);
    EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &description, nullptr),
              cudaErrorInvalidFilterSetting);
    description = description_of(kPoint, cudaReadModeNormalizedFloat);
    EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &description, nullptr),
              cudaErrorInvalidNormSetting);
    DeviceVector<float> memory(std::vector<float>(1024));
    const auto behind_start = linear_memory(memory.data() + 1, 16, cudaCreateChannelDesc<float>());
    description = description_of(kPoint);
    EXPECT_NE(cudaCreateTextureObject(&texture, &behind_start, &description, nullptr), cudaSuccess);
    static_cast<void>(cudaGetLastError());
}

}  // namespace
