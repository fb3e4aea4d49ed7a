// Tests the parsing of exercises.md, and that every error of an author is reported with its line.
#include "exercise_sheet.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace course::tool {
namespace {

const std::string kSheet = R"(# Exercises of day 1: addition

Read this.

## add_one
- kernels: `add_one`, `helper`
- file: `steps/add.cu`
- tests: `*/one:Other.*`
- version: `one`
- traffic: `global`, `shared`
- minutes: 10

What is asked.

A second paragraph.

### `helper`
Help.

### Hint 1
Look.

### Hint 2
Think.
```
# not a heading
```

### Hint 3
Write.

## hunt
- file: `hunt.cu`
- starts_from: `wrong/hunt.cu`
- cause: out-of-bounds write | `a[b ? i, j : 0]`
- cause: race | a | b
- tests: `*/hunt`
- needs: inspection
- minutes: 5

A story.

### Hint 1
a
### Hint 2
b
### Hint 3
c
)";

std::string with(std::string text, const std::string& what, const std::string& instead) {
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), instead);
}

std::string error_of(const std::string& text) {
    try {
        parse_exercise_sheet(text, "exercises.md");
    } catch (const ExerciseError& error) {
        return error.what();
    }
    return "no error";
}

TEST(ParseHints, ReadsAllOfASheet) {
    const ExerciseSheet sheet = parse_exercise_sheet(kSheet, "exercises.md");
    EXPECT_EQ(sheet.title, "Exercises of day 1: addition");
    EXPECT_EQ(sheet.introduction, "Read this.");
    ASSERT_EQ(sheet.exercises.size(), 2U);
    const Exercise& first = sheet.exercises[0];
    EXPECT_EQ(first.name, "add_one");
    EXPECT_EQ(first.kernels, (std::vector<std::string>{"add_one", "helper"}));
    EXPECT_EQ(first.file, "steps/add.cu");
    EXPECT_EQ(first.tests, "*/one:Other.*");
    EXPECT_EQ(first.version, "one");
    EXPECT_EQ(first.traffic, (std::vector<std::string>{"global", "shared"}));
    EXPECT_EQ(first.minutes, 10);
    EXPECT_FALSE(first.needs_inspection);
    EXPECT_EQ(first.task, "What is asked.\n\nA second paragraph.");
    ASSERT_EQ(first.function_tasks.size(), 1U);
    EXPECT_EQ(first.function_tasks[0].function, "helper");
    EXPECT_EQ(first.function_tasks[0].text, "Help.");
    EXPECT_EQ(first.whole_task(), "What is asked.\n\nA second paragraph.\n\nIn `helper`:\n\nHelp.");
    EXPECT_EQ(first.hints[0], "Look.");
    EXPECT_EQ(first.hints[1], "Think.\n```\n# not a heading\n```");
    EXPECT_EQ(first.hints[2], "Write.");
    EXPECT_FALSE(first.by_hand());
    EXPECT_TRUE(sheet.exercises[1].by_hand());
    EXPECT_EQ(sheet.exercises[1].starts_from, "wrong/hunt.cu");
    ASSERT_EQ(sheet.exercises[1].causes.size(), 2U);
    EXPECT_EQ(sheet.exercises[1].causes[0].name, "out-of-bounds write");
    EXPECT_EQ(sheet.exercises[1].causes[0].text, "a[b ? i, j : 0]");
    EXPECT_EQ(sheet.exercises[1].causes[1].name, "race");
    EXPECT_EQ(sheet.exercises[1].causes[1].text, "a | b");
    EXPECT_TRUE(sheet.exercises[0].causes.empty());
    EXPECT_TRUE(sheet.exercises[1].needs_inspection);
    EXPECT_EQ(sheet.exercises[1].version, "");
    EXPECT_TRUE(sheet.exercises[1].traffic.empty());
}

TEST(ParseHints, LineEndsOfAnotherSystemAreNoContent) {
    std::string text;
    for (const char c : kSheet)
        text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(parse_exercise_sheet(text, "exercises.md").exercises[0].task,
              "What is asked.\n\nA second paragraph.");
}

TEST(ParseHints, NamesWhatIsWrongAndWhere) {
    const struct {
        std::string what, instead, expected;
    } mistakes[] = {
        {"- file: `steps/add.cu`\n", "", "add_one: no '- file:'"},
        {"file: `steps/add.cu`", "file: `beyond/add.cu`",
         "an exercise of the core behind one of beyond/; expected it before"},
        {"- tests: `*/one:Other.*`\n", "", "add_one: no '- tests:'"},
        {"- minutes: 10\n", "", "add_one: no '- minutes:'"},
        {"minutes: 10", "minutes: ten", "exercises.md:11: add_one: minutes is 'ten'"},
        {"minutes: 10", "minutes: 0", "minutes is '0'"},
        {"- kernels", "- kernel", "did you mean 'kernels'"},
        {"- version: `one`", "- version:", "'version' has no value"},
        {"- version: `one`", "- version one", "expected '- key: value'"},
        {"- version: `one`", "- version: `one`, `two`", "'version' is a list"},
        {"needs: inspection", "needs: a GPU", "needs is 'a GPU'; expected inspection"},
        {"`global`, `shared`", "`global`, `local`",
         "traffic is 'local'; expected any of global, shared, atomics, accesses, loads, different, lanes"},
        {"- version: `one`", "- streams: early", "streams is 'early'; expected late, random or both"},
        {"- version: `one`", "- children: late", "children is 'late'; expected early"},
        {"- version: `one`\n", "", "'- traffic:' compares versions; expected '- version:', too"},
        {"- cause: race | a | b", "- cause: race", "cause is 'race'; expected 'NAME | `text of the line`'"},
        {"- cause: race | a | b", "- cause: | `a`", "cause is '| `a`'; expected"},
        {"- cause: race | a | b", "- cause: race | ``", "cause is 'race | ``'; expected"},
        {"- cause: race | a | b", "- cause: a, b | `c`", "with no comma in NAME"},
        {"- tests: `*/one:Other.*`", "- cause: race | `a`\n- tests: `*/one`",
         "'- cause:' names a line of a given file; expected '- starts_from:', too"},
        {"A story.\n", "", "no text says what is asked"},
        {"- kernels: `add_one`, `helper`\n", "", "helper"},
        {"- starts_from: `wrong/hunt.cu`\n", "", "hunt: expected either '- kernels:' or '- starts_from:'"},
        {"- starts_from", "- kernels: `hunt`\n- starts_from",
         "expected either '- kernels:' or '- starts_from:'"},
        {"### `helper`", "### `add_won`", "did you mean 'add_one'"},
        {"Help.\n", "", "no text for 'helper'"},
        {"Help.\n", "Help.\n### `helper`\nMore.\n", "there are two texts for 'helper'"},
        {"Look.\n", "Look.\n### `add_one`\nLate.\n", "'add_one' comes after a hint"},
        {"### Hint 2\nThink.", "### Hint 3\nThink.", "expected '### Hint 2'"},
        {"### Hint 3\nWrite.", "", "no text for '### Hint 3'"},
        {"Write.", "", "no text for '### Hint 3'"},
        {"### Hint 3\nc", "### Hint 3\nc\n### Hint 4\nd", "more than three hints"},
        {"## hunt", "## add_one", "exercises.md:32: add_one: there are two exercises 'add_one'"},
        {"## hunt", "## A Hunt", "'A Hunt' is no name"},
        {"## hunt", "#### hunt", "'#### hunt' has no place here"},
        {"# Exercises", "Exercises", "exercises.md:1: expected '# title' first"},
        {"# not a heading\n```", "# not a heading", "a ``` is not closed"},
        {"Read this.", "# Again", "a second '# title'"},
    };
    for (const auto& mistake : mistakes) {
        const std::string error = error_of(with(kSheet, mistake.what, mistake.instead));
        EXPECT_NE(error.find(mistake.expected), std::string::npos)
            << error << "\ninstead of: " << mistake.expected;
        EXPECT_EQ(error.find("exercises.md:"), 0U) << error;
    }
    EXPECT_NE(error_of("").find("expected '# title'"), std::string::npos);
    EXPECT_NE(error_of("# title\n").find("there is no exercise"), std::string::npos);
}

}  // namespace
}  // namespace course::tool
