// What the stand-in tells of textures and surfaces used wrongly. What they do when used rightly is
// in textures_test.cu.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

namespace {

class TextureReports : public testing::Test {
  protected:
    void SetUp() override {
        const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
        ASSERT_EQ(cudaMallocArray(&array_, &format, 4, 2, cudaArraySurfaceLoadStore), cudaSuccess);
        cudaResourceDesc resource{};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array_;
        const cudaTextureDesc description{};
        ASSERT_EQ(cudaCreateTextureObject(&texture_, &resource, &description, nullptr), cudaSuccess);
        ASSERT_EQ(cudaCreateSurfaceObject(&surface_, &resource), cudaSuccess);
    }
    void TearDown() override { EXPECT_EQ(cudaFreeArray(array_), cudaSuccess); }

    cudaArray_t array_ = nullptr;
    cudaTextureObject_t texture_ = 0;
    cudaSurfaceObject_t surface_ = 0;
};

constexpr int kFetchLine = __LINE__ + 2;
__global__ void fetch(cudaTextureObject_t texture, unsigned char* out) {
    *out = tex2D<uchar4>(texture, 0, 0).x;
}
__global__ void fetch_volume(cudaTextureObject_t texture, unsigned char* out) {
    *out = tex3D<uchar4>(texture, 0, 0, 0).x;
}
__global__ void fetch_floats(cudaTextureObject_t texture, float* out) {
    *out = tex2D<float4>(texture, 0, 0).x;
}
constexpr int kWriteLine = __LINE__ + 2;
__global__ void write(cudaSurfaceObject_t surface, int x) {
    surf2Dwrite(make_uchar4(0, 0, 0, 0), surface, x, 1);
}

TEST_F(TextureReports, OfAnObjectThatIsDestroyed) {
    DeviceVector<unsigned char> out(1);
    ASSERT_EQ(cudaDestroyTextureObject(texture_), cudaSuccess);
    const std::string report =
        report_of(cudaErrorLaunchFailure, [&] { fetch<<<1, 1>>>(texture_, out.data()); });
    EXPECT_TRUE(mentions(report, {"tex2D: texture object", "does not exist", at_line(kFetchLine)}));
}

TEST_F(TextureReports, OfAnotherShape) {
    DeviceVector<unsigned char> out(1);
    const std::string report =
        report_of(cudaErrorLaunchFailure, [&] { fetch_volume<<<1, 1>>>(texture_, out.data()); });
    EXPECT_TRUE(mentions(report, {"tex3D: the texture is two-dimensional"}));
}

TEST_F(TextureReports, OfAnotherType) {
    DeviceVector<float> out(1);
    const std::string report = report_of(cudaSuccess, [&] { fetch_floats<<<1, 1>>>(texture_, out.data()); });
    EXPECT_TRUE(mentions(report, {"tex2D of a type of floats, but the texture gives integers",
                                  "cudaReadModeNormalizedFloat"}));
}

TEST_F(TextureReports, OfASurfaceOutsideItsBounds) {
    const std::string report = report_of(cudaErrorLaunchFailure, [&] { write<<<1, 1>>>(surface_, 16); });
    EXPECT_TRUE(mentions(
        report, {"surf2Dwrite: (16, 1, 0) is outside the surface of 16 bytes x 2", at_line(kWriteLine)}));
    // 3 is an index of elements; x is in bytes.
    EXPECT_TRUE(mentions(report_of(cudaErrorMisalignedAddress, [&] { write<<<1, 1>>>(surface_, 3); }),
                         {"x is 3; expected bytes, a multiple of the element's 4"}));
}

constexpr int kFetchBehindLine = __LINE__ + 2;
__global__ void fetch_linear(cudaTextureObject_t texture, int i, float* out) {
    *out = tex1Dfetch<float>(texture, i);
}

TEST_F(TextureReports, OfACopyToAnArrayAsIfItWereAPointer) {
    const std::vector<uchar4> host(8);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaMemcpy(array_, host.data(), sizeof(uchar4) * host.size(), cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"cudaMemcpy: destination", "is a CUDA array", "cudaMemcpy2DToArray()"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

// A driver makes it; what lies in the allocation can be read, and a fetch from behind it stops.
TEST(LinearTextures, OfOneThatIsLargerThanItsAllocation) {
    DeviceVector<float> memory(std::vector<float>(1024, 2.5F));
    DeviceVector<float> out(1);
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory.data();
    resource.res.linear.sizeInBytes = 8192 * sizeof(float);
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    const cudaTextureDesc description{};
    cudaTextureObject_t texture = 0;
    testing::internal::CaptureStderr();
    ASSERT_EQ(cudaCreateTextureObject(&texture, &resource, &description, nullptr), cudaSuccess);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"sizeInBytes is 32768, of which 4096 lie in the allocation"}));
    fetch_linear<<<1, 1>>>(texture, 1023, out.data());
    EXPECT_EQ(out.to_host()[0], 2.5F);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorIllegalAddress, [&] { fetch_linear<<<1, 1>>>(texture, 4000, out.data()); }),
        {"tex1Dfetch: element 4000 lies behind the allocation, which has 1024", at_line(kFetchBehindLine)}));
    EXPECT_EQ(cudaDestroyTextureObject(texture), cudaSuccess);
}

}  // namespace
