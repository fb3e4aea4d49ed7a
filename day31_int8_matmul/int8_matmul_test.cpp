// Every version of the int8 product against the CPU. Sums of integers are equal or wrong.
#include "int8_matmul.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beyond/int8_wgmma.hpp"
#include "common/bench/machine.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;
using course::GuardedMatrix;
using course::refusal;
using day31::MatmulShape;
using Layout = course::MatrixLayout;

constexpr std::uint64_t kSeed = 31;

std::vector<std::int8_t> random_bytes(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<std::int8_t> values(size);
    for (std::int8_t& value : values)
        value = static_cast<std::int8_t>(random.integer(-128, 127));
    return values;
}

class MatmulTest : public course::DeviceTestWithParam<const day31::Version*> {
  protected:
    void SetUp() override {
        NeedsDevice::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Padding that aligns the rows, for versions that need it.
    std::size_t padding(std::size_t k) const {
        return GetParam()->launcher.needs_aligned_rows ? (16 - k % 16) % 16 : 0;
    }

    std::string run(const MatmulShape& shape, const std::vector<std::int8_t>& a,
                    const std::vector<std::int8_t>& w, Layout in = {}, Layout out = {}) const {
        const auto [m, n, k] = shape;
        GuardedMatrix<std::int8_t> x(a, m, k, in);
        GuardedMatrix<std::int8_t> y(w, n, k, in);
        GuardedMatrix<std::int32_t> c(m, n, out);
        GetParam()->launcher.launch(x.view(), y.view(), c.view(), nullptr);
        std::vector<std::int32_t> expected(m * n);
        day31::int8_matmul_on_cpu(shape, a, w, expected);
        const course::VerifyResult result = course::verify_exact(c.packed(), expected, n);
        return c.damage() + (x.unchanged() && y.unchanged() ? "" : " an input was changed") +
               (result.ok() ? "" : result.message());
    }

    void expect_right(const MatmulShape& shape, Layout in = {}, Layout out = {}) const {
        const auto [m, n, k] = shape;
        const std::string wrong =
            run(shape, random_bytes(m * k, kSeed), random_bytes(n * k, kSeed + 1), in, out);
        EXPECT_TRUE(wrong.empty()) << "m x n x k = " << m << " x " << n << " x " << k << ": " << wrong;
    }

    // All elements of A are `a`, all of W are `w`.
    void expect_all_equal(const MatmulShape& shape, int a, int w) const {
        const std::string wrong = run(
            shape, std::vector<std::int8_t>(shape.m * shape.k, static_cast<std::int8_t>(a)),
            std::vector<std::int8_t>(shape.n * shape.k, static_cast<std::int8_t>(w)), {0, padding(shape.k)});
        EXPECT_TRUE(wrong.empty()) << "k = " << shape.k << ", all of A " << a << ", of W " << w << ": "
                                   << wrong;
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtyOne, MatmulTest, course::each_of(day31::versions()), course::VersionName());

// Around a copy, a step, a stage, all stages in shared memory and one more.
TEST_P(MatmulTest, Depths) {
    for (const std::size_t k :
         {0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 384, 400, 512, 640, 1031})
        expect_right({20, 24, k}, {0, padding(k)});
}

// Around an instruction, a warp's tile and a block's.
TEST_P(MatmulTest, RowsAndColumns) {
    for (const std::size_t m : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129})
        expect_right({m, 10, 48});
    for (const std::size_t n : {0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 255, 256, 257})
        expect_right({10, n, 48});
}

// More tiles than a band is high, and a last band that is lower.
TEST_P(MatmulTest, ManyTiles) {
    expect_right({1300, 140, 32});
    expect_right({257, 389, 160});
}

TEST_P(MatmulTest, Layouts) {
    for (const std::size_t offset : {0, 16, 1, 5})
        for (const std::size_t extra : {0, 16, 1}) {
            if (GetParam()->launcher.needs_aligned_rows && (offset % 16 != 0 || extra % 16 != 0)) continue;
            expect_right({33, 41, 80}, {offset, extra}, {offset % 3, extra % 3});
        }
    expect_right({1, 1, 33});                // of a single row the leading dimension may be anything
    expect_right({40, 36, 64}, {}, {1, 0});  // pairs of results that are not aligned
    expect_right({40, 36, 64}, {}, {0, 1});
}

// The most negative products, and sums that just fit.
TEST_P(MatmulTest, Extremes) {
    for (const int a : {-128, 127})
        for (const int w : {-128, 127})
            expect_all_equal({9, 17, 1024}, a, w);
    // Too large for the 24 bits of a float, and odd.
    expect_all_equal({1, 2, 2051}, 127, 127);
    // On a CPU seconds for all but `scalar`. What else adds in 32 bits, be it __dp4a or tensor
    // cores, adds a longer sum as it adds a shorter one.
    if (!course::is_cpu_stand_in() || GetParam()->name == std::string("scalar"))
        expect_all_equal({1, 2, day31::kLongestSum}, -128, -128);
}

TEST_P(MatmulTest, RandomShapes) {
    course::Random random(kSeed);
    for (int i = 0; i < 10; ++i) {
        const MatmulShape shape{1 + random.below(200), 1 + random.below(300), 1 + random.below(500)};
        expect_right(shape, {0, padding(shape.k)}, {random.below(4), random.below(4)});
    }
}

TEST_P(MatmulTest, Refuses) {
    auto a = course::zeros<std::int8_t>(4 * 131088);
    DeviceBuffer<std::int32_t> c(64);
    const auto launch = [&](std::size_t m, std::size_t k, std::size_t n, std::size_t w_k,
                            std::size_t c_cols) {
        return refusal([&] {
            GetParam()->launcher.launch(a.matrix(m, k), a.matrix(n, w_k), c.matrix(m, c_cols), nullptr);
        });
    };
    EXPECT_EQ(launch(2, 32, 3, 32, 3), "");
    EXPECT_EQ(launch(2, 32, 3, 48, 3), "int8_matmul: w is 3 x 48; expected 3 x 32");
    EXPECT_EQ(launch(2, 32, 3, 32, 4), "int8_matmul: c is 2 x 4; expected 2 x 3");
    EXPECT_EQ(launch(2, 131072, 2, 131072, 2),
              "int8_matmul: k is 131072; expected at most 131071, or sums would not fit in 32 bits");
    const auto on_input =
        course::DeviceSpan<std::int32_t>::from_device_pointer(reinterpret_cast<std::int32_t*>(a.data()), 64);
    EXPECT_EQ(refusal([&] {
                  GetParam()->launcher.launch(a.matrix(2, 32), a.matrix(3, 32), {on_input, 2, 3}, nullptr);
              }),
              "int8_matmul: c overlaps a; expected no memory in common");
    if (!GetParam()->launcher.needs_aligned_rows) return;
    EXPECT_EQ(launch(2, 33, 3, 33, 3),
              "int8_matmul: a has an address % 16 of 0 and rows that are 33 bytes apart; expected 0 and a "
              "multiple of 16");
    EXPECT_EQ(refusal([&] {
                  GetParam()->launcher.launch(a.matrix(2, 32), {a.span().subspan(5, 96), 3, 32},
                                              c.matrix(2, 3), nullptr);
              }),
              "int8_matmul: w has an address % 16 of 5 and rows that are 32 bytes apart; expected 0 and a "
              "multiple of 16");
}

// Small shapes always get small tiles, so every tile is asked for by its name: several of them each
// way, and a last one of a few rows and columns; more steps of K than stages.
class WgmmaTile : public course::DeviceTest {};

TEST_F(WgmmaTile, AllAreRight) {
    const day31::Version& wgmma = course::find_version(day31::versions(), "wgmma");
    if (const std::string reason = wgmma.cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    for (const std::string& tile : day31::wgmma_tiles()) {
        for (const auto& [m, n, k] : {MatmulShape{261, 267, 48}, MatmulShape{70, 260, 1680}}) {
            SCOPED_TRACE(tile + ", k = " + std::to_string(k));
            const std::vector<std::int8_t> a = random_bytes(m * k, kSeed);
            const std::vector<std::int8_t> w = random_bytes(n * k, kSeed + 1);
            std::vector<std::int32_t> expected(m * n);
            day31::int8_matmul_on_cpu({m, n, k}, a, w, expected);
            GuardedMatrix<std::int8_t> x(a, m, k), y(w, n, k);
            for (const std::size_t extra : {0, 1}) {  // with 1, TMA cannot reach the rows of C
                GuardedMatrix<std::int32_t> c(m, n, {0, extra + (4 - n % 4) % 4});
                day31::launch_wgmma_tile(tile, x.view(), y.view(), c.view(), nullptr);
                const course::VerifyResult result = course::verify_exact(c.packed(), expected, n);
                EXPECT_TRUE(result.ok()) << result.message();
                EXPECT_EQ(c.damage(), "");
            }
        }
    }
    GuardedMatrix<std::int32_t> c(1, 1, {});
    const std::vector<std::int8_t> one(16, 1);
    GuardedMatrix<std::int8_t> x(one, 1, 16);
    EXPECT_THROW(day31::launch_wgmma_tile("1x1", x.view(), x.view(), c.view(), nullptr),
                 std::invalid_argument);
}

// More sums than 32 bits count, 17.2 GB of them. All rows and columns differ, so a sum in the wrong
// place shows.
TEST_P(MatmulTest, MoreSumsThan32BitsCount) {
    constexpr std::size_t kM = 131072 + 3;
    constexpr std::size_t kN = 32768 + 5;
    constexpr std::size_t kK = 16;
    if (const std::string reason = course::why_not_so_large(4 * kM * kN); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<std::int8_t> a(kM * kK);
    DeviceBuffer<std::int8_t> w(kN * kK);
    DeviceBuffer<std::int32_t> c(kM * kN);
    static_assert(kM * kN > std::size_t{1} << 32);
    const auto a_value = [](std::size_t row) { return static_cast<int>(row % 251) - 125; };
    const auto w_value = [](std::size_t column) { return static_cast<int>(column % 127) + 1; };
    const auto fill = [](DeviceBuffer<std::int8_t>& buffer, const auto& value) {
        std::vector<std::int8_t> values(buffer.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<std::int8_t>(value(i / kK));
        buffer.copy_from(values);
    };
    fill(a, a_value);
    fill(w, w_value);
    CUDA_CHECK(cudaMemset(c.data(), 0xff, c.bytes()));
    GetParam()->launcher.launch(a.matrix(kM, kK), w.matrix(kN, kK), c.matrix(kM, kN), nullptr);
    std::vector<std::int32_t> got(kN);
    std::vector<std::int32_t> expected(kN);
    constexpr std::size_t kBorder = (std::size_t{1} << 32) / kN;  // the row in which 32 bits end
    for (const std::size_t row : {std::size_t{0}, std::size_t{1}, kM / 2, kBorder, kBorder + 1, kM - 1}) {
        for (std::size_t column = 0; column < kN; ++column)
            expected[column] = static_cast<int>(kK) * a_value(row) * w_value(column);
        CUDA_CHECK(cudaMemcpy(got.data(), c.data() + row * kN, kN * 4, cudaMemcpyDeviceToHost));
        EXPECT_TRUE(course::verify_exact(got, expected).ok()) << "row " << row;
    }
}

// A has more than 2^32 elements. On the CPU, where only the blocks of its last rows run.
TEST_P(MatmulTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kM = (std::size_t{1} << 21) + 3;
    constexpr std::size_t kN = 3;
    constexpr std::size_t kK = 2064;
    const std::vector<double> end = {1};
    const course::LargeArray<std::int8_t> a(kM * kK, 2048 * kK, end);
    const std::vector<std::int8_t> last_row = random_bytes(kK, kSeed);
    std::ranges::copy(last_row, &a[(kM - 1) * kK]);
    const std::vector<std::int8_t> w = random_bytes(kN * kK, kSeed + 1);
    const DeviceBuffer<std::int8_t> w_device{std::span<const std::int8_t>(w)};
    DeviceBuffer<std::int32_t> c(kM * kN);
    course::run_few_blocks(
        [&] {
            GetParam()->launcher.launch(DeviceMatrix<const std::int8_t>(a.span(), kM, kK),
                                        w_device.matrix(kN, kK), c.matrix(kM, kN), nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    std::vector<std::int32_t> expected(kN);
    day31::int8_matmul_on_cpu({1, kN, kK}, last_row, w, expected);
    std::vector<std::int32_t> got(kN);
    CUDA_CHECK(
        cudaMemcpy(got.data(), c.data() + (kM - 1) * kN, kN * sizeof(std::int32_t), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, expected) << "the last row of C; of A " << course::large_element((kM - 1) * kK, kM * kK);
}

TEST(Int8MatmulOnCpu, KnownValues) {
    const std::vector<std::int8_t> a = {1, 2, 3, -4, 5, -6};
    const std::vector<std::int8_t> w = {1, 0, -1, 2, 2, 2};
    std::vector<std::int32_t> c(4);
    day31::int8_matmul_on_cpu({2, 2, 3}, a, w, c);
    EXPECT_EQ(c, (std::vector<std::int32_t>{-2, 12, 2, -10}));
    EXPECT_THROW(day31::int8_matmul_on_cpu({2, 2, 2}, a, w, c), std::invalid_argument);
}

}  // namespace
