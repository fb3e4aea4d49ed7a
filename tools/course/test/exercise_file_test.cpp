// A lesson, and the exercise made from it.
#include "exercise_file.hpp"

#include <gtest/gtest.h>

#include "functions.hpp"

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
    // TODO day01/sum, about 10 minutes.
    // Add `a` to `b`.
}
)"),
              std::string::npos)
        << made;
    EXPECT_NE(made.find(R"(    __device__ float load(int i) const {
        // TODO day01/sum: this one too, see add.
        return {};
    }
)"),
              std::string::npos)
        << made;
    EXPECT_EQ(made.find("+="), std::string::npos);
    EXPECT_TRUE(made.starts_with("// To work through: ")) << made;
    const std::string solved = with_bodies_from(made, kLesson, {"add", "Window::load"});
    EXPECT_TRUE(solved.ends_with(kLesson)) << solved;
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

TEST(Wrapped, FillsParagraphsAndKeepsListsAndCode) {
    using Lines = std::vector<std::string>;
    EXPECT_EQ(wrapped("one two\nthree four", 9), (Lines{"one two", "three", "four"}));
    EXPECT_EQ(wrapped("\n\none\n\n\ntwo\n\n", 9), (Lines{"one", "", "two"}));
    EXPECT_EQ(wrapped("- one two three\n- four\n1. five six\nseven", 9),
              (Lines{"- one two", "  three", "- four", "1. five", "   six", "   seven"}));
    EXPECT_EQ(wrapped("a\n```\nfor (;;)  {\n\n}\n```\nb", 5),
              (Lines{"a", "    for (;;)  {", "", "    }", "b"}));
    EXPECT_EQ(wrapped("a\n    kept  as is\nb", 5), (Lines{"a", "    kept  as is", "b"}));
    EXPECT_EQ(wrapped("averylongword x", 5), (Lines{"averylongword", "x"}));
    EXPECT_EQ(wrapped("", 5), Lines{});
}

}  // namespace
}  // namespace course::tool
