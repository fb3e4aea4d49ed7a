#include "inspect_explain.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "inspect_example.hpp"
#include "inspect_request.hpp"

namespace course::tool {
namespace {

struct Pattern {
    std::string name;
    AccessLine line;
    std::string sentence;
};

void PrintTo(const Pattern& pattern, std::ostream* out) {
    *out << pattern.name;
}

class Explain : public testing::TestWithParam<Pattern> {};

TEST_P(Explain, SaysWhatItIs) {
    EXPECT_EQ(explain(GetParam().line), GetParam().sentence);
}

std::string name_of(const testing::TestParamInfo<Pattern>& info) {
    return info.param.name;
}

AccessLine with(Operation operation, AccessLine line) {
    line.operation = operation;
    return line;
}

std::int64_t scattered(std::int64_t lane) {
    return lane * 7919 % 1013 * 4;
}

const std::vector<Pattern> kShared = {
    {"broadcast", shared_load(4, 1, stride(0, 64)),
     "All 32 lanes read the same word: a broadcast, 1 wavefront."},
    {"one_word_written_by_all", with(Operation::kStore, shared_load(4, 1, stride(0))),
     "All 32 lanes write the same word: one of them wins."},
    {"broadcast_of_vectors", shared_load(16, 2, stride(0)),
     "All 32 lanes read the same 16 bytes: a broadcast, 2 wavefronts."},
    {"words", shared_load(4, 1, stride(4)),
     "32 adjacent words, each in a bank of its own: as good as it gets."},
    {"words_backwards", shared_load(4, 1, stride(-4, 400)),
     "32 adjacent words, each in a bank of its own: as good as it gets."},
    {"half_rows_read_twice", shared_load(4, 1, [](auto lane) { return lane % 16 * 4; }),
     "16 adjacent words, each read by 2 lanes, each in a bank of its own: as good as it gets."},
    {"bytes", shared_load(1, 1, stride(1)),
     "32 adjacent elements of 1 byte: 1 wavefront, as good as it gets."},
    {"vectors", shared_load(16, 4, stride(16)),
     "32 adjacent elements of 16 bytes: 4 wavefronts, as good as it gets."},
    {"padded_column", shared_load(4, 1, stride(132)),
     "A column of a tile with rows of 33 words: an odd number, so that each lane has a bank of its own."},
    {"odd_stride", shared_load(4, 1, stride(12)),
     "A step through rows of 3 words: an odd number, so that each lane has a bank of its own."},
    {"swizzled_column", shared_load(4, 1, [](auto lane) { return lane * 128 + (lane ^ 5) * 4; }),
     "No regular distance, yet no two lanes want different words of a bank: no conflict, as in a swizzled "
     "tile."},
    {"rows_side_by_side", shared_load(4, 1, [](auto lane) { return lane / 8 * 160 + lane % 8 * 4; }),
     "4 rows of 8 adjacent elements, 160 bytes apart, in different banks: no conflict."},
    {"a_word_for_eight_lanes", shared_load(4, 1, [](auto lane) { return lane / 8 * 4; }),
     "4 adjacent words, each read by 8 lanes, each in a bank of its own: as good as it gets."},

    {"column", shared_load(4, 32, stride(128)),
     "32 lanes hit bank 0: a column of a 32-wide tile. Pad the row by one word."},
    {"column_not_the_first", shared_load(4, 32, stride(128, 20)),
     "32 lanes hit bank 5: a column of a 32-wide tile. Pad the row by one word."},
    {"column_of_a_wider_tile", shared_load(4, 32, stride(512)),
     "32 lanes hit bank 0: a column of a 128-wide tile. Pad the row by one word."},
    {"column_of_halves", shared_load(2, 32, stride(128)),
     "32 lanes hit bank 0: a column of a 64-wide tile. Pad the row by one word (2 elements)."},
    {"column_of_bytes", shared_load(1, 32, stride(128)),
     "32 lanes hit bank 0: a column of a 128-wide tile. Pad the row by one word (4 elements)."},
    {"column_of_doubles", shared_load(8, 32, stride(256)),
     "16 lanes at a time hit the same banks: a column of a 32-wide tile of 8-byte elements. Pad the row by "
     "one "
     "element."},
    {"column_of_vectors", shared_load(16, 32, stride(128)),
     "8 lanes at a time hit the same banks: a column of an 8-wide tile of 16-byte elements. Pad the row by "
     "one "
     "element."},
    {"column_of_half_a_warp", shared_load(4, 16, first_lanes(16, stride(128))),
     "16 lanes hit bank 0: a column of a 32-wide tile. Pad the row by one word. On average 16 of 32 lanes "
     "take "
     "part."},
    {"column_read_twice", shared_load(4, 16, [](auto lane) { return lane % 16 * 128; }),
     "32 lanes hit bank 0: a column of a 32-wide tile, each read by 2 lanes. Pad the row by one word."},
    {"column_of_16", shared_load(4, 16, stride(64)),
     "A stride of 16 words: 16 lanes meet in each bank that is hit. Pad the row to an odd number of words, "
     "17."},
    {"even_row", shared_load(4, 2, stride(136)),
     "A stride of 34 words: 2 lanes meet in each bank that is hit. Pad the row to an odd number of words, "
     "35."},
    {"two_words_each", shared_load(4, 2, stride(8)),
     "A stride of 2 words: 2 lanes meet in each bank that is hit. Let adjacent lanes take adjacent "
     "words, or make the stride odd."},
    {"doubles_with_gaps", shared_load(8, 4, stride(16)),
     "Elements of 8 bytes, 16 bytes apart: 2 lanes meet in a bank. An odd multiple of 8 bytes would do "
     "better."},
    {"rows_below_each_other", shared_load(4, 4, [](auto lane) { return lane / 8 * 256 + lane % 8 * 4; }),
     "4 rows of 8 adjacent elements, 256 bytes apart, begin in the same bank. Pad the row by 32 bytes, "
     "or "
     "swizzle."},
    {"three_lanes_collide",
     shared_load(4, 3, [](auto lane) { return lane == 7 || lane == 9 ? lane * 128 + 20 : lane * 4; }),
     "A 3-way conflict: lanes 5, 7, 9 want different words of bank 5."},
    {"many_lanes_collide",
     shared_load(4, 11, [](auto lane) { return lane % 3 == 0 && lane < 30 ? lane * 256 : lane * 4 + 4; }),
     "An 11-way conflict: lanes 0, 3, 6, 9, 12, 15, 18, 21, ... want different words of bank 0."},
    {"more_than_the_rule_says", shared_load(8, 3, stride(8)), "3 wavefronts where 2 would do."},

    {"atomics_on_one_word", with(Operation::kAtomic, shared_load(4, 32, stride(0))),
     "All 32 lanes update the same word, one after the other. Combine within the warp first, or spread them "
     "over several copies."},
    {"atomics_on_few_words",
     with(Operation::kAtomic, shared_load(4, 12, [](auto lane) { return lane < 12 ? 0 : lane * 4; })),
     "12 lanes update the same word, one after the other. Combine within the warp first, or spread them over "
     "several copies."},
    {"atomics_in_few_banks",
     with(Operation::kAtomic,
          shared_load(4, 8, [](auto lane) { return lane < 8 ? lane / 2 * 128 : lane * 4; })),
     "An 8-way conflict: lanes 0, 1, 2, 3, 4, 5, 6, 7 want words of bank 0."},
    {"atomic_loads_of_one_address", with(Operation::kAtomicLoad, global_load(4, 1, stride(0))),
     "All 32 lanes read the same 4 bytes: one sector serves them all."},
    {"atomics_all_over",
     with(Operation::kAtomic, shared_load(4, 1, [](auto lane) { return (lane ^ 13) * 4; })),
     "No two lanes meet in a bank: as good as it gets."},
    {"atomics_side_by_side", with(Operation::kAtomic, shared_load(4, 1, stride(4))),
     "32 adjacent words, each in a bank of its own: as good as it gets."},
    {"matrix_rows_below_each_other", with(Operation::kMatrixLoad, shared_load(16, 32, stride(128))),
     "The rows of a matrix lie 128 bytes apart, so that 8 of 8 begin in the same bank. Pad the row by 16 "
     "bytes, "
     "or swizzle."},
    {"matrix_rows_padded", with(Operation::kMatrixLoad, shared_load(16, 4, stride(144))),
     "8 elements, 144 bytes apart, in different banks: no conflict."},
    {"copies_to_one_word", with(Operation::kAsyncCopy, shared_load(4, 32, stride(0))),
     "All 32 lanes write the same word, one after the other. Give each a word of its own."},
    {"copy_to_a_column", with(Operation::kAsyncCopy, shared_load(4, 32, stride(128))),
     "32 lanes hit bank 0: a column of a 32-wide tile. Pad the row by one word."},
};

const std::vector<Pattern> kGlobal = {
    {"broadcast", global_load(4, 1, stride(0, 64)),
     "All 32 lanes read the same 4 bytes: one sector serves them all."},
    {"one_address_written_by_all", with(Operation::kStore, global_load(4, 1, stride(0))),
     "All 32 lanes write the same address: one of them wins."},
    {"floats", global_load(4, 4, stride(4)),
     "32 adjacent elements of 4 bytes: 4 sectors, as few as possible."},
    {"vectors", global_load(16, 16, stride(16)),
     "32 adjacent elements of 16 bytes: 16 sectors, as few as possible."},
    {"bytes", global_load(1, 1, stride(1)), "32 adjacent elements of 1 byte: 1 sector, as few as possible."},
    {"backwards", global_load(4, 4, stride(-4, 252)),
     "32 adjacent elements of 4 bytes: 4 sectors, as few as possible."},
    {"shifted", global_load(4, 5, stride(4, 4)),
     "32 adjacent elements of 4 bytes begin 4 bytes into a sector: 5 sectors instead of 4. Let them "
     "begin at "
     "a multiple of 32 bytes."},
    {"shifted_backwards", global_load(4, 5, stride(-4, 136)),
     "32 adjacent elements of 4 bytes begin 12 bytes into a sector: 5 sectors instead of 4. Let them "
     "begin "
     "at a multiple of 32 bytes."},
    {"shifted_array", global_load(4, 5, stride(4)),
     "32 adjacent elements of 4 bytes begin within a sector: 5 sectors instead of 4. Let them begin at a "
     "multiple of 32 bytes."},
    {"every_second", global_load(4, 8, stride(8)),
     "Only 4 of every 8 bytes are wanted, as in an array of structs, or where a thread takes neighbours "
     "itself. "
     "Give each field an array of its own, or adjacent elements to adjacent lanes."},
    {"struct_of_three", global_load(4, 12, stride(12, 8)),
     "Only 4 of every 12 bytes are wanted, as in an array of structs, or where a thread takes neighbours "
     "itself. "
     "Give each field an array of its own, or adjacent elements to adjacent lanes."},
    {"column", global_load(4, 32, stride(4096)),
     "A column: addresses 4096 bytes apart, a sector each, and 4 of its 32 bytes used. Let adjacent "
     "lanes "
     "take neighbours in a row, or go through a tile in shared memory."},
    {"column_read_twice", global_load(4, 16, [](auto lane) { return lane % 16 * 4096; }),
     "A column: addresses 4096 bytes apart, each read by 2 lanes, a sector each, and 4 of its 32 bytes used. "
     "Let "
     "adjacent lanes take neighbours in a row, or go through a tile in shared memory."},
    {"short_rows", global_load(4, 8, [](auto lane) { return lane / 4 * 4096 + lane % 4 * 4; }),
     "8 rows of 16 bytes, 4096 bytes apart: each takes a sector of 32. Let at least 8 lanes in a row take "
     "neighbours."},
    {"columns_of_neighbours", global_load(4, 16, [](auto lane) { return lane % 16 * 768 + lane / 16 * 4; }),
     "16 rows of 8 bytes, 768 bytes apart: each takes a sector of 32. Let at least 8 lanes in a row take "
     "neighbours."},
    {"two_addresses", global_load(4, 2, [](auto lane) { return lane / 16 * 512; }),
     "2 addresses, each read by 16 lanes: 2 sectors."},
    {"whole_rows", global_load(4, 4, [](auto lane) { return lane / 16 * 4096 + lane % 16 * 4; }),
     "2 rows of 64 bytes, 4096 bytes apart, in 4 whole sectors: as few as possible."},
    {"shifted_rows", global_load(4, 6, [](auto lane) { return 8 + lane / 16 * 4096 + lane % 16 * 4; }),
     "2 rows of 64 bytes, 4096 bytes apart, that begin within a sector: 6 sectors instead of 4. Let rows "
     "begin at "
     "a multiple of 32 bytes."},
    {"gather", global_load(4, 28, scattered),
     "28 sectors for 128 bytes at no regular distance: a gather. It helps when adjacent lanes want "
     "neighbours."},
    {"scatter", with(Operation::kStore, global_load(4, 28, scattered)),
     "28 sectors for 128 bytes at no regular distance: a scatter. It helps when adjacent lanes want "
     "neighbours."},
    {"shuffled_within_sectors", global_load(4, 4, [](auto lane) { return (lane ^ 13) * 4; }),
     "No regular distance, but the sectors that are touched are used nearly whole."},
    {"atomics_on_one_address", with(Operation::kAtomic, global_load(4, 1, stride(0))),
     "All 32 lanes update the same address, one after the other. Combine within the warp or the block "
     "first."},
    {"atomic_loads_of_one_address", with(Operation::kAtomicLoad, global_load(4, 1, stride(0))),
     "All 32 lanes read the same 4 bytes: one sector serves them all."},
    {"atomics_all_over",
     with(Operation::kAtomic,
          global_load(4, 28, [](auto lane) { return scattered(std::max<std::int64_t>(lane, 1)); })),
     "28 sectors for 124 bytes at no regular distance: a scatter. It helps when adjacent lanes want "
     "neighbours."},
    {"few_lanes", global_load(4, 1, first_lanes(7, stride(4))),
     "On average 7 of 32 lanes take part: a branch, or nothing to do for the others."},
    {"few_lanes_and_far_apart", global_load(4, 7, first_lanes(7, stride(4096))),
     "A column: addresses 4096 bytes apart, a sector each, and 4 of its 32 bytes used. Let adjacent "
     "lanes "
     "take neighbours in a row, or go through a tile in shared memory. On average 7 of 32 lanes take part."},
    {"one_lane", global_load(4, 1, first_lanes(1, stride(4))), "One lane of 32 takes part."},
    {"a_lane_missing", global_load(4, 5, [](auto lane) { return lane == 7 ? -1 : 28 + lane * 4; }),
     "Adjacent elements, less those of the lanes that take no part: 5 sectors."},
    {"compacted",
     global_load(4, 4, [](auto lane) { return lane % 8 == 3 ? -1 : (lane - (lane + 4) / 8) * 4; }),
     "28 adjacent elements of 4 bytes: 4 sectors, as few as possible."},
    {"every_other_lane", global_load(4, 4, [](auto lane) { return lane % 2 == 0 ? lane * 4 : -1; }),
     "On average 16 of 32 lanes take part: a branch, or nothing to do for the others."},
};

INSTANTIATE_TEST_SUITE_P(Shared, Explain, testing::ValuesIn(kShared), name_of);
INSTANTIATE_TEST_SUITE_P(Global, Explain, testing::ValuesIn(kGlobal), name_of);

TEST(ExplainLine, TellsWhenOnlyTheWorstRequestIsBad) {
    AccessLine line = shared_load(4, 32, stride(128));
    line.transactions = 15 * line.requests;
    EXPECT_TRUE(explain(line).starts_with("At worst: 32 lanes hit bank 0")) << explain(line);
    line.transactions = 30 * line.requests;
    EXPECT_TRUE(explain(line).starts_with("32 lanes hit bank 0")) << explain(line);
}

TEST(ExplainLine, AfterTheColonItGoesOnSmall) {
    AccessLine line = global_load(4, 32, stride(4096));
    line.transactions = 10 * line.requests;
    EXPECT_TRUE(explain(line).starts_with("At worst: a column")) << explain(line);
}

TEST(ExplainLine, NothingIsSaidOfNothing) {
    EXPECT_EQ(explain({}), "");
    EXPECT_EQ(explain(global_load(4, 0, stride(-1, -1))), "");
}

TEST(ExplainSharing, TellsWhatABroadcastCostsAndSaves) {
    const std::string shared = explain_sharing(shared_load(4, 1, stride(0)));
    EXPECT_EQ(shared,
              "A broadcast: 32 lanes want the same element. The memory reads it once and hands it to each of "
              "them, so "
              "it costs no more than the load of one lane. It is not free: the warp issues a load and gets 4 "
              "different bytes, where 32 adjacent elements would be 128. A value that several "
              "instructions need "
              "belongs in a register.");
    const std::string global = explain_sharing(global_load(8, 1, first_lanes(16, stride(0))));
    EXPECT_TRUE(global.starts_with("A broadcast: 16 lanes want the same element. It is fetched once"))
        << global;
    EXPECT_NE(global.find("gets 8 different bytes, where 16 adjacent elements would be 128"),
              std::string::npos)
        << global;
    EXPECT_TRUE(explain_sharing(global_load(4, 1, [](auto lane) {
                    return lane / 8 * 4;
                })).starts_with("Each element goes to 8 lanes."));
}

TEST(ExplainSharing, IsOnlyForLoadsThatShareAndAreGood) {
    EXPECT_EQ(explain_sharing(shared_load(4, 1, stride(4))), "") << "an element for each lane";
    EXPECT_EQ(explain_sharing(with(Operation::kStore, shared_load(4, 1, stride(0)))), "");
    EXPECT_EQ(explain_sharing(with(Operation::kAtomic, shared_load(4, 32, stride(0)))), "");
    EXPECT_EQ(explain_sharing(global_load(4, 16, [](auto lane) { return lane / 2 * 4096; })), "")
        << "there is something else to mend";
    EXPECT_EQ(explain_sharing({}), "");
    EXPECT_EQ(lanes_per_element(shared_load(4, 1, stride(0))), 32);
    EXPECT_EQ(lanes_per_element({}), 0);
}

// Words at a distance of s meet in a bank if s has a factor in common with the number of banks
// (PMPP 6.2): gcd(s, 32) of them.
TEST(BankGroups, StridesMeetAsTheirGreatestCommonDivisorSays) {
    for (std::int64_t words = 1; words <= 65; ++words) {
        const auto groups = bank_groups(shared_load(4, 1, stride(words * 4)));
        ASSERT_EQ(groups.size(), 1U);
        EXPECT_EQ(groups[0].most_words(), std::gcd(static_cast<std::size_t>(words), 32U)) << words;
    }
}

// Whatever the lanes do, there is a sentence, and it does not call a conflict good.
TEST(ExplainLine, EveryStrideHasASentence) {
    for (const unsigned bytes : {1U, 2U, 4U, 8U, 16U}) {
        for (std::int64_t step = 0; step <= 40; ++step) {
            const OffsetOf offsets = stride(step * bytes);
            AccessLine line = shared_load(bytes, 0, offsets);
            for (const BankGroup& group : bank_groups(line))
                line.worst.transactions += static_cast<unsigned>(group.most_words());
            line.transactions = line.requests * line.worst.transactions;
            const std::string sentence = explain(line);
            const bool conflict = line.worst.transactions > std::max(1U, 32 * bytes / 128);
            EXPECT_EQ(sentence.find("lanes hit") != std::string::npos ||
                          sentence.find("lanes at a time hit") != std::string::npos ||
                          sentence.find("meet") != std::string::npos ||
                          sentence.find("conflict: lanes") != std::string::npos,
                      conflict)
                << bytes << " bytes, " << step << " apart: " << sentence;
        }
    }
}

TEST(BankGroups, WideAccessesAreAnsweredInParts) {
    EXPECT_EQ(bank_groups(shared_load(8, 2, stride(8))).size(), 2U);
    const auto groups = bank_groups(shared_load(16, 4, stride(16)));
    ASSERT_EQ(groups.size(), 4U);
    EXPECT_EQ(groups[3].first_lane, 24U);
    EXPECT_EQ(groups[3].most_words(), 1U);
    EXPECT_EQ(groups[3].banks[31].front().lanes, std::vector<unsigned>{31});
}

// As measured on an H200.
TEST(BankGroups, GroupsWhoseNeighboursWantTheSameAreOne) {
    const auto groups = [](unsigned bytes, const OffsetOf& offset, Operation operation = Operation::kLoad) {
        return bank_groups(with(operation, shared_load(bytes, 1, offset))).size();
    };
    EXPECT_EQ(groups(8, stride(0)), 1U);
    EXPECT_EQ(groups(8, [](auto lane) { return lane / 2 * 8; }), 1U);
    EXPECT_EQ(groups(8, [](auto lane) { return lane % 2 * 8; }), 1U);
    EXPECT_EQ(groups(8, [](auto lane) { return lane % 4 * 8; }), 2U);
    EXPECT_EQ(groups(8, first_lanes(17, stride(8))), 2U);
    EXPECT_EQ(groups(16, stride(0)), 2U) << "halves are never one";
    EXPECT_EQ(groups(16, [](auto lane) { return lane % 2 * 16; }), 2U);
    EXPECT_EQ(groups(16, [](auto lane) { return lane % 8 * 16; }), 4U);
    EXPECT_EQ(groups(16, [](auto lane) { return lane < 16 ? 0 : lane * 16; }), 4U)
        << "the whole warp or none";
    EXPECT_EQ(groups(16, first_lanes(9, stride(16))), 2U);
    EXPECT_EQ(groups(16, stride(0), Operation::kStore), 4U) << "stores go in groups, always";
}

TEST(BankGroups, AtomicUpdatesOfAWordWaitForEachOther) {
    const auto groups =
        bank_groups(with(Operation::kAtomic, shared_load(4, 8, [](auto lane) { return lane / 8 * 4; })));
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].most_words(), 8U);
    EXPECT_EQ(groups[0].banks[1][7].lanes, std::vector<unsigned>{15});
    const auto copies = bank_groups(with(Operation::kAsyncCopy, shared_load(4, 32, stride(0))));
    EXPECT_EQ(copies[0].most_words(), 32U) << "and so do asynchronous copies to it";
}

TEST(BankGroups, AWordIsCountedOnceForAllItsLanes) {
    const auto groups = bank_groups(shared_load(2, 1, stride(2)));
    EXPECT_EQ(groups[0].most_words(), 1U);
    EXPECT_EQ(groups[0].banks[3].front().lanes, (std::vector<unsigned>{6, 7}));
}

TEST(Sectors, AreThoseOfEveryByte) {
    const auto touched = sectors(global_load(8, 3, first_lanes(2, stride(64, 28))));
    ASSERT_EQ(touched.size(), 4U) << "each of the two crosses from one sector to the next";
    EXPECT_EQ(touched[0].index, 0);
    EXPECT_EQ(touched[3].index, 3);
    EXPECT_TRUE(touched[0].bytes[27].empty());
    EXPECT_EQ(touched[0].bytes[28], std::vector<unsigned>{0});
    EXPECT_EQ(touched[1].bytes[3], std::vector<unsigned>{0});
    EXPECT_TRUE(touched[1].bytes[4].empty());
}

}  // namespace
}  // namespace course::tool
