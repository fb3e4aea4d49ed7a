// nvcuda::wmma in the types and shapes beyond __half and __nv_bfloat16 with sums in float. Runs on
// a GPU and on the stand-in.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <mma.h>

#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

namespace wmma = nvcuda::wmma;

template <class T>
using Stored = std::conditional_t<std::is_same_v<T, wmma::precision::tf32>, float, T>;

template <int M, int N, int K, class T, class Sum, class LayoutB>
__global__ void multiply(const Stored<T>* a, const Stored<T>* b, Sum* c) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> a_fragment;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> b_fragment;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sums;
    wmma::load_matrix_sync(a_fragment, a, K);
    wmma::load_matrix_sync(b_fragment, b, std::is_same_v<LayoutB, wmma::row_major> ? N : K);
    wmma::load_matrix_sync(sums, c, N, wmma::mem_row_major);
    wmma::mma_sync(sums, a_fragment, b_fragment, sums);
    for (int i = 0; i < sums.num_elements; ++i)
        sums.x[i] = static_cast<Sum>(2) * sums.x[i];
    wmma::store_matrix_sync(c, sums, N, wmma::mem_row_major);
#endif
}

// Small whole numbers: every sum is exact, whatever its order.
template <int M, int N, int K, class T, class Sum, class LayoutB = wmma::row_major>
void expect_product() {
    if (compute_capability() < 80) GTEST_SKIP() << "needs compute capability 8.0";
    std::vector<Stored<T>> a, b;
    std::vector<Sum> c;
    for (int i = 0; i < M * K; ++i)
        a.push_back(static_cast<Stored<T>>(static_cast<float>(i * 7 % 11)));
    for (int i = 0; i < K * N; ++i)
        b.push_back(static_cast<Stored<T>>(static_cast<float>(i * 5 % 7)));
    for (int i = 0; i < M * N; ++i)
        c.push_back(static_cast<Sum>(static_cast<float>(i % 3)));
    DeviceVector<Stored<T>> a_device(a), b_device(b);
    DeviceVector<Sum> c_device(c);
    multiply<M, N, K, T, Sum, LayoutB><<<1, 32>>>(a_device.data(), b_device.data(), c_device.data());
    const std::vector<Sum> result = c_device.to_host();
    for (int row = 0; row < M; ++row) {
        for (int column = 0; column < N; ++column) {
            float sum = static_cast<float>(c[row * N + column]);
            for (int k = 0; k < K; ++k) {
                const int place = std::is_same_v<LayoutB, wmma::row_major> ? k * N + column : column * K + k;
                sum += static_cast<float>(a[row * K + k]) * static_cast<float>(b[place]);
            }
            ASSERT_EQ(static_cast<float>(result[row * N + column]), 2 * sum) << row << ", " << column;
        }
    }
}

TEST(Wmma, SumsOfHalfInHalf) {
    expect_product<16, 16, 16, __half, __half>();
}
TEST(Wmma, OtherShapesOfHalf) {
    expect_product<32, 8, 16, __half, float>();
    expect_product<8, 32, 16, __half, float, wmma::col_major>();
}
TEST(Wmma, Bytes) {
    expect_product<16, 16, 16, signed char, int, wmma::col_major>();
    expect_product<16, 16, 16, unsigned char, int>();
}
TEST(Wmma, BytesMayBeginAtMultiplesOf16) {
    if (compute_capability() < 80) GTEST_SKIP() << "needs compute capability 8.0";
    constexpr int kPlaces = 16 * 16;
    DeviceVector<signed char> factors(std::vector<signed char>(32 + kPlaces, 1));
    DeviceVector<int> c(std::vector<int>(kPlaces, 0));
    multiply<16, 16, 16, signed char, int, wmma::col_major>
        <<<1, 32>>>(factors.data() + 16, factors.data() + 16, c.data());
    EXPECT_EQ(c.to_host(), std::vector<int>(kPlaces, 2 * 16));
}
TEST(Wmma, Tf32) {
    expect_product<16, 16, 8, wmma::precision::tf32, float>();
}
TEST(Wmma, Double) {
    expect_product<8, 8, 4, double, double, wmma::col_major>();
}

}  // namespace
