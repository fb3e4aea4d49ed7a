// Every hunt against the CPU in double, on shapes around its blocks and tiles.
#include "hunts.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "trial.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::refusal;
using hunts::Shape;
using hunts::Trial;

class HuntTest : public course::DeviceTestWithParam<const hunts::Hunt*> {
  protected:
    static void expect_right(const Shape& problem, DataPattern pattern, std::size_t padding = 0,
                             std::size_t misaligned_by = 0) {
        Trial trial(*GetParam(), problem, pattern, padding, misaligned_by);
        trial.launch();
        const course::VerifyResult result = trial.verify();
        if (result.ok()) return;
        FAIL() << problem.rows << " x " << problem.cols << ", " << course::name(pattern) << ", padding "
               << padding << ", misaligned by " << misaligned_by << ": " << result.message();
    }
};

// Those for which it holds.
template <class Condition>
auto hunts_that(Condition condition) {
    std::vector<const hunts::Hunt*> chosen;
    for (const hunts::Hunt& hunt : hunts::hunts()) {
        if (condition(hunt)) chosen.push_back(&hunt);
    }
    return testing::ValuesIn(chosen);
}

INSTANTIATE_TEST_SUITE_P(Hunts, HuntTest, course::each_of(hunts::hunts()), course::VersionName());

// Around a warp, a tile and a block, in both directions; a prime; and more elements than 16 bits
// can count.
constexpr Shape kShapes[] = {{1, 1},    {1, 2},    {2, 1},     {1, 31},   {31, 1},  {1, 32},    {32, 1},
                             {1, 33},   {33, 1},   {32, 32},   {31, 33},  {33, 31}, {3, 127},   {127, 3},
                             {5, 128},  {128, 5},  {7, 129},   {129, 7},  {1, 255}, {255, 2},   {1, 256},
                             {256, 1},  {1, 257},  {257, 4},   {64, 96},  {96, 64}, {300, 301}, {130, 131},
                             {1, 4099}, {1031, 1}, {1, 65536}, {1, 65537}};

TEST_P(HuntTest, EveryShape) {
    for (const Shape& shape : kShapes)
        ASSERT_NO_FATAL_FAILURE(expect_right(shape, DataPattern::kSignedUniform));
}

TEST_P(HuntTest, NothingToRead) {
    for (const Shape& shape : {Shape{0, 0}, Shape{0, 5}, Shape{5, 0}})
        ASSERT_NO_FATAL_FAILURE(expect_right(shape, DataPattern::kSignedUniform));
}

TEST_P(HuntTest, DataPatterns) {
    for (const Shape& shape : {Shape{33, 65}, Shape{131, 7}, Shape{1, 700}}) {
        for (const DataPattern pattern :
             {DataPattern::kNormal, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
              DataPattern::kSorted, DataPattern::kWithNan, DataPattern::kWithInf})
            ASSERT_NO_FATAL_FAILURE(expect_right(shape, pattern));
    }
}

TEST_P(HuntTest, PaddedAndMisalignedRows) {
    for (const std::size_t padding : {0, 1, 5}) {
        for (const std::size_t misaligned_by : {0, 1, 2, 3})
            ASSERT_NO_FATAL_FAILURE(
                expect_right({37, 67}, DataPattern::kSignedUniform, padding, misaligned_by));
    }
}

TEST_P(HuntTest, RandomShapes) {
    constexpr std::uint64_t kShapeSeed = 20261121;
    SCOPED_TRACE("course::Random seed " + std::to_string(kShapeSeed));
    course::Random random(kShapeSeed);
    for (int round = 0; round < 12; ++round) {
        const Shape shape{random.below(200), random.below(300)};
        ASSERT_NO_FATAL_FAILURE(expect_right(shape, DataPattern::kNormal, random.below(4), random.below(4)));
    }
}

TEST_P(HuntTest, RunsOnTheGivenStream) {
    Trial trial(*GetParam(), {40, 50}, DataPattern::kSignedUniform);
    if (GetParam()->name == "letters") GTEST_SKIP() << "waits for its stream, so no graph can record it";
    const course::CapturedWork work([&](cudaStream_t stream) { trial.launch(stream); });
    const std::string& name = GetParam()->name;
    // fold clears first; relay allocates, clears, and frees; flood begins, and has a launch per
    // step; halves allocates, frees, and has two steps and a copy of either half; squares
    // allocates, clears and frees two arrays, and has a launch per level; details allocates and
    // frees two matrices, and has three launches.
    const std::size_t expected = name == "squares"   ? 15
                                 : name == "flood"   ? 9
                                 : name == "halves"  ? 8
                                 : name == "details" ? 7
                                 : name == "relay"   ? 4
                                 : name == "fold"    ? 2
                                                     : 1;
    EXPECT_EQ(work.nodes(), expected)
        << "what is queued on the stream that was given: expected " << expected << ", got " << work.nodes();
    work.run(2);
    EXPECT_TRUE(trial.verify().ok()) << trial.verify().message();
}

TEST_P(HuntTest, FreesTheMemoryThatItAllocates) {
    Trial trial(*GetParam(), {40, 50}, DataPattern::kSignedUniform);
    const std::uint64_t before = hunts::bytes_in_use();
    trial.launch();
    EXPECT_EQ(hunts::bytes_in_use() - before, 0u) << "bytes of cudaMallocAsync without cudaFreeAsync";
}

// The operands of a problem of 3 x 4 out of one piece of memory, one of them changed.
class Refusals : public HuntTest {
  protected:
    hunts::Operands operands() {
        const hunts::Layout layout = GetParam()->launcher.layout({3, 4});
        return {matrix(layout.in, 0), memory_.span().subspan(32, layout.vector), matrix(layout.out, 64)};
    }

    DeviceMatrix<float> matrix(const Shape& shape, std::size_t offset) {
        return {memory_.span().subspan(offset, shape.size()), shape.rows, shape.cols};
    }

    static std::string message_of(const hunts::Operands& operands) {
        return refusal([&] { GetParam()->launcher.launch(operands, nullptr); });
    }

    DeviceBuffer<float> memory_ = course::zeros<float>(256);
};

INSTANTIATE_TEST_SUITE_P(Hunts, Refusals, course::each_of(hunts::hunts()), course::VersionName());

TEST_P(Refusals, AcceptsWhatFits) {
    EXPECT_EQ(message_of(operands()), "");
}

// The others take an output of any length.
using OutputRefusals = Refusals;
INSTANTIATE_TEST_SUITE_P(Hunts, OutputRefusals, hunts_that([](const hunts::Hunt& hunt) {
                             return hunt.name != "resample" && hunt.name != "fold";
                         }),
                         course::VersionName());

TEST_P(OutputRefusals, AnOutputOfAnotherShape) {
    const std::string& name = GetParam()->name;
    hunts::Operands wrong = operands();
    const Shape right{wrong.out.rows(), wrong.out.cols()};
    wrong.out = matrix({right.rows, right.cols + 1}, 64);
    const std::string rows = std::to_string(right.rows) + " x ";
    const std::string cols = std::to_string(right.cols);
    const std::string more = std::to_string(right.cols + 1);
    const std::string as_matrix = name + ": out is " + rows + more + "; expected " + rows + cols;
    const std::string as_span = name + ": out has " + more + " elements; expected " + cols;
    const std::string by_input = name + ": in has 13 elements; expected 14";
    const std::string message = message_of(wrong);
    EXPECT_TRUE(message == as_matrix || message == as_span || message == by_input) << message;
}

using VectorRefusals = Refusals;
INSTANTIATE_TEST_SUITE_P(Hunts, VectorRefusals, hunts_that([](const hunts::Hunt& hunt) {
                             return hunt.launcher.layout({3, 4}).vector != 0;
                         }),
                         course::VersionName());

TEST_P(VectorRefusals, AVectorOfAnotherLength) {
    hunts::Operands wrong = operands();
    const std::size_t right = wrong.vector.size();
    wrong.vector = memory_.span().subspan(32, right + 1);
    const std::string argument = GetParam()->name == "scale_rows"      ? "factors"
                                 : GetParam()->name == "vector_matrix" ? "x"
                                                                       : "weights";
    EXPECT_EQ(message_of(wrong), GetParam()->name + ": " + argument + " has " + std::to_string(right + 1) +
                                     " elements; expected " + std::to_string(right));
}

TEST_P(Refusals, AnOutputThatOverlapsAnInput) {
    const std::string expected = GetParam()->name + ": out overlaps an input; expected no common element";
    hunts::Operands wrong = operands();
    wrong.out = matrix({wrong.out.rows(), wrong.out.cols()}, 1);
    EXPECT_EQ(message_of(wrong), expected);
    wrong = operands();
    if (wrong.vector.empty()) return;
    wrong.vector = memory_.span().subspan(64, wrong.vector.size());
    EXPECT_EQ(message_of(wrong), expected);
}

using NothingToTake = course::DeviceTest;

TEST_F(NothingToTake, IsRefused) {
    DeviceBuffer<float> memory = course::zeros<float>(8);
    const auto none = memory.span().subspan(0, 0);
    EXPECT_EQ(refusal([&] { hunts::resample(none, memory.span(), nullptr); }),
              "resample: in is empty; expected elements to take");
    EXPECT_EQ(refusal([&] { hunts::fold(memory.span(), none, nullptr); }),
              "fold: out is empty; expected a place for the elements of in");
}

using Resample = course::DeviceTest;

// The product of an index and a length has 64 bits at most.
TEST_F(Resample, RefusesLengthsOfMoreThan32Bits) {
    DeviceBuffer<float> memory = course::zeros<float>(8);
    const auto far = course::DeviceSpan<float>::from_device_pointer(memory.data(), std::size_t{1} << 32);
    EXPECT_EQ(refusal([&] { hunts::resample(far, memory.span(), nullptr); }),
              "resample: in has 4294967296 elements, out has 8; expected less than 2^32");
}

// The references, worked out by hand.
struct Example {
    const char* hunt;
    hunts::Layout layout;
    std::vector<float> in;
    std::vector<float> vector;
    std::vector<double> out;
    std::vector<double> magnitude;
};

TEST(OnCpu, ExamplesWorkedOutByHand) {
    const std::vector<Example> examples = {
        {"filter",
         {.in = {2, 2}, .out = {2, 2}},
         {1, 2, 3, -4},
         {1, 10, 100, 2, 20, 200, 3, 30, 300},
         {20 + 400 + 90 - 1200, 2 + 40 + 9 - 120, 10 + 200 + 60 - 800, 1 + 20 + 6 - 80},
         {20 + 400 + 90 + 1200, 2 + 40 + 9 + 120, 10 + 200 + 60 + 800, 1 + 20 + 6 + 80}},
        {"resample", {.in = {1, 3}, .out = {1, 5}}, {1, -2, 3}, {}, {1, 1, -2, -2, 3}, {1, 1, 2, 2, 3}},
        {"vector_matrix", {.in = {2, 2}, .out = {1, 2}}, {1, 2, 3, 4}, {10, -1}, {7, 16}, {13, 24}},
        {"midpoints", {.in = {1, 3}, .out = {1, 2}}, {1, 3, -2}, {}, {2, 0.5}, {2, 2.5}},
        {"centre_rows", {.in = {2, 2}, .out = {2, 2}}, {1, 3, 0, -4}, {}, {-1, 1, 2, -2}, {3, 5, 2, 6}},
        {"column_sums", {.in = {2, 2}, .out = {1, 2}}, {1, 2, 3, -4}, {}, {4, -2}, {4, 6}},
        {"scale_rows", {.in = {2, 2}, .out = {2, 2}}, {1, 2, 3, 4}, {-1, 2}, {-1, -2, 6, 8}, {1, 2, 6, 8}},
        {"transpose",
         {.in = {2, 3}, .out = {3, 2}},
         {1, 2, 3, 4, 5, 6},
         {},
         {1, 4, 2, 5, 3, 6},
         {1, 4, 2, 5, 3, 6}},
        {"recordings",
         {.in = {2, 5}, .out = {1, 10}},
         {1, 2, 3, 4, 5, -1, -2, -3, -4, -5},
         {},
         {1, 2, 3, 4, -1, -2, -3, 5, -4, -5},
         {1, 2, 3, 4, 1, 2, 3, 5, 4, 5}},
        {"gradient",
         {.in = {1, 2}, .out = {2, 4}},
         {1, -2},
         {1, 10, 100, 2, 20, 200, 3, 30, 300},
         {20, 200 - 4, -40, -400, 30, 300 - 6, -60, -600},
         {20, 200 + 4, 40, 400, 30, 300 + 6, 60, 600}},
        {"rods", {.in = {1, 5}, .out = {1, 5}}, {9, 0, 0, -18, 0}, {}, {9, 2, -3, -4, 0}, {9, 6, 5, 4, 0}},
        {"halves", {.in = {5, 1}, .out = {5, 1}}, {9, 0, 0, -18, 0}, {}, {9, 2, -3, -4, 0}, {9, 6, 5, 4, 0}},
        {"details",
         {.in = {1, 5}, .out = {1, 5}},
         {9, 0, 0, -18, 0},
         {},
         {0, -2, 3, -14, 0},
         {18, 6, 5, 22, 0}},
        {"letters", {.in = {1, 2}, .out = {1, 2}}, {1, -3}, {}, {2, -6}, {2, 6}},
        {"squares", {.in = {2, 2}, .out = {1, 2}}, {1, -3, 0, 0}, {}, {2, 2}, {2, 2}},
        {"fold", {.in = {1, 5}, .out = {1, 2}}, {1, 2, 3, 4, -5}, {}, {-1, 6}, {9, 6}},
        {"running_sums", {.in = {2, 2}, .out = {2, 2}}, {1, -3, 4, 5}, {}, {1, -2, 4, 9}, {1, 4, 4, 9}},
        // 16 i is 0 mod 256 when squared, too: boxes 0 and 16 have the number 0.
        {"shelves",
         {.in = {1, 17}, .out = {1, 17}},
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
         {},
         {0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
         {0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {"relay", {.in = {1, 3}, .out = {1, 3}}, {1, -3, 4}, {}, {1, -2, 2}, {1, 4, 8}},
    };
    for (const Example& example : examples) {
        SCOPED_TRACE(example.hunt);
        std::vector<double> out(example.out.size());
        std::vector<double> magnitude(example.out.size());
        course::find_version(hunts::hunts(), example.hunt)
            .launcher.on_cpu(example.layout, example.in, example.vector, out, magnitude);
        EXPECT_EQ(out, example.out);
        EXPECT_EQ(magnitude, example.magnitude);
    }
}

TEST(OnCpu, TheLastSumHasWhatIsLeft) {
    std::vector<float> in(33, 1.0f);
    in[32] = -7;
    std::vector<double> out(2);
    std::vector<double> magnitude(2);
    course::find_version(hunts::hunts(), "warp_sums")
        .launcher.on_cpu({.in = {1, 33}, .out = {1, 2}}, in, {}, out, magnitude);
    EXPECT_EQ(out, (std::vector<double>{32, -7}));
    EXPECT_EQ(magnitude, (std::vector<double>{32, 7}));
}

// Two of the first 256 are positive; what the last block has comes before none.
TEST(OnCpu, PlacesCountThePositive) {
    std::vector<float> in(700, -1.0f);
    for (const std::size_t positive : {0, 255, 300, 699})
        in[positive] = 0.5f;
    in[1] = 0;
    std::vector<double> out(3);
    std::vector<double> magnitude(3);
    course::find_version(hunts::hunts(), "places")
        .launcher.on_cpu({.in = {1, 700}, .out = {1, 3}}, in, {}, out, magnitude);
    EXPECT_EQ(out, (std::vector<double>{0, 2, 3}));
}

// Round a dyke, and against the stream; eight steps, and no more.
TEST(OnCpu, FloodGoesStepByStep) {
    const std::vector<float> in{0,  0,  0, 0,  0,  0, 0, 0, 0, 0,  //
                                -1, -1, 0, -1, 0,  0, 0, 0, 0, 0,  //
                                -1, 0,  0, -1, -1, 0, 0, 0, 0, 0};
    const std::vector<double> expected{0, 1, 2, 3, 4, 5, 6, 7, 8, 9,  //
                                       9, 9, 3, 9, 5, 6, 7, 8, 9, 9,  //
                                       9, 5, 4, 9, 9, 7, 8, 9, 9, 9};
    std::vector<double> out(30);
    std::vector<double> magnitude(30);
    course::find_version(hunts::hunts(), "flood")
        .launcher.on_cpu({.in = {3, 10}, .out = {3, 10}}, in, {}, out, magnitude);
    EXPECT_EQ(out, expected);
}

}  // namespace
