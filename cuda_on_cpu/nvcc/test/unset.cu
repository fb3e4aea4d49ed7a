// Variables that nothing sets, and in `right` such as only look like it.
#include <cuda_fp16.h>

#include <cstdint>

// clang-format off
__global__ void dot(const float* x, const float* y, float* out, int n) {
    float sum;
    for (int i = 0; i < n; ++i)
        // A comment, so that the line is another one
        // than that of the loop.
        sum += x[i] * y[i];
    out[threadIdx.x] = sum;
}
__global__ void product(const uint32_t* a, float* d, int n) {
    float c[4];
    for (int k = 0; k < n; ++k)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[k]), "r"(a[k + 1]));
    for (int i = 0; i < 4; ++i) d[i] = c[i];
}
__global__ void maximum(const float* x, float* out, int n) {
    float best;
    for (int i = 0; i < n; ++i) best = best > x[i] ? best : x[i];
    out[threadIdx.x] = best;
}
// clang-format on
__global__ void right(const float* x, float* out, int n) {
    float sums[2][2], best, last;
    for (int i = 0; i < 4; ++i)
        sums[i / 2][i % 2] = 0;
    for (int i = 0; i < n; ++i) {
        best = i == 0 ? x[0] : fmaxf(best, x[i]);
        for (int j = 0; j < 4; ++j)
            sums[j / 2][j % 2] += x[i + j];
    }
    bool any = false;
    for (int i = 0; i < n; ++i) {
        if (x[i] <= 0) continue;
        last = x[i];
        any = true;
    }
    if (any) out[5] = last;
    if (n > 0) out[4] = best;
    for (int i = 0; i < 4; ++i)
        out[i] = sums[i / 2][i % 2];
}
