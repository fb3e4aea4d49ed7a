// Scans with other operators against a loop on the CPU. Small whole numbers, so that floats are
// exact in any order.
#include "operator_scan.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
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
using course::Random;
using day16::Workspace;

constexpr std::size_t kTile = 2816;
constexpr std::size_t kBulkKeysTile = 8192;
constexpr std::size_t kBulkIntegersTile = 4608;

class OperatorScan : public course::DeviceTest {
  protected:
    // Around a thread's share, a warp's, a tile; more than 32 tiles; more than are resident. For
    // bulk_operator_scan, too.
    static std::vector<std::size_t> sizes() {
        return {0, 1, 10, 11, 12, 351, 352, 353, kTile - 1, kTile, kTile + 1, 40001, 34 * kTile + 7,
                kBulkIntegersTile - 1, kBulkIntegersTile, kBulkIntegersTile + 1, kBulkKeysTile - 1,
                kBulkKeysTile, kBulkKeysTile + 1,
                // Each block scans seven tiles of keys, or twelve of integers: every stage is used
                // twice.
                course::multiprocessors() * std::size_t{7} * kBulkKeysTile + 5,
                course::multiprocessors() * std::size_t{9} * kTile + 5};
    }
};

template <class T>
std::vector<T> whole_numbers(std::size_t n, int low, int high, std::uint64_t seed) {
    Random random(seed);
    std::vector<T> values(n);
    for (T& value : values)
        value = static_cast<T>(random.integer(low, high));
    return values;
}

// Runs twice on one workspace, and compares exactly.
template <class T>
void expect_exact(const std::string& what, const std::vector<T>& expected,
                  const std::function<void(DeviceSpan<T>, Workspace&)>& scan) {
    GuardedBuffer<T> out(expected.size());
    Workspace workspace(expected.size());
    for (int launch = 0; launch < 2; ++launch) {
        out.spoil();
        scan(out.span(), workspace);
        CUDA_CHECK(cudaDeviceSynchronize());
        course::VerifyResult result;
        if constexpr (std::is_floating_point_v<T>) {
            const std::vector<double> exactly(expected.begin(), expected.end());
            result = course::verify(out.to_host(), exactly, {.factor = 0});
        } else {
            result = course::verify_exact(out.to_host(), expected);
        }
        EXPECT_TRUE(result.ok()) << what << ", n = " << expected.size() << ": " << result.message();
        EXPECT_EQ(out.damage(), "") << what << ", n = " << expected.size();
    }
}

TEST_F(OperatorScan, Integers64) {
    for (const std::size_t n : sizes()) {
        Random random(n);
        std::vector<std::int64_t> in(n);
        for (std::int64_t& value : in)
            value = static_cast<std::int64_t>(random.next());
        std::vector<std::int64_t> expected(n);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i)
            expected[i] = static_cast<std::int64_t>(sum += static_cast<std::uint64_t>(in[i]));
        const DeviceBuffer<std::int64_t> device{std::span<const std::int64_t>(in)};
        expect_exact<std::int64_t>("int64", expected, [&](auto out, Workspace& workspace) {
            day16::inclusive_scan(device.span(), out, workspace, nullptr);
        });
    }
}

// A segment begins at one element of `every`: at all of them, a few, or (0) none.
TEST_F(OperatorScan, SegmentsAndKeys) {
    for (const std::size_t n : sizes()) {
        for (const std::uint64_t every : {0, 1, 7, 5000}) {
            if (n > 100000 && every != 5000) continue;
            Random random(n + every);
            const std::vector<float> values = whole_numbers<float>(n, -8, 8, n);
            std::vector<unsigned char> begins(n);
            std::vector<std::int32_t> keys(n);
            std::vector<float> expected(n);
            float sum = 0;
            std::int32_t key = 3;
            for (std::size_t i = 0; i < n; ++i) {
                begins[i] = every != 0 && random.below(every) == 0 ? 200 : 0;
                if (begins[i] != 0) key = -key + (key < 0 ? 1 : 0);  // 3, -3, 4, -4, ...
                keys[i] = key;
                sum = begins[i] != 0 ? values[i] : sum + values[i];
                expected[i] = sum;
            }
            const DeviceBuffer<float> on_device{std::span<const float>(values)};
            const DeviceBuffer<unsigned char> begins_on_device{std::span<const unsigned char>(begins)};
            const DeviceBuffer<std::int32_t> keys_on_device{std::span<const std::int32_t>(keys)};
            const std::string what = "one in " + std::to_string(every);
            expect_exact<float>("segments, " + what, expected, [&](auto out, Workspace& workspace) {
                day16::segmented_scan(begins_on_device.span(), on_device.span(), out, workspace, nullptr);
            });
            expect_exact<float>("keys, " + what, expected, [&](auto out, Workspace& workspace) {
                day16::scan_by_key(keys_on_device.span(), on_device.span(), out, workspace, nullptr);
            });
        }
    }
}

// bulk_operator_scan adds in an order that does not depend on timing. The sums of these values are
// rounded, so another order would give other bits.
TEST_F(OperatorScan, SumsByKeyHaveTheSameBitsInEveryRun) {
    if (const std::string reason = course::why_no_bulk_copies(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t n = course::multiprocessors() * std::size_t{5} * kBulkKeysTile + 77;
    const std::vector<float> values = course::make_data<float>(n, course::DataPattern::kSignedUniform, 16);
    std::vector<std::int32_t> keys(n);
    for (std::size_t i = 0; i < n; ++i)
        keys[i] = static_cast<std::int32_t>(i / 40000);  // most tiles begin no segment
    const DeviceBuffer<float> values_on_device{std::span<const float>(values)};
    const DeviceBuffer<std::int32_t> keys_on_device{std::span<const std::int32_t>(keys)};
    Workspace workspace(n);
    std::vector<float> first;
    for (int run = 0; run < 3; ++run) {
        GuardedBuffer<float> out(n);
        day16::scan_by_key(keys_on_device.span(), values_on_device.span(), out.span(), workspace, nullptr);
        const std::vector<float> got = out.to_host();
        if (run == 0) first = got;
        EXPECT_EQ(std::memcmp(got.data(), first.data(), n * sizeof(float)), 0) << "run " << run;
    }
}

// 69 GB: ones, which are counted. A segment begins 7 elements beyond 2^32.
TEST_F(OperatorScan, MoreElementsThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 12345;
    const std::size_t begins = (std::size_t{1} << 32) + 7;
    if (const std::string reason = course::why_not_so_large(2 * n * sizeof(std::int64_t)); !reason.empty())
        GTEST_SKIP() << reason;
    Workspace workspace(n);
    const auto expect_at = [&](const auto* out, std::size_t i, auto expected) {
        auto got = expected;
        CUDA_CHECK(cudaMemcpy(&got, out + i, sizeof(got), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got, expected) << "at " << i;
    };
    {
        DeviceBuffer<std::int64_t> in(n);
        DeviceBuffer<std::int64_t> out(n);
        CUDA_CHECK(cudaMemset(in.data(), 1, in.bytes()));
        day16::inclusive_scan(in.span(), out.span(), workspace, nullptr);
        for (const std::size_t i : {std::size_t{0}, n / 2, begins - 8, begins, n - 1})
            expect_at(out.data(), i, static_cast<std::int64_t>((i + 1) * 0x0101010101010101U));
    }
    DeviceBuffer<std::int32_t> keys(n);
    DeviceBuffer<float> values(n);
    DeviceBuffer<float> out(n);
    CUDA_CHECK(cudaMemset(keys.data(), 0, keys.bytes()));
    CUDA_CHECK(cudaMemset(keys.data() + begins, 1, (n - begins) * sizeof(std::int32_t)));
    CUDA_CHECK(cudaMemset(values.data(), 0, values.bytes()));
    const float one = 1;
    for (const std::size_t i : {std::size_t{3}, std::size_t{1} << 31, begins - 1, begins, begins + 5000})
        CUDA_CHECK(cudaMemcpy(values.data() + i, &one, sizeof(one), cudaMemcpyHostToDevice));
    day16::scan_by_key(keys.span(), values.span(), out.span(), workspace, nullptr);
    expect_at(out.data(), 2, 0.0f);
    expect_at(out.data(), (std::size_t{1} << 31) - 1, 1.0f);
    expect_at(out.data(), std::size_t{1} << 31, 2.0f);
    expect_at(out.data(), begins - 1, 3.0f);
    expect_at(out.data(), begins, 1.0f);
    expect_at(out.data(), begins + 4999, 1.0f);
    expect_at(out.data(), n - 1, 2.0f);
}

// Bulk copies need aligned arrays, so these take operator_scan.
TEST_F(OperatorScan, MisalignedIntegersAndKeys) {
    for (const std::size_t n : sizes()) {
        if (n == 0 || n > 100000) continue;
        std::vector<std::int64_t> in(n + 1);
        std::vector<std::int32_t> keys(n + 1);
        std::vector<float> values(n + 1);
        std::vector<std::int64_t> sums(n);
        std::vector<float> sums_by_key(n);
        Random random(n);
        for (std::size_t i = 0; i <= n; ++i) {
            in[i] = static_cast<std::int64_t>(random.next());
            keys[i] = static_cast<std::int32_t>(i / 7);
            values[i] = static_cast<float>(random.integer(-8, 8));
        }
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            sums[i] = static_cast<std::int64_t>(sum += static_cast<std::uint64_t>(in[i + 1]));
            sums_by_key[i] = values[i + 1] + (i > 0 && keys[i + 1] == keys[i] ? sums_by_key[i - 1] : 0.0f);
        }
        const DeviceBuffer<std::int64_t> in_on_device{std::span<const std::int64_t>(in)};
        const DeviceBuffer<std::int32_t> keys_on_device{std::span<const std::int32_t>(keys)};
        const DeviceBuffer<float> values_on_device{std::span<const float>(values)};
        expect_exact<std::int64_t>("int64", sums, [&](auto out, Workspace& workspace) {
            day16::inclusive_scan(in_on_device.span().subspan(1, n), out, workspace, nullptr);
        });
        expect_exact<float>("keys", sums_by_key, [&](auto out, Workspace& workspace) {
            day16::scan_by_key(keys_on_device.span().subspan(1, n), values_on_device.span().subspan(1, n),
                               out, workspace, nullptr);
        });
    }
}

// Does not commute. Factors of -1, 0 and 1, so that the numbers stay small and exact.
TEST_F(OperatorScan, Recurrence) {
    for (const std::size_t n : sizes()) {
        const std::vector<float> factors = whole_numbers<float>(n, -1, 1, n);
        const std::vector<float> offsets = whole_numbers<float>(n, -8, 8, n + 1);
        std::vector<float> expected(n);
        float x = 0;
        for (std::size_t i = 0; i < n; ++i)
            expected[i] = x = factors[i] * x + offsets[i];
        const DeviceBuffer<float> factors_on_device{std::span<const float>(factors)};
        const DeviceBuffer<float> offsets_on_device{std::span<const float>(offsets)};
        expect_exact<float>("recurrence", expected, [&](auto out, Workspace& workspace) {
            day16::solve_recurrence(factors_on_device.span(), offsets_on_device.span(), out, workspace,
                                    nullptr);
        });
    }
}

// As LookBack.OverManyTilesWithoutAPrefix in scan_test.cpp: all tiles but the last five have
// published their sums, and only the first its prefix. The five blocks that run look back three
// times each. Factors of -1 and 1, so that every earlier tile counts, and in which order.
TEST_F(OperatorScan, LooksBackInOrderOverManyTilesWithoutAPrefix) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU runs all blocks of a grid";
    constexpr std::size_t kTiles = 80;
    constexpr std::size_t kPublished = kTiles - 5;
    const std::size_t n = kTiles * kTile - 100;
    std::vector<float> factors = whole_numbers<float>(n, 0, 1, 1);
    for (float& factor : factors)
        factor = 2 * factor - 1;
    const std::vector<float> offsets = whole_numbers<float>(n, -8, 8, 2);
    std::vector<float> expected(n);
    float x = 0;
    for (std::size_t i = 0; i < n; ++i)
        expected[i] = x = factors[i] * x + offsets[i];

    struct Map {
        float factor = 1;
        float offset = 0;
    };
    std::vector<Map> maps(kPublished);
    std::vector<unsigned long long> words(kPublished);
    for (std::size_t tile = 0; tile < kPublished; ++tile) {
        Map& map = maps[tile];
        for (std::size_t i = tile * kTile; i < (tile + 1) * kTile; ++i)
            map = {map.factor * factors[i], factors[i] * map.offset + offsets[i]};
        words[tile] = (1ULL << 2 | (tile == 0 ? 2 : 1)) << 32;  // launch 1, state prefix or sum
    }
    Workspace workspace(n);
    const auto copy = [](void* to, const auto& from) {
        CUDA_CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(from[0]), cudaMemcpyHostToDevice));
    };
    copy(workspace.words(), words);
    copy(workspace.values(0), maps);
    copy(workspace.values(1), std::vector<Map>{maps[0]});  // the only prefix
    copy(workspace.ticket(), std::vector<unsigned long long>{1ULL << 32 | kPublished});

    const DeviceBuffer<float> factors_on_device{std::span<const float>(factors)};
    const DeviceBuffer<float> offsets_on_device{std::span<const float>(offsets)};
    GuardedBuffer<float> out(n);
    course::run_few_blocks(
        [&] {
            day16::solve_recurrence(factors_on_device.span(), offsets_on_device.span(), out.span(), workspace,
                                    nullptr);
        },
        {0});
    const std::vector<float> got = out.to_host();
    for (std::size_t i = kPublished * kTile; i < n; ++i)
        ASSERT_EQ(got[i], expected[i]) << "element " << i;
}

TEST_F(OperatorScan, InPlaceAndWithOtherScansOnOneWorkspace) {
    const std::size_t n = 3 * kTile + 5;
    const std::vector<float> ones(n, 1);
    DeviceBuffer<float> data{std::span<const float>(ones)};
    const DeviceBuffer<unsigned char> begins{
        std::span<const unsigned char>(std::vector<unsigned char>(n, 0))};
    Workspace workspace(n);
    for (int round = 0; round < 2; ++round) {
        CUDA_CHECK(cudaMemcpy(data.data(), ones.data(), data.bytes(), cudaMemcpyHostToDevice));
        day16::segmented_scan(begins.span(), data.span(), data.span(), workspace, nullptr);
        EXPECT_EQ(data.to_host().back(), static_cast<float>(n));
        day16::inclusive_scan<float>(data.span(), data.span(), workspace, nullptr);
        EXPECT_EQ(data.to_host()[99], 5050.0f);
    }
}

// As in scan_test.cpp. Two words for each tile of bulk_operator_scan, one of operator_scan.
TEST_F(OperatorScan, NumbersOfLaunchesStartAgain) {
    constexpr std::size_t kMost = 100000;
    const DeviceBuffer<std::int32_t> keys = course::zeros<std::int32_t>(kMost);
    const DeviceBuffer<unsigned char> begins = course::zeros<unsigned char>(kMost);
    // The last sum of n equal values. Other values in each scan: what an earlier one has published
    // is wrong.
    const auto scans = [&](std::size_t n, Workspace& workspace, int which, int value) {
        const DeviceBuffer<std::int64_t> integers{
            std::span<const std::int64_t>(std::vector<std::int64_t>(n, value))};
        const DeviceBuffer<float> values{
            std::span<const float>(std::vector<float>(n, static_cast<float>(value)))};
        DeviceBuffer<std::int64_t> sums(n);
        DeviceBuffer<float> out(n);
        if (which == 0) {
            day16::inclusive_scan(integers.span(), sums.span(), workspace, nullptr);
            return static_cast<double>(sums.to_host().back());
        }
        if (which == 1) {
            day16::scan_by_key(keys.span().subspan(0, n), values.span(), out.span(), workspace, nullptr);
        } else {
            day16::segmented_scan(begins.span().subspan(0, n), values.span(), out.span(), workspace, nullptr);
        }
        return static_cast<double>(out.to_host().back());
    };
    for (const int which : {0, 1, 2}) {
        Workspace workspace(kMost);
        EXPECT_EQ(scans(kMost, workspace, which, 1), kMost) << "number 0, scan " << which;
        const unsigned long long last = ((1ULL << 30) - 1) << 32;
        CUDA_CHECK(cudaMemcpy(workspace.ticket(), &last, sizeof(last), cudaMemcpyHostToDevice));
        EXPECT_EQ(scans(60000, workspace, which, 2), 2 * 60000) << "the last number, scan " << which;
        EXPECT_EQ(scans(kMost, workspace, which, 3), 3 * kMost) << "number 0 again, scan " << which;
    }
}

// bulk_operator_scan publishes the halves of a value in two words, and a reader may see the first
// one alone. So here the low half of each tile's sum has been published when the scan begins. It is
// right, as it would be in a run; the high half is not zero.
TEST_F(OperatorScan, HalfOfAValueIsNotAValue) {
    if (const std::string reason = course::why_no_bulk_copies(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t n = course::multiprocessors() * std::size_t{5} * kBulkIntegersTile;
    constexpr std::int64_t kValue = (std::int64_t{1} << 33) + 1;
    const DeviceBuffer<std::int64_t> in{std::span<const std::int64_t>(std::vector<std::int64_t>(n, kValue))};
    DeviceBuffer<std::int64_t> out(n);
    Workspace workspace(n);
    // Launch 0, state 1 (a sum), and the low half of the sum of a tile.
    std::vector<unsigned long long> words(workspace.words_capacity());
    for (std::size_t i = 0; i < words.size(); i += 2)
        words[i] = 1ULL << 32 | kBulkIntegersTile;
    CUDA_CHECK(
        cudaMemcpy(workspace.words(), words.data(), words.size() * sizeof(words[0]), cudaMemcpyHostToDevice));
    day16::inclusive_scan(in.span(), out.span(), workspace, nullptr);
    const std::vector<std::int64_t> sums = out.to_host();
    for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(sums[i], static_cast<std::int64_t>(i + 1) * kValue) << "at " << i;
}

// Tiles arrive by bulk copies while others are stored; `out` is one of the inputs.
TEST_F(OperatorScan, BulkScansInPlace) {
    const std::size_t n = course::multiprocessors() * std::size_t{4} * kBulkKeysTile + 3;
    const std::vector<std::int64_t> ones(n, 1);
    DeviceBuffer<std::int64_t> integers{std::span<const std::int64_t>(ones)};
    Workspace workspace(n);
    day16::inclusive_scan(integers.span(), integers.span(), workspace, nullptr);
    const std::vector<std::int64_t> sums = integers.to_host();
    std::vector<std::int32_t> keys(n);
    for (std::size_t i = 0; i < n; ++i)
        keys[i] = static_cast<std::int32_t>(i / 10000);
    const DeviceBuffer<std::int32_t> keys_on_device{std::span<const std::int32_t>(keys)};
    DeviceBuffer<float> values{std::span<const float>(std::vector<float>(n, 1.0f))};
    day16::scan_by_key(keys_on_device.span(), values.span(), values.span(), workspace, nullptr);
    const std::vector<float> by_key = values.to_host();
    for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(sums[i], static_cast<std::int64_t>(i + 1)) << "at " << i;
        ASSERT_EQ(by_key[i], static_cast<float>(i % 10000 + 1)) << "at " << i;
    }
}

TEST_F(OperatorScan, RefusesBadArguments) {
    DeviceBuffer<float> floats = course::zeros<float>(64);
    const DeviceBuffer<std::int32_t> keys = course::zeros<std::int32_t>(64);
    Workspace workspace(16);
    const auto message = [&](std::size_t key_count, DeviceSpan<float> in, DeviceSpan<float> out) {
        return course::refusal(
            [&] { day16::scan_by_key(keys.span().subspan(0, key_count), in, out, workspace, nullptr); });
    };
    const DeviceSpan<float> all = floats.span();
    EXPECT_EQ(message(8, all.subspan(0, 8), all.subspan(8, 8)), "");
    EXPECT_EQ(message(7, all.subspan(0, 8), all.subspan(8, 8)),
              "scan: keys has 7 elements and out 8; expected the same number");
    EXPECT_EQ(message(8, all.subspan(0, 9), all.subspan(9, 8)),
              "scan: values has 9 elements and out 8; expected the same number");
    EXPECT_EQ(message(8, all.subspan(0, 8), all.subspan(7, 8)),
              "scan: out overlaps values; expected in itself, or memory apart");
    EXPECT_EQ(message(17, all.subspan(0, 17), all.subspan(20, 17)),
              "scan: workspace has capacity 16; expected at least the length of out, 17");
    DeviceBuffer<std::int32_t> bits = course::zeros<std::int32_t>(8);
    const auto as_floats = DeviceSpan<float>::from_device_pointer(reinterpret_cast<float*>(bits.data()), 8);
    EXPECT_EQ(course::refusal(
                  [&] { day16::scan_by_key(bits.span(), all.subspan(0, 8), as_floats, workspace, nullptr); }),
              "scan: out is keys; expected memory apart, as tiles read the last key of the tile before");
    const DeviceBuffer<unsigned char> begins = course::zeros<unsigned char>(7);
    EXPECT_EQ(course::refusal([&] {
                  day16::segmented_scan(begins.span(), all.subspan(0, 8), all.subspan(8, 8), workspace,
                                        nullptr);
              }),
              "scan: begins has 7 elements and out 8; expected the same number");
    const auto recurrence = [&](std::size_t factors, std::size_t offsets) {
        return course::refusal([&] {
            day16::solve_recurrence(all.subspan(0, factors), all.subspan(16, offsets), all.subspan(32, 8),
                                    workspace, nullptr);
        });
    };
    EXPECT_EQ(recurrence(7, 8), "scan: factors has 7 elements and out 8; expected the same number");
    EXPECT_EQ(recurrence(8, 9), "scan: offsets has 9 elements and out 8; expected the same number");
}

}  // namespace
