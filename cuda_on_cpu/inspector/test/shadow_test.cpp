#include "shadow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace cuda_on_cpu::inspector {
namespace {

constexpr Address kBegin = 0x10000;
constexpr LaneMask kAll = ~LaneMask{0};

struct Report {
    std::string kind;
    unsigned thread;
    unsigned other;
    Address where;
    unsigned other_block = 0;
    ShortPlace place = 0;
    ShortPlace other_place = 0;
};

class RecordingSink : public SharedSink, public GlobalSink {
  public:
    void race(const Access& access, const Earlier& earlier, Address where) override {
        reports.push_back({"race", access.thread, earlier.thread, where - kBegin, earlier.block, access.place,
                           earlier.place});
    }
    void uninitialised(const Access& access, Address where) override {
        reports.push_back({"uninitialised", access.thread, 0, where - kBegin});
    }
    void missing_wait(const Access& access, const Earlier& copy, Address where) override {
        reports.push_back({"missing_wait", access.thread, copy.thread, where - kBegin});
    }
    std::string kinds() const {
        std::string all;
        for (const Report& each : reports)
            all += (all.empty() ? "" : " ") + each.kind;
        return all;
    }
    std::vector<Report> reports;
};

class SharedShadowTest : public testing::Test {
  protected:
    void SetUp() override { begin(128); }
    void begin(unsigned threads, bool written = true) {
        order.begin_block(threads);
        shadow.begin_block();
        shadow.add({kBegin, 1024, 256, "tile"}, written);
    }
    SharedShadow::Region& region() { return *shadow.find(kBegin); }
    void access(unsigned thread, Address offset, unsigned bytes, AccessKind kind, ShortPlace place = 1) {
        shadow.access(region(), {thread, kBegin + offset, bytes, kind, place}, order, sink);
    }
    void read(unsigned thread, Address offset, unsigned bytes = 4, ShortPlace place = 1) {
        access(thread, offset, bytes, AccessKind::load, place);
    }
    void write(unsigned thread, Address offset, unsigned bytes = 4, ShortPlace place = 2) {
        access(thread, offset, bytes, AccessKind::store, place);
    }

    BlockOrder order;
    SharedShadow shadow;
    RecordingSink sink;
};

TEST_F(SharedShadowTest, WriteThenReadByAnotherIsARaceWithBothThreadsAndPlaces) {
    write(3, 8, 4, 20);
    read(70, 8, 4, 10);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].thread, 70U);
    EXPECT_EQ(sink.reports[0].other, 3U);
    EXPECT_EQ(sink.reports[0].where, 8U);
    EXPECT_EQ(sink.reports[0].place, 10);
    EXPECT_EQ(sink.reports[0].other_place, 20);
}

TEST_F(SharedShadowTest, ReadThenWriteIsARaceWithAnyOfTheReaders) {
    for (unsigned reader = 0; reader < 128; ++reader)
        read(reader, 8);
    order.join(0, kAll);
    // Ordered with its own warp, and with itself.
    write(0, 8);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].other, 32U);
}

TEST_F(SharedShadowTest, ABarrierOrdersThem) {
    write(3, 8);
    order.barrier();
    for (unsigned reader = 0; reader < 128; ++reader)
        read(reader, 8);
    order.barrier();
    write(77, 8);
    EXPECT_EQ(sink.kinds(), "");
}

TEST_F(SharedShadowTest, ReadsDoNotConflict) {
    for (unsigned reader = 0; reader < 128; ++reader)
        read(reader, reader % 4);
    EXPECT_EQ(sink.kinds(), "");
}

TEST_F(SharedShadowTest, TwoWritersRace) {
    write(0, 8);
    write(1, 8);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(SharedShadowTest, NeighbouringBytesOfAWordDoNotRace) {
    for (unsigned thread = 0; thread < 4; ++thread)
        write(thread, 8 + thread, 1);
    for (unsigned thread = 0; thread < 4; ++thread)
        read(thread, 8 + thread, 1);
    EXPECT_EQ(sink.kinds(), "");
    read(0, 10, 2);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].other, 2U);
    EXPECT_EQ(sink.reports[0].where, 10U);
}

TEST_F(SharedShadowTest, AnAccessOfSixteenBytesIsFourWords) {
    write(0, 16, 16);
    read(1, 28, 4);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].where, 28U);
    read(1, 32, 4);
    EXPECT_EQ(sink.reports.size(), 1U);
}

TEST_F(SharedShadowTest, AnAccessAcrossTwoWordsIsSeenInBoth) {
    write(0, 10, 4);
    read(1, 8, 1);
    EXPECT_EQ(sink.kinds(), "");
    read(1, 13, 1);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(SharedShadowTest, AtomicsConflictWithPlainAccessesOnly) {
    access(0, 8, 4, AccessKind::atomic);
    access(40, 8, 4, AccessKind::atomic);
    access(80, 8, 4, AccessKind::atomic_load);
    EXPECT_EQ(sink.kinds(), "");
    read(100, 8);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(SharedShadowTest, AnAtomicDoesNotHideThePlainWriteBeforeIt) {
    write(0, 8);
    access(0, 8, 4, AccessKind::atomic);
    access(40, 8, 4, AccessKind::atomic);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(SharedShadowTest, TheThreadOfTheLastAtomicMayResetTheWord) {
    access(0, 8, 4, AccessKind::atomic);
    access(40, 8, 4, AccessKind::atomic);
    write(40, 8);
    access(0, 16, 4, AccessKind::atomic);
    access(40, 16, 4, AccessKind::atomic_load);
    write(40, 16);
    EXPECT_EQ(sink.kinds(), "");
    access(0, 24, 4, AccessKind::atomic);
    write(40, 24);
    EXPECT_EQ(sink.kinds(), "race") << "without an atomic access before";
}

TEST_F(SharedShadowTest, JoinedLanesAreOrdered) {
    for (unsigned lane = 0; lane < 32; ++lane)
        write(lane, lane * 4);
    order.join(0, kAll);
    for (unsigned lane = 0; lane < 32; ++lane)
        read(lane, (lane + 1) % 32 * 4);
    EXPECT_EQ(sink.kinds(), "");
    read(32, 0);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(SharedShadowTest, ALaneOutsideTheMaskStillRaces) {
    for (unsigned lane = 0; lane < 32; ++lane)
        write(lane, lane * 4);
    order.join(0, kAll & ~(1U << 5));
    read(4, 5 * 4);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].other, 5U);
}

// The number of entries stays small even if a warp runs for a long time without a block barrier.
TEST_F(SharedShadowTest, ALongLoopWithinAWarp) {
    for (int round = 0; round < 5000; ++round) {
        for (unsigned lane = 0; lane < 32; ++lane)
            read(lane, 8, 4, round % 200 + 1);
        order.join(0, kAll);
        if (round % 1000 == 999) write(0, 8);
        order.join(0, kAll);
    }
    EXPECT_EQ(sink.kinds(), "");
    read(33, 8);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(SharedShadowTest, AccessesOfEarlierBlocksAreDropped) {
    write(0, 8);
    begin(128);
    read(1, 8);
    EXPECT_EQ(sink.kinds(), "");
}

TEST_F(SharedShadowTest, UnwrittenMemoryIsReportedOnce) {
    begin(64, false);
    write(0, 0, 2);
    read(0, 0, 4);
    ASSERT_EQ(sink.kinds(), "uninitialised");
    EXPECT_EQ(sink.reports[0].where, 2U);
    read(0, 0, 4);
    EXPECT_EQ(sink.reports.size(), 1U);
    access(0, 40, 4, AccessKind::atomic);
    EXPECT_EQ(sink.kinds(), "uninitialised uninitialised") << "an atomic reads too";
    begin(64, false);
    read(0, 0, 2);
    EXPECT_EQ(sink.reports.size(), 3U) << "the next block starts anew";
}

TEST_F(SharedShadowTest, AVectorMayContainUnwrittenElements) {
    begin(64, false);
    write(0, 12);
    read(0, 0, 16);
    EXPECT_EQ(sink.kinds(), "");
    read(0, 16, 16);
    EXPECT_EQ(sink.kinds(), "uninitialised");
}

TEST_F(SharedShadowTest, FindsTheArrayAndItsGaps) {
    shadow.add({kBegin + 4096, 64, 0, "other"}, true);
    const auto name = [&](Address address) {
        const SharedShadow::Region* found = shadow.find(address);
        return found == nullptr ? std::string() : SharedShadow::array_of(*found).name;
    };
    EXPECT_EQ(name(kBegin), "tile");
    EXPECT_EQ(name(kBegin - 256), "tile");
    EXPECT_EQ(name(kBegin - 257), "");
    EXPECT_EQ(name(kBegin + 1024 + 255), "tile");
    EXPECT_EQ(name(kBegin + 1024 + 256), "");
    EXPECT_EQ(name(kBegin + 4096 + 63), "other");
    EXPECT_EQ(name(kBegin + 4096 + 64), "");
}

class CopyTest : public SharedShadowTest {
  protected:
    void SetUp() override { begin(64, false); }
    void issue(unsigned thread, Address offset) {
        shadow.issue_copy(region(), {thread, kBegin + offset, 16, AccessKind::store, 5}, order, sink);
    }
    void complete(unsigned thread, Address offset) {
        shadow.complete_copy(region(), thread, kBegin + offset, 16, order);
    }
};

TEST_F(CopyTest, ReadingBeforeTheWait) {
    issue(0, 0);
    read(0, 4);
    ASSERT_EQ(sink.kinds(), "missing_wait");
    EXPECT_EQ(sink.reports[0].other, 0U);
    EXPECT_EQ(sink.reports[0].where, 4U);
    complete(0, 0);
    read(0, 4);
    EXPECT_EQ(sink.reports.size(), 1U);
}

TEST_F(CopyTest, AnotherThreadNeedsABarrierAfterTheWait) {
    issue(0, 0);
    issue(1, 16);
    complete(0, 0);
    complete(1, 16);
    read(1, 0);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(CopyTest, ABarrierBeforeTheWaitIsNotEnough) {
    issue(0, 0);
    order.barrier();
    complete(0, 0);
    read(1, 0);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(CopyTest, WaitThenBarrierOrders) {
    issue(0, 0);
    issue(1, 16);
    complete(0, 0);
    complete(1, 16);
    order.barrier();
    read(1, 0, 16);
    read(0, 16, 16);
    EXPECT_EQ(sink.kinds(), "");
}

TEST_F(CopyTest, ReadersOfTheOldContentsMustBeDone) {
    begin(64, true);
    read(40, 0);
    issue(0, 0);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(CopyTest, WritingToAPendingDestination) {
    issue(0, 0);
    write(1, 12);
    EXPECT_EQ(sink.kinds(), "missing_wait");
}

// --- Device memory

class GlobalShadowTest : public testing::Test {
  protected:
    struct Block {
        BlockOrder order;
        GridOrder others;
    };
    void SetUp() override {
        for (unsigned i = 0; i < 3; ++i) {
            block[i].order.begin_block(64);
            block[i].others.begin_block(i);
        }
    }
    void access(unsigned b, unsigned thread, Address offset, AccessKind kind, unsigned bytes = 4) {
        shadow.access({thread, kBegin + offset, bytes, kind, 1}, generation, block[b].order, block[b].others,
                      sink);
    }
    GlobalShadow shadow;
    std::array<Block, 3> block;
    GlobalShadow::Generation generation = 1;
    RecordingSink sink;
};

TEST_F(GlobalShadowTest, WriteAndReadOfTwoBlocks) {
    access(0, 5, 8, AccessKind::store);
    access(1, 6, 8, AccessKind::load);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].other, 5U);
    EXPECT_EQ(sink.reports[0].other_block, 0U);
}

TEST_F(GlobalShadowTest, TheReaderMayComeFirstAndBeOneOfSeveral) {
    access(1, 6, 8, AccessKind::load);
    access(0, 6, 8, AccessKind::load);
    access(0, 5, 8, AccessKind::store);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(GlobalShadowTest, AWriterRacesWithAnotherReaderOfItsBlock) {
    for (const unsigned writer : {0U, 1U, 2U, 3U}) {
        const Address word = 64 + 4 * writer;
        for (const unsigned reader : {0U, 1U, 2U, 2U, 1U})
            access(0, reader, word, AccessKind::load);
        access(0, writer, word, AccessKind::store);
        ASSERT_EQ(sink.reports.size(), writer + 1) << "writer " << writer;
        EXPECT_NE(sink.reports.back().other, writer);
    }
}

TEST_F(GlobalShadowTest, ReadersOfAWarpDoNotHideThoseOfAnother) {
    for (const Address word : {64U, 65U * 64U + 2U * 4U}) {
        for (const unsigned reader : {0U, 1U, 2U, 40U})
            access(0, reader, word, AccessKind::load);
        block[0].order.join(0, kAll);
        access(0, 0, word, AccessKind::store);
        ASSERT_EQ(sink.kinds(), "race");
        EXPECT_EQ(sink.reports[0].other, 40U);
        sink.reports.clear();
        access(0, 0, word + 1, AccessKind::store, 1);  // word by word from now on
    }
}

TEST_F(GlobalShadowTest, ReadersOfABlockDoNotHideThoseOfAnother) {
    access(1, 6, 8, AccessKind::load);
    for (const unsigned reader : {0U, 1U, 2U})
        access(0, reader, 8, AccessKind::load);
    block[0].order.barrier();
    access(0, 0, 8, AccessKind::store);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].other_block, 1U);
}

TEST_F(GlobalShadowTest, AReaderOfALaterLaunchIsRecorded) {
    access(0, 3, 8, AccessKind::load);
    generation = 2;
    access(0, 3, 8, AccessKind::load);
    access(1, 4, 8, AccessKind::store);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(GlobalShadowTest, AReaderOfALaterEpochIsRecorded) {
    access(0, 3, 8, AccessKind::load);
    block[0].order.barrier();
    access(0, 3, 8, AccessKind::load);
    access(0, 4, 8, AccessKind::store);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(GlobalShadowTest, EveryPageIsFound) {
    constexpr Address kPages = 2000;
    for (Address page = 0; page < kPages; ++page)
        access(0, 0, page * 65536 * 7, AccessKind::store);
    for (Address page = 0; page < kPages; ++page)
        access(1, 0, page * 65536 * 7, AccessKind::load);
    EXPECT_EQ(sink.reports.size(), kPages);
}

TEST_F(GlobalShadowTest, AnAccessMayReachIntoTheNextPage) {
    access(0, 0, 65536 - 8, AccessKind::store, 16);
    access(1, 0, 65536 + 4, AccessKind::load);
    ASSERT_EQ(sink.kinds(), "race");
}

TEST_F(GlobalShadowTest, ReadsAtomicsNeighboursAndTheNextLaunchDoNotConflict) {
    access(0, 0, 8, AccessKind::load);
    access(1, 0, 8, AccessKind::load);
    access(0, 0, 12, AccessKind::atomic);
    access(1, 0, 12, AccessKind::atomic);
    access(0, 0, 16, AccessKind::store, 2);
    access(1, 0, 18, AccessKind::store, 2);
    generation = 2;
    access(2, 0, 8, AccessKind::store);
    access(2, 0, 12, AccessKind::store);
    access(2, 0, 16, AccessKind::store);
    EXPECT_EQ(sink.kinds(), "");
}

TEST_F(GlobalShadowTest, AnAtomicAndAPlainAccessRace) {
    access(0, 0, 8, AccessKind::atomic);
    access(1, 0, 8, AccessKind::load);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(GlobalShadowTest, AnAtomicDoesNotHideThePlainWriteBeforeIt) {
    access(0, 0, 8, AccessKind::store);
    access(0, 0, 8, AccessKind::atomic);
    access(1, 0, 8, AccessKind::atomic);
    EXPECT_EQ(sink.kinds(), "race");
}

TEST_F(GlobalShadowTest, ThreadsOfOneBlockNeedABarrierToo) {
    access(0, 0, 8, AccessKind::store);
    access(0, 1, 8, AccessKind::load);
    EXPECT_EQ(sink.kinds(), "race");
    access(0, 0, 12, AccessKind::store);
    block[0].order.barrier();
    access(0, 40, 12, AccessKind::load);
    EXPECT_EQ(sink.reports.size(), 1U);
}

TEST_F(GlobalShadowTest, FenceAndAtomicOrderBlocks) {
    access(0, 0, 8, AccessKind::store);
    Block& first = block[0];
    first.others.fence(0, first.order.before(0));
    shadow.at_atomic(kBegin + 100, generation,
                     [&](SharedBlockClocks& here) { here = first.others.release(0, here); });
    shadow.at_atomic(kBegin + 100, generation,
                     [&](SharedBlockClocks& here) { block[1].others.acquire(here); });
    access(1, 0, 8, AccessKind::load);
    EXPECT_EQ(sink.kinds(), "");
    access(2, 0, 8, AccessKind::load);
    EXPECT_EQ(sink.kinds(), "race") << "block 2 has not seen the atomic";
}

// Thread 40 has acquired thread 0's fence through an atomic access, its own or that of another
// block.
TEST_F(GlobalShadowTest, AtomicsOrderThreadsOfOneBlock) {
    Block& own = block[0];
    access(0, 0, 8, AccessKind::store);
    own.others.fence(0, own.order.before(0));
    shadow.at_atomic(kBegin + 100, generation,
                     [&](SharedBlockClocks& here) { here = own.others.release(0, here); });
    shadow.at_atomic(kBegin + 100, generation, [&](SharedBlockClocks& here) { own.others.acquire(here); });
    access(0, 40, 8, AccessKind::load);
    EXPECT_EQ(sink.kinds(), "");
    access(0, 41, 12, AccessKind::store);
    access(0, 0, 12, AccessKind::load);
    EXPECT_EQ(sink.kinds(), "race") << "of another warp, after the fence";
}

TEST_F(GlobalShadowTest, ABlockOfAnEarlierGenerationDropsNoClocks) {
    const auto at = [&](GlobalShadow::Generation when,
                        const std::function<void(SharedBlockClocks&)>& change) {
        shadow.at_atomic(kBegin, when, change);
    };
    const auto something = std::make_shared<const BlockClocks>(1);
    at(1, [&](SharedBlockClocks& here) { here = something; });
    at(2, [&](SharedBlockClocks& here) {
        EXPECT_EQ(here, nullptr) << "of before the grid's barrier";
        here = something;
    });
    at(1, [&](SharedBlockClocks& here) { EXPECT_EQ(here, something); });
    at(2, [&](SharedBlockClocks& here) { EXPECT_EQ(here, something); });
}

TEST_F(GlobalShadowTest, OfVeryManyAtomicsTheLastShareAnEntry) {
    const auto something = std::make_shared<const BlockClocks>(1);
    const auto left_at = [&](Address address) {
        SharedBlockClocks left;
        shadow.at_atomic(address, 1, [&](SharedBlockClocks& here) { left = here; });
        return left;
    };
    constexpr Address kApart = 16 * 64;  // in one shard
    for (Address i = 0; i < 2048; ++i)
        EXPECT_EQ(left_at(kBegin + i * kApart), nullptr);
    shadow.at_atomic(kBegin, 1, [&](SharedBlockClocks& here) { here = something; });
    shadow.at_atomic(kBegin + 3000 * kApart, 1, [&](SharedBlockClocks& here) { here = something; });
    EXPECT_EQ(left_at(kBegin), something);
    EXPECT_EQ(left_at(kBegin + kApart), nullptr) << "one of the first";
    EXPECT_EQ(left_at(kBegin + 4000 * kApart), something) << "one of the rest";
    shadow.forget_atomics();
    EXPECT_EQ(left_at(kBegin), nullptr);
    EXPECT_EQ(left_at(kBegin + 4000 * kApart), nullptr);
}

// Runs, of a warp or of a thread in a loop, are as exact as a record of each word: the next write
// races with the word's last thread.
class RunTest : public GlobalShadowTest,
                public testing::WithParamInterface<std::tuple<int, unsigned, AccessKind>> {};

TEST_P(RunTest, EveryWordHasItsThread) {
    const auto [step, words, kind] = GetParam();
    block[0].order.begin_block(1024);
    const auto thread_of = [&](unsigned access) { return 60 + static_cast<unsigned>(step) * access; };
    const unsigned accesses = kLineWords / words;
    for (unsigned i = 0; i < accesses; ++i)
        access(0, thread_of(i), 4 * words * i, kind, 4 * words);
    EXPECT_EQ(sink.kinds(), "");
    for (unsigned word = 0; word < kLineWords; ++word)
        access(1, 5, 4 * word, AccessKind::store);
    ASSERT_EQ(sink.reports.size(), kLineWords);
    for (unsigned word = 0; word < kLineWords; ++word) {
        EXPECT_EQ(sink.reports[word].where, 4 * word);
        EXPECT_EQ(sink.reports[word].other, thread_of(word / words)) << "word " << word;
        EXPECT_EQ(sink.reports[word].other_block, 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(Steps, RunTest,
                         testing::Combine(testing::Values(0, 1, 2, 3, 16, 32, 50, 64),
                                          testing::Values(1U, 2U, 4U),
                                          testing::Values(AccessKind::load, AccessKind::store)));

// Whether two plain writes are a race depends on the values of all their words.
TEST_F(GlobalShadowTest, TwoWritesAreReportedWordByWord) {
    access(0, 0, 16, AccessKind::store, 16);
    access(1, 0, 16, AccessKind::store, 16);
    EXPECT_EQ(sink.reports.size(), 4U);
    access(2, 0, 16, AccessKind::load, 16);
    EXPECT_EQ(sink.reports.size(), 5U);
}

TEST_F(GlobalShadowTest, BeyondItsCapacityItIsFull) {
    constexpr Address kPages = 2048;
    for (Address page = 0; page < kPages; ++page)
        access(0, 0, page * 65536, AccessKind::load);
    EXPECT_FALSE(shadow.full());
    access(0, 0, kPages * 65536, AccessKind::load);
    EXPECT_TRUE(shadow.full());
    shadow.forget();
    EXPECT_FALSE(shadow.full());
}

TEST_F(GlobalShadowTest, OfReadsThatAreRecordedTogetherEachThreadIsReported) {
    for (unsigned word = 0; word < 2 * kLineWords; ++word)
        access(1, 5, 4 * word, AccessKind::store);
    const auto read = [&](Address line, ThreadOfWord thread, LineWords words) {
        const inspector::Run run{{block[0].order.epoch(0), 1, 0, false}, thread, words};
        shadow.reads(run, kBegin + line, generation, block[0].order, block[0].others, sink);
    };
    ThreadOfWord neighbours(7);
    ASSERT_TRUE(neighbours.extend(1, 8, 1, 1));
    read(0, neighbours, 0xFFFF);
    ASSERT_EQ(sink.reports.size(), kLineWords);
    for (unsigned word = 0; word < kLineWords; ++word) {
        EXPECT_EQ(sink.reports[word].thread, 7 + word);
        EXPECT_EQ(sink.reports[word].where, 4 * word);
    }
    read(64, ThreadOfWord(7), 0xFFF0);
    EXPECT_EQ(sink.reports.size(), kLineWords + 1) << "once a thread";
    EXPECT_EQ(sink.reports.back().where, 64U + 16U);
}

// Blocks on several OS threads: each block writes its own words in shared lines, and all blocks
// read the same words.
TEST_F(GlobalShadowTest, BlocksOnSeveralThreads) {
    constexpr unsigned kBlocks = 4;
    constexpr unsigned kLinesUsed = 200;
    std::array<RecordingSink, kBlocks> reports;
    const auto run = [&](unsigned number) {
        Block own;
        own.order.begin_block(64);
        own.others.begin_block(number);
        for (unsigned i = 0; i < kLinesUsed * kLineWords; ++i) {
            const auto touch = [&](Address offset, AccessKind kind) {
                shadow.access({i % 64, kBegin + offset, 4, kind, 1}, generation, own.order, own.others,
                              reports[number]);
            };
            touch(Address{1} << 20 | 4 * i, AccessKind::load);
            if (i % kBlocks == number) touch(4 * i, AccessKind::store);
        }
    };
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < kBlocks; ++number)
        threads.emplace_back(run, number);
    for (std::thread& thread : threads)
        thread.join();
    for (const RecordingSink& each : reports)
        EXPECT_EQ(each.kinds(), "");
    generation = 1;
    for (unsigned word = 0; word < kLinesUsed * kLineWords; ++word) {
        sink.reports.clear();
        access(word % kBlocks == 0 ? 1 : 0, 3, 4 * word, AccessKind::load);
        ASSERT_EQ(sink.kinds(), "race") << "word " << word;
        EXPECT_EQ(sink.reports[0].other_block, word % kBlocks);
        EXPECT_EQ(sink.reports[0].other, word % 64);
    }
}

TEST_F(GlobalShadowTest, ARunMayBeginAnywhereInALine) {
    block[0].order.begin_block(1024);
    access(0, 0, 56, AccessKind::store);
    access(0, 64, 60, AccessKind::store);
    access(1, 5, 56, AccessKind::load);
    access(1, 5, 60, AccessKind::load);
    ASSERT_EQ(sink.reports.size(), 2U);
    EXPECT_EQ(sink.reports[0].other, 0U);
    EXPECT_EQ(sink.reports[1].other, 64U);
}

// Unordered warps, so that none of their reads can be dropped. Besides the read of block 1 there is
// room for three.
TEST_F(GlobalShadowTest, ManyReadersOfABlockDoNotHideThatOfAnother) {
    block[0].order.begin_block(1024);
    access(1, 6, 8, AccessKind::load);
    for (unsigned warp = 0; warp < 8; ++warp) {
        for (unsigned i = 0; i < warp; ++i)
            block[0].order.join(warp, kAll);
        access(0, warp * kLanes, 8, AccessKind::load);
    }
    block[0].order.barrier();
    access(0, 0, 8, AccessKind::store);
    ASSERT_EQ(sink.kinds(), "race");
    EXPECT_EQ(sink.reports[0].other_block, 1U);
}

// --- Pending reads

struct Noted {
    std::array<int, 1024> times{};  // by word
    std::array<unsigned, 1024> thread{};
    PendingReads::Note note = [this](const Run& run, Address line) {
        ++notes;
        for (unsigned word = run.first(); word <= run.last(); ++word) {
            if ((run.words >> word & 1) == 0) continue;
            const std::size_t i = (line - kBegin) / 4 + word;
            ++times[i];
            thread[i] = run.thread(word);
        }
    };
    int notes = 0;
};

TEST(PendingReads, AWarpsReadsOfALineAreOne) {
    PendingReads reads;
    Noted noted;
    for (unsigned thread = 0; thread < 64; ++thread) {
        const Access access{thread, kBegin + 4 * thread, 4, AccessKind::load, 1};
        if (!reads.add(access, 7, 0)) reads.make_room(access, 7, 0, noted.note);
    }
    EXPECT_EQ(noted.notes, 0);
    reads.note_all(noted.note);
    EXPECT_TRUE(reads.empty());
    EXPECT_EQ(noted.notes, 4);
    for (unsigned thread = 0; thread < 64; ++thread) {
        EXPECT_EQ(noted.times[thread], 1);
        EXPECT_EQ(noted.thread[thread], thread);
    }
    reads.note_all(noted.note);
    EXPECT_EQ(noted.notes, 4);
}

TEST(PendingReads, EpochsPlacesAndBlocksAreSeparate) {
    PendingReads reads;
    Noted noted;
    const auto add = [&](unsigned thread, unsigned word, Epoch epoch, std::uint16_t block, ShortPlace place) {
        const Access access{thread, kBegin + 4 * word, 4, AccessKind::load, place};
        if (!reads.add(access, epoch, block)) reads.make_room(access, epoch, block, noted.note);
    };
    add(0, 0, 1, 0, 1);
    add(1, 1, 2, 0, 1);
    add(2, 2, 2, 0, 3);
    add(3, 3, 2, 1, 3);
    reads.note_all(noted.note);
    EXPECT_EQ(noted.notes, 4);
}

// No read is lost when another one replaces it.
TEST(PendingReads, EachReaderOfAWordIsRecordedOrTwoOthersAre) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    PendingReads reads;
    Noted noted;
    std::array<int, 1024> wanted{};
    for (int i = 0; i < 20000; ++i) {
        const unsigned count = 1U << random() % 3;
        const unsigned word = random() % 1024 / count * count;
        const Access access{static_cast<unsigned>(random() % 1024), kBegin + 4 * word, 4 * count,
                            AccessKind::load, 1};
        if (!reads.add(access, 1, 0)) reads.make_room(access, 1, 0, noted.note);
        for (unsigned w = word; w < word + count; ++w)
            ++wanted[w];
    }
    reads.note_all(noted.note);
    for (unsigned word = 0; word < 1024; ++word) {
        EXPECT_GE(noted.times[word], std::min(wanted[word], 2)) << "word " << word;
        EXPECT_LE(noted.times[word], wanted[word]);
    }
}

// The same for reads of several threads at once.
TEST(PendingReads, EachReaderOfAGroupIsRecordedOrTwoOthersAre) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    PendingReads reads;
    Noted noted;
    std::array<int, 1024> wanted{};
    for (int i = 0; i < 20000; ++i) {
        const unsigned of_each = 1U << random() % 3;
        const unsigned first = random() % (kLineWords / of_each);
        const unsigned lanes = 1 + random() % (kLineWords / of_each - first);
        const unsigned line = random() % (1024 / kLineWords);
        const auto thread = static_cast<unsigned>(random() % 1000);
        const inspector::Run run{{1, 1, 0, false},
                                 ThreadOfWord::in_a_row(thread, first * of_each, of_each),
                                 line_words(first * of_each, lanes * of_each)};
        for (unsigned word = run.first(); word <= run.last(); ++word) {
            ASSERT_EQ(run.thread(word), thread + word / of_each - first);
            ++wanted[line * kLineWords + word];
        }
        const Address number = kBegin / (4 * kLineWords) + line;
        if (!reads.add(run, number)) reads.make_room(run, number, noted.note);
    }
    reads.note_all(noted.note);
    for (unsigned word = 0; word < 1024; ++word) {
        EXPECT_GE(noted.times[word], std::min(wanted[word], 2)) << "word " << word;
        EXPECT_LE(noted.times[word], wanted[word]);
    }
}

TEST(PendingReads, TwoReadersOfOneWarpDoNotHideAGroupOfAnother) {
    PendingReads reads;
    Noted noted;
    const auto add = [&](unsigned thread) {
        const inspector::Run run{{1, 1, 0, false}, ThreadOfWord::in_a_row(thread, 0, 1), line_words(0, 16)};
        if (!reads.add(run, kBegin / 64)) reads.make_room(run, kBegin / 64, noted.note);
    };
    add(0);
    add(16);
    add(32);
    EXPECT_EQ(noted.notes, 1) << "the first had to make room for the third";
    add(64);
    EXPECT_EQ(noted.notes, 1) << "threads 16 and 32, of two warps, are enough";
}

TEST(WrittenBytes, AgreesWithAPlainArray) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (int round = 0; round < 200; ++round) {
        const std::size_t size = random() % 300 + 1;
        WrittenBytes written(size);
        std::vector<bool> reference(size, false);
        for (int step = 0; step < 40; ++step) {
            const std::size_t first = random() % size;
            const std::size_t count = std::min<std::size_t>(size - first, random() % 80);
            if (random() % 2 == 0) {
                written.mark(first, count);
            } else {
                std::ptrdiff_t expected = -1;
                for (std::size_t i = first; i < first + count && expected < 0; ++i) {
                    if (!reference[i]) expected = static_cast<std::ptrdiff_t>(i);
                }
                const bool none =
                    std::find(reference.begin() + static_cast<std::ptrdiff_t>(first),
                              reference.begin() + static_cast<std::ptrdiff_t>(first + count),
                              true) == reference.begin() + static_cast<std::ptrdiff_t>(first + count);
                ASSERT_EQ(written.none_written(first, count), none) << first << ' ' << count;
                ASSERT_EQ(written.first_unwritten(first, count), expected) << first << ' ' << count;
            }
            for (std::size_t i = first; i < first + count; ++i)
                reference[i] = true;
        }
    }
}

TEST(WrittenBytes, AllAtOnce) {
    WrittenBytes written(100);
    EXPECT_EQ(written.first_unwritten(0, 1), 0);
    written.mark(0, 100);
    EXPECT_EQ(written.first_unwritten(0, 100), -1);
}

TEST(ShortPlace, ComesBack) {
    const auto code = reinterpret_cast<std::uintptr_t>(&short_place) + 1234;
    EXPECT_EQ(long_place(short_place(code)), code);
    EXPECT_EQ(long_place(short_place(code - 99999)), code - 99999);
    EXPECT_EQ(long_place(short_place(66000)), 66000U) << "the number of a site";
    EXPECT_EQ(long_place(short_place(code + (std::uintptr_t{1} << 40))), 0U) << "too far away";
}

}  // namespace
}  // namespace cuda_on_cpu::inspector
