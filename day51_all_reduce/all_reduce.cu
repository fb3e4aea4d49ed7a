// Day 51, the second half of the lesson: the versions. One host thread drives all ranks. Each rank
// has a stream. Events mark what is complete in it; other streams wait for events,
// the host does not wait.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "all_reduce.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "group.hpp"
#include "inboxes.cuh"
#ifdef COURSE_HAS_NCCL
#include <nccl.h>
#endif

namespace day51 {
namespace {

using course::require;

// Copies values between ranks, in the stream of `by`.
void copy(const Rank& to, float* target, const Rank& from, const float* source, std::size_t count,
          const Rank& by) {
    if (count == 0) return;
    CUDA_CHECK(cudaMemcpyPeerAsync(target, to.device, source, from.device, count * sizeof(float), by.stream));
}

// sum = a + b on a rank's GPU.
void add_on(const Rank& rank, const float* a, const float* b, float* sum, std::size_t count) {
    if (count == 0) return;
    const OnDevice on(rank.device);
    add<<<course::blocks_for(count, kBlock), kBlock, 0, rank.stream>>>(a, b, sum, count);
    CUDA_CHECK_LAUNCH();
}

// --- One GPU adds --------------------------------------------------------------------------------

// Idea: the first GPU fetches one array after the other, adds, and sends the sums to all.
// Still limits it: everything crosses the link of one GPU, 2 (n - 1) arrays. The others wait.
void gather(Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    group.need_staging(count);
    const std::vector<Rank>& ranks = group.ranks();
    const Rank& root = ranks[0];
    for (const Rank& rank : ranks) {
        CUDA_CHECK(cudaEventRecord(rank.ready, rank.stream));
        CUDA_CHECK(cudaStreamWaitEvent(root.stream, rank.ready));
    }
    for (std::size_t r = 1; r < ranks.size(); ++r) {
        copy(root, root.staging, ranks[r], arrays.in[r].data(), count, root);
        const float* const so_far = r == 1 ? arrays.in[0].data() : arrays.out[0].data();
        add_on(root, so_far, root.staging, arrays.out[0].data(), count);
    }
    for (std::size_t r = 1; r < ranks.size(); ++r)
        copy(ranks[r], arrays.out[r].data(), root, arrays.out[0].data(), count, root);
    CUDA_CHECK(cudaEventRecord(root.ready, root.stream));
    for (const Rank& rank : ranks)
        CUDA_CHECK(cudaStreamWaitEvent(rank.stream, root.ready));
}

// --- A ring --------------------------------------------------------------------------------------

// The parts of the arrays go round the ring. Rank r sends to rank r + 1, and receives from r - 1.
struct Ring {
    const Group& group;
    const Arrays& arrays;

    int size() const { return group.size(); }
    int round(int number) const { return (number % size() + size()) % size(); }
    const Rank& rank(int r) const { return group.ranks()[static_cast<std::size_t>(round(r))]; }
    const float* in(int r) const { return arrays.in[static_cast<std::size_t>(round(r))].data(); }
    float* out(int r) const { return arrays.out[static_cast<std::size_t>(round(r))].data(); }
    Part part(int number) const { return part_of(arrays.in[0].size(), size(), round(number)); }
};

// In step s, rank r sends part r - s to the next rank, which adds its own values. After n - 1 steps
// the sum of part p has been at all ranks: it began at rank p, and is complete at rank p - 1.
// Two loops over the ranks: all send before the first one waits for what it receives.
void reduce_scatter(const Ring& ring) {
    for (int step = 0; step + 1 < ring.size(); ++step) {
        for (int r = 0; r < ring.size(); ++r) {
            const Rank& from = ring.rank(r);
            const Rank& to = ring.rank(r + 1);
            const Part part = ring.part(r - step);
            const float* const values = step == 0 ? ring.in(r) : ring.out(r);
            // The next rank has only one place to receive: has it added what is there?
            if (step > 0) CUDA_CHECK(cudaStreamWaitEvent(from.stream, to.added));
            copy(to, to.staging, from, values + part.begin, part.size(), from);
            CUDA_CHECK(cudaEventRecord(from.sent, from.stream));
        }
        for (int r = 0; r < ring.size(); ++r) {
            const Rank& rank = ring.rank(r);
            const Part part = ring.part(r - 1 - step);
            CUDA_CHECK(cudaStreamWaitEvent(rank.stream, ring.rank(r - 1).sent));
            add_on(rank, rank.staging, ring.in(r) + part.begin, ring.out(r) + part.begin, part.size());
            CUDA_CHECK(cudaEventRecord(rank.added, rank.stream));
        }
    }
}

// Rank r has the sums of part r + 1. They go round once more, now straight to where they belong. No
// event is needed before a sum overwrites the output of the next rank: the sum contains the values
// that the next rank has sent on, so its own copy of them is complete. At the end each rank has
// waited, from neighbour to neighbour, for all others: the next all-reduce may use the staging
// areas at once.
void all_gather(const Ring& ring) {
    for (int step = 0; step + 1 < ring.size(); ++step) {
        for (int r = 0; r < ring.size(); ++r) {
            const Rank& from = ring.rank(r);
            const Part part = ring.part(r + 1 - step);
            copy(ring.rank(r + 1), ring.out(r + 1) + part.begin, from, ring.out(r) + part.begin, part.size(),
                 from);
            CUDA_CHECK(cudaEventRecord(from.sent, from.stream));
        }
        for (int r = 0; r < ring.size(); ++r)
            CUDA_CHECK(cudaStreamWaitEvent(ring.rank(r).stream, ring.rank(r - 1).sent));
    }
}

// Idea: all links work at the same time. Each GPU sends 1 / n of an array 2 (n - 1) times.
// Cost removed: the link of one GPU, through which everything went.
// Still limits it: 2 (n - 1) steps, one after the other, each with a copy, an event and a launch.
// The link is idle while a GPU adds.
void ring(Group& group, const Arrays& arrays) {
    group.need_staging(part_of(arrays.in[0].size(), group.size(), 0).size());
    const Ring all{group, arrays};
    reduce_scatter(all);
    all_gather(all);
}

// --- One kernel per GPU --------------------------------------------------------------------------

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

// Blocks for `count` values, at least `width` for each thread: the same number on every GPU, and no
// more than any of them runs at the same time. Blocks wait for each other.
unsigned blocks_for_all(const Group& group, std::size_t count, int width) {
    const std::size_t threads = course::ceil_div(count, static_cast<std::size_t>(width));
    std::size_t blocks = std::min(course::ceil_div(threads, std::size_t{kBlock}), std::size_t{kMostBlocks});
    for (const Rank& rank : group.ranks())
        blocks = std::min(blocks, std::size_t{rank.multiprocessors} * kBlocksOnEach);
    return static_cast<unsigned>(blocks);
}

template <int kWidth>
void launch_one_shot(const Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    const unsigned blocks = blocks_for_all(group, count, kWidth);
    for (int r = 0; r < group.size(); ++r) {
        const Rank& rank = group.ranks()[static_cast<std::size_t>(r)];
        const OnDevice on(rank.device);
        one_shot<kWidth><<<blocks, kBlock, 0, rank.stream>>>(team_of(group, r), pointers_to(arrays), count);
        CUDA_CHECK_LAUNCH();
    }
}

void one_shot_kernels(Group& group, const Arrays& arrays) {
    are_aligned(arrays) ? launch_one_shot<4>(group, arrays) : launch_one_shot<1>(group, arrays);
}

template <int kWidth>
void launch_two_shot(const Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    const std::size_t longest = part_of(count, group.size(), 0).size();
    const unsigned blocks = blocks_for_all(group, longest, 2 * kWidth);
    for (int r = 0; r < group.size(); ++r) {
        const Rank& rank = group.ranks()[static_cast<std::size_t>(r)];
        const OnDevice on(rank.device);
        two_shot<kWidth><<<blocks, kBlock, 0, rank.stream>>>(team_of(group, r), pointers_to(arrays),
                                                             part_of(count, group.size(), r));
        CUDA_CHECK_LAUNCH();
    }
}

void two_shot_kernels(Group& group, const Arrays& arrays) {
    are_aligned(arrays) ? launch_two_shot<4>(group, arrays) : launch_two_shot<1>(group, arrays);
}

// Room for `width` floats' worth of bytes of each thread and round; all ranks' inboxes.
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
void launch_push(Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    const unsigned blocks = blocks_for_all(group, count, 2 * kWidth);
    const Inboxes inboxes = inboxes_for(group, Sent::kValues, blocks, count, kWidth, kWidth * sizeof(float));
    for (int r = 0; r < group.size(); ++r) {
        const Rank& rank = group.ranks()[static_cast<std::size_t>(r)];
        const OnDevice on(rank.device);
        push<kWidth>
            <<<blocks, kBlock, 0, rank.stream>>>(team_of(group, r), pointers_to(arrays), inboxes, count);
        CUDA_CHECK_LAUNCH();
    }
}

void push_kernels(Group& group, const Arrays& arrays) {
    const bool whole = arrays.in[0].size() % 4 == 0 && are_aligned(arrays);
    whole ? launch_push<4>(group, arrays) : launch_push<1>(group, arrays);
}

void packets_kernels(Group& group, const Arrays& arrays) {
    const std::size_t count = arrays.in[0].size();
    const unsigned blocks = blocks_for_all(group, count, 1);
    const Inboxes inboxes = inboxes_for(group, Sent::kPackets, blocks, count, 1, sizeof(Packet));
    for (int r = 0; r < group.size(); ++r) {
        const Rank& rank = group.ranks()[static_cast<std::size_t>(r)];
        const OnDevice on(rank.device);
        packets<<<blocks, kBlock, 0, rank.stream>>>(team_of(group, r), pointers_to(arrays), inboxes, count);
        CUDA_CHECK_LAUNCH();
    }
}

// --- NCCL ----------------------------------------------------------------------------------------

#ifdef COURSE_HAS_NCCL
void check_nccl(ncclResult_t code, const char* call) {
    if (code != ncclSuccess)
        throw std::runtime_error(std::string(call) + " failed: " + ncclGetErrorString(code));
}
#define NCCL_CHECK(...) check_nccl((__VA_ARGS__), #__VA_ARGS__)

// A communicator for each rank, all in this process.
struct Communicators {
    explicit Communicators(const Group& group) : of_rank(group.ranks().size()) {
        std::vector<int> devices;
        for (const Rank& rank : group.ranks())
            devices.push_back(rank.device);
        NCCL_CHECK(ncclCommInitAll(of_rank.data(), static_cast<int>(devices.size()), devices.data()));
    }
    ~Communicators() {
        for (const ncclComm_t communicator : of_rank)
            static_cast<void>(ncclCommDestroy(communicator));
    }
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;
    std::vector<ncclComm_t> of_rank;
};
const std::vector<ncclComm_t>& communicators(Group& group) {
    if (!group.communicators) group.communicators = std::make_shared<Communicators>(group);
    return std::static_pointer_cast<Communicators>(group.communicators)->of_rank;
}

// The calls of all ranks are one operation: outside a group, the first one would wait for those
// that this thread has not made yet.
void nccl(Group& group, const Arrays& arrays) {
    const std::vector<ncclComm_t>& of_rank = communicators(group);
    NCCL_CHECK(ncclGroupStart());
    for (std::size_t r = 0; r < of_rank.size(); ++r)
        NCCL_CHECK(ncclAllReduce(arrays.in[r].data(), arrays.out[r].data(), arrays.in[r].size(), ncclFloat,
                                 ncclSum, of_rank[r], group.ranks()[r].stream));
    NCCL_CHECK(ncclGroupEnd());
}
#else
void nccl(Group&, const Arrays&) {
    throw std::invalid_argument("nccl: the program was built without NCCL");
}
#endif

// --- The list ------------------------------------------------------------------------------------

// What one GPU must do at least: read its array, write the sums. The link is not in it.
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

// Checks what all versions need. Of one rank, the sum is a copy.
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

Part part_of(std::size_t count, int ranks, int number) {
    const std::size_t longest =
        course::ceil_div(course::ceil_div(count, static_cast<std::size_t>(ranks)), std::size_t{4}) * 4;
    const std::size_t begin = std::min(count, longest * static_cast<std::size_t>(number));
    return {begin, std::min(count, begin + longest)};
}

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
