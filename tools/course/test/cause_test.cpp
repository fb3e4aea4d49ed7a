// Tests what a check says of the learner's verdict, and what `./course exercises` reports.
#include "cause.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "temporary_directory.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

// Three of a day: the second admits two verdicts.
ExerciseSheet sheet() {
    ExerciseSheet all;
    all.exercises.push_back({.name = "one",
                             .file = "one.cu",
                             .starts_from = "crimes/one.cu",
                             .causes = {{"bank conflicts", "tile[threadIdx.x][k]"}}});
    all.exercises.push_back(
        {.name = "two",
         .file = "two.cu",
         .starts_from = "crimes/two.cu",
         .causes = {{"race", "a = 1;"}, {"race", "b = a;"}, {"missing barrier", "b = a;"}}});
    all.exercises.push_back({.name = "three", .kernels = {"k"}, .file = "three.cu"});
    return all;
}

const std::string kGiven =
    "// Verdict: ?, line ?\n"
    "float f() {\n"
    "    return tile[threadIdx.x][k];\n"
    "}\n";

CauseJudgement judge(const std::string& verdict, std::size_t exercise = 0,
                     const std::string& given = kGiven) {
    const ExerciseSheet all = sheet();
    return judge_cause(all.exercises[exercise], all, given, "#include <x>\n" + verdict + "\nrepaired\n");
}

bool says(const CauseJudgement& judgement, const std::string& text) {
    return judgement.text.find(text) != std::string::npos;
}

TEST(Causes, AVerdictIsRightWithCauseAndLineOfTheGivenFile) {
    for (const char* const verdict :
         {"// Verdict: bank conflicts, line 3", "  //verdict:  Bank-Conflicts ,  line 3.\r"})
        EXPECT_EQ(judge(verdict).state, "right") << verdict;
    EXPECT_TRUE(judge("// Verdict: bank conflicts, line 3").is_right());
    EXPECT_TRUE(judge("", 2).is_right()) << "an exercise without causes asks for none";
}

TEST(Causes, AnEditorsByteOrderMarkDoesNotHideTheVerdict) {
    const TemporaryDirectory directory;
    const std::filesystem::path mine =
        directory.write("mine.cu", "\xEF\xBB\xBF// Verdict: bank conflicts, line 3\r\nrepaired\r\n");
    const ExerciseSheet all = sheet();
    EXPECT_EQ(judge_cause(all.exercises[0], all, kGiven, read_text_file(mine)).state, "right");
}

TEST(Causes, ALongLineIsJudgedLikeAnyOther) {
    const std::string dots(300'000, '.'), blanks(300'000, ' ');
    EXPECT_EQ(judge("// Verdict: bank conflicts, line 3" + dots).state, "right");
    EXPECT_EQ(judge(blanks + "// Verdict:" + blanks + "bank conflicts, line" + blanks + "3").state, "right");
    EXPECT_EQ(judge(blanks + "x").state, "open");
    EXPECT_EQ(judge("// Verdict: " + dots + ", line 3").state, "unknown");
}

TEST(Causes, AnyOfSeveralVerdictsIsRightButNotAMixture) {
    const std::string given = "// Verdict: ?, line ?\na = 1;\nb = a;\n";
    EXPECT_EQ(judge("// Verdict: race, line 2", 1, given).state, "right");
    EXPECT_EQ(judge("// Verdict: race, line 3", 1, given).state, "right");
    EXPECT_EQ(judge("// Verdict: missing barrier, line 3", 1, given).state, "right");
    EXPECT_EQ(judge("// Verdict: missing barrier, line 2", 1, given).state, "wrong line");
}

TEST(Causes, AnOpenVerdictIsAskedForWithTheCausesToChooseFrom) {
    const std::string choice = "The causes of this day: bank conflicts; missing barrier; race";
    for (const char* const verdict :
         {"// Verdict: ?, line ?", "// Verdict: race, line ?", "// Verdict: ?, line 3", "// Verdict: race",
          "", "// Verdict:", "// Verdict: race, line", "// Verdict: race, lines 3",
          "// Verdict: race, line 3 4", "/* Verdict: race, line 3 */",
          "// Verdict: race, line 3\n// Verdict: bank conflicts, line 3"}) {
        EXPECT_EQ(judge(verdict).state, "open") << verdict;
        EXPECT_TRUE(says(judge(verdict), choice)) << judge(verdict).text;
        EXPECT_FALSE(judge(verdict).is_right());
    }
    EXPECT_EQ(judge("// Verdict: gremlins, line 3").state, "unknown");
    EXPECT_TRUE(says(judge("// Verdict: gremlins, line 3"), "'gremlins' is not a cause of this day"));
    EXPECT_TRUE(says(judge("// Verdict: gremlins, line 3"), choice));
    for (const char* const verdict : {"// Verdict: , line 3", "// Verdict: race, line 2, line 3"})
        EXPECT_EQ(judge(verdict).state, "unknown") << verdict;
}

TEST(Causes, AWrongVerdictDoesNotGiveTheAnswerAway) {
    const CauseJudgement cause = judge("// Verdict: race, line 3");
    EXPECT_EQ(cause.state, "wrong");
    EXPECT_EQ(cause.text, "the cause is not 'race'\n");
    const CauseJudgement line = judge("// Verdict: bank conflicts, line 2");
    EXPECT_EQ(line.state, "wrong line");
    EXPECT_EQ(line.text,
              "the cause is right, the line is not. Line 2 of the file as you got it:\n"
              "      float f() {\n");
    for (const char* const number : {"0", "5", "-3", "3x", "three", "99999999999999999999"}) {
        const CauseJudgement none = judge(std::string("// Verdict: bank conflicts, line ") + number);
        EXPECT_EQ(none.state, "wrong line") << number;
        EXPECT_TRUE(says(none, std::string("'") + number + "'; expected a number from 1 to 4")) << none.text;
    }
}

std::vector<std::string> mistakes(const std::string& given, const std::string& solution) {
    const ExerciseSheet all = sheet();
    return mistakes_in_causes(all.exercises[0], all, given, solution);
}

TEST(Causes, AnAuthorIsToldWhatCannotBeJudged) {
    const std::string right = "// Verdict: bank conflicts, line 3\n";
    EXPECT_EQ(mistakes(kGiven, right), std::vector<std::string>{});
    for (const int lines : {0, 2}) {
        std::string given = "// Verdict: ?, line ?\n";
        for (int i = 0; i < lines; ++i)
            given += "x = tile[threadIdx.x][k];\n";
        const std::vector<std::string> found = mistakes(given, "// Verdict: bank conflicts, line 2\n");
        EXPECT_EQ(
            std::ranges::count(found, fmt::format("'tile[threadIdx.x][k]' of the cause 'bank conflicts' is "
                                                  "on {} lines of crimes/one.cu; expected one",
                                                  lines)),
            1)
            << fmt::format("{}", fmt::join(found, "; "));
    }
    EXPECT_EQ(mistakes("\n\n" + kGiven.substr(kGiven.find("    return")), right),
              std::vector<std::string>{"crimes/one.cu has no line '// Verdict: ?, line ?'"});
    EXPECT_EQ(mistakes(kGiven, "// Verdict: race, line 3\n"),
              std::vector<std::string>{"the verdict of one.cu is not right: the cause is not 'race'\n"});
    const ExerciseSheet all = sheet();
    EXPECT_EQ(mistakes_in_causes(all.exercises[2], all, "", ""), std::vector<std::string>{});
}

}  // namespace
}  // namespace course::tool
