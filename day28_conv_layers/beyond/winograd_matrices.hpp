// The matrices of Winograd's convolution F(m x m, 3 x 3), for host and device: S. Winograd,
// "Arithmetic Complexity of Computations" (1980), as A. Lavin and S. Gray have them ("Fast
// Algorithms for Convolutional Neural Networks", 2015).
#pragma once

#include <cuda_runtime.h>

namespace day28 {

// Elements of the matrices of F(m x m, 3 x 3), for host and device.
template <int m>
struct Winograd;

template <>
struct Winograd<2> {
    static constexpr __host__ __device__ float at(int i, int j) {  // A^T, 2 x 4
        constexpr float kAt[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
        return kAt[i][j];
    }
    static constexpr __host__ __device__ float g(int i, int j) {  // G, 4 x 3
        constexpr float kG[4][3] = {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};
        return kG[i][j];
    }
    static constexpr __host__ __device__ float bt(int i, int j) {  // B^T, 4 x 4
        constexpr float kBt[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
        return kBt[i][j];
    }
};

template <>
struct Winograd<4> {
    static constexpr __host__ __device__ float at(int i, int j) {  // A^T, 4 x 6
        constexpr float kAt[4][6] = {
            {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
        return kAt[i][j];
    }
    static constexpr __host__ __device__ float g(int i, int j) {  // G, 6 x 3
        constexpr float kG[6][3] = {{1.f / 4, 0, 0},
                                    {-1.f / 6, -1.f / 6, -1.f / 6},
                                    {-1.f / 6, 1.f / 6, -1.f / 6},
                                    {1.f / 24, 1.f / 12, 1.f / 6},
                                    {1.f / 24, -1.f / 12, 1.f / 6},
                                    {0, 0, 1}};
        return kG[i][j];
    }
    static constexpr __host__ __device__ float bt(int i, int j) {  // B^T, 6 x 6
        constexpr float kBt[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                     {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
        return kBt[i][j];
    }
};

}  // namespace day28
