// Day 19's program: every version verified and timed, beside CUB, the CPU, and a copy of as many
// bytes as a radix sort with digits of 8 bits must move.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <parallel/algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "beyond/radix_sort.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/expected_output.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "sort.hpp"
#include "sort_peer.hpp"
#include "sort_plain_loop.hpp"

namespace {

using course::DeviceBuffer;
using day19::Key;

enum class Shape { kRandom, kSorted, kReversed, kAllEqual, kZipf };

Key random_key(std::size_t i) {
    return static_cast<Key>(course::Random(19, i).next() >> 32);
}

// Any power of two is as likely: key k comes about 1 / k times as often as key 1.
Key zipf_key(std::size_t i) {
    course::Random random(19, 2 * i);
    const auto bits = static_cast<Key>(random.next() >> 32);
    return (bits | 1U << 31) >> random.below(32);
}

// Keys that need no sort to be sorted.
std::vector<Key> sorted_keys(std::size_t n, Shape shape) {
    return shape == Shape::kAllEqual ? std::vector<Key>(n, 7) : course::sorted_numbers(n, 19);
}

struct Data {
    Data(Shape shape, std::size_t n)
        : keys(n),
          // Four passes that read and write, and one look at all keys to count their digits.
          copy_from(n * 9 / 2),
          copy_to(n * 9 / 2),
          out(n),
          workspace(n) {
        std::vector<Key> sorted;
        if (shape == Shape::kRandom || shape == Shape::kZipf) {
            course::for_each_index(
                n, [&](std::size_t i) { keys[i] = shape == Shape::kZipf ? zipf_key(i) : random_key(i); });
            sorted.resize(n);
            day19::sort_on_cpu(keys, sorted);
        } else {
            sorted = sorted_keys(n, shape);
            course::for_each_index(
                n, [&](std::size_t i) { keys[i] = sorted[shape == Shape::kReversed ? n - 1 - i : i]; });
        }
        in = DeviceBuffer<Key>(std::span<const Key>(keys));
        expected = course::ExpectedOutput<Key>(std::move(sorted));
        CUDA_CHECK(cudaMemset(copy_from.data(), 1, copy_from.bytes()));
    }

    std::vector<Key> keys;
    DeviceBuffer<Key> in;
    DeviceBuffer<Key> copy_from;
    DeviceBuffer<Key> copy_to;
    course::GuardedBuffer<Key> out;
    course::ExpectedOutput<Key> expected;
    day19::Workspace workspace;
};

course::Case sort_case(Shape shape, const std::string& name, const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "keys");
    course::UsualCase<Data> usual(name + " " + std::to_string(n), "uint32", std::make_shared<Data>(shape, n));
    Data& data = *usual.data;
    usual.output_in_place(&Data::out, [](Data& d) { return d.expected.verify(d.out); });

    const course::Work work = day19::versions().front().work(n);
    usual.add(day19::cub_sort<Key>(data.in.span(), data.out.span(), work));
    usual.versions(day19::versions(), n, [](const day19::Version& version, Data& d, cudaStream_t stream) {
        version.launcher(d.in.span(), d.out.span(), d.workspace, stream);
    });
    usual.plain_loop(
        work, static_cast<double>(n) * std::log2(static_cast<double>(n)) * 3e-9,
        [n] { return course::unwritten<Key>(n); },
        [](const Data& d, std::span<Key> out, int threads) { day19::sort_plainly(d.keys, out, threads); },
        [](const Data& d, const auto& out) { return d.expected.verify(out); });
    usual.limit_copy(&Data::copy_from, &Data::copy_to, {}, "cudaMemcpy_36_bytes_a_key");
    return usual.result;
}

// --- Other keys, and pairs -----------------------------------------------------------------------

// The bytes that a radix sort with digits of 8 bits must move for each key: it reads the keys once
// to count, and then each pass reads and writes everything.
template <class K, bool kPairs>
constexpr std::size_t kBytesMoved = sizeof(K) + sizeof(K) * 2 * (sizeof(K) + (kPairs ? 4 : 0));

template <class K, bool kPairs>
struct RadixData {
    explicit RadixData(std::size_t n)
        : copy_from(n * kBytesMoved<K, kPairs> / 2),
          copy_to(copy_from.size()),
          out(n),
          values_out(kPairs ? n : 0),
          workspace(n, sizeof(K), kPairs) {
        std::vector<K> keys(n);
        course::for_each_index(n, [&](std::size_t i) {
            const std::uint64_t bits = course::Random(19, i).next();
            if constexpr (std::is_floating_point_v<K>) {
                keys[i] = static_cast<K>(static_cast<std::int64_t>(bits));
            } else {
                keys[i] = static_cast<K>(bits >> (64 - 8 * sizeof(K)));
            }
        });
        in = DeviceBuffer<K>(std::span<const K>(keys));
        if constexpr (kPairs) {
            // A value is its key's place. So pairs of 64 bits, key before place, have one order,
            // that of a stable sort.
            std::vector<std::uint32_t> values(n);
            std::vector<std::uint64_t> pairs(n);
            course::for_each_index(n, [&](std::size_t i) {
                values[i] = static_cast<std::uint32_t>(i);
                pairs[i] = std::uint64_t{keys[i]} << 32 | i;
            });
            values_in = DeviceBuffer<std::uint32_t>(std::span<const std::uint32_t>(values));
            __gnu_parallel::sort(pairs.begin(), pairs.end());
            course::for_each_index(n, [&](std::size_t i) {
                values[i] = static_cast<std::uint32_t>(pairs[i]);
                keys[i] = static_cast<K>(pairs[i] >> 32);
            });
            expected_values = course::ExpectedOutput<std::uint32_t>(std::move(values));
        } else {
            __gnu_parallel::sort(keys.begin(), keys.end());
        }
        expected = course::ExpectedOutput<K>(std::move(keys));
        CUDA_CHECK(cudaMemset(copy_from.data(), 1, copy_from.bytes()));
    }

    DeviceBuffer<K> in;
    DeviceBuffer<std::uint32_t> values_in;
    DeviceBuffer<std::byte> copy_from;
    DeviceBuffer<std::byte> copy_to;
    course::GuardedBuffer<K> out;
    course::GuardedBuffer<std::uint32_t> values_out;
    course::ExpectedOutput<K> expected;
    course::ExpectedOutput<std::uint32_t> expected_values;
    day19::RadixWorkspace workspace;
};

template <class K, bool kPairs>
course::Case radix_case(const std::string& name, const std::string& dtype, const course::Dims& size) {
    using Keys = RadixData<K, kPairs>;
    const std::size_t n = course::only_extent(size, "keys");
    course::UsualCase<Keys> usual(name + " " + std::to_string(n), dtype, std::make_shared<Keys>(n));
    usual.output_in_place(&Keys::out, [](Keys& d) {
        course::VerifyResult result = d.expected.verify(d.out);
        if (kPairs && result.ok()) result = d.expected_values.verify(d.values_out);
        result.damage = d.values_out.damage();
        return result;
    });
    usual.also_spoil([](Keys& d) { d.values_out.spoil(); });

    const double bytes = static_cast<double>(n) * (sizeof(K) + (kPairs ? 4 : 0));
    const course::Work work{.bytes = 2 * bytes, .written = bytes};
    Keys& data = *usual.data;
    if constexpr (kPairs) {
        usual.add(day19::cub_sort_pairs(data.in.span(), data.values_in.span(), data.out.span(),
                                        data.values_out.span(), work));
    } else {
        usual.add(day19::cub_sort<K>(data.in.span(), data.out.span(), work));
    }
    usual.add({.name = kPairs ? "sort_pairs" : "sort_keys",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       constexpr auto kUp = day19::Direction::kAscending;
                       if constexpr (kPairs) {
                           day19::sort_pairs<K>(data->in.span(), data->values_in.span(), data->out.span(),
                                                data->values_out.span(), kUp, data->workspace, stream);
                       } else {
                           day19::sort_keys<K>(data->in.span(), data->out.span(), kUp, data->workspace,
                                               stream);
                       }
                   },
               .work = work});
    usual.limit_copy(&Keys::copy_from, &Keys::copy_to, {},
                     "cudaMemcpy_" + std::to_string(kBytesMoved<K, kPairs>) + "_bytes_a_key");
    return usual.result;
}

// --- Segments ------------------------------------------------------------------------------------

// Of 0 to 2 * `mean` keys, each length as likely, or each magnitude, or a few that are much longer.
enum class Lengths { kAlike, kMixed, kFewLong };

std::uint32_t next_length(course::Random& random, std::size_t mean, Lengths lengths) {
    const auto most = static_cast<std::uint32_t>(2 * mean);
    if (lengths == Lengths::kFewLong && random.below(4096) == 0) return random.below(1 << 18);
    if (lengths != Lengths::kMixed) return random.below(most + 1);
    return random.below((most >> random.below(static_cast<std::uint32_t>(std::bit_width(most)))) + 1);
}

// Random keys in such segments.
struct SegmentData {
    SegmentData(std::size_t mean, std::size_t n, Lengths lengths = Lengths::kAlike)
        : copy_from(n), copy_to(n), out(n), workspace(2 * n, 8) {
        std::vector<std::uint64_t> ends = {0};
        course::Random random(19);
        while (ends.back() < n)
            ends.push_back(std::min<std::uint64_t>(n, ends.back() + next_length(random, mean, lengths)));
        std::vector<Key> keys(n);
        course::for_each_index(n, [&](std::size_t i) { keys[i] = random_key(i); });
        in = DeviceBuffer<Key>(std::span<const Key>(keys));
        offsets = DeviceBuffer<std::uint64_t>(std::span<const std::uint64_t>(ends));
        course::for_each_index(ends.size() - 1, [&](std::size_t s) {
            std::sort(keys.begin() + static_cast<std::ptrdiff_t>(ends[s]),
                      keys.begin() + static_cast<std::ptrdiff_t>(ends[s + 1]));
        });
        expected = course::ExpectedOutput<Key>(std::move(keys));
        CUDA_CHECK(cudaMemset(copy_from.data(), 1, copy_from.bytes()));
    }

    DeviceBuffer<Key> in;
    DeviceBuffer<std::uint64_t> offsets;
    DeviceBuffer<Key> copy_from;
    DeviceBuffer<Key> copy_to;
    course::GuardedBuffer<Key> out;
    course::ExpectedOutput<Key> expected;
    day19::RadixWorkspace workspace;
};

course::Case segments_case(std::size_t mean, const course::Dims& size, Lengths lengths = Lengths::kAlike) {
    const std::size_t n = course::only_extent(size, "keys");
    const std::string name = lengths == Lengths::kMixed
                                 ? "mixed segments of up to " + std::to_string(2 * mean)
                                 : "segments of " + std::to_string(mean) +
                                       (lengths == Lengths::kFewLong ? " and a few long ones" : "");
    course::UsualCase<SegmentData> usual(name + " " + std::to_string(n), "uint32",
                                         std::make_shared<SegmentData>(mean, n, lengths));
    usual.output_in_place(&SegmentData::out, [](SegmentData& d) { return d.expected.verify(d.out); });
    const double bytes = static_cast<double>(n) * sizeof(Key);
    const course::Work work{.bytes = 2 * bytes, .written = bytes};
    SegmentData& data = *usual.data;
    usual.add(day19::cub_sort_segments(data.in.span(), data.offsets.span(), data.out.span(), work));
    usual.add({.name = "sort_segments",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day19::sort_segments<Key>(data->in.span(), data->offsets.span(), data->out.span(),
                                                 day19::Direction::kAscending, data->workspace, stream);
                   },
               .work = work});
    usual.limit_copy(&SegmentData::copy_from, &SegmentData::copy_to);
    return usual.result;
}

constexpr std::size_t kSegmentsMeans[] = {4, 100, 3000, 50000};
constexpr std::size_t kSegmentsCases = std::size(kSegmentsMeans) + 2;

std::vector<std::function<course::Case(const course::Dims&)>> all_cases() {
    std::vector<std::function<course::Case(const course::Dims&)>> cases;
    const auto add = [&cases](Shape shape, const std::string& name) {
        cases.push_back([=](const course::Dims& size) { return sort_case(shape, name, size); });
    };
    add(Shape::kRandom, "random");
    add(Shape::kSorted, "sorted");
    add(Shape::kReversed, "reversed");
    add(Shape::kAllEqual, "all equal");
    add(Shape::kZipf, "zipf");
    cases.push_back([](const auto& size) { return radix_case<Key, true>("pairs", "uint32", size); });
    cases.push_back(
        [](const auto& size) { return radix_case<std::uint64_t, false>("64 bits", "uint64", size); });
    cases.push_back([](const auto& size) { return radix_case<float, false>("floats", "float", size); });
    for (const std::size_t mean : kSegmentsMeans)
        cases.push_back([mean](const auto& size) { return segments_case(mean, size); });
    cases.push_back([](const auto& size) { return segments_case(10000, size, Lengths::kMixed); });
    cases.push_back([](const auto& size) { return segments_case(4, size, Lengths::kFewLong); });
    return cases;
}

course::RandomProblem random_sort(course::Draw& draw) {
    const auto [kind, size] = course::draw_length(draw);
    const std::vector<std::function<course::Case(const course::Dims&)>> cases = all_cases();
    // The last ones have segments.
    const std::size_t number = draw.uniform(0, cases.size() - kSegmentsCases - 1);
    return {kind, size, [make = cases[number], size = size] { return make(size); }};
}

course::RandomProblem random_segments(course::Draw& draw) {
    const std::size_t n = draw.jittered(draw.log_uniform(1, draw.limit()));
    const std::size_t mean = draw.log_uniform(1, std::min<std::size_t>(n, 1 << 20));
    const auto lengths = draw.one_of({Lengths::kAlike, Lengths::kMixed, Lengths::kFewLong});
    std::string kind = mean < 32 ? "tiny segments" : mean < 4096 ? "segments" : "long segments";
    if (lengths == Lengths::kMixed) kind += ", mixed";
    if (lengths == Lengths::kFewLong) kind += ", a few long ones";
    return {kind, {n, mean}, [n, mean, lengths] { return segments_case(mean, {n}, lengths); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day19_sort",
        .title = "sorts of n keys: unsigned, 32 bits; then pairs, 64 bits, floats, segments",
        .default_size = {1 << 10},
        .bench_sizes = {{1 << 10}, {1 << 16}, {1 << 20}, {1 << 24}, {1 << 28}},
        .make_cases = all_cases(),
        .distributions = {
            {.name = "sorts",
             .text = "n keys, random, sorted, reversed, all equal, zipf; pairs, 64 bits, floats: any "
                     "n, tiny, large",
             .most = std::size_t{1} << 26,
             .most_on_cpu = 1 << 15,
             .ours = {"onesweep", "sort_keys", "sort_pairs"},
             .draw = random_sort},
            {.name = "segmented sorts",
             .text = "n keys in segments of 1 to 1,048,576 on average, of like or of mixed lengths, "
                     "or with a few long ones among them",
             .most = std::size_t{1} << 26,
             .most_on_cpu = 1 << 15,
             .ours = {"sort_segments"},
             .draw = random_segments}}};
    return course::run_program(program, argc, argv);
}
