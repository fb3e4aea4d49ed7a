// Source forms of vector loads and stores: an inspection counts the instructions that nvcc makes of
// them. The sizes stated here are those in nvcc's machine code; to see them,
//
//   nvcc -arch=sm_90 -cubin -o sizes.cubin access_sizes_test.cu && cuobjdump -sass sizes.cubin
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef CUDA_ON_CPU

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cuda_on_cpu/inspection.h"

namespace {

struct Form {
    const char* source;
    std::function<void()> launch;
    std::string loads;   // bytes of each load of device memory, in ascending order
    std::string stores;  // the same of each store
};

std::vector<Form>& forms() {
    static std::vector<Form> all;
    return all;
}

template <class In, class Out>
Form form(const char* source, void (*kernel)(const In*, Out*), const char* loads, const char* stores) {
    const auto launch = [kernel] {
        In* in = nullptr;
        Out* out = nullptr;
        ASSERT_EQ(cudaMalloc(&in, 32 * 4 * sizeof(In)), cudaSuccess);
        ASSERT_EQ(cudaMalloc(&out, 32 * 4 * sizeof(Out)), cudaSuccess);
        cudaMemset(in, 0, 32 * 4 * sizeof(In));
        cudaMemset(out, 0, 32 * 4 * sizeof(Out));
        kernel<<<1, 32>>>(in, out);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        cudaFree(in);
        cudaFree(out);
    };
    return {source, launch, loads, stores};
}

}  // namespace

#define FORM(name, In, Out, loads, stores, ...)                     \
    __global__ void name(const In* in, Out* out) {                  \
        const unsigned i = threadIdx.x;                             \
        __VA_ARGS__                                                 \
    }                                                               \
    const bool name##_is_listed = [] {                              \
        forms().push_back(form(#__VA_ARGS__, name, loads, stores)); \
        return true;                                                \
    }();

#else

#define FORM(name, In, Out, loads, stores, ...)    \
    __global__ void name(const In* in, Out* out) { \
        const unsigned i = threadIdx.x;            \
        __VA_ARGS__                                \
    }

#endif

struct alignas(16) Pixel {
    float r, g, b, a;
};
struct Loose {
    float r, g, b, a;
};
struct alignas(8) Found {
    float value;
    int index;
};
struct alignas(16) Pack {
    float v[4];
};
struct Two {
    float4 first, second;
};

// --- A whole vector is stored -------------------------------------------------------------------

FORM(braces, float, float4, "4", "16", const float a = in[i]; out[i] = {a, a + 1, a + 2, a + 3};)
FORM(braces_with_type, float, float4, "4", "16", const float a = in[i];
     out[i] = float4{a, a + 1, a + 2, a + 3};)
FORM(make, float, float4, "4", "16", const float a = in[i]; out[i] = make_float4(a, a + 1, a + 2, a + 3);)
FORM(variable, float, float4, "4", "16", const float a = in[i]; float4 v; v.x = a; v.y = a + 1; v.z = a + 2;
     v.w = a + 3; out[i] = v;)
FORM(cast, float, float, "4", "16", const float a = in[i];
     reinterpret_cast<float4*>(out)[i] = {a, a + 1, a + 2, a + 3};)
FORM(cast_pointer, float, float, "4", "16", const float a = in[i];
     *reinterpret_cast<float4*>(out + 4 * i) = {a, a + 1, a + 2, a + 3};)
FORM(nothing, float, float4, "", "16", out[i] = {};)
FORM(copy, float4, float4, "16", "16", out[i] = in[i];)
FORM(sum, float4, float4, "16", "16", const float4 v = in[i]; out[i] = {v.x + 1, v.y + 1, v.z + 1, v.w + 1};)
FORM(float_2, float, float2, "4", "8", const float a = in[i]; out[i] = {a, a + 1};)
FORM(double_2, float, double2, "4", "16", const float a = in[i]; out[i] = {a, a + 1};)
FORM(int_4, int, int4, "4", "16", const int a = in[i]; out[i] = {a, a + 1, a + 2, a + 3};)
FORM(uint_4, unsigned, uint4, "4", "16", const unsigned a = in[i]; out[i] = {a, a + 1, a + 2, a + 3};)
FORM(uchar_4, unsigned char, uchar4, "1", "4", const unsigned char a = in[i]; out[i] = {a, a, 3, a};)
FORM(half_2, float, half2, "4", "4", const half a = __float2half(in[i]); out[i] = {a, a};)
FORM(bfloat_2, float, __nv_bfloat162, "4", "4", const __nv_bfloat16 a = __float2bfloat16(in[i]);
     out[i] = {a, a};)
FORM(in_shared, float, float4, "4 16", "16 16", __shared__ float4 tile[32]; const float a = in[i];
     tile[i] = {a, a + 1, a + 2, a + 3}; __syncthreads(); out[i] = tile[31 - i];)
FORM(own_aligned, float, Pixel, "4", "16", const float a = in[i]; out[i] = {a, a + 1, a + 2, a + 3};)
FORM(own_of_two_types, float, Found, "4", "8", const float a = in[i]; out[i] = {a, static_cast<int>(i)};)
FORM(own_array, float, Pack, "4", "16", const float a = in[i]; Pack p;
     for (int k = 0; k < 4; ++k) p.v[k] = a + k; out[i] = p;)
FORM(two_vectors, float, Two, "4", "16 16", const float a = in[i]; out[i] = {{a, a, a, a}, {a, a, a, a}};)

// --- No alignment, no vector ---------------------------------------------------------------------

FORM(own_not_aligned, float, Loose, "4", "4 4 4 4", const float a = in[i]; out[i] = {a, a + 1, a + 2, a + 3};)
FORM(float_3, float, float3, "4", "4 4 4", const float a = in[i]; out[i] = {a, a + 1, a + 2};)
FORM(four_floats, float, float, "4", "4 4 4 4", const float a = in[i]; out[4 * i] = a; out[4 * i + 1] = a + 1;
     out[4 * i + 2] = a + 2; out[4 * i + 3] = a + 3;)
FORM(load_float_3, float3, float, "4 4 4", "4", const float3 v = in[i]; out[i] = v.x + v.y + v.z;)
FORM(load_not_aligned, Loose, float, "4 4 4 4", "4", const Loose v = in[i]; out[i] = v.r + v.g + v.b + v.a;)

// --- Loads ---------------------------------------------------------------------------------------

FORM(load, float4, float, "16", "4", const float4 v = in[i]; out[i] = v.x + v.y + v.z + v.w;)
FORM(load_cast, float, float, "16", "4", const float4 v = *reinterpret_cast<const float4*>(&in[4 * i]);
     out[i] = v.x + v.y + v.z + v.w;)
FORM(load_three, float4, float, "16", "4", const float4 v = in[i]; out[i] = v.x + v.y + v.z;)
FORM(component, float4, float, "4", "4", out[i] = in[i].x;)
FORM(load_half_2, half2, float, "4", "4", const half2 v = in[i];
     out[i] = __half2float(v.x) + __half2float(v.y);)

#ifdef CUDA_ON_CPU

namespace {

std::string sizes(const cuda_on_cpu::KernelInspection& kernel, cuda_on_cpu::Operation operation) {
    std::string list;
    for (unsigned bytes = 1; bytes <= 16; bytes *= 2) {
        for (const cuda_on_cpu::AccessLine& line : kernel.lines) {
            if (line.operation != operation || line.bytes != bytes) continue;
            for (std::uint64_t r = 0; r < line.requests; ++r)
                list += (list.empty() ? "" : " ") + std::to_string(bytes);
        }
    }
    return list;
}

TEST(AccessSizes, AreThoseOfNvccsMachineCode) {
    for (const Form& form : forms()) {
        SCOPED_TRACE(form.source);
        cuda_on_cpu::begin_inspection({});
        form.launch();
        const cuda_on_cpu::Inspection seen = cuda_on_cpu::end_inspection();
        ASSERT_EQ(seen.kernels.size(), 1u);
        EXPECT_EQ(sizes(seen.kernels.front(), cuda_on_cpu::Operation::kLoad), form.loads);
        EXPECT_EQ(sizes(seen.kernels.front(), cuda_on_cpu::Operation::kStore), form.stores);
        EXPECT_TRUE(seen.kernels.front().findings.empty());
    }
}

}  // namespace

#endif
