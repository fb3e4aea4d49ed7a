// Rounding: which numbers a float can hold, and what becomes of the others.        PMPP appendix A
//
//   nvcc rounding.cu -o rounding && ./rounding
//   ./course run day22 --program rounding
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

// The distance from x >= 0 to the next float: bit patterns of positive floats are in the order of
// their values.
__global__ void ulp_of(const float* x, float* ulp, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) ulp[i] = __uint_as_float(__float_as_uint(x[i]) + 1) - x[i];
}

// a + b, and that sum rounded to the nearest float, towards 0, up, and down.
struct Sum {
    float a, b;
    float nearest, to_zero, up, down;
};

__global__ void add_in_four_modes(Sum* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Sum& sum = sums[i];
    sum.nearest = __fadd_rn(sum.a, sum.b);
    sum.to_zero = __fadd_rz(sum.a, sum.b);
    sum.up = __fadd_ru(sum.a, sum.b);
    sum.down = __fadd_rd(sum.a, sum.b);
}

// a * a - b, with one rounding and with two; (a + b) + c and a + (b + c).
__global__ void fuse_and_regroup(float* out) {
    const float a = 1 + 0x1p-12f;
    const float b = 1 + 0x1p-11f;
    out[0] = __fmaf_rn(a, a, -b);
    out[1] = __fadd_rn(__fmul_rn(a, a), -b);
    out[2] = __fadd_rn(__fadd_rn(1e8f, -1e8f), 1.0f);
    out[3] = __fadd_rn(1e8f, __fadd_rn(-1e8f, 1.0f));
}

// Calls run(array on the device) on a copy of `values`, and copies the array back.
template <class T, class Run>
void on_device(std::vector<T>& values, Run run) {
    const size_t bytes = values.size() * sizeof(T);
    T* values_d = nullptr;
    CUDA_CHECK(cudaMalloc(&values_d, bytes));
    CUDA_CHECK(cudaMemcpy(values_d, values.data(), bytes, cudaMemcpyHostToDevice));
    run(values_d);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(values.data(), values_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(values_d));
}

int main(int argc, char**) {
    if (argc > 1) {
        fprintf(stderr, "usage: rounding\n");
        return 2;
    }
    const std::vector<float> x = {0, 1e-40f, 1, 1000, 16777216, 1e30f};
    std::vector<float> x_and_ulp = x;
    x_and_ulp.resize(2 * x.size());
    const int count = static_cast<int>(x.size());
    on_device(x_and_ulp, [&](float* values) { ulp_of<<<1, 32>>>(values, values + count, count); });
    printf("from x to the next float (1 ulp)\n");
    for (int i = 0; i < count; ++i)
        printf("  x = %-8g  2^%d\n", x[i], ilogbf(x_and_ulp[count + i]));

    // b in ulps of a
    const float ulp = 0x1p-23f;
    std::vector<Sum> sums;
    for (const float b : {0.5f, 1.5f, 0.501953125f, 0.25f})
        sums.push_back({1, b * ulp, 0, 0, 0, 0});
    sums.push_back({-1, -0.5f * ulp, 0, 0, 0, 0});
    on_device(sums,
              [&](Sum* values) { add_in_four_modes<<<1, 32>>>(values, static_cast<int>(sums.size())); });
    printf("a + b, minus a, in ulps      nearest  to zero  up  down\n");
    for (const Sum& sum : sums) {
        const auto ulps = [&](float value) { return (value - sum.a) / ulp; };
        printf("  a = %2g, b = %8.4f ulp  %8g %8g %4g %5g\n", sum.a, sum.b / ulp, ulps(sum.nearest),
               ulps(sum.to_zero), ulps(sum.up), ulps(sum.down));
    }

    std::vector<float> results(4);
    on_device(results, [](float* out) { fuse_and_regroup<<<1, 1>>>(out); });
    printf("a * a - b = %g with one rounding, %g with two\n", results[0], results[1]);
    printf("(1e8 - 1e8) + 1 = %g, 1e8 + (-1e8 + 1) = %g\n", results[2], results[3]);
}
