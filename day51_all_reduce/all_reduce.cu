// Day 51: which version a call launches on which GPU, checks of arguments, the list of versions.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "all_reduce.cuh"
#include "beyond/inboxes.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "copies.hpp"
#include "group.hpp"

namespace day51 {
namespace {

using course::require;

Team team_of(const Group& group, int rank) {
    Team team{rank, group.size(), {}};
    for (std::size_t r = 0; r < group.ranks().size(); ++r)
        team.signals[r] = group.ranks()[r].signals;
    return team;
}

Pointers pointers_to(const Arrays& arrays) {
    Pointers pointers{};
    for (std::size_t r = 0; r < arrays.in.size(); ++r) {
        pointers.in[r] = arrays.in[r].data();
        pointers.out[r] = arrays.out[r].data();
    }
    return pointers;
}

bool are_aligned(const Arrays& arrays) {
    return std::ranges::all_of(arrays.in, [](auto in) { return course::is_aligned(in.data(), 16); }) &&
           std::ranges::all_of(arrays.out, [](auto out) { return course::is_aligned(out.data(), 16); });
}

// Of the smallest GPU: all have the same number of blocks.
unsigned fewest_multiprocessors(const Group& group) {
    unsigned fewest = group.ranks()[0].multiprocessors;
    for (const Rank& rank : group.ranks())
        fewest = std::min(fewest, rank.multiprocessors);
    return fewest;
}

// Calls launch(rank, its number) on the GPU of each rank.
template <class Launch>
void on_all_ranks(const Group& group, Launch launch) {
    for (int r = 0; r < group.size(); ++r) {
        const Rank& rank = group.ranks()[static_cast<std::size_t>(r)];
        const OnDevice on(rank.device);
        launch(rank, r);
        CUDA_CHECK_LAUNCH();
    }
}

void one_shot_kernels(Group& group, const Arrays& arrays) {
    on_all_ranks(group, [&](const Rank& rank, int r) {
        const auto launch = are_aligned(arrays) ? launch_one_shot<4> : launch_one_shot<1>;
        launch(team_of(group, r), pointers_to(arrays), arrays.in[0].size(), fewest_multiprocessors(group),
               rank.stream);
    });
}

void two_shot_kernels(Group& group, const Arrays& arrays) {
    on_all_ranks(group, [&](const Rank& rank, int r) {
        const auto launch = are_aligned(arrays) ? launch_two_shot<4> : launch_two_shot<1>;
        launch(team_of(group, r), pointers_to(arrays), arrays.in[0].size(), fewest_multiprocessors(group),
               rank.stream);
    });
}

// Room for `bytes` of each thread and round, `width` values; all ranks' inboxes.
Inboxes inboxes_for(Group& group, Sent kind, unsigned blocks, std::size_t count, int width,
                    std::size_t bytes) {
    const std::size_t rounds = course::ceil_div(count, std::size_t{blocks} * kBlock * width);
    group.need_inboxes(blocks, rounds * kBlock * bytes);
    Inboxes inboxes{{}, group.inbox_blocks(), group.inbox_bytes()};
    const std::size_t of_kind = group.ranks().size() * 2 * inboxes.blocks * inboxes.bytes;
    for (std::size_t r = 0; r < group.ranks().size(); ++r)
        inboxes.of[r] = group.ranks()[r].inbox + static_cast<std::size_t>(kind) * of_kind;
    return inboxes;
}

template <int kWidth>
void push_packs(Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    const unsigned blocks = blocks_that_wait(count, 2 * kWidth, fewest_multiprocessors(group));
    const Inboxes inboxes = inboxes_for(group, Sent::kValues, blocks, count, kWidth, kWidth * sizeof(float));
    on_all_ranks(group, [&](const Rank& rank, int r) {
        const auto number = static_cast<std::size_t>(r);
        launch_push<kWidth>(team_of(group, r), arrays.in[number].data(), arrays.out[number].data(), inboxes,
                            count, blocks, rank.stream);
    });
}

void push_kernels(Group& group, const Arrays& arrays) {
    const bool whole = arrays.in[0].size() % 4 == 0 && are_aligned(arrays);
    whole ? push_packs<4>(group, arrays) : push_packs<1>(group, arrays);
}

void packets_kernels(Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    const unsigned blocks = blocks_that_wait(count, kOfPacket, fewest_multiprocessors(group));
    const Inboxes inboxes = inboxes_for(group, Sent::kPackets, blocks, count, kOfPacket, sizeof(Packet));
    on_all_ranks(group, [&](const Rank& rank, int r) {
        const auto number = static_cast<std::size_t>(r);
        launch_packets(team_of(group, r), arrays.in[number].data(), arrays.out[number].data(), inboxes, count,
                       blocks, rank.stream);
    });
}

// --- The list ------------------------------------------------------------------------------------

// The least work of one GPU: read its array, write the sums. The link is not included.
course::Work work(const Problem& problem) {
    const double floats = static_cast<double>(problem.count) * problem.calls;
    return {.bytes = 2 * sizeof(float) * floats,
            .written = sizeof(float) * floats,
            .flops = (problem.ranks - 1) * floats / problem.ranks};
}

std::string a_device_each(const Problem& problem) {
    return problem.shares_devices
               ? "needs a GPU for each rank; " + std::to_string(problem.ranks) + " ranks share GPUs"
               : "";
}

std::string peers_with_a_device_each(const Problem& problem) {
    return problem.peers ? a_device_each(problem) : "needs peer access between all GPUs";
}

std::string few_values(const Problem& problem) {
    if (problem.count > kMostSent)
        return "takes up to " + std::to_string(kMostSent) + " values; there are " +
               std::to_string(problem.count);
    return peers_with_a_device_each(problem);
}

std::string with_nccl(const Problem& problem) {
#ifdef COURSE_HAS_NCCL
    return a_device_each(problem);
#else
    static_cast<void>(problem);
    return "was built without NCCL: nccl.h or libnccl was not found";
#endif
}

void check(const Group& group, const Arrays& arrays) {
    const std::size_t ranks = group.ranks().size();
    require(arrays.in.size() == ranks, "all_reduce: in has ", arrays.in.size(), " arrays; expected ", ranks);
    require(arrays.out.size() == ranks, "all_reduce: out has ", arrays.out.size(), " arrays; expected ",
            ranks);
    const std::size_t count = arrays.in[0].size();
    for (std::size_t r = 0; r < ranks; ++r) {
        require(arrays.in[r].size() == count, "all_reduce: in[", r, "] has ", arrays.in[r].size(),
                " values; expected ", count, ", as in[0]");
        require(arrays.out[r].size() == count, "all_reduce: out[", r, "] has ", arrays.out[r].size(),
                " values; expected ", count, ", as in[0]");
        const bool in_place = arrays.in[r].data() == arrays.out[r].data();
        require(in_place || !course::overlap(arrays.in[r], arrays.out[r]), "all_reduce: out[", r,
                "] overlaps in[", r, "]; expected the same memory, or no common element");
    }
}

// Checks the requirements of all versions. With one rank, the sum is a copy.
template <Launcher kLaunch, std::string (*kConstraint)(const Problem&) = nullptr>
void launch(Group& group, const Arrays& arrays) {
    check(group, arrays);
    const std::size_t count = arrays.in[0].size();
    if constexpr (kConstraint != nullptr) {
        const std::string reason = kConstraint(problem_of(group, count));
        require(reason.empty(), "all_reduce: the version ", reason);
    }
    if (count == 0) return;
    if (group.size() > 1) return kLaunch(group, arrays);
    if (arrays.in[0].data() != arrays.out[0].data())
        CUDA_CHECK(cudaMemcpyAsync(arrays.out[0].data(), arrays.in[0].data(), count * sizeof(float),
                                   cudaMemcpyDeviceToDevice, group.ranks()[0].stream));
}

}  // namespace

std::span<const Version> versions() {
    static const std::array<Version, 6> list = {{
        {"gather", "one GPU fetches all arrays, adds, and sends the sums", launch<gather>, work},
        {"ring", "each GPU adds up a part, and sends to the next one", launch<ring>, work},
        {"one_shot", "one kernel: each GPU reads all arrays, and adds up everything",
         launch<one_shot_kernels, peers_with_a_device_each>, work, peers_with_a_device_each},
        {"two_shot", "one kernel: each GPU adds up a part for all",
         launch<two_shot_kernels, peers_with_a_device_each>, work, peers_with_a_device_each},
        {"push", "one kernel: values sent to inboxes, one barrier", launch<push_kernels, few_values>, work,
         few_values},
        {"packets", "one kernel: values sent with the number of the call, no barrier",
         launch<packets_kernels, few_values>, work, few_values},
    }};
    return list;
}

std::span<const Version> peers() {
    static const std::array<Version, 1> list = {
        {{"nccl", "ncclAllReduce", launch<nccl, with_nccl>, work, with_nccl}}};
    return list;
}

}  // namespace day51
