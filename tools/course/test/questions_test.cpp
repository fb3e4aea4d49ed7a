// The questions of a README: every error of an author is reported with its line, and what counts as
// a right answer.
#include "questions.hpp"

#include <gtest/gtest.h>

#include "temporary_directory.hpp"

namespace course::tool {
namespace {

const std::string kReadme =
    "# Day 1\n"
    "\n"
    "1. Not a question.\n"
    "\n"
    "## Predict\n"
    "\n"
    "1. How many of\n"
    "   32 lanes add?\n"
    "   <details><summary>Answer</summary>**4**. Every\n"
    "   eighth.</details>\n"
    "2. Which is faster: a) one; b) two?\n"
    "   <details><summary>Answer</summary>**b**, by far.</details>\n"
    "\n"
    "## To try\n"
    "\n"
    "1. Not a question either.\n";

std::string error_of(std::string readme, const std::string& before, const std::string& after) {
    readme.replace(readme.find(before), before.size(), after);
    try {
        parse_questions(readme, "README.md");
    } catch (const QuestionError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Questions, AreReadInOrder) {
    const std::vector<Question> questions = parse_questions(kReadme, "README.md");
    ASSERT_EQ(questions.size(), 2U);
    EXPECT_EQ(questions[0].text, "How many of\n32 lanes add?");
    EXPECT_EQ(questions[0].key, "4");
    EXPECT_EQ(questions[0].explanation, "Every\neighth.");
    EXPECT_EQ(questions[1].text, "Which is faster: a) one; b) two?");
    EXPECT_EQ(questions[1].key, "b");
    EXPECT_EQ(questions[1].explanation, "by far.");
}

TEST(Questions, AReadmeMayHaveNone) {
    EXPECT_TRUE(parse_questions("# Day 1\n\n## To try\n\n1. This.\n", "README.md").empty());
}

TEST(Questions, AnErrorNamesItsLine) {
    EXPECT_EQ(error_of(kReadme, "**4**", "4"), "README.md:11: the answer has no key; expected **key** first");
    EXPECT_EQ(error_of(kReadme, "**4**", "**four**"),
              "README.md:11: the key is 'four'; expected a number, a letter or `code`");
    EXPECT_EQ(error_of(kReadme, "1. How", "How"), "README.md:7: expected '1. question' first");
    EXPECT_EQ(error_of(kReadme, "eighth.</details>", "eighth."),
              "README.md:11: expected <details><summary>Answer</summary>**key**. why</details> behind the "
              "question");
    EXPECT_EQ(error_of(kReadme, "by far.</details>", "by far.</details> And so on."),
              "README.md:13: there is text behind the answer");
    EXPECT_EQ(error_of("## Predict\n\n", "\n\n", "\n\n\n"),
              "README.md:3: there is no question; expected '1. question'");
}

// The text of an error, or "no error".
std::string error_of_lines(const Question& question, std::string_view source) {
    try {
        lines_of(question, source);
    } catch (const QuestionError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Questions, MayAskForALine) {
    const std::string readme =
        "## Predict\n\n1. Which line of [`sum`](sum.cuh) adds? It is in [`all`](b.cuh), too.\n"
        "   <details><summary>Answer</summary>**`total += in[i];`**. The only one.</details>\n";
    const Question question = parse_questions(readme, "README.md").at(0);
    EXPECT_EQ(question.key, "`total += in[i];`");
    EXPECT_EQ(question.function, "sum");
    EXPECT_EQ(question.file, "sum.cuh");
    EXPECT_EQ(error_of(readme, "[`sum`](sum.cuh) adds? It is in [`all`](b.cuh), too.", "`sum` adds?"),
              "README.md:4: the key is a line of code; expected [`function`](file) in the question");
    const std::string source =
        "float sum(const float* in, int n);\n\n"
        "// total += in[i];\n"
        "template <int N>\n"
        "__device__ float sum(const float* in, int n) {\n"
        "    float total = 0;\n"
        "    for (int i = 0; i < n; ++i)\n"
        "        total += in[i];  // adds\n"
        "    return total;\n"
        "}\n\n"
        "float more(float total) { total += in[i]; }\n";
    const NumberedLines lines = lines_of(question, source);
    EXPECT_EQ(lines.first, 4);
    EXPECT_EQ(lines.right, 8);
    ASSERT_EQ(lines.texts.size(), 7U);
    EXPECT_EQ(lines.texts[0], "template <int N>");
    EXPECT_EQ(lines.texts[6], "}");
    EXPECT_EQ(expected_answer(question.key), "the number of a line");
}

TEST(Questions, ALineThatIsNotThereExactlyOnceIsAnError) {
    const Question question{"", "`++n;`", "", "count", "count.cuh"};
    EXPECT_EQ(error_of_lines(question, "void count(int n) {\n    ++n;\n}\n"), "no error");
    EXPECT_EQ(error_of_lines(question, "void count(int n) {\n    ++n;\n    ++n;\n}\n"),
              "count.cuh: 2 lines of count have `++n;`; expected one");
    EXPECT_EQ(error_of_lines(question, "void count(int n) {\n    n++;\n}\n"),
              "count.cuh: 0 lines of count have `++n;`; expected one");
    EXPECT_EQ(error_of_lines(question, "void other(int n) {\n    ++n;\n}\n"),
              "count.cuh: there are 0 definitions of count; expected one");
    EXPECT_EQ(error_of_lines(question, "void count(int n) {\n ++n;\n}\nvoid count(long n) {\n ++n;\n}\n"),
              "count.cuh: there are 2 definitions of count; expected one");
}

TEST(Questions, NumbersAreComparedAsNumbers) {
    for (const char* right : {"1024", "1,024", " 1024 ", "1024 threads", "1024.0"})
        EXPECT_TRUE(is_right(right, "1,024 threads")) << right;
    for (const char* wrong : {"1023", "1025", "", "many", "-1024", "1", "a"})
        EXPECT_FALSE(is_right(wrong, "1,024 threads")) << wrong;
    EXPECT_TRUE(is_right("0.5", "0.50 ms"));
    EXPECT_TRUE(is_right("-1", "-1"));
    EXPECT_TRUE(is_right("55 %", "55 %"));
}

TEST(Questions, ANumberIsReadToItsEnd) {
    for (const char* right : {".5", "0,5", "+0.5", "5e-1", "0.5 - half of them", "0.5, half of them"})
        EXPECT_TRUE(is_right(right, "0.5 ms")) << right;
    for (const char* right : {"4", "4.", "4, no more", "4 lanes"})
        EXPECT_TRUE(is_right(right, "4")) << right;
    for (const char* wrong : {"0,4", "4/2", "4 * 2", "4-8", "4 - 8", "4 x 4", "4^2", "4,5", "4e1", "4e9999"})
        EXPECT_FALSE(is_right(wrong, "4")) << wrong;
    EXPECT_FALSE(is_right("1,0", "10"));
    EXPECT_TRUE(is_right("1,024,000.5", "1024000.5"));
    EXPECT_FALSE(is_right(std::string(100'000, '1'), "1"));
}

TEST(Questions, AUnitMayBeLeftOutButNotBeAnother) {
    for (const char* right : {"12", "12us", "12 us", "12 µs", "12 μs", "12 microseconds", "12, about"})
        EXPECT_TRUE(is_right(right, "about 12 µs")) << right;
    for (const char* wrong : {"12 ms", "12ms", "12 s", "12 ns", "12 bytes"})
        EXPECT_FALSE(is_right(wrong, "about 12 µs")) << wrong;
    for (const char* right : {"16", "16 GiB", "16gb", "16 GB of memory"})
        EXPECT_TRUE(is_right(right, "16 GiB")) << right;
    for (const char* wrong : {"16 MiB", "16 KB", "16 B", "16 bytes"})
        EXPECT_FALSE(is_right(wrong, "16 GiB")) << wrong;
    EXPECT_TRUE(is_right("4 blocks", "4 bytes")) << "no unit that is known";
}

TEST(Questions, AboutAcceptsAQuarter) {
    for (const char* right : {"12", "9", "15", "about 12 µs"})
        EXPECT_TRUE(is_right(right, "about 12 µs")) << right;
    for (const char* wrong : {"8.9", "15.1", "120"})
        EXPECT_FALSE(is_right(wrong, "about 12 µs")) << wrong;
}

TEST(Questions, ALineIsItsNumber) {
    for (const char* right : {"8", "line 8", "Line 8", " LINE  8 ", "8.", "line 8, the only one"})
        EXPECT_TRUE(is_right(right, "line 8")) << right;
    for (const char* wrong : {"7", "line 7", "line", "line ", "", "lines 8", "line8", "line line 8", "8 8"})
        EXPECT_FALSE(is_right(wrong, "line 8")) << wrong;
    EXPECT_FALSE(is_right("line 8", "8")) << "no question about a line";
}

TEST(Questions, ALetterMayBeWrittenInSeveralWays) {
    for (const char* right : {"b", "B", "b)", "b.", " b ", "b because of the banks"})
        EXPECT_TRUE(is_right(right, "b")) << right;
    for (const char* wrong : {"a", "", "ab", "banks", ")b"})
        EXPECT_FALSE(is_right(wrong, "b")) << wrong;
}

TEST(Questions, SayWhatTheyExpect) {
    EXPECT_EQ(expected_answer("b"), "a letter");
    EXPECT_EQ(expected_answer("4"), "a number");
    EXPECT_EQ(expected_answer("1,024 threads"), "a number, in threads");
    EXPECT_EQ(expected_answer("about 12 µs"), "a number, in µs; a quarter off is near enough");
}

}  // namespace
}  // namespace course::tool
