// Short vectors and dim3: sizes and alignments are those of a GPU, because host and device share
// memory images of them.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "on_device.cuh"

namespace {

template <class Vector>
constexpr bool laid_out(std::size_t size, std::size_t alignment) {
    return sizeof(Vector) == size && alignof(Vector) == alignment && std::is_trivial_v<Vector> &&
           std::is_aggregate_v<Vector>;
}

static_assert(laid_out<char1>(1, 1) && laid_out<char2>(2, 2) && laid_out<char3>(3, 1) &&
              laid_out<char4>(4, 4));
static_assert(laid_out<uchar1>(1, 1) && laid_out<uchar2>(2, 2) && laid_out<uchar3>(3, 1) &&
              laid_out<uchar4>(4, 4));
static_assert(laid_out<short1>(2, 2) && laid_out<short2>(4, 4) && laid_out<short3>(6, 2) &&
              laid_out<short4>(8, 8));
static_assert(laid_out<ushort1>(2, 2) && laid_out<ushort2>(4, 4) && laid_out<ushort3>(6, 2) &&
              laid_out<ushort4>(8, 8));
static_assert(laid_out<int1>(4, 4) && laid_out<int2>(8, 8) && laid_out<int3>(12, 4) &&
              laid_out<int4>(16, 16));
static_assert(laid_out<uint1>(4, 4) && laid_out<uint2>(8, 8) && laid_out<uint3>(12, 4) &&
              laid_out<uint4>(16, 16));
static_assert(laid_out<long1>(8, 8) && laid_out<long2>(16, 16) && laid_out<long3>(24, 8));
static_assert(laid_out<ulong1>(8, 8) && laid_out<ulong2>(16, 16) && laid_out<ulong3>(24, 8));
static_assert(laid_out<longlong1>(8, 8) && laid_out<longlong2>(16, 16) && laid_out<longlong3>(24, 8));
static_assert(laid_out<ulonglong1>(8, 8) && laid_out<ulonglong2>(16, 16) && laid_out<ulonglong3>(24, 8));
static_assert(laid_out<float1>(4, 4) && laid_out<float2>(8, 8) && laid_out<float3>(12, 4) &&
              laid_out<float4>(16, 16));
static_assert(laid_out<double1>(8, 8) && laid_out<double2>(16, 16) && laid_out<double3>(24, 8));
#if CUDART_VERSION >= 13000
static_assert(laid_out<double4_16a>(32, 16) && laid_out<double4_32a>(32, 32));
static_assert(laid_out<longlong4_16a>(32, 16) && laid_out<ulong4_32a>(32, 32));
#endif

constexpr dim3 kLine(7);
static_assert(kLine.x == 7 && kLine.y == 1 && kLine.z == 1);
static_assert(sizeof(dim3) == 12 && !std::is_aggregate_v<dim3>);
static_assert(std::is_convertible_v<uint3, dim3> && std::is_convertible_v<dim3, uint3>);
static_assert(std::is_convertible_v<int, dim3>);

__global__ void make_vectors(Checks check) {
    const char4 bytes = make_char4(-1, 2, -3, 4);
    check.equal(bytes.x + 10 * bytes.y + 100 * bytes.z + 1000 * bytes.w, 3719);
    const uchar2 unsigned_bytes = make_uchar2(255, 1);
    check.equal(unsigned_bytes.x + unsigned_bytes.y, 256);
    const float4 reals = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
    check.equal(reals.x + 10 * reals.y + 100 * reals.z + 1000 * reals.w, 4321.0f);
    const double3 doubles = make_double3(0.5, 0.25, 0.125);
    check.equal(doubles.x + doubles.y + doubles.z, 0.875);
    const longlong2 wide = make_longlong2(-1, 1ll << 40);
    check.equal(wide.x + wide.y, (1ll << 40) - 1);
    const int3 braces = {1, 2, 3};
    check.equal(braces.z, 3);
    const uint3 zeros{};
    check.equal(zeros.x + zeros.y + zeros.z, 0u);
    const dim3 extent = make_uint3(2, 3, 4);
    check.equal(extent.x * extent.y * extent.z, 24u);
    const uint3 back = extent;
    check.equal(back.y, 3u);
}

TEST(VectorTypes, AreMadeAndTakenApart) {
    run_checks(make_vectors);
}

struct Swizzle {
    __device__ float4 operator()(float4 v) const { return make_float4(v.w, v.z, v.y, v.x); }
};

TEST(VectorTypes, MoveThroughMemoryAsOne) {
    std::vector<float4> inputs;
    for (int i = 0; i < 1000; ++i)
        inputs.push_back(make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f));
    const std::vector<float4> outputs = map_on_device<float4>(Swizzle{}, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_EQ(outputs[i].x, inputs[i].w) << i;
        ASSERT_EQ(outputs[i].y, inputs[i].z) << i;
        ASSERT_EQ(outputs[i].z, inputs[i].y) << i;
        ASSERT_EQ(outputs[i].w, inputs[i].x) << i;
    }
}

}  // namespace
