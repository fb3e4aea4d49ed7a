#include "test_report.hpp"

#include <gtest/gtest.h>

#include "commands.hpp"
#include "subprocess.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

class Reports : public testing::Test {
  protected:
    // `lines` are what common/test/main.cpp writes.
    void write(const std::string& part, const std::string& lines) {
        directory_.write(part + ".jsonl", lines);
        parts_.push_back(part);
    }
    TestReport parse() { return parse_test_reports(parts_, directory_.path()); }

    TemporaryDirectory directory_;
    std::vector<std::string> parts_;
};

TEST_F(Reports, CountTestsNotParts) {
    write("a_test.1of2", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
{"event":"started","test":"V.B"}
{"event":"ended","test":"V.B","result":"skipped","message":"needs <a GPU>\nand more"}
{"event":"started","test":"V.C"}
{"event":"ended","test":"V.C","result":"skipped"}
{"event":"finished","result":"passed"}
)");
    write("a_test.2of2", R"({"event":"finished","result":"passed"})");
    write("a_test.descending.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
{"event":"finished","result":"passed"}
)");
    const TestReport report = parse();
    EXPECT_EQ(report.passed, 2);
    EXPECT_EQ(report.failed, 0);
    EXPECT_EQ(report.skipped, 2);
    const SkippedTests reasons = {{"needs <a GPU>", {"a_test.V.B"}}, {"no reason given", {"a_test.V.C"}}};
    EXPECT_EQ(report.skipped_tests, reasons);
}

TEST_F(Reports, RepeatAPartThatHasSettingsOfItsOwnByCTest) {
    write("a_test.old_gpu.1of1", R"({"event":"started","test":"V.B"}
{"event":"failure","test":"V.B","message":"wrong"}
{"event":"ended","test":"V.B","result":"failed"}
{"event":"finished","result":"failed"}
)");
    const TestReport report = parse();
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures[0].command(), R"(ctest --test-dir .. --tests-regex '^a_test\.old_gpu\.1of1$')");
}

TEST_F(Reports, KeepTheFailureThatBelongsToNoTest) {
    write("a_test.1of1", R"({"event":"failure","test":"","message":"the suite cannot start"}
{"event":"started","test":"V.B"}
{"event":"ended","test":"V.B","result":"passed"}
{"event":"finished","result":"failed"}
)");
    const TestReport report = parse();
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures[0].message, "the suite cannot start\n");
}

TEST_F(Reports, TellTheFirstFailureOfEachTestAndHowToRepeatIt) {
    write("a_test.1of2", R"({"event":"started","test":"Day/V.All/x"}
{"event":"failure","test":"Day/V.All/x","file":"../../a.cpp","line":2,"message":"Expected equality of these values:\n  x\n    Which is: 3\n  4"}
{"event":"failure","test":"Day/V.All/x","file":"../../a.cpp","line":3,"message":"more"}
{"event":"ended","test":"Day/V.All/x","result":"failed"}
{"event":"started","test":"V.Long"}
{"event":"failure","test":"V.Long","message":"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}
{"event":"ended","test":"V.Long","result":"failed"}
{"event":"started","test":"V.C"}
{"event":"ended","test":"V.C","result":"passed"}
{"event":"finished","result":"failed"}
)");
    write("a_test.descending.1of2", R"({"event":"started","test":"V.B"}
{"event":"ended","test":"V.B","result":"failed","message":"crashed: Segmentation fault\n"}
{"event":"finished","result":"failed"}
)");
    write("a_test.timeout", R"({"event":"started","test":"V.B"}
{"event":"ended","test":"V.B","result":"failed"}
{"event":"finished","result":"failed"}
)");
    const TestReport report = parse();
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 4);
    ASSERT_EQ(report.failures.size(), 4u);
    EXPECT_EQ(report.failures[0].name, "a_test.Day/V.All/x");
    EXPECT_EQ(report.failures[0].message, "a.cpp:2: x is 3; expected 4\n");
    EXPECT_EQ(report.failures[0].command(), "a_test --gtest_filter=Day/V.All/x");
    EXPECT_EQ(report.failures[1].message, "1\n2\n3\n4\n5\n6\n7\n8\n");
    EXPECT_EQ(report.failures[2].message, "crashed: Segmentation fault\n");
    EXPECT_EQ(report.failures[2].command(), "CUDA_ON_CPU_ORDER=descending a_test --gtest_filter=V.B");
    EXPECT_EQ(report.failures[3].name, "a_test.timeout.V.B");
    EXPECT_EQ(report.failures[3].command(), "ctest --test-dir .. --tests-regex '^a_test\\.timeout$'")
        << "which knows the settings of that part";
}

TEST_F(Reports, AProgramThatFailsThoughItsTestsPassIsAFailure) {
    write("a_test.descending.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
{"event":"finished","result":"failed","message":"a leak"}
)");
    const TestReport report = parse();
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 1);
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures[0].name, "a_test.descending");
    EXPECT_EQ(report.failures[0].message, "a leak\n");
    EXPECT_EQ(report.failures[0].command(), "CUDA_ON_CPU_ORDER=descending a_test");
}

TEST_F(Reports, ATestThatRanWhenAllWasEndedIsAFailure) {
    write("a_test.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
{"event":"started","test":"V.B"}
{"event":"en)");
    write("b_test.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
)");
    const TestReport report = parse();
    EXPECT_EQ(report.passed, 2);
    EXPECT_EQ(report.failed, 2);
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures[0].name, "a_test.V.B");
    EXPECT_EQ(report.failures[0].message, "was running when the program was ended\n");
    EXPECT_EQ(report.failures[1].name, "b_test");
    EXPECT_EQ(report.failures[1].message, "was ended before its last test\n");
}

TEST_F(Reports, APartThatReportsNothingIsAFailure) {
    parts_ = {"a_test.1of2", "shell"};
    const TestReport report = parse();
    EXPECT_EQ(report.failed, 2);
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures[0].name, "a_test");
    EXPECT_EQ(report.failures[0].message, "has reported nothing\n");
    EXPECT_EQ(report.failures[1].name, "shell");
    EXPECT_EQ(report.failures[1].command(), "ctest --test-dir .. --tests-regex '^shell$'");
}

// Other commands, which run through common/test/report_command.sh.
class ReportCommand : public Reports {
  protected:
    // Returns the exit code; the report is in `report_`.
    int run_reported(const std::string& script, const Command& options = {}) {
        Command command = {REPORT_COMMAND, directory_.path() / "shell.jsonl"};
        command.insert(command.end(), options.begin(), options.end());
        command.insert(command.end(), {"sh", "-c", script});
        const int code = capture(command).exit_code;
        report_ = parse_test_reports({"shell"}, directory_.path());
        return code;
    }

    TestReport report_;
};

TEST_F(ReportCommand, PassesOrFailsByItsExitCode) {
    EXPECT_EQ(run_reported("echo fine"), 0);
    EXPECT_EQ(report_.passed, 1);
    EXPECT_EQ(report_.failed, 0);
    EXPECT_EQ(
        run_reported(
            R"(for i in 1 2 3 4 5 6 7 8; do echo $i; done; printf '"a\\b"\tc\001 \303\244 \377\n' >&2; exit 3)"),
        3);
    EXPECT_EQ(report_.passed, 0);
    ASSERT_EQ(report_.failures.size(), 1u);
    EXPECT_EQ(report_.failures[0].name, "shell");
    EXPECT_EQ(report_.failures[0].message, "2\n3\n4\n5\n6\n7\n8\n\"a\\b\"\tc \xc3\xa4 \n");
    EXPECT_EQ(run_reported("kill -9 $$"), 128 + 9);
    EXPECT_EQ(report_.failed, 1);
}

TEST_F(ReportCommand, IsSkippedForTheReasonInItsLastLine) {
    EXPECT_EQ(run_reported("echo looking; echo 'there is no gdb'; exit 77"), 77);
    EXPECT_EQ(report_.failed, 0);
    EXPECT_EQ(report_.skipped_tests, (SkippedTests{{"there is no gdb", {"shell"}}}));
}

TEST_F(ReportCommand, FailsByWhatItPrints) {
    EXPECT_EQ(run_reported("echo 0 findings", {"--fail-on", "[1-9] finding"}), 0);
    EXPECT_EQ(report_.passed, 1);
    EXPECT_EQ(run_reported("echo 2 findings", {"--fail-on", "[1-9] finding"}), 1);
    ASSERT_EQ(report_.failures.size(), 1u);
    EXPECT_EQ(report_.failures[0].message, "2 findings\n");
}

TEST_F(ReportCommand, ThatIsEndedIsAFailure) {
    const Captured ended = capture({REPORT_COMMAND, directory_.path() / "shell.jsonl", "sleep", "60"}, {},
                                   std::chrono::milliseconds(500));
    EXPECT_TRUE(ended.timed_out);
    const TestReport report = parse_test_reports({"shell"}, directory_.path());
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures[0].message, "was running when the program was ended\n");
}

TEST(SkippedTests, AreToldByReasonWithTheirNumberAndTheFirstNames) {
    EXPECT_EQ(lines_about({{"no GPU", {"a.V.A"}}, {"no gdb", {"b", "c.W.X", "d", "e"}}}),
              "skipped 1: no GPU (a.V.A)\nskipped 4: no gdb (b, c.W.X and 2 more)\n");
    EXPECT_EQ(lines_about({{"no gdb", {"b", "c"}}}), "skipped 2: no gdb (b, c)\n");
    EXPECT_EQ(lines_about({}), "");
}

TEST(TestsNotRun, AreToldWithTheCommandThatRunsThem) {
    const auto tells = [](TestHalf half, bool on_cpu, const char* words) {
        return lines_about_tests_not_run(half, on_cpu).find(words) != std::string::npos;
    };
    EXPECT_TRUE(tells(TestHalf::kLessons, true, "descending order"));
    EXPECT_FALSE(tells(TestHalf::kLessons, false, "descending order"));
    EXPECT_TRUE(tells(TestHalf::kLessons, false, "These alone: ./course test --rest\n"));
    EXPECT_TRUE(tells(TestHalf::kRest, true, "These alone: ./course test\n"));
    EXPECT_FALSE(tells(TestHalf::kBoth, true, "These alone"));
    for (const TestHalf half : {TestHalf::kRest, TestHalf::kBoth})
        EXPECT_TRUE(tells(half, true, "inspections of the lessons"));
}

TEST(TestReport, NothingIsNothing) {
    EXPECT_EQ(parse_test_reports({}, "/no/such/directory").failed, 0);
}

}  // namespace
}  // namespace course::tool
