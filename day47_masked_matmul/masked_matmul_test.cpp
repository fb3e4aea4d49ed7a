// Masked products: every version, every kind of mask, awkward shapes.
#include "masked_matmul.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/verify.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::Batch;
using course::DataPattern;
using course::DeviceBuffer;
using course::refusal;
using Layout = course::BatchLayout;
using course::Op;
using course::TestBatch;
using day47::Mask;
using day47::MaskedShape;
using day47::MaskLevels;

using Byte = std::uint8_t;

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// `count` arrays of m x n, each byte not 0 with probability `density`; not 0 is not always 1.
std::vector<Byte> random_bytes(std::size_t size, double density, course::Random& random) {
    std::vector<Byte> bytes(size);
    for (Byte& byte : bytes) {
        if (random.uniform(0, 1) < static_cast<float>(density)) byte = random.below(2) == 0 ? 1 : 0x80;
    }
    return bytes;
}

// Pieces of extent x extent of which nothing, everything, or something is kept.
std::vector<Byte> pieces(const MaskedShape& s, std::size_t arrays, std::size_t extent,
                         course::Random& random) {
    const std::size_t across = s.n / extent + 1;
    const std::size_t down = s.m / extent + 1;
    std::vector<std::uint32_t> states(arrays * down * across);
    for (std::uint32_t& state : states)
        state = random.below(5);
    std::vector<Byte> bytes(arrays * s.m * s.n);
    for (std::size_t e = 0; e < bytes.size(); ++e) {
        const std::size_t row = e / s.n % s.m;
        const std::size_t piece = (e / (s.m * s.n) * down + row / extent) * across + e % s.n / extent;
        bytes[e] = static_cast<Byte>(states[piece] < 2 ? 0 : states[piece] < 4 ? 1 : random.below(2));
    }
    return bytes;
}

// One for all products: as often as there are products.
std::vector<Byte> for_each_product(const std::vector<Byte>& bytes, std::size_t count) {
    std::vector<Byte> all;
    for (std::size_t i = 0; i < count; ++i)
        all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
}

// How arrays lie in memory.
struct ArrayLayout {
    std::size_t padding = 0;
    std::size_t misaligned_by = 0;
    bool pointers = false;  // the last array first
};

// Arrays of m x n between guards, and with bytes that are not 0 between their rows.
class TestArrays {
  public:
    TestArrays(const std::vector<Byte>& bytes, std::size_t arrays, std::size_t m, std::size_t n,
               const ArrayLayout& layout)
        : memory_(layout.pointers ? reversed(bytes, arrays) : bytes, arrays * m, n, layout.padding,
                  layout.misaligned_by) {
        const course::DeviceMatrix<const Byte> all = memory_.view();
        const std::size_t pitch = all.leading_dimension();
        const auto span = course::DeviceSpan<const Byte>::from_device_pointer(
            all.data(), m == 0 || n == 0 ? 0 : (m - 1) * pitch + n);
        view_ = {.first = {span, m, n, pitch}, .count = arrays, .stride = arrays == 1 ? 0 : m * pitch};
        if (!layout.pointers) return;
        std::vector<const Byte*> pointers;
        for (std::size_t i = arrays; i-- > 0;)
            pointers.push_back(all.data() + i * m * pitch);
        pointers_ = DeviceBuffer<const Byte*>(std::span<const Byte* const>(pointers));
        view_.pointers = std::as_const(pointers_).span();
    }

    const Batch<const Byte>& view() const { return view_; }
    std::string damage() const { return memory_.damage(); }

  private:
    static std::vector<Byte> reversed(const std::vector<Byte>& bytes, std::size_t arrays) {
        std::vector<Byte> others;
        for (std::size_t i = arrays; i-- > 0;) {
            const auto size = static_cast<std::ptrdiff_t>(bytes.size() / arrays);
            const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i) * size;
            others.insert(others.end(), begin, begin + size);
        }
        return others;
    }

    course::GuardedMatrix<Byte> memory_;
    Batch<const Byte> view_;
    DeviceBuffer<const Byte*> pointers_;
};

struct Layouts {
    Layout a{};
    Layout b{};
    Layout c{};
};

class MaskedTest : public course::DeviceTestWithParam<const day47::Masked*> {
  protected:
    // Where a row or column of a product keeps nothing, the operands are NaN.
    static void spoil_dropped_operands(const MaskedShape& s, std::span<const Byte> keep,
                                       std::vector<float>& a, std::vector<float>& b) {
        const auto is_dropped = [](Byte byte) { return byte == 0; };
        for (std::size_t i = 0; i < s.count; ++i) {
            const Byte* const kept = keep.data() + i * s.m * s.n;
            for (std::size_t row = 0; row < s.m; ++row)
                if (std::all_of(kept + row * s.n, kept + (row + 1) * s.n, is_dropped))
                    std::fill_n(a.data() + (i * s.m + row) * s.k, s.k, kNan);
            std::vector<Byte> col_is_kept(s.n);
            for (std::size_t e = 0; e < s.m * s.n; ++e)
                col_is_kept[e % s.n] |= kept[e];
            for (std::size_t e = 0; e < s.k * s.n; ++e)
                if (is_dropped(col_is_kept[e % s.n])) b[i * s.k * s.n + e] = kNan;
        }
    }

    // `keep`: the mask as bytes, for all products.
    void expect_right(const MaskedShape& s, const Mask& mask, std::span<const Byte> keep,
                      const std::string& what, const Layouts& layouts = {}, float alpha = 1,
                      float fill = -kInf, DataPattern pattern = DataPattern::kSignedUniform) const {
        auto a = course::make_data<float>(s.count * s.m * s.k, pattern, 1);
        auto b = course::make_data<float>(s.count * s.k * s.n, pattern, 2);
        spoil_dropped_operands(s, keep, a, b);
        const auto expected = day47::multiply_masked_on_cpu(s, alpha, a, b, keep, fill);
        TestBatch<const float> a_device(a, s.count, s.m, s.k, layouts.a);
        TestBatch<const float> b_device(b, s.count, s.k, s.n, layouts.b);
        TestBatch<float> c_device(s.count, s.m, s.n, layouts.c);
        GetParam()->launcher.launch(
            {.operands = {a_device.view(), b_device.view(), layouts.a.op, layouts.b.op},
             .c = c_device.view(),
             .mask = mask,
             .alpha = alpha,
             .fill = fill},
            nullptr);
        course::VerifyResult result = course::verify(
            c_device.packed(), expected.values, {.terms = s.k + 1, .growth = course::Growth::kSquareRoot},
            expected.magnitudes, s.n);
        result.damage = c_device.damage() + a_device.damage() + b_device.damage();
        EXPECT_TRUE(result.ok()) << what << ", " << s.count << " of " << s.m << " x " << s.n << " x " << s.k
                                 << (layouts.a.op == Op::kNone ? ", N" : ", T")
                                 << (layouts.b.op == Op::kNone ? "N" : "T") << ": " << result.message();
    }

    void expect_band(const MaskedShape& s, const Mask& mask, const Layouts& layouts = {}, float alpha = 1,
                     float fill = -kInf, DataPattern pattern = DataPattern::kSignedUniform) const {
        expect_right(
            s, mask, for_each_product(day47::band_as_bytes(mask, s.m, s.n), s.count),
            "band " + std::to_string(mask.below) + " below, " + std::to_string(mask.above) + " above",
            layouts, alpha, fill, pattern);
    }

    // One array for each product, or one for all of them.
    void expect_array(const MaskedShape& s, const std::vector<Byte>& bytes, const std::string& what,
                      const ArrayLayout& array_layout = {}, const Layouts& layouts = {}, float alpha = 1,
                      float fill = -kInf, DataPattern pattern = DataPattern::kSignedUniform) const {
        const bool one_for_all = bytes.size() == s.m * s.n;
        const TestArrays arrays(bytes, one_for_all ? 1 : s.count, s.m, s.n, array_layout);
        MaskLevels levels(GetParam()->launcher, arrays.view());
        levels.build(nullptr);
        expect_right(s, levels.mask(), one_for_all ? for_each_product(bytes, s.count) : bytes, what, layouts,
                     alpha, fill, pattern);
        EXPECT_EQ(arrays.damage(), "") << what;
    }
};

INSTANTIATE_TEST_SUITE_P(DayFortySeven, MaskedTest, course::each_of(day47::masked_versions()),
                         course::VersionName());

TEST_P(MaskedTest, EveryLayout) {
    course::Random random(1);
    for (const Op op_a : kOps) {
        for (const Op op_b : kOps) {
            for (const MaskedShape& s :
                 {MaskedShape{1, 1, 1, 1}, MaskedShape{3, 33, 65, 17}, MaskedShape{1, 132, 260, 12}}) {
                const Layouts layouts{.a = {.op = op_a}, .b = {.op = op_b}};
                for (const Mask& mask : {Mask::none(), Mask::causal(), Mask::banded(3, 40)})
                    expect_band(s, mask, layouts);
                expect_array(s, random_bytes(s.count * s.m * s.n, 0.5, random), "array", {}, layouts);
            }
            const MaskedShape s{2, 36, 68, 20};
            for (const Layouts& layouts :
                 {Layouts{{.op = op_a, .padding = 4}, {.op = op_b, .padding = 8}, {.padding = 4}},
                  Layouts{{.op = op_a, .padding = 3}, {.op = op_b, .padding = 4}, {.padding = 1}},
                  Layouts{{.op = op_a, .misaligned_by = 1}, {.op = op_b}, {.misaligned_by = 2}},
                  Layouts{{.op = op_a, .pointers = true},
                          {.op = op_b, .pointers = true},
                          {.padding = 2, .pointers = true}}}) {
                expect_band(s, Mask::causal(), layouts);
                expect_array(s, random_bytes(s.m * s.n, 0.5, random), "array", {}, layouts);
            }
        }
    }
}

// Where the diagonal enters and leaves the matrix, a tile, and a warp's part of it.
TEST_P(MaskedTest, CausalWithOffsets) {
    for (const std::int64_t offset : {-1000, -128, -127, -65, -1, 0, 1, 64, 127, 128, 129, 260, 1000})
        expect_band({1, 140, 270, 2}, Mask::causal(offset));
    for (const std::int64_t offset : {-270, -200, -128, 0, 1, 128})
        expect_band({1, 280, 130, 2}, Mask::causal(offset));
    expect_band({2, 400, 530, 1}, Mask::causal());
}

TEST_P(MaskedTest, Bands) {
    for (const std::int64_t width : {0, 1, 40, 300}) {
        for (const MaskedShape& s :
             {MaskedShape{1, 128, 256, 2}, MaskedShape{1, 257, 129, 2}, MaskedShape{2, 70, 400, 2}})
            expect_band(s, Mask::banded(width, width));
    }
    // Nothing is kept on both sides of it.
    for (const std::int64_t width : {1, 40, 130})
        expect_band({1, 400, 800, 1}, Mask::banded(width, width));
}

// One end of a band on the other side of the diagonal, or far away.
TEST_P(MaskedTest, LopsidedBands) {
    constexpr std::int64_t kFurther = std::int64_t{1} << 40;
    const std::pair<std::int64_t, std::int64_t> bands[] = {
        {-10, 10},         {-130, 200},     {200, -130},      {-128, 128},
        {128, -127},       {0, Mask::kFar}, {-3, Mask::kFar}, {Mask::kFar, -3},
        {150, Mask::kFar}, {kFurther, 5},   {5, kFurther},    {kFurther, -kFurther}};
    for (const auto& [below, above] : bands)
        expect_band({1, 200, 260, 2}, Mask::banded(below, above));
}

TEST_P(MaskedTest, ArraysOfEveryDensity) {
    course::Random random(2);
    for (const double density : {0.0, 0.01, 0.5, 1.0}) {
        const std::string what = "density " + std::to_string(density);
        for (const MaskedShape& s : {MaskedShape{2, 1, 5, 3}, MaskedShape{2, 64, 64, 3},
                                     MaskedShape{1, 128, 256, 4}, MaskedShape{1, 129, 257, 4}}) {
            expect_array(s, random_bytes(s.count * s.m * s.n, density, random), what);
            expect_array(s, random_bytes(s.m * s.n, density, random), what + ", one for all");
        }
    }
}

// A single element that is kept, or is not, wherever it stands in a tile.
TEST_P(MaskedTest, ArraysWithOneOddElement) {
    course::Random random(3);
    SCOPED_TRACE("course::Random seed 3");
    for (int round = 0; round < 6; ++round) {
        const MaskedShape s{1, 130, 258, 2};
        for (const Byte odd : {0, 1}) {
            std::vector<Byte> bytes(s.m * s.n, static_cast<Byte>(1 - odd));
            const auto at = random.below(static_cast<std::uint32_t>(bytes.size()));
            bytes[at] = odd;
            expect_array(s, bytes, "all but " + std::to_string(at) + " are " + std::to_string(1 - odd));
        }
    }
}

TEST_P(MaskedTest, ArraysOfWholePieces) {
    course::Random random(4);
    SCOPED_TRACE("course::Random seed 4");
    for (const std::size_t extent : {32, 64, 128, 256}) {
        const MaskedShape s{1, 270, 530, 3};
        expect_array(s, pieces(s, s.count, extent, random), "pieces of " + std::to_string(extent));
    }
    const MaskedShape deep{2, 150, 260, 41};
    expect_array(deep, pieces(deep, deep.count, 64, random), "pieces of 64");
    expect_array(deep, pieces(deep, 1, 64, random), "pieces of 64, one for all");
}

TEST_P(MaskedTest, ArraysInEveryLayout) {
    course::Random random(5);
    for (const MaskedShape& s : {MaskedShape{3, 30, 44, 5}, MaskedShape{1, 131, 70, 5}}) {
        for (const ArrayLayout& layout :
             {ArrayLayout{.padding = 4}, ArrayLayout{.padding = 1}, ArrayLayout{.misaligned_by = 1},
              ArrayLayout{.padding = 2, .misaligned_by = 3}, ArrayLayout{.pointers = true}}) {
            expect_array(s, random_bytes(s.count * s.m * s.n, 0.4, random), "array", layout);
            expect_array(s, random_bytes(s.m * s.n, 0.4, random), "one for all", layout);
        }
    }
}

// More tiles than resident blocks: each block multiplies several and fills some in between.
TEST_P(MaskedTest, ManyProducts) {
    course::Random random(6);
    const MaskedShape s{50, 10, 7, 9};
    expect_band(s, Mask::causal());
    expect_array(s, pieces(s, s.count, 256, random), "whole products");
    expect_array(s, random_bytes(s.m * s.n, 0.3, random), "one for all");
    const MaskedShape large{3, 270, 280, 2};
    expect_band(large, Mask::causal());
    expect_array(large, pieces(large, 1, 128, random), "tiles");
}

// Dropped tiles are filled four elements at a time, or one by one if the rows of C are not aligned.
TEST_P(MaskedTest, WholeTilesAreFilledInEveryLayoutOfC) {
    const Mask diagonal = Mask::banded(0, 0);
    for (const std::size_t k : {1, 9, 41}) {
        const MaskedShape s{2, 128, 512, k};
        for (const Layout& c : {Layout{}, Layout{.padding = 4}, Layout{.padding = 1},
                                Layout{.misaligned_by = 2}, Layout{.padding = 8, .pointers = true}})
            expect_band(s, diagonal, {.c = c});
        expect_array(s, day47::band_as_bytes(diagonal, s.m, s.n), "diagonal", {}, {.c = {.padding = 4}});
    }
}

// A block has three whole tiles to fill, or more, and one to multiply or none.
TEST_P(MaskedTest, BlocksFillSeveralTiles) {
    const std::size_t blocks =
        course::is_cpu_stand_in() ? 8 : 2;  // on a multiprocessor: registers limit only a GPU's
    const MaskedShape s{course::multiprocessors() * blocks / 2, 128, 1024, 9};
    expect_band(s, Mask::banded(0, 0));
}

// In 140 x 200 there are warps of whose part of a tile all is kept, some, and nothing.
TEST_P(MaskedTest, AlphaAndFillOfBands) {
    for (const float alpha : {0.125f, -2.0f, 0.0f}) {
        for (const float fill : {0.0f, 7.5f, kInf, kNan})
            expect_band({2, 140, 200, 12}, Mask::causal(20), {}, alpha, fill);
    }
}

TEST_P(MaskedTest, AlphaAndFillOfArrays) {
    course::Random random(7);
    const MaskedShape s{2, 40, 140, 12};
    for (const float alpha : {0.125f, -2.0f, 0.0f}) {
        for (const float fill : {0.0f, 7.5f, kInf, kNan}) {
            expect_array(s, random_bytes(s.m * s.n, 0.3, random), "array", {}, {}, alpha, fill);
            expect_array(s, std::vector<Byte>(s.m * s.n, 1), "all ones", {}, {}, alpha, fill);
        }
    }
}

TEST_P(MaskedTest, Depths) {
    course::Random random(8);
    for (const std::size_t k : {0, 1, 7, 8, 9, 16, 24, 31, 33, 97}) {
        const MaskedShape s{3, 40, 200, k};
        expect_band(s, Mask::causal(30), {.b = {.op = Op::kTranspose}});
        expect_array(s, pieces(s, s.count, 64, random), "pieces of 64");
    }
}

TEST_P(MaskedTest, Patterns) {
    course::Random random(9);
    const MaskedShape s{1, 140, 150, 30};
    for (const DataPattern pattern :
         {DataPattern::kNormal, DataPattern::kHugeNextToTiny, DataPattern::kWithNan, DataPattern::kWithInf}) {
        for (const Op op_b : kOps) {
            const Layouts layouts{.b = {.op = op_b}};
            expect_band(s, Mask::causal(), layouts, 1, 0, pattern);
            expect_array(s, random_bytes(s.m * s.n, 0.5, random), "array", {}, layouts, 1, 0, pattern);
        }
    }
}

TEST_P(MaskedTest, NothingToWrite) {
    for (const MaskedShape& s : {MaskedShape{0, 4, 4, 4}, MaskedShape{2, 0, 4, 4}, MaskedShape{2, 4, 0, 4}}) {
        expect_band(s, Mask::causal());
        expect_right(s, Mask::array(TestArrays({}, s.count, s.m, s.n, {}).view()), {}, "array");
    }
}

// What skip_tiles_mma multiplies on tensor cores. The bands end in the corners of its tiles.
TEST_P(MaskedTest, SumsAlongRows) {
    const Layouts transposed{.b = {.op = Op::kTranspose}};
    const MaskedShape s{1, 140, 150, 17};
    for (const std::int64_t offset : {-66, -65, -64, -63, 0, 62, 63, 64, 65}) {
        expect_band(s, Mask::causal(offset), transposed);
        expect_band(s, Mask::banded(offset, 1000), transposed);
    }
    for (const std::size_t padding : {0, 3, 4}) {
        for (const bool pointers : {false, true}) {
            for (const std::size_t misaligned_by : {0, 1}) {
                const Layout rows{.padding = padding, .misaligned_by = misaligned_by, .pointers = pointers};
                Layout columns = rows;
                columns.op = Op::kTranspose;
                expect_band({3, 70, 66, 24}, Mask::causal(5), {rows, columns, rows}, -2, kNan);
            }
        }
    }
    course::Random random(11);
    expect_array(s, pieces(s, 1, 64, random), "pieces of 64", {}, transposed);
    expect_array({2, 70, 66, 40}, random_bytes(70 * 66, 0.01, random), "few", {.padding = 3}, transposed);
}

// Products of which nothing is kept have null pointers as operands: a kernel that reads them is
// stopped.
TEST_P(MaskedTest, SkippedTilesAreNotRead) {
    const MaskedShape s{3, 130, 141, 20};
    std::vector<Byte> bytes(s.count * s.m * s.n);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(s.m * s.n), s.m * s.n, Byte{1});
    const TestArrays arrays(bytes, s.count, s.m, s.n, {.padding = 3});  // bytes between rows are not 0
    if (GetParam()->launcher.levels_size(arrays.view()) == 0 && GetParam()->name != "skip_tiles_mma")
        GTEST_SKIP() << "this version skips no tile";
    MaskLevels levels(GetParam()->launcher, arrays.view());
    levels.build(nullptr);
    const std::vector<float> ones(s.m * s.k + s.k * s.n, 1.0f);
    TestBatch<const float> a(std::span<const float>(ones).first(s.m * s.k), 1, s.m, s.k, {});
    TestBatch<const float> b(std::span<const float>(ones).first(s.k * s.n), 1, s.k, s.n,
                             {.op = Op::kTranspose});
    TestBatch<float> c(s.count, s.m, s.n, {});
    const auto only_second = [&](TestBatch<const float>& batch) {
        const float* const pointers[] = {nullptr, batch.view().first.data(), nullptr};
        return DeviceBuffer<const float*>(std::span<const float* const>(pointers));
    };
    const DeviceBuffer<const float*> a_pointers = only_second(a);
    const DeviceBuffer<const float*> b_pointers = only_second(b);
    course::Operands operands{a.view(), b.view(), Op::kNone, Op::kTranspose};
    operands.a.count = operands.b.count = s.count;
    operands.a.pointers = a_pointers.span();
    operands.b.pointers = b_pointers.span();
    GetParam()->launcher.launch(
        {.operands = operands, .c = c.view(), .mask = levels.mask(), .alpha = 1, .fill = 5}, nullptr);
    std::vector<float> expected(s.count * s.m * s.n, 5.0f);
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(s.m * s.n), s.m * s.n, 20.0f);
    EXPECT_EQ(c.packed(), expected);
}

TEST_P(MaskedTest, LevelsServeManyProductsAndAreBuiltAgain) {
    const MaskedShape s{1, 140, 270, 2};
    course::Random random(10);
    std::vector<Byte> bytes = pieces(s, 1, 64, random);
    DeviceBuffer<Byte> memory{std::span<const Byte>(bytes)};
    MaskLevels levels(GetParam()->launcher, {.first = std::as_const(memory).matrix(s.m, s.n)});
    for (int round = 0; round < 2; ++round) {
        levels.build(nullptr);
        const auto keep = for_each_product(bytes, 2);
        for (const std::size_t count : {1, 2})
            expect_right({count, s.m, s.n, s.k}, levels.mask(),
                         std::span<const Byte>(keep).first(count * s.m * s.n), "one for all");
        bytes = pieces(s, 1, 128, random);
        memory.copy_from(bytes);
    }
}

TEST_P(MaskedTest, RandomShapes) {
    course::Random random(4547);
    SCOPED_TRACE("course::Random seed 4547");
    for (int round = 0; round < 8; ++round) {
        const MaskedShape s{1 + random.below(3), 1 + random.below(300), 1 + random.below(400),
                            random.below(30)};
        const auto layout = [&] {
            return Layout{random.below(2) == 0 ? Op::kNone : Op::kTranspose, random.below(5), random.below(3),
                          random.below(2) == 1};
        };
        const Layouts layouts{
            layout(), layout(), {Op::kNone, random.below(5), random.below(3), random.below(2) == 1}};
        const std::int64_t below = random.integer(-200, 400);
        expect_band(s, Mask::banded(below, -below + random.integer(0, 300)), layouts);
        expect_band(s, Mask::causal(random.integer(-300, 300)), layouts);
        const ArrayLayout array_layout{random.below(5), random.below(4), random.below(2) == 1};
        const std::size_t arrays = random.below(2) == 0 ? 1 : s.count;
        expect_array(s, pieces(s, arrays, std::size_t{32} << random.below(3), random), "pieces", array_layout,
                     layouts);
    }
}

TEST_P(MaskedTest, RunsOnTheGivenStream) {
    const MaskedShape s{2, 20, 30, 10};
    TestBatch<const float> a(std::vector<float>(s.count * s.m * s.k, 1.0f), s.count, s.m, s.k, {});
    TestBatch<const float> b(std::vector<float>(s.count * s.k * s.n, 1.0f), s.count, s.k, s.n, {});
    const std::vector<Byte> ones(s.m * s.n, 1);
    const TestArrays arrays(ones, 1, s.m, s.n, {});
    MaskLevels levels(GetParam()->launcher, arrays.view());
    for (const Mask& mask : {Mask::none(), levels.mask()}) {
        TestBatch<float> c(s.count, s.m, s.n, {});
        const course::CapturedWork work([&](cudaStream_t stream) {
            if (mask.kind == Mask::Kind::kArray) levels.build(stream);
            GetParam()->launcher.launch({.operands = {a.view(), b.view()}, .c = c.view(), .mask = mask},
                                        stream);
        });
        EXPECT_TRUE(std::isnan(c.packed().front())) << "it ran instead of being captured";
        work.run(2);
        EXPECT_EQ(c.packed(), std::vector<float>(s.count * s.m * s.n, 10.0f));
    }
}

TEST_P(MaskedTest, RefusesBadArguments) {
    TestBatch<const float> a(std::vector<float>(2 * 3 * 4), 2, 3, 4, {});
    TestBatch<const float> b(std::vector<float>(2 * 4 * 6), 2, 4, 6, {});
    TestBatch<float> c(2, 3, 6, {});
    TestBatch<float> small(2, 3, 5, {});
    const TestArrays arrays(std::vector<Byte>(2 * 3 * 6), 2, 3, 6, {});
    const TestArrays three(std::vector<Byte>(3 * 3 * 6), 3, 3, 6, {});
    const TestArrays narrow(std::vector<Byte>(3 * 5), 1, 3, 5, {});
    const day47::MaskedMatmul right{
        .operands = {a.view(), b.view()}, .c = c.view(), .mask = Mask::causal(-100)};
    const auto with = [&](auto change) {
        day47::MaskedMatmul matmul = right;
        change(matmul);
        return refusal([&] { GetParam()->launcher.launch(matmul, nullptr); });
    };
    EXPECT_EQ(with([](auto&) {}), "");
    EXPECT_EQ(with([](auto& x) { std::swap(x.operands.a, x.operands.b); }),
              "masked matmul: op(A) is 4 x 6 and op(B) 3 x 4; expected as many rows of op(B) as op(A) has "
              "columns");
    EXPECT_EQ(with([&](auto& x) { x.c = small.view(); }),
              "masked matmul: there are 2 matrices C of 3 x 5; expected 2 of 3 x 6");
    EXPECT_EQ(
        with([](auto& x) { x.mask = Mask::banded(3, -4); }),
        "masked matmul: the band is from 3 below the diagonal to -4 above it; expected a sum of at least "
        "0");
    EXPECT_EQ(with([&](auto& x) { x.mask = Mask::array(three.view()); }),
              "masked matmul: the mask's arrays are 3 of 3 x 6; expected 1 or 2 of 3 x 6");
    EXPECT_EQ(with([&](auto& x) { x.mask = Mask::array(narrow.view()); }),
              "masked matmul: the mask's arrays are 1 of 3 x 5; expected 1 or 2 of 3 x 6");

    const std::size_t size = GetParam()->launcher.levels_size(arrays.view());
    MaskLevels levels(GetParam()->launcher, arrays.view());
    levels.build(nullptr);
    EXPECT_EQ(with([&](auto& x) { x.mask = levels.mask(); }), "");
    const std::string refused = with([&](auto& x) { x.mask = Mask::array(arrays.view()); });
    if (size == 0) {
        EXPECT_EQ(refused, "");
        return;
    }
    EXPECT_EQ(refused, "masked matmul: the mask's levels have 0 elements; expected at least " +
                           std::to_string(size) + ", as MaskLevels of this version has");
    DeviceBuffer<std::uint32_t> memory(size + 1);
    EXPECT_EQ(with([&](auto& x) {
                  x.mask = Mask::array(arrays.view());
                  x.mask.levels = memory.span().subspan(1, size);
              }),
              "masked matmul: the mask's levels are not aligned; expected a multiple of 16 bytes");
}

}  // namespace
