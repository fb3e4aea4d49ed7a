// Every version against the CPU, key by key. Keys alone do not show which of two equal ones came
// first; the values of pairs do.
#include "merge.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "beyond/bulk_merge.hpp"
#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/device/tensor_core_support.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day18::Key;
using day18::Operation;
using day18::Output;
using day18::Sorted;
using day18::Value;
using day18::Workspace;

constexpr std::uint64_t kSeed = 18;

// Lengths of a and b. Their sums lie around a warp, a thread's share (7, 8, 15, 16), a tile (896,
// 1,024, 1,920, 3,840, 7,680, 11,776) and a block's share (4,096, 8,192); one array may be empty,
// or much longer.
const std::vector<std::pair<std::size_t, std::size_t>> kSizes = {
    {0, 0},       {0, 1},       {1, 0},       {1, 1},     {7, 1},       {8, 9},      {16, 15},
    {16, 16},     {1, 32},      {0, 513},     {513, 0},   {400, 495},   {448, 448},  {897, 0},
    {512, 511},   {512, 512},   {3, 1022},    {960, 959}, {960, 960},   {1920, 1},   {1919, 1921},
    {1920, 1920}, {0, 3841},    {2048, 2048}, {1, 8191},  {4096, 4096}, {8000, 193}, {4321, 7},
    {5, 20011},   {20011, 5},   {0, 17000},   {17000, 0}, {3840, 3841}, {7680, 0},   {5760, 5761},
    {5888, 5887}, {5888, 5888}, {5888, 5889}};

enum class Pattern { kRandom, kAllEqual, kAFirst, kBFirst, kAlternating, kFewKeys, kExtremes, kBlocks };
constexpr Pattern kPatterns[] = {Pattern::kRandom,   Pattern::kAllEqual,    Pattern::kAFirst,
                                 Pattern::kBFirst,   Pattern::kAlternating, Pattern::kFewKeys,
                                 Pattern::kExtremes, Pattern::kBlocks};
constexpr const char* kNames[] = {"random",      "all equal", "all of a first", "all of b first",
                                  "alternating", "few keys",  "extremes",       "blocks of a and of b"};

std::vector<Key> make_keys(std::size_t n, Pattern pattern, bool is_b, std::uint64_t seed = kSeed) {
    // Ascending, so all keys that are made from them in this order are, too.
    const std::vector<std::uint32_t> numbers = course::sorted_numbers(n, 2 * seed + (is_b ? 1 : 0));
    std::vector<Key> keys(n);
    course::for_each_index(n, [&](std::size_t i) {
        const auto place = static_cast<Key>(i);
        // 0 to count - 1, each equally likely.
        const auto below = [&](std::uint64_t count) { return static_cast<Key>(numbers[i] * count >> 32); };
        switch (pattern) {
            case Pattern::kRandom:
                keys[i] = static_cast<Key>(numbers[i] ^ 0x80000000U);
                break;
            case Pattern::kAllEqual:
                keys[i] = 7;
                break;
            case Pattern::kAFirst:
                keys[i] = below(1000) + (is_b ? 1000 : -1000);
                break;
            case Pattern::kBFirst:
                keys[i] = below(1000) + (is_b ? -1000 : 1000);
                break;
            case Pattern::kAlternating:
                keys[i] = 2 * place + (is_b ? 1 : 0);
                break;
            case Pattern::kFewKeys:
                keys[i] = 3 + below(5);
                break;
            // Also: whole arrays of the largest key, which may not pass for the end of an array.
            case Pattern::kExtremes:
                keys[i] = below(16) == 0 ? INT32_MIN : below(16) == 1 ? 0 : INT32_MAX;
                break;
            // 100 of a, 100 of b, ...
            case Pattern::kBlocks:
                keys[i] = place / 100 * 1000 + (is_b ? 500 : 0) + place % 100;
                break;
        }
    });
    return keys;
}

// What values the elements of an array have: first, first + 1, ...
std::vector<Value> make_values(std::size_t n, std::size_t first) {
    std::vector<Value> values(n);
    std::iota(values.begin(), values.end(), static_cast<Value>(first));
    return values;
}

// An array. With elements before it there are some after it, too, which would come first in the
// result; without, it ends where its memory ends.
struct OnDevice {
    OnDevice(const std::vector<std::int32_t>& array, std::size_t elements_before)
        : offset(elements_before), size(array.size()) {
        host.assign(offset + size + (offset > 0 ? 8 : 0), INT32_MIN);
        std::copy(array.begin(), array.end(), host.begin() + static_cast<std::ptrdiff_t>(offset));
        device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(host));
    }
    DeviceSpan<const std::int32_t> span() const { return device.span().subspan(offset, size); }
    bool is_unchanged() const { return device.to_host() == host; }

    std::size_t offset;
    std::size_t size;
    std::vector<std::int32_t> host;
    DeviceBuffer<std::int32_t> device{0};
};

struct Offsets {
    std::size_t a = 0;
    std::size_t b = 0;
    std::size_t out = 0;
    std::size_t a_values = 0;
    std::size_t b_values = 0;
    std::size_t out_values = 0;
};

// What is merged, and what comes out of it.
struct Problem {
    Problem(std::vector<Key> a_keys, std::vector<Key> b_keys, bool has_values)
        : a(std::move(a_keys)),
          b(std::move(b_keys)),
          a_values(make_values(has_values ? a.size() : 0, 0)),
          b_values(make_values(has_values ? b.size() : 0, a.size())),
          expected(a.size() + b.size()),
          expected_values(has_values ? expected.size() : 0) {
        day18::merge_on_cpu({a, a_values}, {b, b_values}, {expected, expected_values});
    }
    std::vector<Key> a, b;
    std::vector<Value> a_values, b_values;
    std::vector<Key> expected;
    std::vector<Value> expected_values;
};

class VersionTest : public course::DeviceTestWithParam<const day18::Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day18::Version*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run(1); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Merges a and b and compares. "": all is right.
    std::string merge(const std::vector<Key>& a, const std::vector<Key>& b, const Offsets& at = {}) {
        return merge(Problem(a, b, has_values()), at);
    }

    std::string merge(const Problem& problem, const Offsets& at = {}) {
        const auto& [a, b, a_values, b_values, expected, expected_values] = problem;
        const std::size_t total = a.size() + b.size();
        const OnDevice a_device(a, at.a);
        const OnDevice b_device(b, at.b);
        const OnDevice a_values_device(a_values, at.a_values);
        const OnDevice b_values_device(b_values, at.b_values);
        GuardedBuffer<Key> out(total, at.out);
        GuardedBuffer<Value> out_values(expected_values.size(), at.out_values);
        GetParam()->launcher.launch({a_device.span(), a_values_device.span()},
                                    {b_device.span(), b_values_device.span()},
                                    {out.span(), out_values.span()}, workspace_for(total), nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        if (!a_device.is_unchanged() || !b_device.is_unchanged() || !a_values_device.is_unchanged() ||
            !b_values_device.is_unchanged())
            return "an input was changed";
        course::VerifyResult keys = course::verify_exact(out.to_host(), expected);
        keys.damage = out.damage() + out_values.damage();
        if (!keys.ok()) return keys.message();
        const course::VerifyResult values = course::verify_exact(out_values.to_host(), expected_values);
        return values.ok() ? "" : "values: " + values.message();
    }

    // A reason not to merge so many elements, or "".
    static std::string cannot_merge(std::size_t elements) { return GetParam()->cannot_run(elements); }

    static bool has_values() { return GetParam()->launcher.operation == Operation::kPairs; }

  private:
    // One for all merges of a test.
    Workspace& workspace_for(std::size_t n) {
        if (!workspace_ || workspace_->capacity() < n) workspace_.emplace(std::max<std::size_t>(n, 50000));
        return *workspace_;
    }

    std::optional<Workspace> workspace_;
};

INSTANTIATE_TEST_SUITE_P(DayEighteen, VersionTest, course::each_of(day18::versions()), course::VersionName());

class OnAnotherGpu : public course::DeviceTest {};

TEST_F(OnAnotherGpu, AVersionIsRefusedWithItsReason) {
    for (const day18::Version& version : day18::versions()) {
        const std::string reason = version.cannot_run(16);
        if (reason.empty()) continue;
        DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(128);
        Workspace workspace(16);
        const bool has_pairs = version.launcher.operation == Operation::kPairs;
        const auto keys = [&](std::size_t offset, std::size_t size) {
            return buffer.span().subspan(offset, size);
        };
        const auto values = [&](std::size_t offset, std::size_t size) {
            return buffer.span().subspan(64 + offset, has_pairs ? size : 0);
        };
        EXPECT_EQ(course::refusal([&] {
                      version.launcher.launch({keys(0, 8), values(0, 8)}, {keys(8, 8), values(8, 8)},
                                              {keys(16, 16), values(16, 16)}, workspace, nullptr);
                  }),
                  "merge: this version " + reason);
    }
}

TEST_P(VersionTest, AllSizesAndPatterns) {
    for (const auto& [m, n] : kSizes) {
        for (const Pattern pattern : kPatterns) {
            // Of the longer ones these are enough.
            const bool is_enough = pattern == Pattern::kRandom || pattern == Pattern::kFewKeys;
            if (m + n > 2000 && !is_enough) continue;
            EXPECT_EQ(merge(make_keys(m, pattern, false), make_keys(n, pattern, true)), "")
                << "m = " << m << ", n = " << n << ", " << kNames[static_cast<int>(pattern)];
        }
    }
}

TEST_P(VersionTest, RandomSizesAndAlignments) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 24; ++round) {
        const std::size_t m = random.below(round % 3 == 0 ? 100 : 9000);
        const std::size_t n = random.below(round % 3 == 1 ? 100 : 9000);
        const Offsets at{.a = random.below(5),
                         .b = random.below(5),
                         .out = random.below(40),
                         .a_values = random.below(5),
                         .b_values = random.below(5),
                         .out_values = random.below(5)};
        const Pattern pattern = kPatterns[random.below(static_cast<std::uint32_t>(std::size(kPatterns)))];
        EXPECT_EQ(merge(make_keys(m, pattern, false, round), make_keys(n, pattern, true, round), at), "")
            << "m = " << m << ", n = " << n << ", " << kNames[static_cast<int>(pattern)] << "; a " << at.a
            << ", b " << at.b << ", out " << at.out << ", values of a " << at.a_values << ", of b "
            << at.b_values << ", of out " << at.out_values << " elements after an aligned address";
    }
}

// Bulk copies need all arrays aligned. Several tiles, so that one is copied.
TEST_P(VersionTest, OneArrayIsNotAligned) {
    const std::vector<Key> a = make_keys(9000, Pattern::kFewKeys, false);
    const std::vector<Key> b = make_keys(8000, Pattern::kFewKeys, true);
    for (std::size_t Offsets::*const array : {&Offsets::a, &Offsets::b, &Offsets::out, &Offsets::a_values,
                                              &Offsets::b_values, &Offsets::out_values}) {
        Offsets at;
        at.*array = 1;
        EXPECT_EQ(merge(a, b, at), "")
            << at.a << at.b << at.out << at.a_values << at.b_values << at.out_values;
    }
}

// Each block of a persistent version has several tiles, of bulk_merge more than the 8 whose splits
// are searched at once. Few keys: most elements have equals.
TEST_P(VersionTest, MoreTilesThanResidentBlocks) {
    const std::size_t n = course::multiprocessors() * std::size_t{17} * 5760 + 7;
    if (const std::string reason = cannot_merge(2 * n); !reason.empty()) GTEST_SKIP() << reason;
    // Of millions: made once, not for each version.
    static std::map<std::pair<Pattern, bool>, Problem> problems;
    for (const Pattern pattern : {Pattern::kRandom, Pattern::kFewKeys, Pattern::kAFirst}) {
        const std::pair which(pattern, has_values());
        if (!problems.contains(which))
            problems.emplace(
                which, Problem(make_keys(n, pattern, false), make_keys(n, pattern, true), has_values()));
        EXPECT_EQ(merge(problems.at(which)), "")
            << 2 * n << " elements, " << kNames[static_cast<int>(pattern)];
    }
}

// The second time so many elements that blocks draw tiles.
TEST_P(VersionTest, RunsOnTheGivenStreamAndInGraphs) {
    constexpr std::size_t kElements = 9000;
    for (const std::size_t others : {kElements, course::multiprocessors() * std::size_t{34} * 5760}) {
        const std::size_t total = kElements + others;
        if (!cannot_merge(total).empty()) continue;
        DeviceBuffer<Key> a = course::zeros<Key>(kElements);
        const DeviceBuffer<Key> b = course::zeros<Key>(others);
        const DeviceBuffer<Value> a_values = course::zeros<Value>(has_values() ? kElements : 0);
        const DeviceBuffer<Value> b_values = course::zeros<Value>(has_values() ? others : 0);
        GuardedBuffer<Key> out(total);
        GuardedBuffer<Value> out_values(has_values() ? total : 0);
        Workspace workspace(total);
        const course::CapturedWork work([&](cudaStream_t stream) {
            GetParam()->launcher.launch({a.span(), a_values.span()}, {b.span(), b_values.span()},
                                        {out.span(), out_values.span()}, workspace, stream);
        });
        EXPECT_GE(work.nodes(), 1U);
        for (const std::uint64_t seed : {1, 2}) {
            const std::vector<Key> keys = make_keys(kElements, Pattern::kRandom, false, seed);
            CUDA_CHECK(cudaMemcpy(a.data(), keys.data(), a.bytes(), cudaMemcpyHostToDevice));
            std::vector<Key> expected(total);
            day18::merge_on_cpu({keys}, {std::vector<Key>(others)}, {expected});
            out.spoil();
            work.run();
            EXPECT_EQ(course::verify_exact(out.to_host(), expected).message(),
                      course::verify_exact(expected, expected).message())
                << others << " elements of b, replay " << seed;
        }
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(128);
    Workspace workspace(16);
    const DeviceSpan<std::int32_t> all = buffer.span();
    const auto part = [&](std::size_t offset, std::size_t size) { return all.subspan(offset, size); };
    const auto values = [&](std::size_t offset, std::size_t size) {
        return all.subspan(64 + offset, has_values() ? size : 0);
    };
    const auto message = [&](const Sorted& a, const Sorted& b, const Output& out) {
        return course::refusal([&] { GetParam()->launcher.launch(a, b, out, workspace, nullptr); });
    };
    const Sorted a{part(0, 8), values(0, 8)};
    const Sorted b{part(8, 7), values(8, 7)};
    EXPECT_EQ(message(a, b, {part(16, 15), values(16, 15)}), "");
    EXPECT_EQ(message(a, b, {part(16, 14), values(16, 14)}),
              "merge: out has 14 keys; expected as many as a and b together, 15");
    EXPECT_EQ(message(a, b, {part(16, 16), values(16, 16)}),
              "merge: out has 16 keys; expected as many as a and b together, 15");
    EXPECT_EQ(message(a, {part(8, 9), values(8, 9)}, {part(17, 17), values(17, 17)}),
              "merge: workspace has capacity 16; expected at least the length of out, 17");
    EXPECT_EQ(message({part(16, 8), values(0, 8)}, b, {part(23, 15), values(16, 15)}),
              "merge: the keys of out overlap a; expected no element in common");
    EXPECT_EQ(message(a, {part(16, 7), values(8, 7)}, {part(22, 15), values(16, 15)}),
              "merge: the keys of out overlap b; expected no element in common");
    if (has_values()) {
        EXPECT_EQ(message({part(0, 8), values(0, 7)}, b, {part(16, 15), values(16, 15)}),
                  "merge: a has 7 values; expected one for each key, 8");
        EXPECT_EQ(message(a, {part(8, 7), {}}, {part(16, 15), values(16, 15)}),
                  "merge: b has 0 values; expected one for each key, 7");
        EXPECT_EQ(message(a, b, {part(16, 15), values(16, 16)}),
                  "merge: out has 16 values; expected one for each key, 15");
        EXPECT_EQ(message(a, b, {part(16, 15), values(7, 15)}),
                  "merge: the values of out overlap a; expected no element in common");
        EXPECT_EQ(message(a, b, {part(16, 15), values(14, 15)}),
                  "merge: the values of out overlap b; expected no element in common");
        EXPECT_EQ(message(a, b, {part(16, 15), part(30, 15)}),
                  "merge: the keys of out overlap its values; expected no element in common");
    } else {
        EXPECT_EQ(message({part(0, 8), part(64, 8)}, b, {part(16, 15), {}}),
                  "merge: a has 8 values; expected none, as keys are merged alone, 0");
    }
}

TEST_P(VersionTest, RefusesMoreThanItCanMerge) {
    constexpr std::size_t kMany = (std::size_t{1} << 17) + 1;
    const std::string reason = cannot_merge(kMany);
    if (reason.empty()) GTEST_SKIP() << GetParam()->name << " merges any number of elements";
    EXPECT_EQ(cannot_merge(kMany - 1), "");
    const DeviceBuffer<Key> a = course::zeros<Key>(kMany);
    DeviceBuffer<Key> out(kMany);
    Workspace workspace(kMany);
    EXPECT_EQ(course::refusal([&] {
                  GetParam()->launcher.launch({a.span(), {}}, {}, {out.span(), {}}, workspace, nullptr);
              }),
              "merge: out has 131073 keys; " + reason);
}

// On the CPU: a few of the blocks. b's elements come first, so each element of a moves on by as
// many places. A block that computes splits has those of many tiles: hence the reach.
TEST_P(VersionTest, IndicesOf64Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kReach = std::size_t{1} << 21;
    const std::size_t m = (std::size_t{1} << 32) + 5;
    if (const std::string reason = cannot_merge(m); !reason.empty()) GTEST_SKIP() << reason;
    const std::vector<Key> b(100, INT32_MIN);
    const course::LargeArray<Key> a(m, kReach);
    const course::LargeArray<Value> a_values(m, kReach);
    const course::LargeArray<Key> out(m + b.size(), kReach);
    const course::LargeArray<Value> out_values(m + b.size(), kReach);
    for (std::size_t p = 0; p < course::kLargePlaces.size(); ++p) {
        std::iota(a.part(p).begin(), a.part(p).end(), static_cast<Key>(p) * 10000000);
        std::iota(a_values.part(p).begin(), a_values.part(p).end(), static_cast<Value>(p) * 20000000);
    }
    const DeviceBuffer<Key> b_device{std::span<const Key>(b)};
    Workspace workspace(m + b.size());
    course::run_few_blocks([&] {
        if (has_values()) {
            GetParam()->launcher.launch({a.span(), a_values.span()}, {b_device.span(), b_device.span()},
                                        {out.span(), out_values.span()}, workspace, nullptr);
        } else {
            GetParam()->launcher.launch({a.span(), {}}, {b_device.span(), {}}, {out.span(), {}}, workspace,
                                        nullptr);
        }
    });
    EXPECT_EQ(out[b.size() - 1], INT32_MIN);
    for (const std::size_t i : {std::size_t{0}, std::size_t{1000}, m / 2 - 10, m / 2 + 10, m - 1}) {
        EXPECT_EQ(out[i + b.size()], a[i]) << course::large_element(i, m);
        if (!has_values()) continue;
        EXPECT_EQ(out_values[i + b.size()], a_values[i]) << course::large_element(i, m);
    }
}

// Keys that have a second address, each at the start of a page. Writes to one address are read at
// the other.
class KeysWithTwoAddresses {
  public:
    explicit KeysWithTwoAddresses(std::size_t size) : bytes_(size * sizeof(Key)), file_(std::tmpfile()) {
        if (file_ == nullptr || ftruncate(fileno(file_), static_cast<off_t>(bytes_)) != 0)
            throw std::runtime_error("no file for keys with two addresses");
        for (Key*& keys : at_) {
            void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file_), 0);
            if (memory == MAP_FAILED) throw std::bad_alloc();
            keys = static_cast<Key*>(memory);
            CUDA_CHECK(cudaHostRegister(keys, bytes_, cudaHostRegisterDefault));
        }
    }
    ~KeysWithTwoAddresses() {
        for (Key* const keys : at_) {
            static_cast<void>(cudaHostUnregister(keys));
            munmap(keys, bytes_);
        }
        static_cast<void>(std::fclose(file_));
    }
    KeysWithTwoAddresses(const KeysWithTwoAddresses&) = delete;
    KeysWithTwoAddresses& operator=(const KeysWithTwoAddresses&) = delete;

    std::span<Key> at(int address) const { return {at_[address], bytes_ / sizeof(Key)}; }
    DeviceSpan<Key> on_device(int address) const {
        return DeviceSpan<Key>::from_device_pointer(at_[address], bytes_ / sizeof(Key));
    }

  private:
    std::size_t bytes_;
    std::FILE* file_;
    std::array<Key*, 2> at_{};
};

// The first tile takes all of a to its buffer, and its result is written over a. What it has not
// used is only in the buffer then.
TEST(CircularBuffer, LoadsNoKeyASecondTime) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU may keep either copy in a cache";
    constexpr std::size_t kTile = 1024;
    const std::vector<Key> a = make_keys(kTile, Pattern::kRandom, false);
    const std::vector<Key> b = make_keys(4 * kTile, Pattern::kRandom, true);
    std::vector<Key> expected(a.size() + b.size());
    day18::merge_on_cpu({a, {}}, {b, {}}, {expected, {}});
    const KeysWithTwoAddresses keys(expected.size());
    std::ranges::copy(a, keys.at(0).begin());
    const DeviceBuffer<Key> b_device{std::span<const Key>(b)};
    Workspace workspace(expected.size());
    const auto& version = course::find_version(day18::versions(), "circular_buffer").launcher;
    version.launch({keys.on_device(0).subspan(0, kTile), {}}, {b_device.span(), {}}, {keys.on_device(1), {}},
                   workspace, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto out = keys.at(1);
    const course::VerifyResult result =
        course::verify_exact(std::vector<Key>(out.begin(), out.end()), expected);
    EXPECT_TRUE(result.ok())
        << result.message()
        << "out is written over a, of which the first tile has loaded all keys. Is one loaded again that "
           "the buffer still has?";
}

// 34 GB, with values 69: two halves of equal keys. All of a comes first, in the order it has.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t m = (std::size_t{1} << 31) + 3;
    const std::size_t n = (std::size_t{1} << 31) + 4;
    if (const std::string reason = cannot_merge(m + n); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t arrays = has_values() ? 4 : 2;
    if (const std::string reason = course::why_not_so_large(arrays * (m + n) * sizeof(Key)); !reason.empty())
        GTEST_SKIP() << reason;
    const auto filled = [](std::size_t size, int byte) {
        DeviceBuffer<Key> buffer(size);
        CUDA_CHECK(cudaMemset(buffer.data(), byte, buffer.bytes()));
        return buffer;
    };
    const auto set = [](DeviceBuffer<Key>& buffer, std::size_t i, Key value) {
        CUDA_CHECK(cudaMemcpy(buffer.data() + i, &value, sizeof(value), cudaMemcpyHostToDevice));
    };
    const auto get = [](DeviceBuffer<Key>& buffer, std::size_t i) {
        Key value = 0;
        CUDA_CHECK(cudaMemcpy(&value, buffer.data() + i, sizeof(value), cudaMemcpyDeviceToHost));
        return value;
    };
    DeviceBuffer<Key> a = filled(m, 1);
    DeviceBuffer<Key> b = filled(n, 1);
    DeviceBuffer<Key> out = filled(m + n, 0xff);
    set(b, 0, -5);
    set(b, n - 1, INT32_MAX);
    set(a, m - 1, INT32_MAX - 1);
    DeviceBuffer<Value> a_values = filled(has_values() ? m : 0, 2);
    DeviceBuffer<Value> b_values = filled(has_values() ? n : 0, 3);
    DeviceBuffer<Value> out_values = filled(has_values() ? m + n : 0, 0xff);
    Workspace workspace(m + n);
    GetParam()->launcher.launch({a.span(), a_values.span()}, {b.span(), b_values.span()},
                                {out.span(), out_values.span()}, workspace, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_EQ(get(out, 0), -5);
    for (const std::size_t i : {std::size_t{1}, m - 1, m, m + 1, m + n - 3})
        EXPECT_EQ(get(out, i), 0x01010101) << "at " << i;
    EXPECT_EQ(get(out, m + n - 2), INT32_MAX - 1);
    EXPECT_EQ(get(out, m + n - 1), INT32_MAX);
    if (!has_values()) return;
    EXPECT_EQ(get(out_values, 0), 0x03030303);
    EXPECT_EQ(get(out_values, m - 1), 0x02020202);
    EXPECT_EQ(get(out_values, m), 0x03030303);
    EXPECT_EQ(get(out_values, m + n - 2), 0x02020202);
}

using MergeMany = course::DeviceTest;

// Few keys: the values show whether equal ones come in the order of the arrays.
TEST_F(MergeMany, AnyNumberOfArrays) {
    const std::vector<std::size_t> lengths = {500, 0, 1, 2000, 33, 700, 1900, 4, 0, 0, 17, 1024, 3};
    for (const std::size_t count : {0, 1, 2, 3, 4, 5, 8, 9, 13}) {
        std::vector<Key> keys;
        std::vector<OnDevice> keys_on_device;
        std::vector<OnDevice> values_on_device;
        for (std::size_t r = 0; r < count; ++r) {
            const std::vector<Key> run = make_keys(lengths[r], Pattern::kFewKeys, false, r);
            keys_on_device.emplace_back(run, r % 3);
            values_on_device.emplace_back(make_values(run.size(), keys.size()), r % 4);
            keys.insert(keys.end(), run.begin(), run.end());
        }
        std::vector<Sorted> runs;
        std::vector<Sorted> runs_of_keys;
        for (std::size_t r = 0; r < count; ++r) {
            runs.push_back({keys_on_device[r].span(), values_on_device[r].span()});
            runs_of_keys.push_back({keys_on_device[r].span(), {}});
        }
        std::vector<Value> expected_values = make_values(keys.size(), 0);
        std::ranges::stable_sort(expected_values, {}, [&](Value value) { return keys[value]; });
        std::ranges::sort(keys);

        GuardedBuffer<Key> out(keys.size());
        GuardedBuffer<Value> out_values(keys.size());
        GuardedBuffer<Key> spare(keys.size());
        GuardedBuffer<Value> spare_values(keys.size());
        Workspace workspace(keys.size());
        day18::merge_many(Operation::kPairs, runs, {out.span(), out_values.span()},
                          {spare.span(), spare_values.span()}, workspace, nullptr);
        EXPECT_EQ(out.to_host(), keys) << count << " arrays";
        EXPECT_EQ(out_values.to_host(), expected_values) << count << " arrays";
        out.spoil();
        day18::merge_many(Operation::kKeys, runs_of_keys, {out.span(), {}}, {spare.span(), {}}, workspace,
                          nullptr);
        EXPECT_EQ(out.to_host(), keys) << count << " arrays, keys alone";
        EXPECT_EQ(out.damage() + out_values.damage() + spare.damage() + spare_values.damage(), "");
    }
}

TEST_F(MergeMany, RunsOnTheGivenStream) {
    const std::vector<Key> keys = make_keys(3000, Pattern::kRandom, false);
    const OnDevice run(keys, 0);
    const std::vector<Sorted> runs(3, {run.span(), {}});
    std::vector<Key> expected;
    for (const Key key : keys)
        expected.insert(expected.end(), 3, key);
    GuardedBuffer<Key> out(expected.size());
    GuardedBuffer<Key> spare(expected.size());
    Workspace workspace(expected.size());
    const course::CapturedWork work([&](cudaStream_t stream) {
        day18::merge_many(Operation::kKeys, runs, {out.span(), {}}, {spare.span(), {}}, workspace, stream);
    });
    // Nothing may have run while it was captured, on another stream.
    CUDA_CHECK(cudaDeviceSynchronize());
    out.spoil();
    spare.spoil();
    work.run();
    EXPECT_EQ(out.to_host(), expected);
}

TEST_F(MergeMany, RefusesBadArguments) {
    DeviceBuffer<Key> buffer = course::zeros<Key>(64);
    const DeviceSpan<Key> all = buffer.span();
    Workspace workspace(16);
    const std::vector<Sorted> runs = {{all.subspan(0, 3), {}}, {all.subspan(3, 4), {}}};
    const auto message = [&](DeviceSpan<Key> out, DeviceSpan<Key> spare) {
        return course::refusal([&] {
            day18::merge_many(Operation::kKeys, runs, {out, {}}, {spare, {}}, workspace, nullptr);
        });
    };
    EXPECT_EQ(message(all.subspan(7, 7), all.subspan(14, 7)), "");
    EXPECT_EQ(message(all.subspan(7, 8), all.subspan(15, 7)),
              "merge_many: out or spare has 8 keys; expected as many as all runs together, 7");
    EXPECT_EQ(message(all.subspan(7, 7), all.subspan(14, 6)),
              "merge_many: out or spare has 6 keys; expected as many as all runs together, 7");
    EXPECT_EQ(message(all.subspan(7, 7), all.subspan(13, 7)),
              "merge_many: out overlaps spare; expected no element in common");
    EXPECT_EQ(message(all.subspan(6, 7), all.subspan(14, 7)),
              "merge_many: run 1 overlaps out or spare; expected no element in common");
    EXPECT_EQ(message(all.subspan(14, 7), all.subspan(2, 7)),
              "merge_many: run 0 overlaps out or spare; expected no element in common");
    Workspace small(6);
    EXPECT_EQ(course::refusal([&] {
                  day18::merge_many(Operation::kKeys, runs, {all.subspan(7, 7), {}}, {all.subspan(14, 7), {}},
                                    small, nullptr);
              }),
              "merge_many: workspace has capacity 6; expected at least the length of out, 7");
}

using WorkspaceTest = course::DeviceTest;

TEST_F(WorkspaceTest, RefusesMoreThanItsCapacityMayBe) {
    EXPECT_EQ(course::refusal([] { Workspace workspace((std::size_t{1} << 38) + 1); }),
              "Workspace: capacity is 274877906945; expected at most 2^38");
}

TEST(OnTheCpu, KnownResults) {
    const std::vector<Key> a = {1, 3, 3, 8};
    const std::vector<Key> b = {-2, 3, 8};
    const std::vector<Value> a_values = {10, 11, 12, 13};
    const std::vector<Value> b_values = {20, 21, 22};
    std::vector<Key> out(7);
    std::vector<Value> out_values(7);
    day18::merge_on_cpu({a, a_values}, {b, b_values}, {out, out_values});
    EXPECT_EQ(out, (std::vector{-2, 1, 3, 3, 3, 8, 8}));
    EXPECT_EQ(out_values, (std::vector{20, 10, 11, 12, 21, 13, 22}));
    EXPECT_EQ(course::refusal([&] { day18::merge_on_cpu({a}, {a}, {out}); }),
              "merge_on_cpu: out has 7 keys; expected as many as a and b together, 8");
    EXPECT_EQ(course::refusal([&] {
                  day18::merge_on_cpu({a}, {b, b_values}, {out});
              }),
              "merge_on_cpu: a, b and out have 0, 3 and 0 values; expected as many as keys, or none");
}

// What the sequential merge takes from `a` for its first k elements, for k = 0 to m + n.
std::vector<std::size_t> co_ranks_on_cpu(const std::vector<Key>& a, const std::vector<Key>& b) {
    std::vector<std::size_t> ranks{0};
    for (std::size_t i = 0, j = 0; i + j < a.size() + b.size(); ranks.push_back(i)) {
        const bool from_a = j == b.size() || (i < a.size() && a[i] <= b[j]);
        from_a ? ++i : ++j;
    }
    return ranks;
}

using CoRankSearch = void (*)(DeviceSpan<const Key>, DeviceSpan<const Key>, DeviceSpan<std::size_t>,
                              cudaStream_t);

// `copies`: how many threads get each co-rank.
void expect_co_ranks(CoRankSearch search, std::size_t copies) {
    const std::pair<std::size_t, std::size_t> sizes[] = {{0, 0},  {1, 0},   {0, 1},   {1, 1},   {7, 1},
                                                         {5, 40}, {33, 32}, {200, 3}, {2, 400}, {300, 311}};
    for (const auto& [m, n] : sizes) {
        for (const Pattern pattern : kPatterns) {
            SCOPED_TRACE("m = " + std::to_string(m) + ", n = " + std::to_string(n) + ", " +
                         kNames[static_cast<std::size_t>(pattern)]);
            const std::vector<Key> a = make_keys(m, pattern, false);
            const std::vector<Key> b = make_keys(n, pattern, true);
            const DeviceBuffer<Key> a_device{std::span<const Key>(a)};
            const DeviceBuffer<Key> b_device{std::span<const Key>(b)};
            DeviceBuffer<std::size_t> ranks((m + n + 1) * copies);
            search(a_device.span(), b_device.span(), ranks.span(), nullptr);
            const std::vector<std::size_t> got = ranks.to_host();
            const std::vector<std::size_t> expected = co_ranks_on_cpu(a, b);
            for (std::size_t r = 0; r < got.size(); ++r)
                ASSERT_EQ(got[r], expected[r / copies]) << "k = " << r / copies << ", lane " << r % copies;
        }
    }
}

// With short tiles, so that a block of split_tiles has many, and more than one block does.
class Splits : public course::DeviceTest {};

TEST_F(Splits, OfTilesAreCoRanks) {
    if (const std::string reason = course::why_no_bulk_copies(); !reason.empty()) GTEST_SKIP() << reason;
    Workspace workspace(20000);
    const std::pair<std::size_t, std::size_t> sizes[] = {{1, 0},   {0, 1},     {33, 32},    {300, 311},
                                                         {400, 2}, {2, 40000}, {7001, 9005}};
    for (const auto& [m, n] : sizes) {
        for (const Pattern pattern : kPatterns) {
            const std::vector<Key> a = make_keys(m, pattern, false);
            const std::vector<Key> b = make_keys(n, pattern, true);
            const std::vector<std::size_t> expected = co_ranks_on_cpu(a, b);
            const DeviceBuffer<Key> a_device{std::span<const Key>(a)};
            const DeviceBuffer<Key> b_device{std::span<const Key>(b)};
            for (const std::size_t tile_size : {1, 7, 100, 1500}) {
                const std::size_t tiles = (m + n + tile_size - 1) / tile_size;
                GuardedBuffer<std::size_t> splits(tiles + 1);
                day18::find_splits(a_device.span(), b_device.span(), tile_size, splits.span().data(),
                                   workspace, nullptr);
                const std::vector<std::size_t> got = splits.to_host();
                EXPECT_EQ(splits.damage(), "");
                for (std::size_t t = 0; t <= tiles; ++t)
                    ASSERT_EQ(got[t], expected[std::min(t * tile_size, m + n)])
                        << "tile " << t << " of " << tile_size << " elements, m = " << m << ", n = " << n
                        << ", " << kNames[static_cast<std::size_t>(pattern)];
            }
        }
    }
}

using CoRanks = course::DeviceTest;

TEST_F(CoRanks, ByThreads) {
    expect_co_ranks(day18::co_ranks_by_threads, 1);
}

TEST_F(CoRanks, ByWarps) {
    expect_co_ranks(day18::co_ranks_by_warps, 32);
}

}  // namespace
