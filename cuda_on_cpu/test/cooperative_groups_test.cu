// Cooperative groups: blocks, tiles, coalesced groups and their parts against a model on the host,
// reductions and scans, barriers in two halves, and the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "on_device.cuh"

namespace cg = cooperative_groups;

namespace {

// ---- All that a tile or coalesced group can do, as one thread sees it ---------------------------

struct Outcome {
    unsigned rank, size, meta_rank, meta_size;
    int from_any, from_before, from_after, from_exchanged;
    unsigned odd, same, all_same;
    int all_equal, any_large, all_positive;
    int sum, smallest, greatest, conjunction, disjunction, parity, remainder;
    int sum_up_to, sum_before, greatest_up_to, greatest_before;

    bool operator==(const Outcome&) const = default;
};

constexpr unsigned kUpDelta = 3;
constexpr unsigned kDownDelta = 2;
constexpr unsigned kExchangeMask = 5;
constexpr int kModulus = 11;
__host__ __device__ unsigned source_of(unsigned rank, unsigned size) {
    return (rank * 5 + 3) % size;
}

// An operation that is not in the library, and has a state.
struct AddModulo {
    int modulus;
    __host__ __device__ int operator()(int a, int b) const { return ((a + b) % modulus + modulus) % modulus; }
};

template <unsigned Size, class Parent>
__device__ int exchange(const cg::thread_block_tile<Size, Parent>& tile, int value) {
    return tile.shfl_xor(value, kExchangeMask % Size);
}
__device__ int exchange(const cg::coalesced_group&, int value) {
    return value;
}

template <class Group>
__device__ Outcome observe(const Group& group, int value) {
    Outcome seen{};
    seen.rank = group.thread_rank();
    seen.size = group.num_threads();
    seen.meta_rank = group.meta_group_rank();
    seen.meta_size = group.meta_group_size();
    group.sync();
    seen.from_any = group.shfl(value, source_of(seen.rank, seen.size));
    seen.from_before = group.shfl_up(value, kUpDelta);
    seen.from_after = group.shfl_down(value, kDownDelta);
    seen.from_exchanged = exchange(group, value);
    seen.odd = group.ballot(value & 1);
    seen.same = group.match_any(value);
    seen.all_same = group.match_all(value, seen.all_equal);
    seen.any_large = group.any(value > 6) != 0;
    seen.all_positive = group.all(value > 0) != 0;
    seen.sum = cg::reduce(group, value, cg::plus<int>());
    seen.smallest = cg::reduce(group, value, cg::less<int>());
    seen.greatest = cg::reduce(group, value, cg::greater<int>());
    seen.conjunction = cg::reduce(group, value, cg::bit_and<int>());
    seen.disjunction = cg::reduce(group, value, cg::bit_or<int>());
    seen.parity = cg::reduce(group, value, cg::bit_xor<int>());
    seen.remainder = cg::reduce(group, value % kModulus, AddModulo{kModulus});
    seen.sum_up_to = cg::inclusive_scan(group, value);
    seen.sum_before = cg::exclusive_scan(group, value);
    seen.greatest_up_to = cg::inclusive_scan(group, value, cg::greater<int>());
    seen.greatest_before = cg::exclusive_scan(group, value, [](int a, int b) { return a > b ? a : b; });
    return seen;
}

// ---- The same on the host -----------------------------------------------------------------------

struct HostGroup {
    std::vector<unsigned> threads;  // of the block, in order of rank
    unsigned meta_rank;
    unsigned meta_size;
    bool tile;
};

Outcome model(const HostGroup& group, unsigned rank, const std::vector<int>& values) {
    std::vector<int> v;
    for (const unsigned thread : group.threads)
        v.push_back(values[thread]);
    const auto size = static_cast<unsigned>(v.size());
    const int own = v[rank];
    const auto fold = [](auto begin, auto end, int start, auto operation) {
        return std::accumulate(begin, end, start, operation);
    };
    const auto maximum = [](int a, int b) { return std::max(a, b); };
    const unsigned all_lanes = size == 32 ? ~0U : (1U << size) - 1;

    Outcome seen{};
    seen.rank = rank;
    seen.size = size;
    seen.meta_rank = group.meta_rank;
    seen.meta_size = group.meta_size;
    seen.from_any = v[source_of(rank, size)];
    seen.from_before = rank >= kUpDelta ? v[rank - kUpDelta] : own;
    seen.from_after = rank + kDownDelta < size ? v[rank + kDownDelta] : own;
    seen.from_exchanged = group.tile ? v[rank ^ (kExchangeMask % size)] : own;
    for (unsigned i = 0; i < size; ++i) {
        if ((v[i] & 1) != 0) seen.odd |= 1U << i;
        if (v[i] == own) seen.same |= 1U << i;
        seen.any_large |= v[i] > 6;
    }
    seen.all_equal = seen.same == all_lanes;
    seen.all_same = seen.all_equal != 0 ? all_lanes : 0;
    seen.all_positive = *std::min_element(v.begin(), v.end()) > 0;
    seen.sum = fold(v.begin(), v.end(), 0, std::plus<>());
    seen.smallest = *std::min_element(v.begin(), v.end());
    seen.greatest = *std::max_element(v.begin(), v.end());
    seen.conjunction = fold(v.begin(), v.end(), -1, std::bit_and<>());
    seen.disjunction = fold(v.begin(), v.end(), 0, std::bit_or<>());
    seen.parity = fold(v.begin(), v.end(), 0, std::bit_xor<>());
    seen.remainder = v[0] % kModulus;
    for (unsigned i = 1; i < size; ++i)
        seen.remainder = AddModulo{kModulus}(seen.remainder, v[i] % kModulus);
    const auto here = v.begin() + rank;
    seen.sum_up_to = fold(v.begin(), here + 1, 0, std::plus<>());
    seen.sum_before = fold(v.begin(), here, 0, std::plus<>());
    seen.greatest_up_to = fold(v.begin(), here + 1, INT_MIN, maximum);
    seen.greatest_before = rank == 0 ? 0 : fold(v.begin(), here, INT_MIN, maximum);
    return seen;
}

template <class T, class Body>
__global__ void each_thread(Body body, T* results) {
    const unsigned thread = cg::this_thread_block().thread_rank();
    results[blockIdx.x * blockDim.x + thread] = body(thread);
}

template <class T, class Body>
std::vector<T> results_of(Body body, unsigned threads) {
    DeviceVector<T> results(threads);
    each_thread<T><<<1, threads>>>(body, results.data());
    return results.to_host();
}

// What a thread that is in no group leaves.
Outcome nothing() {
    return Outcome{};
}

void expect_model(const std::vector<Outcome>& got, const std::vector<HostGroup>& groups,
                  const std::vector<int>& values) {
    std::vector<Outcome> expected(got.size(), nothing());
    for (const HostGroup& group : groups) {
        for (unsigned rank = 0; rank < group.threads.size(); ++rank) {
            expected[group.threads[rank]] = model(group, rank, values);
        }
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
        const Outcome& a = got[i];
        const Outcome& b = expected[i];
        EXPECT_TRUE(a == b) << "thread " << i << ", rank " << b.rank << " of " << b.size << " (got " << a.rank
                            << " of " << a.size << "): groups " << a.meta_rank << "/" << a.meta_size
                            << " expected " << b.meta_rank << "/" << b.meta_size << "; shuffles "
                            << a.from_any << " " << a.from_before << " " << a.from_after << " "
                            << a.from_exchanged << " expected " << b.from_any << " " << b.from_before << " "
                            << b.from_after << " " << b.from_exchanged << "; votes " << a.odd << " " << a.same
                            << " " << a.all_same << " expected " << b.odd << " " << b.same << " "
                            << b.all_same << "; sums " << a.sum << " " << a.sum_up_to << " " << a.sum_before
                            << " expected " << b.sum << " " << b.sum_up_to << " " << b.sum_before;
        if (!(a == b)) return;
    }
}

// Few values, so that threads agree now and then; all equal; and signed ones of any size that can
// be added up.
std::vector<std::vector<int>> data_patterns(unsigned threads) {
    std::vector<int> few, many;
    for (const std::uint32_t word : random_words(threads)) {
        few.push_back(static_cast<int>(word % 4) + 4);
        many.push_back(static_cast<int>(word % 2'000'001) - 1'000'000);
    }
    return {few, std::vector<int>(threads, 7), std::vector<int>(threads, -3), many};
}

// Divides 0 .. threads-1, warp by warp, by a label for each thread; no group for the label kNobody.
constexpr int kNobody = -1;
template <class Label>
std::map<std::pair<unsigned, int>, std::vector<unsigned>> divided(unsigned threads, Label label) {
    std::map<std::pair<unsigned, int>, std::vector<unsigned>> parts;
    for (unsigned thread = 0; thread < threads; ++thread) {
        if (label(thread) != kNobody) parts[{thread / 32, label(thread)}].push_back(thread);
    }
    return parts;
}

class Seeded : public ::testing::Test {
  protected:
    ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
};

// ---- Tiles --------------------------------------------------------------------------------------

template <class Size>
class Tiles : public Seeded {};
using TileSizes =
    ::testing::Types<std::integral_constant<unsigned, 1>, std::integral_constant<unsigned, 2>,
                     std::integral_constant<unsigned, 4>, std::integral_constant<unsigned, 8>,
                     std::integral_constant<unsigned, 16>, std::integral_constant<unsigned, 32>>;
TYPED_TEST_SUITE(Tiles, TileSizes);

template <unsigned Size>
struct ObserveTile {
    const int* values;
    __device__ Outcome operator()(unsigned thread) const {
        const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
        static_assert(decltype(tile)::num_threads() == Size && decltype(tile)::size() == Size);
        return observe(tile, values[thread]);
    }
};

TYPED_TEST(Tiles, DoWhatTheModelDoes) {
    constexpr unsigned kSize = TypeParam::value;
    for (const unsigned threads : {kSize, 32U, 96U, 1024U}) {
        std::vector<HostGroup> groups;
        for (unsigned first = 0; first < threads; first += kSize) {
            std::vector<unsigned> members(kSize);
            std::iota(members.begin(), members.end(), first);
            groups.push_back({members, first / kSize, threads / kSize, true});
        }
        for (const std::vector<int>& values : data_patterns(threads)) {
            DeviceVector<int> device_values(values);
            expect_model(results_of<Outcome>(ObserveTile<kSize>{device_values.data()}, threads), groups,
                         values);
        }
    }
}

// Tiles of one warp go different ways and synchronise different numbers of times: none may wait for
// another.
template <unsigned Size>
struct RotateSomeTimes {
    __device__ unsigned operator()(unsigned thread) const {
        const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
        unsigned value = thread;
        if (tile.meta_group_rank() % 3 == 1) return value;
        for (unsigned i = 0; i < tile.meta_group_rank(); ++i) {
            value = tile.shfl(value, tile.thread_rank() + 1);
            tile.sync();
        }
        return value;
    }
};

TYPED_TEST(Tiles, DivergeFromEachOther) {
    constexpr unsigned kSize = TypeParam::value;
    const std::vector<unsigned> got = results_of<unsigned>(RotateSomeTimes<kSize>{}, 128);
    for (unsigned thread = 0; thread < got.size(); ++thread) {
        const unsigned tile = thread / kSize;
        const unsigned turns = tile % 3 == 1 ? 0 : tile;
        EXPECT_EQ(got[thread], tile * kSize + (thread + turns) % kSize) << "thread " << thread;
    }
}

struct ObserveNested {
    const int* values;
    __device__ Outcome operator()(unsigned thread) const {
        const auto outer = cg::tiled_partition<16>(cg::this_thread_block());
        const auto inner = cg::tiled_partition<4>(outer);
        const cg::thread_block_tile<4> erased = inner;
        return observe(erased, values[thread]);
    }
};

TEST_F(Seeded, TilesOfTiles) {
    constexpr unsigned kThreads = 64;
    std::vector<HostGroup> groups;
    for (unsigned first = 0; first < kThreads; first += 4) {
        groups.push_back({{first, first + 1, first + 2, first + 3}, first % 16 / 4, 4, true});
    }
    const std::vector<int> values = data_patterns(kThreads)[0];
    DeviceVector<int> device_values(values);
    expect_model(results_of<Outcome>(ObserveNested{device_values.data()}, kThreads), groups, values);
}

// ---- Tiles of several warps ---------------------------------------------------------------------

struct WideOutcome {
    unsigned rank, meta_rank, meta_size;
    int from_any, any_large, all_positive, sum, sum_up_to, greatest_before, of_part;
    unsigned part_rank;

    bool operator==(const WideOutcome&) const = default;
};

template <unsigned Size, class Parent>
__device__ WideOutcome observe_wide(const cg::thread_block_tile<Size, Parent>& tile, int value) {
    const auto part = cg::tiled_partition<16>(tile);
    WideOutcome seen{};
    seen.rank = tile.thread_rank();
    seen.meta_rank = tile.meta_group_rank();
    seen.meta_size = tile.meta_group_size();
    seen.from_any = tile.shfl(value, source_of(seen.meta_rank, Size));  // one rank for all: a broadcast
    seen.any_large = tile.any(value > 6) != 0;
    seen.all_positive = tile.all(value > 0) != 0;
    seen.sum = cg::reduce(tile, value, cg::plus<int>());
    seen.sum_up_to = cg::inclusive_scan(tile, value);
    seen.greatest_before = cg::exclusive_scan(tile, value, cg::greater<int>());
    seen.of_part = cg::reduce(part, value, cg::plus<int>());
    seen.part_rank = part.meta_group_rank();
    return seen;
}
template <unsigned Size, unsigned MaxThreads>
struct ObserveWide {
    const int* values;
    __device__ WideOutcome operator()(unsigned thread) const {
        __shared__ cg::block_tile_memory<MaxThreads> scratch;
        return observe_wide(cg::tiled_partition<Size>(cg::this_thread_block(scratch)), values[thread]);
    }
};

template <class Size>
class WideTiles : public Seeded {};
using WideTileSizes =
    ::testing::Types<std::integral_constant<unsigned, 64>, std::integral_constant<unsigned, 128>,
                     std::integral_constant<unsigned, 256>, std::integral_constant<unsigned, 512>>;
TYPED_TEST_SUITE(WideTiles, WideTileSizes);

TYPED_TEST(WideTiles, DoWhatTheModelDoes) {
    constexpr unsigned kSize = TypeParam::value;
    for (const unsigned threads : {kSize, 1024U}) {
        for (const std::vector<int>& v : data_patterns(threads)) {
            DeviceVector<int> device_values(v);
            const auto got = results_of<WideOutcome>(ObserveWide<kSize, 1024>{device_values.data()}, threads);
            for (unsigned thread = 0; thread < threads; ++thread) {
                const unsigned rank = thread % kSize;
                const auto first = v.begin() + (thread - rank);
                const auto here = v.begin() + thread;
                const auto last = first + kSize;
                const auto part = first + rank / 16 * 16;
                const WideOutcome expected{rank,
                                           thread / kSize,
                                           threads / kSize,
                                           first[source_of(thread / kSize, kSize)],
                                           std::any_of(first, last, [](int value) { return value > 6; }),
                                           std::all_of(first, last, [](int value) { return value > 0; }),
                                           std::accumulate(first, last, 0),
                                           std::accumulate(first, here + 1, 0),
                                           rank == 0 ? 0 : *std::max_element(first, here),
                                           std::accumulate(part, part + 16, 0),
                                           rank / 16};
                ASSERT_TRUE(got[thread] == expected) << "thread " << thread << " of " << threads;
            }
        }
    }
}

// Tiles that synchronise different numbers of times do not wait for each other, and who has waited
// sees what the others have written.
template <unsigned Size>
struct PassRoundInTile {
    __device__ unsigned operator()(unsigned thread) const {
        __shared__ unsigned values[512];
        const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
        unsigned value = thread;
        for (unsigned i = 0; i < tile.meta_group_rank(); ++i) {
            values[thread] = value;
            tile.sync();
            value = values[thread - tile.thread_rank() + (tile.thread_rank() + 1) % Size];
            cg::sync(tile);
        }
        return value;
    }
};

TYPED_TEST(WideTiles, SynchroniseByThemselves) {
    constexpr unsigned kSize = TypeParam::value;
    const std::vector<unsigned> got = results_of<unsigned>(PassRoundInTile<kSize>{}, 512);
    for (unsigned thread = 0; thread < got.size(); ++thread) {
        const unsigned tile = thread / kSize;
        EXPECT_EQ(got[thread], tile * kSize + (thread + tile) % kSize) << "thread " << thread;
    }
}

// ---- Other types --------------------------------------------------------------------------------

struct Particle {
    double energy;
    float position[3];
    char kind;
};

struct PassOn {
    __device__ Particle operator()(unsigned thread) const {
        const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
        const auto number = static_cast<float>(thread);
        const Particle own{thread * 0.5, {number, number + 1, number + 2}, static_cast<char>(thread)};
        return tile.shfl_down(own, 1);
    }
};

TEST(CooperativeGroups, ShuffleWholeObjects) {
    const std::vector<Particle> got = results_of<Particle>(PassOn{}, 32);
    for (unsigned thread = 0; thread < got.size(); ++thread) {
        const unsigned source = thread % 8 == 7 ? thread : thread + 1;
        EXPECT_EQ(got[thread].energy, source * 0.5);
        EXPECT_EQ(got[thread].position[2], static_cast<float>(source) + 2);
        EXPECT_EQ(got[thread].kind, static_cast<char>(source));
    }
}

struct Best {
    float value;
    int where;
};
struct Better {
    __host__ __device__ Best operator()(Best a, Best b) const {
        return b.value > a.value || (b.value == a.value && b.where < a.where) ? b : a;
    }
};
struct FindBest {
    const int* values;
    __device__ Best operator()(unsigned thread) const {
        const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
        return cg::reduce(tile, Best{static_cast<float>(values[thread]), static_cast<int>(thread)}, Better{});
    }
};

TEST_F(Seeded, ReduceObjects) {
    const std::vector<int> values = data_patterns(64)[3];
    DeviceVector<int> device_values(values);
    const std::vector<Best> got = results_of<Best>(FindBest{device_values.data()}, 64);
    for (unsigned thread = 0; thread < got.size(); ++thread) {
        const auto warp = values.begin() + thread / 32 * 32;
        EXPECT_EQ(got[thread].where, std::max_element(warp, warp + 32) - values.begin());
    }
}

struct AddDoubles {
    __device__ double operator()(unsigned thread) const {
        const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
        return cg::reduce(tile, 0.25 * thread, cg::plus<double>()) + cg::inclusive_scan(tile, 0.5f);
    }
};

TEST(CooperativeGroups, ReduceAndScanFloatingPoint) {
    const std::vector<double> got = results_of<double>(AddDoubles{}, 32);
    for (unsigned thread = 0; thread < got.size(); ++thread) {
        const double first = thread / 16 * 16;
        EXPECT_EQ(got[thread], 0.25 * (16 * first + 120) + 0.5 * (thread % 16 + 1));
    }
}

// ---- Coalesced groups and partitions ------------------------------------------------------------

struct ObserveOddOnes {
    const int* values;
    __device__ Outcome operator()(unsigned thread) const {
        Outcome seen{};
        if ((values[thread] & 1) != 0) seen = observe(cg::coalesced_threads(), values[thread]);
        return seen;
    }
};

TEST_F(Seeded, CoalescedThreadsOfABranch) {
    constexpr unsigned kThreads = 200;  // the last warp is not full
    for (const std::vector<int>& values : data_patterns(kThreads)) {
        std::vector<HostGroup> groups;
        for (const auto& part :
             divided(kThreads, [&](unsigned t) { return values[t] % 2 != 0 ? 0 : kNobody; })) {
            groups.push_back({part.second, 0, 1, false});
        }
        DeviceVector<int> device_values(values);
        expect_model(results_of<Outcome>(ObserveOddOnes{device_values.data()}, kThreads), groups, values);
    }
}

__global__ void claim_places(const int* values, int* places, int* taken) {
    const unsigned thread = threadIdx.x;
    if (values[thread] % 3 == 0) return;
    const cg::coalesced_group group = cg::coalesced_threads();
    int first = 0;
    if (group.thread_rank() == 0) first = atomicAdd(taken, static_cast<int>(group.num_threads()));
    places[group.shfl(first, 0) + group.thread_rank()] = values[thread];
}

TEST_F(Seeded, WarpAggregatedCounterAfterOthersHaveExited) {
    constexpr unsigned kThreads = 256;
    const std::vector<int> values = data_patterns(kThreads)[3];
    std::vector<int> expected;
    for (const int value : values) {
        if (value % 3 != 0) expected.push_back(value);
    }
    DeviceVector<int> device_values(values), places(expected.size()), taken(1);
    claim_places<<<1, kThreads>>>(device_values.data(), places.data(), taken.data());
    EXPECT_EQ(taken.to_host()[0], static_cast<int>(expected.size()));
    std::vector<int> got = places.to_host();
    std::sort(got.begin(), got.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(got, expected);
}

struct ObserveBinary {
    const int* values;
    __device__ Outcome operator()(unsigned thread) const {
        const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        return observe(cg::binary_partition(warp, values[thread] % 2 == 0), values[thread]);
    }
};

TEST_F(Seeded, BinaryPartition) {
    constexpr unsigned kThreads = 128;
    for (const std::vector<int>& values : data_patterns(kThreads)) {
        const auto parts = divided(kThreads, [&](unsigned t) { return values[t] % 2 == 0 ? 1 : 0; });
        std::vector<HostGroup> groups;
        for (const auto& [key, members] : parts) {
            const bool divided_warp = members.size() < 32;
            groups.push_back({members, divided_warp ? static_cast<unsigned>(key.second) : 0,
                              divided_warp ? 2U : 1U, false});
        }
        DeviceVector<int> device_values(values);
        expect_model(results_of<Outcome>(ObserveBinary{device_values.data()}, kThreads), groups, values);
    }
}

struct ObserveLabeled {
    const int* values;
    __device__ Outcome operator()(unsigned thread) const {
        const cg::coalesced_group warp = cg::coalesced_threads();
        return observe(cg::labeled_partition(warp, values[thread] % 4), values[thread]);
    }
};

TEST_F(Seeded, LabeledPartition) {
    constexpr unsigned kThreads = 72;
    for (const std::vector<int>& values : data_patterns(kThreads)) {
        // Parts of a warp are numbered in the order of their first threads.
        std::map<unsigned, std::vector<std::vector<unsigned>>> warps;
        for (const auto& [key, members] : divided(kThreads, [&](unsigned t) { return values[t] % 4 + 4; })) {
            warps[key.first].push_back(members);
        }
        std::vector<HostGroup> groups;
        for (auto& [warp, parts] : warps) {
            std::sort(parts.begin(), parts.end());
            for (unsigned i = 0; i < parts.size(); ++i) {
                groups.push_back({parts[i], i, static_cast<unsigned>(parts.size()), false});
            }
        }
        DeviceVector<int> device_values(values);
        expect_model(results_of<Outcome>(ObserveLabeled{device_values.data()}, kThreads), groups, values);
    }
}

struct ObservePartOfCoalesced {
    const int* values;
    __device__ Outcome operator()(unsigned thread) const {
        Outcome seen{};
        if (thread % 32 >= 9) {
            seen = observe(cg::tiled_partition(cg::coalesced_threads(), 8), values[thread]);
        }
        return seen;
    }
};

TEST_F(Seeded, PartsOfACoalescedGroup) {
    constexpr unsigned kThreads = 64;
    const std::vector<int> values = data_patterns(kThreads)[0];
    std::vector<HostGroup> groups;
    for (const auto& [key, members] : divided(kThreads, [](unsigned t) {
             return t % 32 < 9 ? kNobody : static_cast<int>((t % 32 - 9) / 8);
         })) {
        groups.push_back({members, static_cast<unsigned>(key.second), 3, false});  // 8, 8 and 7 of 23 lanes
    }
    DeviceVector<int> device_values(values);
    expect_model(results_of<Outcome>(ObservePartOfCoalesced{device_values.data()}, kThreads), groups, values);
}

// ---- Any group ----------------------------------------------------------------------------------

struct Described {
    unsigned long long rank, size;
    bool operator==(const Described&) const = default;
};

__device__ Described describe(cg::thread_group group) {
    group.sync();
    cg::sync(group);
    return {group.thread_rank(), group.size()};
}

enum class Kind { block, tile, coalesced, part_of_block, part_of_tile, this_thread };

struct Describe {
    Kind kind;
    __device__ Described operator()(unsigned thread) const {
        const cg::thread_block block = cg::this_thread_block();
        switch (kind) {
            case Kind::block:
                return describe(block);
            case Kind::tile:
                return describe(cg::tiled_partition<8>(block));
            case Kind::coalesced:
                return thread < 5 ? describe(cg::coalesced_threads()) : Described{};
            case Kind::part_of_block:
                return describe(cg::tiled_partition(block, 16));
            case Kind::part_of_tile: {
                const cg::thread_group parent = cg::tiled_partition(block, 16);
                return describe(cg::tiled_partition(parent, 4));
            }
            case Kind::this_thread:
                return describe(cg::this_thread());
        }
        return {};
    }
};

TEST(CooperativeGroups, AnyGroupAsAThreadGroup) {
    const auto expect = [](Kind kind, auto expected) {
        const std::vector<Described> got = results_of<Described>(Describe{kind}, 40);
        for (unsigned thread = 0; thread < got.size(); ++thread) {
            EXPECT_TRUE(got[thread] == expected(thread))
                << "kind " << static_cast<int>(kind) << ", thread " << thread << ": " << got[thread].rank
                << " of " << got[thread].size;
        }
    };
    expect(Kind::block, [](unsigned t) { return Described{t, 40}; });
    expect(Kind::tile, [](unsigned t) { return Described{t % 8, 8}; });
    expect(Kind::coalesced, [](unsigned t) { return t < 5 ? Described{t, 5} : Described{}; });
    expect(Kind::part_of_block, [](unsigned t) { return Described{t % 16, t < 32 ? 16U : 8U}; });
    expect(Kind::part_of_tile, [](unsigned t) { return Described{t % 4, 4}; });
    expect(Kind::this_thread, [](unsigned) { return Described{0, 1}; });
}

// ---- The block ----------------------------------------------------------------------------------

__global__ void check_block(Checks checks) {
    __shared__ unsigned seen[2][3][4];
    const cg::thread_block block = cg::this_thread_block();
    seen[threadIdx.z][threadIdx.y][threadIdx.x] = block.thread_rank();
    block.sync();
    if (block.thread_rank() != 23) return;
    unsigned expected = 0;
    for (const auto& plane : seen) {
        for (const auto& row : plane) {
            for (const unsigned rank : row)
                checks.equal(rank, expected++);
        }
    }
    checks.equal(block.num_threads(), 24u);
    checks.equal(block.size(), 24u);
    checks.equal(cg::group_size(block), 24u);
    checks.equal(cg::thread_rank(block), 23u);
    checks.equal(block.dim_threads().z, 2u);
    checks.equal(block.group_dim().y, 3u);
    checks.equal(block.thread_index().x, 3u);
    checks.equal(block.group_index().y, 0u);
}

TEST(CooperativeGroups, Block) {
    DeviceVector<Observation> observations(Checks::kCapacity);
    DeviceVector<unsigned> count(1);
    check_block<<<1, dim3(4, 3, 2)>>>(Checks(observations.data(), count.data()));
    const unsigned found = count.to_host()[0];
    compare(observations.to_host(), found);
}

// Each warp passes a number on to the next through shared memory, round after round.
struct PassRound {
    unsigned rounds;
    __device__ unsigned operator()(unsigned thread) const {
        __shared__ unsigned mailbox[2][96];
        const cg::thread_block block = cg::this_thread_block();
        unsigned value = thread;
        for (unsigned round = 0; round < rounds; ++round) {
            mailbox[round % 2][thread] = value;
            auto token = block.barrier_arrive();
            const unsigned source = (thread + 33) % 96;  // work that needs no other thread
            block.barrier_wait(std::move(token));
            value = mailbox[round % 2][source];
        }
        return value;
    }
};

TEST(CooperativeGroups, BlockBarrierInTwoHalves) {
    constexpr unsigned kRounds = 5;
    const std::vector<unsigned> got = results_of<unsigned>(PassRound{kRounds}, 96);
    for (unsigned thread = 0; thread < got.size(); ++thread)
        EXPECT_EQ(got[thread], (thread + 33 * kRounds) % 96);
}

// The first warp has arrived before the second even comes near: arriving does not wait.
struct ArriveEarly {
    volatile int* go;
    __device__ int operator()(unsigned thread) const {
        const cg::thread_block block = cg::this_thread_block();
        if (thread < 32) {
            auto token = block.barrier_arrive();
            if (thread == 0) *go = 1;
            block.barrier_wait(std::move(token));
        } else {
            while (*go == 0) {
            }
            auto token = block.barrier_arrive();
            block.barrier_wait(std::move(token));
        }
        return *go;
    }
};

TEST(CooperativeGroups, ArrivingDoesNotWait) {
    DeviceVector<int> go(1);
    EXPECT_EQ(results_of<int>(ArriveEarly{go.data()}, 64), std::vector<int>(64, 1));
}

// ---- One thread for all -------------------------------------------------------------------------

struct CallOnce {
    int* calls;
    __device__ int operator()(unsigned thread) const {
        const cg::thread_block block = cg::this_thread_block();
        const auto tile = cg::tiled_partition<8>(block);
        cg::invoke_one(
            block, [this](int by) { atomicAdd(calls, by); }, 1000);
        cg::invoke_one(tile, [this] { atomicAdd(calls, 1); });
        int number = 0;
        if (thread % 2 == 1) {
            number = cg::invoke_one_broadcast(cg::coalesced_threads(), [this, thread] {
                atomicAdd(calls, 100'000);
                return static_cast<int>(thread);
            });
        }
        return number;
    }
};

TEST(CooperativeGroups, OneThreadIsCalledForAll) {
    DeviceVector<int> calls(1);
    const std::vector<int> got = results_of<int>(CallOnce{calls.data()}, 64);
    EXPECT_EQ(calls.to_host()[0], 2 * 100'000 + 1000 + 8);
    for (unsigned thread = 0; thread < got.size(); ++thread) {
        const int leader = got[thread / 32 * 32 + 1];
        EXPECT_EQ(leader / 32, static_cast<int>(thread / 32));
        EXPECT_EQ(got[thread], thread % 2 == 1 ? leader : 0);
    }
}

// ---- The grid -----------------------------------------------------------------------------------

// In each phase a cell becomes the sum of itself and its neighbour a block further on.
__global__ void __launch_bounds__(64) add_neighbours(int* cells, int* scratch, int phases) {
    const cg::grid_group grid = cg::this_grid();
    const auto n = static_cast<unsigned>(grid.num_threads());
    const auto i = static_cast<unsigned>(grid.thread_rank());
    for (int phase = 0; phase < phases; ++phase) {
        scratch[i] = cells[i] + cells[(i + blockDim.x + 1) % n];
        grid.sync();
        cells[i] = scratch[i];
        cg::sync(grid);
    }
}

TEST_F(Seeded, GridSynchronisesAllBlocks) {
    constexpr unsigned kBlocks = 7, kThreads = 64, kCells = kBlocks * kThreads;
    int phases = 6;
    std::vector<int> cells = data_patterns(kCells)[0];
    DeviceVector<int> device_cells(cells), scratch(kCells);
    int* cells_argument = device_cells.data();
    int* scratch_argument = scratch.data();
    void* arguments[] = {&cells_argument, &scratch_argument, &phases};
    ASSERT_EQ(cudaLaunchCooperativeKernel(add_neighbours, kBlocks, kThreads, arguments), cudaSuccess);
    for (int phase = 0; phase < phases; ++phase) {
        const std::vector<int> old = cells;
        for (unsigned i = 0; i < kCells; ++i)
            cells[i] = old[i] + old[(i + kThreads + 1) % kCells];
    }
    EXPECT_EQ(device_cells.to_host(), cells);
}

__global__ void check_grid(Checks checks, bool cooperative) {
    const cg::grid_group grid = cg::this_grid();
    if (grid.thread_rank() != grid.num_threads() - 1) return;
    // In a launch that is not cooperative a GPU's is_valid() has been seen to say true: not
    // checked.
    if (cooperative) checks.equal(grid.is_valid(), true);
    checks.equal(grid.thread_rank(), 2u * 3 * 4 * 5 - 1);
    checks.equal(grid.num_threads(), 2u * 3 * 4 * 5);
    checks.equal(grid.size(), 2u * 3 * 4 * 5);
    checks.equal(grid.block_rank(), 5u);
    checks.equal(grid.num_blocks(), 6u);
    checks.equal(grid.dim_blocks().y, 3u);
    checks.equal(grid.group_dim().x, 2u);
    checks.equal(grid.dim_threads().x, 8u);
    checks.equal(grid.block_index().y, 2u);
    checks.equal(grid.thread_index().y, 14u);
}

TEST(CooperativeGroups, GridKnowsItself) {
    for (const bool cooperative : {true, false}) {
        DeviceVector<Observation> observations(Checks::kCapacity);
        DeviceVector<unsigned> count(1);
        Checks checks(observations.data(), count.data());
        bool argument = cooperative;
        void* arguments[] = {&checks, &argument};
        if (cooperative) {
            ASSERT_EQ(cudaLaunchCooperativeKernel(check_grid, dim3(2, 3), dim3(4, 5), arguments),
                      cudaSuccess);
        } else {
            check_grid<<<dim3(2, 3), dim3(4, 5)>>>(checks, argument);
        }
        const unsigned found = count.to_host()[0];
        compare(observations.to_host(), found);
    }
}

TEST(CooperativeGroups, GridThatDoesNotFitIsRefused) {
    int phases = 1;
    int* nothing = nullptr;
    void* arguments[] = {&nothing, &nothing, &phases};
    EXPECT_EQ(cudaLaunchCooperativeKernel(add_neighbours, 1 << 20, 64, arguments),
              cudaErrorCooperativeLaunchTooLarge);
    EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
}

// ---- What goes wrong ----------------------------------------------------------------------------

#ifdef CUDA_ON_CPU  // on a GPU these would hang or do something undefined

template <class Kernel, class... Arguments>
void expect_failure(Kernel kernel, cudaError_t error, const std::vector<std::string>& report,
                    unsigned threads) {
    ::testing::internal::CaptureStderr();
    kernel<<<2, threads>>>();
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    const std::string printed = ::testing::internal::GetCapturedStderr();
    for (const std::string& part : report) {
        EXPECT_NE(printed.find(part), std::string::npos) << "no '" << part << "' in: " << printed;
    }
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

std::string here(int line) {
    return "cooperative_groups_test.cu:" + std::to_string(line);
}

constexpr int kTileLine = __LINE__ + 4;
__global__ void half_a_tile() {
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    if (tile.thread_rank() < 8) {
        tile.sync();
    } else {
        __syncthreads();
    }
}

TEST(CooperativeGroupsFailures, HalfATileWaits) {
    expect_failure(half_a_tile, cudaErrorLaunchTimeout,
                   {"deadlock", here(kTileLine), "mask 0x0000ffff, missing 0x0000ff00"}, 64);
}

constexpr int kBroadcastLine = __LINE__ + 3;
__global__ void two_ranks_in_a_wide_tile() {
    const auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    tile.shfl(1, tile.thread_rank() == 40 ? 3 : 2);
}
__global__ void rank_outside_a_wide_tile() {
    cg::tiled_partition<64>(cg::this_thread_block()).shfl(1, 64);
}

TEST(CooperativeGroupsFailures, AShuffleInAWideTileIsABroadcast) {
    expect_failure(two_ranks_in_a_wide_tile, cudaErrorLaunchTimeout,
                   {"not all threads name the same rank", here(kBroadcastLine)}, 128);
    expect_failure(rank_outside_a_wide_tile, cudaErrorLaunchTimeout, {"not all threads name the same rank"},
                   128);
}

constexpr int kReduceLine = __LINE__ + 4;
__global__ void different_operations() {
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    if (tile.thread_rank() < 8) {
        cg::reduce(tile, 1, cg::plus<int>());
    } else {
        cg::inclusive_scan(tile, 1, cg::plus<int>());
    }
}

TEST(CooperativeGroupsFailures, DifferentCollectives) {
    expect_failure(different_operations, cudaErrorLaunchFailure,
                   {"reduce", "inclusive_scan", here(kReduceLine)}, 32);
}

constexpr int kShuffleLine = __LINE__ + 2;
__global__ void rank_outside_the_group() {
    if (threadIdx.x < 5) cg::coalesced_threads().shfl(threadIdx.x, 5);
}

TEST(CooperativeGroupsFailures, RankOutsideACoalescedGroup) {
    expect_failure(rank_outside_the_group, cudaErrorLaunchFailure, {"source rank", here(kShuffleLine)}, 32);
}

constexpr int kPartLine = __LINE__ + 2;
__global__ void part_of_three() {
    cg::tiled_partition(cg::this_thread_block(), 3);
}

TEST(CooperativeGroupsFailures, PartOfThree) {
    expect_failure(part_of_three, cudaErrorLaunchFailure, {"tiled_partition", here(kPartLine)}, 32);
}

constexpr int kGridLine = __LINE__ + 2;
__global__ void synchronise_grid() {
    cg::this_grid().sync();
}

TEST(CooperativeGroupsFailures, GridSyncInAnOrdinaryLaunch) {
    expect_failure(synchronise_grid, cudaErrorLaunchFailure, {"cudaLaunchCooperativeKernel", here(kGridLine)},
                   32);
}

constexpr int kWaitLine = __LINE__ + 2;
__global__ void wait_without_arriving() {
    cg::this_thread_block().barrier_wait({});
}
constexpr int kArriveLine = __LINE__ + 4;
__global__ void arrive_twice() {
    const cg::thread_block block = cg::this_thread_block();
    auto first = block.barrier_arrive();
    auto second = block.barrier_arrive();
    block.barrier_wait(std::move(first));
    block.barrier_wait(std::move(second));
}
__global__ void arrive_and_end() {
    static_cast<void>(cg::this_thread_block().barrier_arrive());
}
constexpr int kMixedLine = __LINE__ + 6;
__global__ void half_a_block_arrives() {
    const cg::thread_block block = cg::this_thread_block();
    if (threadIdx.x < 32) {
        block.barrier_wait(block.barrier_arrive());
    } else {
        block.sync();
    }
}

TEST(CooperativeGroupsFailures, HalvesOfTheBlockBarrier) {
    expect_failure(wait_without_arriving, cudaErrorLaunchFailure, {"without barrier_arrive", here(kWaitLine)},
                   32);
    expect_failure(arrive_twice, cudaErrorLaunchFailure, {"barrier_arrive again", here(kArriveLine)}, 32);
    expect_failure(arrive_and_end, cudaErrorLaunchFailure, {"between barrier_arrive and barrier_wait"}, 32);
    expect_failure(half_a_block_arrives, cudaErrorLaunchFailure, {"different barriers", here(kMixedLine)},
                   64);
}

#endif

}  // namespace
