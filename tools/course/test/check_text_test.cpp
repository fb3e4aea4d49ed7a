#include "check_text.hpp"

#include <gtest/gtest.h>

namespace course::tool {
namespace {

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i)
        all += text;
    return all;
}

bool has(const std::string& text, std::string_view words) {
    return text.find(words) != std::string::npos;
}

// A right kernel that prints in each of a million threads, and a wrong one whose first failure came
// long before.
TEST(CheckText, ATestThatPrintsTooMuchShowsItsBeginning) {
    Captured run;
    run.flooded = true;
    run.output =
        "\x1e{\"event\":\"started\",\"test\":\"A.B\"}\n[block 0, thread 0] first\n"
        "\x1e{\"event\":\"failure\",\"test\":\"A.B\",\"message\":\"wrong\"}\n" +
        repeated("[block 9, thread 9] last\n", 100);
    const std::string text = text_of_end(parse_test_output(run.output), run, {{}, "", 2}, "/root");
    EXPECT_TRUE(has(text, "printed more than 4 MB")) << text;
    EXPECT_TRUE(has(text, "does each of many threads print?")) << text;
    EXPECT_TRUE(has(text, "it printed:\n    [block 0, thread 0] first\n")) << text;
    EXPECT_TRUE(has(text, "    wrong\n")) << text;
    EXPECT_FALSE(has(text, "last")) << text;
}

TEST(CheckText, EqualLinesAreToldOnce) {
    TestOutput output;
    output.failed.push_back({.name = "A.B", .report = repeated("refused\n", 40) + "/root/a.cu:3: the end\n"});
    EXPECT_EQ(text_of_failures(output, 2, "/root"), "\n  A.B\n    refused (40 times)\n    a.cu:3: the end\n");
    output.failed.front().messages = {"first", "second"};
    EXPECT_TRUE(has(text_of_failures(output, 1, ""), "    first\n    ... and 1 more check fails\n"));
    output.failed.front().messages.clear();
    output.failed.front().report = "\n\nlast\nlast";
    EXPECT_EQ(text_of_failures(output, 2, "/root"), "\n  A.B\n\n\n    last (2 times)\n");
}

// An open brace: the errors after it are not helpful.
TEST(CheckText, ErrorsInTheSystemsHeadersAreLeftOutAfterOthers) {
    const std::string text = text_of_errors(
        "FAILED: a.o\ng++ a.cu\nIn file included from /root/my/a.cu:10:\n/root/my/a.cuh:9:7: error: here\n   "
        "9 | {\n"
        "In file included from b.hpp:7,\n                 from /root/my/a.cu:11:\n"
        "/usr/include/c++/12/span:70:49: error: far away\n/root/my/a.cuh:10:7: error: later\n",
        "/root");
    EXPECT_EQ(text,
              "    In file included from my/a.cu:10:\n    my/a.cuh:9:7: error: here\n       9 | {\n"
              "    ... and more, which may follow from these\n");
    EXPECT_TRUE(has(text_of_errors("/usr/include/x.h:1:1: error: no such type\n", ""), "no such type"));
}

}  // namespace
}  // namespace course::tool
