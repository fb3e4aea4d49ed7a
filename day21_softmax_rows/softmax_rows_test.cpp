// Every version of softmax and log-softmax of rows against the CPU.
#include "softmax_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::refusal;
using day21::MaxSum;
using day21::Output;
using day21::Problem;

constexpr std::uint64_t kSeed = 21;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kHuge = std::numeric_limits<float>::max();

course::VerifyResult compare(const Problem& problem, const std::vector<float>& in,
                             const std::vector<float>& got) {
    std::vector<double> expected(in.size());
    std::vector<double> magnitude(in.size());
    day21::softmax_on_cpu(problem, in, expected);
    day21::error_magnitudes(problem, in, expected, magnitude);
    return course::verify(got, expected, {}, magnitude, problem.cols);
}

// Where a matrix lies in its buffer.
struct Layout {
    std::size_t offset = 0;   // elements before the first
    std::size_t padding = 0;  // after each row
};

class VersionTest : public course::DeviceTestWithParam<const day21::Softmax*> {
  protected:
    void launch(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                DeviceSpan<MaxSum> workspace, cudaStream_t stream = nullptr) const {
        GetParam()->launcher(output, in, out, workspace, stream);
    }

    // Runs the version on rows x cols values. A write between the rows, beside them or into the
    // input is damage.
    course::VerifyResult run(const Problem& problem, const std::vector<float>& data, Layout in_layout = {},
                             Layout out_layout = {}, bool in_place = false) const {
        const auto [rows, cols, output] = problem;
        const std::size_t in_step = cols + in_layout.padding;
        const std::size_t out_step = in_place ? in_step : cols + out_layout.padding;
        std::vector<float> padded(rows * in_step, 1e30f);
        for (std::size_t row = 0; row < rows; ++row)
            std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(row * cols), cols,
                        padded.begin() + static_cast<std::ptrdiff_t>(row * in_step));
        GuardedBuffer<float> in(rows * in_step, in_layout.offset);
        in.copy_from(padded);
        GuardedBuffer<float> out(in_place ? 0 : rows * out_step, out_layout.offset);
        DeviceBuffer<MaxSum> workspace(day21::workspace_size(rows, cols));
        GuardedBuffer<float>& result = in_place ? in : out;
        launch(output, {in.span(), rows, cols, in_step}, {result.span(), rows, cols, out_step},
               workspace.span());

        const std::vector<float> got_padded = result.to_host();
        std::vector<float> got;
        std::size_t damaged = 0;
        for (std::size_t i = 0; i < got_padded.size(); ++i) {
            if (i % out_step < cols) {
                got.push_back(got_padded[i]);
            } else if (in_place ? got_padded[i] != 1e30f : !std::isnan(got_padded[i])) {
                ++damaged;
            }
        }
        course::VerifyResult verified = compare(problem, data, got);
        verified.damage = result.damage();
        if (damaged > 0) verified.damage += " the padding of a row was written";
        if (!in_place) {
            const std::vector<float> after = in.to_host();
            if (!std::equal(after.begin(), after.end(), padded.begin(),
                            [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }))
                verified.damage += " the input was changed";
        }
        return verified;
    }

    // The same for both outputs, with generated data, unless the version cannot run the problem.
    void expect_right(std::size_t rows, std::size_t cols, DataPattern pattern, Layout in = {},
                      Layout out = {}, bool in_place = false) const {
        for (const Output output : {Output::kSoftmax, Output::kLogSoftmax}) {
            const Problem problem{rows, cols, output};
            if (!GetParam()->cannot_run(problem).empty()) continue;
            const std::vector<float> data = course::make_data<float>(rows * cols, pattern, kSeed);
            const course::VerifyResult result = run(problem, data, in, out, in_place);
            EXPECT_TRUE(result.ok()) << day21::name(output) << " " << rows << "x" << cols << ", "
                                     << course::name(pattern) << ": " << result.message();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwentyOne, VersionTest, course::each_of(day21::versions()),
                         course::VersionName());

// Around a pack, a warp, and a thousand columns where versions change; rows around those of a warp
// and of its block.
TEST_P(VersionTest, SmallShapes) {
    for (const std::size_t cols :
         {1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024}) {
        expect_right(3, cols, DataPattern::kNormal);
    }
    for (const std::size_t rows : {1, 2, 4, 5, 31, 32, 33})
        expect_right(rows, 8, DataPattern::kSignedUniform);
}

// As many rows as take several warps and blocks, the last ones not complete; rows that begin at
// every offset from a multiple of 16 bytes. Where a row has a block or more, two rows for each SM
// are enough, and one more.
TEST_P(VersionTest, ManyShortRows) {
    const std::string version = GetParam()->name;
    const bool has_blocks = version == "block_per_row" || version == "cluster_per_row" ||
                            version == "whole_gpu" || version == "two_pass";
    const std::size_t most_rows = has_blocks ? 2 * course::multiprocessors() + 1 : 10000;
    const std::pair<std::size_t, std::size_t> shapes[] = {{1100, 1}, {700, 2},  {400, 3}, {130, 4},  {230, 5},
                                                          {301, 6},  {90, 9},   {67, 12}, {53, 16},  {51, 17},
                                                          {49, 20},  {35, 33},  {37, 64}, {35, 111}, {9, 128},
                                                          {19, 129}, {19, 130}, {9, 191}, {9, 192}};
    for (const auto& [all_rows, cols] : shapes) {
        const std::size_t rows = std::min(all_rows, most_rows);
        expect_right(rows, cols, DataPattern::kNormal);
        expect_right(rows, cols, DataPattern::kSignedUniform, {1, 0}, {2, 0});
    }
}

// Around every number of columns at which a launcher takes another kernel, or one more block or
// part.
TEST_P(VersionTest, LongRows) {
    for (const std::size_t cols :
         {1025, 2048, 2049, 4096, 4100, 8192, 8193, 16384, 16388, 32768, 32769, 65536, 65540, 104729})
        expect_right(1, cols, DataPattern::kNormal);
    expect_right(3, 8209, DataPattern::kNormal);
    expect_right(course::multiprocessors() + 1, 40004, DataPattern::kNormal);
}

TEST_P(VersionTest, Patterns) {
    for (const DataPattern pattern :
         {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
          DataPattern::kSorted, DataPattern::kReversed, DataPattern::kWithNan, DataPattern::kWithInf}) {
        expect_right(5, 7, pattern);
        expect_right(2, 260, pattern);
        expect_right(1, 9001, pattern);
        expect_right(1, 33001, pattern);
    }
}

// Rows without a softmax lie between rows that have one, whose results must not change.
TEST_P(VersionTest, RowsWithNanAndInfinity) {
    for (const std::size_t cols : {1, 6, 900, 3000, 33000}) {
        const std::size_t middle = cols / 2;
        const std::vector<std::pair<std::string, std::vector<float>>> special = [&] {
            const std::vector<float> plain = course::make_data<float>(cols, DataPattern::kNormal, kSeed);
            const auto with = [&](float fill, std::size_t at, float value) {
                std::vector<float> row(cols, fill);
                row[at] = value;
                return row;
            };
            std::vector<float> nan = plain;
            nan[middle] = kNan;
            std::vector<float> inf = plain;
            inf[cols - 1] = kInf;
            std::vector<float> half = plain;
            std::fill_n(half.begin(), middle, -kInf);
            return std::vector<std::pair<std::string, std::vector<float>>>{
                {"all -Inf", std::vector<float>(cols, -kInf)},
                {"a NaN", nan},
                {"all NaN", std::vector<float>(cols, kNan)},
                {"a NaN, else -Inf", with(-kInf, cols - 1, kNan)},
                {"a +Inf", inf},
                {"all +Inf", std::vector<float>(cols, kInf)},
                {"first half -Inf", half},
                {"one finite first, else -Inf", with(-kInf, 0, -3.0f)},
                {"one finite last, else -Inf", with(-kInf, cols - 1, 7.0f)},
                {"all the largest float", std::vector<float>(cols, kHuge)},
                {"all the lowest float", std::vector<float>(cols, -kHuge)},
                {"largest beside lowest", with(-kHuge, middle, kHuge)},
                {"huge steps", with(3.0e38f, 0, 2.9e38f)}};
        }();
        const std::vector<float> plain = course::make_data<float>(cols, DataPattern::kNormal, kSeed + 1);
        for (const Output output : {Output::kSoftmax, Output::kLogSoftmax}) {
            if (!GetParam()->cannot_run({1, cols, output}).empty()) continue;
            const bool many = cols < 10000;
            std::vector<float> together = plain;
            for (const auto& [what, row] : special) {
                if (!many) {
                    const course::VerifyResult result = run({1, cols, output}, row);
                    EXPECT_TRUE(result.ok()) << day21::name(output) << ", " << cols << " columns, " << what
                                             << ": " << result.message();
                }
                together.insert(together.end(), row.begin(), row.end());
                together.insert(together.end(), plain.begin(), plain.end());
            }
            if (!many) continue;
            const course::VerifyResult result = run({2 * special.size() + 1, cols, output}, together);
            EXPECT_TRUE(result.ok()) << day21::name(output) << ", " << cols
                                     << " columns: " << result.message();
        }
    }
}

// In ascending order every chunk has a new maximum, and the sum is rescaled each time.
TEST_P(VersionTest, WideRangesAscendingAndDescending) {
    for (const std::size_t cols : {300, 9000, 33000}) {
        std::vector<float> data = course::make_data<float>(cols, DataPattern::kSorted, kSeed);
        for (float& x : data)
            x *= 60;
        for (const bool ascending : {true, false}) {
            if (!ascending) std::reverse(data.begin(), data.end());
            for (const Output output : {Output::kSoftmax, Output::kLogSoftmax}) {
                const Problem problem{1, cols, output};
                if (!GetParam()->cannot_run(problem).empty()) continue;
                const course::VerifyResult result = run(problem, data);
                EXPECT_TRUE(result.ok()) << day21::name(output) << " of " << cols << ": " << result.message();
            }
        }
    }
}

TEST_P(VersionTest, AnyAlignmentAndLeadingDimension) {
    const std::pair<Layout, Layout> layouts[] = {{{1, 0}, {0, 0}}, {{0, 0}, {3, 0}}, {{0, 1}, {0, 0}},
                                                 {{0, 0}, {0, 3}}, {{2, 6}, {1, 5}}, {{0, 4}, {4, 8}},
                                                 {{8, 0}, {0, 4}}, {{0, 2}, {2, 2}}};
    for (const auto& [in, out] : layouts) {
        expect_right(5, 100, DataPattern::kNormal, in, out);
        expect_right(2, 2052, DataPattern::kNormal, in, out);
    }
    expect_right(2, 33000, DataPattern::kNormal, {1, 2}, {3, 0});
    expect_right(2, 33000, DataPattern::kNormal, {0, 4}, {4, 8});
}

TEST_P(VersionTest, ResultMayReplaceTheInput) {
    for (const std::size_t cols : {33, 1000, 5000, 34000}) {
        expect_right(3, cols, DataPattern::kNormal, {}, {}, true);
        expect_right(3, cols, DataPattern::kNormal, {1, 3}, {}, true);
    }
}

TEST_P(VersionTest, RandomShapes) {
    course::Random random(20200101);
    SCOPED_TRACE("course::Random seed 20200101");
    for (int round = 0; round < 15; ++round) {
        const std::size_t rows = 1 + random.below(6);
        const std::size_t cols = 1 + random.below(1U << random.below(14));
        expect_right(rows, cols, DataPattern::kNormal, {random.below(4), random.below(5)},
                     {random.below(4), random.below(5)});
    }
}

TEST_P(VersionTest, NothingToDo) {
    if (const std::string reason = GetParam()->cannot_run({1, 5, Output::kSoftmax}); !reason.empty())
        GTEST_SKIP() << reason;
    GuardedBuffer<float> none(0);
    DeviceBuffer<MaxSum> workspace(0);
    launch(Output::kSoftmax, none.matrix(0, 0), none.matrix(0, 0), workspace.span());
    launch(Output::kSoftmax, none.matrix(0, 5), none.matrix(0, 5), workspace.span());
    launch(Output::kSoftmax, none.matrix(1, 0), none.matrix(1, 0), workspace.span());
    EXPECT_EQ(none.damage(), "");
}

// Captured into a graph, and right when the graph is launched.
TEST_P(VersionTest, RunsOnTheGivenStream) {
    const Problem problem{9, 100, Output::kSoftmax};
    if (const std::string reason = GetParam()->cannot_run(problem); !reason.empty()) GTEST_SKIP() << reason;
    const std::vector<float> data = course::make_data<float>(900, DataPattern::kNormal, kSeed);
    const DeviceBuffer<float> in{std::span(data)};
    GuardedBuffer<float> out(900);
    DeviceBuffer<MaxSum> workspace(day21::workspace_size(9, 100));
    const course::CapturedWork work([&](cudaStream_t stream) {
        launch(problem.output, in.matrix(9, 100), out.matrix(9, 100), workspace.span(), stream);
    });
    EXPECT_TRUE(std::isnan(out.to_host().front())) << "it ran instead of being captured";
    work.run();
    const course::VerifyResult result = compare(problem, data, out.to_host());
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(VersionTest, RefusesBadArguments) {
    if (const std::string reason = GetParam()->cannot_run({1, 8, Output::kSoftmax}); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> buffer{std::span<const float>(std::vector<float>(64, 1.0f))};
    DeviceBuffer<MaxSum> workspace(1);
    const auto matrix = [&](std::size_t offset, std::size_t rows, std::size_t cols, std::size_t step) {
        return DeviceMatrix<float>(buffer.span().subspan(offset, 64 - offset), rows, cols, step);
    };
    const auto with = [&](DeviceMatrix<float> in, DeviceMatrix<float> out, DeviceSpan<MaxSum> space) {
        return refusal([&] { launch(Output::kSoftmax, in, out, space); });
    };
    EXPECT_EQ(with(matrix(0, 1, 8, 8), matrix(16, 1, 9, 9), workspace.span()),
              "softmax: in is 1 x 8 and out 1 x 9; expected the same shape");
    EXPECT_EQ(with(matrix(0, 1, 8, 8), matrix(16, 0, 8, 8), workspace.span()),
              "softmax: in is 1 x 8 and out 0 x 8; expected the same shape");
    EXPECT_EQ(with(matrix(0, 1, 8, 8), matrix(16, 1, 8, 8), workspace.span().subspan(0, 0)),
              "softmax: workspace has 0 elements; expected at least 1");
    const std::string overlap =
        "softmax: out overlaps in but is not in; expected the same address and leading dimension, or no "
        "element in common";
    EXPECT_EQ(with(matrix(0, 1, 8, 8), matrix(7, 1, 8, 8), workspace.span()), overlap);
    EXPECT_EQ(with(matrix(7, 1, 8, 8), matrix(0, 1, 8, 8), workspace.span()), overlap);
    EXPECT_EQ(with(matrix(0, 1, 8, 8), matrix(8, 1, 8, 8), workspace.span()), "");
    EXPECT_EQ(with(matrix(8, 1, 8, 8), matrix(0, 1, 8, 8), workspace.span()), "");
    DeviceBuffer<MaxSum> two(2);
    EXPECT_EQ(with(matrix(0, 2, 8, 8), matrix(16, 2, 8, 8), workspace.span()),
              "softmax: workspace has 1 elements; expected at least 2");
    EXPECT_EQ(with(matrix(0, 2, 8, 8), matrix(0, 2, 8, 9), two.span()), overlap);
    EXPECT_EQ(with(matrix(0, 2, 8, 10), matrix(17, 2, 8, 8), two.span()), overlap);
    EXPECT_EQ(with(matrix(0, 2, 8, 10), matrix(18, 2, 8, 8), two.span()), "");
}

TEST_P(VersionTest, RefusesWhatItCannotRun) {
    for (const Problem problem : {Problem{1, 193, Output::kSoftmax}, Problem{1, 1025, Output::kSoftmax},
                                  Problem{1, 32769, Output::kSoftmax}}) {
        const std::string reason = GetParam()->cannot_run(problem);
        if (reason.empty()) continue;
        DeviceBuffer<float> buffer(problem.rows * problem.cols);
        DeviceBuffer<MaxSum> workspace(day21::workspace_size(problem.rows, problem.cols));
        const DeviceMatrix<float> matrix = buffer.matrix(problem.rows, problem.cols);
        EXPECT_EQ(refusal([&] { launch(problem.output, matrix, matrix, workspace.span()); }),
                  "softmax: this version " + reason);
    }
}

// More elements than 32 bits count, in place, 17 GB: rows of zeros, and some rows with something
// else.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t cols = GetParam()->cannot_run({1, 1024, Output::kSoftmax}).empty() ? 1024 : 128;
    const std::size_t rows = (std::size_t{1} << 32) / cols + 3;
    const std::size_t elements = rows * cols;
    if (const std::string reason = course::why_not_so_large(elements * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> data(elements);
    DeviceBuffer<MaxSum> workspace(day21::workspace_size(rows, cols));
    CUDA_CHECK(cudaMemset(data.data(), 0, data.bytes()));
    const std::vector<float> row = course::make_data<float>(cols, DataPattern::kNormal, kSeed);
    const std::size_t places[] = {0, rows / 4 - 1, rows / 2 + 1, rows - 1};
    for (const std::size_t place : places)
        CUDA_CHECK(
            cudaMemcpy(data.data() + place * cols, row.data(), cols * sizeof(float), cudaMemcpyHostToDevice));
    launch(Output::kSoftmax, data.matrix(rows, cols), data.matrix(rows, cols), workspace.span());

    std::vector<float> got(cols);
    const auto fetch = [&](std::size_t place) {
        CUDA_CHECK(
            cudaMemcpy(got.data(), data.data() + place * cols, cols * sizeof(float), cudaMemcpyDeviceToHost));
    };
    for (const std::size_t place : places) {
        fetch(place);
        const course::VerifyResult result = compare({1, cols, Output::kSoftmax}, row, got);
        EXPECT_TRUE(result.ok()) << "row " << place << ": " << result.message();
    }
    fetch(rows - 2);
    const course::VerifyResult result =
        compare({1, cols, Output::kSoftmax}, std::vector<float>(cols, 0.0f), got);
    EXPECT_TRUE(result.ok()) << "row " << rows - 2 << ": " << result.message();
}

// The same on the CPU, where only the blocks of the first rows, of some in the middle and of the
// last ones run.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    if (GetParam()->name == "cluster_per_row" || GetParam()->name == "whole_gpu")
        GTEST_SKIP() << "its blocks wait for each other: all run, or none";
    const std::size_t cols = GetParam()->cannot_run({1, 1024, Output::kSoftmax}).empty() ? 1024 : 128;
    const std::size_t rows = (std::size_t{1} << 32) / cols + 3;
    const course::LargeArray<float> data(rows * cols);
    const course::LargeArray<MaxSum> workspace(day21::workspace_size(rows, cols));
    const std::vector<float> row = course::make_data<float>(cols, DataPattern::kNormal, kSeed);
    const std::size_t places[] = {0, rows / 2, rows - 1};
    for (const std::size_t place : places)
        std::ranges::copy(row, &data[place * cols]);
    const DeviceMatrix<float> matrix(data.span(), rows, cols);
    course::run_few_blocks([&] { launch(Output::kSoftmax, matrix, matrix, workspace.span()); });
    if (HasFatalFailure()) return;
    for (const std::size_t place : places) {
        const std::vector<float> got(&data[place * cols], &data[place * cols] + cols);
        const course::VerifyResult result = compare({1, cols, Output::kSoftmax}, row, got);
        EXPECT_TRUE(result.ok()) << course::large_element(place * cols, rows * cols) << '\n'
                                 << result.message();
    }
}

// So long that a block of two_pass has two chunks, and the last block only one.
TEST(TwoPass, SeveralChunksForABlock) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const Problem problem{1, 1024 * 8192 + 20, Output::kSoftmax};
    std::vector<float> data = course::make_data<float>(problem.cols, DataPattern::kNormal, kSeed);
    const DeviceBuffer<float> in{std::span<const float>(data)};
    GuardedBuffer<float> out(problem.cols);
    DeviceBuffer<MaxSum> workspace(day21::workspace_size(1, problem.cols));
    course::find_version(day21::versions(), "two_pass")
        .launcher(problem.output, in.matrix(1, problem.cols), out.matrix(1, problem.cols), workspace.span(),
                  nullptr);
    const course::VerifyResult result = compare(problem, data, out.to_host());
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(out.damage(), "");
}

// The longest row of each version, and one that is a column longer.
TEST(Constraints, ByTheRegistersOfTheThreadsThatShareARow) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const auto why_not = [](const char* version, std::size_t cols) {
        return course::find_version(day21::versions(), version).cannot_run({3, cols, Output::kSoftmax});
    };
    EXPECT_EQ(why_not("warp_per_row", 1024), "");
    EXPECT_EQ(why_not("warp_per_row", 1025), "keeps at most 1024 columns, not 1025");
    for (const char* version : {"lanes_per_row", "rows_in_shared"}) {
        EXPECT_EQ(why_not(version, 192), "");
        EXPECT_EQ(why_not(version, 193), "keeps at most 192 columns, not 193");
    }
    EXPECT_EQ(why_not("block_per_row", 32768), "");
    EXPECT_EQ(why_not("block_per_row", 32769), "keeps at most 32768 columns, not 32769");
    if (why_not("cluster_per_row", 1).empty()) {
        EXPECT_EQ(why_not("cluster_per_row", 262144), "");
        EXPECT_EQ(why_not("cluster_per_row", 262145), "keeps at most 262144 columns, not 262145");
    }
    const std::size_t of_gpu = std::size_t{course::multiprocessors()} * 32768;
    EXPECT_EQ(why_not("whole_gpu", of_gpu), "");
    EXPECT_EQ(why_not("whole_gpu", of_gpu + 1),
              "keeps at most " + std::to_string(of_gpu) + " columns, not " + std::to_string(of_gpu + 1));
    EXPECT_EQ(why_not("two_pass", std::size_t{1} << 33), "");
    EXPECT_EQ(why_not("auto", std::size_t{1} << 33), "");
}

TEST(Chosen, ByTheLengthOfTheRow) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const auto chosen = [](std::size_t rows, std::size_t cols) {
        return day21::chosen_for({rows, cols, Output::kSoftmax}).name;
    };
    EXPECT_EQ(chosen(65536, 1), "rows_in_shared");
    EXPECT_EQ(chosen(65536, 8), "lanes_per_row");
    EXPECT_EQ(chosen(65536, 12), "lanes_per_row");
    EXPECT_EQ(chosen(65536, 20), "rows_in_shared");
    EXPECT_EQ(chosen(65536, 97), "rows_in_shared");
    EXPECT_EQ(chosen(65536, 127), "lanes_per_row");
    EXPECT_EQ(chosen(65536, 128), "lanes_per_row");
    EXPECT_EQ(chosen(65536, 192), "lanes_per_row");
    EXPECT_EQ(chosen(65536, 193), "warp_per_row");
    // Few rows: a warp each.
    EXPECT_EQ(chosen(93, 93), "warp_per_row");
    EXPECT_EQ(chosen(2048, 129), "warp_per_row");
    EXPECT_EQ(chosen(2049, 97), "rows_in_shared");
    EXPECT_EQ(chosen(32, 32), "lanes_per_row");
    EXPECT_EQ(chosen(4096, 512), "warp_per_row");
    EXPECT_EQ(chosen(4096, 1024), "block_per_row");
    EXPECT_EQ(chosen(8192, 8192), "block_per_row");
    if (find_version(day21::versions(), "cluster_per_row")
            .cannot_run({16, 65536, Output::kSoftmax})
            .empty()) {
        EXPECT_EQ(chosen(16, 65536), "cluster_per_row");
    }
    // Beyond clusters: the whole GPU, as long as each row has its team of blocks of 32768 columns.
    const std::size_t multiprocessors = course::multiprocessors();
    const std::size_t cols = std::min<std::size_t>(9, multiprocessors) * 32768;
    const std::size_t teams = multiprocessors / (cols / 32768);
    if (cols > 262144) {
        EXPECT_EQ(chosen(teams, cols), "whole_gpu");
        EXPECT_EQ(chosen(teams + 1, cols), "two_pass");
        EXPECT_EQ(chosen(16, cols - 32768 + 4), teams < 16 ? "two_pass" : "whole_gpu");
    }
    EXPECT_EQ(chosen(1, std::size_t{1} << 33), "two_pass");
    EXPECT_EQ(chosen(1U << 20, 1U << 20), "two_pass");
}

TEST(SoftmaxOnCpu, KnownValues) {
    const std::vector<float> in = {0, 0, 0, 1, 2, 3};
    std::vector<double> out(6);
    day21::softmax_on_cpu({2, 3, Output::kSoftmax}, in, out);
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_DOUBLE_EQ(out[i], 1.0 / 3);
    EXPECT_NEAR(out[3], 0.0900305731703804, 1e-15);
    EXPECT_NEAR(out[4], 0.2447284710547976, 1e-15);
    EXPECT_NEAR(out[5], 0.6652409557748219, 1e-15);
    day21::softmax_on_cpu({2, 3, Output::kLogSoftmax}, in, out);
    EXPECT_NEAR(out[0], -std::log(3.0), 1e-15);
    EXPECT_NEAR(out[5], std::log(0.6652409557748219), 1e-15);
    EXPECT_THROW(day21::softmax_on_cpu({3, 3, Output::kSoftmax}, in, out), std::invalid_argument);
}

// The bound must notice an element of a thousand missing in the sum.
TEST(ErrorMagnitudes, AreTightEnough) {
    const std::vector<float> in = course::make_data<float>(1000, DataPattern::kSignedUniform, kSeed);
    std::vector<double> out(1000);
    std::vector<double> without_last(999);
    day21::softmax_on_cpu({1, 1000, Output::kSoftmax}, in, out);
    day21::softmax_on_cpu({1, 999, Output::kSoftmax}, std::span(in).first(999), without_last);
    std::vector<float> got(without_last.begin(), without_last.end());
    got.push_back(static_cast<float>(out.back()));
    EXPECT_EQ(compare({1, 1000, Output::kSoftmax}, in, got).differing, 999U);
}

}  // namespace
