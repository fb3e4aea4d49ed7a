// Every version on any number of ranks, against sums on the CPU: the same bits on all ranks.
#include "all_reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "group.hpp"

namespace {

using course::DataPattern;
using day51::Arrays;
using day51::Group;
using day51::OnDevice;

// On the CPU, before the stand-in reads it.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "9", 0);

constexpr std::uint64_t kSeed = 51;

int device_count() {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    return count;
}

// With fewer devices than ranks, ranks share them: then some versions are skipped, with the reason.
std::vector<int> devices_for(int ranks) {
    std::vector<int> devices(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
        devices[static_cast<std::size_t>(r)] = r % device_count();
    return devices;
}

enum class Place { kApart, kInPlace };

// What is tried: `calls` all-reduces, one after the other, of other values each. The host waits
// after the last one alone.
struct Trial {
    int ranks = 2;
    std::size_t count = 0;
    Place place = Place::kApart;
    int calls = 1;
    DataPattern pattern = DataPattern::kSignedUniform;
    std::size_t misaligned_by = 0;  // floats

    std::string text() const {
        return std::to_string(count) + " values on " + std::to_string(ranks) + " ranks, " +
               (place == Place::kInPlace ? "in place" : "out of place") +
               (misaligned_by == 0 ? "" : ", misaligned by " + std::to_string(misaligned_by)) + ", seed " +
               std::to_string(kSeed);
    }
};

using Values = std::vector<float>;

bool same_bits(const Values& a, const Values& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// The arrays of one rank, in the memory of its device.
struct OfRank {
    explicit OfRank(const Trial& t) : in(t.count, t.misaligned_by), out(t.count, t.misaligned_by) {
        for (int call = 0; call < t.calls; ++call) {
            inputs.emplace_back(t.count);
            results.emplace_back(t.count);
        }
    }
    course::GuardedBuffer<float> in;
    course::GuardedBuffer<float> out;
    std::vector<course::DeviceBuffer<float>> inputs;   // of each call
    std::vector<course::DeviceBuffer<float>> results;  // of each call
};

std::vector<Values> inputs_of(const Trial& trial, int call) {
    std::vector<Values> in;
    for (int r = 0; r < trial.ranks; ++r)
        in.push_back(course::make_data<float>(trial.count, trial.pattern,
                                              kSeed + static_cast<unsigned>(100 * call + r)));
    return in;
}

class VersionTest : public course::DeviceTestWithParam<const day51::Version*> {
  protected:
    bool is_nccl() const { return GetParam()->name == "nccl"; }

    // The sums as this version adds them. NCCL does not say in which order it adds.
    void expect_sums(const Values& got, const std::vector<Values>& in) const {
        const day51::Order order = GetParam()->name == "ring" ? day51::Order::kRing : day51::Order::kRanks;
        const Values expected = day51::sums_on_cpu(in, order);
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (std::memcmp(&got[i], &expected[i], sizeof(float)) == 0) continue;
            if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
            float bound = 0;
            for (const Values& values : in)
                bound += std::abs(values[i]) * 1.2e-7f * static_cast<float>(in.size());
            if (is_nccl() && std::abs(got[i] - expected[i]) <= bound) continue;
            FAIL() << "value " << i << " is " << got[i] << "; expected " << expected[i];
        }
    }

    // One for each number of ranks: the next trial begins where the one before has left the flags.
    Group& group_of(int ranks) {
        std::unique_ptr<Group>& group = groups[ranks];
        if (group == nullptr) group = std::make_unique<Group>(devices_for(ranks));
        return *group;
    }

    // In the stream of each rank, for each call: copy its input, spoil the output, reduce, copy the
    // result. So one call's input overwrites that of the call before, as soon as the stream lets
    // it.
    void expect_all_sums(const Trial& trial) {
        SCOPED_TRACE(trial.text());
        Group& group = group_of(trial.ranks);
        if (const std::string reason = GetParam()->cannot_run(day51::problem_of(group, trial.count));
            !reason.empty()) {
            not_run = reason;
            return;
        }
        std::vector<std::unique_ptr<OfRank>> memory;
        Arrays arrays;
        for (const day51::Rank& rank : group.ranks()) {
            const OnDevice on(rank.device);
            OfRank& mine = *memory.emplace_back(std::make_unique<OfRank>(trial));
            arrays.out.push_back(mine.out.span());
            if (trial.place == Place::kInPlace)
                arrays.in.emplace_back(mine.out.span());
            else
                arrays.in.emplace_back(mine.in.span());
        }
        for (int call = 0; call < trial.calls; ++call) {
            const std::vector<Values> in = inputs_of(trial, call);
            for (std::size_t r = 0; r < memory.size(); ++r) {
                const OnDevice on(group.ranks()[r].device);
                memory[r]->inputs[static_cast<std::size_t>(call)].copy_from(in[r]);
            }
        }
        for (int call = 0; call < trial.calls; ++call) {
            for (std::size_t r = 0; r < memory.size(); ++r)
                set_input(group.ranks()[r], *memory[r], trial, call);
            GetParam()->launcher(group, arrays);
            for (std::size_t r = 0; r < memory.size(); ++r)
                copy_result(group.ranks()[r], *memory[r], trial, call);
        }
        for (const day51::Rank& rank : group.ranks())
            CUDA_CHECK(cudaStreamSynchronize(rank.stream));
        for (int call = 0; call < trial.calls; ++call)
            expect_call(trial, call, memory);
        ran = true;
    }

    static void set_input(const day51::Rank& rank, OfRank& mine, const Trial& trial, int call) {
        if (trial.count == 0) return;
        const OnDevice on(rank.device);
        const std::size_t bytes = trial.count * sizeof(float);
        CUDA_CHECK(cudaMemsetAsync(mine.out.data(), 0xff, bytes, rank.stream));  // NaN
        float* const in = trial.place == Place::kInPlace ? mine.out.data() : mine.in.data();
        CUDA_CHECK(cudaMemcpyAsync(in, mine.inputs[static_cast<std::size_t>(call)].data(), bytes,
                                   cudaMemcpyDeviceToDevice, rank.stream));
    }

    static void copy_result(const day51::Rank& rank, OfRank& mine, const Trial& trial, int call) {
        if (trial.count == 0) return;
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaMemcpyAsync(mine.results[static_cast<std::size_t>(call)].data(), mine.out.data(),
                                   trial.count * sizeof(float), cudaMemcpyDeviceToDevice, rank.stream));
    }

    void expect_call(const Trial& trial, int call, const std::vector<std::unique_ptr<OfRank>>& memory) {
        const std::vector<Values> in = inputs_of(trial, call);
        Values of_first;
        for (std::size_t r = 0; r < memory.size(); ++r) {
            SCOPED_TRACE("rank " + std::to_string(r) + ", call " + std::to_string(call));
            OfRank& mine = *memory[r];
            const OnDevice on(static_cast<int>(r) % device_count());
            const Values got = mine.results[static_cast<std::size_t>(call)].to_host();
            ASSERT_NO_FATAL_FAILURE(expect_sums(got, in));
            if (r == 0) of_first = got;
            if (!is_nccl()) {
                ASSERT_TRUE(same_bits(got, of_first)) << "differs from rank 0 in its bits";
            }
            EXPECT_EQ(mine.out.damage(), "");
            if (trial.place == Place::kApart && call == trial.calls - 1) {
                EXPECT_EQ(mine.in.damage(), "");
                EXPECT_TRUE(same_bits(mine.in.to_host(), in[r])) << "the input has changed";
            }
        }
    }

    void SetUp() override {
        ran = false;
        not_run = "";
        course::DeviceTestWithParam<const day51::Version*>::SetUp();
    }
    void TearDown() override {
        groups.clear();
        course::DeviceTestWithParam<const day51::Version*>::TearDown();
        if (IsSkipped() || HasFailure()) return;
        if (!ran) GTEST_SKIP() << not_run;
    }
    std::map<int, std::unique_ptr<Group>> groups;
    bool ran = false;
    std::string not_run;
};

INSTANTIATE_TEST_SUITE_P(DayFiftyOne, VersionTest, course::each_of(day51::versions()), course::VersionName());
INSTANTIATE_TEST_SUITE_P(DayFiftyOnePeer, VersionTest, course::each_of(day51::peers()),
                         course::VersionName());

// None, fewer than ranks, parts that are empty or short, one more than a block has threads.
TEST_P(VersionTest, AnyLength) {
    for (const int ranks : {1, 2, 3, 4})
        for (const std::size_t count : {0, 1, 3, 4, 5, 511, 513, 1023, 1025})
            expect_all_sums({.ranks = ranks, .count = count});
}

TEST_P(VersionTest, InPlace) {
    for (const int ranks : {1, 2, 3, 4})
        for (const std::size_t count : {1, 3, 5, 1025})
            expect_all_sums({.ranks = ranks, .count = count, .place = Place::kInPlace, .calls = 2});
}

// Several rounds of the grid, in the kernels that go through an array in rounds.
TEST_P(VersionTest, ALargePrime) {
    expect_all_sums({.ranks = 2, .count = 20011});
    expect_all_sums({.ranks = 3, .count = 20011, .place = Place::kInPlace});
}

TEST_P(VersionTest, ArraysThatAreNotAligned) {
    for (const Place place : {Place::kApart, Place::kInPlace})
        expect_all_sums({.ranks = 3, .count = 1023, .place = place, .misaligned_by = 1});
}

// The input of one call overwrites that of the call before, and the output is NaN before each call:
// as soon as the rank's stream goes on, without waiting for others.
TEST_P(VersionTest, CallsOneAfterTheOther) {
    for (const Place place : {Place::kApart, Place::kInPlace}) {
        expect_all_sums({.ranks = 2, .count = 2500, .place = place, .calls = 4});
        expect_all_sums({.ranks = 4, .count = 37, .place = place, .calls = 5});
        expect_all_sums({.ranks = 3, .count = 9001, .place = place, .calls = 2});
    }
}

// More ranks than values, and so many that a sum is read in several loads at a time.
TEST_P(VersionTest, NineRanks) {
    expect_all_sums({.ranks = 9, .count = 5, .calls = 2});
    expect_all_sums({.ranks = 9, .count = 150, .place = Place::kInPlace});
}

// One call after the other in one group: lengths of other grids, and versions in turn. Blocks count
// their barriers separately.
void expect_sums_in_turn(const std::vector<const day51::Version*>& list, std::string& not_run) {
    Group group(devices_for(2));
    for (const std::size_t count : {1, 5000, 3, 0, 600, 5000}) {
        const Trial trial{.ranks = 2, .count = count};
        const std::vector<Values> in = inputs_of(trial, 0);
        const Values expected = day51::sums_on_cpu(in, day51::Order::kRanks);
        for (const day51::Version* version : list) {
            SCOPED_TRACE(version->name + ", " + trial.text());
            not_run = version->cannot_run(day51::problem_of(group, count));
            if (!not_run.empty()) return;
            std::vector<std::unique_ptr<OfRank>> memory;
            Arrays arrays;
            for (std::size_t r = 0; r < 2; ++r) {
                const OnDevice on(group.ranks()[r].device);
                memory.push_back(std::make_unique<OfRank>(trial));
                memory[r]->in.copy_from(in[r]);
                arrays.in.emplace_back(memory[r]->in.span());
                arrays.out.push_back(memory[r]->out.span());
            }
            version->launcher(group, arrays);
            for (std::size_t r = 0; r < 2; ++r) {
                CUDA_CHECK(cudaStreamSynchronize(group.ranks()[r].stream));
                const OnDevice on(group.ranks()[r].device);
                // Of two values, the order makes no difference.
                ASSERT_TRUE(same_bits(memory[r]->out.to_host(), expected)) << "rank " << r;
            }
        }
    }
}

TEST_P(VersionTest, LengthsInTurn) {
    ASSERT_NO_FATAL_FAILURE(expect_sums_in_turn({GetParam()}, not_run));
    ran = not_run.empty();
}

class Versions : public course::DeviceTest {};

// The grids of the kernels in what `queue` queues in the streams of a group, without running it.
template <class Queue>
std::vector<dim3> grids_of(const Group& group, Queue queue) {
    const OnDevice on(group.ranks()[0].device);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    group.begin_after(stream);
    queue();
    group.end_before(stream);
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaStreamDestroy(stream));
    std::size_t count = 0;
    CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    std::vector<dim3> grids;
    for (const cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type{};
        CUDA_CHECK(cudaGraphNodeGetType(node, &type));
        if (type != cudaGraphNodeTypeKernel) continue;
        cudaKernelNodeParams kernel{};
        CUDA_CHECK(cudaGraphKernelNodeGetParams(node, &kernel));
        grids.push_back(kernel.gridDim);
    }
    CUDA_CHECK(cudaGraphDestroy(graph));
    return grids;
}

// Blocks that wait for each other: the same number on all GPUs, and no more than run at the same
// time, which is two for each multiprocessor.
TEST_F(Versions, LaunchBlocksThatAllRun) {
    constexpr std::size_t kCount = 1'000'003;
    Group group(devices_for(3));
    std::vector<std::unique_ptr<OfRank>> memory;
    Arrays arrays;
    unsigned fewest = day51::kMostBlocks;
    for (const day51::Rank& rank : group.ranks()) {
        const OnDevice on(rank.device);
        OfRank& mine = *memory.emplace_back(std::make_unique<OfRank>(Trial{.count = kCount, .calls = 0}));
        arrays.in.emplace_back(mine.in.span());
        arrays.out.push_back(mine.out.span());
        fewest = std::min(fewest, 2 * rank.multiprocessors);
    }
    group.need_inboxes(fewest, 16 * (kCount / fewest + day51::kBlock));  // not while a stream captures
    for (const std::size_t version : {2, 3, 4, 5}) {
        const day51::Version& all = day51::versions()[version];
        if (const std::string reason = all.cannot_run(day51::problem_of(group, kCount)); !reason.empty())
            GTEST_SKIP() << reason;
        const std::vector<dim3> grids = grids_of(group, [&] { all.launcher(group, arrays); });
        ASSERT_EQ(grids.size(), 3u) << all.name;
        for (const dim3& grid : grids)
            EXPECT_EQ(grid.x, fewest) << all.name;
    }
}

TEST_F(Versions, CanTakeTurns) {
    std::string not_run;
    const std::span<const day51::Version> list = day51::versions();
    ASSERT_NO_FATAL_FAILURE(
        expect_sums_in_turn({&list[2], &list[3], &list[0], &list[2], &list[4], &list[5], &list[1], &list[4],
                             &list[3], &list[5], &list[5], &list[4], &list[3]},
                            not_run));
    if (!not_run.empty()) GTEST_SKIP() << not_run;
}

// What push has sent must not pass for packets: these values have the bits of the first numbers of
// calls.
TEST_F(Versions, DoNotTakeValuesForPackets) {
    constexpr std::size_t kCount = 2000;
    const day51::Version& push = day51::versions()[4];
    const day51::Version& packets = day51::versions()[5];
    Group group(devices_for(2));
    if (const std::string reason = packets.cannot_run(day51::problem_of(group, kCount)); !reason.empty())
        GTEST_SKIP() << reason;
    group.need_inboxes(8, 64 * day51::kBlock);  // once: where they grow, they are cleared
    std::vector<std::unique_ptr<OfRank>> memory;
    Arrays arrays;
    for (const day51::Rank& rank : group.ranks()) {
        const OnDevice on(rank.device);
        OfRank& mine = *memory.emplace_back(std::make_unique<OfRank>(Trial{.count = kCount, .calls = 0}));
        arrays.in.emplace_back(mine.in.span());
        arrays.out.push_back(mine.out.span());
    }
    const auto reduce = [&](const day51::Version& version, float value) {
        for (std::size_t r = 0; r < memory.size(); ++r) {
            const OnDevice on(group.ranks()[r].device);
            memory[r]->in.copy_from(Values(kCount, value));
        }
        version.launcher(group, arrays);
        for (const day51::Rank& rank : group.ranks())
            CUDA_CHECK(cudaStreamSynchronize(rank.stream));
    };
    for (const std::uint32_t call : {1, 2})
        reduce(push, std::bit_cast<float>(call));
    for (int call = 0; call < 2; ++call) {
        reduce(packets, 1.5f);
        for (std::size_t r = 0; r < memory.size(); ++r) {
            const OnDevice on(group.ranks()[r].device);
            ASSERT_TRUE(same_bits(memory[r]->out.to_host(), Values(kCount, 3.0f))) << "rank " << r;
        }
    }
}

// Only the number counts, and only that of this call. All inboxes hold packets of another number
// here, whose values have the bits of the right one.
TEST_F(Versions, TakePacketsOfThisCallAlone) {
    constexpr std::size_t kCount = 2000;
    constexpr std::uint32_t kThisCall = 1;
    const day51::Version& packets = day51::versions()[5];
    for (const std::uint32_t other : {kThisCall - 1, kThisCall + 1}) {
        SCOPED_TRACE("packets of call " + std::to_string(other));
        Group group(devices_for(2));
        if (const std::string reason = packets.cannot_run(day51::problem_of(group, kCount)); !reason.empty())
            GTEST_SKIP() << reason;
        group.need_inboxes(8, 64 * day51::kBlock);
        const std::size_t bytes = day51::kInboxKinds * 2 * 2 * group.inbox_blocks() * group.inbox_bytes();
        std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t), kThisCall);
        for (std::size_t i = 3; i < words.size(); i += 4)
            words[i] = other;
        std::vector<std::unique_ptr<OfRank>> memory;
        Arrays arrays;
        for (const day51::Rank& rank : group.ranks()) {
            const OnDevice on(rank.device);
            CUDA_CHECK(cudaMemcpy(rank.inbox, words.data(), bytes, cudaMemcpyHostToDevice));
            OfRank& mine = *memory.emplace_back(std::make_unique<OfRank>(Trial{.count = kCount, .calls = 0}));
            mine.in.copy_from(Values(kCount, 2.0f));
            arrays.in.emplace_back(mine.in.span());
            arrays.out.push_back(mine.out.span());
        }
        packets.launcher(group, arrays);
        for (std::size_t r = 0; r < memory.size(); ++r) {
            CUDA_CHECK(cudaStreamSynchronize(group.ranks()[r].stream));
            const OnDevice on(group.ranks()[r].device);
            ASSERT_TRUE(same_bits(memory[r]->out.to_host(), Values(kCount, 4.0f))) << "rank " << r;
        }
    }
}

TEST_P(VersionTest, DataPatterns) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
                                      DataPattern::kSorted, DataPattern::kWithNan, DataPattern::kWithInf})
        expect_all_sums({.ranks = 3, .count = 300, .pattern = pattern});
}

TEST_P(VersionTest, RandomLengths) {
    course::Random random(kSeed);
    for (int i = 0; i < 6; ++i)
        expect_all_sums({.ranks = static_cast<int>(1 + random.below(4)),
                         .count = random.below(5000),
                         .place = random.below(2) == 0 ? Place::kApart : Place::kInPlace,
                         .calls = 2});
}

// A graph repeats the launches with the arguments they had: numbers that count on must be in
// memory.
TEST_P(VersionTest, RepeatsInAGraph) {
    if (GetParam()->name == "gather" || GetParam()->name == "ring")
        GTEST_SKIP() << "no graph can record cudaMemcpyPeerAsync";
    constexpr std::size_t kCount = 1025;
    const Trial trial{.ranks = 2, .count = kCount};
    Group group(devices_for(2));
    if (not_run = GetParam()->cannot_run(day51::problem_of(group, kCount)); !not_run.empty()) return;
    std::vector<std::unique_ptr<OfRank>> memory;
    Arrays arrays;
    for (const day51::Rank& rank : group.ranks()) {
        const OnDevice on(rank.device);
        OfRank& mine = *memory.emplace_back(std::make_unique<OfRank>(trial));
        arrays.in.emplace_back(mine.in.span());
        arrays.out.push_back(mine.out.span());
    }
    const OnDevice on(group.ranks()[0].device);
    GetParam()->launcher(group, arrays);  // allocates what it needs
    for (const day51::Rank& rank : group.ranks())
        CUDA_CHECK(cudaStreamSynchronize(rank.stream));
    const course::CapturedWork graph([&](cudaStream_t stream) {
        group.begin_after(stream);
        GetParam()->launcher(group, arrays);
        group.end_before(stream);
    });
    for (int run = 0; run < 3; ++run) {
        const std::vector<Values> in = inputs_of(trial, run);
        for (std::size_t r = 0; r < 2; ++r) {
            memory[r]->in.copy_from(in[r]);
            memory[r]->out.spoil();
        }
        graph.run(2);
        for (std::size_t r = 0; r < 2; ++r)
            ASSERT_NO_FATAL_FAILURE(expect_sums(memory[r]->out.to_host(), in)) << "run " << run;
        ran = true;
    }
}

TEST_P(VersionTest, LeavesTheCurrentDevice) {
    const int last = device_count() - 1;
    const OnDevice on(last);
    expect_all_sums({.ranks = 2, .count = 10});
    int device = -1;
    CUDA_CHECK(cudaGetDevice(&device));
    EXPECT_EQ(device, last);
}

TEST(Part, CoversTheArrayAndBeginsAtSixteenBytes) {
    for (const int ranks : {1, 2, 3, 4, 7, 64}) {
        for (const std::size_t count : {0, 1, 3, 4, 5, 8, 9, 63, 64, 65, 1023, 20011}) {
            std::size_t end = 0;
            for (int r = 0; r < ranks; ++r) {
                const day51::Part part = day51::part_of(count, ranks, r);
                EXPECT_EQ(part.begin, end);
                EXPECT_TRUE(part.begin % 4 == 0 || part.size() == 0);
                EXPECT_LE(part.size(), count / static_cast<std::size_t>(ranks) + 4);
                end = part.end;
            }
            EXPECT_EQ(end, count) << ranks << " ranks";
        }
    }
}

class Refusals : public course::DeviceTest {};

TEST_F(Refusals, InboxesTakeUpToAMillionValues) {
    for (const std::size_t version : {4, 5}) {
        EXPECT_EQ(day51::versions()[version].cannot_run({.count = day51::kMostSent, .ranks = 2}), "");
        EXPECT_EQ(day51::versions()[version].cannot_run({.count = day51::kMostSent + 1, .ranks = 2}),
                  "takes up to 1048576 values; there are 1048577");
    }
}

TEST_F(Refusals, NameTheArgument) {
    const int count = device_count();
    const std::vector<int> none;
    EXPECT_EQ(course::refusal([&] { const Group group(none); }),
              "Group: there are 0 devices; expected 1 to 16");
    const std::vector<int> unknown{0, count};
    EXPECT_EQ(
        course::refusal([&] { const Group group(unknown); }),
        "Group: devices[1] is " + std::to_string(count) + "; expected 0 to " + std::to_string(count - 1));
}

TEST_F(Refusals, NameTheArray) {
    Group group(std::vector<int>{0, 0});
    course::DeviceBuffer<float> memory(20);
    const auto values = [&](std::size_t begin, std::size_t size) {
        return memory.span().subspan(begin, size);
    };
    const auto refusal_of = [&](const Arrays& arrays) {
        return course::refusal([&] { day51::versions()[0].launcher(group, arrays); });
    };
    EXPECT_EQ(refusal_of({{values(0, 5)}, {values(5, 5), values(10, 5)}}),
              "all_reduce: in has 1 arrays; expected 2");
    EXPECT_EQ(refusal_of({{values(0, 5), values(5, 4)}, {values(0, 5), values(5, 5)}}),
              "all_reduce: in[1] has 4 values; expected 5, as in[0]");
    EXPECT_EQ(refusal_of({{values(0, 5), values(5, 5)}, {values(0, 5), values(7, 5)}}),
              "all_reduce: out[1] overlaps in[1]; expected the same memory, or no common element");
}

TEST_F(Refusals, ARankEachNeedsAGpuEach) {
    Group group(std::vector<int>{0, 0});
    EXPECT_TRUE(group.shares_devices());
    const day51::Problem problem = day51::problem_of(group, 4);
    EXPECT_EQ(day51::versions()[2].cannot_run(problem), "needs a GPU for each rank; 2 ranks share GPUs");
    EXPECT_EQ(day51::versions()[3].cannot_run({.count = 4, .ranks = 2, .peers = false}),
              "needs peer access between all GPUs");
    course::DeviceBuffer<float> memory(8);
    const auto half = [&](std::size_t begin) { return memory.span().subspan(begin, 4); };
    EXPECT_EQ(course::refusal([&] {
                  day51::versions()[2].launcher(group, {{half(0), half(4)}, {half(0), half(4)}});
              }),
              "all_reduce: the version needs a GPU for each rank; 2 ranks share GPUs");
}

}  // namespace
