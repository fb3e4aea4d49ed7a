// The layer: against its CPU version, and both against PyTorch.
#include "attention_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention_reference.hpp"
#include "attention_test_data.hpp"
#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"
#include "pytorch_reference.hpp"

namespace {

using course::DeviceBuffer;
using course::refusal;
using day25::AttentionConfig;
using day25::AttentionLayer;
using day25::AttentionLayerOnCpu;
using day25::AttentionWeights;
using day25::Bounded;
using day25::TokenCounts;
using day25::Xavier;
using day25_test::expect_within;
using day25_test::Matrix;
using day25_test::normal;

constexpr std::uint64_t kSeed = 2025;

// A call of forward(): an empty key is the query, an empty value the key.
struct Call {
    TokenCounts counts;
    std::vector<float> query{}, key{}, value{};
    bool causal = false;
    std::vector<std::uint8_t> padding{};
};

Bounded forward(const AttentionLayerOnCpu& layer, const Call& call) {
    const std::vector<float>& key = call.key.empty() ? call.query : call.key;
    const std::vector<float>& value = call.value.empty() ? key : call.value;
    return layer.forward(call.query, key, value, call.counts, call.causal, call.padding);
}

// The result has the shape of the query.
Matrix forward(AttentionLayer& layer, std::size_t width, const Call& call, std::size_t row_padding = 0,
               std::size_t offset = 0) {
    const auto [batch, queries, keys] = call.counts;
    Matrix query(batch * queries, width, row_padding, offset), key(batch * keys, width, row_padding, offset),
        value(batch * keys, width, row_padding, offset), out(batch * queries, width, row_padding, offset);
    query.set(call.query);
    if (!call.key.empty()) key.set(call.key);
    if (!call.value.empty()) value.set(call.value);
    const DeviceBuffer<std::uint8_t> padding{std::span(call.padding)};
    const auto key_view = call.key.empty() ? query.view() : key.view();
    layer.forward(query.view(), key_view, call.value.empty() ? key_view : value.view(), out.view(),
                  call.counts, {call.causal, padding.span()}, nullptr);
    static_cast<void>(out.values());  // waits: the inputs go away
    return out;
}

Call make_call(const TokenCounts& counts, std::size_t width, const std::string& inputs, bool causal,
               bool padding) {
    Call call{.counts = counts, .query = normal(counts.batch * counts.queries * width, 1), .causal = causal};
    if (inputs != "self") call.key = normal(counts.batch * counts.keys * width, 2);
    if (inputs == "cross") call.value = normal(counts.batch * counts.keys * width, 3);
    if (padding) {
        course::Random random(4);
        call.padding.resize(counts.batch * counts.keys);
        for (std::uint8_t& hidden : call.padding)
            hidden = random.below(3) == 0;
    }
    return call;
}

AttentionWeights with_biases(AttentionWeights weights) {
    weights.in_bias = normal(weights.in_bias.size(), 5);
    weights.out_bias = normal(weights.out_bias.size(), 6);
    return weights;
}

class AttentionLayerTest : public course::DeviceTestWithParam<const day25::Version*> {
  protected:
    static const day25::Version& version() { return *GetParam(); }
    static bool can_pad() { return version().cannot_run({1, 1, true}).empty(); }

    static void expect_right(const AttentionConfig& config, const Call& call, std::size_t row_padding = 0,
                             std::size_t offset = 0) {
        const auto [batch, queries, keys] = call.counts;
        if (!call.padding.empty() && !can_pad()) return;
        SCOPED_TRACE("width " + std::to_string(config.width) + ", " + std::to_string(config.heads) +
                     " heads, " + std::to_string(batch) + " batches of " + std::to_string(queries) +
                     " queries and " + std::to_string(keys) + " keys");
        AttentionLayer layer(config, call.counts, version(), kSeed);
        AttentionLayerOnCpu on_cpu(config, kSeed);
        on_cpu.set_weights(with_biases(on_cpu.weights()));
        layer.set_weights(on_cpu.weights());
        expect_within(forward(layer, config.width, call, row_padding, offset), forward(on_cpu, call));
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwentyFive, AttentionLayerTest, course::each_of(day25::versions()),
                         course::VersionName());

TEST_P(AttentionLayerTest, InputsAndMasks) {
    for (const char* inputs : {"self", "memory", "cross"}) {
        for (const bool causal : {false, true}) {
            for (const bool padding : {false, true}) {
                SCOPED_TRACE(inputs);
                const TokenCounts counts{2, 9, std::string(inputs) == "self" ? 9U : 13U};
                expect_right({12, 3, true}, make_call(counts, 12, inputs, causal, padding));
            }
        }
        expect_right({8, 2, false}, make_call({1, 7, 7}, 8, inputs, false, false));
    }
}

TEST_P(AttentionLayerTest, ShapesAroundTheTiles) {
    for (const std::size_t tokens : {1, 31, 33, 65})
        expect_right({8, 1, true}, make_call({1, tokens, tokens}, 8, "self", false, false));
    expect_right({66, 2, true}, make_call({1, 10, 10}, 66, "self", true, false));
    expect_right({64, 64, true}, make_call({1, 6, 6}, 64, "self", false, false));
}

TEST_P(AttentionLayerTest, AnyAlignmentAndLeadingDimension) {
    expect_right({16, 2, true}, make_call({2, 9, 9}, 16, "self", false, false), 3, 1);
    expect_right({16, 2, true}, make_call({2, 9, 12}, 16, "cross", false, false), 4, 4);
}

TEST_P(AttentionLayerTest, EmptyExtents) {
    expect_right({8, 2, true}, make_call({0, 3, 3}, 8, "self", false, false));
    expect_right({8, 2, true}, make_call({2, 0, 0}, 8, "self", false, false));
    // No key to see: the bias of the output.
    if (!can_pad()) GTEST_SKIP() << version().name << " has no mask for padding";
    AttentionLayer layer({8, 2, true}, {2, 3, 4}, version(), kSeed);
    AttentionWeights weights = with_biases(layer.weights());
    layer.set_weights(weights);
    Call call = make_call({2, 3, 4}, 8, "memory", false, false);
    call.padding.assign(8, 1);
    Bounded expected(6, 8);
    for (std::size_t i = 0; i < expected.value.size(); ++i)
        expected.value[i] = static_cast<double>(weights.out_bias[i % 8]);
    expect_within(forward(layer, 8, call), expected);
}

TEST_P(AttentionLayerTest, FewerTokensThanItWasMadeFor) {
    AttentionLayer layer({8, 2, true}, {3, 40, 50}, version(), kSeed);
    const AttentionLayerOnCpu on_cpu({8, 2, true}, kSeed);
    for (const TokenCounts counts : {TokenCounts{3, 40, 50}, TokenCounts{1, 3, 50}, TokenCounts{2, 39, 1}}) {
        const Call call = make_call(counts, 8, "cross", false, false);
        expect_within(forward(layer, 8, call), forward(on_cpu, call));
    }
    const Call call = make_call({2, 33, 33}, 8, "self", true, can_pad());
    expect_within(forward(layer, 8, call), forward(on_cpu, call));
}

// Of a matrix of weights.
struct Moments {
    explicit Moments(const std::vector<float>& weights) {
        const auto count = static_cast<double>(weights.size());
        for (const float weight : weights) {
            const auto w = static_cast<double>(weight);
            mean += w / count;
            square += w * w / count;
            fourth += w * w * w * w / count;
            most = std::max(most, std::abs(w));
        }
        for (std::size_t i = 1; i < weights.size(); ++i)
            adjacent += static_cast<double>(weights[i - 1]) * static_cast<double>(weights[i]) / count;
    }
    double mean = 0;
    double square = 0;
    double fourth = 0;
    double most = 0;
    double adjacent = 0;  // the mean product of two adjacent ones
};

// The device and the CPU draw the same weights, spread over the whole range of Xavier's bounds;
// another seed draws others.
TEST_P(AttentionLayerTest, DrawsXavierWeights) {
    constexpr std::size_t kWidth = 36;
    const AttentionConfig config{kWidth, 4, true};
    const AttentionLayer layer(config, {1, 1, 1}, version(), kSeed);
    const AttentionWeights weights = layer.weights();
    const AttentionLayerOnCpu on_cpu(config, kSeed);
    EXPECT_EQ(weights.in_weight, on_cpu.weights().in_weight);
    EXPECT_EQ(weights.out_weight, on_cpu.weights().out_weight);
    EXPECT_EQ(weights.in_bias, std::vector<float>(3 * kWidth));
    EXPECT_EQ(weights.out_bias, std::vector<float>(kWidth));
    EXPECT_NE(weights.in_weight, AttentionLayer(config, {1, 1, 1}, version(), kSeed + 1).weights().in_weight);

    const auto check = [](const std::vector<float>& weight, double bound) {
        const Moments moments(weight);
        EXPECT_LE(moments.most, bound);
        EXPECT_GT(moments.most, 0.99 * bound);
        // Mean 0 and variance bound^2 / 3, each to five standard deviations.
        const auto count = static_cast<double>(weight.size());
        EXPECT_LT(std::abs(moments.mean), 5 * bound / std::sqrt(3 * count));
        EXPECT_NEAR(moments.square, bound * bound / 3, 5 * bound * bound * std::sqrt(4.0 / 45 / count));
        std::vector<float> sorted = weight;
        std::ranges::sort(sorted);
        // Of 24 random bits some are drawn twice, but hardly more.
        EXPECT_LT(std::ranges::unique(sorted).size(), weight.size() / 100);
    };
    check(weights.in_weight, std::sqrt(6.0 / (4 * kWidth)) * (1 + 1e-7));
    check(weights.out_weight, std::sqrt(6.0 / (2 * kWidth)) * (1 + 1e-7));
    std::vector<float> head_of_in(weights.in_weight.begin(), weights.in_weight.begin() + kWidth * kWidth);
    EXPECT_NE(head_of_in, weights.out_weight);
}

// The same variance as the uniform weights, 2 / (inputs + outputs), but without their bound: of so
// many normal ones some are beyond three standard deviations.
TEST_P(AttentionLayerTest, DrawsNormalXavierWeights) {
    constexpr std::size_t kWidth = 36;
    const AttentionConfig config{kWidth, 4, true, Xavier::kNormal};
    const AttentionWeights weights = AttentionLayer(config, {1, 1, 1}, version(), kSeed).weights();
    const AttentionLayerOnCpu on_cpu(config, kSeed);
    EXPECT_EQ(weights.in_weight, on_cpu.weights().in_weight);
    EXPECT_EQ(weights.out_weight, on_cpu.weights().out_weight);
    EXPECT_EQ(weights.in_bias, std::vector<float>(3 * kWidth));
    EXPECT_NE(weights.in_weight,
              AttentionLayer({kWidth, 4, true}, {1, 1, 1}, version(), kSeed).weights().in_weight);

    const auto check = [](const std::vector<float>& weight, double variance) {
        const Moments moments(weight);
        const auto count = static_cast<double>(weight.size());
        const double deviation = std::sqrt(variance);
        // To five standard deviations each. A sum of twelve uniform numbers has a fourth moment of
        // 2.9 variances squared (a normal one: 3, a uniform one: 1.8), and an eighth one below 105.
        EXPECT_LT(std::abs(moments.mean), 5 * deviation / std::sqrt(count));
        EXPECT_NEAR(moments.square, variance, 5 * variance * std::sqrt(1.9 / count));
        EXPECT_NEAR(moments.fourth / (variance * variance), 2.9, 5 * std::sqrt(105 / count));
        EXPECT_GT(moments.most, 2.5 * deviation);
        EXPECT_LT(moments.most, 6 * deviation);
    };
    check(weights.in_weight, 2.0 / (4 * kWidth));
    check(weights.out_weight, 2.0 / (2 * kWidth));
    EXPECT_NE(std::vector<float>(weights.in_weight.begin(), weights.in_weight.begin() + kWidth * kWidth),
              weights.out_weight);
}

// A matrix large enough that 1 % shows: variances and bounds against the formula.
TEST(Xavier, HasTheVarianceOfTheFormula) {
    struct Case {
        std::size_t inputs;
        std::size_t outputs;
    };
    for (const auto& [inputs, outputs] : {Case{1, 200000}, {200000, 1}, {300, 700}, {512, 512}}) {
        SCOPED_TRACE(std::to_string(inputs) + " inputs, " + std::to_string(outputs) + " outputs");
        const std::size_t count = inputs * outputs;
        const double variance = 2.0 / static_cast<double>(inputs + outputs);
        for (const Xavier distribution : {Xavier::kUniform, Xavier::kNormal}) {
            DeviceBuffer<float> drawn(std::vector<float>(count, std::nanf("")));
            day25::draw_xavier(distribution, drawn.span(), inputs, kSeed, 0);
            const Moments moments(drawn.to_host());
            // Fourth moments of 1.8 and 2.9 variances squared; each to five standard deviations.
            const double spread = distribution == Xavier::kUniform ? 0.8 : 1.9;
            EXPECT_LT(std::abs(moments.mean), 5 * std::sqrt(variance / static_cast<double>(count)));
            EXPECT_NEAR(moments.square, variance,
                        5 * variance * std::sqrt(spread / static_cast<double>(count)));
            EXPECT_LT(std::abs(moments.adjacent), 5 * variance / std::sqrt(static_cast<double>(count)));
            const double bound = std::sqrt(3 * variance);
            if (distribution == Xavier::kUniform) {
                EXPECT_LE(moments.most, bound * (1 + 1e-7));
                EXPECT_GT(moments.most, 0.999 * bound);
            } else {
                EXPECT_GT(moments.most, 4 * std::sqrt(variance));
            }
        }
    }
}

TEST(Xavier, OfAMatrixWithoutElementsIsNothing) {
    for (const Xavier distribution : {Xavier::kUniform, Xavier::kNormal}) {
        EXPECT_EQ(day25::xavier_scale(distribution, 0, 0), 0);
        EXPECT_NO_THROW(day25::draw_xavier(distribution, {}, 0, kSeed, 0));
    }
}

TEST_P(AttentionLayerTest, GivesBackTheWeightsItWasGiven) {
    AttentionLayer layer({6, 2, true}, {1, 1, 1}, version(), kSeed);
    const AttentionWeights weights{normal(108, 1), normal(36, 2), normal(18, 3), normal(6, 4)};
    layer.set_weights(weights);
    EXPECT_EQ(layer.weights().in_weight, weights.in_weight);
    EXPECT_EQ(layer.weights().out_weight, weights.out_weight);
    EXPECT_EQ(layer.weights().in_bias, weights.in_bias);
    EXPECT_EQ(layer.weights().out_bias, weights.out_bias);
}

// A call that allocates memory or synchronises cannot be captured into a graph. The graph's result
// is right.
TEST_P(AttentionLayerTest, RunsOnTheGivenStream) {
    constexpr std::size_t kWidth = 8;
    const Call call = make_call({2, 10, 10}, kWidth, "self", true, false);
    AttentionLayer layer({kWidth, 2, true}, call.counts, version(), kSeed);
    Matrix tokens(20, kWidth), out(20, kWidth);
    tokens.set(call.query);
    const course::CapturedWork work([&](cudaStream_t stream) {
        layer.forward(tokens.view(), tokens.view(), tokens.view(), out.view(), call.counts, {true, {}},
                      stream);
    });
    EXPECT_TRUE(std::isnan(out.values().front())) << "it ran instead of being captured";
    work.run(2);
    expect_within(out, forward(AttentionLayerOnCpu({kWidth, 2, true}, kSeed), call));
}

TEST_P(AttentionLayerTest, RefusesWhatDoesNotFit) {
    for (const std::size_t heads : {0, 3}) {
        const std::string message =
            "day25: attention layer: heads is " + std::to_string(heads) + "; expected a divisor of width, 8";
        EXPECT_EQ(refusal([&] { AttentionLayer({8, heads, true}, {1, 2, 3}, version(), kSeed); }), message);
        EXPECT_EQ(refusal([&] { AttentionLayerOnCpu({8, heads, true}, kSeed); }), message);
    }
    AttentionLayer layer({4, 2, true}, {1, 2, 3}, version(), kSeed);
    AttentionWeights weights = layer.weights();
    weights.out_bias.pop_back();
    EXPECT_EQ(refusal([&] { layer.set_weights(weights); }),
              "day25: attention layer: out_bias has 3 elements; expected 4");
    AttentionLayer without({4, 2, false}, {1, 2, 3}, version(), kSeed);
    EXPECT_EQ(refusal([&] { without.set_weights(layer.weights()); }),
              "day25: attention layer: in_bias has 12 elements; expected 0");

    auto query = course::zeros<float>(8), key = course::zeros<float>(12), value = course::zeros<float>(12);
    DeviceBuffer<float> out(8);
    auto padding = course::zeros<std::uint8_t>(4);
    const auto with = [&](TokenCounts counts, course::DeviceMatrix<float> q, course::DeviceMatrix<float> k,
                          course::DeviceMatrix<float> v, course::DeviceMatrix<float> o, day25::Mask mask) {
        return refusal([&] { layer.forward(q, k, v, o, counts, mask, nullptr); });
    };
    const auto q = query.matrix(2, 4), k = key.matrix(3, 4), v = value.matrix(3, 4), o = out.matrix(2, 4);
    EXPECT_EQ(with({1, 2, 3}, q, k, v, o, {}), "");
    EXPECT_EQ(with({1, 2, 4}, q, k, v, o, {}),
              "day25: attention layer: 1 batches of 2 x 4 tokens; expected at most 1 of 2 x 3");
    EXPECT_EQ(with({1, 1, 3}, q, k, v, o, {}), "day25: attention layer: query is 2 x 4; expected 1 x 4");
    EXPECT_EQ(with({1, 2, 3}, q, q, v, o, {}), "day25: attention layer: key is 2 x 4; expected 3 x 4");
    EXPECT_EQ(with({1, 2, 3}, q, k, q, o, {}), "day25: attention layer: value is 2 x 4; expected 3 x 4");
    EXPECT_EQ(with({1, 2, 3}, q, k, v, k, {}), "day25: attention layer: out is 3 x 4; expected 2 x 4");
    EXPECT_EQ(with({1, 2, 3}, q, k, v, q, {}),
              "day25: attention layer: out overlaps query, key or value; expected that it does not");
    EXPECT_EQ(with({1, 2, 3}, q, k, v, o, {false, padding.span()}),
              "day25: self-attention: padding has 4 elements; expected none or batch x keys = 3");
}

// --- The bounds ----------------------------------------------------------------------------------

// c = a b^T in FP32, one term after the other.
std::vector<float> product(const std::vector<float>& a, const float* b, std::size_t b_rows,
                           std::size_t depth) {
    std::vector<float> columns(depth * b_rows);
    for (std::size_t i = 0; i < columns.size(); ++i)
        columns[i % depth * b_rows + i / depth] = b[i];
    std::vector<float> c(a.size() / depth * b_rows);
    for (std::size_t i = 0; i < a.size(); ++i) {
        float* const row = &c[i / depth * b_rows];  // not optimised, indices take longer than products
        const float* const column = &columns[i % depth * b_rows];
        const float element = a[i];
        for (std::size_t j = 0; j < b_rows; ++j)
            row[j] += element * column[j];
    }
    return c;
}

// A layer of one head without biases, in FP32 throughout.
std::vector<float> layer_in_floats(const AttentionWeights& weights, const Call& call, std::size_t width) {
    const std::size_t keys = call.counts.keys;
    const std::vector<float> q = product(call.query, weights.in_weight.data(), width, width);
    const std::vector<float> k = product(call.key, &weights.in_weight[width * width], width, width);
    const std::vector<float> v = product(call.key, &weights.in_weight[2 * width * width], width, width);
    std::vector<float> scores = product(q, k.data(), keys, width);
    std::vector<float> heads(q.size());
    for (std::size_t i = 0; i < call.counts.queries; ++i) {
        float sum = 0;
        for (std::size_t j = 0; j < keys; ++j)  // these scores are small: exp() needs no maximum
            sum += scores[i * keys + j] =
                std::exp(scores[i * keys + j] / std::sqrt(static_cast<float>(width)));
        for (std::size_t j = 0; j < keys; ++j) {
            for (std::size_t c = 0; c < width; ++c)
                heads[i * width + c] += scores[i * keys + j] / sum * v[j * width + c];
        }
    }
    return product(heads, weights.out_weight.data(), width, width);
}

// The bound that the program verifies with, at the width that it times, of 512 columns: some rows
// of 2048 tokens as there, on a CPU of 512. Fewer tokens make the bounds tighter, and the error of
// a wrong scale larger.
TEST(AttentionLayerReference, BoundsAreTightEnough) {
    if (course::lanes_descend())
        GTEST_SKIP() << "seconds without a kernel: the order of threads makes no difference";
    constexpr std::size_t kWidth = 512;
    const Call call =
        make_call({1, 4, course::is_cpu_stand_in() ? 512u : 2048u}, kWidth, "memory", false, false);
    const auto expected = [&](float factor_of_scores) {
        AttentionLayerOnCpu layer({kWidth, 1, false}, kSeed);
        AttentionWeights weights = layer.weights();
        for (std::size_t i = 0; i < kWidth * kWidth; ++i)
            weights.in_weight[i] *= factor_of_scores;
        layer.set_weights(weights);
        return layer.forward(call.query, call.key, call.key, call.counts, false, {},
                             course::Growth::kSquareRoot);
    };
    const Bounded right = expected(1);
    const std::vector<float> in_floats =
        layer_in_floats(AttentionLayerOnCpu({kWidth, 1, false}, kSeed).weights(), call, kWidth);
    const course::VerifyResult accepted = day25::verify(in_floats, right);
    EXPECT_TRUE(accepted.ok()) << accepted.message();

    const std::size_t most = 9 * right.value.size() / 10;
    EXPECT_GT(day25::verify(std::vector<float>(right.value.size()), right).differing, most) << "zeros";
    const auto wrong = [&](float factor_of_scores) {
        const Bounded other = expected(factor_of_scores);
        return day25::verify(std::vector<float>(other.value.begin(), other.value.end()), right).differing;
    };
    EXPECT_GT(wrong(0), most) << "the same weight for every key";
    EXPECT_GT(wrong(1.001f), right.value.size() / 2) << "a scale that is a thousandth off";
}

// --- PyTorch -------------------------------------------------------------------------------------

// For every case of a JSON text from scripts/attention_reference.py: PyTorch's result is within the
// bounds of the CPU version. The device's result has bounds of the same size, so it is within twice
// these bounds of PyTorch's.
void expect_as_pytorch(const std::string& text, const day25::Version& version) {
    const nlohmann::json file = nlohmann::json::parse(text);
    SCOPED_TRACE(file.at("made_by").get<std::string>());
    ASSERT_FALSE(file.at("cases").empty());
    for (const nlohmann::json& json : file.at("cases")) {
        SCOPED_TRACE(json.at("name").get<std::string>());
        const auto floats = [&](const char* name) { return json.at(name).get<std::vector<float>>(); };
        const AttentionConfig config{json.at("width"), json.at("heads"), json.at("bias")};
        const Call call{.counts = {json.at("batch"), json.at("queries"), json.at("keys")},
                        .query = floats("query"),
                        .key = floats("key"),
                        .value = floats("value"),
                        .causal = json.at("causal"),
                        .padding = json.at("padding").get<std::vector<std::uint8_t>>()};
        const AttentionWeights weights{floats("in_weight"), floats("out_weight"), floats("in_bias"),
                                       floats("out_bias")};
        AttentionLayerOnCpu on_cpu(config, kSeed);
        on_cpu.set_weights(weights);
        Bounded expected = forward(on_cpu, call);
        const std::vector<float> pytorch = floats("out");
        const course::VerifyResult result = day25::verify(pytorch, expected);
        EXPECT_TRUE(result.ok()) << "PyTorch and the CPU version: " << result.message();

        if (!version.cannot_run({1, 1, !call.padding.empty()}).empty()) continue;
        AttentionLayer layer(config, call.counts, version, kSeed);
        layer.set_weights(weights);
        expected.value.assign(pytorch.begin(), pytorch.end());
        for (double& error : expected.error)
            error *= 2;
        expect_within(forward(layer, config.width, call), expected);
    }
}

TEST_P(AttentionLayerTest, ComputesWhatPytorchHasComputed) {
    expect_as_pytorch(kPytorchReference, version());
}

// What PyTorch computes for larger cases, now. Asked once: it takes seconds to start.
// COURSE_PYTHON: the Python that has PyTorch, if `python3` has not.
struct PytorchAnswer {
    std::string why_not;  // there is none; empty if there is
    course::ShellOutcome outcome;
};
const PytorchAnswer& ask_pytorch() {
    static const PytorchAnswer answer = []() -> PytorchAnswer {
        const char* const chosen = std::getenv("COURSE_PYTHON");
        const std::string python = chosen == nullptr ? "python3" : chosen;
        if (course::run_in_shell("'" + python + "' -c 'import torch'").exit_code != 0)
            return {python + " has no PyTorch; COURSE_PYTHON can name one that has", {}};
        if (!std::filesystem::exists(COURSE_REFERENCE_SCRIPT))
            return {"there is no " COURSE_REFERENCE_SCRIPT, {}};
        return {"", course::run_in_shell("'" + python +
                                         "' -W ignore " COURSE_REFERENCE_SCRIPT
                                         " --case 1,65,65,64,2,1,0,0,self --case 2,33,33,24,3,1,1,1,self"
                                         " --case 2,20,130,16,4,1,0,1,memory --case 3,17,40,32,1,0,0,1,cross"
                                         " --case 1,128,128,32,8,1,1,0,self")};
    }();
    return answer;
}

TEST_P(AttentionLayerTest, ComputesWhatPytorchComputes) {
    const auto& [why_not, outcome] = ask_pytorch();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
    expect_as_pytorch(outcome.text, version());
}

}  // namespace
