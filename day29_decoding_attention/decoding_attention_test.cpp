// Every version against the reference, and a cache that grows.
#include "decoding_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "kv_cache.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::refusal;
using day29::Decoding;
using day29::KvCache;
using day29::Shape;
using day29::Workspace;

constexpr std::uint64_t kSeed = 29;
constexpr std::size_t kTile = 16;        // keys that a warp takes
constexpr std::size_t kBlockTile = 128;  // and a block
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Inputs of a problem. What the cache holds behind a sequence's length is NaN.
template <class T>
struct Problem {
    Shape shape;
    std::vector<std::size_t> lengths;
    std::vector<T> q, k, v;
    float scale = 0;

    T* row(std::vector<T>& cache, std::size_t sequence, std::size_t head, std::size_t token) const {
        return cache.data() + ((sequence * shape.heads_kv + head) * shape.capacity + token) * shape.dim;
    }
};

template <class T>
Problem<T> make_problem(const Shape& shape, const std::vector<std::size_t>& lengths,
                        DataPattern pattern = DataPattern::kNormal) {
    Problem<T> problem{shape,
                       lengths,
                       course::make_data<T>(shape.q_elements(), pattern, kSeed),
                       course::make_data<T>(shape.cache_elements(), pattern, kSeed + 1),
                       course::make_data<T>(shape.cache_elements(), pattern, kSeed + 2),
                       1 / std::sqrt(static_cast<float>(shape.dim))};
    for (std::size_t b = 0; b < shape.batch; ++b)
        for (std::size_t h = 0; h < shape.heads_kv; ++h)
            for (std::vector<T>* cache : {&problem.k, &problem.v})
                std::fill(problem.row(*cache, b, h, lengths[b]), problem.row(*cache, b, h, shape.capacity),
                          T(kNan));
    return problem;
}

// All rows of the result against the reference.
template <class T>
course::VerifyResult compare(const day29::Version<T>& version, const Problem<T>& problem,
                             const GuardedBuffer<T>& out) {
    const Shape& shape = problem.shape;
    std::vector<double> expected(shape.q_elements());
    std::vector<double> magnitude(shape.q_elements());
    for (std::size_t row = 0; row < shape.q_elements() / shape.dim; ++row) {
        const std::size_t item = row / shape.rows();
        const std::size_t length = problem.lengths[item / shape.heads_kv];
        const std::size_t behind = shape.queries - 1 - row % shape.queries;  // newer tokens
        const std::size_t visible = length > behind ? length - behind : 0;
        const std::span<const T> k(problem.k.data() + item * shape.capacity * shape.dim, visible * shape.dim);
        const std::span<const T> v(problem.v.data() + item * shape.capacity * shape.dim, visible * shape.dim);
        const day29::ReferenceRow reference =
            day29::reference_row<T>(std::span<const T>(problem.q).subspan(row * shape.dim, shape.dim), k, v,
                                    visible, static_cast<double>(problem.scale), day29::precision(version));
        for (std::size_t c = 0; c < shape.dim; ++c) {
            expected[row * shape.dim + c] = reference.value[c];
            magnitude[row * shape.dim + c] =
                std::isfinite(reference.value[c]) ? reference.bound[c] / course::FloatTraits<T>::kEpsilon : 0;
        }
    }
    course::VerifyResult result =
        course::verify(out.to_host(), expected, {.factor = 1}, magnitude, shape.dim);
    result.damage = out.damage();
    return result;
}

// `blocks` as in Workspace. Launched twice: the second launch finds the parts of the first, which
// had other queries.
template <class T>
void launch_twice(const day29::Version<T>& version, const Problem<T>& problem, unsigned blocks,
                  GuardedBuffer<T>& out) {
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const DeviceBuffer<T> k{std::span<const T>(problem.k)};
    const DeviceBuffer<T> v{std::span<const T>(problem.v)};
    const std::vector<int> as_int(problem.lengths.begin(), problem.lengths.end());
    const DeviceBuffer<int> lengths{std::span<const int>(as_int)};
    Workspace workspace(problem.shape, blocks);
    std::vector<T> negated = problem.q;
    for (T& x : negated)
        x = T(-static_cast<float>(x));
    const DeviceBuffer<T> other{std::span<const T>(negated)};
    for (const DeviceBuffer<T>* queries : {&other, &q}) {
        out.spoil();
        version.launcher(
            {problem.shape, queries->span(), k.span(), v.span(), lengths.span(), out.span(), problem.scale},
            workspace, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
    }
}

template <class T>
course::VerifyResult run(const day29::Version<T>& version, const Problem<T>& problem, unsigned blocks = 7) {
    GuardedBuffer<T> out(problem.shape.q_elements());
    launch_twice(version, problem, blocks, out);
    return compare(version, problem, out);
}

// Where the query is zero, all visible keys have the same weight. And where V is the unit matrix,
// column j of the result is the weight of key j. Returns the first weight that is wrong, in words;
// "": none.
template <class T>
std::string wrong_weight(const day29::Version<T>& version, std::size_t length, unsigned blocks) {
    Problem<T> problem = make_problem<T>({1, 1, 1, 1, 64, 64}, {length});
    std::ranges::fill(problem.q, T(0.0f));
    for (std::size_t key = 0; key < length; ++key)
        for (std::size_t col = 0; col < 64; ++col)
            problem.row(problem.v, 0, 0, key)[col] = T(key == col ? 1.0f : 0.0f);
    GuardedBuffer<T> out(problem.shape.q_elements());
    launch_twice(version, problem, blocks, out);
    std::vector<float> weights;
    for (const T weight : out.to_host())
        weights.push_back(static_cast<float>(weight));
    weights.resize(length);
    const float largest = *std::ranges::max_element(weights);
    for (std::size_t key = 0; key < length; ++key) {
        const std::string which = "key " + std::to_string(key) + " of " + std::to_string(length) + ", " +
                                  std::to_string(blocks) + " blocks: ";
        if (weights[key] == 0) return which + "weight 0: it is in the range of no block";
        if (!(weights[key] > 0.9f * largest))
            return which + "a smaller weight than another key, which may be in the ranges of two blocks";
    }
    return "";
}

// A version and the type it is for.
template <class T, std::size_t INDEX>
struct Listed {
    using Type = T;
    static const day29::Version<T>& version() { return day29::versions<T>()[INDEX]; }
};

template <class V>
class DecodingTest : public course::DeviceTest {
  protected:
    using Type = typename V::Type;

    template <class Check>
    void with_version(const Shape& shape, Check check) {
        const day29::Version<Type>& version = V::version();
        if (const std::string reason = version.cannot_run({shape, 0}); !reason.empty())
            GTEST_SKIP() << reason;
        check(version);
    }
    void expect_right(const Problem<Type>& problem, unsigned blocks = 7) {
        with_version(problem.shape, [&](const auto& version) {
            const course::VerifyResult result = run(version, problem, blocks);
            EXPECT_TRUE(result.ok()) << day29::name(problem.shape) << ", " << blocks
                                     << " blocks: " << result.message();
        });
    }
};

constexpr std::size_t kVersions = 6;
using Versions = testing::Types<Listed<__half, 0>, Listed<__half, 1>, Listed<__half, 2>, Listed<__half, 3>,
                                Listed<__half, 4>, Listed<__half, 5>, Listed<__nv_bfloat16, 0>,
                                Listed<__nv_bfloat16, 1>, Listed<__nv_bfloat16, 2>, Listed<__nv_bfloat16, 3>,
                                Listed<__nv_bfloat16, 4>, Listed<__nv_bfloat16, 5>>;
struct VersionName {
    template <class V>
    static std::string GetName(int) {
        return (std::is_same_v<typename V::Type, __half> ? "half_" : "bfloat16_") + V::version().name;
    }
};
TYPED_TEST_SUITE(DecodingTest, Versions, VersionName);

TEST(Versions, AreAllTested) {
    EXPECT_EQ(day29::versions<__half>().size(), kVersions);
    EXPECT_EQ(day29::versions<__nv_bfloat16>().size(), kVersions);
}

// First, because it names what is wrong where keys are divided among blocks.
TYPED_TEST(DecodingTest, EveryKeyHasItsWeight) {
    this->with_version({1, 1, 1, 1, 64, 64}, [](const auto& version) {
        for (const std::size_t length : {1, 7, 8, 17, 50, 64})
            for (const unsigned blocks : {3, 7})
                EXPECT_EQ(wrong_weight(version, length, blocks), "");
    });
}

// Around a warp's tile and a block's, and a prime. One batch: sequences of all these lengths, each
// with its place in the list of equal shares.
TYPED_TEST(DecodingTest, LengthsThatDiffer) {
    using T = typename TypeParam::Type;
    const std::vector<std::size_t> lengths = {
        0,   1, kTile - 1, kTile, kTile + 1, 0, 2 * kTile + 1, kBlockTile - 1, kBlockTile, kBlockTile + 1,
        211, 0};
    for (const std::size_t dim : {64, 128})
        this->expect_right(make_problem<T>({lengths.size(), 2, 1, 1, 240, dim}, lengths));
}

TYPED_TEST(DecodingTest, OneLengthAtATime) {
    using T = typename TypeParam::Type;
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, kTile, kTile + 1, 5 * kTile})
        this->expect_right(make_problem<T>({1, 1, 1, 1, 5 * kTile, 64}, {length}));
}

// Heads of Q that share a head of K: 1, 3, 4, 8 and 16; one head of K, or several.
TYPED_TEST(DecodingTest, Groups) {
    using T = typename TypeParam::Type;
    for (const std::size_t group : {1, 3, 4, 8, 16}) {
        const std::size_t heads_kv = group == 16 ? 1 : 2;
        this->expect_right(make_problem<T>({2, group * heads_kv, heads_kv, 1, 70, 128}, {70, 33}));
    }
}

// The newest tokens do not see each other's successors. The first of them may see nothing.
TYPED_TEST(DecodingTest, SeveralQueries) {
    using T = typename TypeParam::Type;
    for (const std::size_t queries : {2, 5, 8})
        this->expect_right(make_problem<T>({3, 2, 1, queries, 48, 64}, {48, 17, 3}));
}

// More than the 32 whose lengths a warp reads at once.
TYPED_TEST(DecodingTest, ManySequences) {
    using T = typename TypeParam::Type;
    std::vector<std::size_t> lengths(70);
    for (std::size_t i = 0; i < lengths.size(); ++i)
        lengths[i] = i * 7 % 21;
    const Problem<T> problem = make_problem<T>({70, 2, 1, 1, 20, 64}, lengths);
    this->with_version(problem.shape, [&](const auto& version) {
        const course::VerifyResult result = run(version, problem, 7);
        EXPECT_TRUE(result.ok()) << result.message();
    });
}

// Fewer keys than blocks; a head in many parts; many heads in the share of one block.
TYPED_TEST(DecodingTest, AnyNumberOfBlocks) {
    using T = typename TypeParam::Type;
    const Problem<T> problem = make_problem<T>({2, 4, 1, 1, 700, 64}, {700, 20});
    for (const unsigned blocks : {1, 2, 13, 40})
        this->expect_right(problem, blocks);
    const Problem<T> small = make_problem<T>({9, 3, 3, 1, 20, 64}, std::vector<std::size_t>(9, 18));
    for (const unsigned blocks : {1, 4, 300})
        this->expect_right(small, blocks);
}

// A cache of more than 2^33 elements, on the CPU: only those of the last sequence exist, and the
// other sequences are empty.
TYPED_TEST(DecodingTest, IndicesBeyond32Bits) {
    using T = typename TypeParam::Type;
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const Problem<T> last = make_problem<T>({1, 2, 1, 1, 150, 128}, {150});
    const Shape shape{5, 2, 1, 1, std::size_t{1} << 24, 128};
    this->with_version(shape, [&](const auto& version) {
        const course::LargeArray<T> k(shape.cache_elements(), std::size_t{1} << 16, {0.8});
        const course::LargeArray<T> v(shape.cache_elements(), std::size_t{1} << 16, {0.8});
        const std::size_t first = 4 * shape.capacity * shape.dim;
        std::ranges::copy(last.k, &k[first]);
        std::ranges::copy(last.v, &v[first]);
        DeviceBuffer<T> q(shape.q_elements());
        DeviceBuffer<T> out(shape.q_elements());
        const std::size_t rows = shape.q_elements() - last.q.size();
        CUDA_CHECK(cudaMemset(q.data(), 0, q.bytes()));
        CUDA_CHECK(
            cudaMemcpy(q.data() + rows, last.q.data(), last.q.size() * sizeof(T), cudaMemcpyHostToDevice));
        const std::vector<int> as_int = {0, 0, 0, 0, 150};
        const DeviceBuffer<int> lengths{std::span<const int>(as_int)};
        Workspace workspace(shape, 7);
        course::run_few_blocks(
            [&] {
                version.launcher(
                    {shape, q.span(), k.span(), v.span(), lengths.span(), out.span(), last.scale}, workspace,
                    nullptr);
            },
            {0, 0.25, 0.5, 0.75, 1}, "Is the offset into the cache computed in 64 bits?");
        if (testing::Test::HasFatalFailure()) return;
        const std::vector<T> all = out.to_host();
        GuardedBuffer<T> got(last.q.size());
        got.copy_from(std::vector<T>(all.begin() + static_cast<std::ptrdiff_t>(rows), all.end()));
        const course::VerifyResult result = compare(version, last, got);
        EXPECT_TRUE(result.ok()) << course::large_element(first, k.span().size()) << "\n" << result.message();
    });
}

TYPED_TEST(DecodingTest, Patterns) {
    using T = typename TypeParam::Type;
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kSorted, DataPattern::kReversed})
        this->expect_right(make_problem<T>({1, 4, 2, 1, 150, 64}, {150}, pattern));
}

// A maximum that rises with every key, far enough to rescale each time; and one that comes first.
TYPED_TEST(DecodingTest, ScoresThatRiseOrFall) {
    using T = typename TypeParam::Type;
    for (const bool rise : {true, false}) {
        Problem<T> problem = make_problem<T>({1, 2, 1, 1, 180, 64}, {180});
        std::fill(problem.q.begin(), problem.q.end(), T(1.0f));
        for (std::size_t token = 0; token < 180; ++token) {
            const auto height = static_cast<float>(rise ? token : 180 - token);
            std::fill_n(problem.row(problem.k, 0, 0, token), 64, T(height * 0.25f));
        }
        this->expect_right(problem);
    }
}

TYPED_TEST(DecodingTest, NotFinite) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 4, 2, 1, 90, 64};
    const std::size_t dim = shape.dim;
    Problem<T> problem = make_problem<T>(shape, {85});
    problem.q[0] = T(kNan);                         // head 0, which shares K with head 1
    problem.row(problem.v, 0, 1, 40)[7] = T(kInf);  // heads 2 and 3
    problem.row(problem.v, 0, 1, 84)[9] = T(kNan);
    this->with_version(shape, [&](const auto& version) {
        const DeviceBuffer<T> q{std::span<const T>(problem.q)};
        const DeviceBuffer<T> k{std::span<const T>(problem.k)};
        const DeviceBuffer<T> v{std::span<const T>(problem.v)};
        const std::vector<int> as_int = {85};
        const DeviceBuffer<int> lengths{std::span<const int>(as_int)};
        GuardedBuffer<T> out(shape.q_elements());
        Workspace workspace(shape, 5);
        version.launcher({shape, q.span(), k.span(), v.span(), lengths.span(), out.span(), problem.scale},
                         workspace, nullptr);
        const std::vector<T> got = out.to_host();
        const auto value = [&](std::size_t head, std::size_t c) {
            return static_cast<float>(got[head * dim + c]);
        };
        for (std::size_t c = 0; c < dim; ++c) {
            EXPECT_TRUE(std::isnan(value(0, c))) << c;
            EXPECT_TRUE(std::isfinite(value(1, c))) << c;
            for (const std::size_t head : {2, 3}) {
                EXPECT_EQ(std::isinf(value(head, c)), c == 7) << head << ", " << c;
                EXPECT_EQ(std::isnan(value(head, c)), c == 9) << head << ", " << c;
            }
        }
    });
}

TYPED_TEST(DecodingTest, ScoresOfMinusInfinityGiveZeros) {
    using T = typename TypeParam::Type;
    Problem<T> problem = make_problem<T>({1, 2, 1, 1, 50, 64}, {50});
    std::fill(problem.q.begin(), problem.q.end(), T(1.0f));
    std::fill(problem.k.begin(), problem.k.end(), T(-kInf));
    this->expect_right(problem);
}

// A length that the cache cannot have counts as the nearest one that it can have.
TYPED_TEST(DecodingTest, LengthsOutOfRangeAreClamped) {
    using T = typename TypeParam::Type;
    const Shape shape{2, 1, 1, 1, 40, 64};
    const Problem<T> problem = make_problem<T>(shape, {40, 0});
    this->with_version(shape, [&](const auto& version) {
        const DeviceBuffer<T> q{std::span<const T>(problem.q)};
        const DeviceBuffer<T> k{std::span<const T>(problem.k)};
        const DeviceBuffer<T> v{std::span<const T>(problem.v)};
        const std::vector<int> wrong = {1000000, -3};
        const DeviceBuffer<int> lengths{std::span<const int>(wrong)};
        GuardedBuffer<T> out(shape.q_elements());
        Workspace workspace(shape, 3);
        version.launcher({shape, q.span(), k.span(), v.span(), lengths.span(), out.span(), problem.scale},
                         workspace, nullptr);
        const course::VerifyResult result = compare(version, problem, out);
        EXPECT_TRUE(result.ok()) << result.message();
    });
}

// Parts are added in a fixed order, not in that in which blocks end.
// No sequence, no query, no head of Q: nothing to write. No token: zeros.
TYPED_TEST(DecodingTest, ExtentsOfZero) {
    using T = typename TypeParam::Type;
    this->expect_right(make_problem<T>({0, 8, 2, 1, 40, 64}, {}));
    this->expect_right(make_problem<T>({2, 0, 2, 1, 40, 64}, {9, 40}));
    this->expect_right(make_problem<T>({2, 8, 2, 0, 40, 64}, {9, 40}));
    this->expect_right(make_problem<T>({2, 8, 2, 1, 0, 128}, {0, 0}));
}

TYPED_TEST(DecodingTest, TheSameBitsInEveryLaunch) {
    using T = typename TypeParam::Type;
    const Problem<T> problem = make_problem<T>({1, 4, 1, 1, 600, 64}, {600});
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const DeviceBuffer<T> k{std::span<const T>(problem.k)};
    const DeviceBuffer<T> v{std::span<const T>(problem.v)};
    const std::vector<int> as_int = {600};
    const DeviceBuffer<int> lengths{std::span<const int>(as_int)};
    this->with_version(problem.shape, [&](const auto& version) {
        Workspace workspace(problem.shape, 20);
        std::vector<float> first;
        for (int launch = 0; launch < 4; ++launch) {
            GuardedBuffer<T> out(problem.shape.q_elements());
            version.launcher(
                {problem.shape, q.span(), k.span(), v.span(), lengths.span(), out.span(), problem.scale},
                workspace, nullptr);
            const std::vector<T> got = out.to_host();
            const std::vector<float> values(got.begin(), got.end());
            if (launch == 0) first = values;
            EXPECT_EQ(values, first);
        }
    });
}

// --- Refused arguments ---------------------------------------------------------------------------

class Refused : public course::DeviceTest {
  protected:
    using T = __half;
    std::string attend(const Shape& shape, std::size_t q_size, std::size_t offset = 0, float scale = 1) {
        return refusal([&] {
            const DeviceBuffer<T> q = course::zeros<T>(q_size + 8);
            const DeviceBuffer<T> kv = course::zeros<T>(shape.cache_elements());
            const DeviceBuffer<int> lengths = course::zeros<int>(shape.batch);
            DeviceBuffer<T> out(shape.q_elements());
            Workspace workspace(shape);
            day29::attend<T>({shape, q.span().subspan(offset, q_size), kv.span(), kv.span(), lengths.span(),
                              out.span(), scale},
                             workspace, nullptr);
        });
    }
};

TEST_F(Refused, ShapesThatNoVersionRuns) {
    EXPECT_EQ(attend({1, 2, 2, 1, 8, 80}, 160), "decoding: dim is 80; expected 64 or 128");
    EXPECT_EQ(attend({1, 3, 2, 1, 8, 64}, 192), "decoding: heads is 3 and heads_kv 2; expected a multiple");
    EXPECT_EQ(attend({1, 2, 0, 1, 8, 64}, 128), "decoding: heads is 2 and heads_kv 0; expected a multiple");
    EXPECT_EQ(attend({1, 2, 2, 1, 8, 0}, 0), "decoding: dim is 0; expected 64 or 128");
    EXPECT_EQ(attend({1, 12, 2, 3, 8, 64}, 36 * 64),
              "decoding: 18 queries share a head of K (6 heads x 3 queries); expected at most 16");
}

TEST_F(Refused, SizesAddressesAndScales) {
    const Shape shape{1, 2, 2, 1, 8, 64};
    EXPECT_EQ(attend(shape, 128), "");
    EXPECT_EQ(attend(shape, 127), "decoding: q has 127 elements; expected 128");
    EXPECT_EQ(attend(shape, 128, 1),
              "decoding: q begins at an address that is not a multiple of 16 bytes; expected an aligned one");
    EXPECT_EQ(attend(shape, 128, 0, 0), "decoding: scale is 0; expected a finite number above 0");
}

TEST_F(Refused, OutThatOverlapsAndAnotherWorkspace) {
    const Shape shape{1, 2, 2, 1, 8, 64};
    DeviceBuffer<T> all = course::zeros<T>(shape.cache_elements());
    const DeviceBuffer<int> lengths = course::zeros<int>(1);
    DeviceBuffer<T> out(shape.q_elements());
    Workspace workspace(shape);
    const Decoding<T> right{
        shape, all.span().subspan(0, 128), all.span(), all.span(), lengths.span(), out.span(), 1};
    Decoding<T> wrong = right;
    wrong.out = all.span().subspan(256, 128);
    EXPECT_EQ(refusal([&] { day29::attend<T>(wrong, workspace, nullptr); }),
              "decoding: out overlaps an input; expected memory of its own");
    Workspace other({1, 2, 2, 1, 9, 64});
    EXPECT_EQ(refusal([&] { day29::attend<T>(right, other, nullptr); }),
              "decoding: the workspace is for 1x2x9x64, the problem is 1x2x8x64; expected the same");
}

// --- The cache -----------------------------------------------------------------------------------

// Prompts of different lengths, then steps of one token, while a sequence ends and another begins.
// After each step the result is that of the tokens so far.
TEST(KvCacheTest, GrowsTokenByToken) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    using T = __nv_bfloat16;
    const std::size_t batch = 3, heads = 4, heads_kv = 2, capacity = 40, dim = 64;
    const Shape shape{batch, heads, heads_kv, 1, capacity, dim};
    Problem<T> problem = make_problem<T>(shape, {0, 0, 0});
    const std::vector<T> k_all = course::make_data<T>(shape.cache_elements(), DataPattern::kNormal, 5);
    const std::vector<T> v_all = course::make_data<T>(shape.cache_elements(), DataPattern::kNormal, 6);
    KvCache<T> cache(batch, heads_kv, capacity, dim);
    Workspace workspace(shape, 5);
    // `count` tokens of the sequences [first, last): appended to the cache and to `problem`.
    const auto append = [&](std::size_t first, std::size_t last, std::size_t count) {
        std::vector<T> k, v;
        for (std::size_t b = first; b < last; ++b) {
            for (std::size_t h = 0; h < heads_kv; ++h) {
                for (std::size_t i = 0; i < count; ++i) {
                    const std::size_t token = problem.lengths[b] + i;
                    const auto at =
                        static_cast<std::size_t>(problem.row(problem.k, b, h, token) - problem.k.data());
                    std::copy_n(k_all.data() + at, dim, problem.k.data() + at);
                    std::copy_n(v_all.data() + at, dim, problem.v.data() + at);
                    k.insert(k.end(), k_all.data() + at, k_all.data() + at + dim);
                    v.insert(v.end(), v_all.data() + at, v_all.data() + at + dim);
                }
            }
            problem.lengths[b] += count;
        }
        const DeviceBuffer<T> k_new{std::span<const T>(k)};
        const DeviceBuffer<T> v_new{std::span<const T>(v)};
        if (last - first == batch) {
            cache.append(k_new.span(), v_new.span(), count, nullptr);
        } else {
            cache.append_to(first, k_new.span(), v_new.span(), count, nullptr);
        }
        CUDA_CHECK(cudaDeviceSynchronize());
    };
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const auto check = [&] {
        GuardedBuffer<T> out(shape.q_elements());
        day29::attend<T>(cache.decoding(q.span(), out.span(), heads, 1, problem.scale), workspace, nullptr);
        const course::VerifyResult result = compare(day29::versions<T>().back(), problem, out);
        EXPECT_TRUE(result.ok()) << cache.length(0) << ", " << cache.length(1) << ", " << cache.length(2)
                                 << ": " << result.message();
    };
    append(0, 1, 15);
    append(2, 3, 33);
    check();
    for (int step = 0; step < 3; ++step) {
        append(0, batch, 1);
        check();
    }
    cache.clear(2, nullptr);
    problem.lengths[2] = 0;
    append(2, 3, 2);
    append(0, batch, 1);
    check();
    EXPECT_EQ(cache.length(0), 19U);
    EXPECT_EQ(cache.length(2), 3U);
}

TEST(KvCacheTest, RefusesTokensForWhichThereIsNoRoom) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    KvCache<__half> cache(2, 1, 4, 64);
    const DeviceBuffer<__half> tokens = course::zeros<__half>(2 * 3 * 64);
    cache.append(tokens.span(), tokens.span(), 3, nullptr);
    EXPECT_EQ(refusal([&] {
                  cache.append(tokens.span().subspan(0, 256), tokens.span().subspan(0, 256), 2, nullptr);
              }),
              "KvCache: sequence 0 has 3 tokens and should get 2 more; expected at most 4 together");
    EXPECT_EQ(refusal([&] { cache.append(tokens.span(), tokens.span(), 1, nullptr); }),
              "KvCache: k has 384 and v 384 elements; expected 128");
    EXPECT_EQ(refusal([&] { cache.clear(2, nullptr); }), "KvCache: sequence is 2; expected one below 2");
}

// A captured launch reads the lengths when it is replayed.
TEST(KvCacheTest, AGraphSeesTheCacheGrow) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    using T = __half;
    const Shape shape{1, 2, 1, 1, 40, 64};
    Problem<T> problem = make_problem<T>(shape, {40});
    KvCache<T> cache(1, 1, 40, 64);
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const DeviceBuffer<T> k{std::span<const T>(problem.k)};
    const DeviceBuffer<T> v{std::span<const T>(problem.v)};
    GuardedBuffer<T> out(shape.q_elements());
    Workspace workspace(shape, 4);
    const course::CapturedWork work([&](cudaStream_t stream) {
        day29::attend<T>(cache.decoding(q.span(), out.span(), 2, 1, problem.scale), workspace, stream);
    });
    for (const std::size_t tokens : {19, 21}) {
        const std::size_t from = cache.length(0) * 64;
        cache.append(k.span().subspan(from, tokens * 64), v.span().subspan(from, tokens * 64), tokens,
                     nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        work.run();
        problem.lengths[0] = cache.length(0);
        const course::VerifyResult result = compare(day29::versions<T>().back(), problem, out);
        EXPECT_TRUE(result.ok()) << cache.length(0) << " tokens: " << result.message();
    }
}

}  // namespace
