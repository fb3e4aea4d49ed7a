// A lesson, and the exercise made from it.
#include "exercise_file.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "exercise_sources.hpp"
#include "functions.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

const std::string kLesson = R"(// Day 1.
namespace day01 {
namespace {

// Idea: add.
template <class T>
__global__ void add(const T* a, T* b) {
    b[threadIdx.x] += a[threadIdx.x];
}

struct Window {
    __device__ float load(int i) const { return data[i]; }
    float* data;
};

}  // namespace
}  // namespace day01
)";

Exercise exercise(std::vector<std::string> kernels, std::string task = "Add `a` to `b`.") {
    return {.name = "sum",
            .kernels = std::move(kernels),
            .file = "add.cu",
            .tests = "*",
            .minutes = 10,
            .task = std::move(task)};
}

TEST(MakeExercise, ReplacesBodiesAndNothingElse) {
    const std::string made = make_exercise(kLesson, "day01", {exercise({"add", "Window::load"})});
    EXPECT_NE(made.find(R"(__global__ void add(const T* a, T* b) {
    // TODO day01/sum, about 10 minutes. Functions: add, Window::load.
    // Add `a` to `b`.
}
)"),
              std::string::npos)
        << made;
    EXPECT_NE(made.find(R"(    __device__ float load(int i) const {
        // TODO day01/sum: this one too, see add above.
        return {};
    }
)"),
              std::string::npos)
        << made;
    EXPECT_EQ(made.find("+="), std::string::npos);
    EXPECT_TRUE(made.starts_with("// Exercise file: ")) << made;
    const std::string solved = with_bodies_from(made, kLesson, {"add", "Window::load"});
    EXPECT_TRUE(solved.ends_with(kLesson)) << solved;
}

// The text between `head` and the end of the function's body.
std::string body_after(const std::string& text, const std::string& head) {
    const auto at = text.find(head);
    EXPECT_NE(at, std::string::npos) << head << " is not in:\n" << text;
    return at == std::string::npos ? "" : text.substr(at, text.find("}\n", at) - at);
}

TEST(MakeExercise, AFunctionShowsItsOwnTextAndTheFirstWithoutOneShowsThatOfTheExercise) {
    Exercise both = exercise({"Window::load", "add"});
    both.function_tasks = {{"add", "Call load."}};
    const std::string made = make_exercise(kLesson, "day01", {both});
    EXPECT_EQ(body_after(made, "__global__ void add("), R"(__global__ void add(const T* a, T* b) {
    // TODO day01/sum, about 10 minutes. Functions: add, Window::load.
    // Call load.
)");
    EXPECT_EQ(body_after(made, "__device__ float load("), R"(__device__ float load(int i) const {
        // TODO day01/sum, continued.
        // Add `a` to `b`.
        return {};
    )");
    both.function_tasks.push_back({"Window::load", "Read."});
    EXPECT_EQ(body_after(make_exercise(kLesson, "day01", {both}), "__global__ void add("),
              R"(__global__ void add(const T* a, T* b) {
    // TODO day01/sum, about 10 minutes. Functions: add, Window::load.
    // Add `a` to `b`.
    //
    // Call load.
)") << "all have a text of their own";
}

TEST(MakeExercise, NamesAKernelThatIsNotThereOrIsBlankTwice) {
    const auto error_of = [](const std::vector<Exercise>& exercises) -> std::string {
        try {
            make_exercise(kLesson, "day01", exercises);
        } catch (const ExerciseError& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_EQ(error_of({exercise({"ad"})}), "day01/sum: add.cu defines no function 'ad'");
    EXPECT_EQ(error_of({exercise({"add"}), exercise({"add"})}), "day01/sum: 'add' is blank already");
}

TEST(MakeExercise, TheCommentFitsTheLayout) {
    const std::string made =
        make_exercise(kLesson, "day01",
                      {exercise({"Window::load"}, std::string(50, 'x') + " " + std::string(44, 'y') + " z")});
    const std::string made_longer =
        make_exercise(kLesson, "day01",
                      {exercise({"Window::load"}, std::string(50, 'x') + " " + std::string(48, 'y') + " z")});
    EXPECT_NE(made.find("y z\n"), std::string::npos);
    for (const std::string& text : {made, made_longer}) {
        for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
            EXPECT_LE(text.find('\n', begin) - begin, 110U) << text.substr(begin, 120);
    }
}

constexpr const char* kExercisesOfTheDay = R"(# Exercises
## sum
- kernels: `add`
- file: `add.cuh`
- tests: `*`
- minutes: 10
Add.
### Hint 1
a
### Hint 2
b
### Hint 3
c
## hunt
- file: `hunt.cu`
- starts_from: `wrong/hunt.cu`
- tests: `*`
- minutes: 10
Mend.
### Hint 1
a
### Hint 2
b
### Hint 3
c
)";

class ExerciseSources : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write("day01_add/exercises.md", kExercisesOfTheDay);
        directory_.write("day01_add/add.cuh", kLesson);
        directory_.write("day01_add/add.cu", "#include \"add.cuh\"\n");
        directory_.write("day01_add/hunt.cu", "right\n");
        directory_.write("day01_add/wrong/hunt.cu", "wrong\n");
    }
    void make(const std::vector<std::string>& files = {"add.cuh", "add.cu", "hunt.cu"}) const {
        make_exercise_sources(root() / "day01_add", root() / "my", root() / "tree", files);
    }
    std::string made(const char* file) const { return read_text_file(root() / "tree" / file); }
    std::filesystem::path root() const { return directory_.path(); }

    TemporaryDirectory directory_;
};

TEST_F(ExerciseSources, AreBlankWhereTheLearnersFileIsSetAside) {
    for (const char* file : {"add.cuh", "hunt.cu"})
        directory_.write(std::string("my/") + file, "mine\n");
    set_aside({root() / "my/hunt.cu"});
    make();
    EXPECT_NE(made("add.cuh").find("mine"), std::string::npos);
    EXPECT_EQ(made("hunt.cu"), "wrong\n");
    set_aside({});
    make();
    EXPECT_NE(made("hunt.cu").find("mine"), std::string::npos);
}

TEST_F(ExerciseSources, AreBlankUntilTheLearnersFilesAreThere) {
    make();
    EXPECT_NE(made("add.cuh").find("TODO day01/sum"), std::string::npos);
    EXPECT_EQ(made("add.cu"),
              "#line 1 \"" + (root() / "day01_add/add.cu").string() + "\"\n#include \"add.cuh\"\n");
    EXPECT_EQ(made("hunt.cu"), "wrong\n");
    for (const char* file : {"add.cuh", "hunt.cu"})
        directory_.write(std::string("my/") + file, "mine\n");
    make();
    for (const char* file : {"add.cuh", "hunt.cu"})
        EXPECT_EQ(made(file), "#line 1 \"" + (root() / "my" / file).string() + "\"\nmine\n");
    std::filesystem::remove(root() / "my/add.cuh");
    make();
    EXPECT_NE(made("add.cuh").find("TODO day01/sum"), std::string::npos) << "gone again";
}

TEST_F(ExerciseSources, AreWrittenWhenTheirTextChangesHoweverOldItIs) {
    directory_.write("my/add.cuh", "first\n");
    make();
    const auto time = std::filesystem::last_write_time(root() / "tree/add.cuh") - std::chrono::hours(1);
    std::filesystem::last_write_time(root() / "tree/add.cuh", time);
    make();
    EXPECT_EQ(std::filesystem::last_write_time(root() / "tree/add.cuh"), time) << "nothing is new";
    directory_.write("my/add.cuh", "second\n");
    std::filesystem::last_write_time(root() / "my/add.cuh", time - std::chrono::hours(1));
    make();
    EXPECT_GT(std::filesystem::last_write_time(root() / "tree/add.cuh"), time);
    EXPECT_NE(made("add.cuh").find("second"), std::string::npos);
}

TEST_F(ExerciseSources, AreEmptyWhereAllThatTheyIncludeIsTheLessons) {
    const std::vector<std::string> files = {"fast.cu",   "steps/fast.cuh", "plain.cu",
                                            "plain.hpp", "add.cuh",        "add.cu"};
    directory_.write("day01_add/fast.cu", "  #  include\t\"steps/fast.cuh\"\n");
    directory_.write("day01_add/steps/fast.cuh", "#pragma once\n#include \"../add.cuh\"");
    directory_.write("day01_add/plain.cu",
                     "// #include \"add.cuh\"\n#include <add.cuh>\n#include \"plain.hpp\"\n");
    directory_.write("day01_add/plain.hpp", "int plain();\n");
    make(files);
    EXPECT_NE(made("fast.cu").find("fast.cuh"), std::string::npos) << "it includes add.cuh by another file";
    EXPECT_EQ(made("plain.cu"), "// As in the lesson, whose object is linked.\n");
    EXPECT_NE(made("plain.hpp").find("int plain()"), std::string::npos)
        << "the learner's files may include it";
    directory_.write("my/plain.hpp", "int plain(int);\n");
    make(files);
    EXPECT_NE(made("plain.cu").find("plain.hpp"), std::string::npos) << "the header is the learner's now";
}

TEST_F(ExerciseSources, OfFilesInStagesAFunctionIsBlankUntilItsExerciseIsSolved) {
    make_files_in_stages(root() / "day01_add", root() / "my");
    const std::string text = read_text_file(root() / "my/add.cuh");
    EXPECT_NE(text.find("__global__ void add(const T* a, T* b) { if (course_is_blank(1)) return;\n"
                        "    b[threadIdx.x] += a[threadIdx.x];\n}\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("__device__ float load(int i) const { return data[i]; }"), std::string::npos)
        << "no exercise names it";
    EXPECT_TRUE(read_text_file(root() / "my/hunt.cu").ends_with("#line 1\nright\n"));

    std::string both = kExercisesOfTheDay;
    both.insert(both.find("## hunt"), R"(## loads
- kernels: `Window::load`
- file: `add.cuh`
- tests: `*`
- minutes: 10
Load.
### Hint 1
a
### Hint 2
b
### Hint 3
c
)");
    directory_.write("day01_add/exercises.md", both);
    make_files_in_stages(root() / "day01_add", root() / "my");
    EXPECT_NE(
        read_text_file(root() / "my/add.cuh")
            .find(
                "__device__ float load(int i) const { if (course_is_blank(2)) return {}; return data[i]; }"),
        std::string::npos);
}

TEST_F(ExerciseSources, CannotBeMadeOfWhatIsNotThere) {
    std::filesystem::remove(root() / "day01_add/wrong/hunt.cu");
    EXPECT_THROW(make(), ExerciseError);
    EXPECT_THROW(make({"none.hpp"}), std::runtime_error);
}

TEST(NameOfDay, IsTheNumberOrTheDirectory) {
    EXPECT_EQ(name_of_day("day05_matmul_tiled"), "day05");
    EXPECT_EQ(name_of_day("day00_first_program"), "day00");
    EXPECT_EQ(name_of_day("gemm_ladder"), "gemm_ladder");
}

TEST(Wrapped, FillsParagraphsAndKeepsListsAndCode) {
    using Lines = std::vector<std::string>;
    EXPECT_EQ(wrapped("one two\nthree four", 9), (Lines{"one two", "three", "four"}));
    EXPECT_EQ(wrapped("\n\none\n\n\ntwo\n\n", 9), (Lines{"one", "", "two"}));
    EXPECT_EQ(wrapped("- one two three\n- four\n1. five six\nseven", 9),
              (Lines{"- one two", "  three", "- four", "1. five", "   six", "   seven"}));
    EXPECT_EQ(wrapped("a\n```\nfor (;;)  {\n\n}\n```\nb", 5),
              (Lines{"a", "    for (;;)  {", "", "    }", "b"}));
    EXPECT_EQ(wrapped("a\n    kept  as is\nb", 5), (Lines{"a", "    kept  as is", "b"}));
    EXPECT_EQ(wrapped("call `f(a, b)`, then `g(c)` at once", 14),
              (Lines{"call", "`f(a, b)`,", "then `g(c)` at", "once"}))
        << "inline code stays in one line";
    EXPECT_EQ(wrapped("an open ` is a word", 8), (Lines{"an open", "` is a", "word"}));
    EXPECT_EQ(wrapped("averylongword x", 5), (Lines{"averylongword", "x"}));
    EXPECT_EQ(wrapped("", 5), Lines{});
}

}  // namespace
}  // namespace course::tool
