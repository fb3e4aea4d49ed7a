// Every version against the CPU, exactly.
#include "single_pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day24::Workspace;
using Ints = std::vector<std::int32_t>;

constexpr std::uint64_t kSeed = 24;
constexpr std::size_t kTile = 2048;

// Around a warp and a tile; more than 32 tiles, so that one look at 32 words is not enough; a
// prime.
const std::vector<std::size_t> kSizes = {0,     1, 31, 32, 33, kTile - 1, kTile, kTile + 1, 40 * kTile + 1,
                                         199999};

Ints random_values(std::size_t n, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    Ints values(n);
    for (std::int32_t& value : values)
        value = static_cast<std::int32_t>(random.integer(-1000, 1000));
    return values;
}

// Patterns whose sums of adjacent elements fit into 32 bits.
struct Pattern {
    const char* name;
    std::int32_t (*value)(std::size_t i);
};
const std::vector<Pattern> kPatterns = {
    {"all 1", [](std::size_t) { return 1; }},
    {"all 0", [](std::size_t) { return 0; }},
    {"all -7", [](std::size_t) { return -7; }},
    {"ascending", [](std::size_t i) { return static_cast<std::int32_t>(i % 20000); }},
    {"descending", [](std::size_t i) { return 20000 - static_cast<std::int32_t>(i % 20000); }},
    {"largest, its negative", [](std::size_t i) { return i % 2 == 0 ? INT32_MAX : -INT32_MAX; }},
    {"one element a tile", [](std::size_t i) { return i % kTile == 5 ? 100000 : 0; }}};

Ints made(const Pattern& pattern, std::size_t n) {
    Ints values(n);
    for (std::size_t i = 0; i < n; ++i)
        values[i] = pattern.value(i);
    return values;
}

Ints scanned(const Ints& in) {
    Ints sums(in.size());
    day24::scan_on_cpu(in, sums);
    return sums;
}

course::VerifyResult compare(const GuardedBuffer<std::int32_t>& out, const Ints& expected) {
    course::VerifyResult result = course::verify_exact(out.to_host(), expected);
    result.damage = out.damage();
    return result;
}

class VersionTest : public course::DeviceTestWithParam<const day24::Version*> {
  protected:
    // Three times with the same workspace: a launch must not take words of the one before.
    course::VerifyResult scan(const Ints& in, std::size_t offset = 0, std::size_t out_offset = 0) {
        Ints all(offset, 1 << 20);
        all.insert(all.end(), in.begin(), in.end());
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(all)};
        GuardedBuffer<std::int32_t> out(in.size(), out_offset);
        Workspace workspace(in.size());
        for (int launch = 0; launch < 3; ++launch) {
            out.spoil();
            GetParam()->launcher(device.span().subspan(offset, in.size()), out.span(), workspace, nullptr);
            CUDA_CHECK(cudaDeviceSynchronize());
        }
        return compare(out, scanned(in));
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwentyFour, VersionTest, course::each_of(day24::versions()),
                         course::VersionName());

TEST_P(VersionTest, AllSizes) {
    for (const std::size_t n : kSizes) {
        const course::VerifyResult result = scan(random_values(n));
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

TEST_P(VersionTest, Patterns) {
    for (const Pattern& pattern : kPatterns) {
        const course::VerifyResult result = scan(made(pattern, 5 * kTile + 77));
        EXPECT_TRUE(result.ok()) << pattern.name << ": " << result.message();
    }
}

TEST_P(VersionTest, AnyAlignment) {
    for (const std::size_t offset : {1, 2, 3}) {
        const course::VerifyResult result = scan(random_values(3 * kTile + 5), offset, 4 - offset);
        EXPECT_TRUE(result.ok()) << "in " << offset
                                 << " elements after an aligned address: " << result.message();
    }
}

TEST_P(VersionTest, InPlace) {
    const Ints in = random_values(3 * kTile + 5);
    GuardedBuffer<std::int32_t> data(in.size());
    data.copy_from(in);
    Workspace workspace(in.size());
    GetParam()->launcher(data.span(), data.span(), workspace, nullptr);
    const course::VerifyResult result = compare(data, scanned(in));
    EXPECT_TRUE(result.ok()) << result.message();
}

// Blocks of grid_barrier have several tiles; of the others, blocks start when others have ended.
// Other data in each launch, so that a word of the launch before would show.
TEST_P(VersionTest, MoreTilesThanResidentBlocks) {
    const std::size_t n = course::multiprocessors() * std::size_t{40} * kTile + 7;
    Workspace workspace(n);
    GuardedBuffer<std::int32_t> out(n);
    for (const std::uint64_t seed : {1, 2}) {
        const Ints in = random_values(n, seed);
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        out.spoil();
        GetParam()->launcher(device.span(), out.span(), workspace, nullptr);
        const course::VerifyResult result = compare(out, scanned(in));
        EXPECT_TRUE(result.ok()) << n << " elements, launch " << seed << ": " << result.message();
    }
}

// A shorter scan must not see what a longer one has left in the workspace, nor a longer one what a
// shorter one has.
TEST_P(VersionTest, OneWorkspaceForManyLengths) {
    Workspace workspace(50 * kTile);
    for (const std::size_t n : {50 * kTile, kTile - 1, 34 * kTile + 1, std::size_t{1}, 50 * kTile - 3}) {
        const Ints in = random_values(n, n);
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out(n);
        GetParam()->launcher(device.span(), out.span(), workspace, nullptr);
        const course::VerifyResult result = compare(out, scanned(in));
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

// Any block may be the first to start, and those before it may have to wait until it has ended.
// Here the last few run alone: blocks that draw tickets take the first tiles.
TEST_P(VersionTest, BlocksThatStartFirstTakeTheFirstTiles) {
    if (GetParam()->name == "grid_barrier") GTEST_SKIP() << "all its blocks run at the same time";
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const Ints in = random_values(100 * kTile);
    const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
    DeviceBuffer<std::int32_t> out(in.size());
    Workspace workspace(in.size());
    course::run_few_blocks([&] { GetParam()->launcher(device.span(), out.span(), workspace, nullptr); }, {1},
                           "Of the grid only the last blocks run. Does one wait for a tile that no running "
                           "block has drawn?");
    if (HasFatalFailure()) return;
    Ints got = out.to_host();
    got.resize(kTile);
    Ints expected = scanned(in);
    expected.resize(kTile);
    const course::VerifyResult result = course::verify_exact(got, expected);
    EXPECT_TRUE(result.ok()) << "the first tile, of 100, where only the last blocks run: "
                             << result.message();
}

// Blocks of one scan must not take the tickets of the other, nor wait for its words.
TEST_P(VersionTest, TwoStreamsAtOnceWithTwoWorkspaces) {
    constexpr std::size_t kElements = 20 * kTile + 3;
    struct Scan {
        explicit Scan(std::uint64_t seed) : in(random_values(kElements, seed)) {
            CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        }
        ~Scan() { static_cast<void>(cudaStreamDestroy(stream)); }
        Ints in;
        DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out{kElements};
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
        const course::VerifyResult result = compare(scan->out, scanned(scan->in));
        EXPECT_TRUE(result.ok()) << (scan == &first ? "first" : "second") << ": " << result.message();
    }
}

TEST_P(VersionTest, RunsOnTheGivenStreamAndInGraphs) {
    constexpr std::size_t kElements = 10 * kTile + 1;
    DeviceBuffer<std::int32_t> device = course::zeros<std::int32_t>(kElements);
    GuardedBuffer<std::int32_t> out(kElements);
    Workspace workspace(kElements);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(device.span(), out.span(), workspace, stream); });
    EXPECT_GE(work.nodes(), 1U);
    for (const std::uint64_t seed : {1, 2, 3}) {
        const Ints in = random_values(kElements, seed);
        CUDA_CHECK(cudaMemcpy(device.data(), in.data(), device.bytes(), cudaMemcpyHostToDevice));
        out.spoil();
        work.run();
        const course::VerifyResult result = compare(out, scanned(in));
        EXPECT_TRUE(result.ok()) << "replay " << seed << ": " << result.message();
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(64);
    Workspace workspace(16);
    const auto message = [&](DeviceSpan<std::int32_t> in, DeviceSpan<std::int32_t> out) {
        return course::refusal([&] { GetParam()->launcher(in, out, workspace, nullptr); });
    };
    const DeviceSpan<std::int32_t> all = buffer.span();
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
    if (const std::string reason = course::why_not_so_large(2 * n * sizeof(std::int32_t)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<std::int32_t> data(n);
    CUDA_CHECK(cudaMemset(data.data(), 0, data.bytes()));
    DeviceBuffer<std::int32_t> out(n);
    Workspace workspace(n);
    const std::int32_t one = 1;
    const std::vector<std::size_t> places = {3, std::size_t{1} << 31, n - 6, n - 1};
    for (const std::size_t at : places)
        CUDA_CHECK(cudaMemcpy(data.data() + at, &one, sizeof(one), cudaMemcpyHostToDevice));
    GetParam()->launcher(data.span(), out.span(), workspace, nullptr);
    for (const std::size_t at : {std::size_t{2}, places[0], places[1] - 1, places[1], n - 7, n - 6, n - 1}) {
        std::int32_t got = -1;
        CUDA_CHECK(cudaMemcpy(&got, out.data() + at, sizeof(got), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got, std::ranges::count_if(places, [&](std::size_t p) { return p <= at; })) << "at " << at;
    }
}

// The versions whose blocks draw tickets. `tiles` of a scan, all but the last five, have drawn
// theirs.
constexpr std::size_t kRun = 5;
class Resumed : public course::DeviceTestWithParam<const char*> {
  protected:
    // A status word: state (sum 1, prefix 2) and the value's 32 bits.
    static unsigned long long word(unsigned state, std::int32_t value) {
        return static_cast<unsigned long long>(state) << 32 | static_cast<std::uint32_t>(value);
    }
    static void run_last(DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out,
                         Workspace& workspace) {
        course::run_few_blocks([&] { day24::resume(GetParam(), in, out, workspace, nullptr); }, {0});
    }
};
INSTANTIATE_TEST_SUITE_P(Versions, Resumed, testing::Values("domino", "look_back", "look_back_warp"),
                         [](const auto& version) { return std::string(version.param); });

// Blocks of the stand-in are done nearly in order, and the nearest prefix is never far. So here all
// tiles but the last five have published their sums, and only the first its prefix. The five blocks
// that run draw the other tiles, and walk back over 75 words and more. The sums of two adjacent
// tiles fit into 32 bits; those of two others may not, which a build with sanitizers notices.
TEST_P(Resumed, WalksOverManyTilesWithoutAPrefix) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU runs all blocks of a grid";
    if (GetParam() == std::string("domino")) GTEST_SKIP() << "it has prefixes only";
    // The first prefix is in the first look, the last of it, the first of the second; further away.
    for (const std::size_t tiles : {6UL, 36UL, 37UL, 38UL, 80UL}) {
        Ints in = random_values(tiles * kTile - 100);
        for (std::size_t tile = 0; tile < tiles; ++tile)
            in[tile * kTile] = tile % 2 == 0 ? 2'000'000'000 : -2'000'000'000;
        const Ints expected = scanned(in);
        std::vector<unsigned long long> board = {tiles - kRun};  // the ticket
        for (std::size_t tile = 0; tile < tiles - kRun; ++tile) {
            const auto first = in.begin() + static_cast<std::ptrdiff_t>(tile * kTile);
            board.push_back(word(tile == 0 ? 2 : 1, std::accumulate(first, first + kTile, 0)));
        }
        Workspace workspace(in.size());
        CUDA_CHECK(cudaMemset(workspace.board(), 0, workspace.board_size() * sizeof(board[0])));
        CUDA_CHECK(cudaMemcpy(workspace.board(), board.data(), board.size() * sizeof(board[0]),
                              cudaMemcpyHostToDevice));
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out(in.size());
        run_last(device.span(), out.span(), workspace);
        const Ints got = out.to_host();
        for (std::size_t i = (tiles - kRun) * kTile; i < in.size(); ++i)
            ASSERT_EQ(got[i], expected[i]) << "element " << i << " of " << tiles << " tiles";
    }
}

// Without prefixes all sums are right, too, but each tile walks back to the first.
TEST_P(Resumed, PublishesThePrefixOfEachTile) {
    if (GetParam() == std::string("domino")) GTEST_SKIP() << "its blocks wait for prefixes";
    const Ints in = random_values(kRun * kTile);
    const Ints expected = scanned(in);
    const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
    GuardedBuffer<std::int32_t> out(in.size());
    Workspace workspace(in.size());
    course::find_version(day24::versions(), GetParam())
        .launcher(device.span(), out.span(), workspace, nullptr);
    std::vector<unsigned long long> board(1 + kRun);
    CUDA_CHECK(
        cudaMemcpy(board.data(), workspace.board(), board.size() * sizeof(board[0]), cudaMemcpyDeviceToHost));
    for (std::size_t tile = 0; tile < kRun; ++tile) {
        EXPECT_EQ(board[1 + tile], word(2, expected[(tile + 1) * kTile - 1]))
            << "the last word that tile " << tile
            << " stores has the state of a prefix, 2, in its upper half";
    }
}

// The last five tiles of so many that their elements have numbers beyond 32 bits. The tiles
// before them have published their prefixes, 100.
TEST_P(Resumed, MoreElementsThan32BitsCount) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kTiles = (std::size_t{1} << 32) / kTile + kRun;
    constexpr std::size_t kFirst = (kTiles - kRun) * kTile;  // element
    const course::LargeArray<std::int32_t> in(kTiles * kTile - 3, kRun * kTile, {1});
    const course::LargeArray<std::int32_t> out(in.span().size(), kRun * kTile, {1});
    const Ints values = random_values(in.span().size() - kFirst);
    for (std::size_t i = 0; i < values.size(); ++i)
        in[kFirst + i] = values[i];
    Workspace workspace(in.span().size());
    CUDA_CHECK(cudaMemset(workspace.board(), 0, workspace.board_size() * sizeof(unsigned long long)));
    workspace.board()[0] = kTiles - kRun;
    for (std::size_t tile = kTiles - kRun - 40; tile < kTiles - kRun; ++tile)
        workspace.board()[1 + tile] = word(2, 100);
    workspace.sums()[kTiles - kRun - 1] = 100;
    run_last(in.span(), out.span(), workspace);
    if (HasFatalFailure()) return;
    std::int32_t expected = 100;
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(out[kFirst + i], expected += values[i])
            << course::large_element(kFirst + i, in.span().size());
}

class Filter : public course::DeviceTest {
  protected:
    // Three times with the same workspace.
    static void expect_kept(const Ints& in, std::int32_t threshold, const std::string& what) {
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out(in.size());
        GuardedBuffer<std::uint32_t> count(1);
        Workspace workspace(in.size());
        Ints expected(in.size());
        const std::size_t kept = day24::filter_on_cpu(in, threshold, expected);
        for (int launch = 0; launch < 3; ++launch) {
            out.spoil();
            count.spoil();
            const Ints unwritten = out.to_host();
            std::copy(unwritten.begin() + static_cast<std::ptrdiff_t>(kept), unwritten.end(),
                      expected.begin() + static_cast<std::ptrdiff_t>(kept));
            day24::filter_below(device.span(), threshold, out.span(), count.span(), workspace, nullptr);
            ASSERT_EQ(count.to_host()[0], kept) << what << ": the count of " << in.size() << " elements";
            const course::VerifyResult result = compare(out, expected);
            ASSERT_TRUE(result.ok()) << what << ", " << in.size() << " elements: " << result.message();
        }
        EXPECT_EQ(count.damage(), "") << what;
    }
};

TEST_F(Filter, AllSizes) {
    for (const std::size_t n : kSizes)
        expect_kept(random_values(n), 0, "about half");
}

TEST_F(Filter, NothingEverythingAndLittle) {
    for (const std::size_t n : {kTile - 1, 5 * kTile + 77}) {
        for (const std::int32_t threshold : {-1001, -1000, -980, 980, 1000, 1001})
            expect_kept(random_values(n), threshold, "below " + std::to_string(threshold));
    }
}

// Elements beyond the end are loaded as 0, which is below the threshold.
TEST_F(Filter, KeepsNothingFromBeyondTheEnd) {
    expect_kept(Ints(2 * kTile + 3, 5), 1, "nothing");
    expect_kept(Ints(2 * kTile + 3, 0), 1, "everything");
}

TEST_F(Filter, MoreTilesThanResidentBlocks) {
    expect_kept(random_values(course::multiprocessors() * std::size_t{20} * kTile + 7), 300, "below 300");
}

TEST_F(Filter, BlocksThatStartFirstTakeTheFirstTiles) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const Ints in = random_values(100 * kTile);
    const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
    DeviceBuffer<std::int32_t> out(in.size());
    DeviceBuffer<std::uint32_t> count(1);
    Workspace workspace(in.size());
    course::run_few_blocks(
        [&] { day24::filter_below(device.span(), 1001, out.span(), count.span(), workspace, nullptr); }, {1},
        "Of the grid only the last blocks run. Does one wait for a tile that no running block has drawn?");
    if (HasFatalFailure()) return;
    Ints got = out.to_host();
    got.resize(kTile);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), in.begin())) << "the first tile, of which all is kept";
}

TEST_F(Filter, RunsOnTheGivenStreamAndInGraphs) {
    for (const std::size_t n : {std::size_t{0}, 10 * kTile + 1}) {
        DeviceBuffer<std::int32_t> device = course::zeros<std::int32_t>(n);
        GuardedBuffer<std::int32_t> out(n);
        GuardedBuffer<std::uint32_t> count(1);
        Workspace workspace(n);
        const course::CapturedWork work([&](cudaStream_t stream) {
            day24::filter_below(device.span(), 0, out.span(), count.span(), workspace, stream);
        });
        EXPECT_GE(work.nodes(), 1U) << n << " elements";
        for (const std::uint64_t seed : {1, 2, 3}) {
            const Ints in = random_values(n, seed);
            CUDA_CHECK(cudaMemcpy(device.data(), in.data(), device.bytes(), cudaMemcpyHostToDevice));
            count.spoil();
            work.run();
            Ints expected(n);
            expected.resize(day24::filter_on_cpu(in, 0, expected));
            ASSERT_EQ(count.to_host()[0], expected.size()) << "replay " << seed << " of " << n << " elements";
            Ints got = out.to_host();
            got.resize(expected.size());
            EXPECT_EQ(got, expected) << "replay " << seed;
        }
    }
}

// No element is accessed, so none has to exist.
TEST_F(Filter, RefusesMoreElementsThanACountHas) {
    DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(2);
    DeviceBuffer<std::uint32_t> count(1);
    Workspace workspace(1);
    const auto all = DeviceSpan<std::int32_t>::from_device_pointer(buffer.data(), std::size_t{1} << 31);
    EXPECT_EQ(course::refusal([&] { day24::filter_below(all, 0, all, count.span(), workspace, nullptr); }),
              "filter: in has 2147483648 elements; expected at most 2^31 - 1");
}

TEST_F(Filter, RefusesBadArguments) {
    DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(64);
    DeviceBuffer<std::uint32_t> counts = course::zeros<std::uint32_t>(2);
    Workspace workspace(16);
    const auto message = [&](DeviceSpan<std::int32_t> in, DeviceSpan<std::int32_t> out, std::size_t count) {
        return course::refusal(
            [&] { day24::filter_below(in, 0, out, counts.span().subspan(0, count), workspace, nullptr); });
    };
    const DeviceSpan<std::int32_t> all = buffer.span();
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 7), 1),
              "filter: out has 7 elements; expected room for all elements of in, 8");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 8), 2), "filter: count has 2 elements; expected 1");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(0, 8), 1),
              "filter: out overlaps in; expected no element in common");
    const auto in_out = DeviceSpan<std::uint32_t>::from_device_pointer(
        reinterpret_cast<std::uint32_t*>(buffer.data() + 15), 1);
    EXPECT_EQ(course::refusal([&] {
                  day24::filter_below(all.subspan(16, 8), 0, all.subspan(8, 8), in_out, workspace, nullptr);
              }),
              "filter: count overlaps in or out; expected memory of its own");
    EXPECT_EQ(message(all.subspan(0, 17), all.subspan(20, 17), 1),
              "filter: workspace has capacity 16; expected at least the length of in, 17");
    EXPECT_EQ(message(all.subspan(0, 16), all.subspan(16, 16), 1), "");
}

TEST(Reference, AllCoresAgreeWithOneLoop) {
    const Ints in = random_values(199999);
    Ints sums(in.size());
    day24::scan_on_all_cores(in, sums);
    EXPECT_EQ(sums, scanned(in));
}

}  // namespace
