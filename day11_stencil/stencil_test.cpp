// Every version of every shape against the references: bit for bit against the same sums in float,
// and within a derived bound of those in double.
#include "stencil.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using day11::DeviceGrid;
using day11::Extents;
using day11::Shape;
using day11::Stencil;

constexpr std::uint64_t kSeed = 11;

struct ShapeAndVersion {
    Shape shape;
    const day11::Version* version;
};
void PrintTo(const ShapeAndVersion& p, std::ostream* out) {
    *out << day11::name(p.shape) << " " << p.version->name;
}

std::vector<ShapeAndVersion> all_versions() {
    std::vector<ShapeAndVersion> all;
    for (const Shape shape : day11::kShapes)
        for (const day11::Version& version : day11::versions(shape))
            all.push_back({shape, &version});
    return all;
}

// star7_basic, cross5_streaming, ...
std::string test_name(const testing::TestParamInfo<ShapeAndVersion>& info) {
    static const char* const kNames[] = {"star7", "star25", "box27", "cross5"};
    return std::string(kNames[static_cast<std::size_t>(info.param.shape)]) + "_" + info.param.version->name;
}

// The input and the two grids that a version writes; each `misaligned` floats after an aligned
// address.
struct Grids {
    Grids(const Extents& e, const std::vector<float>& values, std::size_t misaligned)
        : extents(e),
          in(values.size(), misaligned),
          out(values.size(), misaligned),
          spare(values.size(), misaligned) {
        in.copy_from(values);
    }
    void run(const ShapeAndVersion& p, const Stencil& stencil, unsigned steps) {
        p.version->launcher(stencil, DeviceGrid<float>(in.span(), extents), {out.span(), extents},
                            {spare.span(), extents}, steps, nullptr);
    }

    Extents extents;
    GuardedBuffer<float> in;
    GuardedBuffer<float> out;
    GuardedBuffer<float> spare;
};

class VersionTest : public course::DeviceTestWithParam<ShapeAndVersion> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<ShapeAndVersion>::SetUp();
        const std::string reason = GetParam().version->cannot_run({});
        if (!reason.empty()) GTEST_SKIP() << reason;
    }

    // A grid of this shape: a plane, for the one that is flat.
    static Extents grid(std::size_t nx, std::size_t ny, std::size_t nz) {
        return {nx, ny, GetParam().shape == Shape::kCross5 ? 1 : nz};
    }

    static void expect_right(const Extents& extents, unsigned steps,
                             DataPattern pattern = DataPattern::kSignedUniform, std::size_t misaligned = 0) {
        SCOPED_TRACE(to_text(extents) + ", steps " + std::to_string(steps) + ", " +
                     std::string(course::name(pattern)) + ", misaligned by " + std::to_string(misaligned));
        const Stencil stencil = day11::heat(GetParam().shape);
        const std::vector<float> in = course::make_data<float>(cells(extents), pattern, kSeed);
        const std::vector<float> exact = day11::exact_on_cpu(stencil, extents, in, steps);
        Grids grids(extents, in, misaligned);
        grids.run(GetParam(), stencil, steps);

        const std::vector<float> got = grids.out.to_host();
        ASSERT_EQ(got.size(), exact.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (std::memcmp(&got[i], &exact[i], sizeof(float)) == 0) continue;
            if (std::isnan(got[i]) && std::isnan(exact[i]) && !course::is_unwritten(got[i])) continue;
            FAIL() << "cell (" << i % extents.nx << ", " << i / extents.nx % extents.ny << ", "
                   << i / extents.nx / extents.ny << ") is " << got[i] << "; expected " << exact[i]
                   << ", bit for bit\n"
                   << course::verify(got, std::vector<double>(exact.begin(), exact.end()), {.factor = 0})
                          .message();
        }
        EXPECT_EQ(grids.out.damage(), "");
        EXPECT_EQ(grids.spare.damage(), "");
        EXPECT_EQ(grids.in.damage(), "");
        EXPECT_EQ(std::memcmp(grids.in.to_host().data(), in.data(), in.size() * sizeof(float)), 0)
            << "the input has changed";
    }
};

INSTANTIATE_TEST_SUITE_P(Stencil, VersionTest, testing::ValuesIn(all_versions()), test_name);

TEST_P(VersionTest, SmallGridsAreRightBitForBit) {
    for (const std::size_t nx : {1, 2, 3, 9})
        for (const std::size_t ny : {1, 2, 3, 10})
            expect_right(grid(nx, ny, nx == 2 ? 2 : 11), 2);
    for (const std::size_t nz : {1, 2, 3, 9})
        expect_right(grid(11, 12, nz), 2);
}

// 6, 8, 30 and 32 are tiles of the first versions; 16, 24, 32, 48 and 64 rows, 112, 120 and 128
// columns of the others. Where a trip has one sweep, more of them would test the same again.
TEST_P(VersionTest, SizesAroundATileAreRightBitForBit) {
    const std::string& name = GetParam().version->name;
    const bool several = name == "streaming" || name == "overlapped_tile";
    const auto steps = [several](unsigned most) { return several ? most : 1; };
    for (const std::size_t nx : {29, 31, 33, 113, 127, 129})
        expect_right(grid(nx, 10, 9), 1);
    for (const std::size_t nx : {112, 120, 124, 132})
        expect_right(grid(nx, 13, 10), steps(4));
    for (const std::size_t ny : {7, 15, 16, 17, 31, 33, 58, 65})
        expect_right(grid(20, ny, 9), 1);
    for (const std::size_t nz : {31, 32, 33, 63, 65})
        expect_right(grid(12, 9, nz), 1);
    expect_right(grid(139, 67, 11), several ? 5 : 2);
    // The second block along each axis, and the second part of a march.
    expect_right(grid(1030, 5, 4), 1);
    expect_right(grid(500, 5, 3), steps(8));
    expect_right(grid(20, 130, 3), steps(8));
    for (const std::size_t ny : {39, 40, 41, 47, 48, 49, 81})
        expect_right(grid(20, ny, 9), steps(4));
    for (const std::size_t nz : {127, 129, 133})
        expect_right(grid(12, 9, nz), 1);
}

TEST_P(VersionTest, AnyNumberOfSteps) {
    for (const unsigned steps : {0u, 1u, 2u, 3u, 4u, 11u})
        expect_right(grid(20, 13, 10), steps);
    if (GetParam().shape == Shape::kCross5)
        for (const unsigned steps : {8u, 23u, 24u})
            expect_right(grid(131, 13, 1), steps);
}

TEST_P(VersionTest, AnyAlignment) {
    for (const std::size_t misaligned : {1, 2, 3}) {
        expect_right(grid(136, 11, 10), 4, DataPattern::kSignedUniform, misaligned);
        expect_right(grid(135, 11, 10), 2, DataPattern::kSignedUniform, misaligned);
    }
}

TEST_P(VersionTest, NastyValuesReachTheSameCells) {
    for (const DataPattern pattern :
         {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny, DataPattern::kWithNan})
        expect_right(grid(33, 21, 12), 3, pattern);
}

TEST_P(VersionTest, RandomGrids) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 6; ++round)
        expect_right(grid(1 + random.below(150), 1 + random.below(40), 1 + random.below(20)),
                     static_cast<unsigned>(random.below(9)));
}

// More than 2^31 cells: planes (rows, of a grid with one plane) of zeros, and `in_last` at the end.
class LargeGrid {
  public:
    LargeGrid(const Extents& extents, std::size_t slices, const std::vector<float>& in_last)
        : extents_(extents),
          slice_(cells(extents) / slices),
          in_(cells(extents)),
          out_(cells(extents)),
          spare_(cells(extents)) {
        CUDA_CHECK(cudaMemset(in_.data(), 0, in_.bytes()));
        CUDA_CHECK(cudaMemset(out_.data(), 0xff, out_.bytes()));  // NaN
        CUDA_CHECK(cudaMemcpy(in_.data() + in_.size() - in_last.size(), in_last.data(),
                              in_last.size() * sizeof(float), cudaMemcpyHostToDevice));
    }
    void run(const ShapeAndVersion& p, unsigned steps) {
        p.version->launcher(day11::heat(p.shape), DeviceGrid<float>(in_.span(), extents_),
                            {out_.span(), extents_}, {spare_.span(), extents_}, steps, nullptr);
    }
    // Slice number `slice` of the result.
    std::vector<float> slice(std::size_t slice) const {
        std::vector<float> values(slice_);
        CUDA_CHECK(cudaMemcpy(values.data(), out_.data() + slice * slice_, slice_ * sizeof(float),
                              cudaMemcpyDeviceToHost));
        return values;
    }

  private:
    Extents extents_;
    std::size_t slice_;
    DeviceBuffer<float> in_;
    DeviceBuffer<float> out_;
    DeviceBuffer<float> spare_;
};

TEST_P(VersionTest, MoreCellsThan31BitsCount) {
    const bool flat = GetParam().shape == Shape::kCross5;
    const Extents all = flat ? Extents{32800, 65535, 1} : Extents{1292, 1290, 1300};
    if (const std::string reason = course::why_not_so_large(3 * cells(all) * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    // Full trips of the versions with several sweeps in one.
    const unsigned steps = flat ? 8 : 4;
    const std::size_t reach = steps * day11::radius(GetParam().shape);
    const std::size_t slices = flat ? all.ny : all.nz;
    const std::size_t last = 2 * reach + 3;
    const Extents end = flat ? Extents{all.nx, last, 1} : Extents{all.nx, all.ny, last};
    const std::vector<float> in_last =
        course::make_data<float>(cells(end), DataPattern::kSignedUniform, kSeed);
    const std::vector<float> expected =
        day11::exact_on_cpu(day11::heat(GetParam().shape), end, in_last, steps);
    LargeGrid grid(all, slices, in_last);
    grid.run(GetParam(), steps);
    // Cells that depend on the values at the end alone, and those that depend on zeros alone.
    const std::size_t slice = cells(end) / last;
    for (std::size_t i = reach; i < last; ++i)
        ASSERT_EQ(
            std::memcmp(grid.slice(slices - last + i).data(), &expected[i * slice], slice * sizeof(float)), 0)
            << "slice " << slices - last + i;
    for (const std::size_t i : {std::size_t{0}, slices / 2, slices - last - reach - 1})
        ASSERT_EQ(grid.slice(i), std::vector<float>(slice)) << "slice " << i;
}

// The same on the CPU, where only the last blocks run, and only the end of each grid exists.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const bool flat = GetParam().shape == Shape::kCross5;
    const Extents all = flat ? Extents{65800, 65534, 1} : Extents{264, 252, 64900};
    const std::size_t slice = cells(all) / (flat ? all.ny : all.nz);
    const std::vector<double> end = {1};
    const course::LargeArray<float> in(cells(all), 1000 * slice, end);
    const course::LargeArray<float> out(cells(all), 1000 * slice, end);
    const course::LargeArray<float> spare(cells(all), 1000 * slice, end);
    const Stencil stencil = day11::heat(GetParam().shape);
    const std::size_t slices = 2 * day11::radius(GetParam().shape) + 3;
    const Extents last = flat ? Extents{all.nx, slices, 1} : Extents{all.nx, all.ny, slices};
    const std::vector<float> in_last =
        course::make_data<float>(cells(last), DataPattern::kSignedUniform, kSeed);
    std::ranges::copy(in_last, in.part(0).end() - static_cast<std::ptrdiff_t>(in_last.size()));
    const std::vector<float> expected = day11::exact_on_cpu(stencil, last, in_last, 1);
    course::run_few_blocks(
        [&] {
            GetParam().version->launcher(stencil, DeviceGrid<float>(in.span(), all), {out.span(), all},
                                         {spare.span(), all}, 1, nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    // Four cells of the last row and of the one before it, in the last slice and the one before it.
    for (const std::size_t from_end : {std::size_t{4}, all.nx + 4, slice + 4, slice + all.nx + 4}) {
        // Of these shapes a block of the basic version has one slice, and so has one of any_grid on
        // a GPU with as many multiprocessors as this test pretends.
        const bool thin = GetParam().shape == Shape::kStar25 || GetParam().shape == Shape::kBox27 ||
                          GetParam().version->name == std::string_view("any_grid");
        if (thin && from_end > slice) break;
        for (std::size_t i = cells(all) - from_end; i < cells(all) - from_end + 4; ++i)
            ASSERT_EQ(out[i], expected[i + cells(last) - cells(all)]) << course::large_element(i, cells(all));
    }
}

// Of two sums in float and in double, of n products each, after s sweeps: every sweep adds at most
// n roundings of the largest value, since the coefficients are positive with a sum of 1.
TEST_P(VersionTest, CloseToTheReferenceInDouble) {
    const Shape shape = GetParam().shape;
    const Extents extents = grid(61, 23, 17);
    const Stencil stencil = day11::heat(shape);
    const std::vector<float> in =
        course::make_data<float>(cells(extents), DataPattern::kSignedUniform, kSeed);
    constexpr unsigned kSteps = 13;
    Grids grids(extents, in, 0);
    grids.run(GetParam(), stencil, kSteps);
    const std::vector<double> expected = day11::sweeps_on_cpu(stencil, extents, in, kSteps);
    const std::vector<double> magnitude(in.size(), 1.0);  // inputs lie between -1 and 1
    const course::VerifyResult result = course::verify(
        grids.out.to_host(), expected, {.terms = kSteps * coefficients(shape), .factor = 1}, magnitude);
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(VersionTest, AnEmptyGridIsLegal) {
    for (const Extents& extents : {Extents{0, 3, 1}, Extents{3, 0, 1}, Extents{3, 3, 0}}) {
        Grids grids(extents, {}, 0);
        EXPECT_NO_THROW(grids.run(GetParam(), day11::heat(GetParam().shape), 3));
    }
}

// `call` throws std::invalid_argument with a message that has these words.
template <class Call>
void expect_refused(Call call, const std::vector<std::string>& words) {
    try {
        call();
        ADD_FAILURE() << "expected std::invalid_argument";
    } catch (const std::invalid_argument& e) {
        for (const std::string& word : words)
            EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what() << "\nlacks " << word;
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    const Extents e{4, 3, 1};
    GuardedBuffer<float> a(12), b(12), c(12);
    const auto launch = [&](const Stencil& stencil, DeviceGrid<float> in, DeviceGrid<float> out,
                            DeviceGrid<float> spare) {
        GetParam().version->launcher(stencil, in, out, spare, 1, nullptr);
    };
    const Stencil right = day11::heat(GetParam().shape);
    Stencil wrong = right;
    wrong.coefficient.push_back(1);
    const DeviceGrid<float> in(a.span(), e), out(b.span(), e), spare(c.span(), e);
    expect_refused([&] { launch(wrong, in, out, spare); },
                   {std::to_string(wrong.coefficient.size()) + " coefficients",
                    "expected " + std::to_string(right.coefficient.size())});
    expect_refused(
        [&] {
            launch(right, in, {b.span(), {3, 4, 1}}, spare);
        },
        {"in is 4 x 3 x 1", "out is 3 x 4 x 1"});
    expect_refused(
        [&] {
            launch(right, in, out, {c.span(), {3, 4, 1}});
        },
        {"in is 4 x 3 x 1", "spare is 3 x 4 x 1"});
    expect_refused([&] { launch(right, in, in, spare); }, {"out overlaps in"});
    expect_refused([&] { launch(right, in, out, in); }, {"spare overlaps in"});
    expect_refused([&] { launch(right, in, out, out); }, {"spare overlaps out"});
    const Extents high{1, 70000, 1};
    GuardedBuffer<float> x(70000), y(70000), z(70000);
    expect_refused(
        [&] {
            launch(right, {x.span(), high}, {y.span(), high}, {z.span(), high});
        },
        {"in is 1 x 70000 x 1", "65535"});
}

// On this device, and with CUDA_ON_CPU_CAPABILITY=7.5 (CMakeLists.txt) on one that is too old.
TEST(OldGpu, VersionsThatCannotRunSayWhy) {
    for (const ShapeAndVersion& p : all_versions()) {
        const std::string reason = p.version->cannot_run({});
        const Extents e{5, 5, p.shape == Shape::kCross5 ? 1u : 5u};
        Grids grids(e, std::vector<float>(cells(e), 1.0f), 0);
        EXPECT_EQ(course::refusal([&] { grids.run(p, day11::heat(p.shape), 1); }),
                  reason.empty() ? "" : "stencil: " + p.version->name + " " + reason);
    }
}

TEST(Grid, HasAsManyCellsAsItsSpan) {
    GuardedBuffer<float> buffer(12);
    expect_refused(
        [&] {
            (void)DeviceGrid<float>(buffer.span(), {3, 2, 1});
        },
        {"12 elements", "3 x 2 x 1", "expected 6"});
}

TEST(Cross, RefusesSeveralPlanes) {
    const Extents e{3, 2, 2};
    GuardedBuffer<float> a(12), b(12), c(12);
    expect_refused(
        [&] {
            day11::versions(Shape::kCross5)
                .front()
                .launcher(day11::heat(Shape::kCross5), DeviceGrid<float>(a.span(), e), {b.span(), e},
                          {c.span(), e}, 1, nullptr);
        },
        {"3 x 2 x 2", "expected one plane"});
}

TEST(Heat, IsAWeightedAverage) {
    for (const Shape shape : day11::kShapes) {
        const Stencil stencil = day11::heat(shape);
        double sum = 0;
        for (const float k : stencil.coefficient) {
            EXPECT_GT(k, 0);
            sum += static_cast<double>(k);
        }
        EXPECT_NEAR(sum, 1, 1e-6);
    }
}

TEST(Reference, OnePointSpreadsToItsNeighbours) {
    const Extents e{3, 3, 3};
    std::vector<double> in(27), out(27);
    for (std::size_t i = 0; i < in.size(); ++i) {
        in.assign(27, 0);
        in[i] = 1;
        day11::sweep_on_cpu(day11::heat(Shape::kBox27), e, in, out);
        EXPECT_EQ(out[13], static_cast<double>(day11::heat(Shape::kBox27).coefficient[i]));
    }
    const std::size_t order[] = {13, 12, 14, 10, 16, 4, 22};
    for (std::size_t p = 0; p < 7; ++p) {
        in.assign(27, 0);
        in[order[p]] = 1;
        day11::sweep_on_cpu(day11::heat(Shape::kStar7), e, in, out);
        EXPECT_EQ(out[13], static_cast<double>(day11::heat(Shape::kStar7).coefficient[p]));
    }
}

TEST(Reference, TheBoundaryKeepsItsValues) {
    const Extents e{3, 4, 5};
    std::vector<float> in(60);
    for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i * i % 17);
    const std::vector<double> out = day11::sweeps_on_cpu(day11::heat(Shape::kStar7), e, in, 3);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < in.size(); ++i)
        kept += out[i] == static_cast<double>(in[i]);
    EXPECT_GE(kept, 60u - 6u);
}

}  // namespace
