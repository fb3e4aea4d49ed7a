// Threads that get in each other's way: histograms, aggregated atomics, locks, and one thread
// waiting for another's flag.
#include <cooperative_groups.h>

#include <algorithm>
#include <cfloat>
#include <numeric>
#include <vector>

#include "textbook.cuh"

namespace cg = cooperative_groups;

namespace {

// ---- Histogram: a private copy for each block, merged at the end --------------------------------

constexpr int kBins = 26;

__global__ void histogram_global(const char* text, int length, unsigned int* bins) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += blockDim.x * gridDim.x) {
        const int letter = text[i] - 'a';
        if (letter >= 0 && letter < kBins) atomicAdd(&bins[letter], 1);
    }
}

__global__ void histogram_private(const char* text, int length, unsigned int* bins) {
    extern __shared__ unsigned int own_bins[];
    for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x)
        own_bins[bin] = 0u;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += blockDim.x * gridDim.x) {
        const int letter = text[i] - 'a';
        if (letter >= 0 && letter < kBins) atomicAdd(&own_bins[letter], 1u);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        const unsigned int count = own_bins[bin];
        if (count > 0) atomicAdd(&bins[bin], count);
    }
}

// A run of equal letters costs one atomic.
__global__ void histogram_runs(const char* text, int length, unsigned int* bins) {
    __shared__ unsigned int own_bins[kBins];
    if (threadIdx.x < kBins) own_bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned int run = 0;
    int previous = -1;
    const int per_thread = ceil_div(length, gridDim.x * blockDim.x);
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
    for (int i = first; i < min(first + per_thread, length); ++i) {
        const int letter = text[i] - 'a';
        if (letter < 0 || letter >= kBins) continue;
        if (letter != previous) {
            if (run > 0) atomicAdd(&own_bins[previous], run);
            run = 0;
            previous = letter;
        }
        ++run;
    }
    if (run > 0) atomicAdd(&own_bins[previous], run);
    __syncthreads();
    if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], own_bins[threadIdx.x]);
}

TEST(TextbookAtomics, Histogram) {
    for (const int length : {1, 255, 256, 257, 10007}) {
        SCOPED_TRACE(length);
        Random random;
        std::vector<char> text(length);
        for (char& character : text)
            character = static_cast<char>('a' - 3 + random.below(kBins + 6));  // some are no letters
        std::vector<unsigned int> expected(kBins);
        for (const char character : text) {
            if (character >= 'a' && character <= 'z') ++expected[character - 'a'];
        }
        char* const device_text = upload(text);
        unsigned int* const bins = device_array<unsigned int>(kBins);
        for (void (*const kernel)(const char*, int, unsigned int*) :
             {histogram_global, histogram_private, histogram_runs}) {
            CUDA_CHECK(cudaMemset(bins, 0, kBins * sizeof(unsigned int)));
            kernel<<<3, 256, kBins * sizeof(unsigned int)>>>(device_text, length, bins);
            expect_same(download(bins, kBins), expected);
        }
        release(device_text, bins);
    }
}

// ---- Filter: one atomic per warp instead of one per thread --------------------------------------

// The active lanes elect a leader, which adds for all of them.
__device__ int add_one_by_mask(int* counter) {
    const unsigned active = __activemask();
    const int leader = __ffs(active) - 1;
    const int lane = threadIdx.x & 31;
    int base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    return base + __popc(active & ((1u << lane) - 1));
}

__device__ int add_one_by_group(int* counter) {
    const cg::coalesced_group here = cg::coalesced_threads();
    int base = 0;
    if (here.thread_rank() == 0) base = atomicAdd(counter, static_cast<int>(here.size()));
    return here.shfl(base, 0) + static_cast<int>(here.thread_rank());
}

// Lanes with the same key add to the same counter.
__device__ int add_one_by_key(int* counters, int key) {
    const unsigned same = __match_any_sync(__activemask(), key);
    const unsigned lane = threadIdx.x % warpSize;
    const int leader = __ffs(static_cast<int>(same)) - 1;
    int base = 0;
    if (static_cast<int>(lane) == leader) base = atomicAdd(&counters[key], __popc(same));
    return __shfl_sync(same, base, leader) + __popc(same & ~(0xffffffffu << lane));
}

enum class Aggregation { mask, group, key };

template <Aggregation kAggregation>
__global__ void keep_positive(const int* in, int n, int* out, int* count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || in[i] <= 0) return;
    int place = 0;
    if constexpr (kAggregation == Aggregation::mask) place = add_one_by_mask(count);
    if constexpr (kAggregation == Aggregation::group) place = add_one_by_group(count);
    if constexpr (kAggregation == Aggregation::key) place = add_one_by_key(count, 0);
    out[place] = in[i];
}

template <Aggregation kAggregation>
void expect_keeps_positive() {
    for (const int n : {1, 32, 33, 257, 5003}) {
        SCOPED_TRACE(n);
        const std::vector<int> in = random_ints(n, 1000);
        std::vector<int> expected;
        std::copy_if(in.begin(), in.end(), std::back_inserter(expected), [](int value) { return value > 0; });
        int* const device_in = upload(in);
        int* const out = device_array<int>(in.size());
        int* const count = upload(std::vector<int>{0});
        keep_positive<kAggregation><<<ceil_div(n, 128), 128>>>(device_in, n, out, count);
        ASSERT_EQ(download(count, 1)[0], static_cast<int>(expected.size()));
        std::vector<int> got = download(out, expected.size());
        std::sort(got.begin(), got.end());  // in which order they come is open
        std::sort(expected.begin(), expected.end());
        expect_same(got, expected);
        release(device_in, out, count);
    }
}

TEST(TextbookAtomics, FilterAggregatedByActiveMask) {
    expect_keeps_positive<Aggregation::mask>();
}
TEST(TextbookAtomics, FilterAggregatedByCoalescedGroup) {
    expect_keeps_positive<Aggregation::group>();
}
TEST(TextbookAtomics, FilterAggregatedByMatch) {
    expect_keeps_positive<Aggregation::key>();
}

// Each lane takes another way; the aggregated counters must be right all the same.
__global__ void count_by_remainder(int* counters, int* places, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int key = i % 5;
    switch (key) {
        case 0:
            places[i] = add_one_by_mask(&counters[0]);
            break;
        case 1:
        case 2:
            places[i] = add_one_by_key(counters, key);
            break;
        default:
            places[i] = add_one_by_group(&counters[3]);
            break;
    }
}

TEST(TextbookAtomics, AggregationInDivergentBranches) {
    constexpr int kCount = 1003;
    int* const counters = upload(std::vector<int>(4, 0));
    int* const places = device_array<int>(kCount);
    count_by_remainder<<<ceil_div(kCount, 96), 96>>>(counters, places, kCount);
    expect_same(download(counters, 4), {201, 201, 201, 400});
    std::vector<std::vector<int>> seen(4);
    const std::vector<int> got = download(places, kCount);
    for (int i = 0; i < kCount; ++i)
        seen[std::min(i % 5, 3)].push_back(got[i]);
    for (std::vector<int>& of_counter : seen) {  // each place once
        std::sort(of_counter.begin(), of_counter.end());
        std::vector<int> all(of_counter.size());
        std::iota(all.begin(), all.end(), 0);
        expect_same(of_counter, all);
    }
    release(counters, places);
}

// ---- What the hardware has no instruction for: a loop round compare-and-swap --------------------

__device__ float atomic_multiply(float* address, float factor) {
    int* const bits = reinterpret_cast<int*>(address);
    int old = *bits;
    int assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(__int_as_float(assumed) * factor));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ float atomic_maximum(float* address, float value) {
    unsigned int* const bits = reinterpret_cast<unsigned int*>(address);
    unsigned int old = *bits;
    while (value > __uint_as_float(old)) {
        const unsigned int assumed = old;
        old = atomicCAS(bits, assumed, __float_as_uint(value));
        if (old == assumed) break;
    }
    return __uint_as_float(old);
}

__global__ void multiply_and_maximum(float* product, float* maximum, const float* values) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomic_multiply(product, i % 2 == 0 ? 2.0f : 0.5f);
    atomic_maximum(maximum, values[i]);
}

TEST(TextbookAtomics, BuiltFromCompareAndSwap) {
    const std::vector<float> values = random_floats(512);
    float* const device_values = upload(values);
    float* const results = upload(std::vector<float>{3.0f, -5.0f});
    multiply_and_maximum<<<4, 128>>>(results, results + 1, device_values);
    expect_same(download(results, 2), {3.0f, *std::max_element(values.begin(), values.end())});
    release(device_values, results);
}

// ---- Locks --------------------------------------------------------------------------------------

class SpinLock {
  public:
    __device__ explicit SpinLock(int* state) : state_(state) {}
    __device__ void lock() {
        while (atomicCAS(state_, 0, 1) != 0) {
        }
        __threadfence();
    }
    __device__ void unlock() {
        __threadfence();
        atomicExch(state_, 0);
    }

  private:
    int* state_;
};

// Serves in the order of arrival.
class TicketLock {
  public:
    __device__ TicketLock(unsigned* next, unsigned* serving) : next_(next), serving_(serving) {}
    __device__ void lock() {
        const unsigned ticket = atomicAdd(next_, 1u);
        while (*serving_ != ticket)
            ;
        __threadfence();
    }
    __device__ void unlock() {
        __threadfence();
        *serving_ = *serving_ + 1;
    }

  private:
    unsigned* next_;
    volatile unsigned* serving_;
};

// Not atomic on purpose: only a lock keeps this right.
struct Account {
    volatile int balance;
    volatile int visits;
};

template <class Lock>
__device__ void visit(Lock& lock, Account* account, int amount) {
    lock.lock();
    const int before = account->balance;
    __nanosleep(20);  // so that others have the time to interfere
    account->balance = before + amount;
    account->visits = account->visits + 1;
    lock.unlock();
}

__global__ void visit_with_spin_lock(int* state, Account* account) {
    SpinLock lock(state);
    visit(lock, account, static_cast<int>(threadIdx.x));
}

__global__ void visit_with_ticket_lock(unsigned* tickets, Account* account) {
    TicketLock lock(&tickets[0], &tickets[1]);
    visit(lock, account, static_cast<int>(threadIdx.x));
}

TEST(TextbookAtomics, SpinLockGuardsACriticalSection) {
    constexpr int kBlocks = 6;
    constexpr int kThreads = 64;
    int* const state = upload(std::vector<int>{0});
    int* const account = upload(std::vector<int>{0, 0});
    visit_with_spin_lock<<<kBlocks, kThreads>>>(state, reinterpret_cast<Account*>(account));
    expect_same(download(account, 2), {kBlocks * kThreads * (kThreads - 1) / 2, kBlocks * kThreads});
    EXPECT_EQ(download(state, 1)[0], 0);
    release(state, account);
}

TEST(TextbookAtomics, TicketLockGuardsACriticalSection) {
    constexpr int kBlocks = 4;
    constexpr int kThreads = 48;
    unsigned* const tickets = upload(std::vector<unsigned>{0, 0});
    int* const account = upload(std::vector<int>{0, 0});
    visit_with_ticket_lock<<<kBlocks, kThreads>>>(tickets, reinterpret_cast<Account*>(account));
    expect_same(download(account, 2), {kBlocks * kThreads * (kThreads - 1) / 2, kBlocks * kThreads});
    expect_same(download(tickets, 2), {kBlocks * kThreads, kBlocks * kThreads});
    release(tickets, account);
}

// The form that also works where the lanes of a warp run in lockstep: the whole critical section
// inside the attempt.
__global__ void insert_sorted(int* lock, int* list, int* count) {
    const int value = (blockIdx.x * blockDim.x + threadIdx.x) * 37 % 101;
    bool done = false;
    while (!done) {
        if (atomicExch(lock, 1) == 0) {
            volatile int* const sorted = list;
            int place = *static_cast<volatile int*>(count);
            *static_cast<volatile int*>(count) = place + 1;
            for (; place > 0 && sorted[place - 1] > value; --place)
                sorted[place] = sorted[place - 1];
            sorted[place] = value;
            done = true;
            __threadfence();
            atomicExch(lock, 0);
        }
    }
}

TEST(TextbookAtomics, LockTakenInsideTheLoop) {
    int* const lock = upload(std::vector<int>{0});
    int* const list = device_array<int>(101);
    int* const count = upload(std::vector<int>{0});
    insert_sorted<<<1, 101>>>(lock, list, count);
    std::vector<int> expected(101);
    std::iota(expected.begin(), expected.end(), 0);
    expect_same(download(list, 101), expected);
    release(lock, list, count);
}

// ---- Producer and consumer ----------------------------------------------------------------------

// Inside a block: warp 0 fills a ring of slots, warp 1 empties it. `full` says whose turn a slot
// is.
__global__ void ring_in_a_block(const int* in, int* out, int rounds) {
    constexpr int kSlots = 3;
    __shared__ int ring[kSlots][32];
    __shared__ volatile int full[kSlots];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < kSlots) full[threadIdx.x] = 0;
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        const int slot = round % kSlots;
        if (threadIdx.x < 32) {
            while (full[slot] != 0) {
            }
            __syncwarp();
            ring[slot][lane] = in[round * 32 + lane] * 2;
            __threadfence_block();
            __syncwarp();
            if (lane == 0) full[slot] = 1;
        } else {
            while (full[slot] == 0)
                ;
            __syncwarp();
            out[round * 32 + lane] = ring[slot][lane] + 1;
            __threadfence_block();
            __syncwarp();
            if (lane == 0) full[slot] = 0;
        }
        __syncwarp();
    }
}

TEST(TextbookProducerConsumer, RingInABlock) {
    constexpr int kRounds = 20;
    std::vector<int> in = random_ints(32 * kRounds, 1000);
    int* const device_in = upload(in);
    int* const out = device_array<int>(in.size());
    ring_in_a_block<<<1, 64>>>(device_in, out, kRounds);
    for (int& value : in)
        value = 2 * value + 1;
    expect_same(download(out, in.size()), in);
    release(device_in, out);
}

// Between blocks: each waits for the one behind it, adds its own number and passes the sum on.
// Blocks start in ascending order, so all must be on the device at the same time.
__device__ int load_acquire(const int* address) {
    const int value = *static_cast<const volatile int*>(address);
    __threadfence();
    return value;
}

__device__ void store_release(int* address, int value) {
    __threadfence();
    *static_cast<volatile int*>(address) = value;
}

__global__ void relay(int* baton, int* ready) {
    const unsigned block = blockIdx.x;
    if (threadIdx.x == 0) {
        int sum = 0;
        if (block + 1 < gridDim.x) {
            while (load_acquire(&ready[block + 1]) == 0) {
            }
            sum = baton[block + 1];
        }
        baton[block] = sum + static_cast<int>(block);
        store_release(&ready[block], 1);
    }
}

TEST(TextbookProducerConsumer, RelayBetweenBlocks) {
    constexpr int kBlocks = 12;
    int* const baton = device_array<int>(kBlocks);
    int* const ready = upload(std::vector<int>(kBlocks, 0));
    relay<<<kBlocks, 32>>>(baton, ready);
    std::vector<int> expected(kBlocks);
    expected[kBlocks - 1] = kBlocks - 1;
    for (int block = kBlocks - 2; block >= 0; --block)
        expected[block] = expected[block + 1] + block;
    expect_same(download(baton, kBlocks), expected);
    release(baton, ready);
}

// The first block waits for the last: both must be on the device at the same time.
__global__ void first_waits_for_last(volatile int* flag, int* out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == gridDim.x - 1) {
        *out = 42;
        __threadfence();
        *flag = 1;
    } else if (blockIdx.x == 0) {
        do {
            __nanosleep(100);
        } while (*flag == 0);
        __threadfence();
        *out += 1;
    }
}

TEST(TextbookProducerConsumer, FirstBlockWaitsForTheLast) {
    int* const flag = upload(std::vector<int>{0});
    int* const out = device_array<int>(1);
    first_waits_for_last<<<9, 32>>>(flag, out);
    EXPECT_EQ(download(out, 1)[0], 43);
    release(flag, out);
}

// Polling loops as people write them: with something in the body, the wait at the end, a limit, a
// break.
enum class Polling { countdown, do_while, endless, in_condition };

template <Polling kPolling>
__global__ void last_thread_sets_flag(volatile int* flag, int* polls) {
    if (threadIdx.x == blockDim.x - 1) {
        *flag = 1;
        return;
    }
    int count = 0;
    if constexpr (kPolling == Polling::countdown) {
        while (*flag == 0)
            ++count;
    } else if constexpr (kPolling == Polling::do_while) {
        do {
            ++count;
        } while (*flag == 0);
    } else if constexpr (kPolling == Polling::endless) {
        for (;;) {
            if (*flag != 0) break;
            ++count;
        }
    } else {
        int seen = 0;
        while ((seen = *flag) != 1)
            count += 1 + seen;
    }
    polls[threadIdx.x] = count < 0 ? -1 : 1;
}

template <Polling kPolling>
void expect_sees_flag() {
    constexpr int kThreads = 64;
    int* const flag = upload(std::vector<int>{0});
    int* const polls = upload(std::vector<int>(kThreads - 1, 0));
    last_thread_sets_flag<kPolling><<<1, kThreads>>>(flag, polls);
    expect_same(download(polls, kThreads - 1), std::vector<int>(kThreads - 1, 1));
    release(flag, polls);
}

TEST(TextbookProducerConsumer, PollsWithABody) {
    expect_sees_flag<Polling::countdown>();
}
TEST(TextbookProducerConsumer, PollsInDoWhile) {
    expect_sees_flag<Polling::do_while>();
}
TEST(TextbookProducerConsumer, PollsInAnEndlessLoop) {
    expect_sees_flag<Polling::endless>();
}
TEST(TextbookProducerConsumer, PollsWithAnAssignment) {
    expect_sees_flag<Polling::in_condition>();
}

// ---- k-means: a step is an assignment and a sum per cluster -------------------------------------

constexpr int kClusters = 5;
__constant__ float2 centres[kClusters];

struct ClusterSums {
    float x[kClusters];
    float y[kClusters];
    int count[kClusters];
};

__host__ __device__ int nearest(float2 point, const float2* candidates) {
    int best = 0;
    float best_distance = FLT_MAX;
    for (int c = 0; c < kClusters; ++c) {
        const float dx = point.x - candidates[c].x;
        const float dy = point.y - candidates[c].y;
        const float distance = dx * dx + dy * dy;
        if (distance < best_distance) {
            best_distance = distance;
            best = c;
        }
    }
    return best;
}

__global__ void k_means_step(const float2* points, int n, ClusterSums* sums) {
    __shared__ ClusterSums own;
    if (threadIdx.x < kClusters) {
        own.x[threadIdx.x] = own.y[threadIdx.x] = 0.0f;
        own.count[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float2 point = points[i];
        const int cluster = nearest(point, centres);
        atomicAdd(&own.x[cluster], point.x);
        atomicAdd(&own.y[cluster], point.y);
        atomicAdd(&own.count[cluster], 1);
    }
    __syncthreads();
    if (threadIdx.x < kClusters) {
        atomicAdd(&sums->x[threadIdx.x], own.x[threadIdx.x]);
        atomicAdd(&sums->y[threadIdx.x], own.y[threadIdx.x]);
        atomicAdd(&sums->count[threadIdx.x], own.count[threadIdx.x]);
    }
}

TEST(TextbookAtomics, KMeans) {
    constexpr int kPoints = 2003;
    Random random;
    // Around (3 c, 2 c), on a grid of 1/64 so that all sums are exact.
    std::vector<float2> points;
    for (int i = 0; i < kPoints; ++i) {
        const int c = i % kClusters;
        points.push_back({static_cast<float>(3 * c) + static_cast<float>(random.below(129) - 64) / 64.0f,
                          static_cast<float>(2 * c) + static_cast<float>(random.below(129) - 64) / 64.0f});
    }
    float2 host_centres[kClusters];
    for (int c = 0; c < kClusters; ++c)
        host_centres[c] = points[c];

    float2* const device_points = upload(points);
    ClusterSums* const sums = device_array<ClusterSums>(1);
    for (int step = 0; step < 3; ++step) {
        CUDA_CHECK(cudaMemcpyToSymbol(centres, host_centres, sizeof host_centres));
        CUDA_CHECK(cudaMemset(sums, 0, sizeof(ClusterSums)));
        k_means_step<<<4, 128>>>(device_points, kPoints, sums);
        const ClusterSums got = download(sums, 1)[0];
        ClusterSums expected = {};
        for (const float2 point : points) {
            const int cluster = nearest(point, host_centres);
            expected.x[cluster] += point.x;
            expected.y[cluster] += point.y;
            ++expected.count[cluster];
        }
        for (int c = 0; c < kClusters; ++c) {
            EXPECT_EQ(got.x[c], expected.x[c]);
            EXPECT_EQ(got.y[c], expected.y[c]);
            ASSERT_EQ(got.count[c], expected.count[c]);
            ASSERT_GT(got.count[c], 0);
            host_centres[c] = {got.x[c] / static_cast<float>(got.count[c]),
                               got.y[c] / static_cast<float>(got.count[c])};
        }
    }
    release(device_points, sums);
}

// ---- Mailboxes: blocks wait for blocks that may not have begun -----------------------------------

__global__ void wait_for_the_last_block(volatile int* flags, int* out, int blocks) {
    const int block = blockIdx.x;
    if (threadIdx.x > 0) return;
    if (block > 0) {
        flags[block] = block;
        return;
    }
    while (flags[blocks - 1] == 0) {
    }
    *out = flags[blocks - 1];
}

__global__ void wait_for_the_next_block(int* flags, int* out, int blocks) {
    const int block = blockIdx.x;
    if (threadIdx.x == 0 && block + 1 < blocks) {
        while (atomicAdd(&flags[block + 1], 0) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 1) out[block] = block + 1 < blocks ? out[block + 1] + 1 : 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(&flags[block], 1);
    }
}

// Each block puts its number into the box of the next one, when that is empty, and takes what lies
// in its own.
__global__ void pass_around(int* boxes, int* out, int blocks, int rounds) {
    const int block = blockIdx.x;
    if (threadIdx.x > 0) return;
    for (int round = 0; round < rounds; ++round) {
        while (atomicCAS(&boxes[(block + 1) % blocks], 0, block + 1) != 0) {
        }
        int got = 0;
        while ((got = atomicExch(&boxes[block], 0)) == 0) {
        }
        out[block] += got;
    }
}

TEST(Mailboxes, OfBlocksThatHaveNotBegun) {
    constexpr int kBlocks = 24;  // all of them fit on any GPU at the same time
    constexpr int kRounds = 3;
    int* const flags = device_array<int>(kBlocks);
    int* const out = device_array<int>(kBlocks);
    const auto clear = [&] {
        CUDA_CHECK(cudaMemset(flags, 0, kBlocks * sizeof(int)));
        CUDA_CHECK(cudaMemset(out, 0, kBlocks * sizeof(int)));
    };
    clear();
    wait_for_the_last_block<<<kBlocks, 32>>>(flags, out, kBlocks);
    EXPECT_EQ(download(out, 1)[0], kBlocks - 1);

    clear();
    wait_for_the_next_block<<<kBlocks, 32>>>(flags, out, kBlocks);
    const std::vector<int> places = download(out, kBlocks);
    for (int b = 0; b < kBlocks; ++b)
        EXPECT_EQ(places[b], kBlocks - b);

    clear();
    pass_around<<<kBlocks, 32>>>(flags, out, kBlocks, kRounds);
    const std::vector<int> sums = download(out, kBlocks);
    for (int b = 0; b < kBlocks; ++b)
        EXPECT_EQ(sums[b], kRounds * (b == 0 ? kBlocks : b));
    release(flags, out);
}

}  // namespace
