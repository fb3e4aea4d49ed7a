// Onesweep with other keys, values, directions and segments, against std::stable_sort with a
// comparison that is written independently.
#include "beyond/radix_sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::Random;
using day19::Direction;
using day19::RadixWorkspace;

// Of 32-bit and 64-bit keys: a tile has 10,240 or 6,144. The longest has several tiles, and a last
// one of 100 keys, of either.
const std::vector<std::size_t> kLengths = {0,    1,    2,     31,    33,    257,  6143,
                                           6144, 6145, 10239, 10240, 10241, 30820};

// Is `a` in front of `b`, in ascending order? NaN is behind all others, -0 before +0.
template <class Key>
bool is_before(Key a, Key b) {
    if constexpr (std::is_floating_point_v<Key>) {
        if (std::isnan(a) || std::isnan(b)) {
            if (!std::isnan(a)) return true;
            if (!std::isnan(b)) return false;
            // Among NaN: without the sign bit first, by their bits; then with it, the other way
            // round.
            const auto x = std::bit_cast<day19::BitsOf<Key>>(a);
            const auto y = std::bit_cast<day19::BitsOf<Key>>(b);
            if (std::signbit(a) != std::signbit(b)) return std::signbit(b);
            return std::signbit(a) ? x > y : x < y;
        }
        if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
    }
    return a < b;
}

template <class Key>
bool is_in_front(Key a, Key b, Direction direction) {
    return direction == Direction::kAscending ? is_before(a, b) : is_before(b, a);
}

// Any bits: of both signs, NaN and infinities among them; and every eighth key from a few.
template <class Key>
std::vector<Key> make_keys(std::size_t n, std::uint64_t seed) {
    using Limits = std::numeric_limits<Key>;
    std::vector<Key> special = {Key{0}, Key{1}, Limits::max(), Limits::lowest()};
    if constexpr (std::is_floating_point_v<Key>) {
        for (const Key key : {-Key{0}, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                              -Limits::quiet_NaN(), Limits::denorm_min(), -Limits::denorm_min(), -Key{1}})
            special.push_back(key);
        // The NaN beside -infinity, and the one farthest from it.
        const auto infinity = std::bit_cast<day19::BitsOf<Key>>(-Limits::infinity());
        special.push_back(std::bit_cast<Key>(infinity + 1));
        special.push_back(std::bit_cast<Key>(~day19::BitsOf<Key>{0}));
    } else {
        special.push_back(static_cast<Key>(-1));
    }
    Random random(seed);
    std::vector<Key> keys(n);
    for (Key& key : keys) {
        const bool is_special = random.below(8) == 0;
        key = is_special ? special[random.below(special.size())]
                         : std::bit_cast<Key>(static_cast<day19::BitsOf<Key>>(random.next()));
    }
    return keys;
}

template <class Key>
std::vector<day19::BitsOf<Key>> bits_of(const std::vector<Key>& keys) {
    std::vector<day19::BitsOf<Key>> bits(keys.size());
    std::ranges::transform(keys, bits.begin(),
                           [](Key key) { return std::bit_cast<day19::BitsOf<Key>>(key); });
    return bits;
}

// Key by key, by their bits: so NaN and -0 count.
template <class Key>
testing::AssertionResult are_equal(const std::vector<Key>& actual, const std::vector<Key>& expected) {
    const course::VerifyResult result = course::verify_exact(bits_of(actual), bits_of(expected));
    return result.ok() ? testing::AssertionSuccess() : testing::AssertionFailure() << result.message();
}

template <class Key>
class RadixSort : public course::DeviceTest {
  protected:
    static void expect_sorted(const std::vector<Key>& keys, Direction direction, std::size_t offset = 0,
                              std::size_t shared_bytes = RadixWorkspace::shared_bytes_of_a_block()) {
        std::vector<Key> expected = keys;
        std::ranges::stable_sort(expected, [=](Key a, Key b) { return is_in_front(a, b, direction); });
        const DeviceBuffer<Key> in{std::span<const Key>(keys)};
        GuardedBuffer<Key> out(keys.size(), offset);
        RadixWorkspace workspace(keys.size(), sizeof(Key), false, shared_bytes);
        // Words that an earlier sort has left must not count.
        constexpr std::size_t kTile = sizeof(Key) == 4 ? 10240 : 6144;
        const std::size_t words = (keys.size() + kTile - 1) / kTile * 256;
        CUDA_CHECK(cudaMemset(workspace.words(), 0xff, words * sizeof(unsigned long long)));
        const int launches = keys.size() == kLengths.back() ? 2 : 1;
        for (int launch = 0; launch < launches; ++launch) {  // the second finds the words of the first
            out.spoil();
            day19::sort_keys<Key>(in.span(), out.span(), direction, workspace, nullptr);
            CUDA_CHECK(cudaDeviceSynchronize());
            EXPECT_TRUE(are_equal(out.to_host(), expected)) << keys.size() << " keys, launch " << launch;
            EXPECT_EQ(out.damage(), "");
        }
        EXPECT_TRUE(are_equal(in.to_host(), keys)) << "the input was changed";
    }

    // Values are the places in the input: of equal keys they must ascend.
    static void expect_pairs(const std::vector<Key>& keys, Direction direction) {
        if (RadixWorkspace::shared_bytes_of_a_block() < std::size_t{91} << 10)
            GTEST_SKIP() << "pairs need 91 KB of shared memory in a block";
        const std::size_t n = keys.size();
        std::vector<std::uint32_t> places(n);
        std::iota(places.begin(), places.end(), 0U);
        std::vector<std::uint32_t> expected = places;
        std::ranges::stable_sort(expected, [&](std::uint32_t a, std::uint32_t b) {
            return is_in_front(keys[a], keys[b], direction);
        });
        std::vector<Key> expected_keys(n);
        std::ranges::transform(expected, expected_keys.begin(),
                               [&](std::uint32_t place) { return keys[place]; });

        const DeviceBuffer<Key> in{std::span<const Key>(keys)};
        const DeviceBuffer<std::uint32_t> values_in{std::span<const std::uint32_t>(places)};
        GuardedBuffer<Key> out(n);
        GuardedBuffer<std::uint32_t> values_out(n);
        out.spoil();
        values_out.spoil();
        RadixWorkspace workspace(n, sizeof(Key), true);
        day19::sort_pairs<Key>(in.span(), values_in.span(), out.span(), values_out.span(), direction,
                               workspace, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        EXPECT_TRUE(are_equal(out.to_host(), expected_keys)) << n << " keys";
        EXPECT_TRUE(are_equal(values_out.to_host(), expected)) << "values of " << n;
        EXPECT_EQ(out.damage() + values_out.damage(), "");
    }
};

using Keys = testing::Types<std::uint32_t, std::int32_t, float, std::uint64_t, std::int64_t, double>;
TYPED_TEST_SUITE(RadixSort, Keys);

TYPED_TEST(RadixSort, AllLengths) {
    for (const std::size_t n : kLengths)
        this->expect_sorted(make_keys<TypeParam>(n, 19 + n), Direction::kAscending);
}

TYPED_TEST(RadixSort, Descending) {
    this->expect_sorted(make_keys<TypeParam>(10239, 20), Direction::kDescending);
}

// Of GPUs with less than 128 KB of shared memory for a block: the histogram has fewer columns.
TYPED_TEST(RadixSort, WithLessSharedMemory) {
    for (const std::size_t n : {1, 10241})
        this->expect_sorted(make_keys<TypeParam>(n, 25), Direction::kAscending, 0, 64 * 1024);
}

// A single tile looks back at no other, so look_back() may still be blank.
TYPED_TEST(RadixSort, PairsOfOneTileAreStable) {
    this->expect_pairs(make_keys<TypeParam>(777, 22), Direction::kDescending);
}

TYPED_TEST(RadixSort, PairsAreStable) {
    this->expect_pairs(make_keys<TypeParam>(12345, 21), Direction::kAscending);
    // Few keys, many of each.
    std::vector<TypeParam> keys(11000);
    Random random(23);
    for (TypeParam& key : keys)
        key = static_cast<TypeParam>(random.below(3));
    this->expect_pairs(keys, Direction::kAscending);
    this->expect_pairs(keys, Direction::kDescending);
    this->expect_pairs(std::vector<TypeParam>(10240, TypeParam{7}), Direction::kAscending);
}

TYPED_TEST(RadixSort, RandomLengthsAndOffsets) {
    std::random_device device;
    const std::uint64_t seed = device();
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    for (int i = 0; i < 2; ++i) {
        const auto direction = random.below(2) == 0 ? Direction::kAscending : Direction::kDescending;
        this->expect_sorted(make_keys<TypeParam>(random.below(15000), random.next()), direction,
                            random.below(4));
    }
}

// 103 GB: all keys are equal but a few, which are beyond 2^32 in the input or in the output.
template <class Key>
void expect_sorted_beyond_32_bits(bool has_values) {
    const std::size_t n = (std::size_t{1} << 32) + 12345;
    const std::size_t bytes = sizeof(Key) + (has_values ? sizeof(std::uint32_t) : 0);
    if (const std::string reason = course::why_not_so_large(3 * n * bytes + n); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<Key> in(n);
    DeviceBuffer<Key> out(n);
    DeviceBuffer<std::uint32_t> values_in(has_values ? n : 0);
    DeviceBuffer<std::uint32_t> values_out(has_values ? n : 0);
    CUDA_CHECK(cudaMemset(in.data(), 0x55, in.bytes()));
    if (has_values) CUDA_CHECK(cudaMemset(values_in.data(), 0x22, values_in.bytes()));
    const auto set = [](auto& buffer, std::size_t i, auto value) {
        CUDA_CHECK(cudaMemcpy(buffer.data() + i, &value, sizeof(value), cudaMemcpyHostToDevice));
    };
    const auto expect_at = [](const auto& buffer, std::size_t i, auto expected) {
        auto got = expected;
        CUDA_CHECK(cudaMemcpy(&got, buffer.data() + i, sizeof(got), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got, expected) << "at " << i;
    };
    const auto most = static_cast<Key>(~Key{0});
    const auto usual = static_cast<Key>(0x5555555555555555);
    set(in, 7, most);
    set(in, n - 1, Key{1});
    set(in, n - 5, Key{2});
    // Two of the equal keys, known by their values.
    if (has_values) {
        set(values_in, 7, 70U);
        set(values_in, n - 1, 80U);
        set(values_in, 0, 90U);
        set(values_in, n - 2, 100U);
    }
    RadixWorkspace workspace(n, sizeof(Key), has_values);
    if (has_values) {
        day19::sort_pairs<Key>(in.span(), values_in.span(), out.span(), values_out.span(),
                               Direction::kAscending, workspace, nullptr);
        expect_at(values_out, 0, 80U);
        expect_at(values_out, 2, 90U);
        expect_at(values_out, 3, 0x22222222U);
        expect_at(values_out, n - 3, 0x22222222U);
        expect_at(values_out, n - 2, 100U);
        expect_at(values_out, n - 1, 70U);
    } else {
        day19::sort_keys<Key>(in.span(), out.span(), Direction::kAscending, workspace, nullptr);
    }
    expect_at(out, 0, Key{1});
    expect_at(out, 1, Key{2});
    for (const std::size_t i : {std::size_t{2}, n / 2, std::size_t{1} << 32, n - 2})
        expect_at(out, i, usual);
    expect_at(out, n - 1, most);
}

class LargeArrays : public course::DeviceTest {};

TEST_F(LargeArrays, MorePairsThan32BitsCount) {
    expect_sorted_beyond_32_bits<std::uint32_t>(true);
}

TEST_F(LargeArrays, MoreKeysOf64BitsThan32BitsCount) {
    expect_sorted_beyond_32_bits<std::uint64_t>(false);
}

template <class Key>
class SegmentSort : public course::DeviceTest {};
using SegmentKeys = testing::Types<std::uint32_t, std::int32_t, float>;
TYPED_TEST_SUITE(SegmentSort, SegmentKeys);

// Sorts segments of these lengths, and compares.
template <class Key>
void expect_those_sorted(const std::vector<std::uint64_t>& lengths, const std::string& what) {
    std::vector<std::uint64_t> offsets = {0};
    for (const std::uint64_t length : lengths)
        offsets.push_back(offsets.back() + length);
    const std::vector<Key> keys = make_keys<Key>(offsets.back(), 24 + lengths.size());
    for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
        std::vector<Key> expected = keys;
        for (std::size_t s = 0; s < lengths.size(); ++s)
            std::sort(expected.begin() + static_cast<std::ptrdiff_t>(offsets[s]),
                      expected.begin() + static_cast<std::ptrdiff_t>(offsets[s + 1]),
                      [=](Key a, Key b) { return is_in_front(a, b, direction); });
        const DeviceBuffer<Key> in{std::span<const Key>(keys)};
        const DeviceBuffer<std::uint64_t> on_device{std::span<const std::uint64_t>(offsets)};
        GuardedBuffer<Key> out(keys.size());
        out.spoil();
        RadixWorkspace workspace(2 * keys.size(), 8);
        day19::sort_segments<Key>(in.span(), on_device.span(), out.span(), direction, workspace, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        EXPECT_TRUE(are_equal(out.to_host(), expected)) << what;
        EXPECT_EQ(out.damage(), "") << what;
        EXPECT_TRUE(are_equal(in.to_host(), keys)) << what << ": the input was changed";
    }
}

// So few keys are sorted in one launch, whatever the lengths. With another segment they are not.
constexpr std::uint64_t kMostFewKeys = 8192;

template <class Key>
void expect_segments_sorted(std::vector<std::uint64_t> lengths, const std::string& what) {
    expect_those_sorted<Key>(lengths, what);
    if (std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) > kMostFewKeys) return;
    lengths.push_back(kMostFewKeys);
    lengths.push_back(1);
    expect_those_sorted<Key>(lengths, what + ", and many keys more");
}

// Some are empty.
TYPED_TEST(SegmentSort, ManyShortOnes) {
    // More than 16 bits count; on a CPU for one kind of key.
    const bool is_many = !course::is_cpu_stand_in() || std::is_same_v<TypeParam, std::uint32_t>;
    for (const std::size_t count : {1, 256, is_many ? 70000 : 3000}) {
        Random random(count);
        std::vector<std::uint64_t> lengths(count);
        for (std::uint64_t& length : lengths)
            length = random.below(count > 1000 ? 4 : 40);
        expect_segments_sorted<TypeParam>(lengths, std::to_string(count) + " segments");
    }
}

TYPED_TEST(SegmentSort, NoKeysAndNoSegments) {
    expect_segments_sorted<TypeParam>({}, "no segment");
    expect_segments_sorted<TypeParam>({0, 0, 0}, "no key");
}

// Around what a warp sorts, alone and with others, each group of a thread's keys, and both tiles of
// a block.
TYPED_TEST(SegmentSort, EachKindOfLength) {
    expect_segments_sorted<TypeParam>({31, 32, 33, 0, 255, 256, 257, 1023, 1024, 1025, 2049, 4096, 5119},
                                      "short");
    expect_segments_sorted<TypeParam>({5120, 1, 5121, 10239, 0, 10240}, "medium");
}

// One launch: around each number of keys per thread, alone, then beside others of each kind.
TYPED_TEST(SegmentSort, FewKeysInOneLaunch) {
    for (const std::uint64_t length :
         {33, 63, 64, 65, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097, 8191, 8192})
        expect_those_sorted<TypeParam>({length}, "one of " + std::to_string(length));
    expect_those_sorted<TypeParam>({0, 1, 33, 0, 2725, 31, 32, 1500, 300, 0}, "each kind");
    // Several segments for each block, in a last one that is not full, too.
    for (const std::size_t count : {256, 257, 600}) {
        std::vector<std::uint64_t> lengths(count, 3);
        for (std::size_t s = 0; s < count; s += 50)
            lengths[s] = 33 + s;
        lengths.back() = 100;
        expect_those_sorted<TypeParam>(lengths, std::to_string(count) + " segments");
    }
}

// A row of a warp has 32 keys: segments that fill it, that do not fit any more, empty ones between.
TYPED_TEST(SegmentSort, RowsOfTinyOnes) {
    expect_segments_sorted<TypeParam>({32}, "a row");
    expect_segments_sorted<TypeParam>(std::vector<std::uint64_t>(32, 32), "32 rows");
    expect_segments_sorted<TypeParam>(std::vector<std::uint64_t>(33, 17), "a row each");
    expect_segments_sorted<TypeParam>(std::vector<std::uint64_t>(100, 1), "one key each");
    expect_segments_sorted<TypeParam>({0, 16, 0, 16, 0, 1, 0, 31, 2, 0, 0, 30, 3, 0}, "exact rows");
    for (std::uint64_t length = 1; length <= 33; ++length) {
        std::vector<std::uint64_t> lengths(40, length);
        lengths[length] = 0;
        lengths[7] = 33;  // of another kind, between them
        expect_segments_sorted<TypeParam>(lengths, "of " + std::to_string(length));
    }
}

// More segments on a list than the grid has warps or blocks.
TYPED_TEST(SegmentSort, SeveralOfAWarpAndOfABlock) {
    if (course::is_cpu_stand_in() && !std::is_same_v<TypeParam, std::uint32_t>)
        GTEST_SKIP() << "on a CPU for one kind of key";
    const std::size_t blocks = std::size_t{64} * course::multiprocessors();
    std::vector<std::uint64_t> lengths(8 * blocks + 5, 33);
    expect_segments_sorted<TypeParam>(lengths, "several for each warp");
    lengths.assign(blocks + 3, 257);
    expect_segments_sorted<TypeParam>(lengths, "several for each block");
}

// Any lengths beside each other, so that a warp of the first kernel sees all kinds.
TYPED_TEST(SegmentSort, MixedLengths) {
    Random random(31);
    std::vector<std::uint64_t> lengths(700);
    for (std::uint64_t& length : lengths)
        length = random.below(1U << random.below(10));
    lengths[40] = 5121;
    lengths[45] = 10241;
    lengths[63] = 256;
    lengths[64] = 5120;
    lengths.back() = 32;
    expect_segments_sorted<TypeParam>(lengths, "mixed");
}

// Together with others they must not take their places.
TYPED_TEST(SegmentSort, LongOnesAmongOthers) {
    expect_segments_sorted<TypeParam>({10241}, "one long");
    expect_segments_sorted<TypeParam>({11000, 11000}, "two long");
    expect_segments_sorted<TypeParam>({5, 12000, 0, 6000, 33, 10241, 700, 20}, "two long among six");
    std::vector<std::uint64_t> lengths(300, 2);
    lengths[77] = 15000;
    expect_segments_sorted<TypeParam>(lengths, "one long among 299");
}

// Few of them have any keys.
using ManySegments = course::DeviceTest;

TEST_F(ManySegments, LongOnesAmongAMillionEmptyOnes) {
    constexpr std::size_t kMillion = std::size_t{1} << 20;
    std::vector<std::uint64_t> lengths(kMillion + 300);
    lengths[5] = 10300;
    lengths[kMillion + 7] = 10241;
    expect_segments_sorted<std::uint32_t>(lengths, "two long among a million");
}

// More long ones than a byte counts: two bytes of each key are its segment's number.
TYPED_TEST(SegmentSort, ManyLongOnes) {
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: on CPU threads it would take minutes";
    expect_segments_sorted<TypeParam>(std::vector<std::uint64_t>(300, 10241), "300 long");
}

class RadixRefusals : public course::DeviceTest {
  protected:
    template <class Sort>
    static std::string error_of(const Sort& sort) {
        try {
            sort();
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "no error";
    }
};

TEST_F(RadixRefusals, NameTheArgument) {
    const DeviceBuffer<float> in(10);
    DeviceBuffer<float> out(10);
    DeviceBuffer<std::uint32_t> values(20);
    RadixWorkspace workspace(10, 4);
    RadixWorkspace small(9, 4);
    RadixWorkspace wide(19, 8);
    const auto keys = [&](DeviceSpan<const float> from, DeviceSpan<float> to, RadixWorkspace& with) {
        return error_of([&] { day19::sort_keys<float>(from, to, Direction::kAscending, with, nullptr); });
    };
    EXPECT_EQ(keys(in.span(), out.span().subspan(0, 9), workspace),
              "sort: out has 9 keys; expected as many as in, 10");
    EXPECT_EQ(keys(out.span(), out.span(), workspace), "sort: out overlaps in; expected no key in common");
    EXPECT_EQ(keys(in.span(), out.span(), small),
              "sort: workspace has capacity 9; expected at least the length of in, 10");
    EXPECT_EQ(keys(in.span(), out.span(), wide), "sort: the workspace is for keys of 8 bytes; expected 4");
    EXPECT_EQ(error_of([] { RadixWorkspace(1, 3); }), "RadixWorkspace: key_bytes is 3; expected 4 or 8");
    EXPECT_EQ(error_of([] { RadixWorkspace((std::size_t{1} << 38) + 1, 4); }),
              "RadixWorkspace: capacity is 274877906945; expected at most 2^38");
    const auto pairs = [&](std::size_t count, RadixWorkspace& with) {
        return error_of([&] {
            day19::sort_pairs<float>(in.span(), values.span().subspan(0, count), out.span(),
                                     values.span().subspan(10, 10), Direction::kAscending, with, nullptr);
        });
    };
    EXPECT_EQ(pairs(9, workspace),
              "sort: values_in has 9 and values_out 10 values; expected one for each key, 10");
    EXPECT_EQ(pairs(10, workspace),
              "sort: the workspace has no room for values; expected one made with them");
    const DeviceBuffer<std::uint64_t> offsets(2);
    EXPECT_EQ(
        error_of([&] {
            day19::sort_segments<float>(in.span(), offsets.span(), out.span(), Direction::kAscending, wide,
                                        nullptr);
        }),
        "sort: the workspace has room for 19 keys of 8 bytes; expected keys of 8 bytes, and twice as many "
        "as in has, 20");
    RadixWorkspace roomy(20, 8);
    const auto segments = [&](std::size_t count, RadixWorkspace& with) {
        return error_of([&] {
            day19::sort_segments<float>(in.span(), offsets.span().subspan(0, count), out.span(),
                                        Direction::kAscending, with, nullptr);
        });
    };
    EXPECT_EQ(segments(1, roomy), "sort: in has 10 keys and no segment; expected at least one");
    EXPECT_EQ(segments(0, roomy),
              "sort: offsets is empty; expected one for each segment and one behind the last");
    const auto as_floats = DeviceSpan<float>::from_device_pointer(
        const_cast<float*>(reinterpret_cast<const float*>(offsets.data())), 4);
    EXPECT_EQ(error_of([&] {
                  day19::sort_segments<float>(in.span().subspan(0, 4), offsets.span(), as_floats,
                                              Direction::kAscending, roomy, nullptr);
              }),
              "sort: out overlaps offsets; expected memory apart");
    // Keys and values of the input, then of the output: each begins at one of these words.
    RadixWorkspace with_values(10, 4, true);
    DeviceBuffer<std::uint32_t> words(60);
    const auto values_at = [&](std::size_t word) { return words.span().subspan(word, 10); };
    const auto keys_at = [&](std::size_t word) {
        return DeviceSpan<float>::from_device_pointer(reinterpret_cast<float*>(words.data() + word), 10);
    };
    const std::array<std::size_t, 4> overlapping[] = {
        {0, 40, 20, 45}, {40, 10, 20, 45}, {0, 40, 45, 20}, {0, 10, 40, 45}};
    for (const auto& [key, value, key_out, value_out] : overlapping) {
        const auto sort = [&, key = key, value = value, key_out = key_out, value_out = value_out] {
            day19::sort_pairs<float>(keys_at(key), values_at(value), keys_at(key_out), values_at(value_out),
                                     Direction::kAscending, with_values, nullptr);
        };
        EXPECT_EQ(error_of(sort), "sort: an output overlaps another array; expected no element in common")
            << "words " << key << ", " << value << ", " << key_out << ", " << value_out;
    }
}

}  // namespace
