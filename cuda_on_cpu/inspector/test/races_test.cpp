#include "races.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace cuda_on_cpu::inspector {
namespace {

constexpr LaneMask kAll = ~LaneMask{0};

TEST(BlockOrder, NothingOrdersThreadsWithoutSynchronisation) {
    BlockOrder order;
    order.begin_block(64);
    EXPECT_FALSE(order.ordered(0, order.epoch(0), 1));
    EXPECT_FALSE(order.ordered(0, order.epoch(0), 32));
    EXPECT_TRUE(order.ordered(5, order.epoch(5), 5)) << "a thread with itself";
}

TEST(BlockOrder, ABarrierOrdersEverythingBeforeItAndNothingAfter) {
    BlockOrder order;
    order.begin_block(100);
    const Epoch before = order.epoch(99);
    order.barrier();
    for (unsigned thread : {0U, 31U, 32U, 98U})
        EXPECT_TRUE(order.ordered(99, before, thread));
    EXPECT_FALSE(order.ordered(99, order.epoch(99), 0));
}

TEST(BlockOrder, JoinedLanesAreOrderedAndTheOthersAreNot) {
    BlockOrder order;
    order.begin_block(64);
    const Epoch then = order.epoch(1);
    order.join(0, 0b1110);
    EXPECT_TRUE(order.ordered(1, then, 2));
    EXPECT_TRUE(order.ordered(1, then, 3));
    EXPECT_FALSE(order.ordered(1, then, 0)) << "not in the mask";
    EXPECT_FALSE(order.ordered(0, then, 1)) << "not in the mask";
    EXPECT_FALSE(order.ordered(1, then, 33)) << "another warp";
    EXPECT_FALSE(order.ordered(1, order.epoch(1), 2)) << "what comes after it";
}

TEST(BlockOrder, JoinsAreTransitive) {
    BlockOrder order;
    order.begin_block(32);
    const Epoch then = order.epoch(0);
    order.join(0, 0b0011);
    order.join(0, 0b0110);
    EXPECT_TRUE(order.ordered(0, then, 2)) << "0 -> 1 -> 2";
    EXPECT_FALSE(order.ordered(2, then, 0)) << "not the other way round";
}

TEST(BlockOrder, AWholeWarpIsOrderedAtOnce) {
    BlockOrder order;
    order.begin_block(40);
    const Epoch full = order.epoch(0);
    const Epoch part = order.epoch(32);
    EXPECT_FALSE(order.all_ordered(0, full, 3));
    order.join(0, kAll);
    order.join(1, kAll) /* the block has eight of them */;
    EXPECT_TRUE(order.all_ordered(0, full, 3));
    EXPECT_TRUE(order.all_ordered(1, part, 39));
    EXPECT_FALSE(order.all_ordered(0, full, 39));
    const Epoch now = order.epoch(0);
    order.join(0, kAll & ~1U);
    EXPECT_FALSE(order.all_ordered(0, now, 3)) << "lane 0 was missing";
}

TEST(BlockOrder, AnMbarrierOrdersPhaseByPhase) {
    BlockOrder order;
    order.begin_block(96);
    const int barrier = 0;
    const Epoch first = order.epoch(0);
    order.arrive(0, &barrier, 0);
    EXPECT_FALSE(order.ordered(0, first, 32)) << "has not waited";
    order.wait(32, &barrier, 0);
    EXPECT_TRUE(order.ordered(0, first, 32));
    const Epoch second = order.epoch(0);
    EXPECT_FALSE(order.ordered(0, second, 32)) << "what comes after the arrival";
    order.arrive(0, &barrier, 1);
    order.wait(64, &barrier, 0);
    EXPECT_TRUE(order.ordered(0, first, 64)) << "late";
    EXPECT_FALSE(order.ordered(0, second, 64)) << "has waited for the phase before only";
    order.wait(64, &barrier, 1);
    EXPECT_TRUE(order.ordered(0, second, 64));
    EXPECT_FALSE(order.ordered(0, second, 32));
}

TEST(BlockOrder, WaitingForThePhaseBeforeTheFirstOrdersNothing) {
    BlockOrder order;
    order.begin_block(64);
    const int barrier = 0;
    const Epoch then = order.epoch(0);
    order.arrive(0, &barrier, 0);
    order.wait(32, &barrier, 1);
    EXPECT_FALSE(order.ordered(0, then, 32));
}

TEST(BlockOrder, ABarrierThatBeginsAnewHasNoClock) {
    BlockOrder order;
    order.begin_block(96);
    const int barrier = 0;
    const Epoch before = order.epoch(0);
    order.arrive(0, &barrier, 0);
    order.reset(&barrier);
    const Epoch after = order.epoch(64);
    order.arrive(64, &barrier, 0);
    order.wait(32, &barrier, 0);
    EXPECT_TRUE(order.ordered(64, after, 32));
    EXPECT_FALSE(order.ordered(0, before, 32));
}

TEST(BlockOrder, ABulkCopyHappensBeforeTheWaitForIt) {
    BlockOrder order;
    order.begin_block(64);
    const int first = 0;
    const int second = 0;
    const unsigned engine = order.copy_engine(&first);
    const unsigned other = order.copy_engine(&second);
    ASSERT_NE(engine, other);
    EXPECT_EQ(order.copy_engine(&first), engine);
    EXPECT_GE(std::min(engine, other), 64U);
    const Epoch then = order.epoch(engine);
    const Epoch of_other = order.epoch(other);
    order.arrive(other, &second, 0);
    order.arrive(engine, &first, 0);
    EXPECT_FALSE(order.ordered(engine, then, 0));
    order.wait(32, &first, 0);
    EXPECT_TRUE(order.ordered(engine, then, 32));
    EXPECT_FALSE(order.ordered(other, of_other, 32)) << "at another barrier";
    const int third = 0;
    order.arrive(32, &third, 0);
    order.wait(0, &third, 0);
    EXPECT_TRUE(order.ordered(engine, then, 0)) << "through the thread that has waited";
    order.barrier();
    EXPECT_TRUE(order.ordered(other, of_other, 1));
}

TEST(BlockOrder, OfManyBarriersTheLastShareACopyEngine) {
    BlockOrder order;
    order.begin_block(1);
    const std::array<char, 2 * BlockOrder::kCopyEngines> barriers{};
    std::set<unsigned> engines;
    for (const char& barrier : barriers) {
        const unsigned engine = order.copy_engine(&barrier);
        order.arrive(engine, &barrier, 0);
        engines.insert(engine);
    }
    EXPECT_EQ(engines.size(), BlockOrder::kCopyEngines);
}

TEST(BlockOrder, AClockThatReturnsFromAnotherBlockOrdersThreads) {
    BlockOrder order;
    order.begin_block(96);
    const Epoch then = order.epoch(0);
    const Epoch elsewhere = order.epoch(64);
    const BlockClock released = order.release(0);
    const Epoch later = order.epoch(0);
    order.acquire(32, released);
    EXPECT_TRUE(order.ordered(0, then, 32));
    EXPECT_FALSE(order.ordered(0, later, 32)) << "what comes after it";
    EXPECT_FALSE(order.ordered(64, elsewhere, 32)) << "a warp that has not released";
    EXPECT_FALSE(order.ordered(0, then, 33)) << "another lane";
    const int barrier = 0;
    order.arrive(64, &barrier, 0);
    order.wait(0, &barrier, 0);
    order.acquire(33, order.release(0));
    EXPECT_TRUE(order.ordered(64, elsewhere, 33)) << "from 64 to 0, from there through the other block";
}

TEST(BlockOrder, ASplitBarrierLeavesWhatIsBetweenItsHalvesUnordered) {
    BlockOrder order;
    order.begin_block(64);
    const Epoch before = order.epoch(40);
    for (unsigned thread = 0; thread < 64; ++thread)
        order.arrive(thread);
    const Epoch between = order.epoch(40);
    EXPECT_FALSE(order.ordered(40, before, 0)) << "not waited yet";
    order.all_arrived();
    order.wait(0);
    EXPECT_TRUE(order.ordered(40, before, 0));
    EXPECT_FALSE(order.ordered(40, between, 0));
    EXPECT_FALSE(order.ordered(40, before, 1)) << "1 has not waited";
    // At the next phase.
    order.arrive(0);
    // Still at this phase.
    order.wait(1);
    EXPECT_TRUE(order.ordered(40, before, 1));
}

TEST(BlockOrder, ArrivalBarriersAreIdentifiedByTheirAddresses) {
    BlockOrder order;
    order.begin_block(64);
    const int filled = 0;
    const int emptied = 0;
    const Epoch copied = order.epoch(3);
    order.arrive(3, &filled);
    const Epoch later = order.epoch(3);
    order.wait(40, &filled);
    EXPECT_FALSE(order.ordered(3, copied, 40)) << "the phase is not complete";
    order.all_arrived(&filled);
    order.wait(41, &emptied);
    EXPECT_FALSE(order.ordered(3, copied, 41)) << "another barrier";
    order.wait(40, &filled);
    EXPECT_TRUE(order.ordered(3, copied, 40));
    EXPECT_FALSE(order.ordered(3, later, 40));
    EXPECT_FALSE(order.ordered(3, copied, 42)) << "42 has not waited";

    const Epoch used = order.epoch(40);
    order.arrive(40, &emptied);
    order.all_arrived(&emptied);
    order.wait(3, &emptied);
    EXPECT_TRUE(order.ordered(40, used, 3));
    order.begin_block(64);
    const Epoch next = order.epoch(3);
    order.wait(40, &filled);
    EXPECT_FALSE(order.ordered(3, next, 40)) << "a phase of the block before";
}

TEST(BlockOrder, AFenceAndAnAtomicRelease) {
    BlockOrder order;
    order.begin_block(64);
    const Epoch data = order.epoch(3);
    EXPECT_EQ(order.released(3), nullptr) << "no fence, nothing released";
    order.fence(3);
    const Epoch late = order.epoch(3);
    order.acquire(50, order.released(3));
    EXPECT_TRUE(order.ordered(3, data, 50));
    EXPECT_FALSE(order.ordered(3, late, 50)) << "written after the fence";
    EXPECT_FALSE(order.ordered(3, data, 51));
    order.join(1, kAll);
    EXPECT_TRUE(order.ordered(3, data, 51)) << "from 3 by the atomic to 50, by the warp to 51";
}

TEST(BlockOrder, AFenceReleasesWhatItsLaneAcquired) {
    BlockOrder order;
    order.begin_block(64);
    const Epoch data = order.epoch(7);
    order.join(0, kAll);
    order.fence(0);
    order.acquire(40, order.released(0));
    EXPECT_TRUE(order.ordered(7, data, 40));
}

TEST(BlockOrder, ABlockStartsWithNewClocks) {
    BlockOrder order;
    order.begin_block(64);
    const Epoch old = order.epoch(9);
    order.join(0, kAll);
    order.fence(0);
    order.begin_block(96);
    EXPECT_GT(order.epoch(9), old);
    EXPECT_FALSE(order.ordered(9, order.epoch(9), 10));
    EXPECT_EQ(order.released(0), nullptr);
}

// --- Between blocks

// What happens before a fence of a thread in a block: everything up to one epoch, and more of its
// warp and of itself.
BlockClock clock_of(unsigned thread, Epoch all, Epoch of_thread, Epoch of_warp = 0) {
    return {
        .all = all, .of_warp = of_warp, .warp = thread / kLanes, .of_thread = of_thread, .thread = thread};
}

TEST(BlockClock, WhatIsJoinedStaysExact) {
    BlockClock clock;
    EXPECT_TRUE(clock.is_zero());
    clock.join(clock_of(3, 5, 8));
    clock.join(clock_of(40, 6, 9, 7));
    clock.join(clock_of(70, 2, 4));
    EXPECT_EQ(clock.by_thread == nullptr, false);
    EXPECT_TRUE(clock.covers(3, 8) && clock.covers(40, 9) && clock.covers(41, 7) && clock.covers(200, 6));
    EXPECT_FALSE(clock.covers(3, 9) || clock.covers(4, 7) || clock.covers(41, 8) || clock.covers(70, 7));
    clock.join(clock_of(0, 20, 25));
    EXPECT_EQ(clock.by_thread, nullptr) << "everything before a barrier";
}

TEST(BlockOrder, TellsWhatHappensBeforeAThread) {
    BlockOrder order;
    order.begin_block(96);
    const Epoch first = order.epoch(5);
    order.barrier();
    const Epoch now = order.epoch(5);
    EXPECT_TRUE(order.before(0).covers(5, first) && order.before(5).covers(5, now));
    EXPECT_FALSE(order.before(0).covers(5, now) || order.before(0).covers(40, now));
    order.join(0, 0b100001);
    EXPECT_TRUE(order.before(0).covers(5, now));
    EXPECT_FALSE(order.before(0).covers(6, now)) << "not in the mask";
    const int barrier = 0;
    order.arrive(70, &barrier, 0);
    order.wait(0, &barrier, 0);
    EXPECT_TRUE(order.before(0).covers(70, now)) << "through the mbarrier";
    EXPECT_FALSE(order.before(0).covers(71, now));
}

TEST(BlockOrder, AReleaseIsNoFence) {
    BlockOrder order;
    order.begin_block(64);
    const Epoch data = order.epoch(3);
    const SharedClock once = order.release_once(3);
    EXPECT_EQ(order.released(3), nullptr);
    EXPECT_GT(order.epoch(3), data);
    order.acquire(50, once);
    EXPECT_TRUE(order.ordered(3, data, 50));
}

TEST(GridOrder, WithoutAFenceAnAtomicReleasesNothing) {
    GridOrder first;
    first.begin_block(0);
    EXPECT_EQ(first.release(0, nullptr), nullptr);
}

TEST(GridOrder, FenceAtomicAtomicOrders) {
    GridOrder first, second;
    first.begin_block(0);
    second.begin_block(1);
    first.fence(0, clock_of(0, 9, 10));
    second.acquire(first.release(0, nullptr));
    EXPECT_TRUE(second.ordered(0, 0, 10));
    EXPECT_TRUE(second.ordered(0, 500, 9)) << "before the last barrier of block 0";
    EXPECT_FALSE(second.ordered(0, 500, 10)) << "another warp, no barrier in between";
    EXPECT_FALSE(second.ordered(0, 0, 11)) << "after the fence";
    EXPECT_FALSE(first.ordered(1, 0, 1)) << "not the other way round";
}

TEST(GridOrder, AFenceBeforeABarrierCountsForAllThreads) {
    GridOrder first, second;
    first.begin_block(0);
    second.begin_block(1);
    first.fence(500, clock_of(500, 9, 12));
    EXPECT_EQ(first.release(0, nullptr), nullptr) << "no barrier yet";
    first.barrier();
    second.acquire(first.release(0, nullptr));
    EXPECT_TRUE(second.ordered(0, 500, 12));
    EXPECT_TRUE(second.ordered(0, 300, 9)) << "before the barrier that came before the fence";
    EXPECT_FALSE(second.ordered(0, 300, 10)) << "of a thread that has no fence";
    EXPECT_FALSE(second.ordered(0, 500, 13)) << "after the fence";
}

TEST(GridOrder, AFenceOfALaneCountsForThoseThatJoinIt) {
    GridOrder first, second;
    first.begin_block(0);
    second.begin_block(1);
    first.fence(3, clock_of(3, 9, 12));
    first.join(0, 0b1001);
    EXPECT_EQ(first.release(1, nullptr), nullptr) << "not in the mask";
    second.acquire(first.release(0, nullptr));
    EXPECT_TRUE(second.ordered(0, 3, 12));
    EXPECT_FALSE(second.ordered(0, 4, 10)) << "of a lane that has no fence";
}

TEST(GridOrder, AReleaseCountsForItsWordAlone) {
    GridOrder first, second;
    first.begin_block(0);
    second.begin_block(1);
    second.acquire(first.release(0, clock_of(0, 9, 10), nullptr));
    EXPECT_TRUE(second.ordered(0, 0, 10));
    EXPECT_EQ(first.release(0, nullptr), nullptr);
}

TEST(GridOrder, AnUnwatchedBlockPassesClocksOn) {
    GridOrder first, relay, last;
    first.begin_block(0);
    relay.begin_block(GridOrder::kNotWatched);
    last.begin_block(7);
    first.fence(0, clock_of(0, 9, 10));
    relay.acquire(first.release(0, nullptr));
    relay.fence(0, clock_of(0, 98, 99));
    last.acquire(relay.release(0, nullptr));
    EXPECT_TRUE(last.ordered(0, 0, 10));
    EXPECT_FALSE(last.ordered(3, 0, 1));
}

TEST(GridOrder, TheClockAtAnAddressIsKept) {
    GridOrder a, b, c;
    a.begin_block(0);
    b.begin_block(1);
    c.begin_block(2);
    a.fence(0, clock_of(0, 9, 10));
    b.fence(64, clock_of(64, 14, 20));
    c.acquire(b.release(64, a.release(0, nullptr)));
    EXPECT_TRUE(c.ordered(0, 0, 10));
    EXPECT_TRUE(c.ordered(1, 64, 20));
    EXPECT_TRUE(c.ordered(1, 0, 14));
    EXPECT_FALSE(c.ordered(1, 0, 20));
}

}  // namespace
}  // namespace cuda_on_cpu::inspector
