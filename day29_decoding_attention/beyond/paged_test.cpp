// The paged cache: every version against the reference, which reads the same pages in order.
#include "paged.hpp"

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
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;
using day29::kPage;
using day29::PagedShape;
using day29::PagedVersion;
using day29::PagedWorkspace;
using T = day29::PagedDecoding::T;

// Inputs of a problem. Pages of no sequence, and tokens after the end of one, are NaN; entries of
// the table that no token needs are out of range.
struct Problem {
    PagedShape shape;
    std::vector<int> lengths;
    std::vector<int> table;
    std::vector<T> q, k, v;
    float scale = 0;

    std::size_t length(std::size_t sequence) const { return static_cast<std::size_t>(lengths[sequence]); }
    // The first element of a token of a head of K in the pool.
    std::size_t at(std::size_t sequence, std::size_t head, std::size_t token) const {
        const auto page = static_cast<std::size_t>(table[sequence * shape.table_pages + token / kPage]);
        return ((page * shape.heads_kv + head) * kPage + token % kPage) * shape.dim;
    }
    // The keys or values of a head of K, without gaps.
    std::vector<T> gathered(const std::vector<T>& pool, std::size_t sequence, std::size_t head) const {
        std::vector<T> rows;
        for (std::size_t token = 0; token < length(sequence); ++token) {
            const auto first = pool.begin() + static_cast<std::ptrdiff_t>(at(sequence, head, token));
            rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(shape.dim));
        }
        return rows;
    }
};

std::size_t pages_of(std::size_t tokens) {
    return (tokens + kPage - 1) / kPage;
}

// `shared`: so many first pages are the same in all sequences that have them. `spare`: pages of the
// pool that no sequence has.
Problem make_problem(std::size_t heads, std::size_t heads_kv, std::size_t dim,
                     const std::vector<int>& lengths, std::size_t shared = 0, std::size_t spare = 3,
                     DataPattern pattern = DataPattern::kNormal, std::uint64_t seed = 29) {
    Problem problem;
    problem.lengths = lengths;
    std::size_t longest = 0;
    std::size_t used = shared;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::size_t pages = pages_of(problem.length(i));
        longest = std::max(longest, pages);
        used += pages - std::min(pages, shared);
    }
    problem.shape = {lengths.size(), heads, heads_kv, used + spare, longest + 1, dim};
    const PagedShape& shape = problem.shape;
    problem.scale = 1 / std::sqrt(static_cast<float>(dim));
    problem.q = course::make_data<T>(shape.q_elements(), pattern, seed);
    problem.k.assign(shape.pool_elements(), T(std::numeric_limits<float>::quiet_NaN()));
    problem.v = problem.k;

    std::vector<int> pages(shape.pages);
    std::iota(pages.begin(), pages.end(), 0);
    course::Random random(seed);
    for (std::size_t i = pages.size(); i > 1; --i)
        std::swap(pages[i - 1], pages[random.below(static_cast<std::uint32_t>(i))]);
    // Out of range, where no token is.
    problem.table.assign(shape.batch * shape.table_pages, std::numeric_limits<int>::max());
    std::size_t next = shared;
    for (std::size_t i = 0; i < shape.batch; ++i)
        for (std::size_t page = 0; page < pages_of(problem.length(i)); ++page)
            problem.table[i * shape.table_pages + page] = pages[page < shared ? page : next++];

    const std::vector<T> k = course::make_data<T>(shape.pool_elements(), pattern, seed + 1);
    const std::vector<T> v = course::make_data<T>(shape.pool_elements(), pattern, seed + 2);
    for (std::size_t i = 0; i < shape.batch; ++i)
        for (std::size_t head = 0; head < heads_kv; ++head)
            for (std::size_t token = 0; token < problem.length(i); ++token) {
                const auto from = static_cast<std::ptrdiff_t>(problem.at(i, head, token));
                std::copy_n(k.begin() + from, dim, problem.k.begin() + from);
                std::copy_n(v.begin() + from, dim, problem.v.begin() + from);
            }
    return problem;
}

course::VerifyResult compare(const PagedVersion& version, const Problem& problem,
                             const GuardedBuffer<T>& out) {
    const PagedShape& shape = problem.shape;
    std::vector<double> expected, magnitude;
    for (std::size_t item = 0; item < shape.batch * shape.heads_kv; ++item) {
        const std::size_t sequence = item / shape.heads_kv;
        const std::vector<T> k = problem.gathered(problem.k, sequence, item % shape.heads_kv);
        const std::vector<T> v = problem.gathered(problem.v, sequence, item % shape.heads_kv);
        for (std::size_t head = 0; head < shape.group(); ++head) {
            const std::span<const T> q(problem.q.data() + (item * shape.group() + head) * shape.dim,
                                       shape.dim);
            const day29::ReferenceRow row =
                day29::reference_row<T>(q, k, v, problem.length(sequence), static_cast<double>(problem.scale),
                                        day29::paged_precision(version));
            for (std::size_t c = 0; c < shape.dim; ++c) {
                expected.push_back(row.value[c]);
                magnitude.push_back(row.bound[c] / course::FloatTraits<T>::kEpsilon);
            }
        }
    }
    course::VerifyResult result =
        course::verify(out.to_host(), expected, {.factor = 1}, magnitude, shape.dim);
    result.damage = out.damage();
    return result;
}

course::VerifyResult run(const PagedVersion& version, const Problem& problem, unsigned blocks = 7) {
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const DeviceBuffer<T> k{std::span<const T>(problem.k)};
    const DeviceBuffer<T> v{std::span<const T>(problem.v)};
    const DeviceBuffer<int> table{std::span<const int>(problem.table)};
    const DeviceBuffer<int> lengths{std::span<const int>(problem.lengths)};
    GuardedBuffer<T> out(problem.shape.q_elements());
    PagedWorkspace workspace(problem.shape, blocks);
    version.launcher({problem.shape, q.span(), k.span(), v.span(), table.span(), lengths.span(), out.span(),
                      problem.scale},
                     workspace, nullptr);
    return compare(version, problem, out);
}

class PagedTest : public course::DeviceTestWithParam<const PagedVersion*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const PagedVersion*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }
    void expect_right(const Problem& problem, unsigned blocks = 7) {
        const course::VerifyResult result = run(*GetParam(), problem, blocks);
        EXPECT_TRUE(result.ok()) << day29::name(problem.shape) << ", " << blocks
                                 << " blocks: " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(Versions, PagedTest, each_of(day29::paged_versions()), course::VersionName());

// No token, a page and one more or less, eight pages and one more or less, and a prime.
TEST_P(PagedTest, RaggedLengths) {
    for (const std::size_t dim : {64, 128})
        expect_right(make_problem(2, 2, dim, {0, 1, 15, 16, 17, 0, 33, 127, 128, 129, 211}));
}

// 8 and 32 heads of Q for one of K, all of them, and one each; a number that is not a multiple of
// 16.
TEST_P(PagedTest, HeadsThatShareAPage) {
    expect_right(make_problem(16, 2, 64, {40, 7}));
    expect_right(make_problem(32, 1, 64, {150}));
    expect_right(make_problem(64, 1, 64, {33}));
    expect_right(make_problem(3, 3, 64, {20}));
    expect_right(make_problem(34, 2, 64, {50}));
    expect_right(make_problem(37, 1, 64, {50}));
}

// The first three pages are the same memory in all sequences.
TEST_P(PagedTest, SequencesThatShareTheirFirstPages) {
    const Problem problem = make_problem(8, 1, 64, {50, 47, 90, 48, 9}, 3);
    EXPECT_EQ(problem.table[0], problem.table[problem.shape.table_pages]);
    expect_right(problem);
}

// More pages than the 32 entries of the table that a warp of page_ring reads at a time, in one
// block.
TEST_P(PagedTest, ALongSequenceInOneBlockAndInMany) {
    if (course::lanes_descend()) GTEST_SKIP() << "the first order has seen it";
    const Problem problem = make_problem(1, 1, 64, {33 * 8 * 16 + 5});
    expect_right(problem, 1);
    expect_right(problem, 13);
}

TEST_P(PagedTest, Patterns) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kSorted})
        expect_right(make_problem(4, 2, 64, {70}, 0, 0, pattern));
}

TEST_P(PagedTest, RandomShapes) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        course::Random random(seed, 2029);
        const std::size_t heads_kv = 1 + random.below(3);
        const std::size_t heads = heads_kv * (1 + random.below(20));
        std::vector<int> lengths(1 + random.below(4));
        for (int& length : lengths)
            length = static_cast<int>(random.below(100));
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_right(make_problem(heads, heads_kv, 64, lengths, random.below(3), random.below(4),
                                  DataPattern::kNormal, seed),
                     1 + random.below(20));
    }
}

TEST_P(PagedTest, NothingToWrite) {
    expect_right(make_problem(4, 2, 64, {}));
    expect_right(make_problem(0, 2, 64, {5}));
    expect_right(make_problem(4, 2, 64, {0, 0}, 0, 0));
}

TEST_P(PagedTest, LengthsOutOfRangeAreClamped) {
    Problem problem = make_problem(2, 1, 64, {32, 0}, 0, 0);
    problem.shape.table_pages = 2;
    problem.table.erase(problem.table.begin() + 2);
    problem.table.pop_back();
    problem.table[2] = problem.table[3] = 0;
    const Problem right = problem;
    problem.lengths = {1000000, -1};
    const DeviceBuffer<T> q{std::span<const T>(problem.q)};
    const DeviceBuffer<T> k{std::span<const T>(problem.k)};
    const DeviceBuffer<T> v{std::span<const T>(problem.v)};
    const DeviceBuffer<int> table{std::span<const int>(problem.table)};
    const DeviceBuffer<int> lengths{std::span<const int>(problem.lengths)};
    GuardedBuffer<T> out(problem.shape.q_elements());
    PagedWorkspace workspace(problem.shape, 3);
    GetParam()->launcher({problem.shape, q.span(), k.span(), v.span(), table.span(), lengths.span(),
                          out.span(), problem.scale},
                         workspace, nullptr);
    const course::VerifyResult result = compare(*GetParam(), right, out);
    EXPECT_TRUE(result.ok()) << result.message();
}

// On the CPU: a pool of more than 2^31 elements, of which only the last page exists.
TEST_P(PagedTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    Problem small = make_problem(1, 1, 128, {16}, 0, 0);
    PagedShape shape = small.shape;
    shape.pages = std::size_t{1} << 25;
    const course::LargeArray<T> k(shape.pool_elements(), std::size_t{1} << 16, {1});
    const course::LargeArray<T> v(shape.pool_elements(), std::size_t{1} << 16, {1});
    const std::size_t first = shape.pool_elements() - small.k.size();
    std::ranges::copy(small.k, &k[first]);
    std::ranges::copy(small.v, &v[first]);
    std::vector<int> far = small.table;
    far[0] = static_cast<int>(shape.pages - 1);
    const DeviceBuffer<T> q{std::span<const T>(small.q)};
    const DeviceBuffer<int> table{std::span<const int>(far)};
    const DeviceBuffer<int> lengths{std::span<const int>(small.lengths)};
    GuardedBuffer<T> out(shape.q_elements());
    PagedWorkspace workspace(shape, 7);
    GetParam()->launcher(
        {shape, q.span(), k.span(), v.span(), table.span(), lengths.span(), out.span(), small.scale},
        workspace, nullptr);
    const course::VerifyResult result = compare(*GetParam(), small, out);
    EXPECT_TRUE(result.ok()) << course::large_element(first, k.span().size()) << "\n" << result.message();
}

class PagedRefused : public course::DeviceTest {
  protected:
    static std::string attend(const PagedShape& shape, std::size_t q_size, std::size_t table_size,
                              std::size_t offset = 0, float scale = 1) {
        return refusal([&] {
            const DeviceBuffer<T> q = course::zeros<T>(q_size + 8);
            const DeviceBuffer<T> pool = course::zeros<T>(shape.pool_elements());
            const DeviceBuffer<int> table = course::zeros<int>(table_size);
            const DeviceBuffer<int> lengths = course::zeros<int>(shape.batch);
            DeviceBuffer<T> out(shape.q_elements());
            PagedWorkspace workspace(shape);
            day29::paged_versions()[0].launcher(
                {shape, q.span().subspan(offset, q_size), pool.span(), pool.span(), table.span(),
                 lengths.span(), out.span(), scale},
                workspace, nullptr);
        });
    }
};

TEST_F(PagedRefused, ShapesSizesAndAddresses) {
    EXPECT_EQ(attend({1, 2, 2, 3, 2, 80}, 160, 2), "paged: dim is 80; expected 64 or 128");
    EXPECT_EQ(attend({1, 3, 2, 3, 2, 64}, 192, 2), "paged: heads is 3 and heads_kv 2; expected a multiple");
    EXPECT_EQ(attend({1, 65, 1, 3, 2, 64}, 65 * 64, 2),
              "paged: 65 heads share a head of K; expected at most 64");
    const PagedShape shape{2, 2, 2, 3, 4, 64};
    EXPECT_EQ(attend(shape, 256, 8), "");
    EXPECT_EQ(attend(shape, 255, 8), "paged: q has 255 elements; expected 256");
    EXPECT_EQ(attend(shape, 256, 7), "paged: table has 7 elements; expected 8");
    EXPECT_EQ(attend(shape, 256, 8, 1),
              "paged: q begins at an address that is not a multiple of 16 bytes; expected an aligned one");
    EXPECT_EQ(attend(shape, 256, 8, 0, -1), "paged: scale is -1; expected a finite number above 0");
}

TEST_F(PagedRefused, OutThatOverlapsAndAnotherWorkspace) {
    const PagedShape shape{1, 1, 1, 3, 2, 64};
    DeviceBuffer<T> pool = course::zeros<T>(shape.pool_elements());
    const DeviceBuffer<int> table = course::zeros<int>(2);
    const DeviceBuffer<int> lengths = course::zeros<int>(1);
    DeviceBuffer<T> out(64);
    PagedWorkspace workspace(shape);
    day29::PagedDecoding decoding{
        shape, pool.span().subspan(0, 64), pool.span(), pool.span(), table.span(), lengths.span(), out.span(),
        1};
    PagedWorkspace other({1, 1, 1, 3, 3, 64});
    const auto launch = day29::paged_versions()[0].launcher;
    EXPECT_EQ(refusal([&] { launch(decoding, other, nullptr); }),
              "paged: the workspace is for 1x1x48x64 in 3 pages, the problem is 1x1x32x64 in 3 pages; "
              "expected the same");
    decoding.out = pool.span().subspan(64, 64);
    EXPECT_EQ(refusal([&] { launch(decoding, workspace, nullptr); }),
              "paged: out overlaps an input; expected memory of its own");
}

}  // namespace
