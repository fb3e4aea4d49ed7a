// Day 18's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <algorithm>
#include <memory>
#include <parallel/algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/expected_output.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/device/device_buffer.hpp"
#include "merge.hpp"
#include "merge_peer.hpp"
#include "merge_plain_loop.hpp"

namespace {

using course::DeviceBuffer;
using day18::Key;
using day18::Operation;
using day18::Value;

// What the two arrays are; both are as long, but for kUneven, where b is 1,000 times as long as a.
enum class Shape { kRandom, kAFirst, kUneven, kAllEqual };

std::vector<Key> sorted_keys(std::size_t n, Shape shape, bool is_b) {
    const std::vector<std::uint32_t> numbers = course::sorted_numbers(n, is_b ? 1018 : 18);
    std::vector<Key> keys(n);
    course::for_each_index(n, [&](std::size_t i) {
        const auto key = static_cast<Key>(numbers[i] ^ 0x80000000U);
        keys[i] = key;
        if (shape == Shape::kAllEqual) keys[i] = 7;
        if (shape == Shape::kAFirst) keys[i] = is_b ? key / 2 + (1 << 30) : key / 2 - (1 << 30) - 1;
    });
    return keys;
}

struct Data {
    Data(Operation operation, Shape shape, std::size_t total)
        : m(shape == Shape::kUneven ? total / 1001 : total / 2),
          n(total - m),
          has_values(operation == Operation::kPairs),
          a_keys(sorted_keys(m, shape, false)),
          b_keys(sorted_keys(n, shape, true)),
          a_values(has_values ? m : 0),
          b_values(has_values ? n : 0),
          copy_from(has_values ? 2 * total : total),
          copy_to(has_values ? 2 * total : total),
          out_keys(total),
          out_values(has_values ? total : 0),
          workspace(total) {
        course::for_each_index(a_values.size(), [&](std::size_t i) { a_values[i] = static_cast<Value>(i); });
        course::for_each_index(b_values.size(),
                               [&](std::size_t i) { b_values[i] = static_cast<Value>(m + i); });
        a_keys_device = DeviceBuffer<Key>(std::span<const Key>(a_keys));
        b_keys_device = DeviceBuffer<Key>(std::span<const Key>(b_keys));
        a_values_device = DeviceBuffer<Value>(std::span<const Value>(a_values));
        b_values_device = DeviceBuffer<Value>(std::span<const Value>(b_values));
        std::vector<Key> keys(total);
        std::vector<Value> values(has_values ? total : 0);
        day18::merge_on_cpu({a_keys, a_values}, {b_keys, b_values}, {keys, values});
        expected_keys = course::ExpectedOutput<Key>(std::move(keys));
        expected_values = course::ExpectedOutput<Value>(std::move(values));
        CUDA_CHECK(cudaMemset(copy_from.data(), 1, copy_from.bytes()));
    }

    day18::Sorted a() const { return {a_keys_device.span(), a_values_device.span()}; }
    day18::Sorted b() const { return {b_keys_device.span(), b_values_device.span()}; }
    day18::Output out() { return {out_keys.span(), out_values.span()}; }

    std::size_t m;
    std::size_t n;
    bool has_values;
    std::vector<Key> a_keys;
    std::vector<Key> b_keys;
    std::vector<Value> a_values;
    std::vector<Value> b_values;
    course::ExpectedOutput<Key> expected_keys;
    course::ExpectedOutput<Value> expected_values;
    DeviceBuffer<Key> a_keys_device{0};
    DeviceBuffer<Key> b_keys_device{0};
    DeviceBuffer<Value> a_values_device{0};
    DeviceBuffer<Value> b_values_device{0};
    DeviceBuffer<Key> copy_from;
    DeviceBuffer<Key> copy_to;
    course::GuardedBuffer<Key> out_keys;
    course::GuardedBuffer<Value> out_values;
    day18::Workspace workspace;
};

// Of keys and values, on the host or on the device.
template <class Keys, class Values>
course::VerifyResult same(const Data& data, Keys& keys, Values& values) {
    const course::VerifyResult result = data.expected_keys.verify(keys);
    return result.ok() ? data.expected_values.verify(values) : result;
}

course::Case merge_case(Operation operation, Shape shape, const std::string& name, const course::Dims& size) {
    const std::size_t total = course::only_extent(size, "elements of the output");
    course::UsualCase<Data> usual(name + " " + std::to_string(total), "int32",
                                  std::make_shared<Data>(operation, shape, total));
    Data& data = *usual.data;
    usual.output_in_place(&Data::out_keys, [](Data& d) {
        course::VerifyResult result = same(d, d.out_keys, d.out_values);
        result.damage = d.out_values.damage();
        return result;
    });
    usual.also_spoil([](Data& d) { d.out_values.spoil(); });

    std::vector<day18::Version> versions;
    for (const day18::Version& version : day18::versions())
        if (version.launcher.operation == operation) versions.push_back(version);
    const course::Work work = versions.front().work(total);
    usual.add(day18::cub_merge(operation, data.a(), data.b(), data.out(), work));
    usual.versions(versions, total, [](const day18::Version& version, Data& d, cudaStream_t stream) {
        version.launcher.launch(d.a(), d.b(), d.out(), d.workspace, stream);
    });
    usual.plain_loop(
        work, static_cast<double>(total) * 5e-9,
        [total, values = data.has_values ? total : 0] {
            return std::pair(course::unwritten<Key>(total), course::unwritten<Value>(values));
        },
        [](const Data& d, auto& out, int threads) {
            day18::merge_plainly({d.a_keys, d.a_values}, {d.b_keys, d.b_values}, {out.first, out.second},
                                 threads);
        },
        [](const Data& d, const auto& out) { return same(d, out.first, out.second); });
    usual.limit_copy(&Data::copy_from, &Data::copy_to);
    return usual.result;
}

// --- Many arrays ---------------------------------------------------------------------------------

constexpr std::size_t kArrays = 8;

struct ManyData {
    explicit ManyData(std::size_t total)
        : copy_from(kRounds * total), copy_to(kRounds * total), out(total), spare(total), workspace(total) {
        std::vector<Key> all;
        for (std::size_t r = 0; r < kArrays; ++r) {
            const std::size_t size = total * (r + 1) / kArrays - total * r / kArrays;
            std::vector<Key> keys = sorted_keys(size, Shape::kRandom, r % 2 == 1);
            for (Key& key : keys)
                key ^= static_cast<Key>(r / 2);  // pairs of arrays differ
            std::ranges::sort(keys);
            all.insert(all.end(), keys.begin(), keys.end());
            arrays.emplace_back(std::span<const Key>(keys));
            runs.push_back({arrays.back().span(), {}});
        }
        __gnu_parallel::sort(all.begin(), all.end());
        expected = course::ExpectedOutput<Key>(std::move(all));
        CUDA_CHECK(cudaMemset(copy_from.data(), 1, copy_from.bytes()));
    }

    static constexpr std::size_t kRounds = 3;  // of merges of two
    std::vector<DeviceBuffer<Key>> arrays;
    std::vector<day18::Sorted> runs;
    course::ExpectedOutput<Key> expected;
    DeviceBuffer<Key> copy_from;
    DeviceBuffer<Key> copy_to;
    course::GuardedBuffer<Key> out;
    course::GuardedBuffer<Key> spare;
    day18::Workspace workspace;
};

// The same tree of merges, by CUB.
course::Contestant cub_tree(ManyData& data, const course::Work& work) {
    std::vector<course::Contestant> merges;
    std::vector<day18::Sorted> current = data.runs;
    for (std::size_t round = ManyData::kRounds; round > 0; --round) {
        const course::DeviceSpan<Key> to = round % 2 == 1 ? data.out.span() : data.spare.span();
        std::vector<day18::Sorted> merged;
        std::size_t offset = 0;
        for (std::size_t r = 0; r < current.size(); r += 2) {
            const std::size_t size = current[r].keys.size() + current[r + 1].keys.size();
            const course::DeviceSpan<Key> part = to.subspan(offset, size);
            merges.push_back(
                day18::cub_merge(Operation::kKeys, current[r], current[r + 1], {part, {}}, work));
            merged.push_back({part, {}});
            offset += size;
        }
        current = merged;
    }
    course::Contestant tree = merges.front();
    tree.launch = [merges](cudaStream_t stream) {
        for (const course::Contestant& merge : merges)
            merge.launch(stream);
    };
    return tree;
}

course::Case many_case(const course::Dims& size) {
    const std::size_t total = course::only_extent(size, "elements of the output");
    course::UsualCase<ManyData> usual("keys of 8 arrays " + std::to_string(total), "int32",
                                      std::make_shared<ManyData>(total));
    usual.output_in_place(&ManyData::out, [](ManyData& d) {
        course::VerifyResult result = d.expected.verify(d.out);
        result.damage = d.spare.damage();
        return result;
    });
    usual.also_spoil([](ManyData& d) { d.spare.spoil(); });
    const double bytes = static_cast<double>(total) * sizeof(Key);
    const course::Work work{.bytes = 2 * ManyData::kRounds * bytes, .written = ManyData::kRounds * bytes};
    usual.add(cub_tree(*usual.data, work));
    usual.add({.name = "merge_many",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day18::merge_many(Operation::kKeys, data->runs, {data->out.span(), {}},
                                         {data->spare.span(), {}}, data->workspace, stream);
                   },
               .work = work});
    usual.limit_copy(&ManyData::copy_from, &ManyData::copy_to, {}, "cudaMemcpy_24_bytes_an_element");
    return usual.result;
}

std::vector<std::function<course::Case(const course::Dims&)>> all_cases() {
    std::vector<std::function<course::Case(const course::Dims&)>> cases;
    const auto add = [&cases](Operation operation, Shape shape, const std::string& name) {
        cases.push_back([=](const course::Dims& size) { return merge_case(operation, shape, name, size); });
    };
    add(Operation::kKeys, Shape::kRandom, "keys random");
    add(Operation::kKeys, Shape::kAFirst, "keys a first");
    add(Operation::kKeys, Shape::kUneven, "keys 1:1000");
    add(Operation::kKeys, Shape::kAllEqual, "keys all equal");
    add(Operation::kPairs, Shape::kRandom, "pairs random");
    add(Operation::kPairs, Shape::kAFirst, "pairs a first");
    add(Operation::kPairs, Shape::kUneven, "pairs 1:1000");
    add(Operation::kPairs, Shape::kAllEqual, "pairs all equal");
    cases.emplace_back(many_case);
    return cases;
}

course::RandomProblem random_merge(course::Draw& draw) {
    const auto [kind, size] = course::draw_length(draw);
    const auto cases = all_cases();
    return {kind, size, [make = draw.one_of(cases), size = size] { return make(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day18_merge",
                                  .title = "merges to n 32-bit integers; random: two halves, evenly spread",
                                  .default_size = {1 << 16},
                                  .bench_sizes = {{1 << 17}, {1 << 21}, {1 << 25}, {1 << 28}},
                                  .make_cases = all_cases(),
                                  .distributions = {{.name = "merges",
                                                     .text = "n keys or pairs, of two halves, one after the "
                                                             "other, 1:1000, all equal, of 8 arrays: any n, "
                                                             "tiny, large",
                                                     .most = std::size_t{1} << 27,
                                                     .most_on_cpu = 1 << 17,
                                                     .ours = {"bulk_merge", "overlapped", "bulk_merge_pairs",
                                                              "overlapped_pairs", "merge_many"},
                                                     .draw = random_merge}}};
    return course::run_program(program, argc, argv);
}
