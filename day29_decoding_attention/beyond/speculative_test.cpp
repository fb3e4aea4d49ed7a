// Speculative decoding: the kernel against the reference, and the distribution of the tokens
// against the target's.
#include "speculative.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;

float uniform_number(course::Random& random) {
    return static_cast<float>(random.below(1u << 24)) * 0x1p-24f;
}

std::vector<double> softmax(std::span<const float> logits) {
    std::vector<double> p;
    double sum = 0;
    for (const float x : logits)
        sum += p.emplace_back(std::exp(static_cast<double>(x)));
    for (double& x : p)
        x /= sum;
    return p;
}

struct Results {
    std::vector<int> accepted, token;
};

struct Inputs {
    std::size_t batch, drafted, vocabulary;
    std::vector<float> draft, target, uniform;
    std::vector<int> proposed;

    Results run() const {
        const DeviceBuffer<float> q{std::span<const float>(draft)};
        const DeviceBuffer<float> p{std::span<const float>(target)};
        const DeviceBuffer<float> u{std::span<const float>(uniform)};
        const DeviceBuffer<int> x{std::span<const int>(proposed)};
        GuardedBuffer<int> accepted(batch);
        GuardedBuffer<int> token(batch);
        day29::accept({batch, drafted, vocabulary, q.span(), p.span(), x.span(), u.span(), accepted.span(),
                       token.span()},
                      nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        EXPECT_EQ(accepted.damage() + token.damage(), "");
        return {accepted.to_host(), token.to_host()};
    }
};

// Proposed tokens are drawn from the draft. `same`: all sequences have the logits of the first.
Inputs make_inputs(std::size_t batch, std::size_t drafted, std::size_t vocabulary, std::uint64_t seed,
                   bool same = false) {
    course::Random random(seed);
    Inputs in{batch, drafted, vocabulary, {}, {}, {}, {}};
    const auto make_rows = [&](std::vector<float>& to, std::size_t rows) {
        for (std::size_t b = 0; b < batch; ++b)
            for (std::size_t i = 0; i < rows * vocabulary; ++i)
                to.push_back(same && b > 0 ? to[i] : 3 * uniform_number(random));
    };
    make_rows(in.draft, drafted);
    make_rows(in.target, drafted + 1);
    for (std::size_t i = 0; i < batch * (drafted + 1); ++i)
        in.uniform.push_back(uniform_number(random));
    for (std::size_t row = 0; row < batch * drafted; ++row) {
        const std::vector<double> q = softmax(std::span(in.draft).subspan(row * vocabulary, vocabulary));
        double left = static_cast<double>(uniform_number(random));
        std::size_t x = 0;
        while (x + 1 < vocabulary && left >= q[x])
            left -= q[x++];
        in.proposed.push_back(static_cast<int>(x));
    }
    return in;
}

class SpeculativeTest : public course::DeviceTest {};

bool may_be_right(const day29::Accepted& got, const Inputs& in, std::size_t b) {
    return day29::may_be_right(
        got, in.drafted, in.vocabulary, std::span(in.draft).subspan(b * in.drafted * in.vocabulary),
        std::span(in.target).subspan(b * (in.drafted + 1) * in.vocabulary),
        std::span(in.proposed).subspan(b * in.drafted), std::span(in.uniform).subspan(b * (in.drafted + 1)));
}

day29::Accepted accept_on_cpu(const Inputs& in, std::size_t b) {
    return day29::accept_on_cpu(
        in.drafted, in.vocabulary, std::span(in.draft).subspan(b * in.drafted * in.vocabulary),
        std::span(in.target).subspan(b * (in.drafted + 1) * in.vocabulary),
        std::span(in.proposed).subspan(b * in.drafted), std::span(in.uniform).subspan(b * (in.drafted + 1)));
}

// Vocabularies around the threads of a block.
TEST_F(SpeculativeTest, DecidesAsTheReference) {
    for (const std::size_t vocabulary : {1, 2, 31, 255, 256, 257, 1000})
        for (const std::size_t drafted : {1, 4, 16}) {
            const std::size_t batch = 5;
            const Inputs in = make_inputs(batch, drafted, vocabulary, vocabulary + drafted);
            const Results got = in.run();
            for (std::size_t b = 0; b < batch; ++b) {
                const day29::Accepted expected = accept_on_cpu(in, b);
                EXPECT_TRUE(may_be_right({got.accepted[b], got.token[b]}, in, b))
                    << vocabulary << ", " << drafted << ", " << b << ": " << got.accepted[b] << ", "
                    << got.token[b] << "; expected " << expected.accepted << ", " << expected.token;
            }
        }
}

TEST_F(SpeculativeTest, EqualModelsAcceptEverything) {
    Inputs in = make_inputs(6, 4, 50, 1);
    for (std::size_t b = 0; b < 6; ++b)
        std::copy_n(in.draft.begin() + static_cast<std::ptrdiff_t>(b * 200), 200,
                    in.target.begin() + static_cast<std::ptrdiff_t>(b * 250));
    EXPECT_EQ(in.run().accepted, std::vector<int>(6, 4));

    // Out of range, so rejected, though no p - q is above 0: the token is drawn from p.
    in.proposed.assign(24, -1);
    for (std::size_t b = 0; b < 6; ++b)
        in.target[b * 250] = in.draft[b * 200] = -1000;
    EXPECT_EQ(std::ranges::count(in.run().token, 0), 0);
}

TEST_F(SpeculativeTest, ATokenThatTheTargetNeverDrawsIsRejected) {
    Inputs in = make_inputs(3, 1, 4, 2);
    for (std::size_t b = 0; b < 3; ++b) {
        in.proposed[b] = 2;
        in.target[b * 8 + 2] = -1000;
    }
    const Results got = in.run();
    EXPECT_EQ(got.accepted, std::vector<int>(3, 0));
    EXPECT_EQ(std::ranges::count(got.token, 2), 0);
    in.proposed = {-1, 4, 2000000000};  // out of range
    EXPECT_EQ(in.run().accepted, std::vector<int>(3, 0));
}

// Sequence 0 has a NaN in its target, sequence 1 in its draft, and sequence 2 in the row that
// follows all proposed tokens.
TEST_F(SpeculativeTest, ARowWithANaNStillGivesAToken) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const std::size_t vocabulary : {4, 257, 1000}) {
        Inputs in = make_inputs(3, 2, vocabulary, 3);
        in.target[1] = nan;
        in.draft[2 * vocabulary + 1] = nan;
        std::copy_n(in.draft.end() - static_cast<std::ptrdiff_t>(2 * vocabulary), 2 * vocabulary,
                    in.target.end() - static_cast<std::ptrdiff_t>(3 * vocabulary));
        in.target.back() = nan;
        in.target[3 * vocabulary] = -1000;  // so that 0 is not drawn from p
        const Results got = in.run();
        EXPECT_EQ(got.accepted, (std::vector<int>{0, 0, 2}));
        EXPECT_EQ(got.token[0], 0);
        EXPECT_GT(got.token[1], 0);
        EXPECT_LT(got.token[1], static_cast<int>(vocabulary));
        EXPECT_EQ(got.token[2], 0);
        for (std::size_t b = 0; b < 3; ++b)
            EXPECT_EQ(got.accepted[b], accept_on_cpu(in, b).accepted) << b;
        for (const std::size_t b : {0, 2})
            EXPECT_EQ(got.token[b], accept_on_cpu(in, b).token) << b;
        EXPECT_TRUE(may_be_right({got.accepted[1], got.token[1]}, in, 1)) << got.token[1];
        EXPECT_TRUE(may_be_right(accept_on_cpu(in, 1), in, 1)) << accept_on_cpu(in, 1).token;
    }
}

// With many tokens, nearly every draw is near a threshold. Still only its neighbours may be right.
TEST(SpeculativeSampling, WrongResultsAreFound) {
    for (const std::size_t vocabulary : {2, 1000, 50000}) {
        const Inputs in = make_inputs(8, 3, vocabulary, 4);
        for (std::size_t b = 0; b < in.batch; ++b) {
            SCOPED_TRACE(std::to_string(vocabulary) + ", sequence " + std::to_string(b));
            const day29::Accepted right = accept_on_cpu(in, b);
            const auto size = static_cast<int>(vocabulary);
            EXPECT_TRUE(may_be_right(right, in, b));
            for (int kept = -1; kept <= 4; ++kept)
                EXPECT_EQ(may_be_right({kept, right.token}, in, b), kept == right.accepted) << kept;
            for (const int token : {-1, (right.token + size / 2) % size, size, 2000000000})
                EXPECT_FALSE(may_be_right({right.accepted, token}, in, b)) << token;
        }
    }
}

// By enumeration: x weighs q(x), and both uniform numbers take 100 values each.
TEST(SpeculativeSampling, TheFirstTokenHasTheTargetsDistribution) {
    const std::vector<float> target{0.5f, 2, -1, 0, 1, 0, 0, 0, 0, 0};
    const std::vector<float> draft{1, 0, 0.3f, -2, 1};
    const std::vector<double> p = softmax(std::span(target).first(5));
    const std::vector<double> q = softmax(draft);
    constexpr int kSteps = 100;
    std::vector<double> got(5);
    for (int x = 0; x < 5; ++x)
        for (int i = 0; i < kSteps * kSteps; ++i) {
            const std::vector<float> uniform{(static_cast<float>(i / kSteps) + 0.5f) / kSteps,
                                             (static_cast<float>(i % kSteps) + 0.5f) / kSteps};
            const day29::Accepted result =
                day29::accept_on_cpu(1, 5, draft, target, std::vector<int>{x}, uniform);
            got[static_cast<std::size_t>(result.accepted == 1 ? x : result.token)] +=
                q[static_cast<std::size_t>(x)] / (kSteps * kSteps);
        }
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_NEAR(got[i], p[i], 2.0 / kSteps);
}

// Many sequences with the same logits and different uniform numbers. Chi-square of 5 tokens has 4
// degrees of freedom; a value above 33 has a probability of about 1e-6. The number of accepted
// tokens of n is the sum of alpha^i if each is accepted with probability alpha = sum of min(p, q);
// here alpha differs from row to row, so powers become products. Its standard error is at most n /
// (2 sqrt(sequences)).
TEST_F(SpeculativeTest, ManyDrawsHaveTheTargetsDistribution) {
    if (course::lanes_descend()) GTEST_SKIP() << "the first order has seen it";
    constexpr std::size_t kSequences = 2000, kTokens = 5, kDrafted = 3;
    const Inputs in = make_inputs(kSequences, kDrafted, kTokens, 29, true);
    const Results got = in.run();
    const std::vector<double> p = softmax(std::span(in.target).subspan(0, kTokens));
    std::vector<double> counts(kTokens);
    double accepted = 0;
    for (std::size_t b = 0; b < kSequences; ++b) {
        const int first = got.accepted[b] > 0 ? in.proposed[b * kDrafted] : got.token[b];
        ++counts[static_cast<std::size_t>(first)];
        accepted += got.accepted[b];
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < kTokens; ++i) {
        const double expected = p[i] * kSequences;
        chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi_square, 33);

    double expected = 0;
    double all_so_far = 1;
    for (std::size_t row = 0; row < kDrafted; ++row) {
        const std::vector<double> target = softmax(std::span(in.target).subspan(row * kTokens, kTokens));
        const std::vector<double> draft = softmax(std::span(in.draft).subspan(row * kTokens, kTokens));
        double alpha = 0;
        for (std::size_t i = 0; i < kTokens; ++i)
            alpha += std::min(target[i], draft[i]);
        expected += all_so_far *= alpha;
    }
    EXPECT_NEAR(accepted / kSequences, expected, 5 * kDrafted / (2 * std::sqrt(double{kSequences})));
}

TEST_F(SpeculativeTest, RefusesSizesThatDoNotFit) {
    Inputs in = make_inputs(2, 3, 7, 1);
    in.drafted = 17;
    EXPECT_EQ(refusal([&] { in.run(); }), "speculation: drafted is 17; expected 1 to 16");
    in.drafted = 2;
    EXPECT_EQ(refusal([&] { in.run(); }), "speculation: draft_logits has 42 elements; expected 28");
    in = make_inputs(0, 3, 7, 1);
    EXPECT_EQ(refusal([&] { in.run(); }), "");
}

}  // namespace
