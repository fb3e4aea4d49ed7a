// The commands, on a made-up project: there is nothing to compile, and the day's program is a
// script that records its arguments.
#include "command_line.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "common/test/device_test.hpp"
#include "errors.hpp"
#include "subprocess.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

class CommandLine : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.25)\nproject(made_up NONE)\n"
            "add_custom_target(day00_programs_program)\nadd_custom_target(day01_vector_add_program)\n"
            "add_custom_target(day02_broken_program COMMAND echo the compiler said this COMMAND false)\n");
        const std::string root = directory_.path().string();
        const Captured configured = capture({"cmake", "-S", root, "-B", root + "/build", "-G", "Ninja"});
        ASSERT_EQ(configured.exit_code, 0) << configured.output;
        directory_.write("build/days.json", R"({"backend": "cpu", "build_type": "RelWithDebInfo", "days": [
            {"directory": "day01_vector_add", "number": 1, "topic": "vector_add", "title": "T"},
            {"directory": "day02_broken", "number": 2, "topic": "broken", "title": "B"},
             {"directory": "day00_programs", "number": 0, "topic": "programs", "title": "P",
              "programs": [["hello"], ["add", "31", "a b"]]}
        ]})");
        const auto write_program = [this](const std::string& name, const std::string& script) {
            const auto file =
                directory_.write("build/bin/" + name, "#!/bin/sh\n" + script + "\nexit ${EXIT_CODE:-0}\n");
            std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        };
        write_program("day01_vector_add", "printf '%s|' \"$@\" >\"$COURSE_ROOT/arguments\"");
        for (const std::string name : {"hello", "add"})
            write_program("day00_" + name, "printf '%s|' " + name + " \"$@\" >>\"$COURSE_ROOT/arguments\"");
        setenv("COURSE_ROOT", directory_.path().c_str(), 1);
        setenv("COURSE_BUILD_DIR", (directory_.path() / "build").c_str(), 1);
        unsetenv("EXIT_CODE");
    }

    static int course(const std::vector<const char*>& arguments) {
        std::vector<const char*> argv = {"./course"};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        return run_command_line(static_cast<int>(argv.size()), argv.data(),
                                {bench_day, show_profile, update_tables, try_exercises, new_day});
    }
    // The complaints of ./course tables --check.
    static std::string complaints_of_check() {
        testing::internal::CaptureStderr();
        const int code = course({"tables", "--check"});
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_EQ(code, said.empty() ? kSuccess : kFailed) << said;
        return said;
    }
    // The arguments of the day's program, each followed by a bar.
    std::string arguments() const { return read_text(directory_.path() / "arguments"); }

    TemporaryDirectory directory_;
};

TEST_F(CommandLine, HelpIsNoError) {
    EXPECT_EQ(course({}), kSuccess);
    EXPECT_EQ(course({"--help"}), kSuccess);
    for (const char* command :
         {"list",   "run",      "inspect",   "test",     "bench",     "tune",   "profile",
          "tables", "doctor",   "occupancy", "next",     "check",     "debug",  "watch",
          "hint",   "solution", "reset",     "progress", "exercises", "new-day"}) {
        testing::internal::CaptureStdout();
        EXPECT_EQ(course({command, "--help"}), kSuccess);
        EXPECT_NE(testing::internal::GetCapturedStdout().find("example: ./course "), std::string::npos)
            << command;
    }
}

TEST_F(CommandLine, WrongUsageIsTwo) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"rum"}), kUsage);
    EXPECT_EQ(course({"check", "--inspekt"}), kUsage);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("course: unknown command 'rum': did you mean 'run'?"), std::string::npos) << said;
    EXPECT_NE(said.find("course: unknown option '--inspekt': did you mean '--inspect'?"), std::string::npos)
        << said;
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"reset"}), kUsage);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "course: EXERCISE is required; example: ./course reset day05/coalesced\n");
    EXPECT_EQ(course({"run"}), kUsage);
    EXPECT_EQ(course({"run", "--sise", "3", "day01"}), kUsage);
    EXPECT_EQ(course({"run", "day03"}), kUsage);
    EXPECT_EQ(course({"test", "day03"}), kUsage);
    EXPECT_EQ(course({"bench"}), kUsage);
    EXPECT_EQ(course({"tune", "day05"}), kUsage);
    EXPECT_EQ(course({"list", "more"}), kUsage);
}

TEST_F(CommandLine, RunHandsTheArgumentsOver) {
    EXPECT_EQ(course({"run", "1", "--size", "4096", "--only", "float 4", "--json", "a'b"}), kSuccess);
    EXPECT_EQ(arguments(), "--size|4096|--only|float 4|--json|a'b|");
    EXPECT_EQ(course({"run", "vector_add", "--", "--help", "$HOME", "*"}), kSuccess);
    EXPECT_EQ(arguments(), "--help|$HOME|*|");
    EXPECT_EQ(course({"run", "day01", "--size", "3", "--image", "in.png", "--sigma", "4", "--size", "5"}),
              kSuccess);
    EXPECT_EQ(arguments(), "--size|3|--image|in.png|--sigma|4|--size|5|") << "the program's own options";
    EXPECT_EQ(course({"run", "day01", "--step", "0,5", "--m", "100", "--beta", "-0.5"}), kSuccess);
    EXPECT_EQ(arguments(), "--step|0,5|--m|100|--beta|-0.5|");
}

TEST_F(CommandLine, ASizeThatIsNoneIsRefusedBeforeAnythingIsBuilt) {
    for (const std::string size : {"-5", "0", "many", "4096y", "99999999999999999999"}) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(course({"run", "day02", "--size", size.c_str()}), kUsage) << "day02 does not build";
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_NE(said.find("--size: '" + size + "' is "), std::string::npos) << said;
    }
}

TEST_F(CommandLine, RunsWholeProgramsInTheirOrder) {
    EXPECT_EQ(course({"run", "day00"}), kSuccess);
    EXPECT_EQ(arguments(), "hello|add|31|a b|");
}

TEST_F(CommandLine, RunsOneOfTheWholePrograms) {
    EXPECT_EQ(course({"run", "day00", "--program", "add"}), kSuccess);
    EXPECT_EQ(arguments(), "add|31|a b|") << "its usual arguments";
    EXPECT_EQ(course({"run", "day00", "--program", "add", "7", "c d"}), kSuccess);
    EXPECT_EQ(arguments(), "add|31|a b|add|7|c d|") << "the user's";
}

TEST_F(CommandLine, AWholeProgramThatFailsIsTheLast) {
    setenv("EXIT_CODE", "5", 1);
    EXPECT_EQ(course({"run", "day00"}), 5);
    EXPECT_EQ(arguments(), "hello|");
}

TEST_F(CommandLine, RefusesWhatADayOfWholeProgramsHasNot) {
    EXPECT_EQ(course({"run", "day00", "--program", "ad"}), kUsage);
    EXPECT_EQ(course({"run", "day00", "--size", "7"}), kUsage);
    EXPECT_EQ(course({"run", "day00", "--only", "hello"}), kUsage);
    EXPECT_EQ(course({"run", "day00", "7"}), kUsage) << "for which program?";
    EXPECT_EQ(course({"run", "day01", "--program", "add"}), kUsage);
    EXPECT_EQ(course({"bench", "day00"}), kUsage);
    EXPECT_EQ(course({"inspect", "day00"}), kUsage);
}

TEST_F(CommandLine, RunEndsAsTheProgramDoes) {
    setenv("EXIT_CODE", "1", 1);
    EXPECT_EQ(course({"run", "day01"}), 1);
    setenv("EXIT_CODE", "77", 1);
    EXPECT_EQ(course({"run", "day01"}), 77);
}

TEST_F(CommandLine, AFailedBuildIsThreeAndSaysWhatTheCompilerSaid) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"run", "day02"}), kBuildFailed);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("the compiler said this"), std::string::npos);
}

TEST_F(CommandLine, OnlyAReleaseBuildIsRecorded) {
    EXPECT_EQ(course({"bench", "day01", "--record"}), kUsage);
}

TEST_F(CommandLine, CountersNeedAGpu) {
    if (!is_cpu_stand_in()) GTEST_SKIP() << "there are counters";
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"bench", "day01", "--counters"}), kUsage);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("./course inspect"), std::string::npos);
    EXPECT_EQ(course({"bench", "day01", "--counters", "--sweep"}), kUsage);
}

TEST_F(CommandLine, BenchChoosesTheListAndItsFile) {
    if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const std::string file =
        (directory_.path() / "build/measurements" / this_machine().slug / "day01_vector_add").string();
    EXPECT_EQ(course({"bench", "day01"}), kSuccess);
    EXPECT_EQ(arguments(), "--bench|--json|" + file + ".jsonl|");
    EXPECT_EQ(course({"bench", "day01", "--sweep"}), kSuccess);
    EXPECT_EQ(arguments(), "--sweep|--json|" + file + "_sweep.jsonl|");
    EXPECT_EQ(course({"bench", "day01", "--plot"}), kSuccess);
    EXPECT_EQ(arguments(), "--plot|--json|" + file + "_plot.jsonl|");
    EXPECT_EQ(course({"bench", "day01", "--plot", "--sweep"}), kUsage);
    EXPECT_EQ(course({"bench", "day01", "--cpu-times"}), kSuccess);
    const std::string own = std::string("cpu_times/") + this_machine().slug;
    EXPECT_EQ(arguments(),
              "--bench|--json|" +
                  (directory_.path() / "build/measurements" / own / "day01_vector_add").string() +
                  ".jsonl|--cpu-times|");
}

TEST_F(CommandLine, BenchDrawsRandomProblems) {
    if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const std::string file =
        (directory_.path() / "build/measurements" / this_machine().slug / "day01_vector_add_random.jsonl")
            .string();
    EXPECT_EQ(course({"bench", "day01", "--random", "20"}), kSuccess);
    EXPECT_EQ(arguments(), "--random|20|--seed|1|--json|" + file + "|");
    const std::string own = (directory_.path() / "problems.jsonl").string();
    EXPECT_EQ(course({"bench", "day01", "--random", "20", "--seed", "7", "--random-limit", "500", "--json",
                      own.c_str()}),
              kSuccess);
    EXPECT_EQ(arguments(), "--random|20|--seed|7|--json|" + own + "|--random-limit|500|");
    const auto refused = [&](std::vector<const char*> more) {
        more.insert(more.begin(), {"bench", "day01"});
        testing::internal::CaptureStderr();
        EXPECT_EQ(course(more), kUsage);
        return testing::internal::GetCapturedStderr();
    };
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    EXPECT_PRED2(has, refused({"--random", "0"}), "--random '0': expected a whole number from 1 to 1000000");
    EXPECT_PRED2(has, refused({"--random", "-4"}), "--random '-4': expected a whole number from 1");
    EXPECT_PRED2(has, refused({"--random", "many"}), "--random 'many': expected a whole number from 1");
    EXPECT_PRED2(has, refused({"--seed", "7"}), "--seed '7': expected with --random N");
    EXPECT_PRED2(has, refused({"--json", "x.jsonl"}), "--json x.jsonl: expected with --random N");
    for (const char* other : {"--record", "--sweep", "--plot", "--counters", "--cpu-times"}) {
        const std::string message = std::string("--random 5: expected without ") + other + "\n";
        EXPECT_PRED2(has, refused({"--random", "5", other}), message.c_str());
    }
}

constexpr const char* kRecords =
    R"({"format":"course records 1","day":"d","dtype":"float","spread_ms":0.1,"bytes":1,"flops":4e9,"percent_of_limit":null,"verified":true,"device":"d","driver":"1","cuda":"13.0","commit":"c","date":"2026-11-21"}
{"problem":"sgemm 4096x4096x4096","version":"01_naive","role":"ours","median_ms":1,"l2":"warm"}
)";

TEST_F(CommandLine, TablesCheckNamesWhatIsOutOfDateAndWritesNothing) {
    EXPECT_EQ(complaints_of_check(), "");
    const auto readme =
        directory_.write("day01/README.md", "<!-- measurements: h200/d -->\n<!-- end of measurements -->\n");
    directory_.write("docs/measurements/h200/d.jsonl", kRecords);
    const std::string before = read_text(readme);
    const std::string said = complaints_of_check();
    EXPECT_NE(said.find("day01/README.md: "), std::string::npos) << said;
    EXPECT_NE(said.find("docs/measured/d.md: "), std::string::npos) << said;
    EXPECT_EQ(read_text(readme), before) << "--check wrote";
    EXPECT_FALSE(std::filesystem::exists(directory_.path() / "docs/measured")) << "--check wrote";

    EXPECT_EQ(course({"tables"}), kSuccess);
    EXPECT_EQ(complaints_of_check(), "");
    EXPECT_NE(read_text(readme).find("| 01_naive | 1.00 ms |"), std::string::npos);

    directory_.write("docs/measured/d.md",
                     read_text(directory_.path() / "docs/measured/d.md") + "typed by hand\n");
    EXPECT_NE(complaints_of_check().find("docs/measured/d.md: "), std::string::npos);
    EXPECT_EQ(course({"tables"}), kSuccess);
    EXPECT_EQ(complaints_of_check(), "");
}

TEST_F(CommandLine, AMeasuredPageWithoutRecordsIsFoundAndRemoved) {
    const auto page = directory_.write("docs/measured/day77_gone.md", "old\n");
    EXPECT_NE(complaints_of_check().find("docs/measured/day77_gone.md: there are no records for it"),
              std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(page)) << "--check removed it";
    EXPECT_EQ(course({"tables"}), kSuccess);
    EXPECT_FALSE(std::filesystem::exists(page));
}

TEST_F(CommandLine, AReadmeWithAMistakeDoesNotKeepTheOthersFromTheirTables) {
    directory_.write("docs/measurements/h200/d.jsonl", kRecords);
    directory_.write("day01/README.md",
                     "<!-- measurements: h200/d, no such problem -->\n<!-- end of measurements -->\n");
    const auto good =
        directory_.write("day02/README.md", "<!-- measurements: h200/d -->\n<!-- end of measurements -->\n");
    EXPECT_EQ(course({"tables"}), kFailed);
    EXPECT_NE(read_text(good).find("01_naive"), std::string::npos);
    EXPECT_NE(complaints_of_check().find("day01/README.md: line 1: no record has the problem"),
              std::string::npos);
}

TEST_F(CommandLine, AStepsHeadThatItsRecordContradictsIsFound) {
    directory_.write("docs/measurements/h200/gemm_ladder.jsonl", kRecords);
    directory_.write("gemm_ladder/steps/01_naive.cu", "// Measured:   about 4 TFLOP/s.\n");
    EXPECT_EQ(course({"tables"}), kSuccess);
    EXPECT_EQ(complaints_of_check(), "");
    directory_.write("gemm_ladder/steps/01_naive.cu", "// Measured:   about 7 TFLOP/s.\n");
    directory_.write("gemm_ladder/beyond/01_naive.cuh", "// Measured:   about 8 TFLOP/s.\n");
    const std::string said = complaints_of_check();
    EXPECT_NE(said.find("gemm_ladder/steps/01_naive.cu: says 'about 7 TFLOP/s'"), std::string::npos) << said;
    EXPECT_NE(said.find("gemm_ladder/beyond/01_naive.cuh: says 'about 8 TFLOP/s'"), std::string::npos)
        << said;
}

TEST_F(CommandLine, CleanIsDoneByTheScript) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"clean"}), kUsage);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("expected ./course clean"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(directory_.path() / "build"));
}

TEST_F(CommandLine, TheSiteIsBuiltByTheScript) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"site"}), kUsage);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("expected ./course site in the checkout"),
              std::string::npos);
}

TEST_F(CommandLine, WithoutTheScriptItSaysSo) {
    unsetenv("COURSE_ROOT");
    testing::internal::CaptureStderr();
    EXPECT_EQ(course({"list"}), kFailed);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("./course"), std::string::npos);
}

}  // namespace
}  // namespace course::tool
