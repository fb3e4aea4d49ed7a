// Day 51, where the lesson starts: the versions that copy, and NCCL. Then read all_reduce.cuh,
// which has the table of all versions. all_reduce.hpp defines a Rank: a stream, events, a staging
// area. One host thread drives all ranks. An event marks that the work before it in a stream is
// complete. Other streams wait for events; the host does not wait.
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "copies.hpp"
#include "group.hpp"
#ifdef COURSE_HAS_NCCL
#include <nccl.h>
#endif

namespace day51 {
namespace {

// Idea: a thread per value. The values of other GPUs have already been copied to this GPU.
// Cost removed: none.
// Still limits it: the values are written to this GPU's memory, then read again, and added by a
// second launch.
__global__ void add(const float* a, const float* b, float* sum, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

// sum = a + b on a rank's GPU.
void add_on(const Rank& rank, const float* a, const float* b, float* sum, std::size_t count) {
    if (count == 0) return;
    const OnDevice on(rank.device);
    add<<<course::blocks_for(count, kBlock), kBlock, 0, rank.stream>>>(a, b, sum, count);
    CUDA_CHECK_LAUNCH();
}

// Copies values between ranks, in the stream of `by`.
void copy(const Rank& to, float* target, const Rank& from, const float* source, std::size_t count,
          const Rank& by) {
    if (count == 0) return;
    CUDA_CHECK(cudaMemcpyPeerAsync(target, to.device, source, from.device, count * sizeof(float), by.stream));
}

}  // namespace

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

namespace {

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
// the sum of part p has been at all ranks: it started at rank p, and is complete at rank p - 1. Two
// loops over the ranks: a stream waits for the latest record of an event, so all ranks record
// `sent` before one of them waits for it.
void reduce_scatter(const Ring& ring) {
    for (int step = 0; step + 1 < ring.size(); ++step) {
        for (int r = 0; r < ring.size(); ++r) {
            const Rank& from = ring.rank(r);
            const Rank& to = ring.rank(r + 1);
            const Part part = ring.part(r - step);
            const float* const values = step == 0 ? ring.in(r) : ring.out(r);
            // The next rank has only one place to receive. Has it added the values there?
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

// Rank r has the sums of part r + 1. They go round once more, now directly to the outputs.
//
// Why is no event needed before a sum overwrites the output of the next rank? The next rank has
// forwarded that part in reduce_scatter. The sum contains these values, so that copy is complete.
//
// At the end each rank has waited, from neighbour to neighbour, for all others. So the next
// all-reduce may use the staging areas at once.
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

}  // namespace

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

// --- NCCL ----------------------------------------------------------------------------------------

#ifdef COURSE_HAS_NCCL
namespace {

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

}  // namespace

// The calls of all ranks are one operation: outside a group, the first one would wait for those
// that this thread has not issued yet.
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

}  // namespace day51
