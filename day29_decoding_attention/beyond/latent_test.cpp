// Latent attention: every version against the reference, and the absorbed form against attention
// with all keys and values.
#include "latent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;
using day29::LatentShape;
using day29::LatentVersion;
using day29::LatentWorkspace;
using T = day29::LatentDecoding::T;

// Inputs of a problem. Tokens after the end of a sequence are NaN.
struct Problem {
    LatentShape shape;
    std::vector<int> lengths;
    std::vector<T> q, cache;
    float scale = 0;
};

Problem make_problem(std::size_t heads, std::size_t rank, const std::vector<int>& lengths,
                     DataPattern pattern = DataPattern::kNormal, std::uint64_t seed = 29) {
    const int longest = lengths.empty() ? 0 : std::ranges::max(lengths);
    const LatentShape shape{lengths.size(), heads, static_cast<std::size_t>(longest) + 2, rank};
    Problem problem{shape, lengths, course::make_data<T>(shape.q_elements(), pattern, seed),
                    course::make_data<T>(shape.cache_elements(), pattern, seed + 1),
                    1 / std::sqrt(static_cast<float>(shape.width()))};
    for (std::size_t i = 0; i < shape.batch; ++i)
        std::fill(
            problem.cache.begin() +
                static_cast<std::ptrdiff_t>((i * shape.capacity + static_cast<std::size_t>(lengths[i])) *
                                            shape.width()),
            problem.cache.begin() + static_cast<std::ptrdiff_t>((i + 1) * shape.capacity * shape.width()),
            T(std::numeric_limits<float>::quiet_NaN()));
    return problem;
}

course::VerifyResult compare(const LatentVersion& version, const Problem& problem,
                             const GuardedBuffer<T>& out) {
    const LatentShape& shape = problem.shape;
    std::vector<double> expected, magnitude;
    for (std::size_t row = 0; row < shape.batch * shape.heads; ++row) {
        const std::size_t sequence = row / shape.heads;
        const auto length = static_cast<std::size_t>(problem.lengths[sequence]);
        const std::span<const T> q(problem.q.data() + row * shape.width(), shape.width());
        const std::span<const T> keys(problem.cache.data() + sequence * shape.capacity * shape.width(),
                                      length * shape.width());
        const day29::ReferenceRow reference = day29::reference_row<T>(
            q, keys, keys, length, static_cast<double>(problem.scale), day29::latent_precision(version));
        for (std::size_t c = 0; c < shape.rank; ++c) {
            expected.push_back(reference.value[c]);
            magnitude.push_back(reference.bound[c] / course::FloatTraits<T>::kEpsilon);
        }
    }
    course::VerifyResult result =
        course::verify(out.to_host(), expected, {.factor = 1}, magnitude, shape.rank);
    result.damage = out.damage();
    return result;
}

void launch(const LatentVersion& version, const Problem& problem, unsigned blocks, GuardedBuffer<T>& out) {
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const DeviceBuffer<T> cache{std::span<const T>(problem.cache)};
    const DeviceBuffer<int> lengths{std::span<const int>(problem.lengths)};
    LatentWorkspace workspace(problem.shape, blocks);
    version.launcher({problem.shape, q.span(), cache.span(), lengths.span(), out.span(), problem.scale},
                     workspace, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
}

class LatentTest : public course::DeviceTestWithParam<const LatentVersion*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const LatentVersion*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }
    void expect_right(const Problem& problem, unsigned blocks = 7) {
        GuardedBuffer<T> out(problem.shape.out_elements());
        launch(*GetParam(), problem, blocks, out);
        const course::VerifyResult result = compare(*GetParam(), problem, out);
        EXPECT_TRUE(result.ok()) << day29::name(problem.shape) << ", " << blocks
                                 << " blocks: " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(Versions, LatentTest, each_of(day29::latent_versions()), course::VersionName());

// No token, a warp's 8 keys and a tile's 64, one more or less, and a prime.
TEST_P(LatentTest, RaggedLengths) {
    expect_right(make_problem(3, 128, {0, 1, 7, 8, 9, 0, 63, 64, 65, 127, 128, 211}));
}

TEST_P(LatentTest, TheUsualRank) {
    expect_right(make_problem(4, 512, {70, 0, 33}));
}

// Around the 16 and the 64 heads of a block.
TEST_P(LatentTest, Heads) {
    for (const std::size_t heads : {1, 15, 16, 17, 63, 65})
        expect_right(make_problem(heads, 128, {20}));
}

TEST_P(LatentTest, AnyNumberOfBlocks) {
    const Problem problem = make_problem(2, 128, {700, 20});
    for (const unsigned blocks : {1, 13, 40})
        expect_right(problem, blocks);
}

TEST_P(LatentTest, Patterns) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kSorted, DataPattern::kReversed})
        expect_right(make_problem(2, 128, {150}, pattern));
}

TEST_P(LatentTest, RandomShapes) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        course::Random random(seed, 2029);
        std::vector<int> lengths(1 + random.below(4));
        for (int& length : lengths)
            length = static_cast<int>(random.below(200));
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_right(make_problem(1 + random.below(40), 128, lengths, DataPattern::kNormal, seed),
                     1 + random.below(20));
    }
}

// Scores of -Inf give zeros; a NaN in one query stays in its row.
TEST_P(LatentTest, NotFinite) {
    Problem problem = make_problem(4, 128, {30});
    problem.q[5] = T(std::numeric_limits<float>::quiet_NaN());
    GuardedBuffer<T> out(problem.shape.out_elements());
    launch(*GetParam(), problem, 3, out);
    const std::vector<T> got = out.to_host();
    for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(std::isnan(static_cast<float>(got[i])), i < problem.shape.rank) << i;

    std::ranges::fill(problem.q, T(0.0f));
    for (std::size_t i = 0; i < problem.q.size(); i += problem.shape.width())
        problem.q[i + problem.shape.rank] = T(1.0f);
    for (std::size_t token = 0; token < 30; ++token)
        problem.cache[token * problem.shape.width() + problem.shape.rank] =
            T(-std::numeric_limits<float>::infinity());
    out.spoil();
    launch(*GetParam(), problem, 3, out);
    for (const T x : out.to_host())
        EXPECT_EQ(static_cast<float>(x), 0);
}

TEST_P(LatentTest, NothingToWrite) {
    expect_right(make_problem(4, 128, {}));
    expect_right(make_problem(0, 128, {5}));
}

// On the CPU: a cache of more than 2^32 elements, of which only the last sequence exists.
TEST_P(LatentTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const Problem last = make_problem(2, 128, {30});
    const LatentShape shape{3, 2, std::size_t{1} << 24, 128};
    const course::LargeArray<T> cache(shape.cache_elements(), std::size_t{1} << 16, {2.0 / 3});
    const std::size_t first = 2 * shape.capacity * shape.width();
    std::ranges::copy(last.cache, &cache[first]);
    std::vector<T> queries(shape.q_elements() - last.q.size(), T(0.0f));
    queries.insert(queries.end(), last.q.begin(), last.q.end());
    const DeviceBuffer<T> q{std::span<const T>(queries)};
    const std::vector<int> as_int = {0, 0, 30};
    const DeviceBuffer<int> lengths{std::span<const int>(as_int)};
    DeviceBuffer<T> out(shape.out_elements());
    LatentWorkspace workspace(shape, 7);
    GetParam()->launcher({shape, q.span(), cache.span(), lengths.span(), out.span(), last.scale}, workspace,
                         nullptr);
    const std::vector<T> all = out.to_host();
    GuardedBuffer<T> got(last.shape.out_elements());
    got.copy_from(std::vector<T>(all.end() - static_cast<std::ptrdiff_t>(got.size()), all.end()));
    const course::VerifyResult result = compare(*GetParam(), last, got);
    EXPECT_TRUE(result.ok()) << course::large_element(first, shape.cache_elements()) << "\n"
                             << result.message();
}

// Attention of one head whose keys U c and values V c are computed for every token, against V times
// the result of the reference for the projected query U^T q. The numbers are such that U^T q needs
// no rounding.
TEST(Absorbed, IsAttentionWithAllKeysAndValues) {
    constexpr std::size_t kDim = 16, kRank = 128, kTokens = 23, kOut = 8;
    constexpr std::size_t kWidth = kRank + day29::kRope;
    course::Random random(29);
    const auto small = [&] { return static_cast<double>(random.integer(-2, 2)); };
    const auto make = [&](std::size_t size) {
        std::vector<double> values(size);
        std::ranges::generate(values, small);
        return values;
    };
    const std::vector<double> u = make(kDim * kRank), v = make(kOut * kRank), q = make(kDim),
                              q_rope = make(day29::kRope), cache = make(kTokens * kWidth);
    const double scale = 0.05;

    std::vector<double> weights(kTokens), expected(kOut), kept(kOut);
    double sum = 0;
    for (std::size_t j = 0; j < kTokens; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < kDim; ++d) {
            double key = 0;  // number d of U c
            for (std::size_t i = 0; i < kRank; ++i)
                key += u[d * kRank + i] * cache[j * kWidth + i];
            score += q[d] * key;
        }
        for (std::size_t i = 0; i < day29::kRope; ++i)
            score += q_rope[i] * cache[j * kWidth + kRank + i];
        sum += weights[j] = std::exp(scale * score);
    }
    for (std::size_t o = 0; o < kOut; ++o)
        for (std::size_t j = 0; j < kTokens; ++j)
            for (std::size_t i = 0; i < kRank; ++i)
                expected[o] += weights[j] / sum * v[o * kRank + i] * cache[j * kWidth + i];

    std::vector<T> projected(kWidth), latents(cache.size());
    for (std::size_t i = 0; i < kRank; ++i) {
        double x = 0;
        for (std::size_t d = 0; d < kDim; ++d)
            x += u[d * kRank + i] * q[d];
        projected[i] = T(static_cast<float>(x));
        ASSERT_EQ(static_cast<double>(static_cast<float>(projected[i])), x);
    }
    for (std::size_t i = 0; i < day29::kRope; ++i)
        projected[kRank + i] = T(static_cast<float>(q_rope[i]));
    std::ranges::transform(cache, latents.begin(), [](double x) { return T(static_cast<float>(x)); });
    const day29::ReferenceRow row = day29::reference_row<T>(projected, latents, latents, kTokens, scale, {});
    for (std::size_t o = 0; o < kOut; ++o) {
        for (std::size_t i = 0; i < kRank; ++i)
            kept[o] += v[o * kRank + i] * row.value[i];
        EXPECT_NEAR(kept[o], expected[o], 1e-9) << o;
    }
}

class LatentRefused : public course::DeviceTest {
  protected:
    static std::string attend(const LatentShape& shape, std::size_t q_size, std::size_t offset = 0,
                              float scale = 1) {
        return refusal([&] {
            const DeviceBuffer<T> q = course::zeros<T>(q_size + 8);
            const DeviceBuffer<T> cache = course::zeros<T>(shape.cache_elements());
            const DeviceBuffer<int> lengths = course::zeros<int>(shape.batch);
            DeviceBuffer<T> out(shape.out_elements());
            LatentWorkspace workspace(shape);
            day29::latent_versions()[0].launcher(
                {shape, q.span().subspan(offset, q_size), cache.span(), lengths.span(), out.span(), scale},
                workspace, nullptr);
        });
    }
};

TEST_F(LatentRefused, ShapesSizesAndAddresses) {
    EXPECT_EQ(attend({1, 2, 3, 64}, 256), "latent: rank is 64; expected 128 or 512");
    const LatentShape shape{1, 2, 3, 128};
    EXPECT_EQ(attend(shape, 384), "");
    EXPECT_EQ(attend(shape, 383), "latent: q has 383 elements; expected 384");
    EXPECT_EQ(attend(shape, 384, 1),
              "latent: q begins at an address that is not a multiple of 16 bytes; expected an aligned one");
    EXPECT_EQ(attend(shape, 384, 0, 0), "latent: scale is 0; expected a finite number above 0");
}

TEST_F(LatentRefused, OutThatOverlapsAndAnotherWorkspace) {
    const LatentShape shape{1, 1, 2, 128};
    DeviceBuffer<T> cache = course::zeros<T>(shape.cache_elements());
    const DeviceBuffer<int> lengths = course::zeros<int>(1);
    DeviceBuffer<T> out(128);
    LatentWorkspace workspace(shape);
    LatentWorkspace other({1, 1, 3, 128});
    day29::LatentDecoding decoding{
        shape, cache.span().subspan(0, 192), cache.span(), lengths.span(), out.span(), 1};
    const auto launcher = day29::latent_versions()[0].launcher;
    EXPECT_EQ(refusal([&] { launcher(decoding, other, nullptr); }),
              "latent: the workspace is for 1x1:1x3x192, the problem is 1x1:1x2x192; expected the same");
    decoding.out = cache.span().subspan(192, 128);
    EXPECT_EQ(refusal([&] { launcher(decoding, workspace, nullptr); }),
              "latent: out overlaps an input; expected memory of its own");
}

}  // namespace
