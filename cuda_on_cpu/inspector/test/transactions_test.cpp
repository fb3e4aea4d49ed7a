#include "transactions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace {

using cuda_on_cpu::Operation;
using namespace cuda_on_cpu::inspector;

constexpr LaneMask kAll = ~LaneMask{0};

template <class AddressOfLane>
Addresses each_lane(AddressOfLane address) {
    Addresses addresses;
    for (unsigned lane = 0; lane < kLanes; ++lane)
        addresses[lane] = static_cast<std::uint64_t>(address(lane));
    return addresses;
}

Addresses stride(std::uint64_t bytes, std::uint64_t first = 0) {
    return each_lane([=](unsigned lane) { return first + lane * bytes; });
}

unsigned wavefronts(const Addresses& addresses, unsigned bytes, LaneMask mask = kAll,
                    Operation operation = Operation::kLoad) {
    return count_shared(operation, mask, addresses, bytes).transactions;
}

unsigned sectors(const Addresses& addresses, unsigned bytes, LaneMask mask = kAll) {
    Sectors found;
    const Count count = count_global(Operation::kLoad, mask, addresses, bytes, found);
    EXPECT_EQ(found.count, count.transactions);
    return count.transactions;
}

LaneMask first_lanes(unsigned n) {
    return kAll >> (kLanes - n);
}

// --- Shared memory, words ------------------------------------------------------------------------

TEST(SharedWords, AStrideCostsItsCommonFactorWithTheBanks) {
    for (unsigned s = 1; s <= 33; ++s)
        EXPECT_EQ(wavefronts(stride(4 * s), 4), std::gcd(s, 32U)) << "stride " << s;
}

TEST(SharedWords, OneAddressForAllIsOneWavefront) {
    EXPECT_EQ(wavefronts(stride(0, 64), 4), 1u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane / 8 * 4; }), 4), 1u);
}

TEST(SharedWords, LanesThatShareAWordOfABankDoNotCollide) {
    // Two words of bank 0, each accessed by half of the lanes.
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane % 2 * 128; }), 4), 2u);
}

TEST(SharedWords, PaddingARowByAWordFreesAColumn) {
    EXPECT_EQ(wavefronts(stride(32 * 4), 4), 32u);
    EXPECT_EQ(wavefronts(stride(33 * 4), 4), 1u);
}

TEST(SharedWords, SmallerElementsShareWords) {
    EXPECT_EQ(wavefronts(stride(1), 1), 1u);
    EXPECT_EQ(wavefronts(stride(2), 2), 1u);
    EXPECT_EQ(wavefronts(stride(64), 2), 16u);  // a column of half[32][32]
    EXPECT_EQ(wavefronts(stride(66), 2), 1u);
    EXPECT_EQ(wavefronts(stride(32), 1), 8u);  // a column of char[32][32]
}

TEST(SharedWords, OnlyActiveLanesCount) {
    for (const unsigned n : {1U, 7U, 17U, 31U})
        EXPECT_EQ(wavefronts(stride(128), 4, first_lanes(n)), n);
}

TEST(SharedWords, IdealAndBytes) {
    EXPECT_EQ(count_shared(Operation::kLoad, kAll, stride(128), 4), (Count{32, 1, 128}));
    EXPECT_EQ(count_shared(Operation::kLoad, kAll, stride(0), 4), (Count{1, 1, 4}));
    EXPECT_EQ(count_shared(Operation::kLoad, kAll, stride(16), 16), (Count{4, 4, 512}));
    EXPECT_EQ(count_shared(Operation::kLoad, kAll, stride(0), 16), (Count{2, 2, 16}));
}

// --- Shared memory, 8 and 16 bytes: numbers measured on an H200 ----------------------------------

TEST(SharedVectors, EightBytesInHalves) {
    EXPECT_EQ(wavefronts(stride(8), 8), 2u);
    EXPECT_EQ(wavefronts(stride(8), 8, first_lanes(16)), 1u);
    EXPECT_EQ(wavefronts(stride(8), 8, first_lanes(17)), 2u);
    for (const auto& [s, expected] : {std::pair(2, 4U), {3, 2U}, {4, 8U}, {8, 16U}, {16, 32U}, {33, 2U}})
        EXPECT_EQ(wavefronts(stride(8 * static_cast<unsigned>(s)), 8), expected) << "stride " << s;
}

TEST(SharedVectors, EightBytesTogetherWhereNeighboursShare) {
    EXPECT_EQ(wavefronts(stride(0), 8), 1u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane / 2 * 8; }), 8), 1u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane / 2 * 128; }), 8), 16u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane % 2 * 8; }), 8), 1u);
    for (const unsigned n : {4U, 8U, 16U})
        EXPECT_EQ(wavefronts(each_lane([=](unsigned lane) { return lane % n * 8; }), 8), 2u) << n;
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane % 16 * 128; }), 8), 32u);
}

TEST(SharedVectors, SixteenBytesInQuarters) {
    EXPECT_EQ(wavefronts(stride(16), 16), 4u);
    for (const auto& [lanes, expected] : {std::pair(8U, 1U), {9U, 2U}, {17U, 3U}, {31U, 4U}})
        EXPECT_EQ(wavefronts(stride(16), 16, first_lanes(lanes)), expected) << lanes << " lanes";
    for (const auto& [s, expected] : {std::pair(2U, 8U), {4U, 16U}, {8U, 32U}})
        EXPECT_EQ(wavefronts(stride(16 * s), 16), expected) << "stride " << s;
}

TEST(SharedVectors, SixteenBytesTogetherWithinHalves) {
    EXPECT_EQ(wavefronts(stride(0), 16), 2u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane / 2 * 16; }), 16), 2u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane % 2 * 16; }), 16), 2u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane % 4 * 16; }), 16), 4u);
    EXPECT_EQ(wavefronts(each_lane([](unsigned lane) { return lane % 8 * 16; }), 16), 4u);
}

TEST(SharedVectors, NeighboursInOneHalfDoNotJoinTheQuartersOfTheOther) {
    // Pairs only in the lower half of the warp.
    const Addresses addresses = each_lane([](unsigned lane) { return (lane < 16 ? lane / 2 : lane) * 16; });
    EXPECT_EQ(wavefronts(addresses, 16), 4u);
    EXPECT_EQ(wavefronts(addresses, 16, 0xffff), 1u);
}

TEST(SharedVectors, ALaneWithoutAPartnerKeepsNobodyApart) {
    EXPECT_EQ(wavefronts(stride(8), 8, 1U << 0 | 1U << 20), 1u);
    EXPECT_EQ(wavefronts(stride(8), 8, 3U << 0 | 1U << 20), 1u);  // 0 and 1 differ, but 0 and 2 do not
    EXPECT_EQ(wavefronts(stride(8), 8, 7U << 0 | 1U << 20), 2u);
}

TEST(SharedVectors, StoresAreNeverJoined) {
    const Addresses pairs8 = each_lane([](unsigned lane) { return lane / 2 * 8; });
    const Addresses pairs16 = each_lane([](unsigned lane) { return lane / 2 * 16; });
    EXPECT_EQ(wavefronts(pairs8, 8, kAll, Operation::kStore), 2u);
    EXPECT_EQ(wavefronts(pairs16, 16, kAll, Operation::kStore), 4u);
    EXPECT_EQ(wavefronts(stride(0), 16, kAll, Operation::kStore), 4u);
    EXPECT_EQ(wavefronts(stride(16), 16, kAll, Operation::kStore), 4u);
    EXPECT_EQ(wavefronts(stride(16), 16, kAll, Operation::kAsyncCopy), 4u);
}

TEST(SharedCopies, FourBytesByLanesAtABank) {
    EXPECT_EQ(wavefronts(stride(4), 4, kAll, Operation::kAsyncCopy), 1u);
    EXPECT_EQ(wavefronts(stride(0), 4, kAll, Operation::kAsyncCopy), 32u);
    EXPECT_EQ(wavefronts(stride(32), 4, kAll, Operation::kAsyncCopy), 8u);
}

TEST(SharedAtomics, LanesAtOneBankWaitForEachOther) {
    const auto atomic = [](const Addresses& addresses) {
        return wavefronts(addresses, 4, kAll, Operation::kAtomic);
    };
    EXPECT_EQ(atomic(stride(0)), 32u);
    EXPECT_EQ(atomic(each_lane([](unsigned lane) { return lane % 2 * 4; })), 16u);
    EXPECT_EQ(atomic(each_lane([](unsigned lane) { return lane % 8 * 4; })), 4u);
    EXPECT_EQ(atomic(stride(4)), 1u);
    EXPECT_EQ(atomic(stride(8)), 2u);
    EXPECT_EQ(atomic(stride(128)), 32u);
}

TEST(MatrixLoads, EachMatrixByItself) {
    for (const auto& [pitch, expected] :
         {std::pair(0U, 4U), {16U, 4U}, {32U, 8U}, {64U, 16U}, {80U, 4U}, {128U, 32U}, {144U, 4U}})
        EXPECT_EQ(count_matrices(stride(pitch), 4).transactions, expected) << "pitch " << pitch;
    for (const unsigned matrices : {1U, 2U, 4U})
        EXPECT_EQ(count_matrices(stride(16), matrices), (Count{matrices, matrices, 128 * matrices}));
}

// --- Global memory -------------------------------------------------------------------------------

TEST(GlobalSectors, ContiguousIsIdeal) {
    EXPECT_EQ(sectors(stride(1), 1), 1u);
    EXPECT_EQ(sectors(stride(2), 2), 2u);
    EXPECT_EQ(sectors(stride(4), 4), 4u);
    EXPECT_EQ(sectors(stride(8), 8), 8u);
    EXPECT_EQ(sectors(stride(16), 16), 16u);
}

TEST(GlobalSectors, AMisalignedStartCostsOneMore) {
    EXPECT_EQ(sectors(stride(4, 4), 4), 5u);
    EXPECT_EQ(sectors(stride(4, 32), 4), 4u);
}

TEST(GlobalSectors, StridesOfUpTo32Bytes) {
    for (unsigned s = 1; s <= 8; ++s)
        EXPECT_EQ(sectors(stride(4 * s), 4), (31 * s + 8) / 8) << "stride " << s;
    EXPECT_EQ(sectors(stride(400), 4), 32u);
}

TEST(GlobalSectors, SharedByLanes) {
    Sectors found;
    EXPECT_EQ(count_global(Operation::kLoad, kAll, stride(0, 4096), 4, found), (Count{1, 1, 4}));
    EXPECT_EQ(found.sector[0], 128u);
    EXPECT_EQ(
        count_global(Operation::kLoad, kAll, each_lane([](unsigned lane) { return lane / 2 * 4; }), 4, found),
        (Count{2, 2, 64}));
    // Twelve-byte structures; a request reads one member of each.
    EXPECT_EQ(count_global(Operation::kLoad, kAll, stride(12), 4, found), (Count{12, 4, 128}));
}

TEST(GlobalSectors, AtomicsOnOneWordVisitItOneAfterTheOther) {
    Sectors found;
    const auto visits = [&](const Addresses& addresses) {
        return count_global(Operation::kAtomic, kAll, addresses, 4, found).transactions;
    };
    EXPECT_EQ(visits(stride(0)), 32u);
    EXPECT_EQ(visits(each_lane([](unsigned lane) { return lane % 2 * 4; })), 16u);
    EXPECT_EQ(visits(each_lane([](unsigned lane) { return lane % 2 * 32; })), 32u);
    EXPECT_EQ(visits(stride(4)), 4u);
    EXPECT_EQ(found.count, 4u);
}

TEST(GlobalSectors, AcrossABorder) {
    EXPECT_EQ(sectors(stride(0, 24), 16), 2u);
}

// --- Both, compared with a simple count ----------------------------------------------------------

TEST(Transactions, AgreeWithPlainCountingOnRandomRequests) {
    std::mt19937 random(20261121);
    for (int repeat = 0; repeat < 20000; ++repeat) {
        const unsigned bytes = 1U << random() % 5;
        const unsigned range = 1U << random() % 10;
        const LaneMask mask = repeat % 2 == 0 ? kAll : static_cast<LaneMask>(random()) | 1U << random() % 32;
        const Addresses addresses = each_lane([&](unsigned) { return 4096 + random() % range * bytes; });
        std::set<std::uint64_t> touched_bytes, touched_sectors;
        std::map<std::uint64_t, std::set<std::uint64_t>> words;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((mask >> lane & 1) == 0) continue;
            for (unsigned b = 0; b < bytes; ++b) {
                touched_bytes.insert(addresses[lane] + b);
                touched_sectors.insert((addresses[lane] + b) / 32);
                words[(addresses[lane] + b) / 4 % 32].insert((addresses[lane] + b) / 4);
            }
        }
        Sectors found;
        const Count global = count_global(Operation::kLoad, mask, addresses, bytes, found);
        EXPECT_EQ(std::set(found.sector.begin(), found.sector.begin() + found.count), touched_sectors);
        EXPECT_EQ(global.transactions, touched_sectors.size());
        EXPECT_EQ(global.bytes_used, touched_bytes.size());
        EXPECT_LE(global.ideal, global.transactions);
        const Count shared = count_shared(Operation::kLoad, mask, addresses, bytes);
        EXPECT_EQ(shared.bytes_used, touched_bytes.size());
        EXPECT_LE(shared.ideal, shared.transactions);
        if (bytes > 4) continue;
        std::size_t most = 0;
        for (const auto& [bank, distinct] : words)
            most = std::max(most, distinct.size());
        EXPECT_EQ(shared.transactions, most);
    }
}

}  // namespace
