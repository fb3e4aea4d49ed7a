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

// --- Which lane holds what. Many kernels rely on it, and GPUs since Turing agree.

// Writes element i of a lane's fragment to where `place` says it is.
struct OfAccumulator {
    static __device__ int place(int lane, int i) {
        return (lane / 4 + 8 * (i / 2 % 2)) * 16 + 2 * (lane % 4) + i % 2 + 8 * (i / 4);
    }
};
// The same rows and columns: A is 16 x 16, too.
using OfA = OfAccumulator;
struct OfB {
    static __device__ int place(int lane, int i) {
        return (2 * (lane % 4) + i % 2 + 8 * (i / 2 % 2)) * 16 + lane / 4 + 8 * (i / 4);
    }
};
template <class Fragment, class Places, class T>
__device__ void scatter(const Fragment& fragment, T* to) {
    for (int i = 0; i < 8; ++i)
        to[Places::place(static_cast<int>(threadIdx.x), i)] = fragment.x[i];
}
template <class T, class Sum, class LayoutA, class LayoutB>
__global__ void scatter_all(const T* a, const T* b, T* a_out, T* b_out, Sum* c_out) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LayoutA> a_fragment;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> b_fragment;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sums;
    wmma::load_matrix_sync(a_fragment, a, 16);
    wmma::load_matrix_sync(b_fragment, b, 16);
    wmma::fill_fragment(sums, Sum(0.0f));
    wmma::mma_sync(sums, a_fragment, b_fragment, sums);
    scatter<decltype(a_fragment), OfA>(a_fragment, a_out);
    scatter<decltype(b_fragment), OfB>(b_fragment, b_out);
    scatter<decltype(sums), OfAccumulator>(sums, c_out);
#endif
}
template <class T, class Sum, class LayoutA, class LayoutB>
void expect_known_places() {
    if (compute_capability() < 80) GTEST_SKIP() << "needs compute capability 8.0";
    constexpr int kN = 16;
    std::vector<T> a, b;
    for (int i = 0; i < kN * kN; ++i) {
        a.push_back(T(static_cast<float>(i * 7 % 11)));
        b.push_back(T(static_cast<float>(i * 5 % 13)));
    }
    const std::vector<T> none(kN * kN, T(-1.0f));
    DeviceVector<T> a_device(a), b_device(b), a_out(none), b_out(none);
    DeviceVector<Sum> c_out(std::vector<Sum>(kN * kN, Sum(-1.0f)));
    scatter_all<T, Sum, LayoutA, LayoutB>
        <<<1, 32>>>(a_device.data(), b_device.data(), a_out.data(), b_out.data(), c_out.data());
    const std::vector<T> a_seen = a_out.to_host(), b_seen = b_out.to_host();
    const std::vector<Sum> c_seen = c_out.to_host();
    const auto at = [](const std::vector<T>& matrix, bool row_major, int row, int column) {
        return static_cast<float>(matrix[row_major ? row * kN + column : column * kN + row]);
    };
    constexpr bool kRowsA = std::is_same_v<LayoutA, wmma::row_major>;
    constexpr bool kRowsB = std::is_same_v<LayoutB, wmma::row_major>;
    for (int row = 0; row < kN; ++row) {
        for (int column = 0; column < kN; ++column) {
            float sum = 0;
            for (int k = 0; k < kN; ++k)
                sum += at(a, kRowsA, row, k) * at(b, kRowsB, k, column);
            ASSERT_EQ(at(a_seen, true, row, column), at(a, kRowsA, row, column)) << row << ", " << column;
            ASSERT_EQ(at(b_seen, true, row, column), at(b, kRowsB, row, column)) << row << ", " << column;
            ASSERT_EQ(static_cast<float>(c_seen[row * kN + column]), sum) << row << ", " << column;
        }
    }
}
TEST(Wmma, LanesHoldWhatTheyHoldInMmaSync) {
    expect_known_places<__half, float, wmma::row_major, wmma::col_major>();
    expect_known_places<__half, float, wmma::col_major, wmma::row_major>();
    expect_known_places<__nv_bfloat16, float, wmma::row_major, wmma::row_major>();
    expect_known_places<__half, __half, wmma::row_major, wmma::col_major>();
}
// As in NVIDIA's header.
static_assert(wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>::num_elements == 16);
static_assert(wmma::fragment<wmma::matrix_b, 32, 8, 16, __half, wmma::row_major>::num_elements == 16);
static_assert(wmma::fragment<wmma::accumulator, 16, 16, 16, __half>::num_elements == 8);

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
// Sixteen rows: in device memory an odd number of pieces of 16 bytes, in shared memory a whole
// number of pieces of 32. No declaration asks for an alignment.
constexpr int kStride = 24;
constexpr int kRows = 15 * kStride + 16;
constexpr int kWholeRows = 16 * kStride;
struct HalfTile {
    __half elements[kWholeRows];
};
template <class T>
__global__ void copy_by_way_of_shared_memory(const T* in, T* out) {
    __shared__ T array[kWholeRows];
    __shared__ HalfTile tile;
    __shared__ decltype(in[0] + in[1]) other[kWholeRows];
    for (unsigned i = threadIdx.x; i < kRows; i += 32)
        array[i] = tile.elements[i] = other[i] = in[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> direct, from_array, from_tile, from_other;
    wmma::load_matrix_sync(direct, in, kStride);
    wmma::load_matrix_sync(from_array, array, kStride);
    wmma::load_matrix_sync(from_tile, tile.elements, kStride);
    wmma::load_matrix_sync(from_other, other, kStride);
    wmma::fragment<wmma::accumulator, 16, 16, 16, T> sum;
    wmma::fill_fragment(sum, T(0.0f));
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> identity;
    for (unsigned i = threadIdx.x; i < kRows; i += 32)
        array[i] = T(i % kStride == i / kStride ? 1.0f : 0.0f);
    __syncwarp();
    wmma::load_matrix_sync(identity, array, kStride);
    for (const auto& operand : {direct, from_array, from_tile, from_other})
        wmma::mma_sync(sum, operand, identity, sum);
    wmma::store_matrix_sync(out, sum, kStride, wmma::mem_row_major);
}
TEST(Wmma, ArraysOfAnySizeAreAligned) {
    std::vector<__half> numbers;
    for (int i = 0; i < kRows; ++i)
        numbers.push_back(__half(static_cast<float>(i % 17)));
    DeviceVector<__half> in(numbers);
    DeviceVector<__half> out(numbers);
    copy_by_way_of_shared_memory<__half><<<1, 32>>>(in.data(), out.data());
    const std::vector<__half> result = out.to_host();
    for (int i = 0; i < kRows; ++i) {
        const float expected = static_cast<float>(numbers[i]) * (i % kStride < 16 ? 4 : 1);
        ASSERT_EQ(static_cast<float>(result[i]), expected) << i;
    }
}

TEST(Wmma, BytesMayBeginAtMultiplesOf16) {
    if (compute_capability() < 80) GTEST_SKIP() << "needs compute capability 8.0";
    constexpr int kPlaces = 16 * 16;
    DeviceVector<signed char> operands(std::vector<signed char>(32 + kPlaces, 1));
    DeviceVector<int> c(std::vector<int>(kPlaces, 0));
    multiply<16, 16, 16, signed char, int, wmma::col_major>
        <<<1, 32>>>(operands.data() + 16, operands.data() + 16, c.data());
    EXPECT_EQ(c.to_host(), std::vector<int>(kPlaces, 2 * 16));
}
TEST(Wmma, Tf32) {
    expect_product<16, 16, 8, wmma::precision::tf32, float>();
}
TEST(Wmma, Double) {
    expect_product<8, 8, 4, double, double, wmma::col_major>();
}

}  // namespace
