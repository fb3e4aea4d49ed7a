// Tests the random shapes of a sweep, and that its verification finds a wrong element.
#include "common/bench/random_products.hpp"

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/test/device_test.hpp"

namespace {

using course::Dims;

TEST(RandomMatmuls, AreTheSameForASeed) {
    EXPECT_EQ(course::random_matmuls(), course::random_matmuls());
    EXPECT_NE(course::random_matmuls(), course::random_matmuls({.seed = 28}));
    EXPECT_EQ(course::random_matmuls().size(), 200u);
}

TEST(RandomMatmuls, HaveTheExtentsThatWereAskedFor) {
    std::size_t unaligned = 0;
    std::size_t thin = 0;
    for (const Dims& shape : course::random_matmuls()) {
        ASSERT_EQ(shape.size(), 3u);
        for (const std::size_t extent : shape)
            EXPECT_TRUE(extent >= 2 && extent <= 8192) << extent;
        EXPECT_LE(std::ranges::count_if(shape, [](std::size_t extent) { return extent < 32; }), 1);
        unaligned += shape[1] % 8 != 0 || shape[2] % 8 != 0 ? 1 : 0;
        thin += std::ranges::min(shape) < 32 ? 1 : 0;
    }
    EXPECT_GT(unaligned, 60u);
    EXPECT_GT(thin, 40u);
    for (const Dims& shape : course::random_matmuls({.least = 9, .thinnest = 9, .multiple = 16}))
        for (const std::size_t extent : shape)
            EXPECT_TRUE(extent % 16 == 0 && extent >= 512 && extent <= 8192) << extent;
}

class RandomProducts : public course::DeviceTest {};

// The host's C must pass verification. With one element changed or unwritten, it must fail.
template <class T>
void expect_verified(course::Op op_a, course::Op op_b) {
    const course::ProductShape shape{2, 5, 7, 33};
    course::RandomProducts<T> products(shape, op_a, op_b);
    using Sum = typename course::RandomProducts<T>::Sum;
    const auto element = [](const std::vector<T>& values, course::Op op, std::size_t matrix, std::size_t rows,
                            std::size_t cols, std::size_t row, std::size_t col) {
        const std::size_t at = op == course::Op::kNone ? row * cols + col : col * rows + row;
        return static_cast<Sum>(static_cast<float>(values[matrix * rows * cols + at]));
    };
    const auto all = [&](const auto& first, std::size_t size) {
        std::vector<T> values(size);
        course::copy_device_to_host(values.data(), size, first.data(), size, sizeof(T), nullptr);
        return values;
    };
    const auto a = all(products.a(), shape.count * shape.m * shape.k);
    const auto b = all(products.b(), shape.count * shape.k * shape.n);
    std::vector<Sum> c;
    for (std::size_t i = 0; i < shape.count; ++i)
        for (std::size_t row = 0; row < shape.m; ++row)
            for (std::size_t col = 0; col < shape.n; ++col) {
                Sum sum = 0;
                for (std::size_t k = 0; k < shape.k; ++k)
                    sum += element(a, op_a, i, shape.m, shape.k, row, k) *
                           element(b, op_b, i, shape.k, shape.n, k, col);
                c.push_back(sum);
            }
    const auto put = [&] {
        course::copy_host_to_device(products.c().data(), c.size(), c.data(), c.size(), sizeof(Sum), nullptr);
    };
    EXPECT_FALSE(products.verify().ok()) << "nothing has been written";
    put();
    EXPECT_TRUE(products.verify().ok()) << products.verify().message();
    c.back() += 1;
    put();
    EXPECT_EQ(products.verify().differing, 1u);
}

TEST_F(RandomProducts, AreVerified) {
    for (const course::Op op_a : {course::Op::kNone, course::Op::kTranspose}) {
        for (const course::Op op_b : {course::Op::kNone, course::Op::kTranspose}) {
            expect_verified<float>(op_a, op_b);
            expect_verified<__nv_bfloat16>(op_a, op_b);
            expect_verified<std::int8_t>(op_a, op_b);
            expect_verified<__nv_fp8_e4m3>(op_a, op_b);
        }
    }
}

}  // namespace
