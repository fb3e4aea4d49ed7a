// The grouped GEMM on tensor cores: groups of uneven sizes, exactly and within the bound.
#include "grouped.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "far_offsets_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;
using day27::Shape;
using Bf16 = __nv_bfloat16;

std::vector<float> as_floats(const std::vector<Bf16>& values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](Bf16 value) { return static_cast<float>(value); });
    return floats;
}

// Small: every product and every sum of a few thousand is exact in single precision.
std::vector<Bf16> integers(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<Bf16> values(size);
    for (Bf16& value : values)
        value = Bf16(static_cast<float>(random.integer(-8, 8)));
    return values;
}

// Logits with which as many tokens choose each expert as `counts` has for it, in a random order.
std::vector<float> logits_for(const std::vector<std::size_t>& counts, std::uint64_t seed) {
    std::vector<std::size_t> expert_of;
    for (std::size_t expert = 0; expert < counts.size(); ++expert)
        expert_of.insert(expert_of.end(), counts[expert], expert);
    course::Random random(seed);
    for (std::size_t i = expert_of.size(); i > 1; --i)
        std::swap(expert_of[i - 1], expert_of[random.below(static_cast<std::uint32_t>(i))]);
    std::vector<float> logits(expert_of.size() * counts.size());
    for (std::size_t token = 0; token < expert_of.size(); ++token)
        logits[token * counts.size() + expert_of[token]] = 1;
    return logits;
}

struct Problem {
    Shape shape;
    std::vector<float> logits;
    std::vector<Bf16> x, weights;
};

Problem random_problem(const Shape& shape, DataPattern pattern, std::uint64_t seed) {
    return {shape, course::make_data<float>(shape.tokens * shape.experts, DataPattern::kNormal, seed),
            course::make_data<Bf16>(shape.tokens * shape.hidden, pattern, seed + 1),
            course::make_data<Bf16>(shape.experts * shape.hidden * shape.width, pattern, seed + 2)};
}

// One choice for each token, so every gate is 1, and integers: only equal is right.
Problem exact_problem(const std::vector<std::size_t>& counts, std::size_t hidden, std::size_t width,
                      std::uint64_t seed = 27) {
    const std::size_t tokens = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    const Shape shape{tokens, hidden, width, counts.size(), 1};
    return {shape, logits_for(counts, seed), integers(tokens * hidden, seed + 1),
            integers(counts.size() * hidden * width, seed + 2)};
}

// The inputs on the device, `misaligned_by` elements after an aligned address.
struct OnDevice {
    explicit OnDevice(const Problem& problem, std::size_t misaligned = 0)
        : shape(problem.shape),
          misaligned_by(misaligned),
          logits(std::span<const float>(problem.logits)),
          x(problem.x.size() + misaligned),
          weights(problem.weights.size() + misaligned),
          out(shape.tokens * shape.width),
          workspace(shape) {
        const auto copy = [&](DeviceBuffer<Bf16>& to, const std::vector<Bf16>& from) {
            if (from.empty()) return;
            CUDA_CHECK(cudaMemcpy(to.data() + misaligned_by, from.data(), from.size() * sizeof(Bf16),
                                  cudaMemcpyHostToDevice));
        };
        copy(x, problem.x);
        copy(weights, problem.weights);
    }

    day27::Bfloat16Layer layer() {
        const OnDevice& inputs = *this;
        return {shape, inputs.logits.span(), inputs.x.span().subspan(misaligned_by, x.size() - misaligned_by),
                inputs.weights.span().subspan(misaligned_by, weights.size() - misaligned_by), out.span()};
    }

    Shape shape;
    std::size_t misaligned_by;
    DeviceBuffer<float> logits;
    DeviceBuffer<Bf16> x, weights;
    GuardedBuffer<float> out;
    day27::Workspace workspace;
};

course::VerifyResult compare(const Problem& problem, const OnDevice& device, bool exact) {
    const day27::Expected expected =
        day27::layer_on_cpu(problem.shape, problem.logits, as_floats(problem.x), as_floats(problem.weights),
                            0, problem.shape.tokens, day27::Sums::kCutOff);
    std::vector<double> magnitude = expected.bound;
    for (double& bound : magnitude)
        bound /= course::FloatTraits<float>::kEpsilon;
    course::VerifyResult result = course::verify(
        device.out.to_host(), expected.value, {.factor = exact ? 0.0 : 1.0}, magnitude, problem.shape.width);
    result.damage = device.out.damage();
    return result;
}

class GroupedTest : public course::DeviceTestWithParam<const day27::GroupedVersion*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day27::GroupedVersion*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    static void expect_right(const Problem& problem, bool exact, std::size_t misaligned_by = 0) {
        OnDevice device(problem, misaligned_by);
        GetParam()->launcher(device.layer(), device.workspace, nullptr);
        const course::VerifyResult result = compare(problem, device, exact);
        EXPECT_TRUE(result.ok()) << day27::name(problem.shape) << ", misaligned by " << misaligned_by << ": "
                                 << result.message();
    }
    static void expect_exact(const std::vector<std::size_t>& counts, std::size_t hidden, std::size_t width,
                             std::size_t misaligned_by = 0) {
        expect_right(exact_problem(counts, hidden, width), true, misaligned_by);
    }
};

INSTANTIATE_TEST_SUITE_P(Versions, GroupedTest, course::each_of(day27::grouped_versions()),
                         course::VersionName());

// Around a tile's rows: experts with 0, 1, 63, 64, 65 and more tokens, at either end of the list.
TEST_P(GroupedTest, UnevenGroups) {
    expect_exact({0, 1, 63, 64, 65, 0, 0, 128, 129, 0}, 16, 136);
    expect_exact({65, 0, 64, 1, 63}, 16, 8);
    expect_exact({0, 0, 65}, 16, 8);
    expect_exact({1}, 16, 8);
    expect_exact(std::vector<std::size_t>(256, 1), 8, 8);
}

// 768 tiles of two steps: on a GPU of up to 200 SMs some blocks of `persistent` take a second one.
TEST_P(GroupedTest, MoreTilesThanBlocks) {
    expect_exact(std::vector<std::size_t>(256, 1), 72, 264);
}

// Around an MMA, a stage and the stages of the ring; for each, rows that are aligned and others.
TEST_P(GroupedTest, Hidden) {
    for (const std::size_t hidden : {1, 7, 8, 15, 16, 17, 63, 64, 65, 72, 128, 136, 192, 257})
        expect_exact({3, 66, 0, 2}, hidden, 8);
}

TEST_P(GroupedTest, Width) {
    for (const std::size_t width : {1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 136})
        expect_exact({3, 66, 0, 2}, 24, width);
}

TEST_P(GroupedTest, MisalignedInputs) {
    for (const std::size_t misaligned_by : {1, 4, 8})
        expect_exact({3, 66, 0, 2}, 72, 136, misaligned_by);
}

// Gates other than 1, sums that are rounded.
TEST_P(GroupedTest, WithinTheBound) {
    for (const DataPattern pattern : {DataPattern::kNormal, DataPattern::kAllEqual, DataPattern::kSorted})
        expect_right(random_problem({150, 200, 40, 6, 2}, pattern, 5), false);
    expect_right(random_problem({70, 33, 50, 12, 8}, DataPattern::kNormal, 6), false);
}

TEST_P(GroupedTest, RandomShapes) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        course::Random random(seed, 2727);
        Shape shape;
        shape.tokens = 1 + random.below(200);
        shape.hidden = 1 + random.below(150);
        shape.width = 1 + random.below(150);
        shape.experts = 1 + random.below(20);
        shape.chosen = 1 + random.below(static_cast<std::uint32_t>(std::min<std::size_t>(shape.experts, 8)));
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_right(random_problem(shape, DataPattern::kSignedUniform, seed), false);
    }
}

TEST_P(GroupedTest, ExtentsOfZero) {
    expect_right(random_problem({0, 8, 8, 3, 2}, DataPattern::kNormal, 1), true);
    expect_right(random_problem({6, 8, 0, 3, 2}, DataPattern::kNormal, 1), true);
    expect_right(random_problem({6, 0, 8, 3, 2}, DataPattern::kNormal, 1), true);  // zeros
}

// The last row tile of an expert has rows that do not exist, and the last step columns: NaN and Inf
// of other tokens and experts must not reach the sums through them.
TEST_P(GroupedTest, NotFiniteInAnotherTokenOrExpert) {
    for (const std::size_t extent : {20, 24}) {
        Problem problem = exact_problem({5, 66, 3, 1}, extent, extent);
        const day27::Routing routing = day27::route_on_cpu(problem.shape, problem.logits);
        problem.x[3 * extent + 2] = Bf16(std::numeric_limits<float>::quiet_NaN());  // token 3
        std::fill_n(problem.weights.begin() + static_cast<std::ptrdiff_t>(2 * extent * extent),
                    extent * extent, Bf16(std::numeric_limits<float>::infinity()));  // expert 2
        OnDevice device(problem);
        GetParam()->launcher(device.layer(), device.workspace, nullptr);
        const std::vector<float> got = device.out.to_host();
        for (std::size_t token = 0; token < problem.shape.tokens; ++token)
            for (std::size_t c = 0; c < extent; ++c)
                ASSERT_EQ(std::isfinite(got[token * extent + c]), token != 3 && routing.choice[token] != 2)
                    << "token " << token << ", column " << c;
    }
}

// First in small, which shows that the test itself is right.
TEST_P(GroupedTest, OffsetsBeyond32Bits) {
    for (const std::size_t multiple : {1, 8})
        day27::FarOffsets<Bf16>::expect_right(GetParam()->launcher, 1 << 12, multiple);
    if (const std::string reason = course::why_not_so_large(day27::kFarBytes); !reason.empty())
        GTEST_SKIP() << reason;
    for (const std::size_t multiple : {1, 8})
        day27::FarOffsets<Bf16>::expect_right(GetParam()->launcher, day27::kFar, multiple);
}

// All work is on the given stream, also with other groups at the next run.
TEST_P(GroupedTest, CanBeCaptured) {
    Problem problem = exact_problem({5, 66, 3, 1}, 24, 24);
    OnDevice device(problem);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(device.layer(), device.workspace, stream); });
    for (const auto& counts : {std::vector<std::size_t>{0, 0, 0, 75}, {60, 5, 5, 5}}) {
        problem.logits = logits_for(counts, 3);
        CUDA_CHECK(cudaMemcpy(device.logits.data(), problem.logits.data(), device.logits.bytes(),
                              cudaMemcpyHostToDevice));
        device.out.spoil();
        work.run();
        const course::VerifyResult result = compare(problem, device, true);
        EXPECT_TRUE(result.ok()) << result.message();
    }
}

TEST_P(GroupedTest, RefusesBadArguments) {
    OnDevice device(exact_problem({1, 2}, 3, 4));
    const auto with = [&](auto change) {
        day27::Bfloat16Layer layer = device.layer();
        change(layer);
        return refusal([&] { GetParam()->launcher(layer, device.workspace, nullptr); });
    };
    EXPECT_EQ(with([](auto&) {}), "");
    EXPECT_EQ(with([](auto& layer) { layer.x = layer.x.subspan(0, 8); }),
              "mixture: x has 8 elements; expected 9");
    EXPECT_EQ(with([](auto& layer) { layer.shape.experts = 0; }), "mixture: experts is 0; expected 1 to 256");
    EXPECT_EQ(with([](auto& layer) { layer.weights = layer.weights.subspan(0, 0); }),
              "mixture: weights has 0 elements; expected 24");
}

}  // namespace
