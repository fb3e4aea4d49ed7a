// Every version against the CPU, bit by bit: shapes, leading dimensions, misaligned matrices, both
// sizes of element.
#include "transpose.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/require.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DeviceMatrix;
using course::DeviceSpan;
using course::GuardedMatrix;
using day06::Transpose;

struct Layout {
    std::size_t rows;  // of in
    std::size_t cols;
    std::size_t in_padding = 0;  // elements between the rows of in
    std::size_t out_padding = 0;
    std::size_t in_offset = 0;  // elements from an address aligned to 256 bytes
    std::size_t out_offset = 0;
};

std::string text_of(const Layout& layout) {
    return course::shape_text(layout.rows, layout.cols) + " padding " + std::to_string(layout.in_padding) +
           ", " + std::to_string(layout.out_padding) + " offset " + std::to_string(layout.in_offset) + ", " +
           std::to_string(layout.out_offset);
}

// Random bits, so also NaNs of all kinds; but not all bits set, which is how an element that
// nothing has written looks.
template <class T>
std::vector<T> random_bits(std::size_t count, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<T> elements(count);
    for (T& element : elements) {
        element = static_cast<T>(random.next());
        if (element == static_cast<T>(-1)) element = 0;
    }
    return elements;
}

// Runs one version; false if it refuses the problem by its constraint.
template <class T>
[[nodiscard]] bool matches_cpu(const Transpose& version, const Layout& layout,
                               const std::vector<T>& elements) {
    SCOPED_TRACE(std::to_string(8 * sizeof(T)) + " bits, " + text_of(layout));
    GuardedMatrix<T> in(elements, layout.rows, layout.cols, layout.in_padding, layout.in_offset);
    GuardedMatrix<T> out(layout.cols, layout.rows, layout.out_padding, layout.out_offset);
    if (!version.cannot_run(day06::problem_of<T>(in.view(), out.view())).empty()) return false;

    version.launcher(DeviceMatrix<const T>(in.view()), out.view(), nullptr);
    std::vector<T> expected(elements.size());
    day06::transpose_on_cpu(elements, layout.rows, layout.cols, expected);
    course::VerifyResult result = course::verify_exact(out.packed(), expected, layout.rows);
    result.damage = out.damage();
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(in.packed(), elements) << "the input was changed";
    return true;
}

template <class T>
bool matches_cpu(const Transpose& version, const Layout& layout) {
    return matches_cpu(version, layout,
                       random_bits<T>(layout.rows * layout.cols, 31 * layout.rows + layout.cols));
}

class VersionTest : public course::DeviceTestWithParam<const Transpose*> {
  protected:
    // How many of the two element sizes this version has moved.
    int check(const Layout& layout) {
        return int{matches_cpu<std::uint32_t>(*GetParam(), layout)} +
               int{matches_cpu<std::uint16_t>(*GetParam(), layout)};
    }
};

TEST_P(VersionTest, ShapesAroundATile) {
    int moved = 0;
    // Tiles have 32, 64 or 128 rows or columns.
    for (const std::size_t extent : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129}) {
        moved += check({extent, extent});
        moved += check({extent, 40});
        moved += check({24, extent});
    }
    EXPECT_GT(moved, 0);
}

TEST_P(VersionTest, PrimeShapes) {
    for (const Layout& layout : {Layout{2, 3}, {7, 41}, {41, 7}, {101, 103}, {251, 61}, {67, 509}})
        check(layout);
}

// Several tiles each way, the last ones cut off.
TEST_P(VersionTest, SeveralTilesDownAndAcross) {
    EXPECT_GT(check({200, 456}), 0);
    EXPECT_GT(check({520, 1104}), 0);
}

TEST_P(VersionTest, SingleRowsAndColumns) {
    for (const std::size_t length : {2, 33, 257, 1000}) {
        check({1, length});
        check({length, 1});
        // The one row is no reason for the leading dimension to matter.
        check({1, length, 3, 5});
        check({length, 1, 5, 3});
    }
}

TEST_P(VersionTest, LeadingDimensionsOfTheirOwn) {
    int moved = 0;
    for (const std::size_t in_padding : {0, 1, 8, 29})
        for (const std::size_t out_padding : {0, 3, 16})
            moved += check({70, 65, in_padding, out_padding});
    moved += check({72, 136, 8, 24});  // where 16-byte accesses are possible
    EXPECT_GT(moved, 0);
}

TEST_P(VersionTest, MisalignedMatrices) {
    for (std::size_t offset = 1; offset < 8; ++offset) {
        check({72, 136, 0, 0, offset, 0});
        check({72, 136, 0, 0, 0, offset});
        check({96, 64, 0, 0, offset, 8 - offset});
    }
}

TEST_P(VersionTest, MatricesWithoutElements) {
    for (const Layout& layout : {Layout{0, 0}, {0, 5}, {5, 0}, {0, 64, 1, 1}, {64, 0, 1, 1}})
        check(layout);
}

TEST_P(VersionTest, RandomLayouts) {
    course::Random random(606);  // the seed is fixed: a failure names the layout
    const auto up_to = [&](std::uint32_t most) { return static_cast<std::size_t>(random.below(most + 1)); };
    for (int i = 0; i < 12; ++i) {
        const bool aligned = i % 3 == 0;  // for versions that need it
        const std::size_t step = aligned ? 8 : 1;
        check({1 + up_to(150 / step) * step, 1 + up_to(150 / step) * step, up_to(4) * step, up_to(4) * step,
               up_to(3) * step, up_to(3) * step});
        if (aligned) check({8 + up_to(15) * 8, 8 + up_to(15) * 8, up_to(4) * 8, up_to(4) * 8, 8, 16});
    }
}

// Arithmetic on a NaN may set its quiet bit. Moving it must not.
TEST_P(VersionTest, NaNsKeepTheirBits) {
    const std::vector<std::uint32_t> words = {0x7f800001, 0xff800001, 0x7fc00000, 0x7fbfffff,
                                              0x7f812345, 0xffc54321, 0x80000000, 0x00000001};
    std::vector<std::uint32_t> elements(40 * 72);
    for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = words[i % 7] + static_cast<std::uint32_t>(i % 5);
    EXPECT_TRUE(matches_cpu(*GetParam(), {40, 72}, elements));
}

TEST_P(VersionTest, ALaunchInAGraphOnAnotherStream) {
    GuardedMatrix<std::uint32_t> in(random_bits<std::uint32_t>(64 * 96, 1), 64, 96);
    GuardedMatrix<std::uint32_t> out(96, 64);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(DeviceMatrix<const std::uint32_t>(in.view()), out.view(), stream);
    });
    EXPECT_EQ(work.nodes(), 1u) << "launches on the stream that was given: expected 1, got " << work.nodes();
    EXPECT_GT(course::verify_exact(out.packed(), std::vector<std::uint32_t>(64 * 96)).untouched, 0u);
    work.run(2);
    std::vector<std::uint32_t> expected(64 * 96);
    day06::transpose_on_cpu(in.packed(), 64, 96, expected);
    EXPECT_EQ(out.packed(), expected);
}

TEST_P(VersionTest, RefusesWhatIsNotATranspose) {
    course::DeviceBuffer<std::uint32_t> memory{std::vector<std::uint32_t>(4096)};
    const auto matrix = [&](std::size_t offset, std::size_t rows, std::size_t cols) {
        return DeviceMatrix<std::uint32_t>(memory.span().subspan(offset, rows * cols), rows, cols);
    };
    const auto launch = [&](DeviceMatrix<const std::uint32_t> in, DeviceMatrix<std::uint32_t> out) {
        return course::refusal([&] { GetParam()->launcher(in, out, nullptr); });
    };
    EXPECT_EQ(launch(matrix(0, 16, 32), matrix(1024, 16, 32)),
              "transpose: in is 16 x 32, out is 16 x 32; expected out to be 32 x 16");
    EXPECT_EQ(launch(matrix(0, 16, 32), matrix(511, 32, 16)),
              "transpose: out overlaps in; expected no common element");
    EXPECT_EQ(launch(matrix(0, 32, 32), matrix(0, 32, 32)),
              "transpose: out overlaps in; expected no common element");
    EXPECT_EQ(launch(matrix(0, 16, 32), matrix(512, 32, 16)), "");
    CUDA_CHECK(cudaDeviceSynchronize());
}

INSTANTIATE_TEST_SUITE_P(Transpose, VersionTest, course::each_of(day06::versions()), course::VersionName{});

class SkinnyTest : public VersionTest {};

// Each length of the short side, both ways, with several tiles along the long one, and about one.
TEST_P(SkinnyTest, EachNumberOfRowsAndColumns) {
    for (std::size_t few = 1; few <= 32; ++few) {
        const std::size_t tile = 1024 / few / 32 * 32;
        for (const std::size_t many :
             {std::size_t{1}, std::size_t{37}, tile - 1, tile, tile + 1, 2 * tile + 3}) {
            EXPECT_EQ(check({few, many}), 2);
            EXPECT_EQ(check({many, few}), 2);
        }
    }
}

// Of matrices with more tiles than multiprocessors: the large tiles, and pairs of 16-bit elements
// where the long side is even and its rows are aligned.
TEST_P(SkinnyTest, LargeTiles) {
    const std::size_t enough = 4096 * std::size_t{course::multiprocessors()};
    for (const std::size_t few : {2, 11, 31, 32}) {
        const std::size_t many = enough / few;
        for (const std::size_t more : {1, 66}) {
            EXPECT_EQ(check({few, many + more}), 2);
            EXPECT_EQ(check({many + more, few}), 2);
        }
        // Padding between short rows, or along the long side: even, and odd.
        for (const std::size_t padding : {1, 2}) {
            EXPECT_EQ(check({few, many + 65, padding, 0, 0, 0}), 2);
            EXPECT_EQ(check({few, many + 65, 0, 0, padding, 0}), 2);
            EXPECT_EQ(check({few, many + 65, 0, 0, 0, padding}), 2);
        }
    }
}

// A row and a column are the same memory, unless one has padding.
TEST_P(SkinnyTest, RowsAndColumns) {
    for (const std::size_t n : {1, 2, 777}) {
        EXPECT_EQ(check({1, n}), 2);
        EXPECT_EQ(check({n, 1}), 2);
        EXPECT_EQ(check({n, 1, 3, 1, 0, 0}), 2);
        EXPECT_EQ(check({1, n, 0, 1, 2, 1}), 2);
    }
}

TEST_P(SkinnyTest, PaddingAndOffsets) {
    course::Random random(6);
    for (int round = 0; round < 30; ++round) {
        Layout layout{1 + random.below(32), 1 + random.below(3000), random.below(9),
                      random.below(9),      random.below(9),        random.below(9)};
        if (round % 2 == 1) std::swap(layout.rows, layout.cols);
        EXPECT_EQ(check(layout), 2);
    }
    EXPECT_EQ(check({0, 5}), 2);
    EXPECT_EQ(check({5, 0}), 2);
}

TEST_P(SkinnyTest, RefusesWhatIsNotSkinny) {
    EXPECT_EQ(GetParam()->cannot_run({32, 4000, 4000, 32, 4, false}), "");
    EXPECT_EQ(GetParam()->cannot_run({4000, 32, 32, 4000, 2, false}), "");
    EXPECT_EQ(GetParam()->cannot_run({33, 40, 40, 33, 4, true}),
              "33 x 40; this version needs at most 32 rows or 32 columns");
}

INSTANTIATE_TEST_SUITE_P(Transpose, SkinnyTest, course::each_of(day06::skinny_versions()),
                         course::VersionName{});

// --- Constraints ---------------------------------------------------------------------------------

std::string why_not(const char* version, const day06::Problem& problem) {
    return course::find_version(day06::versions(), version).cannot_run(problem);
}

TEST(Constraints, TheFirstVersionsCountInInts) {
    const std::size_t n = 46341;  // n * n is just above 2^31
    const day06::Problem large{n, n, n, n, 4, false};
    EXPECT_EQ(why_not("tiled", large),
              "rows * leading dimension is more than 2^31 - 1; this version counts elements in an int");
    EXPECT_EQ(why_not("tiled", {n - 1, n - 1, n - 1, n - 1, 4, false}), "");
    EXPECT_EQ(why_not("aligned", large), "");
    // Rows belong to in_ld, columns to out_ld.
    const std::size_t wide = std::size_t{1} << 29;
    EXPECT_EQ(why_not("naive", {3, wide, wide, 3, 4, false}), "");
    EXPECT_NE(why_not("naive", {4, wide, wide, 4, 4, false}), "");
    EXPECT_NE(why_not("naive", {3, wide, wide, 4, 4, false}), "");
}

TEST(Constraints, TheFirstVersionsEndWithTheGrid) {
    const std::size_t tall = 65535 * 32;
    EXPECT_EQ(why_not("tiled", {tall, 1, 1, tall, 4, false}), "");
    EXPECT_EQ(why_not("tiled", {tall + 1, 1, 1, tall + 1, 4, false}),
              "2097121 rows are more tiles than the 65535 of a grid's y");
    EXPECT_EQ(why_not("strided_loads", {tall + 1, 1, 1, tall + 1, 4, false}), "");
    EXPECT_EQ(why_not("strided_loads", {1, tall + 1, tall + 1, 1, 4, false}),
              "2097121 columns are more tiles than the 65535 of a grid's y");
}

TEST(Constraints, OnlyTheLastVersionsMoveHalves) {
    EXPECT_EQ(why_not("naive", {2, 2, 2, 2, 2, false}),
              "elements have 2 bytes; this version moves 4-byte elements");
    course::DeviceBuffer<std::uint16_t> memory(8);
    const DeviceMatrix<const std::uint16_t> in(memory.span().subspan(0, 4), 2, 2);
    const DeviceMatrix<std::uint16_t> out(memory.span().subspan(4, 4), 2, 2);
    EXPECT_EQ(
        course::refusal([&] { course::find_version(day06::versions(), "naive").launcher(in, out, nullptr); }),
        "transpose: elements have 2 bytes; this version moves 4-byte elements");
}

TEST(Constraints, PacksMustBeAligned) {
    EXPECT_EQ(why_not("vectorised", {4, 4, 4, 4, 4, true}), "");
    EXPECT_EQ(why_not("vectorised", {4, 6, 8, 4, 4, true}),
              "4 x 6 with leading dimensions 8 and 4; this version needs multiples of 4 and 16-byte aligned "
              "matrices");
    EXPECT_NE(why_not("vectorised", {4, 8, 8, 4, 2, true}), "");
    EXPECT_NE(why_not("vectorised", {8, 8, 9, 8, 4, false}), "");
}

// An address and a leading dimension of each matrix: none of the four may be forgotten.
TEST(Constraints, ProblemOfLooksAtBothMatrices) {
    course::DeviceBuffer<std::uint32_t> memory(512);
    const auto packs_aligned = [&](std::size_t in_offset, std::size_t in_ld, std::size_t out_offset,
                                   std::size_t out_ld) {
        const DeviceMatrix<const std::uint32_t> in(memory.span().subspan(in_offset, 8 * in_ld), 8, 8, in_ld);
        const DeviceMatrix<std::uint32_t> out(memory.span().subspan(256 + out_offset, 8 * out_ld), 8, 8,
                                              out_ld);
        return day06::problem_of(in, out).packs_aligned;
    };
    EXPECT_TRUE(packs_aligned(0, 8, 0, 8));
    EXPECT_TRUE(packs_aligned(4, 12, 8, 16));
    EXPECT_FALSE(packs_aligned(1, 8, 0, 8));
    EXPECT_FALSE(packs_aligned(0, 9, 0, 8));
    EXPECT_FALSE(packs_aligned(0, 8, 2, 8));
    EXPECT_FALSE(packs_aligned(0, 8, 0, 10));
}

// --- Large ---------------------------------------------------------------------------------------

using Large = course::DeviceTest;

// More rows, and then more columns, than the 65535 blocks of a grid's y have at 32 to a block.
TEST_F(Large, TallAndWideMatrices) {
    const std::size_t extent = 65535 * 32 + 65;
    if (const std::string reason = course::why_not_so_large(4 * extent * 4); !reason.empty())
        GTEST_SKIP() << reason;
    const Transpose& aligned = course::find_version(day06::versions(), "aligned");
    EXPECT_TRUE(matches_cpu<std::uint32_t>(aligned, {extent, 3, 0, 1}));
    EXPECT_TRUE(matches_cpu<std::uint32_t>(aligned, {3, extent, 1, 0}));
}

// Transposes a matrix of 16-bit elements and transposes it back. The matrix is a pattern, over and
// over, so that gigabytes need not be filled and copied by the host.
void there_and_back(const char* name, std::size_t rows, std::size_t cols) {
    SCOPED_TRACE(name);
    constexpr std::size_t kPeriod = 1000003;
    const std::vector<std::uint16_t> pattern = random_bits<std::uint16_t>(kPeriod, 6);
    course::DeviceBuffer<std::uint16_t> in(rows * cols);
    course::DeviceBuffer<std::uint16_t> out(rows * cols);
    course::copy_host_to_device(in.data(), kPeriod, pattern.data(), kPeriod, sizeof pattern[0], nullptr);
    for (std::size_t filled = kPeriod; filled < in.size(); filled *= 2)
        CUDA_CHECK(cudaMemcpy(in.data() + filled, in.data(), 2 * std::min(filled, in.size() - filled),
                              cudaMemcpyDeviceToDevice));
    CUDA_CHECK(cudaMemset(out.data(), 0xff, out.bytes()));

    const auto launch = [&](auto from, auto to) {
        course::find_version(day06::versions(), name)
            .launcher(DeviceMatrix<const std::uint16_t>(from), to, nullptr);
    };
    launch(in.matrix(rows, cols), out.matrix(cols, rows));
    // Rows of the result from everywhere; every second one is near the end, where an index is
    // largest.
    course::Random random(1);
    std::vector<std::uint16_t> turned(rows);
    std::size_t wrong = 0;
    for (int i = 0; i < 100; ++i) {
        const std::size_t col =
            i % 2 == 0 ? random.below(static_cast<std::uint32_t>(cols)) : cols - 1 - random.below(40);
        course::copy_device_to_host(turned.data(), rows, out.data() + col * rows, rows, sizeof turned[0],
                                    nullptr);
        for (std::size_t row = 0; row < rows; ++row)
            wrong += turned[row] == pattern[(row * cols + col) % kPeriod] ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u) << "of the " << 100 * rows << " elements that were looked at";

    CUDA_CHECK(cudaMemset(in.data(), 0xff, in.bytes()));
    launch(out.matrix(cols, rows), in.matrix(rows, cols));
    std::vector<std::uint16_t> back(kPeriod);
    for (std::size_t first = 0; first < in.size(); first += kPeriod) {
        const std::size_t count = std::min(kPeriod, in.size() - first);
        course::copy_device_to_host(back.data(), count, in.data() + first, count, sizeof back[0], nullptr);
        ASSERT_TRUE(
            std::equal(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(count), pattern.begin()))
            << "elements " << first << " to " << first + count - 1;
    }
}

// More than 2^31 elements: each index needs more than an int.
TEST_F(Large, MoreThanTwoToThe31Elements) {
    const std::size_t extent = 46341;
    if (const std::string reason = course::why_not_so_large(2 * (extent + 8) * (extent + 8) * 2);
        !reason.empty())
        GTEST_SKIP() << reason;
    there_and_back("aligned", extent, extent + 2);
    there_and_back("vectorised", extent + 3, extent + 3);
}

// The corners of a matrix of more than 2^32 elements, of which the other blocks do not run.
template <class T>
void expect_corners(const char* name, std::size_t extent) {
    SCOPED_TRACE(name);
    const std::vector<double> ends = {0, 1};
    course::LargeArray<T> in(extent * extent, 1000 * extent, ends);
    course::LargeArray<T> out(extent * extent, 1000 * extent, ends);
    const auto for_corners = [&](auto visit) {
        for (const std::size_t first : {std::size_t{0}, extent - 60}) {
            for (std::size_t row = first; row < first + 60; ++row) {
                for (std::size_t col = first; col < first + 60; ++col)
                    visit(row, col);
            }
        }
    };
    course::Random random(6);
    for_corners(
        [&](std::size_t row, std::size_t col) { in[row * extent + col] = static_cast<T>(random.next()); });
    course::run_few_blocks(
        [&] {
            course::find_version(day06::versions(), name)
                .launcher(DeviceMatrix<const T>(in.span(), extent, extent),
                          DeviceMatrix<T>(out.span(), extent, extent), nullptr);
        },
        ends);
    if (testing::Test::HasFatalFailure()) return;
    for_corners([&](std::size_t row, std::size_t col) {
        ASSERT_EQ(out[col * extent + row], in[row * extent + col])
            << course::large_element(col * extent + row, extent * extent);
    });
}

TEST_F(Large, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    // The last tile is whole, or lacks a row and a column.
    expect_corners<std::uint32_t>("vectorised", 513 * 128);
    expect_corners<std::uint16_t>("vectorised", 513 * 128);
    expect_corners<std::uint32_t>("aligned", 513 * 128 - 1);
    expect_corners<std::uint16_t>("aligned", 513 * 128 - 1);
}

TEST(Reference, RefusesWrongSizes) {
    std::vector<std::uint16_t> six(6), five(5);
    EXPECT_EQ(course::refusal([&] { day06::transpose_on_cpu(six, 2, 3, five); }),
              "transpose_on_cpu: in has 6 elements, out has 5; expected 2 x 3 each");
}

}  // namespace
