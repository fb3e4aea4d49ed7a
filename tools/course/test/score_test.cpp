#include "score.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace course::tool {
namespace {

AccessLine line(Space space, std::uint64_t transactions, std::uint64_t ideal, int number) {
    AccessLine access;
    access.source = {"my/a.cu", number};
    access.space = space;
    access.transactions = transactions;
    access.ideal = ideal;
    return access;
}

InspectedVersion version(std::vector<AccessLine> lines, std::vector<Finding> findings = {}) {
    KernelInspection kernel;
    kernel.lines = std::move(lines);
    kernel.findings = std::move(findings);
    return {.problem = "p", .version = "v", .verified = true, .kernels = {kernel}};
}

TEST(SideBySide, PutsTheLessonsVersionBehindYoursProblemByProblem) {
    const auto seen = [](const char* problem) {
        return InspectedVersion{.problem = problem, .version = "v"};
    };
    const InspectionFile mine = {
        .day = "d", .commit = "", .results = {seen("p"), seen("q"), seen("mine only")}};
    const InspectionFile lesson = {
        .day = "d", .commit = "abc", .results = {seen("p"), seen("q"), seen("lesson only")}};
    std::vector<std::string> names;
    for (const InspectedVersion& each : side_by_side(mine, lesson).results)
        names.push_back(each.version + " " + each.problem);
    EXPECT_EQ(names, (std::vector<std::string>{"your v p", "the lesson's v p", "your v q", "the lesson's v q",
                                               "your v mine only"}));
    EXPECT_EQ(side_by_side(mine, lesson).commit, "abc");
}

TEST(Score, AsManyTransactionsAsTheLessonsIsAStar) {
    const InspectedVersion lesson = version({line(Space::kShared, 20, 10, 1), line(Space::kGlobal, 4, 4, 2)});
    const std::vector<Criterion> criteria = criteria_of_inspection(lesson, lesson);
    ASSERT_EQ(criteria.size(), 2U);
    EXPECT_TRUE(criteria[0].star);
    EXPECT_EQ(criteria[0].text, "shared memory: 20 wavefronts, 2.00 times the ideal");
    EXPECT_TRUE(criteria[1].star);
    const InspectedVersion global_only = version({line(Space::kGlobal, 4, 4, 2)});
    EXPECT_TRUE(criteria_of_inspection(global_only, global_only)[0].star);
    EXPECT_EQ(criteria_of_inspection(global_only, global_only)[0].text, "shared memory: not used");
}

TEST(Score, OfSampledGridsAllBlocksCount) {
    InspectedVersion lesson = version({line(Space::kGlobal, 4, 4, 2)});
    lesson.kernels[0].blocks = 64;
    lesson.kernels[0].inspected_blocks = 16;
    InspectedVersion mine = lesson;
    EXPECT_EQ(criteria_of_inspection(mine, lesson)[1].text,
              "global memory: 16 sectors, 1.00 times the ideal");
    mine.kernels[0].blocks = 128;  // as much for each watched block, and twice the blocks
    EXPECT_EQ(criteria_of_inspection(mine, lesson)[1].text,
              "global memory: 32 sectors, 1.00 times the ideal; the lesson's has 16");
}

TEST(Score, MoreIsNoneAndTheLineIsNamed) {
    const InspectedVersion lesson = version({line(Space::kShared, 10, 10, 1), line(Space::kGlobal, 4, 4, 2)});
    const InspectedVersion mine = version(
        {line(Space::kShared, 10, 10, 1), line(Space::kGlobal, 4, 4, 2), line(Space::kGlobal, 32, 4, 3)});
    const std::vector<Criterion> criteria = criteria_of_inspection(mine, lesson);
    EXPECT_TRUE(criteria[0].star);
    EXPECT_FALSE(criteria[1].star);
    EXPECT_EQ(criteria[1].text,
              "global memory: 36 sectors, 4.50 times the ideal; the lesson's has 4. See my/a.cu:3");
}

TEST(Score, TheLineNamedIsNoneThatTheLessonHasToo) {
    const AccessLine conflicts = line(Space::kShared, 1000, 100, 1);
    const InspectedVersion lesson = version({conflicts, line(Space::kShared, 50, 50, 2)});
    const auto text = [&](std::vector<AccessLine> mine) {
        return criteria_of_inspection(version(std::move(mine)), lesson)[0].text;
    };
    // Twice what is perfect; a few more conflicts, where they are data's; two small ones in the
    // place of a line of the lesson's.
    EXPECT_TRUE(text({conflicts, line(Space::kShared, 50, 50, 2), line(Space::kShared, 50, 50, 3)})
                    .ends_with("See my/a.cu:3"));
    EXPECT_TRUE(text({line(Space::kShared, 1005, 100, 1), line(Space::kShared, 500, 50, 2)})
                    .ends_with("See my/a.cu:2"));
    EXPECT_TRUE(text({conflicts, line(Space::kShared, 25, 25, 2), line(Space::kShared, 40, 25, 3)})
                    .ends_with("See my/a.cu:3"));
}

// An access of a warp of 32 lanes, 4 bytes each: 4 sectors at best.
InspectedVersion loads(std::uint64_t requests, std::uint64_t sectors_of_each, Space space = Space::kGlobal) {
    AccessLine access = line(space, requests * sectors_of_each, requests * 4, 7);
    access.requests = requests;
    access.active_lanes = 32 * requests;
    return version({access});
}

TEST(Score, MoreTrafficThanTheLessonsIsAnObjectionWhereTheExerciseIsAboutIt) {
    EXPECT_EQ(objection_to_traffic(loads(10, 32), loads(10, 4), {"global"}),
              "  In global memory it needs 320 sectors, the lesson's version 40.\n"
              "    my/a.cu:7: each request of a warp touches 32 sectors; expected 4\n");
    EXPECT_EQ(objection_to_traffic(loads(10, 32), loads(10, 4), {"shared"}), "");
    EXPECT_EQ(objection_to_traffic(loads(10, 32), loads(10, 4), {}), "");
    EXPECT_EQ(objection_to_traffic(loads(10, 32), loads(10, 32), {"global"}), "") << "meant to be naive";
    // Each request at its best, and twice as many of them.
    EXPECT_EQ(objection_to_traffic(loads(20, 4), loads(10, 4), {"global"}),
              "  In global memory it needs 80 sectors, the lesson's version 40.\n"
              "    my/a.cu:7: 20 requests of 4 sectors each\n");
    EXPECT_NE(objection_to_traffic(loads(9, 8, Space::kShared), loads(10, 4, Space::kShared), {"shared"})
                  .find("a warp takes 8 wavefronts; expected 4"),
              std::string::npos);
}

TEST(Score, LoadsThatWaitAreNoneOfTheAccessesThatAreCompared) {
    const auto scan = [](std::uint64_t loaded, std::uint64_t waited) {
        AccessLine load = line(Space::kGlobal, loaded, loaded, 7);
        load.operation = Operation::kLoad;
        AccessLine wait = line(Space::kGlobal, waited, waited, 8);
        wait.operation = Operation::kAtomic;
        return version({load, wait});
    };
    EXPECT_EQ(objection_to_traffic(scan(100, 900), scan(100, 10), {"accesses"}), "");
    EXPECT_NE(objection_to_traffic(scan(100, 900), scan(100, 10), {"global"}), "");
    EXPECT_TRUE(objection_to_traffic(scan(200, 10), scan(100, 900), {"accesses"})
                    .starts_with("  In global memory it needs 200 sectors, the lesson's version 100.\n"));
}

TEST(Score, ALoadTooManyIsSeenBesideManyStoresWhereLoadsAreCompared) {
    const auto merge = [](std::uint64_t loaded) {
        AccessLine load = line(Space::kGlobal, loaded, loaded, 7);
        load.operation = Operation::kLoad;
        AccessLine store = line(Space::kGlobal, 800, 800, 8);
        store.operation = Operation::kStore;
        return version({load, store});
    };
    EXPECT_EQ(objection_to_traffic(merge(200), merge(100), {"global"}), "");
    EXPECT_TRUE(
        objection_to_traffic(merge(200), merge(100), {"loads"})
            .starts_with("  In global memory it needs 200 sectors for its loads, the lesson's version "
                         "100.\n    my/a.cu:7"));
    EXPECT_EQ(objection_to_traffic(merge(100), merge(100), {"loads"}), "");
}

TEST(Score, BytesThatLanesCouldLoadInCommonAreAnObjectionWhereThatIsCompared) {
    const auto matmul = [](std::uint64_t different) {
        AccessLine load = line(Space::kShared, 40, 40, 7);
        load.operation = Operation::kLoad;
        load.requests = 10;
        load.bytes_used = different;
        AccessLine store = load;
        store.operation = Operation::kStore;
        store.bytes_used = 100 * different;
        return version({load, store});
    };
    EXPECT_EQ(objection_to_traffic(matmul(1600), matmul(1280), {"loads"}), "");
    EXPECT_EQ(objection_to_traffic(matmul(1600), matmul(1280), {"different"}),
              "  Its warps load 1600 different bytes from shared memory, those of the lesson's version 1280. "
              "A warp needs fewer where more of its lanes load the same ones.\n"
              "    my/a.cu:7: each request of a warp loads 160 different bytes\n");
    EXPECT_EQ(objection_to_traffic(matmul(1300), matmul(1280), {"different"}), "");
    EXPECT_EQ(objection_to_traffic(matmul(640), matmul(1280), {"different"}), "");
}

TEST(Score, ManyAtomicsInThePlaceOfOneAreAnObjection) {
    const auto atomics = [](std::uint64_t requests, std::uint64_t lanes) {
        AccessLine access = line(Space::kGlobal, requests, requests, 7);
        access.operation = Operation::kAtomic;
        access.requests = requests;
        access.active_lanes = requests * lanes;
        return version({access});
    };
    EXPECT_EQ(objection_to_traffic(atomics(10, 32), atomics(10, 1), {"atomics"}),
              "  In global memory it does 320 atomic operations, the lesson's version 10.\n"
              "    my/a.cu:7: 32 of 32 lanes take part in each request\n");
    EXPECT_EQ(objection_to_traffic(atomics(10, 32), atomics(10, 1), {"global"}), "");
    // Loads and stores are no updates, also where they are atomic.
    for (const Operation operation : {Operation::kAtomicLoad, Operation::kAtomicStore}) {
        InspectedVersion mine = atomics(10, 32);
        mine.kernels.front().lines.front().operation = operation;
        EXPECT_EQ(objection_to_traffic(mine, atomics(10, 1), {"atomics"}), "");
    }
    EXPECT_EQ(objection_to_traffic(atomics(15, 1), atomics(10, 1), {"atomics"}), "");
    EXPECT_EQ(objection_to_traffic(version({}), atomics(10, 1), {"atomics"}), "");
    // However many requests there are: as many lanes should share them.
    EXPECT_EQ(
        objection_to_traffic(atomics(10, 1), atomics(90, 32), {"lanes"}),
        "  On average 1 of 32 lanes take part in a relaxed or an atomic access to global memory, in the "
        "lesson's version 32.\n    Most of them: my/a.cu:7\n");
    EXPECT_EQ(objection_to_traffic(atomics(90, 16), atomics(10, 32), {"lanes"}), "");
}

TEST(Score, OfAWarpThatDivergesItsLanesAreCounted) {
    const auto requests = [](std::uint64_t count, std::uint64_t lanes) {
        AccessLine access = line(Space::kShared, count, count, 7);
        access.requests = count;
        access.active_lanes = lanes * count;
        return version({access});
    };
    EXPECT_EQ(objection_to_traffic(requests(20, 16), requests(10, 32), {"shared"}),
              "  In shared memory it needs 20 wavefronts, the lesson's version 10.\n"
              "    my/a.cu:7: 16 of 32 lanes take part in a request: does the warp diverge?\n");
}

TEST(Score, ALittleMoreTrafficCostsAStarAndIsNoObjection) {
    const InspectedVersion lesson = version({line(Space::kGlobal, 1000, 1000, 1)});
    const auto objects = [&](std::uint64_t transactions, std::uint64_t ideal) {
        const InspectedVersion mine = version({line(Space::kGlobal, transactions, ideal, 1)});
        return !objection_to_traffic(mine, lesson, {"global"}).empty();
    };
    EXPECT_FALSE(objects(1250, 1250));
    EXPECT_TRUE(objects(1251, 1251));
    EXPECT_FALSE(objects(1020, 1000));
    EXPECT_TRUE(objects(1021, 1000)) << "few, and each of them far from its best";
}

TEST(Score, NarrowLoadsInThePlaceOfWideOnesAreAnObjection) {
    // 128 lanes' worth of floats: one request of 16 sectors, or four of 4.
    AccessLine narrow = line(Space::kGlobal, 16, 16, 7);
    AccessLine wide = narrow;
    std::tie(narrow.requests, narrow.bytes) = std::pair(4U, 4U);
    std::tie(wide.requests, wide.bytes) = std::pair(1U, 16U);
    narrow.active_lanes = 128;
    wide.active_lanes = 32;
    EXPECT_EQ(objection_to_traffic(version({narrow}), version({wide}), {"global"}),
              "  To global memory it makes 4 requests, the lesson's version 1.\n"
              "    my/a.cu:7: 4 requests of 4 sectors each\n");
    EXPECT_EQ(objection_to_traffic(version({wide}), version({narrow}), {"global"}), "");
    narrow.space = wide.space = Space::kShared;
    EXPECT_EQ(objection_to_traffic(version({narrow}), version({wide}), {"shared"}), "");
}

TEST(Score, AFindingThatTheLessonDoesNotHaveIsAnObjection) {
    const auto with = [](const char* kind) {
        return version({},
                       {{.kind = kind, .source = {"my/a.cu", 7}, .message = "m", .why = "w", .other = {}}});
    };
    EXPECT_EQ(objection_to_findings(with("race"), version({})),
              "inspection found 1 problem:\n      my/a.cu:7: m\n      thread (0, 0, 0) of block (0, 0, 0)\n  "
              "    w\n");
    EXPECT_EQ(objection_to_findings(with("race"), with("race")), "") << "meant to have it";
    EXPECT_NE(objection_to_findings(with("race"), with("misaligned")), "");
    EXPECT_EQ(objection_to_findings(version({}), with("race")), "");
}

TEST(Score, AResultThatIsWrongWhenInspectedIsAnObjection) {
    InspectedVersion mine = version({});
    mine.failure = "1 of 3 values differ";
    EXPECT_EQ(objection_to_traffic(mine, version({}), {"global"}),
              "  Inspected, its result is wrong: 1 of 3 values differ\n");
}

TEST(Score, OneInAThousandMoreIsNoMore) {
    const InspectedVersion lesson = version({line(Space::kShared, 1000, 500, 1)});
    EXPECT_TRUE(criteria_of_inspection(version({line(Space::kShared, 1001, 500, 1)}), lesson)[0].star);
    EXPECT_FALSE(criteria_of_inspection(version({line(Space::kShared, 1002, 500, 1)}), lesson)[0].star);
}

TEST(Score, AllProblemsCount) {
    InspectionFile file;
    EXPECT_FALSE(all_problems(file, "v").has_value());
    file.results = {version({line(Space::kShared, 1, 1, 1)}), version({line(Space::kShared, 2, 2, 1)}),
                    version({line(Space::kShared, 4, 4, 1)}), version({line(Space::kShared, 8, 8, 1)})};
    file.results[1].version = "w";
    file.results[2].cannot_run = "too large";
    file.results[3].failure = "1 of 3 values differ";
    const InspectedVersion all = all_problems(file, "v").value();
    EXPECT_EQ(all.kernels.size(), 2U);
    EXPECT_FALSE(criteria_of_inspection(all, all)[0].star);
    EXPECT_FALSE(criteria_of_inspection(all, all)[1].star);
    EXPECT_EQ(criteria_of_inspection(all, all)[0].text,
              "inspected, its result is wrong: 1 of 3 values differ");
}

// Of a version that runs the exercise's kernel forward, and another exercise's backward.
class OwnPart : public ::testing::Test {
  protected:
    static InspectedVersion ran(const std::string& problem, const std::vector<std::string>& kernels,
                                const std::string& failure = "") {
        InspectedVersion seen = version({});
        seen.problem = problem;
        seen.failure = failure;
        seen.kernels.clear();
        for (const std::string& name : kernels) {
            KernelInspection kernel;
            kernel.name = name;
            seen.kernels.push_back(kernel);
        }
        return seen;
    }
    // "problem: kernel kernel!": the mark is that of a failure.
    static std::vector<std::string> left(const InspectionFile& file) {
        std::vector<std::string> lines;
        for (const InspectedVersion& seen : file.results) {
            std::string line = seen.problem + ":";
            for (const KernelInspection& kernel : seen.kernels)
                line += " " + kernel.name;
            lines.push_back(line + (seen.failure.empty() ? "" : "!"));
        }
        return lines;
    }
    void keep(const char* exercise) {
        const auto found = std::ranges::find(sheet_.exercises, exercise, &Exercise::name);
        keep_own_part(mine_, lesson_, *found, sheet_);
    }

    using Lines = std::vector<std::string>;
    ExerciseSheet sheet_ = {.title = "",
                            .introduction = "",
                            .exercises = {{.name = "forward", .kernels = {"helper", "forward"}},
                                          {.name = "backward", .kernels = {"backward"}},
                                          {.name = "launcher", .kernels = {"launch_all"}}}};
    InspectionFile mine_, lesson_;
};

TEST_F(OwnPart, ProblemsOfOtherExercisesAreNotJudged) {
    lesson_.results = {ran("a", {"day::forward<float>", "fill"}),
                       ran("b", {"day::backward [with int N = 3]"})};
    mine_.results = {ran("a", {"day::forward<float>", "fill"}),
                     ran("b", {"day::backward<3, 4>"}, "0 written")};
    keep("forward");
    EXPECT_EQ(left(mine_), Lines{"a: day::forward<float> fill"});
    EXPECT_EQ(left(lesson_), Lines{"a: day::forward<float> fill"});
}

TEST_F(OwnPart, KernelsOfOtherExercisesInTheSameProblemAreNotCounted) {
    lesson_.results = {ran("a", {"day::forward [with T = day::Tile<3>]", "backward"}), ran("c", {"forward"})};
    mine_.results = {ran("a", {"forward", "mine", "backward"}, "wrong"), ran("c", {"forward"}, "wrong")};
    keep("forward");
    EXPECT_EQ(left(mine_), (Lines{"a: forward mine", "c: forward!"}));
    EXPECT_EQ(left(lesson_), (Lines{"a: day::forward [with T = day::Tile<3>]", "c: forward"}));
}

TEST_F(OwnPart, AnAnswerThatDoesNotLaunchItsKernelIsJudgedAllTheSame) {
    lesson_.results = {ran("a", {"forward"})};
    mine_.results = {ran("a", {"elsewhere"}, "wrong")};
    keep("forward");
    EXPECT_EQ(left(mine_), Lines{"a: elsewhere!"});
}

TEST_F(OwnPart, EverythingIsLeftOfAnExerciseWithoutAKernelOfItsOwn) {
    lesson_.results = {ran("a", {"forward"}), ran("b", {"backward"})};
    mine_.results = {ran("a", {"forward"}), ran("b", {"backward"}, "wrong")};
    keep("launcher");
    EXPECT_EQ(left(mine_), (Lines{"a: forward", "b: backward!"}));
}

TEST(Score, AFindingCostsTheStar) {
    Finding race;
    race.kind = "race";
    race.source = {"my/a.cu", 7};
    race.message = "two threads write";
    race.why = "no barrier between them";
    race.block = {5, 0, 0};
    race.thread = {33, 0, 0};
    race.other_thread = {2, 0, 0};
    const std::vector<Criterion> criteria = criteria_of_inspection(version({}, {race}), version({}));
    EXPECT_FALSE(criteria[0].star);
    EXPECT_EQ(criteria[0].text,
              "inspection found 1 problem:\n      my/a.cu:7: two threads write\n      thread (33, 0, 0) of "
              "block (5, "
              "0, 0)\n"
              "      no barrier between them");
    EXPECT_TRUE(criteria[1].star);

    Finding mask = race;
    mask.message = "block (5,0,0), thread (33,0,0), my/a.cu:7: the mask";
    EXPECT_NE(criteria_of_inspection(version({}, {mask}), version({}))[0].text.find(
                  "\n      my/a.cu:7: the mask\n"),
              std::string::npos)
        << "the place once";
    mask.source = {"", 0};
    mask.message = "no place";
    EXPECT_NE(criteria_of_inspection(version({}, {mask}), version({}))[0].text.find("\n      no place\n"),
              std::string::npos);

    // Both places are reported, and a finding in two problems is reported once.
    race.other = SourceLine{"my/a.cu", 9};
    Finding again = race;
    again.message = "two others write";
    EXPECT_EQ(criteria_of_inspection(version({}, {race, again}), version({}))[0].text,
              "inspection found 1 problem:\n      my/a.cu:9 and my/a.cu:7: two threads write\n      thread "
              "(2, 0, 0) "
              "of block "
              "(0, 0, 0) and thread (33, 0, 0) of block (5, 0, 0)\n      no barrier between them");
}

MeasuredRecord measured(const char* problem, const char* name, double milliseconds) {
    MeasuredRecord record;
    record.problem = problem;
    record.version = name;
    record.l2 = "warm";
    record.median_ms = milliseconds;
    return record;
}

TEST(Score, TimeIsComparedProblemByProblem) {
    const std::vector<MeasuredRecord> lesson = {measured("a", "v", 9), measured("b", "v", 9),
                                                measured("a", "w", 1)};
    EXPECT_TRUE(criterion_of_time({measured("a", "v", 10)}, lesson, "v")->star);
    EXPECT_FALSE(criterion_of_time({measured("a", "v", 9), measured("b", "v", 10.1)}, lesson, "v")->star);
    EXPECT_EQ(criterion_of_time({measured("a", "v", 9), measured("b", "v", 18)}, lesson, "v")->text,
              "time: 50 % of the lesson's speed");
    EXPECT_FALSE(criterion_of_time({measured("c", "v", 9)}, lesson, "v").has_value());
    EXPECT_FALSE(criterion_of_time({measured("a", "w", 9)}, lesson, "v").has_value());
    MeasuredRecord with_limit = measured("a", "v", 9);
    with_limit.percent_of_limit = 80;
    EXPECT_EQ(criterion_of_time({with_limit}, lesson, "v")->text,
              "time: 100 % of the lesson's speed, 80 % of the machine's limit");
}

}  // namespace
}  // namespace course::tool
