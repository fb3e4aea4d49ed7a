// Every version against the CPU: whole numbers exactly, other floats within the bound of their
// roundings.
#include "scan.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
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
using course::DeviceSpan;
using course::GuardedBuffer;
using day16::Workspace;

constexpr std::uint64_t kSeed = 16;
constexpr std::size_t kTile = 5120;
constexpr std::size_t kBulkTile = 8192;

// Around a warp, a section of 256, 512 and 2048, a tile of either kind; sections of sections of 256
// and of 512; more than 32 tiles of either kind, so that one look at 32 of them is not enough.
const std::vector<std::size_t> kSizes = {
    0,     1,     31,    32,    33,        255,   256,       257,           511,       512,
    513,   2047,  2048,  2049,  kTile - 1, kTile, kTile + 1, kBulkTile - 1, kBulkTile, kBulkTile + 1,
    65535, 65536, 65537, 270007};

// Small whole numbers, whose sums floats hold exactly in any order.
template <class T>
std::vector<T> whole_numbers(std::size_t n, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    std::vector<T> values(n);
    for (T& value : values)
        value = static_cast<T>(random.integer(-8, 8));
    return values;
}

// What the scan of `in` is, and how large what was added.
struct Reference {
    explicit Reference(const std::vector<float>& in) : sums(in.size()), magnitudes(in.size()) {
        day16::scan_on_cpu(in, sums, magnitudes);
        for (double& magnitude : magnitudes)
            if (!std::isfinite(magnitude)) magnitude = 0;
    }
    std::vector<double> sums;
    std::vector<double> magnitudes;
};

course::VerifyResult compare(const GuardedBuffer<float>& out, const Reference& expected, double factor) {
    course::VerifyResult result = course::verify(out.to_host(), expected.sums,
                                                 {.terms = std::max<std::size_t>(1, out.size()),
                                                  .growth = course::Growth::kSquareRoot,
                                                  .factor = factor},
                                                 expected.magnitudes);
    result.damage = out.damage();
    return result;
}

class VersionTest : public course::DeviceTestWithParam<const day16::Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day16::Version*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run(1); !reason.empty()) GTEST_SKIP() << reason;
    }

    // `in` begins `offset` elements after an aligned address, the output `out_offset`.
    course::VerifyResult scan(const std::vector<float>& in, double factor = 0, std::size_t offset = 0,
                              std::size_t out_offset = 0) {
        return scan(in, Reference(in), factor, offset, out_offset);
    }

    course::VerifyResult scan(const std::vector<float>& in, const Reference& expected, double factor = 0,
                              std::size_t offset = 0, std::size_t out_offset = 0) {
        std::vector<float> all(offset + in.size(), 1e9f);
        std::copy(in.begin(), in.end(), all.begin() + static_cast<std::ptrdiff_t>(offset));
        const DeviceBuffer<float> device{std::span<const float>(all)};
        GuardedBuffer<float> out(in.size(), out_offset);
        Workspace workspace(in.size());
        // Twice: the first launch must leave the workspace as the second one needs it.
        for (int launch = 0; launch < 2; ++launch) {
            out.spoil();
            GetParam()->launcher(device.span().subspan(offset, in.size()), out.span(), workspace, nullptr);
            CUDA_CHECK(cudaDeviceSynchronize());
        }
        return compare(out, expected, factor);
    }
};

INSTANTIATE_TEST_SUITE_P(DaySixteen, VersionTest, course::each_of(day16::versions()), course::VersionName());

TEST_P(VersionTest, AllSizes) {
    for (const std::size_t n : kSizes) {
        const course::VerifyResult result = scan(whole_numbers<float>(n));
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

TEST_P(VersionTest, FloatPatterns) {
    for (const std::size_t n : {33, 9001, 20001}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
              DataPattern::kSorted, DataPattern::kWithNan}) {
            const course::VerifyResult result =
                scan(course::make_data<float>(static_cast<std::size_t>(n), pattern, kSeed), 2);
            EXPECT_TRUE(result.ok()) << "n = " << n << ", " << course::name(pattern) << ": "
                                     << result.message();
        }
    }
}

TEST_P(VersionTest, RandomSizesAndAlignments) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 6; ++round) {
        const std::size_t n = random.below(40000);
        const std::size_t offset = random.below(5);
        const std::size_t out_offset = random.below(5);
        const course::VerifyResult result = scan(whole_numbers<float>(n, round), 0, offset, out_offset);
        EXPECT_TRUE(result.ok()) << "n = " << n << ", in " << offset << " and out " << out_offset
                                 << " elements after an aligned address: " << result.message();
    }
}

TEST_P(VersionTest, InPlace) {
    const std::vector<float> in = whole_numbers<float>(3 * kTile + 5);
    GuardedBuffer<float> data(in.size());
    CUDA_CHECK(cudaMemcpy(data.span().data(), in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
    Workspace workspace(in.size());
    GetParam()->launcher(data.span(), data.span(), workspace, nullptr);
    const course::VerifyResult result = compare(data, Reference(in), 0);
    EXPECT_TRUE(result.ok()) << result.message();
}

// Several tiles for each block that is resident: every stage of the ring is used again, and blocks
// start late.
TEST_P(VersionTest, MoreTilesThanResidentBlocks) {
    const std::string name = GetParam()->name;
    const bool waits = name == "domino" || name.ends_with("lookback");
    if (course::is_cpu_stand_in() && !waits) GTEST_SKIP() << "no block waits for another";
    // Of millions: made once, not for each version.
    static const std::vector<float> in =
        whole_numbers<float>(course::multiprocessors() * std::size_t{40} * kTile + 7);
    static const Reference expected(in);
    const course::VerifyResult result = scan(in, expected);
    EXPECT_TRUE(result.ok()) << in.size() << " elements: " << result.message();
}

// Around the lengths with a tile, two, three and seven for each block: all stages of the ring, and
// the first used again.
TEST_P(VersionTest, LengthsAroundFullRounds) {
    if (std::string_view(GetParam()->name) != "bulk_lookback") GTEST_SKIP() << "has no rounds";
    const std::size_t round = course::multiprocessors() * kBulkTile;
    for (const std::size_t rounds : {1, 2, 3, 7}) {
        for (const std::size_t n : {rounds * round - 1, rounds * round, rounds * round + 1}) {
            const course::VerifyResult result = scan(whole_numbers<float>(n));
            EXPECT_TRUE(result.ok()) << "n = " << n << ", " << rounds << " rounds: " << result.message();
        }
    }
}

// Blocks of one scan must not take the tickets of the other, nor wait for its words.
TEST_P(VersionTest, TwoStreamsAtOnceWithTwoWorkspaces) {
    // Tiles of either kind enough for several resident blocks of each scan.
    constexpr std::size_t kElements = course::is_cpu_stand_in() ? 70003 : 200003;
    struct Scan {
        explicit Scan(std::uint64_t seed) : in(whole_numbers<float>(kElements, seed)) {
            CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        }
        ~Scan() { static_cast<void>(cudaStreamDestroy(stream)); }
        std::vector<float> in;
        DeviceBuffer<float> device{std::span<const float>(in)};
        GuardedBuffer<float> out{kElements};
        Workspace workspace{kElements};
        cudaStream_t stream = nullptr;
    };
    Scan first(1);
    Scan second(2);
    for (int launch = 0; launch < 3; ++launch)
        for (Scan* const scan : {&first, &second})
            GetParam()->launcher(scan->device.span(), scan->out.span(), scan->workspace, scan->stream);
    CUDA_CHECK(cudaDeviceSynchronize());
    for (Scan* const scan : {&first, &second}) {
        const course::VerifyResult result = compare(scan->out, Reference(scan->in), 0);
        EXPECT_TRUE(result.ok()) << (scan == &first ? "first" : "second") << ": " << result.message();
    }
}

// Any block may be the first to start, and those before it may have to wait until it has ended.
// Here the last few run alone: blocks that draw their tiles draw the first ones.
TEST_P(VersionTest, BlocksThatStartFirstTakeTheFirstTiles) {
    const std::string name = GetParam()->name;
    if (name != "domino" && name != "decoupled_lookback") GTEST_SKIP() << "no block waits for another";
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const std::vector<float> in = whole_numbers<float>(100 * kTile);
    const DeviceBuffer<float> device{std::span<const float>(in)};
    DeviceBuffer<float> out(in.size());
    Workspace workspace(in.size());
    course::run_few_blocks([&] { GetParam()->launcher(device.span(), out.span(), workspace, nullptr); }, {1},
                           "Of the grid only the last blocks run. Does one wait for a tile that no running "
                           "block has drawn?");
    if (HasFatalFailure()) return;
    const std::vector<float> first_tile(in.begin(), in.begin() + kTile);
    std::vector<double> sums(kTile);
    std::vector<double> magnitudes(kTile);
    day16::scan_on_cpu(first_tile, sums, magnitudes);
    std::vector<float> got = out.to_host();
    got.resize(kTile);
    const course::VerifyResult result = course::verify(got, sums, {.factor = 0}, magnitudes);
    EXPECT_TRUE(result.ok()) << "the first tile, of 100, where only the last blocks run: "
                             << result.message();
}

// The elements of a section.
const std::map<std::string_view, std::size_t> kSections = {{"kogge_stone", 256},
                                                           {"kogge_stone_double_buffer", 256},
                                                           {"brent_kung", 512},
                                                           {"coarsened", 2048},
                                                           {"warp_shuffle", 256}};

// No element needs the sum of the last section, which only part of a block's threads may have. A
// kernel that leaves it out would fail its next user.
TEST_P(VersionTest, TheLastSectionHasASum) {
    const auto found = kSections.find(GetParam()->name);
    if (found == kSections.end()) GTEST_SKIP() << "its blocks do not write the sums of sections";
    const std::size_t section = found->second;
    for (const std::size_t n : {std::size_t{1}, section - 1, section, 3 * section + 5, 4 * section}) {
        const std::vector<float> in = whole_numbers<float>(n, n);
        const DeviceBuffer<float> device{std::span<const float>(in)};
        GuardedBuffer<float> out(n);
        Workspace workspace(n);
        const std::size_t last = course::ceil_div(n, section) - 1;
        CUDA_CHECK(cudaMemset(workspace.sums(), 0xff, (last + 1) * sizeof(float)));  // NaN
        GetParam()->launcher(device.span(), out.span(), workspace, nullptr);
        float sum = 0;
        CUDA_CHECK(cudaMemcpy(&sum, workspace.sums() + last, sizeof(sum), cudaMemcpyDeviceToHost));
        EXPECT_EQ(sum, Reference(in).sums.back())
            << "the sum of all " << n << " elements, which the last of " << last + 1 << " sections of "
            << section << " gives to the scan of the sums";
    }
}

// A short scan after a long one: words of the long one must not count.
TEST_P(VersionTest, OneWorkspaceForManyScans) {
    Workspace workspace(100000);
    for (const std::size_t n : {100000, 12000, 77777, 1, 0, 50000}) {
        const std::vector<float> in = whole_numbers<float>(n, n);
        const DeviceBuffer<float> device{std::span<const float>(in)};
        GuardedBuffer<float> out(n);
        GetParam()->launcher(device.span(), out.span(), workspace, nullptr);
        const course::VerifyResult result = compare(out, Reference(in), 0);
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

// A word holds 30 bits of its launch's number. When numbers start again, words of old launches with
// the same number must be gone.
TEST_P(VersionTest, NumbersOfLaunchesStartAgain) {
    Workspace workspace(100000);
    const auto expect_right = [&](std::size_t n, std::uint64_t seed) {
        const std::vector<float> in = whole_numbers<float>(n, seed);
        const DeviceBuffer<float> device{std::span<const float>(in)};
        GuardedBuffer<float> out(n);
        GetParam()->launcher(device.span(), out.span(), workspace, nullptr);
        const course::VerifyResult result = compare(out, Reference(in), 0);
        EXPECT_TRUE(result.ok()) << "n = " << n << ", seed " << seed << ": " << result.message();
    };
    expect_right(100000, 1);  // number 0
    const unsigned long long last = (1ULL << 30) - 1;
    const unsigned long long ticket = last << 32;
    CUDA_CHECK(cudaMemcpy(workspace.ticket(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));
    expect_right(12000, 2);   // the last number
    expect_right(100000, 3);  // number 0 again
}

// What the last launch of a cycle has written must be gone before the last one of the next.
TEST_P(VersionTest, NoWordOfTheLastNumberIsLeft) {
    constexpr std::size_t kMost = 100000;
    Workspace workspace(kMost);
    const DeviceBuffer<float> in{std::span<const float>(std::vector<float>(kMost, 1.0f))};
    DeviceBuffer<float> out(kMost);
    constexpr unsigned long long kLast = (1ULL << 30) - 1;
    const auto scan = [&](unsigned long long launch, std::size_t n) {
        const unsigned long long ticket = launch << 32;
        CUDA_CHECK(cudaMemcpy(workspace.ticket(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));
        GetParam()->launcher(in.span().subspan(0, n), out.span().subspan(0, n), workspace, nullptr);
    };
    scan(kLast, kMost);
    scan(kLast - 1, 100);
    std::vector<unsigned long long> words(workspace.words_capacity());
    CUDA_CHECK(
        cudaMemcpy(words.data(), workspace.words(), words.size() * sizeof(words[0]), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < words.size(); ++i)
        EXPECT_NE(words[i] >> 34, kLast) << "word " << i;
}

// Blocks of the stand-in are done nearly in order, and the nearest prefix is never far. So here all
// tiles but the last five have published their sums, and only the first its prefix. The five blocks
// that run draw the other tiles, and look back three times.
TEST(LookBack, OverManyTilesWithoutAPrefix) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU runs all blocks of a grid";
    constexpr std::size_t kTiles = 80;
    constexpr std::size_t kRun = 5;
    const std::vector<float> in = whole_numbers<float>(kTiles * kTile - 100);
    std::vector<float> expected(in.size());
    std::partial_sum(in.begin(), in.end(), expected.begin());

    // What launch 1 would publish: its number, a state (sum 1, prefix 2), and the sum's 32 bits.
    std::vector<unsigned long long> words;
    for (std::size_t tile = 0; tile < kTiles - kRun; ++tile) {
        const float sum = std::accumulate(in.begin() + static_cast<std::ptrdiff_t>(tile * kTile),
                                          in.begin() + static_cast<std::ptrdiff_t>((tile + 1) * kTile), 0.0f);
        words.push_back((1ULL << 2 | (tile == 0 ? 2 : 1)) << 32 | std::bit_cast<std::uint32_t>(sum));
    }
    Workspace workspace(in.size());
    const unsigned long long ticket = 1ULL << 32 | words.size();
    CUDA_CHECK(
        cudaMemcpy(workspace.words(), words.data(), words.size() * sizeof(words[0]), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(workspace.ticket(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));

    const DeviceBuffer<float> device{std::span<const float>(in)};
    GuardedBuffer<float> out(in.size());
    const auto& launcher = course::find_version(day16::versions(), "decoupled_lookback").launcher;
    course::run_few_blocks([&] { launcher(device.span(), out.span(), workspace, nullptr); }, {0});
    const std::vector<float> got = out.to_host();
    for (std::size_t i = (kTiles - kRun) * kTile; i < in.size(); ++i)
        ASSERT_EQ(got[i], expected[i]) << "element " << i;
}

// The order of a scan's additions depends on timing in decoupled_lookback alone.
TEST_P(VersionTest, SameBitsInEveryRun) {
    if (std::string_view(GetParam()->name) == "decoupled_lookback")
        GTEST_SKIP() << "adds the sums in an order that depends on timing";
    // Five rounds of bulk_lookback.
    const std::size_t n = course::multiprocessors() * std::size_t{5} * kBulkTile + 77;
    const std::vector<float> in = course::make_data<float>(n, DataPattern::kSignedUniform, kSeed);
    const DeviceBuffer<float> device{std::span<const float>(in)};
    DeviceBuffer<float> out(in.size());
    Workspace workspace(in.size());
    std::vector<float> first;
    for (int run = 0; run < 3; ++run) {
        GetParam()->launcher(device.span(), out.span(), workspace, nullptr);
        const std::vector<float> got = out.to_host();
        if (run == 0) first = got;
        EXPECT_EQ(std::memcmp(got.data(), first.data(), out.bytes()), 0) << "run " << run;
    }
}

TEST_P(VersionTest, RunsOnTheGivenStreamAndInGraphs) {
    constexpr std::size_t kElements = 70000;
    DeviceBuffer<float> device = course::zeros<float>(kElements);
    GuardedBuffer<float> out(kElements);
    Workspace workspace(kElements);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(device.span(), out.span(), workspace, stream); });
    EXPECT_GE(work.nodes(), 1U);
    // Other data each time: words that an earlier replay left would give its sums.
    for (const std::uint64_t seed : {1, 2, 3}) {
        const std::vector<float> in = whole_numbers<float>(kElements, seed);
        CUDA_CHECK(cudaMemcpy(device.data(), in.data(), device.bytes(), cudaMemcpyHostToDevice));
        out.spoil();
        work.run();
        const course::VerifyResult result = compare(out, Reference(in), 0);
        EXPECT_TRUE(result.ok()) << "replay " << seed << ": " << result.message();
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<float> buffer = course::zeros<float>(64);
    Workspace workspace(16);
    const auto message = [&](DeviceSpan<float> in, DeviceSpan<float> out) {
        return course::refusal([&] { GetParam()->launcher(in, out, workspace, nullptr); });
    };
    const DeviceSpan<float> all = buffer.span();
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 9)),
              "scan: in has 8 elements and out 9; expected the same number");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(7, 8)),
              "scan: out overlaps in; expected in itself, or memory apart");
    EXPECT_EQ(message(all.subspan(0, 17), all.subspan(20, 17)),
              "scan: workspace has capacity 16; expected at least the length of in, 17");
    EXPECT_EQ(message(all.subspan(0, 16), all.subspan(16, 16)), "");
}

// 17 GB of zeros, but for four elements.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5;
    if (const std::string reason = course::why_not_so_large(2 * n * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> data(n);
    CUDA_CHECK(cudaMemset(data.data(), 0, data.bytes()));
    DeviceBuffer<float> out(n);
    Workspace workspace(n);
    const float one = 1;
    for (const std::size_t place : {std::size_t{3}, std::size_t{1} << 31, n - 6, n - 1})
        CUDA_CHECK(cudaMemcpy(data.data() + place, &one, sizeof(one), cudaMemcpyHostToDevice));
    GetParam()->launcher(data.span(), out.span(), workspace, nullptr);
    float expected = 0;
    for (const std::size_t place : {std::size_t{2}, std::size_t{3}, (std::size_t{1} << 31) - 1,
                                    std::size_t{1} << 31, n - 7, n - 6, n - 1}) {
        expected += place == 3 || place == std::size_t{1} << 31 || place == n - 6 || place == n - 1 ? 1 : 0;
        float got = -1;
        CUDA_CHECK(cudaMemcpy(&got, out.data() + place, sizeof(got), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got, expected) << "at " << place;
    }
}

// The same on the CPU, where only the last blocks of each kernel run. One element is not 0. The
// last section gets it from the scan of the sums.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (kSections.count(GetParam()->name) == 0)
        GTEST_SKIP() << "its blocks do not write the sums of sections";
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kFirst = std::size_t{1} << 32;  // of the last section
    const std::size_t n = kFirst + 300;
    const course::LargeArray<float> in(n, std::size_t{1} << 16, {1});
    const course::LargeArray<float> out(n, std::size_t{1} << 16, {1});
    in[kFirst - 100] = 3;
    Workspace workspace(n);
    CUDA_CHECK(cudaMemset(workspace.sums(), 0, 2 * (n / 256) * sizeof(float)));
    course::run_few_blocks([&] { GetParam()->launcher(in.span(), out.span(), workspace, nullptr); }, {1});
    if (HasFatalFailure()) return;
    for (const std::size_t i : {kFirst - 100, kFirst - 1, kFirst, n - 1})
        EXPECT_EQ(out[i], 3) << course::large_element(i, n);
}

// The last five tiles of so many that their elements have numbers beyond 32 bits. Each of the 40
// tiles before them has published a prefix of 100.
class Resumed : public course::DeviceTestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(DaySixteen, Resumed, testing::Values("domino", "decoupled_lookback"),
                         [](const auto& test) { return test.param; });

TEST_P(Resumed, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kRun = 5;
    constexpr std::size_t kTiles = (std::size_t{1} << 32) / kTile + kRun;
    constexpr std::size_t kFirst = (kTiles - kRun) * kTile;  // element
    const course::LargeArray<float> in(kTiles * kTile - 3, kRun * kTile, {1});
    const course::LargeArray<float> out(in.span().size(), kRun * kTile, {1});
    const std::vector<float> values = whole_numbers<float>(in.span().size() - kFirst);
    std::ranges::copy(values, &in[kFirst]);

    Workspace workspace(in.span().size());
    const unsigned long long ticket = 1ULL << 32 | (kTiles - kRun);
    CUDA_CHECK(cudaMemcpy(workspace.ticket(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));
    const std::vector<unsigned long long> words(40,
                                                (1ULL << 2 | 2) << 32 | std::bit_cast<std::uint32_t>(100.0f));
    CUDA_CHECK(cudaMemcpy(workspace.words() + kTiles - kRun - words.size(), words.data(),
                          words.size() * sizeof(words[0]), cudaMemcpyHostToDevice));
    const auto& launcher = course::find_version(day16::versions(), GetParam()).launcher;
    course::run_few_blocks([&] { launcher(in.span(), out.span(), workspace, nullptr); }, {0});
    if (HasFatalFailure()) return;
    float expected = 100;
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(out[kFirst + i], expected += values[i])
            << course::large_element(kFirst + i, in.span().size());
}

// The versions are inclusive. Unaligned arrays take the other kernel.
class ExclusiveScan : public course::DeviceTest {};

TEST_F(ExclusiveScan, OfFloats) {
    for (const std::size_t offset : {0, 1}) {
        for (const std::size_t n : kSizes) {
            const std::vector<float> in = whole_numbers<float>(n + offset, n);
            const DeviceBuffer<float> device{std::span<const float>(in)};
            std::vector<double> expected(n);
            std::exclusive_scan(in.begin() + static_cast<std::ptrdiff_t>(offset), in.end(), expected.begin(),
                                0.0);
            GuardedBuffer<float> out(n);
            Workspace workspace(n);
            day16::exclusive_scan<float>(device.span().subspan(offset, n), out.span(), workspace, nullptr);
            const course::VerifyResult result = course::verify(out.to_host(), expected, {.factor = 0});
            EXPECT_TRUE(result.ok()) << n << " from " << offset << ": " << result.message();
            EXPECT_EQ(out.damage(), "");
        }
    }
}

template <class T>
class IntegerTest : public course::NeedsDevice<testing::Test> {};
using Integers = testing::Types<std::int32_t, std::uint32_t>;
TYPED_TEST_SUITE(IntegerTest, Integers);

// Sums wrap; unaligned arrays take the other kernel.
TYPED_TEST(IntegerTest, InclusiveAndExclusive) {
    using T = TypeParam;
    for (const std::size_t offset : {0, 1}) {
        for (const std::size_t n : kSizes) {
            course::Random random(n);
            std::vector<T> in(n + offset);
            for (T& value : in)
                value = static_cast<T>(random.next());
            const DeviceBuffer<T> device{std::span<const T>(in)};
            std::vector<T> inclusive(n);
            std::vector<T> exclusive(n);
            std::uint32_t sum = 0;
            for (std::size_t i = 0; i < n; ++i) {
                exclusive[i] = static_cast<T>(sum);
                sum += static_cast<std::uint32_t>(in[offset + i]);
                inclusive[i] = static_cast<T>(sum);
            }
            GuardedBuffer<T> out(n);
            Workspace workspace(n);
            day16::inclusive_scan<T>(device.span().subspan(offset, n), out.span(), workspace, nullptr);
            EXPECT_TRUE(course::verify_exact(out.to_host(), inclusive).ok()) << n << " from " << offset;
            EXPECT_EQ(out.damage(), "");
            out.spoil();
            day16::exclusive_scan<T>(device.span().subspan(offset, n), out.span(), workspace, nullptr);
            EXPECT_TRUE(course::verify_exact(out.to_host(), exclusive).ok()) << n << " from " << offset;
            EXPECT_EQ(out.damage(), "");
        }
    }
}

}  // namespace
