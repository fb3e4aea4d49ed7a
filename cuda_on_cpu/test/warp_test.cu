// Warp collectives against models written from the programming guide: which lane reads from which,
// votes, matches. Random values, widths, masks and distances; the seed stands in every
// message.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kFullWarp = 0xffffffffu;

bool holds(unsigned mask, unsigned lane) {
    return (mask >> lane & 1u) != 0;
}

// Random masks, the extremes among them; never empty.
std::vector<unsigned> some_masks(std::mt19937_64& generator) {
    std::vector<unsigned> masks = {kFullWarp,   1u,          0x80000000u, 0xffffu,
                                   0xffff0000u, 0x55555555u, 0xaaaaaaaau, 6u};
    for (int i = 0; i < 24; ++i) {
        const auto random = static_cast<unsigned>(generator() & generator() << (i % 3));
        masks.push_back(random != 0 ? random : 1u);
    }
    return masks;
}

template <class T>
T random_value(std::mt19937_64& generator) {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(static_cast<std::int64_t>(generator())) / T(3);
    } else {
        return static_cast<T>(generator());
    }
}

// ---- Shuffles -----------------------------------------------------------------------------------

enum class Shuffle { from, up, down, by_xor };

struct ShuffleCall {
    Shuffle kind;
    unsigned mask;
    int width;
    std::array<int, kLanes> argument;  // source lane, distance or lane mask, of each lane
};

// The lane that `lane` reads from.
unsigned source_of(const ShuffleCall& call, unsigned lane) {
    const auto width = static_cast<unsigned>(call.width);
    const unsigned first = lane / width * width;
    const unsigned argument = static_cast<unsigned>(call.argument[lane]);
    switch (call.kind) {
        case Shuffle::from:
            return first + argument % width;
        case Shuffle::up:
            return lane >= first + argument ? lane - argument : lane;
        case Shuffle::down:
            return lane + argument < first + width ? lane + argument : lane;
        case Shuffle::by_xor:
            return (lane ^ argument) < first + width ? lane ^ argument : lane;
    }
    return lane;
}

template <class T>
__global__ void call_shuffle(ShuffleCall call, const T* in, T* out) {
    const unsigned lane = threadIdx.x;
    if ((call.mask >> lane & 1u) == 0) return;
    const int argument = call.argument[lane];
    const unsigned distance = static_cast<unsigned>(argument);
    switch (call.kind) {
        case Shuffle::from:
            out[lane] = __shfl_sync(call.mask, in[lane], argument, call.width);
            break;
        case Shuffle::up:
            out[lane] = __shfl_up_sync(call.mask, in[lane], distance, call.width);
            break;
        case Shuffle::down:
            out[lane] = __shfl_down_sync(call.mask, in[lane], distance, call.width);
            break;
        case Shuffle::by_xor:
            out[lane] = __shfl_xor_sync(call.mask, in[lane], argument, call.width);
            break;
    }
}

template <class T>
class Shuffles : public testing::Test {
  protected:
    void check(const ShuffleCall& call, std::mt19937_64& generator) {
        std::vector<T> values(kLanes);
        for (T& value : values)
            value = random_value<T>(generator);
        DeviceVector<T> in(values);
        DeviceVector<T> out(kLanes);
        call_shuffle<<<1, kLanes>>>(call, static_cast<const T*>(in.data()), out.data());
        const std::vector<T> got = out.to_host();
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const unsigned source = source_of(call, lane);
            if (!holds(call.mask, lane) || !holds(call.mask, source)) continue;  // undefined
            EXPECT_EQ(got[lane], values[source])
                << "seed " << kSeed << ", kind " << static_cast<int>(call.kind) << ", mask " << std::hex
                << call.mask << std::dec << ", width " << call.width << ", argument " << call.argument[lane]
                << ", lane " << lane << ", source " << source;
        }
    }

    // The same argument in every lane for one half of the calls, one for each lane in the other.
    void check_kind(Shuffle kind, int least, int most) {
        std::mt19937_64 generator(kSeed);
        for (const int width : {2, 4, 8, 16, 32, 1}) {
            for (const unsigned mask : some_masks(generator)) {
                ShuffleCall call{kind, mask, width, {}};
                const bool uniform = generator() % 2 == 0;
                for (int& argument : call.argument) {
                    argument =
                        least + static_cast<int>(generator() % static_cast<unsigned>(most - least + 1));
                }
                if (uniform) call.argument.fill(call.argument[0]);
                check(call, generator);
                if (this->HasFailure()) return;
            }
        }
    }
};

using ShuffledTypes =
    testing::Types<int, unsigned, long, unsigned long, long long, unsigned long long, float, double>;
TYPED_TEST_SUITE(Shuffles, ShuffledTypes);

TYPED_TEST(Shuffles, FromALane) {
    this->check_kind(Shuffle::from, -64, 64);
}
TYPED_TEST(Shuffles, Up) {
    this->check_kind(Shuffle::up, 0, 31);
}
TYPED_TEST(Shuffles, Down) {
    this->check_kind(Shuffle::down, 0, 31);
}
TYPED_TEST(Shuffles, ByXor) {
    this->check_kind(Shuffle::by_xor, 0, 31);
}

__global__ void default_width(int* out) {
    const int lane = static_cast<int>(threadIdx.x);
    out[lane] = __shfl_sync(kFullWarp, lane, 3) + 100 * __shfl_up_sync(kFullWarp, lane, 1) +
                10000 * __shfl_down_sync(kFullWarp, lane, 1) + 1000000 * __shfl_xor_sync(kFullWarp, lane, 16);
}

TEST(ShuffleWidth, IsTheWarpUnlessGiven) {
    DeviceVector<int> out(kLanes);
    default_width<<<1, kLanes>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (int lane = 0; lane < 32; ++lane) {
        const int up = lane == 0 ? 0 : lane - 1;
        const int down = lane == 31 ? 31 : lane + 1;
        EXPECT_EQ(got[lane], 3 + 100 * up + 10000 * down + 1000000 * (lane ^ 16));
    }
}

// Every warp of a block by itself; the last one is not whole.
__global__ void sum_of_warp(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lanes = min(32u, blockDim.x - threadIdx.x / 32 * 32);
    const unsigned mask = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    const unsigned lane = threadIdx.x % 32;
    int sum = in[i];
    for (unsigned offset = 16; offset > 0; offset /= 2) {
        const int other = __shfl_down_sync(mask, sum, offset);
        if (lane + offset < lanes) sum += other;
    }
    out[i] = __shfl_sync(mask, sum, 0);
}

TEST(Warps, OfABlockDoNotMix) {
    constexpr unsigned kBlocks = 5;
    for (const unsigned threads : {32u, 64u, 1000u, 1024u, 33u, 7u}) {
        std::vector<int> values(kBlocks * threads);
        const auto words = random_words(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<int>(words[i] % 2001) - 1000;
        DeviceVector<int> in(values);
        DeviceVector<int> out(values.size());
        sum_of_warp<<<kBlocks, threads>>>(in.data(), out.data());
        const std::vector<int> got = out.to_host();
        for (unsigned block = 0; block < kBlocks; ++block) {
            for (unsigned first = 0; first < threads; first += 32) {
                int expected = 0;
                for (unsigned t = first; t < std::min(first + 32, threads); ++t)
                    expected += values[block * threads + t];
                for (unsigned t = first; t < std::min(first + 32, threads); ++t) {
                    ASSERT_EQ(got[block * threads + t], expected) << "seed " << kSeed << ", thread " << t;
                }
            }
        }
    }
}

// ---- Votes --------------------------------------------------------------------------------------

struct Votes {
    unsigned ballot;
    int any, all;
};

__global__ void vote(unsigned mask, const int* predicates, Votes* out) {
    const unsigned lane = threadIdx.x;
    if ((mask >> lane & 1u) == 0) return;
    const int mine = predicates[lane];
    out[lane] = {__ballot_sync(mask, mine), __any_sync(mask, mine), __all_sync(mask, mine)};
}

TEST(Voting, AgreesWithTheHost) {
    std::mt19937_64 generator(kSeed);
    for (const unsigned mask : some_masks(generator)) {
        for (int density = 0; density < 5; ++density) {  // no lane, some lanes, all lanes
            std::vector<int> predicates(kLanes);
            unsigned expected = 0;
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                predicates[lane] =
                    static_cast<int>(generator() % 4) < density ? static_cast<int>(generator() % 7) - 8 : 0;
                if (predicates[lane] != 0 && holds(mask, lane)) expected |= 1u << lane;
            }
            DeviceVector<int> in(predicates);
            DeviceVector<Votes> out(kLanes);
            vote<<<1, kLanes>>>(mask, in.data(), out.data());
            const std::vector<Votes> got = out.to_host();
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                if (!holds(mask, lane)) continue;
                EXPECT_EQ(got[lane].ballot, expected) << "seed " << kSeed << ", mask " << mask;
                EXPECT_EQ(got[lane].any != 0, expected != 0) << "seed " << kSeed << ", mask " << mask;
                EXPECT_EQ(got[lane].all != 0, expected == mask) << "seed " << kSeed << ", mask " << mask;
            }
        }
    }
}

__global__ void vote_of_the_last_lanes(unsigned stay_from, Votes* out, unsigned* shuffled) {
    const unsigned lane = threadIdx.x;
    if (lane < stay_from) return;
    __syncwarp();
    out[lane] = {__ballot_sync(kFullWarp, lane % 2), __any_sync(kFullWarp, lane < stay_from),
                 __all_sync(kFullWarp, lane >= stay_from)};
    shuffled[lane] = stay_from == 0 ? __shfl_sync(kFullWarp, lane, 3) : 3;
}

// A mask may name lanes that have ended, and lanes beyond the end of the block: no lane waits for
// them.
TEST(Voting, LeavesOutLanesThatHaveEndedOrNeverWere) {
    for (const unsigned threads : {32u, 20u}) {
        for (const unsigned stay_from : {0u, 1u, 10u, 19u}) {
            DeviceVector<Votes> out(kLanes);
            DeviceVector<unsigned> shuffled(kLanes);
            vote_of_the_last_lanes<<<1, threads>>>(stay_from, out.data(), shuffled.data());
            const std::vector<Votes> got = out.to_host();
            unsigned odd = 0;
            for (unsigned lane = stay_from; lane < threads; ++lane)
                odd |= (lane % 2) << lane;
            for (unsigned lane = stay_from; lane < threads; ++lane) {
                EXPECT_EQ(got[lane].ballot, odd) << threads << " threads, " << stay_from << " ended";
                EXPECT_EQ(got[lane].any, 0) << threads << " threads, " << stay_from << " ended";
                EXPECT_NE(got[lane].all, 0) << threads << " threads, " << stay_from << " ended";
                EXPECT_EQ(shuffled.to_host()[lane], 3u);
            }
        }
    }
}

// ---- Matches ------------------------------------------------------------------------------------

struct Matches {
    unsigned any, all;
    int all_equal;
};

template <class T>
__global__ void match(unsigned mask, const T* in, Matches* out) {
    const unsigned lane = threadIdx.x;
    if ((mask >> lane & 1u) == 0) return;
    Matches mine{};
    mine.any = __match_any_sync(mask, in[lane]);
    mine.all = __match_all_sync(mask, in[lane], &mine.all_equal);
    out[lane] = mine;
}

template <class T>
class Matching : public testing::Test {};
TYPED_TEST_SUITE(Matching, ShuffledTypes);

TYPED_TEST(Matching, AgreesWithTheHost) {
    std::mt19937_64 generator(kSeed);
    for (const unsigned mask : some_masks(generator)) {
        for (const unsigned kinds : {1u, 2u, 5u, 100u}) {
            std::vector<TypeParam> choices(kinds);
            for (auto& choice : choices)
                choice = random_value<TypeParam>(generator);
            std::vector<TypeParam> values(kLanes);
            for (auto& value : values)
                value = choices[generator() % kinds];
            DeviceVector<TypeParam> in(values);
            DeviceVector<Matches> out(kLanes);
            match<<<1, kLanes>>>(mask, static_cast<const TypeParam*>(in.data()), out.data());
            const std::vector<Matches> got = out.to_host();
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                if (!holds(mask, lane)) continue;
                unsigned same = 0;
                for (unsigned other = 0; other < kLanes; ++other) {
                    if (holds(mask, other) && values[other] == values[lane]) same |= 1u << other;
                }
                EXPECT_EQ(got[lane].any, same) << "seed " << kSeed << ", mask " << mask << ", lane " << lane;
                EXPECT_EQ(got[lane].all, same == mask ? mask : 0u) << "seed " << kSeed << ", mask " << mask;
                EXPECT_EQ(got[lane].all_equal != 0, same == mask) << "seed " << kSeed << ", mask " << mask;
            }
        }
    }
}

__global__ void match_zeros_and_nans(unsigned* out) {
    const unsigned lane = threadIdx.x;
    const float zero = lane % 2 == 0 ? 0.0f : -0.0f;
    out[lane] = __match_any_sync(kFullWarp, zero);
    out[32 + lane] = __match_any_sync(kFullWarp, __int_as_float(0x7fc00000));
}

TEST(MatchingOfFloats, ComparesBits) {
    DeviceVector<unsigned> out(64);
    match_zeros_and_nans<<<1, kLanes>>>(out.data());
    const std::vector<unsigned> got = out.to_host();
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        EXPECT_EQ(got[lane], lane % 2 == 0 ? 0x55555555u : 0xaaaaaaaau);
        EXPECT_EQ(got[32 + lane], kFullWarp);
    }
}

// ---- Reductions ---------------------------------------------------------------------------------

struct Reductions {
    int add, least, most;
    unsigned add_unsigned, least_unsigned, most_unsigned, all_bits, any_bits, odd_bits;
};

__global__ void reduce(unsigned mask, const int* in, Reductions* out) {
    const unsigned lane = threadIdx.x;
    if ((mask >> lane & 1u) == 0) return;
    const int x = in[lane];
    const auto u = static_cast<unsigned>(x);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    out[lane] = {__reduce_add_sync(mask, x), __reduce_min_sync(mask, x), __reduce_max_sync(mask, x),
                 __reduce_add_sync(mask, u), __reduce_min_sync(mask, u), __reduce_max_sync(mask, u),
                 __reduce_and_sync(mask, u), __reduce_or_sync(mask, u),  __reduce_xor_sync(mask, u)};
#endif
}

// The functions exist from compute capability 8.0 on.
bool reduces_in_hardware() {
    int major = 0;
    EXPECT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
    return major >= 8;
}

TEST(Reducing, AgreesWithTheHost) {
    if (!reduces_in_hardware()) GTEST_SKIP() << "__reduce_*_sync needs compute capability 8.0";
    std::mt19937_64 generator(kSeed);
    for (const unsigned mask : some_masks(generator)) {
        for (const int shift : {0, 16, 28}) {  // anything (sums overflow), then small numbers
            std::vector<int> values(kLanes);
            for (int& value : values)
                value = static_cast<int>(static_cast<std::uint32_t>(generator())) >> shift;
            Reductions expected{0, INT32_MAX, INT32_MIN, 0, UINT32_MAX, 0, UINT32_MAX, 0, 0};
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                if (!holds(mask, lane)) continue;
                const auto u = static_cast<unsigned>(values[lane]);
                expected.add_unsigned += u;
                expected.least = std::min(expected.least, values[lane]);
                expected.most = std::max(expected.most, values[lane]);
                expected.least_unsigned = std::min(expected.least_unsigned, u);
                expected.most_unsigned = std::max(expected.most_unsigned, u);
                expected.all_bits &= u;
                expected.any_bits |= u;
                expected.odd_bits ^= u;
            }
            expected.add = static_cast<int>(expected.add_unsigned);
            DeviceVector<int> in(values);
            DeviceVector<Reductions> out(kLanes);
            reduce<<<1, kLanes>>>(mask, in.data(), out.data());
            const std::vector<Reductions> got = out.to_host();
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                if (!holds(mask, lane)) continue;
                SCOPED_TRACE("seed " + std::to_string(kSeed) + ", mask " + std::to_string(mask));
                EXPECT_EQ(got[lane].add, expected.add);
                EXPECT_EQ(got[lane].least, expected.least);
                EXPECT_EQ(got[lane].most, expected.most);
                EXPECT_EQ(got[lane].add_unsigned, expected.add_unsigned);
                EXPECT_EQ(got[lane].least_unsigned, expected.least_unsigned);
                EXPECT_EQ(got[lane].most_unsigned, expected.most_unsigned);
                EXPECT_EQ(got[lane].all_bits, expected.all_bits);
                EXPECT_EQ(got[lane].any_bits, expected.any_bits);
                EXPECT_EQ(got[lane].odd_bits, expected.odd_bits);
            }
        }
    }
}

// ---- Groups of one warp, each in a collective of its own ----------------------------------------

__global__ void divided_warp(const unsigned* group_of, int* out) {
    const unsigned lane = threadIdx.x;
    const unsigned group = group_of[lane];
    const unsigned mask = __match_any_sync(kFullWarp, group);
    const unsigned leader = static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1;
    int result = 0;
    if (group == 0) {
        result = __popc(__ballot_sync(mask, 1));
    } else if (group == 1) {
        result = __shfl_sync(mask, static_cast<int>(lane), static_cast<int>(leader));
    } else if (group == 2) {
        for (int i = 0; i < 3; ++i)
            result += __any_sync(mask, lane == leader) != 0;
    } else {
        result = __all_sync(mask, group > 2) != 0 ? static_cast<int>(__popc(mask)) : -1;
    }
    __syncwarp();
    out[lane] = result + 1000 * __popc(__ballot_sync(kFullWarp, result > 0));
}

TEST(Groups, OfAWarpAreInDifferentCollectives) {
    std::mt19937_64 generator(kSeed);
    for (int trial = 0; trial < 50; ++trial) {
        std::vector<unsigned> group_of(kLanes);
        for (unsigned& group : group_of)
            group = static_cast<unsigned>(generator() % (1 + trial % 6));
        std::vector<int> sizes(6);
        std::vector<int> leaders(6, -1);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            ++sizes[group_of[lane]];
            if (leaders[group_of[lane]] < 0) leaders[group_of[lane]] = static_cast<int>(lane);
        }
        std::vector<int> results(kLanes);
        int positive = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const unsigned group = group_of[lane];
            results[lane] = group == 1 ? leaders[1] : group == 2 ? 3 : sizes[group];
            positive += results[lane] > 0;
        }
        for (int& result : results)
            result += 1000 * positive;
        DeviceVector<unsigned> in(group_of);
        DeviceVector<int> out(kLanes);
        divided_warp<<<1, kLanes>>>(in.data(), out.data());
        EXPECT_EQ(out.to_host(), results) << "seed " << kSeed << ", trial " << trial;
    }
}

// Only lanes that have not exited take part.
__global__ void shuffle_after_a_return(unsigned* out) {
    const unsigned lane = threadIdx.x;
    if (lane >= 16) return;
    unsigned value = __shfl_up_sync(kFullWarp, lane, 1);
    value += 100 * __shfl_xor_sync(kFullWarp, lane, 15);
    value += 10000 * __popc(__match_any_sync(kFullWarp, lane / 4));
    out[lane] = value;
}

TEST(Shuffles, DoWithoutLanesThatHaveExited) {
    DeviceVector<unsigned> out(16);
    shuffle_after_a_return<<<1, 32>>>(out.data());
    const std::vector<unsigned> got = out.to_host();
    for (unsigned lane = 0; lane < 16; ++lane)
        EXPECT_EQ(got[lane], (lane == 0 ? 0 : lane - 1) + 100 * (15 - lane) + 10000 * 4) << lane;
}

}  // namespace
