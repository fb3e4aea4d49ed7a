#include "test_report.hpp"

#include <gtest/gtest.h>

#include "temporary_directory.hpp"

namespace course::tool {
namespace {

// A directory without reports of programs.
const std::filesystem::path kNone = "/no/such/directory";

// The shape of what ctest 3.25 writes.
constexpr const char* kReport = R"xml(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="6" failures="2" disabled="1" skipped="2" time="0">
	<testcase name="a.A.B" classname="a.A.B" time="0.002" status="notrun">
		<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
		<system-out>[ RUN      ] A.B
/tmp/a.cpp:2: Skipped
needs &lt;a GPU&gt; &amp;lt;
[  SKIPPED ] A.B (0 ms)
</system-out>
	</testcase>
	<testcase name="a.A.C" classname="a.A.C" time="0.002" status="run">
		<system-out>[       OK ] A.C (0 ms), which prints status="fail"</system-out>
	</testcase>
	<testcase name="a.A.D" classname="a.A.D" time="0.002" status="fail">
		<failure message=""/>
		<system-out>: Skipped
never mind</system-out>
	</testcase>
	<testcase name="shell" classname="shell" time="0.002" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out></system-out>
	</testcase>
	<testcase name="gone" classname="gone" time="0" status="notrun">
		<skipped message="Unable to find executable"/>
		<system-out>Unable to find executable: /no/such</system-out>
	</testcase>
	<testcase name="off" classname="off" time="0" status="disabled">
		<system-out>Disabled</system-out>
	</testcase>
</testsuite>
)xml";

TEST(TestReport, CountsAndTellsWhyTestsWereSkipped) {
    const TestReport report = parse_test_report(kReport, kNone);
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 2) << "a program that is not there is a failure, not a skipped test";
    EXPECT_EQ(report.skipped, 3);
    const std::map<std::string, int> reasons = {
        {"needs <a GPU> &lt;", 1}, {"no reason given", 1}, {"disabled", 1}};
    EXPECT_EQ(report.skip_reasons, reasons);
}

TEST(TestReport, TellsTheFirstFailureOfAProgramWithoutReport) {
    const TestReport report = parse_test_report(R"xml(
	<testcase name="a_test.timeout" classname="a" time="0.002" status="fail">
		<system-out>[ RUN      ] Day/V.All/x
/tmp/a.cpp:2: Failure
expected &lt;1&gt;
got 2
[  FAILED  ] Day/V.All/x
</system-out>
	</testcase>
	<testcase name="shell" classname="a" time="0.002" status="fail">
		<system-out>Segmentation fault</system-out>
	</testcase>)xml",
                                                kNone);
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures[0].message, "/tmp/a.cpp:2: Failure\nexpected <1>\ngot 2\n");
    EXPECT_EQ(report.failures[1].message, "Segmentation fault\n");
}

// What ctest writes of a part of a program.
std::string part(const std::string& name, const std::string& status) {
    return "\t<testcase name=\"" + name + "\" classname=\"a\" time=\"0.002\" status=\"" + status +
           "\">\n\t\t<system-out>[ RUN      ] V.A\nleak &lt;1&gt;</system-out>\n\t</testcase>\n";
}

class ProgramReport : public testing::Test {
  protected:
    // `lines` are what common/test/main.cpp writes.
    void write(const std::string& name, const std::string& lines) {
        directory_.write(name + ".jsonl", lines);
    }
    TestReport parse(const std::string& junit) { return parse_test_report(junit, directory_.path()); }

    TemporaryDirectory directory_;
};

TEST_F(ProgramReport, CountsTestsNotParts) {
    write("a_test.1of2", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
{"event":"started","test":"V.B"}
{"event":"ended","test":"V.B","result":"skipped","message":"needs <a GPU>\nand more"}
{"event":"started","test":"V.C"}
{"event":"ended","test":"V.C","result":"skipped"}
)");
    write("a_test.2of2", "");
    write("a_test.descending.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
)");
    const TestReport report = parse(part("a_test.1of2", "run") + part("a_test.2of2", "run") +
                                    part("a_test.descending.1of1", "run"));
    EXPECT_EQ(report.passed, 2);
    EXPECT_EQ(report.failed, 0);
    EXPECT_EQ(report.skipped, 2);
    const std::map<std::string, int> reasons = {{"needs <a GPU>", 1}, {"no reason given", 1}};
    EXPECT_EQ(report.skip_reasons, reasons);
}

TEST_F(ProgramReport, TellsTheFirstFailureOfEachTestAndHowToRepeatIt) {
    write("a_test.1of2", R"({"event":"started","test":"Day/V.All/x"}
{"event":"ended","test":"Day/V.All/x","result":"failed","message":"/tmp/a.cpp:2: expected <1>\ngot 2"}
{"event":"started","test":"V.Long"}
{"event":"ended","test":"V.Long","result":"failed","message":"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}
{"event":"started","test":"V.C"}
{"event":"ended","test":"V.C","result":"passed"}
)");
    write("a_test.descending.1of2", R"({"event":"started","test":"V.B"}
{"event":"ended","test":"V.B","result":"failed","message":"crashed: Segmentation fault\n"}
)");
    const TestReport report = parse(part("a_test.1of2", "fail") + part("a_test.descending.1of2", "fail"));
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 3);
    ASSERT_EQ(report.failures.size(), 3u);
    EXPECT_EQ(report.failures[0].name, "a_test.Day/V.All/x");
    EXPECT_EQ(report.failures[0].message, "/tmp/a.cpp:2: expected <1>\ngot 2\n");
    EXPECT_EQ(report.failures[0].command(), "a_test --gtest_filter=Day/V.All/x");
    EXPECT_EQ(report.failures[1].message, "1\n2\n3\n4\n5\n6\n7\n8\n");
    EXPECT_EQ(report.failures[2].message, "crashed: Segmentation fault\n");
    EXPECT_EQ(report.failures[2].command(), "CUDA_ON_CPU_ORDER=descending a_test --gtest_filter=V.B");
}

TEST_F(ProgramReport, AProgramThatFailsThoughItsTestsPassIsAFailure) {
    write("a_test.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
)");
    write("a_test.descending.2of2", "");
    const TestReport report = parse(part("a_test.1of1", "fail") + part("a_test.descending.2of2", "fail"));
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 2);
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures[0].name, "a_test");
    EXPECT_EQ(report.failures[0].message, "[ RUN      ] V.A\nleak <1>\n");
    EXPECT_EQ(report.failures[0].command(), "a_test");
    EXPECT_EQ(report.failures[1].command(), "CUDA_ON_CPU_ORDER=descending a_test");
}

TEST_F(ProgramReport, ATestThatRanWhenAllWasEndedIsAFailure) {
    write("a_test.1of1", R"({"event":"started","test":"V.A"}
{"event":"ended","test":"V.A","result":"passed"}
{"event":"started","test":"V.B"}
{"event":"en)");
    const TestReport report = parse(part("a_test.1of1", "fail"));
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 1);
    ASSERT_EQ(report.failures.size(), 1u);
    EXPECT_EQ(report.failures[0].name, "a_test.V.B");
    EXPECT_EQ(report.failures[0].message, "was running when the program was ended\n");
}

TEST(TestReport, NothingIsNothing) {
    EXPECT_EQ(parse_test_report("", kNone).passed, 0);
    EXPECT_EQ(parse_test_report("<testsuite></testsuite>", kNone).failed, 0);
}

}  // namespace
}  // namespace course::tool
