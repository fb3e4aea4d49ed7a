// The routing exactly, and every version against the reference.
#include "mixture_of_experts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "far_offsets_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;
using day27::Shape;
using day27::Version;
using day27::Workspace;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// How the tokens choose.
enum class Logits {
    kRandom,
    kOneExpert,  // all tokens choose the last experts, so all others have none
    kTies,       // only three different values
    kEqual,      // the lowest experts, by the rule for ties
    kSkewed,     // the higher the expert, the rarer
};

std::vector<float> make_logits(const Shape& shape, Logits kind, std::uint64_t seed) {
    std::vector<float> logits(shape.tokens * shape.experts);
    course::Random random(seed);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const auto expert = static_cast<float>(i % shape.experts);
        const auto noise = static_cast<float>(random.below(1u << 20)) * 0x1p-18f;  // 0 to 4
        switch (kind) {
            case Logits::kRandom:
                logits[i] = noise;
                break;
            case Logits::kOneExpert:
                logits[i] = expert * 0.5f;
                break;
            case Logits::kTies:
                logits[i] = static_cast<float>(random.below(3));
                break;
            case Logits::kEqual:
                logits[i] = -1;
                break;
            case Logits::kSkewed:
                logits[i] = noise - 0.7f * expert;
                break;
        }
    }
    return logits;
}

struct Problem {
    Problem(const Shape& s, Logits kind, std::uint64_t seed = 27, DataPattern pattern = DataPattern::kNormal)
        : shape(s),
          logits(make_logits(s, kind, seed)),
          x(course::make_data<float>(s.tokens * s.hidden, pattern, seed + 1)),
          weights(course::make_data<float>(s.experts * s.hidden * s.width, pattern, seed + 2)) {}

    Shape shape;
    std::vector<float> logits, x, weights;
};

// The inputs on the device.
struct OnDevice {
    explicit OnDevice(const Problem& problem)
        : shape(problem.shape),
          logits(std::span<const float>(problem.logits)),
          x(std::span<const float>(problem.x)),
          weights(std::span<const float>(problem.weights)),
          out(shape.tokens * shape.width),
          workspace(shape) {}

    day27::Layer layer() {
        const OnDevice& inputs = *this;
        return {shape, inputs.logits.span(), inputs.x.span(), inputs.weights.span(), out.span()};
    }

    Shape shape;
    DeviceBuffer<float> logits, x, weights;
    GuardedBuffer<float> out;
    Workspace workspace;
};

course::VerifyResult compare(const Problem& problem, const OnDevice& device) {
    const day27::Expected expected = day27::layer_on_cpu(problem.shape, problem.logits, problem.x,
                                                         problem.weights, 0, problem.shape.tokens);
    std::vector<double> magnitude = expected.bound;
    for (double& bound : magnitude)
        bound /= course::FloatTraits<float>::kEpsilon;
    course::VerifyResult result =
        course::verify(device.out.to_host(), expected.value, {.factor = 1}, magnitude, problem.shape.width);
    result.damage = device.out.damage();
    return result;
}

// --- The routing ---------------------------------------------------------------------------------

// The router alone: choices and gates.
class RouterTest : public course::DeviceTest {
  protected:
    static void expect_choices(const Problem& problem) {
        OnDevice device(problem);
        day27::route(device.layer(), device.workspace, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        const day27::Routing expected = day27::route_on_cpu(problem.shape, problem.logits);
        SCOPED_TRACE(day27::name(problem.shape));
        ASSERT_EQ(device.workspace.choice.to_host(), expected.choice);
        const std::vector<float> gate = device.workspace.gate.to_host();
        for (std::size_t i = 0; i < gate.size(); ++i)
            ASSERT_NEAR(static_cast<double>(gate[i]), expected.gate[i], 1e-5) << "pair " << i;
    }
};

// Tokens around a block's warps, experts around a warp's lanes.
TEST_F(RouterTest, ChoicesAndGates) {
    for (const std::size_t tokens : {1, 7, 8, 9})
        expect_choices(Problem({tokens, 1, 1, 20, 2}, Logits::kRandom));
    for (const std::size_t experts : {1, 31, 32, 33, 255, 256})
        for (const std::size_t chosen : {1, 3, 8})
            expect_choices(Problem({70, 1, 1, experts, std::min(experts, chosen)}, Logits::kRandom));
}

TEST_F(RouterTest, TiesGoToTheLowestExpert) {
    for (const Logits kind : {Logits::kTies, Logits::kEqual}) {
        expect_choices(Problem({100, 1, 1, 40, 8}, kind));
        expect_choices(Problem({100, 1, 1, 8, 8}, kind));
    }
    const Problem equal({2, 1, 1, 40, 3}, Logits::kEqual);
    EXPECT_EQ(day27::route_on_cpu(equal.shape, equal.logits).choice, (std::vector<int>{0, 1, 2, 0, 1, 2}));
}

// NaN counts as -Inf; of -Inf only, the gates are 0; equal +Inf share.
TEST_F(RouterTest, NotFinite) {
    Problem problem({5, 1, 1, 4, 2}, Logits::kRandom);
    std::vector<float>& logits = problem.logits;
    logits[0] = kNan;
    std::fill_n(logits.begin() + 4, 4, -kInf);
    std::fill_n(logits.begin() + 8, 4, kNan);
    std::fill_n(logits.begin() + 12, 3, -kInf);
    logits[17] = logits[19] = kInf;
    expect_choices(problem);
    OnDevice device(problem);
    day27::route(device.layer(), device.workspace, nullptr);
    const std::vector<float> gate = device.workspace.gate.to_host();
    EXPECT_EQ(std::vector<float>(gate.begin() + 2, gate.end()),
              (std::vector<float>{0, 0, 0, 0, 1, 0, 0.5f, 0.5f}));
}

// The order by expert.
class RoutingTest : public course::DeviceTest {
  protected:
    static void expect_places(const Problem& problem) {
        OnDevice device(problem);
        day27::route(device.layer(), device.workspace, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        const day27::Routing expected = day27::route_on_cpu(problem.shape, problem.logits);
        SCOPED_TRACE(day27::name(problem.shape));
        ASSERT_EQ(device.workspace.starts.to_host(), expected.starts);
        ASSERT_EQ(device.workspace.place.to_host(), expected.place);
        ASSERT_EQ(device.workspace.pair_at.to_host(), expected.pair_at);
    }
};

// Tokens around a block's pairs. With 256 experts and 5 blocks of pairs a thread of the scan has
// two counts.
TEST_F(RoutingTest, Places) {
    for (const std::size_t tokens : {1, 31, 33, 255, 256, 257, 600})
        for (const std::size_t experts : {1, 8, 33})
            expect_places(
                Problem({tokens, 1, 1, experts, std::min<std::size_t>(experts, 2)}, Logits::kRandom));
    for (const std::size_t experts : {255, 256})
        expect_places(Problem({160, 1, 1, experts, 8}, Logits::kRandom));
}

TEST_F(RoutingTest, ExpertsWithoutTokensAndOneWithAll) {
    const Problem problem({300, 1, 1, 64, 1}, Logits::kOneExpert);
    const day27::Routing routing = day27::route_on_cpu(problem.shape, problem.logits);
    EXPECT_EQ(routing.starts[63], 0);
    EXPECT_EQ(routing.starts[64], 300);
    expect_places(problem);
    expect_places(Problem({300, 1, 1, 64, 8}, Logits::kOneExpert));
    expect_places(Problem({300, 1, 1, 64, 4}, Logits::kSkewed));
}

// --- The layer -----------------------------------------------------------------------------------

class LayerTest : public course::DeviceTestWithParam<const Version*> {
  protected:
    static void expect_right(const Problem& problem) {
        OnDevice device(problem);
        GetParam()->launcher(device.layer(), device.workspace, nullptr);
        const course::VerifyResult result = compare(problem, device);
        EXPECT_TRUE(result.ok()) << day27::name(problem.shape) << ": " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(Versions, LayerTest, each_of(day27::versions()), course::VersionName());

// Around a tile's rows, by the tokens of a single expert, and more than a tile for some of several.
TEST_P(LayerTest, Tokens) {
    for (const std::size_t tokens : {1, 31, 32, 33})
        expect_right(Problem({tokens, 5, 3, 1, 1}, Logits::kRandom));
    expect_right(Problem({150, 5, 3, 3, 2}, Logits::kRandom));
    expect_right(Problem({67, 5, 3, 40, 2}, Logits::kRandom));
}

// Around a tile's depth and columns.
TEST_P(LayerTest, HiddenAndWidth) {
    for (const std::size_t hidden : {1, 31, 32, 33, 65})
        expect_right(Problem({9, hidden, 5, 4, 2}, Logits::kRandom));
    for (const std::size_t width : {1, 32, 33, 63, 64, 65, 131})
        expect_right(Problem({9, 6, width, 4, 2}, Logits::kRandom));
}

TEST_P(LayerTest, Choices) {
    for (const std::size_t chosen : {1, 2, 8}) {
        for (const Logits kind : {Logits::kRandom, Logits::kOneExpert, Logits::kTies, Logits::kSkewed})
            expect_right(Problem({40, 7, 9, 12, chosen}, kind));
        expect_right(Problem({10, 7, 9, chosen, chosen}, Logits::kRandom));
    }
}

// The largest number of experts, most of which have no token.
TEST_P(LayerTest, ManyExperts) {
    expect_right(Problem({20, 3, 4, 256, 8}, Logits::kRandom));
    expect_right(Problem({5, 3, 4, 256, 1}, Logits::kOneExpert));
}

TEST_P(LayerTest, Patterns) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kSorted, DataPattern::kReversed})
        expect_right(Problem({40, 40, 20, 5, 2}, Logits::kRandom, 27, pattern));
}

TEST_P(LayerTest, RandomShapes) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        course::Random random(seed, 2027);
        Shape shape;
        shape.tokens = 1 + random.below(80);
        shape.hidden = 1 + random.below(70);
        shape.width = 1 + random.below(90);
        shape.experts = 1 + random.below(30);
        shape.chosen = 1 + random.below(static_cast<std::uint32_t>(std::min<std::size_t>(shape.experts, 8)));
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_right(Problem(shape, seed % 2 == 0 ? Logits::kRandom : Logits::kSkewed, seed));
    }
}

TEST_P(LayerTest, ExtentsOfZero) {
    expect_right(Problem({0, 4, 5, 3, 2}, Logits::kRandom));
    expect_right(Problem({6, 4, 0, 3, 2}, Logits::kRandom));
    expect_right(Problem({6, 0, 5, 3, 2}, Logits::kRandom));  // zeros
}

// The workspace holds the routing of another launch, which must not matter.
TEST_P(LayerTest, ASecondLaunchWithOtherLogits) {
    Problem problem({70, 6, 5, 9, 2}, Logits::kOneExpert);
    OnDevice device(problem);
    GetParam()->launcher(device.layer(), device.workspace, nullptr);
    problem.logits = make_logits(problem.shape, Logits::kRandom, 5);
    device.logits = DeviceBuffer<float>(std::span<const float>(problem.logits));
    device.out.spoil();
    GetParam()->launcher(device.layer(), device.workspace, nullptr);
    const course::VerifyResult result = compare(problem, device);
    EXPECT_TRUE(result.ok()) << result.message();
}

// A token's result is that of its experts alone: NaN and Inf of others do not reach it.
TEST_P(LayerTest, NotFiniteInAnotherTokenOrExpert) {
    Problem problem({40, 6, 5, 4, 1}, Logits::kRandom);
    const day27::Routing routing = day27::route_on_cpu(problem.shape, problem.logits);
    problem.x[3 * 6 + 2] = kNan;                                    // token 3
    std::fill_n(problem.weights.begin() + 2 * 6 * 5, 6 * 5, kInf);  // expert 2
    OnDevice device(problem);
    GetParam()->launcher(device.layer(), device.workspace, nullptr);
    const std::vector<float> got = device.out.to_host();
    for (std::size_t token = 0; token < 40; ++token)
        for (std::size_t c = 0; c < 5; ++c)
            EXPECT_EQ(std::isfinite(got[token * 5 + c]), token != 3 && routing.choice[token] != 2) << token;
}

// Without atomics every run gives the same bits.
TEST_P(LayerTest, TheSameBitsInEveryLaunch) {
    if (GetParam()->name == "one_launch_atomic") GTEST_SKIP() << "atomics add in any order";
    const Problem problem({60, 40, 20, 6, 4}, Logits::kRandom);
    OnDevice device(problem);
    std::vector<float> first;
    for (int launch = 0; launch < 3; ++launch) {
        GetParam()->launcher(device.layer(), device.workspace, nullptr);
        const std::vector<float> got = device.out.to_host();
        if (launch == 0) first = got;
        EXPECT_EQ(got, first);
    }
}

// First in small, which shows that the test itself is right.
TEST_P(LayerTest, OffsetsBeyond32Bits) {
    day27::FarOffsets<float>::expect_right(GetParam()->launcher, 1 << 12);
    if (const std::string reason = course::why_not_so_large(day27::kFarBytes); !reason.empty())
        GTEST_SKIP() << reason;
    day27::FarOffsets<float>::expect_right(GetParam()->launcher, day27::kFar);
}

// All work is on the given stream, and the host need not know how many tokens an expert has.
TEST_P(LayerTest, CanBeCapturedUnlessTheHostWaits) {
    if (GetParam()->name == "sorted") GTEST_SKIP() << "the host waits for the counts";
    Problem problem({40, 6, 5, 4, 2}, Logits::kRandom);
    OnDevice device(problem);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(device.layer(), device.workspace, stream); });
    for (const Logits kind : {Logits::kOneExpert, Logits::kSkewed}) {
        problem.logits = make_logits(problem.shape, kind, 3);
        CUDA_CHECK(cudaMemcpy(device.logits.data(), problem.logits.data(), device.logits.bytes(),
                              cudaMemcpyHostToDevice));
        device.out.spoil();
        work.run();
        const course::VerifyResult result = compare(problem, device);
        EXPECT_TRUE(result.ok()) << result.message();
    }
}

// --- Refused arguments ---------------------------------------------------------------------------

class Refused : public course::DeviceTest {
  protected:
    static std::string launch(const Shape& shape, std::size_t x_size) {
        return refusal([&] {
            const DeviceBuffer<float> logits = course::zeros<float>(shape.tokens * shape.experts);
            const DeviceBuffer<float> x = course::zeros<float>(x_size);
            const DeviceBuffer<float> weights =
                course::zeros<float>(shape.experts * shape.hidden * shape.width);
            DeviceBuffer<float> out(shape.tokens * shape.width);
            Workspace workspace(shape);
            day27::versions().back().launcher({shape, logits.span(), x.span(), weights.span(), out.span()},
                                              workspace, nullptr);
        });
    }
};

TEST_F(Refused, ShapesAndSizes) {
    EXPECT_EQ(launch({2, 3, 4, 5, 2}, 6), "");
    EXPECT_EQ(launch({2, 3, 4, 5, 2}, 7), "mixture: x has 7 elements; expected 6");
    EXPECT_EQ(launch({2, 3, 4, 0, 1}, 6), "mixture: experts is 0; expected 1 to 256");
    EXPECT_EQ(launch({2, 3, 4, 257, 1}, 6), "mixture: experts is 257; expected 1 to 256");
    EXPECT_EQ(launch({2, 3, 4, 5, 0}, 6),
              "mixture: chosen is 0; expected 1 to 8, and at most as many as there are experts (5)");
    EXPECT_EQ(launch({2, 3, 4, 5, 6}, 6),
              "mixture: chosen is 6; expected 1 to 8, and at most as many as there are experts (5)");
    EXPECT_EQ(launch({1 << 17, 0, 0, 5, 3}, 0),
              "mixture: 131072 tokens choose 3 experts each; expected at most 2^18 pairs");
    EXPECT_EQ(launch({1, 0, (1 << 20) + 1, 1, 1}, 0),
              "mixture: hidden is 0 and width 1048577; expected at most 2^20");
}

TEST_F(Refused, OutThatOverlapsAndAnotherWorkspace) {
    const Shape shape{2, 3, 4, 5, 2};
    Problem problem(shape, Logits::kRandom);
    OnDevice device(problem);
    day27::Layer layer = device.layer();
    Workspace other({2, 3, 4, 5, 1});
    const auto launcher = day27::versions().back().launcher;
    EXPECT_EQ(refusal([&] { launcher(layer, other, nullptr); }),
              "mixture: the workspace is for 2x3x4x5x1, the problem is 2x3x4x5x2; expected the same");
    layer.out = device.weights.span().subspan(0, 8);
    EXPECT_EQ(refusal([&] { launcher(layer, device.workspace, nullptr); }),
              "mixture: out overlaps an input; expected memory of its own");
}

}  // namespace
