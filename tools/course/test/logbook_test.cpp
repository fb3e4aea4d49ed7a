// Progress that survives: damaged files, files damaged in places, two commands at once.
#include "logbook.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "renumbered.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

class LogbookTest : public testing::Test {
  protected:
    // Opens the file; messages about damage are in `said`.
    Logbook open() {
        testing::internal::CaptureStderr();
        Logbook book(file);
        said = testing::internal::GetCapturedStderr();
        return book;
    }

    TemporaryDirectory directory;
    std::filesystem::path file = directory.path() / "my" / "progress.json";
    std::string said;
};

TEST_F(LogbookTest, KeepsWhatItIsTold) {
    open().update("day05/a", [](ExerciseRecord& record) { record = {true, 2, 3, 1}; });
    open().update("day05/b", [](ExerciseRecord& record) { ++record.failures; });
    const Logbook book = open();
    EXPECT_EQ(said, "");
    EXPECT_EQ(book.of("day05/a"), (ExerciseRecord{true, 2, 3, 1}));
    EXPECT_EQ(book.of("day05/b"), (ExerciseRecord{false, 1, 0, 0}));
    EXPECT_EQ(book.of("day05/c"), ExerciseRecord{});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1)
        << "a temporary file stayed";
}

TEST_F(LogbookTest, WhatAnotherWroteMeanwhileStays) {
    Logbook first = open();
    Logbook second = open();
    first.update("a", [](ExerciseRecord& record) { record.solved = true; });
    second.update("b", [](ExerciseRecord& record) { record.solved = true; });
    EXPECT_TRUE(open().of("a").solved);
    EXPECT_TRUE(open().of("b").solved);
}

TEST_F(LogbookTest, ADamagedFileIsSetAside) {
    int number = 0;
    for (const char* text :
         {"", "{", "[1, 2]", R"({"exercises": 3})", R"({"version": 1})", "\xff\xfe\x00", "null"}) {
        directory.write("my/progress.json", text);
        Logbook book = open();
        const std::string aside = file.string() + ".damaged" + (++number == 1 ? "" : std::to_string(number));
        EXPECT_NE(said.find("is damaged ("), std::string::npos) << said;
        EXPECT_NE(said.find("is kept as " + aside + "; what was solved has to be checked again"),
                  std::string::npos)
            << said;
        EXPECT_TRUE(std::filesystem::exists(aside)) << aside;
        EXPECT_EQ(read_text(aside), text);
        EXPECT_FALSE(std::filesystem::exists(file));
        book.update("a", [](ExerciseRecord& record) { record.solved = true; });
        EXPECT_TRUE(open().of("a").solved);
    }
}

TEST_F(LogbookTest, OfAFileDamagedInPlacesTheRestCounts) {
    const std::string text = R"({"version": 1, "exercises": {
        "a": {"solved": true, "failures": 1, "hints": 2, "stars": 1},
        "b": {"solved": "yes", "failures": 1, "hints": 2, "stars": 1},
        "c": {"solved": true, "failures": -1, "hints": 2, "stars": 1},
        "d": [], "e": {"solved": true}}})";
    directory.write("my/progress.json", text);
    const Logbook book = open();
    EXPECT_NE(said.find("lost is the record of b, c, d, e"), std::string::npos) << said;
    EXPECT_NE(said.find("type must be boolean"), std::string::npos) << said;
    EXPECT_EQ(book.of("a"), (ExerciseRecord{true, 1, 2, 1}));
    EXPECT_EQ(book.of("b"), ExerciseRecord{});
    EXPECT_EQ(read_text(file.string() + ".damaged"), text);
    EXPECT_TRUE(open().of("a").solved);
    EXPECT_EQ(said, "") << "said once";
}

TEST_F(LogbookTest, TwoAtOnceLoseNothing) {
    constexpr int kTimes = 50;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([this] {
            Logbook book(file);
            for (int i = 0; i < kTimes; ++i)
                book.update("a", [](ExerciseRecord& record) { ++record.failures; });
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(open().of("a").failures, 4 * kTimes);
}

TEST_F(LogbookTest, WhereNothingCanBeWrittenItGoesOn) {
    directory.write("my", "a file, and no directory");
    Logbook book = open();
    testing::internal::CaptureStderr();
    book.update("a", [](ExerciseRecord& record) { record.solved = true; });
    EXPECT_NE(testing::internal::GetCapturedStderr().find("this is not kept in "), std::string::npos);
    EXPECT_TRUE(book.of("a").solved);
}

TEST_F(LogbookTest, WhatANewerVersionAddsIsNoDamage) {
    directory.write(
        "my/progress.json",
        R"({"version": 2, "more": 1, "exercises": {"a": {"solved": true, "failures": 0, "hints": 0, "stars": 0, "new": 1}}})");
    EXPECT_TRUE(open().of("a").solved);
    EXPECT_EQ(said, "");
}

// Day 27 became day 43, and day 43 day 44: each record is moved once.
TEST_F(LogbookTest, RecordsWithTheOldNumbersOfDaysAreTaken) {
    directory.write("my/progress.json", R"({"version": 1, "current": "day02/graph", "exercises": {
        "day01/a": {"solved": true, "failures": 1, "hints": 0, "stars": 1},
        "day27/turns": {"solved": true, "failures": 2, "hints": 0, "stars": 1},
        "day43/places": {"solved": true, "failures": 3, "hints": 0, "stars": 1}}})");
    for (const char* when : {"with the old numbers", "with the new ones"}) {
        Logbook book = open();
        EXPECT_EQ(book.of("day01/a").failures, 1) << when;
        EXPECT_EQ(book.of("day43/turns").failures, 2) << when;
        EXPECT_EQ(book.of("day44/places").failures, 3) << when;
        EXPECT_EQ(book.of("day44/turns"), ExerciseRecord{}) << when;
        EXPECT_EQ(book.of("day27/turns"), ExerciseRecord{}) << when;
        EXPECT_EQ(book.current(), "day09/graph") << when;
        book.update("day05/d", [](ExerciseRecord& record) { record.solved = true; });
    }
}

// As after a command of an earlier commit, which writes version 1 and keeps the ids.
TEST_F(LogbookTest, RecordsAreNotRenumberedTwice) {
    for (const char* known : {"day44/places", "day09/graph", "day43/turns"}) {
        directory.write("my/progress.json",
                        std::string(R"({"version": 1, "exercises": {
            "day43/overlap": {"solved": true, "failures": 4, "hints": 0, "stars": 1}, ")") +
                            known + R"(": {"solved": true, "failures": 5, "hints": 0, "stars": 1}}})");
        const Logbook book = open();
        EXPECT_EQ(book.of("day43/overlap").failures, 4) << known;
        EXPECT_EQ(book.of(known).failures, 5);
    }
}

TEST_F(LogbookTest, DirectoriesWithTheOldNumbersAreRenamed) {
    directory.write("my/day27_hopper_attention/a.cuh", "27");
    directory.write("my/day43_eight_bit_attention/a.cuh", "43");
    directory.write("my/day02_copies_and_streams/a.cu", "old");
    directory.write("my/day09_copies_and_streams/a.cu", "new");
    const auto renamed = [&] {
        testing::internal::CaptureStderr();
        rename_days(directory.path() / "my");
        return testing::internal::GetCapturedStderr();
    };
    said = renamed();
    EXPECT_EQ(read_text(directory.path() / "my/day43_hopper_attention/a.cuh"), "27");
    EXPECT_EQ(read_text(directory.path() / "my/day44_eight_bit_attention/a.cuh"), "43");
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "my/day43_eight_bit_attention"));
    EXPECT_NE(said.find("day27_hopper_attention is day43_hopper_attention now"), std::string::npos) << said;
    EXPECT_EQ(read_text(directory.path() / "my/day02_copies_and_streams/a.cu"), "old");
    EXPECT_EQ(read_text(directory.path() / "my/day09_copies_and_streams/a.cu"), "new");
    EXPECT_NE(said.find("day09_copies_and_streams exists: your files in"), std::string::npos) << said;
    std::filesystem::remove_all(directory.path() / "my/day02_copies_and_streams");
    EXPECT_EQ(renamed(), "");
}

}  // namespace
}  // namespace course::tool
