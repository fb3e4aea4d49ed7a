// The learner's commands on a made-up course of one day. Nothing is compiled: the "build" checks
// whether the file is allowed to compile, and the "tests" are a script that checks its contents.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "command_line.hpp"
#include "common/bench/inspection.hpp"
#include "errors.hpp"
#include "functions.hpp"
#include "inspect_example.hpp"
#include "logbook.hpp"
#include "subprocess.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

constexpr const char* kLesson = R"(// Day 1.
int one() { return 1; }
// Idea: two.
void two() { solved_two(); }
)";

constexpr const char* kHints = R"(# Exercises of day 1
Read the book.
## first
- kernels: `one`
- file: `add.cu`
- tests: `*/one`
- minutes: 1
Give back one.
### Hint 1
Hint A.
### Hint 2
Hint B.
### Hint 3
Hint C.
## second
- kernels: `two`
- file: `add.cu`
- tests: `*/two`
- minutes: 20
Do two.
### Hint 1
Hint D.
### Hint 2
Hint E.
### Hint 3
Hint F.
)";

constexpr const char* kTests = R"(#!/bin/sh
[ "$COURSE_TEST_REPORT" = - ] || exit 99
event() { printf '\036%s{"event":"%s","test":"%s"%s}\n' "$COURSE_TEST_KEY" "$1" "$2" "$3"; }
finish() { printf '\036%s{"event":"finished","result":"%s"}\n' "$COURSE_TEST_KEY" "$1"; }
file=$COURSE_MY/day01_add/add.cu
echo "$CUDA_ON_CPU_ORDER $CUDA_ON_CPU_STORES $*" >>"$COURSE_ROOT/runs"
case "$*" in *none*) finish passed; exit 0 ;; esac
case "$*" in */one) wanted='return 1' ;; *) wanted='solved_two' ;; esac
if grep -q other_passes "$file"; then event started A.B/w; event ended A.B/w ',"result":"passed"'; fi
if grep -q two_take_long "$file"; then sleep 1.6; fi
event started A.B/x
if grep -q two_take_long "$file"; then sleep 1.6; fi
if grep -q is_slow "$file"; then
    echo "i = 3cuda_on_cpu: kernel k: still running after $CUDA_ON_CPU_NOTICE s, in $COURSE_ROOT/mine/add.cu:46, block 0, thread 7"
fi
if grep -q "is_stuck_$CUDA_ON_CPU_ORDER" "$file"; then exec sleep 60; fi
if grep -q hangs "$file"; then exec sleep 60; fi
if grep -q meets_the_others "$file"; then
    tries=0
    until [ $(wc -l <"$COURSE_ROOT/runs") -ge 3 ]; do
        sleep 0.05
        tries=$((tries + 1))
        if [ $tries = 400 ]; then wanted='no others'; break; fi
    done
fi
if grep -q ascending_is_late "$file" && [ "$CUDA_ON_CPU_ORDER" = ascending ]; then sleep 0.5; fi
if grep -q touches "$file"; then echo 'cuda_on_cpu: code of the host reads device memory'; kill -SEGV $$; fi
if grep -q crashes "$file"; then echo 'cuda_on_cpu: the reason'; kill -SEGV $$; fi
if grep -q ends_early "$file"; then exit 0; fi
if grep -q forges "$file"; then COURSE_TEST_KEY=; event ended A.B/x ',"result":"passed"'; finish passed; exit 0; fi
if grep -q floods "$file"; then yes; fi
if grep -q reads_input "$file"; then cat; fi
if grep -q prints "$file"; then printf '[%s] i = 3' "$CUDA_ON_CPU_PRINTF"; fi
if grep -q not_late "$file" && [ "$CUDA_ON_CPU_STORES" = late ]; then wanted=nothing; fi
if grep -q "no_event_$CUDA_ON_CPU_STREAMS" "$file"; then wanted=nothing; fi
if grep -q "children_not_$CUDA_ON_CPU_CHILDREN" "$file"; then wanted=nothing; fi
if grep -q "$wanted" "$file" && ! { grep -q "ascending_only" "$file" && [ "$CUDA_ON_CPU_ORDER" = descending ]; }; then
    event ended A.B/x ',"result":"passed"'
    if ! grep -q leaves_before_the_end "$file"; then finish passed; fi
    exit 0
fi
got=nan
if grep -q got_order "$file"; then got=$CUDA_ON_CPU_ORDER; fi
if grep -q got_unwritten "$file"; then got="nan, never written, $CUDA_ON_CPU_ORDER"; fi
if grep -q got_time "$file"; then got=$(date +%s%N); fi
if grep -q got_address "$file"; then got="0x$$ after $$.5 ms"; fi
if grep -q got_stopped "$file"; then got="cuda_on_cpu: kernel k: stopped, $CUDA_ON_CPU_ORDER"; fi
event failure A.B/x ',"file":"a_test.cpp","line":7,"message":"[2]: expected 1, got '"$got"'"'
event ended A.B/x ',"result":"failed"'
finish failed
exit 1
)";

std::string sorted_lines(const std::string& text) {
    std::istringstream stream(text);
    std::set<std::string> lines;
    for (std::string line; std::getline(stream, line);)
        lines.insert(line + "\n");
    return fmt::format("{}", fmt::join(lines, ""));
}

class Learner : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write("CMakeLists.txt",
                         "cmake_minimum_required(VERSION 3.25)\nproject(made_up NONE)\n"
                         "foreach(target day01_add_exercise day01_add_exercise_program day01_add_whole)\n"
                         "add_custom_target(${target} COMMAND sh ${CMAKE_SOURCE_DIR}/compile.sh)\n"
                         "endforeach()\n");
        directory_.write("compile.sh",
                         "if grep -Hn misspelt \"$COURSE_MY/day01_add/add.cu\"; then exit 1; fi\nexit 0\n");
        const std::string root = directory_.path().string();
        const Captured configured = capture({"cmake", "-S", root, "-B", root + "/build", "-G", "Ninja"});
        ASSERT_EQ(configured.exit_code, 0) << configured.output;
        write_days("false");
        directory_.write("day01_add/add.cu", kLesson);
        directory_.write("day01_add/exercises.md", kHints);
        write_program("build/bin/day01_add_exercise", kTests);
        write_program("build/bin/day01_add_exercise_program",
                      "#!/bin/sh\nprintf '%s|' \"$@\" >>\"$COURSE_ROOT/runs\"\n");
        setenv("COURSE_ROOT", root.c_str(), 1);
        setenv("COURSE_BUILD_DIR", (root + "/build").c_str(), 1);
        setenv("COURSE_MY", (root + "/mine").c_str(), 1);
    }
    void TearDown() override { unsetenv("COURSE_MY"); }

    // What is set aside is not compiled.
    void compile_all_files() const {
        directory_.write("compile.sh", R"(
            failed=0
            for file in "$COURSE_MY"/day01_add/add.cu "$COURSE_MY"/day01_add/beyond/more.cu; do
                case "$COURSE_SET_ASIDE" in *"$file"*) continue ;; esac
                if grep -qs misspelt "$file"; then echo "$file:1:1: error: misspelt"; failed=1; fi
            done
            exit $failed)");
    }
    void write_program(const std::string& file, const std::string& script) const {
        std::filesystem::permissions(directory_.write(file, script), std::filesystem::perms::owner_all);
    }
    void write_days(const std::string& late_stores) const {
        directory_.write("build/days.json", R"({"backend": "cpu", "build_type": "Release", "late_stores": )" +
                                                late_stores + R"(, "days": [
            {"directory": "day01_add", "number": 1, "topic": "add", "title": "T", "part": "First"},
            {"directory": "day02_none", "number": 2, "topic": "none", "title": "N", "part": "Second"}]})");
    }
    // The output is in said().
    int course(const std::vector<const char*>& arguments) {
        std::vector<const char*> argv = {"./course"};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int code = run_command_line(static_cast<int>(argv.size()), argv.data(),
                                          {bench_day, show_profile, update_tables, try_exercises, new_day});
        std::fflush(stdout);
        said_ = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
        return code;
    }
    const std::string& said() const { return said_; }
    testing::AssertionResult says(const std::string& part) const {
        if (said_.find(part) != std::string::npos) return testing::AssertionSuccess();
        return testing::AssertionFailure() << "'" << part << "' is not in:\n" << said_;
    }
    std::filesystem::path mine() const { return directory_.path() / "mine/day01_add/add.cu"; }
    void write_mine(const std::string& text) const { directory_.write("mine/day01_add/add.cu", text); }
    std::string runs() {
        const std::string text = read_text(directory_.path() / "runs");
        std::filesystem::remove(directory_.path() / "runs");
        return text;
    }
    ExerciseRecord record(const char* id) const {
        return Logbook(directory_.path() / "mine/progress.json").of(id);
    }
    // The second exercise is in beyond/.
    void put_second_beyond() const {
        std::string hints = kHints;
        const auto second = hints.find("## second");
        hints.replace(hints.find("`add.cu`", second), 8, "`beyond/more.cu`");
        directory_.write("day01_add/exercises.md", hints);
        directory_.write("day01_add/beyond/more.cu", kLesson);
    }
    void solve(const char* id) const {
        Logbook(directory_.path() / "mine/progress.json").update(id, [](ExerciseRecord& record) {
            record.solved = true;
        });
    }
    // `./course quiz day01`, with these lines as its input.
    int quiz(const std::string& answers) {
        std::istringstream input(answers);
        std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
        const int code = course({"quiz", "day01"});
        std::cin.rdbuf(before);
        std::cin.clear();
        return code;
    }
    void make_first_a_version(const std::string& settings = "") const {
        std::string hints = kHints;
        directory_.write("day01_add/exercises.md",
                         hints.insert(hints.find("- minutes: 1\n"), "- version: `v`\n" + settings));
    }
    // With more `settings`, and a build whose programs have seen `kernel` in it.
    void make_inspection(const KernelInspection& kernel, const std::string& settings = "") const {
        const std::string root = directory_.path().string();
        make_first_a_version(settings);
        directory_.write("CMakeLists.txt", read_text(directory_.path() / "CMakeLists.txt") +
                                               "add_custom_target(day01_add_program)\n");
        ASSERT_EQ(capture({"cmake", "-S", root, "-B", root + "/build/inspect", "-G", "Ninja"}).exit_code, 0);
        for (const std::string program : {"day01_add", "day01_add_exercise_program"})
            write_program("build/inspect/bin/" + program,
                          "#!/bin/sh\ncp \"$COURSE_ROOT/$(basename \"$0\").json\" \"$2\"\n");
        write_figures("day01_add", kernel);
        write_figures("day01_add_exercise_program", kernel);
    }
    // Another form of `programs` in the plain build: each is this script.
    void add_variant(const std::string& variant, const std::vector<std::string>& programs,
                     const std::string& script) const {
        std::string project = read_text(directory_.path() / "CMakeLists.txt");
        for (const std::string& program : programs) {
            project += "add_custom_target(" + program + "_" + variant + ")\n";
            write_program("build/bin/" + program + "_" + variant, script);
        }
        directory_.write("CMakeLists.txt", project);
        std::string days = read_text(directory_.path() / "build/days.json");
        directory_.write("build/days.json",
                         days.replace(days.find("\"days\""), 0, "\"variants\": [\"" + variant + "\"], "));
    }
    // What `program` of that build has seen.
    void write_figures(const std::string& program, const KernelInspection& kernel) const {
        const InspectionFile figures = {
            .day = "day01_add",
            .commit = "",
            .results = {{.problem = "p", .version = "v", .verified = true, .kernels = {kernel}}}};
        directory_.write(program + ".json", to_json(figures).dump());
    }
    void wait_for_a_failure(const char* id) const {
        for (int i = 0; i < 600 && record(id).failures == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }

    TemporaryDirectory directory_;

  private:
    std::string said_;
};

TEST_F(Learner, FromNextToTheLastExercise) {
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("Read the book."));
    EXPECT_TRUE(says("Give back one."));
    EXPECT_TRUE(says("add.cu:5, about 1 minute"));
    EXPECT_EQ(course({"check"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first"));
    EXPECT_TRUE(says("[2]: expected 1, got nan"));
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{false, 1, 0, 0}));

    EXPECT_EQ(course({"solution"}), kSuccess);
    EXPECT_TRUE(says("int one() { return 1; }"));
    EXPECT_EQ(course({"solution", "--paste"}), kSuccess);
    EXPECT_EQ(course({"check"}), kSuccess);
    EXPECT_TRUE(says("solved day01/first"));
    EXPECT_TRUE(says("Next: day01/second"));
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{true, 1, 0, 1}));

    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("Do two."));
    EXPECT_EQ(course({"check", "second"}), kFailed);
    EXPECT_EQ(course({"solution", "second", "--paste"}), kSuccess);
    EXPECT_EQ(course({"check", "day01"}), kSuccess);
    EXPECT_TRUE(says("That was the last"));
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("All 2 exercises are solved"));
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(says("2 of 2 exercises solved"));
}

TEST_F(Learner, OfADayTheExercisesAreCheckedThatAreBegun) {
    EXPECT_EQ(course({"next", "day01"}), kSuccess);
    const std::string blank = read_text(mine());
    std::string solved = with_bodies(blank, find_functions(blank, "one"), {"{ return 1; }"});
    write_mine(solved);
    EXPECT_EQ(course({"check", "day01"}), kFailed) << "one is blank: " << said();
    EXPECT_TRUE(says("blank: day01/second\n  Next: day01/second"));
    EXPECT_EQ(said().find("not yet"), std::string::npos) << said();
    write_mine(solved + "// my remark\n");
    course({"check", "day01"});
    EXPECT_TRUE(says("blank: day01/second")) << "what is written is outside of its functions";
    write_mine(with_bodies(solved, find_functions(solved, "two"), {"{ return; }"}));
    EXPECT_EQ(course({"check", "day01"}), kFailed);
    EXPECT_TRUE(says("not yet day01/second"));
    EXPECT_EQ(said().find("Still blank"), std::string::npos) << said();
}

TEST_F(Learner, AWrongAnswerIsToldWhichEarlierExercisesAreBlank) {
    EXPECT_EQ(course({"check", "second"}), kFailed);
    EXPECT_EQ(said().find("Still blank"), std::string::npos) << "it is blank itself";
    const std::string blank = read_text(mine());
    write_mine(with_bodies(blank, find_functions(blank, "two"), {"{ return; }"}));
    EXPECT_EQ(course({"check", "second"}), kFailed);
    EXPECT_TRUE(says("Still blank: day01/first. These tests may run that code, too."));
}

TEST_F(Learner, WithoutANameTheExerciseIsMeantThatWasNamedLast) {
    EXPECT_EQ(course({"next", "second"}), kSuccess);
    EXPECT_EQ(course({"check"}), kFailed);
    EXPECT_TRUE(says("not yet day01/second"));
    EXPECT_EQ(course({"hint"}), kSuccess);
    EXPECT_TRUE(says("Hint D."));
    EXPECT_EQ(course({"solution", "--paste"}), kSuccess);
    EXPECT_EQ(course({"check"}), kSuccess);
    EXPECT_TRUE(says("solved day01/second"));
    EXPECT_EQ(course({"check"}), kFailed) << "solved: now the other of its day";
    EXPECT_TRUE(says("not yet day01/first"));
}

TEST_F(Learner, ProgressShowsTheDayOfTheNextExerciseInFull) {
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(says("first"));
    EXPECT_TRUE(says("<- next"));
    EXPECT_TRUE(says("A star each for an answer that is right;"));
    write_mine("int one() { return 1; } void two() { solved_two(); }");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_EQ(course({"check", "second"}), kSuccess) << said();
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_EQ(said().find("second"), std::string::npos) << said();
    EXPECT_TRUE(says("2 of 2 exercises solved"));
    EXPECT_EQ(course({"progress", "--all"}), kSuccess);
    EXPECT_TRUE(says("second"));
    EXPECT_EQ(course({"progress", "day01"}), kSuccess);
    EXPECT_TRUE(says("second"));
    EXPECT_EQ(course({"progress", "no such day"}), kUsage);
}

TEST_F(Learner, NextWalksTheCoreAndThenWhatIsBeyondIt) {
    put_second_beyond();
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("day01/first"));
    EXPECT_EQ(course({"next", "--beyond"}), kSuccess);
    EXPECT_TRUE(says("day01/second"));
    EXPECT_TRUE(says("beyond/more.cu"));
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("day01/second")) << "the one named last";
    solve("day01/second");
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(says("day01, 0 of 1, beyond 1 of 1"));
    EXPECT_EQ(course({"next", "--beyond"}), kSuccess);
    EXPECT_TRUE(says("All exercises beyond the core are solved."));
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("day01/first"));
    EXPECT_EQ(course({"next", "--beyond", "day01"}), kUsage);
}

TEST_F(Learner, WhenTheCoreIsSolvedNextSaysSo) {
    put_second_beyond();
    solve("day01/first");
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("The core of the course is solved. What is left is beyond it."));
    EXPECT_TRUE(says("day01/second"));
    solve("day01/second");
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_TRUE(says("All 2 exercises are solved."));
}

TEST_F(Learner, ALinkIsShownAsItsText) {
    directory_.write(
        "day01_add/README.md",
        "## Predict\n\n1. How many lanes has a [warp](README.md#warps)?\n"
        "   <details><summary>Answer</summary>**32** ([all\n"
        "   sizes](../docs/measured/day01.md#add)). `[=](x)` and [beyond/](beyond/README.md).</details>\n");
    EXPECT_EQ(quiz("32\n"), kSuccess) << said();
    EXPECT_TRUE(says("How many lanes has a warp?"));
    EXPECT_TRUE(says("(all sizes: docs/measured/day01.md). `[=](x)` and beyond/.")) << said();
}

TEST_F(Learner, AQuizCountsTheFirstAnswerToEachQuestion) {
    EXPECT_EQ(quiz(""), kUsage);
    directory_.write("day01_add/README.md", "# Day 1\n");
    EXPECT_EQ(quiz(""), kUsage);
    EXPECT_TRUE(says("day01_add has no questions yet"));
    directory_.write("day01_add/README.md",
                     "## Predict\n\n1. How many lanes?\n"
                     "   <details><summary>Answer</summary>**32**. A warp.</details>\n"
                     "2. Which: a) this; b) that?\n"
                     "   <details><summary>Answer</summary>**b**. Because.</details>\n");
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(says("day01, 0 of 2, questions 0 of 2"));
    EXPECT_EQ(quiz("32 lanes\na\n"), kSuccess) << said();
    EXPECT_TRUE(says("Your answer (a number): "));
    EXPECT_TRUE(says("Right."));
    EXPECT_TRUE(says("It is b."));
    EXPECT_TRUE(says("  Because."));
    EXPECT_TRUE(says("1 of 2 right"));
    EXPECT_EQ(quiz("\nb\n"), kSuccess) << "the second time, b was read before";
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(says("day01, 0 of 2, questions 1 of 2"));
    solve("day01/first");
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(says("day01, 1 of 2, questions 1 of 2")) << "other changes keep it";
    EXPECT_EQ(quiz("32\n"), kSuccess) << "the input may end before the questions do";
    directory_.write("day01_add/README.md", "## Predict\n\nMy answer: 32.\n1. How many lanes?\n");
    EXPECT_EQ(quiz("32\n"), kFailed);
    EXPECT_TRUE(says("day01_add/README.md:3: expected '1. question' first"));
    EXPECT_EQ(course({"progress"}), kSuccess) << said();
    EXPECT_EQ(course({"quiz", "day03"}), kUsage);
    EXPECT_EQ(course({"quiz"}), kUsage);
}

TEST_F(Learner, AQuizShowsTheLinesOfAKernel) {
    directory_.write("day01_add/sum.cuh",
                     "int x;\n\n__global__ void sum(int n) {\n    n += 1;\n    n -= 1;\n}\n");
    const std::string question =
        "## Predict\n\n1. Which line of [`sum`](sum.cuh) adds?\n"
        "   <details><summary>Answer</summary>**`n += 1;`**. It does.</details>\n";
    directory_.write("day01_add/README.md", question);
    EXPECT_EQ(quiz("5\n"), kSuccess) << said();
    EXPECT_TRUE(says("  day01_add/sum.cuh\n     3  __global__ void sum(int n) {\n     4      n += 1;\n"));
    EXPECT_TRUE(says("Your answer (the number of a line): "));
    EXPECT_TRUE(says("It is line 4: `n += 1;`"));
    EXPECT_TRUE(says("0 of 1 right"));
    for (const char* right : {"4\n", "line 4\n"}) {
        EXPECT_EQ(quiz(right), kSuccess) << said();
        EXPECT_TRUE(says("Right.")) << right;
    }
    directory_.write("day01_add/sum.cuh", "__global__ void sum(int n) {}\n");
    EXPECT_EQ(quiz("4\n"), kFailed);
    EXPECT_TRUE(says("sum.cuh: 0 lines of sum have `n += 1;`; expected one"));
}

TEST_F(Learner, TheProgramOfALessonIsRunByItself) {
    EXPECT_EQ(course({"run", "day01", "--program"}), kUsage);
    EXPECT_TRUE(says("--program: day01_add has one program, with versions: --only chooses one"));
    directory_.write("day01_add/program.cu", "int main() {}\n");
    write_program("build/bin/day01_add_whole", "#!/bin/sh\nprintf '%s|' \"$@\" >>\"$COURSE_ROOT/runs\"\n");
    EXPECT_EQ(course({"run", "day01", "--program"}), kSuccess) << said();
    EXPECT_EQ(course({"run", "day01", "--program", "1000"}), kSuccess) << said();
    EXPECT_EQ(course({"run", "day01", "--program", "--", "-3", "b"}), kSuccess) << said();
    EXPECT_EQ(runs(), "|1000|-3|b|");
    EXPECT_EQ(course({"run", "day01", "--size", "7", "--program"}), kUsage);
    EXPECT_TRUE(says("expected --program without them"));
}

TEST_F(Learner, WhenALessonChangesTheLearnersFunctionsGoToItsFileOfToday) {
    write_mine("// Mine.\nint one() { return 1; }\nvoid two() { solved_two(); }\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    EXPECT_EQ(said().find("has changed"), std::string::npos) << said();
    // The lesson gets a function, and one of its exercises goes to another file.
    put_second_beyond();
    directory_.write("day01_add/add.cu",
                     "// Day 1.\nint one() { return 1; }\ninline void launch() { one(); }\n");
    directory_.write("day01_add/beyond/more.cu", "void two() { solved_two(); }\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    EXPECT_TRUE(says("mine/day01_add/add.cu has changed"));
    EXPECT_TRUE(says("is kept as"));
    const std::string renewed = read_text(mine());
    EXPECT_NE(renewed.find("int one() { return 1; }"), std::string::npos) << renewed;
    EXPECT_NE(renewed.find("inline void launch()"), std::string::npos) << renewed;
    EXPECT_EQ(renewed.find("two"), std::string::npos) << renewed;
    const std::string moved = read_text(directory_.path() / "mine/day01_add/beyond/more.cu");
    EXPECT_NE(moved.find("void two() { solved_two(); }"), std::string::npos) << moved;
    EXPECT_NE(read_text(mine().string() + ".before").find("// Mine."), std::string::npos);
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    EXPECT_EQ(said().find("has changed"), std::string::npos) << said();
}

TEST_F(Learner, EveryNewFunctionOfALessonGoesToTheLearnersFile) {
    write_mine(
        "__global__ void __launch_bounds__(32, 2) old(int x) {}\nint one() { return 1; }\nvoid two() {}\n");
    for (const std::string function : {"__global__ void __launch_bounds__(32, 2)\n    bounded(int x) {}\n",
                                       "template <int N>\nvoid launch() {}\n"}) {
        directory_.write("day01_add/add.cu", read_text(directory_.path() / "day01_add/add.cu") + function);
        EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
        EXPECT_NE(read_text(mine()).find(function), std::string::npos) << read_text(mine());
    }
}

TEST_F(Learner, AnExerciseFileThatMovesTakesTheLearnersAlong) {
    write_mine("int one() { return 1; }\nvoid two() { solved_two(); }\n");
    std::string hints = kHints;
    for (auto at = hints.find("`add.cu`"); at != std::string::npos; at = hints.find("`add.cu`", at))
        hints.replace(at, 8, "`beyond/add.cu`");
    directory_.write("day01_add/exercises.md", hints);
    directory_.write("day01_add/beyond/add.cu", kLesson);
    EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
    const std::string moved = read_text(directory_.path() / "mine/day01_add/beyond/add.cu");
    EXPECT_NE(moved.find("int one() { return 1; }"), std::string::npos) << moved;
    EXPECT_FALSE(std::filesystem::exists(mine()));
    EXPECT_TRUE(std::filesystem::exists(mine().string() + ".before"));
}

TEST_F(Learner, ALessonThatChangesLeavesTheLearnersOtherFilesAlone) {
    const std::string text = "int one() { return 1; }\nvoid two() { solved_two(); }\n";
    write_mine(text);
    const auto other = directory_.write("mine/day01_add/try.cu", "int one() { return 7; }\nint main() {}\n");
    // As Emacs locks a file.
    std::filesystem::create_symlink("somebody@host.17", mine().parent_path() / ".#add.cu");
    std::filesystem::create_directory(mine().parent_path() / "folder.cu");
    EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
    EXPECT_EQ(said().find("has changed"), std::string::npos) << said();
    EXPECT_TRUE(std::filesystem::exists(other));
    directory_.write("day01_add/add.cu", std::string(kLesson) + "inline void launch() { one(); }\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
    EXPECT_TRUE(says("mine/day01_add/add.cu has changed"));
    EXPECT_TRUE(std::filesystem::exists(other)) << said();
    EXPECT_NE(read_text(mine()).find("return 1"), std::string::npos) << read_text(mine());
}

TEST_F(Learner, AFileThatDoesNotCompileCostsItsOwnExercisesOnly) {
    compile_all_files();
    put_second_beyond();
    const std::string right = "int one() { return 1; }  // solved_two\n";  // by which the "tests" know
    const std::string broken = "int one() { misspelt return 1; }  // solved_two\n";
    write_mine(broken);
    directory_.write("mine/day01_add/beyond/more.cu", "void two() { solved_two(); }\n");
    EXPECT_EQ(course({"check", "day01", "--keep-going"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: does not compile"));
    EXPECT_TRUE(says("solved day01/second"));
    EXPECT_EQ(read_text(mine()), broken);
    // The file that does not compile comes after the one that does.
    write_mine(right);
    directory_.write("mine/day01_add/beyond/more.cu", "void two() { misspelt(); }\n");
    EXPECT_EQ(course({"check", "day01", "--keep-going"}), kFailed);
    EXPECT_TRUE(says("solved day01/first"));
    EXPECT_TRUE(says("not yet day01/second: does not compile"));
    EXPECT_EQ(course({"check", "first"}), kFailed);  // nothing is set aside
    EXPECT_TRUE(says("more.cu:1:1: error: misspelt"));
}

TEST_F(Learner, ProseIsNotBlank) {
    compile_all_files();
    directory_.write("day01_add/add.cu", std::string(kLesson) + "inline void launch() { one(); }\n");
    const std::string prose = "misspelt: each thread gives back one\n";
    write_mine(prose);
    EXPECT_EQ(course({"check", "day01", "--keep-going"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: does not compile"));
    EXPECT_TRUE(says("add.cu:1:1: error: misspelt"));
    EXPECT_EQ(read_text(mine()), prose);
    std::filesystem::remove(mine());
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    const std::string blank = read_text(mine());
    write_mine(blank + prose);
    EXPECT_EQ(course({"check", "day01", "--keep-going"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: does not compile"));
    write_mine(blank + "// A comment.\n");
    EXPECT_EQ(course({"check", "day01", "--keep-going"}), kFailed);
    EXPECT_TRUE(says("blank: day01/first, day01/second"));
}

TEST_F(Learner, AFileThatIsALinkStaysOneWhenItsLessonChanges) {
    const auto elsewhere = directory_.write("elsewhere/mine.cu", "int one() { return 1; }\nvoid two() {}\n");
    std::filesystem::create_directories(mine().parent_path());
    std::filesystem::create_symlink(elsewhere, mine());
    directory_.write("day01_add/add.cu", std::string(kLesson) + "inline void launch() { one(); }\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
    EXPECT_TRUE(std::filesystem::is_symlink(mine()));
    EXPECT_NE(read_text(elsewhere).find("inline void launch()"), std::string::npos) << read_text(elsewhere);
    EXPECT_EQ(read_text(mine().string() + ".before"), "int one() { return 1; }\nvoid two() {}\n");
}

TEST_F(Learner, ABlankFunctionHasItsTaskOfTodayWhenItsLessonChanges) {
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    const std::string blank = read_text(mine());
    write_mine(with_bodies(blank, find_functions(blank, "one"), {"{ return 1; }"}));
    std::string hints = kHints;
    directory_.write("day01_add/exercises.md", hints.replace(hints.find("Do two."), 7, "Do it twice."));
    directory_.write("day01_add/add.cu", std::string(kLesson) + "inline void launch() { one(); }\n");
    course({"check", "day01"});
    EXPECT_NE(read_text(mine()).find("return 1"), std::string::npos) << read_text(mine());
    EXPECT_NE(read_text(mine()).find("Do it twice."), std::string::npos) << read_text(mine());
    EXPECT_TRUE(says("blank: day01/second"));
}

TEST_F(Learner, AFileWhoseBracketsDoNotMatchIsRenewedWhenTheyDo) {
    const std::string broken = "int one() { return 1; }\nvoid two() { if (true) { }\n";
    write_mine(broken);
    directory_.write("day01_add/add.cu", std::string(kLesson) + "inline void launch() { one(); }\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
    EXPECT_TRUE(says("is renewed when its brackets match: line 2: '{' has no partner"));
    EXPECT_EQ(read_text(mine()), broken);
    write_mine(broken + "}\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess) << said();
    EXPECT_NE(read_text(mine()).find("int one() { return 1; }"), std::string::npos) << read_text(mine());
    EXPECT_NE(read_text(mine()).find("inline void launch()"), std::string::npos) << read_text(mine());
}

TEST_F(Learner, FilesThatCannotBeRenewedStayAndKeepNoCommandFromItsWork) {
    const std::string text = "int one() { return 1; }\nvoid two() { solved_two(); }\n";
    write_mine(text);
    put_second_beyond();
    directory_.write("day01_add/add.cu", "int one() { return 1; }\n");
    const auto obstacle = directory_.write("mine/day01_add/beyond", "");
    EXPECT_EQ(course({"progress"}), kSuccess) << said();
    EXPECT_TRUE(says("your files of day01 cannot be renewed"));
    EXPECT_EQ(read_text(mine()), text);
    std::filesystem::remove(obstacle);
    EXPECT_EQ(course({"progress"}), kSuccess) << said();
    const std::string moved = read_text(directory_.path() / "mine/day01_add/beyond/more.cu");
    EXPECT_NE(moved.find("solved_two();"), std::string::npos) << moved;
}

TEST_F(Learner, AFileOfTheLearnersStaysWhenOnlyTheLessonsTextChanges) {
    const std::string text = "int helper() { return 2; }\nint one() { return 1; }\nvoid two() {}\n";
    write_mine(text);
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    directory_.write("day01_add/add.cu", std::string(kLesson) + "// A comment.\n");
    EXPECT_EQ(course({"next", "first"}), kSuccess);
    EXPECT_EQ(read_text(mine()), text);
}

TEST_F(Learner, ProgressOfADayShowsThatDayOnly) {
    std::string days = read_text(directory_.path() / "build/days.json");
    directory_.write("build/days.json", days.replace(days.find("02_none"), 7, "02_more"));
    directory_.write("day02_more/exercises.md", kHints);
    EXPECT_EQ(course({"progress", "day02"}), kSuccess) << said();
    EXPECT_TRUE(says("day02, 0 of 2"));
    EXPECT_TRUE(says("second"));
    EXPECT_EQ(said().find("day01"), std::string::npos) << said();
    EXPECT_EQ(said().find("of 4"), std::string::npos) << said();
    EXPECT_EQ(course({"progress", "day02/second"}), kSuccess);
    EXPECT_EQ(said().find("day01"), std::string::npos) << said();
    EXPECT_EQ(said().find("Second"), std::string::npos) << said();
    EXPECT_EQ(course({"progress"}), kSuccess);
    EXPECT_TRUE(said().starts_with("First\nday01, 0 of 2")) << said();
    EXPECT_TRUE(says("\nSecond\nday02, 0 of 2"));
    EXPECT_TRUE(says("0 of 4 exercises solved"));
    EXPECT_EQ(course({"progress", "day03"}), kUsage);
    EXPECT_TRUE(says("there is no day 'day03'"));
}

TEST_F(Learner, BothOrdersAreRunAndTheFirstThatFailsIsTold) {
    write_mine("ascending_is_late");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: this one fails:\n")) << "in the usual order, whichever ends first";
    EXPECT_NE(runs().find("ascending prompt --gtest_fail_fast --gtest_filter=*/one\n"), std::string::npos);
    write_mine("int one() { return 1; } // ascending_only");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("this one fails when the last thread of a block runs first:\n"));
    EXPECT_TRUE(says("the tests pass: the result depends on the order of threads. Is a barrier"));
    EXPECT_NE(runs().find("descending "), std::string::npos);
}

TEST_F(Learner, ValuesThatDependOnTheOrderOfThreadsAreAHintAtARace) {
    const std::string hint = "the result depends on the order of threads";
    write_mine("got_order");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("got ascending"));
    EXPECT_TRUE(says(hint));
    for (const char* const mine : {"got_nan", "got_address", "got_stopped"}) {
        write_mine(mine);
        EXPECT_EQ(course({"check", "first"}), kFailed);
        EXPECT_TRUE(says("[2]: expected 1, got "));
        EXPECT_EQ(said().find(hint), std::string::npos) << said();
    }
}

TEST_F(Learner, ValuesThatDifferFromRunToRunAreNoHintAtTheOrderOfThreads) {
    write_mine("got_time");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("the result depends on what other blocks have done so far")) << said();
    EXPECT_FALSE(says("the result depends on the order of threads")) << said();
}

TEST_F(Learner, AllSchedulesRunAtOnce) {
    write_days("true");
    write_mine("int one() { return 1; } // meets_the_others");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
}

TEST_F(Learner, AFailureDoesNotWaitForTheOtherSchedules) {
    const auto begin = std::chrono::steady_clock::now();
    write_mine("is_stuck_descending");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: this one fails:\n"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
    write_mine("int one() { return 1; } // is_stuck_descending");
    EXPECT_EQ(course({"check", "first", "--limit", "1"}), kFailed);
    EXPECT_TRUE(says("this one fails when the last thread of a block runs first:\n"));
    EXPECT_TRUE(says("A.B/x: not done after 1 s"));
}

TEST_F(Learner, LateStoresComeLastWhereTheyAreToBeHad) {
    write_mine("int one() { return 1; } // not_late");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_TRUE(says("1 test passes, in both orders of threads\n"));
    write_days("true");
    runs();
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("writes late, as it may: a barrier or an atomic is missing"));
    EXPECT_EQ(sorted_lines(runs()),
              "ascending late --gtest_fail_fast --gtest_filter=*/one\n"
              "ascending prompt --gtest_fail_fast --gtest_filter=*/one\n"
              "descending prompt --gtest_fail_fast --gtest_filter=*/one\n");
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kSuccess);
    EXPECT_TRUE(says("in both orders of threads and with late stores"));
}

TEST_F(Learner, StreamsRunInOtherOrdersWhereAnExerciseAsksForIt) {
    const std::string tests = "- tests: `*/one`\n";
    std::string hints = kHints;
    ASSERT_NE(hints.find(tests), std::string::npos);
    hints.insert(hints.find(tests), "- streams: late, random\n");
    directory_.write("day01_add/exercises.md", hints);
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_TRUE(
        says("1 test passes, in both orders of threads, with late streams and with streams in a random "
             "order\n"));
    write_mine("int one() { return 1; } // no_event_late");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(
        says("when work in streams runs as late as it may: an event or a synchronisation is missing"));
    write_mine("int one() { return 1; } // no_event_random:1");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("when work in streams runs in another order, as it may: an event"));
    write_mine("got_unwritten");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("does the host wait for the stream that the work is in")) << said();
    EXPECT_FALSE(says("the order of threads")) << said();
}

TEST_F(Learner, ChildrenRunEarlyTooWhereAnExerciseAsksForIt) {
    const std::string tests = "- tests: `*/one`\n";
    std::string hints = kHints;
    ASSERT_NE(hints.find(tests), std::string::npos);
    hints.insert(hints.find(tests), "- children: early\n");
    directory_.write("day01_add/exercises.md", hints);
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_TRUE(says("1 test passes, in both orders of threads and with early children\n")) << said();
    write_mine("int one() { return 1; } // children_not_early");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("when grids that a kernel launches run before it goes on")) << said();
}

TEST_F(Learner, WhatDoesNotCompileIsShown) {
    write_mine("misspelt");
    EXPECT_EQ(course({"check"}), kFailed);
    EXPECT_TRUE(says("does not compile"));
    EXPECT_TRUE(says("add.cu:1:misspelt"));
    EXPECT_EQ(said().find("FAILED:"), std::string::npos) << said();
    EXPECT_EQ(said().find("ninja:"), std::string::npos) << said();
    EXPECT_EQ(record("day01/first").failures, 1);
}

// Only nvcc decides reliably, and on a machine without a GPU clang++ may be missing.
TEST_F(Learner, TheVerdictIsTheSameWithAndWithoutClang) {
    const std::string path = std::getenv("PATH");
    setenv("PATH", ((directory_.path() / "tools").string() + ":" + path).c_str(), 1);
    write_program(
        "tools/clang++",
        "#!/bin/sh\nfor file; do :; done\n"
        "echo \"$file:1:9: error: reference to __host__ function 'twice' in __global__ function\"\nexit 1\n");
    write_mine("__global__ int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_TRUE(says("! nvcc may refuse it, says clang++:\n"));
    EXPECT_TRUE(says("add.cu:1: calling a __host__ function(\"twice\") from a __global__ function"));
    write_program("tools/clang++", "#!/bin/sh\nexit 127\n");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_TRUE(says("not looked at: calls of host functions in kernels (clang++ is not installed)"));
    write_program("tools/clang++", "#!/bin/sh\nexit 0\n");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
    EXPECT_EQ(said().find("not looked at"), std::string::npos) << said();
    write_mine("__global__ int one() { std::vector<int> v; return 1; }");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("its tests pass on the CPU, but nvcc does not compile it:"));
    setenv("PATH", path.c_str(), 1);
}

TEST_F(Learner, AHangAndACrashAreNamed) {
    write_mine("hangs");
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(course({"check", "--limit", "1"}), kFailed);
    EXPECT_TRUE(says("A.B/x: not done after 1 s"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
    write_mine("crashes");
    EXPECT_EQ(course({"check"}), kFailed);
    EXPECT_TRUE(says("ended by signal 11. An address that does not exist: is an index far out of range"));
    EXPECT_TRUE(says("cuda_on_cpu: the reason"));
    write_mine("touches");
    EXPECT_EQ(course({"check"}), kFailed);
    EXPECT_TRUE(says("ended by signal 11.\n    cuda_on_cpu: code of the host reads device memory"));
    EXPECT_EQ(course({"check", "--limit", "0"}), kUsage);
}

TEST_F(Learner, TheLimitIsThatOfOneTest) {
    write_mine("int one() { return 1; } // two_take_long other_passes");
    EXPECT_EQ(course({"check", "first", "--limit", "3"}), kSuccess) << said();
}

TEST_F(Learner, ASlowKernelsLineIsToldWhileItRuns) {
    write_mine("int one() { return 1; } // is_slow");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << "slow is not wrong";
    EXPECT_TRUE(
        says("course: still in mine/add.cu:46, block 0, thread 7. A loop that never ends, or does each "
             "thread do all the work?\n"));
    write_mine("hangs is_slow");
    EXPECT_EQ(course({"check", "first", "--limit", "1"}), kFailed);
    EXPECT_TRUE(says(
        "A.B/x: not done after 1 s, ended; it was in mine/add.cu:46, block 0, thread 7. A loop that never"));
}

TEST_F(Learner, AProgramThatEndsByItselfInATestIsNoSuccess) {
    write_mine("int one() { return 1; } // ends_early");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("A.B/x: the program ended in the middle of it, with exit code 0"));
}

TEST_F(Learner, AProgramThatEndsByItselfBetweenTestsIsNoSuccess) {
    write_mine("int one() { return 1; } // leaves_before_the_end");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("the tests: the program ended in the middle of them, with exit code 0"));
}

TEST_F(Learner, AForgedResultIsNoSuccess) {
    write_mine("int one() { return 1; } // forges");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("A.B/x: the program ended in the middle of it, with exit code 0"));
}

TEST_F(Learner, APrintfWithoutEndIsEnded) {
    write_mine("floods");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("A.B/x: printed more than 4 MB"));
    EXPECT_LT(said().size(), 10'000U);
}

TEST_F(Learner, WhatAKernelPrintsIsShownWhenItFails) {
    write_mine("prints");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("[threads] i = 3")) << "lines name their thread";
    EXPECT_EQ(std::getenv("CUDA_ON_CPU_PRINTF"), nullptr) << "only under check";
    write_mine("int one() { return 1; } // prints");
    EXPECT_EQ(course({"check", "first"}), kSuccess) << said();
}

TEST_F(Learner, NobodyWaitsForTheKeyboard) {
    write_mine("int one() { return 1; } // reads_input");
    EXPECT_EQ(course({"check", "first", "--limit", "5"}), kSuccess) << said();
}

TEST_F(Learner, ASolvedExerciseIsKeptWhenItCannotBeCompared) {
    make_first_a_version();
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kSuccess);
    EXPECT_TRUE(says("? as good as the lesson's? ./course check day01/first --inspect"));
    EXPECT_EQ(course({"reset", "first"}), kSuccess);
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first", "--inspect"}), kSuccess) << "there is no such build here";
    EXPECT_TRUE(says("not compared with the lesson's: "));
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{true, 0, 0, 1}));
}

TEST_F(Learner, AWrongAnswerIsInspectedUnlessItHangs) {
    if (capture({"g++", "-v"}).exit_code != 0) GTEST_SKIP() << "inspection wants g++";
    KernelInspection kernel;
    kernel.findings = {{.kind = "race", .source = {"a.cu", 7}, .message = "m", .why = "w", .other = {}}};
    make_inspection(kernel);
    EXPECT_EQ(course({"check", "first", "--inspect"}), kFailed);
    EXPECT_TRUE(
        says("inspection found 1 problem:\n      a.cu:7: m\n      thread (0, 0, 0) of block (0, 0, 0)\n      "
             "w\n"));
    EXPECT_FALSE(says("=== v")) << "the finding is enough";
    const std::string verdicts = (directory_.path() / "verdicts.json").string();
    EXPECT_EQ(course({"check", "first", "--inspect", "--json", verdicts.c_str()}), kFailed);
    EXPECT_NE(read_text(verdicts).find("a.cu:7: m"), std::string::npos) << "./course grade shows it";
    write_mine("hangs");
    EXPECT_EQ(course({"check", "first", "--inspect", "--limit", "1"}), kFailed);
    EXPECT_FALSE(says("inspection found"));
}

TEST_F(Learner, TheLearnersKernelIsExplainedAndPutOnAPageBesideTheLessons) {
    if (capture({"g++", "-v"}).exit_code != 0) GTEST_SKIP() << "inspection wants g++";
    KernelInspection kernel;
    kernel.blocks = kernel.inspected_blocks = 1;
    kernel.lines = {shared_load(4, 32, stride(128))};
    make_inspection(kernel);
    const std::string page = (directory_.path() / "page.html").string();
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first", "--html", page.c_str()}), kSuccess);
    EXPECT_TRUE(says("written: " + page));
    EXPECT_FALSE(says("32 lanes hit bank 0")) << "the page has it";
    const std::string html = read_text(page);
    EXPECT_NE(html.find(R"("title":"day01/first: your v")"), std::string::npos);
    ASSERT_NE(html.find(R"("version":"the lesson's v")"), std::string::npos);
    EXPECT_LT(html.find(R"("version":"your v")"), html.find(R"("version":"the lesson's v")"));

    EXPECT_EQ(course({"check", "first", "--inspect"}), kSuccess);
    EXPECT_TRUE(says("32 lanes hit bank 0: a column of a 32-wide tile. Pad the row by one word."));
    EXPECT_TRUE(says("=== v, p"));

    write_mine("int one() { return 7; }");
    std::filesystem::remove(page);
    EXPECT_EQ(course({"check", "first", "--html", page.c_str()}), kFailed);
    EXPECT_TRUE(std::filesystem::exists(page)) << "most of all of a wrong answer";
}

TEST_F(Learner, ARightResultWithTooMuchTrafficIsNotSolvedWhereTheExerciseIsAboutTraffic) {
    if (capture({"g++", "-v"}).exit_code != 0) GTEST_SKIP() << "inspection wants g++";
    KernelInspection kernel;
    AccessLine& line = kernel.lines.emplace_back();
    line.source = {"a.cu", 7};
    line.requests = 10;
    line.transactions = line.ideal = 40;
    make_inspection(kernel, "- traffic: `global`\n");
    line.transactions = 320;
    write_figures("day01_add_exercise_program", kernel);
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: its tests pass, but "));
    EXPECT_TRUE(says("a.cu:7: each request of a warp touches 32 sectors; expected 4"));
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{false, 1, 0, 0}));

    line.transactions = 40;
    write_figures("day01_add_exercise_program", kernel);
    EXPECT_EQ(course({"check", "first"}), kSuccess);
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{true, 1, 0, 3}));
}

TEST_F(Learner, ABuildWithInspectedProgramsNeedsNoOther) {
    KernelInspection kernel;
    AccessLine& line = kernel.lines.emplace_back();
    line.space = Space::kGlobal;
    line.source = {"a.cu", 7};
    line.requests = 10;
    line.transactions = line.ideal = 40;
    make_first_a_version("- traffic: `global`\n");
    add_variant("inspected", {"day01_add_program", "day01_add_exercise_program"},
                "#!/bin/sh\ncp \"$COURSE_ROOT/$(basename \"$0\").json\" \"$2\"\n");
    write_figures("day01_add_program_inspected", kernel);
    line.transactions = 320;
    write_figures("day01_add_exercise_program_inspected", kernel);
    write_mine("int one() { return 1; }");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("a.cu:7: each request of a warp touches 32 sectors; expected 4"));
    EXPECT_FALSE(std::filesystem::exists(directory_.path() / "build/inspect"));
}

TEST_F(Learner, AWrongResultIsNotInspectedUnasked) {
    make_inspection({}, "- traffic: `global`\n");
    std::filesystem::remove(directory_.path() / "build/inspect/bin/day01_add_exercise_program");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_FALSE(says("not compared with the lesson's"));
    EXPECT_FALSE(says("building day01_add_exercise_program"));
}

TEST_F(Learner, WhatCannotBeOnAPageIsSaidBeforeAnythingIsBuilt) {
    const std::string page = (directory_.path() / "page.html").string();
    EXPECT_EQ(course({"check", "first", "--html", page.c_str()}), kUsage);
    EXPECT_TRUE(says("does not run day01/first by itself"));
    EXPECT_EQ(course({"check", "day01", "--html", page.c_str()}), kUsage);
    EXPECT_TRUE(says("a page shows one exercise"));
    EXPECT_EQ(course({"check", "first", "--html", directory_.path().c_str()}), kUsage);
    EXPECT_TRUE(says("--html: cannot write"));
    EXPECT_EQ(runs(), "");
}

TEST_F(Learner, ASingleTestPassesBeforeOneThatFails) {
    EXPECT_EQ(course({"next"}), kSuccess);
    write_mine(read_text(mine()) + "// other_passes\n");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("1 of its tests passes, then this one fails"));
}

TEST_F(Learner, TheLambdaThatTheTranslatorMakesOfAKernelIsNotNamed) {
    EXPECT_EQ(course({"next"}), kSuccess);
    write_mine(read_text(mine()) + "// misspelt: In lambda function:\n// misspelt: error\n");
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("misspelt: error"));
    EXPECT_FALSE(says("In lambda function"));
}

TEST_F(Learner, RunMineRunsTheDaysProgramWithMyKernels) {
    make_first_a_version();
    write_mine("int one() { return 7; }");
    EXPECT_EQ(course({"run", "--mine", "day01", "--size", "7"}), kSuccess) << said();
    EXPECT_EQ(runs(), "--size|7|") << "all versions";
    EXPECT_EQ(course({"run", "day01/first", "--mine", "--size", "7", "--own", "3"}), kSuccess) << said();
    EXPECT_EQ(runs(), "--size|7|--only|v|--own|3|");
    EXPECT_EQ(course({"run", "--mine", "first", "--only", "w"}), kSuccess) << said();
    EXPECT_EQ(runs(), "--only|w|");
    EXPECT_EQ(course({"run", "--mine", "second"}), kSuccess) << said();
    EXPECT_EQ(runs(), "|") << "no argument: it is no version of its own";
    EXPECT_EQ(record("day01/first"), ExerciseRecord{}) << "a run is no check";
}

TEST_F(Learner, RunMineWithoutMyFileNamesTheCommandThatCopiesIt) {
    EXPECT_EQ(course({"run", "--mine", "day01"}), kUsage);
    EXPECT_TRUE(says("add.cu is not there yet: ./course next day01 copies it"));
    EXPECT_EQ(course({"run", "--mine", "day02"}), kUsage);
    EXPECT_TRUE(says("day02_none has no exercises"));
    EXPECT_EQ(course({"run", "day01/first"}), kUsage);
    EXPECT_TRUE(says("./course run --mine day01/first"));
    write_mine("misspelt");
    EXPECT_EQ(course({"run", "--mine", "first"}), kBuildFailed);
    EXPECT_TRUE(says("add.cu:1:misspelt"));
    EXPECT_EQ(runs(), "");
}

TEST_F(Learner, RunMineOfADayOfWholeProgramsRunsThoseWithExercises) {
    directory_.write("build/days.json", R"({"backend": "cpu", "build_type": "Release", "days": [
        {"directory": "day01_add", "number": 1, "topic": "add", "title": "T",
         "programs": [["hello"], ["add", "31"]]}]})");
    write_program("build/bin/day01_add_exercise",
                  "#!/bin/sh\nprintf '%s|' add \"$@\" >>\"$COURSE_ROOT/runs\"\n");
    write_mine("int one() { return 7; }");
    EXPECT_EQ(course({"run", "--mine", "day01"}), kSuccess) << said();
    EXPECT_EQ(runs(), "add|31|");
    EXPECT_EQ(course({"run", "--mine", "first", "5", "6"}), kSuccess) << said();
    EXPECT_EQ(runs(), "add|5|6|");
    EXPECT_EQ(course({"run", "--mine", "day01", "--program", "hello"}), kUsage);
    EXPECT_EQ(course({"run", "--mine", "day01", "--size", "7"}), kUsage);
    EXPECT_TRUE(says("day01_add has whole programs"));
}

// A fake gdb, first in PATH, that records how it was called.
class LearnerWithDebugger : public Learner {
  protected:
    void SetUp() override {
        Learner::SetUp();
        write_program("tools/gdb",
                      "#!/bin/sh\ntest \"$1\" = --version || printf '%s|' \"$@\" >>\"$COURSE_ROOT/runs\"\n");
        path_ = std::getenv("PATH");
        setenv("PATH", ((directory_.path() / "tools").string() + ":" + path_).c_str(), 1);
        const std::string root = directory_.path().string();
        ASSERT_EQ(capture({"cmake", "-S", root, "-B", root + "/build/cpu-debug", "-G", "Ninja"}).exit_code,
                  0);
        directory_.write("build/cpu-debug/days.json", R"({"backend": "cpu", "build_type": "Debug", "days": [
            {"directory": "day01_add", "number": 1, "topic": "add", "title": "T", "small_size": "33"}]})");
    }
    void TearDown() override {
        setenv("PATH", path_.c_str(), 1);
        unsetenv("CUDA_ON_CPU_THREADS");
        unsetenv("CUDA_ON_CPU_TIMEOUT");
        Learner::TearDown();
    }
    std::string break_at(int line) const {
        return "-ex|break " + mine().string() + ":" + std::to_string(line) + "|";
    }

  private:
    std::string path_;
};

TEST_F(LearnerWithDebugger, StopsInTheFirstStatementOnASmallSize) {
    make_first_a_version();
    write_mine("// one\nint one() {\n    // a comment\n\n    return 1;\n}\nvoid two() { }\n");
    EXPECT_EQ(course({"debug", "day01"}), kSuccess) << said();
    const std::string program =
        (directory_.path() / "build/cpu-debug/bin/day01_add_exercise_program").string();
    std::string called = runs();
    EXPECT_NE(called.find(break_at(5) + "-ex|run|--args|" + program + "|--size|33|--only|v|"),
              std::string::npos)
        << called;
    EXPECT_EQ(course({"debug", "second", "--size", "7", "--only", "w"}), kSuccess) << said();
    called = runs();
    EXPECT_NE(called.find(break_at(7) + "-ex|run|--args|" + program + "|--size|7|--only|w|"),
              std::string::npos)
        << called;
}

TEST_F(LearnerWithDebugger, ABuildWithProgramsForItNeedsNoOther) {
    make_first_a_version();
    write_mine("int one() { return 1; }");
    add_variant("debugged", {"day01_add_exercise_program"}, "#!/bin/sh\n");
    EXPECT_EQ(course({"debug", "day01"}), kSuccess) << said();
    EXPECT_NE(runs().find("/build/bin/day01_add_exercise_program_debugged|"), std::string::npos) << said();
}

TEST_F(LearnerWithDebugger, NamesWhatIsMissing) {
    EXPECT_EQ(course({"debug", "first"}), kUsage);
    EXPECT_TRUE(says("./course next day01 copies it"));
    write_mine("int one() {}");
    write_program("tools/gdb", "#!/bin/sh\nexit 127\n");
    EXPECT_EQ(course({"debug", "first"}), kFailed);
    EXPECT_TRUE(says("debug needs gdb, which was not found. Install it: apt-get install gdb"));
}

TEST_F(Learner, AFilterThatMatchesNothingIsNoSuccess) {
    std::string hints = kHints;
    directory_.write("day01_add/exercises.md", hints.replace(hints.find("`*/one`"), 7, "`none`"));
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("the filter 'none' matches no test"));
}

TEST_F(Learner, HintsComeOneByOneAndTheLastStays) {
    for (const char* expected : {"Hint A.", "Hint B.", "Hint C."}) {
        EXPECT_EQ(course({"hint"}), kSuccess);
        EXPECT_TRUE(says(expected));
        EXPECT_FALSE(says("shown before"));
    }
    EXPECT_EQ(course({"hint"}), kSuccess);
    EXPECT_TRUE(says("hint 3 of 3, shown before"));
    EXPECT_TRUE(says("Hint C."));
    EXPECT_EQ(course({"hint", "day01/second"}), kSuccess);
    EXPECT_TRUE(says("Hint D."));
    EXPECT_EQ(record("day01/first").hints, 3);
}

TEST_F(Learner, TheLastHintNamesOnlyCommandsThatRun) {
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(course({"hint", "first"}), kSuccess);
    EXPECT_TRUE(says("That was the last. Now try: ./course check day01/first"));
    EXPECT_TRUE(says("After a check, ./course solution day01/first shows"));
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_EQ(course({"hint", "first"}), kSuccess);
    EXPECT_TRUE(says("That was the last. How the lesson does it: ./course solution day01/first"));
    EXPECT_EQ(course({"solution", "first"}), kSuccess);
}

TEST_F(Learner, TheSolutionIsForThoseWhoTried) {
    EXPECT_EQ(course({"solution"}), kUsage);
    EXPECT_EQ(course({"solution", "--force"}), kSuccess);
    EXPECT_TRUE(says("return 1"));
    EXPECT_EQ(course({"solution", "second", "--force"}), kSuccess);
    EXPECT_TRUE(says("// Idea: two.\nvoid two() { solved_two(); }"));
}

TEST_F(Learner, NothingThatTheLearnerWroteIsLost) {
    write_mine("// my own\nint one() { return 7; }\nvoid two() { mine(); }\n");
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_EQ(course({"solution", "--force", "--paste"}), kSuccess);
    EXPECT_EQ(read_text(mine()), "// my own\nint one() { return 1; }\nvoid two() { mine(); }\n");
    EXPECT_EQ(read_text(mine().string() + ".bak"),
              "// my own\nint one() { return 7; }\nvoid two() { mine(); }\n");

    EXPECT_EQ(course({"check", "first"}), kSuccess);
    EXPECT_EQ(course({"reset", "day01/first"}), kSuccess);
    EXPECT_NE(read_text(mine()).find("TODO day01/first"), std::string::npos);
    EXPECT_NE(read_text(mine()).find("mine();"), std::string::npos);
    EXPECT_EQ(read_text(mine().string() + ".bak2"),
              "// my own\nint one() { return 1; }\nvoid two() { mine(); }\n");
    EXPECT_EQ(record("day01/first"), ExerciseRecord{});

    write_mine("damaged {");
    EXPECT_EQ(course({"solution", "--force", "--paste"}), kFailed);
    EXPECT_TRUE(says("./course reset day01 makes the file anew"));
    EXPECT_EQ(read_text(mine()), "damaged {");
    EXPECT_EQ(course({"reset", "day01"}), kSuccess);
    EXPECT_NE(read_text(mine()).find("TODO day01/first"), std::string::npos);
    EXPECT_NE(read_text(mine()).find("TODO day01/second"), std::string::npos);
    EXPECT_EQ(read_text(mine().string() + ".bak3"), "damaged {");
    EXPECT_EQ(course({"reset", "day01"}), kSuccess);
    EXPECT_FALSE(std::filesystem::exists(mine().string() + ".bak4")) << "nothing to keep";
}

TEST_F(Learner, ResetTellsWhatIsForgotten) {
    EXPECT_EQ(course({"hint"}), kSuccess);
    EXPECT_EQ(course({"reset", "day01"}), kSuccess);
    EXPECT_TRUE(says("day01/first: begins anew; its checks, hints and stars are forgotten"));
    EXPECT_EQ(said().find("day01/second"), std::string::npos) << said();
    EXPECT_EQ(said().find("nothing to do"), said().rfind("nothing to do"))
        << "once for a file of two exercises";
}

TEST_F(Learner, ALinkStaysOne) {
    const auto elsewhere = directory_.write("elsewhere/mine.cu", "int one() {}\nvoid two() {}\n");
    std::filesystem::create_directories(mine().parent_path());
    std::filesystem::create_symlink(elsewhere, mine());
    EXPECT_EQ(course({"solution", "first", "--force", "--paste"}), kSuccess) << said();
    EXPECT_TRUE(std::filesystem::is_symlink(mine()));
    EXPECT_EQ(read_text(elsewhere), "int one() { return 1; }\nvoid two() {}\n");
}

TEST_F(Learner, ADirectoryThatCMakeWouldMisreadIsRefused) {
    for (const char* name : {"/tmp/a;b", "/tmp/[x]", "/tmp/$x"}) {
        setenv("COURSE_MY", name, 1);
        EXPECT_EQ(course({"check"}), kUsage);
        EXPECT_TRUE(says(std::string("COURSE_MY is '") + name));
    }
}

TEST_F(Learner, NamesThatAreNone) {
    EXPECT_EQ(course({"check", "frist"}), kUsage);
    EXPECT_TRUE(says("did you mean 'first'"));
    EXPECT_EQ(course({"check", "day01/secnd"}), kUsage);
    EXPECT_TRUE(says("did you mean 'second'"));
    EXPECT_EQ(course({"hint", "day07"}), kUsage);
    EXPECT_TRUE(says("there is no day 'day07'"));
    EXPECT_EQ(course({"hint", "day02"}), kUsage);
    EXPECT_TRUE(says("day02_none has no exercises"));
    EXPECT_EQ(course({"reset"}), kUsage);
    EXPECT_EQ(course({"hint", "1/second"}), kSuccess);
    EXPECT_EQ(course({"hint", "add/"}), kSuccess);
}

TEST_F(Learner, WatchChecksOnEverySaveUntilAllIsSolved) {
    for (const bool poll : {false, true}) {
        ASSERT_EQ(course({"reset", "day01"}), kSuccess) << said();
        std::thread editor([&] {
            wait_for_a_failure("day01/first");
            write_mine("int one() { return 1; }\nvoid two() {}\n");
            wait_for_a_failure("day01/second");
            write_mine("int one() { return 1; }\nvoid two() { solved_two(); }\n");
        });
        EXPECT_EQ(poll ? course({"watch", "--poll"}) : course({"watch"}), kSuccess);
        editor.join();
        EXPECT_TRUE(says("not yet day01/first"));
        EXPECT_TRUE(says("solved day01/second"));
        EXPECT_TRUE(says("day01 done: 2 exercises solved"));
    }
}

TEST_F(Learner, WatchCancelsACheckThatASaveMadeOutdated) {
    write_mine("int one() { hangs }\nvoid two() {}\n");
    std::thread editor([&] {
        for (int i = 0; i < 600 && !std::filesystem::exists(directory_.path() / "runs"); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        write_mine("int one() { return 1; }\nvoid two() { solved_two(); }\n");
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(course({"watch"}), kSuccess);
    editor.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_EQ(record("day01/first").failures, 0) << "an outdated check is no failure";
    EXPECT_TRUE(says("solved day01/first"));
}

TEST_F(Learner, ExercisesThatCannotBeMadeAreNamed) {
    EXPECT_EQ(course({"exercises", "day01"}), kSuccess);
    EXPECT_TRUE(says("exercises: 2, files: 1"));
    const auto write_hints = [this](const std::string& what, const std::string& instead) {
        std::string hints = kHints;
        const auto at = hints.find(what);
        ASSERT_NE(at, std::string::npos) << what;
        directory_.write("day01_add/exercises.md", hints.replace(at, what.size(), instead));
    };
    write_hints("`two`", "`too`");
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(says("day01/second: add.cu defines no function 'too'"));
    write_hints("`two`", "`one`");
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(says("day01/second: 'one' is blank already"));
    write_hints("- file: `add.cu`\n- tests: `*/two`", "- file: `sub.cu`\n- tests: `*/two`");
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(says("day01/second: there is no day01_add/sub.cu"));

    directory_.write("day01_add/add.cuh", kLesson);
    write_hints("- file: `add.cu`\n- tests: `*/two`", "- file: `add.cuh`\n- tests: `*/two`");
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(says("add.cuh: no file of the day includes it"));
    directory_.write("day01_add/add.cu", std::string("#include \"add.cuh\"\n") + kLesson);
    EXPECT_EQ(course({"exercises"}), kSuccess) << said();
}

TEST_F(Learner, CommandsInTheTextsOfExercisesMustBeOfUse) {
    const auto mistake_of = [this](const std::string& hint) {
        std::string hints = kHints;
        hints.insert(hints.find("- minutes: 1\n"), "- version: `v`\n");
        directory_.write("day01_add/exercises.md", hints.replace(hints.find("Hint C."), 7, hint));
        const int code = course({"exercises"});
        EXPECT_EQ(code, said() == "exercises: 2, files: 1\n" ? kSuccess : kFailed) << said();
        return said();
    };
    EXPECT_EQ(mistake_of("Run `./course check day01/first --inspect` and `./course hint`."),
              "exercises: 2, files: 1\n");
    EXPECT_NE(
        mistake_of("See `./course solution first`.").find("day01/first: `./course solution first` refuses"),
        std::string::npos);
    EXPECT_NE(mistake_of("See `./course inspect day01 --only v`.").find("shows the lesson's kernel"),
              std::string::npos);
    EXPECT_EQ(mistake_of("See `./course inspect day01 --only other`."), "exercises: 2, files: 1\n");
    EXPECT_NE(mistake_of("See `./course check day01/frist`.").find("did you mean 'first'"),
              std::string::npos);
    EXPECT_NE(mistake_of("See `./course check day01/second --inspect`.").find("day01/second is no version"),
              std::string::npos);
}

TEST_F(Learner, AHuntStartsFromAFileThatAPersonWrote) {
    directory_.write("day01_add/broken/add.cu", "int one() { return 2; }\n");
    std::string hints = kHints;
    hints.resize(hints.find("## second"));
    hints.replace(hints.find("- kernels: `one`"), 16, "- starts_from: `broken/add.cu`");
    directory_.write("day01_add/exercises.md", hints);
    EXPECT_EQ(course({"next"}), kSuccess);
    EXPECT_EQ(read_text(mine()), "int one() { return 2; }\n");
    EXPECT_EQ(course({"exercises"}), kSuccess) << said();
    directory_.write("day01_add/broken/old.cu", "");
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(says("old.cu: no exercise names it"));
}

// Two files to repair, each with a cause.
class Verdicts : public Learner {
  protected:
    void SetUp() override {
        Learner::SetUp();
        directory_.write("day01_add/crimes/add.cu", "// Verdict: ?, line ?\nint one() {\n    return 2;\n}\n");
        directory_.write("day01_add/crimes/more.cu", "// Verdict: ?, line ?\nint two() { return 1; }\n");
        directory_.write("day01_add/add.cu", text("wrong number, line 3", 1));
        directory_.write("day01_add/more.cu", "// Verdict: wrong name, line 2\n");
        std::string hints = kHints;
        hints.replace(hints.find("- kernels: `one`"), 16,
                      "- starts_from: `crimes/add.cu`\n- cause: wrong number | `return 2`");
        hints.replace(hints.find("- kernels: `two`\n- file: `add.cu`"), 33,
                      "- starts_from: `crimes/more.cu`\n- file: `more.cu`\n- cause: wrong name | `two()`");
        write_sheet(hints);
        course({"next"});
    }
    void write_sheet(const std::string& hints) const { directory_.write("day01_add/exercises.md", hints); }
    static std::string text(const std::string& verdict, int result) {
        return fmt::format("// Verdict: {}\nint one() {{\n    return {};\n}}\n", verdict, result);
    }
    std::string state() {
        const std::string verdicts = (directory_.path() / "verdicts.json").string();
        course({"check", "first", "--json", verdicts.c_str()});
        return nlohmann::json::parse(read_text(verdicts)).at(0).at("cause");
    }
};

TEST_F(Verdicts, ATaskSaysHowToNameTheCause) {
    EXPECT_TRUE(says("The file as you got it: day01_add/crimes/add.cu\n")) << said();
    EXPECT_TRUE(says("The causes of this day: wrong name; wrong number\n"));
    EXPECT_EQ(read_text(mine()), text("?, line ?", 2));
}

TEST_F(Verdicts, AreJudgedBeforeTheTests) {
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("not yet day01/first: its verdict is still open"));
    for (const char* const wrong : {"wrong name, line 3", "wrong number, line 2", "gremlins, line 3"}) {
        write_mine(text(wrong, 1));
        EXPECT_EQ(course({"check", "first"}), kFailed) << wrong;
        EXPECT_TRUE(says("not yet day01/first: "));
        EXPECT_EQ(said().find("solved"), std::string::npos) << said();
        EXPECT_TRUE(says("The evidence: ./course run "));
        EXPECT_TRUE(says("A hint: ./course hint day01/first"));
    }
    EXPECT_FALSE(std::filesystem::exists(directory_.path() / "runs")) << "a test has run";
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{false, 4, 0, 0, false}));
}

TEST_F(Verdicts, OneThatIsRightDoesNotSolveTheExercise) {
    write_mine(text("wrong number, line 3", 2));
    EXPECT_EQ(course({"check", "first"}), kFailed);
    EXPECT_TRUE(says("the verdict on day01/first is right: wrong number, line 3"));
    EXPECT_TRUE(says("not yet day01/first: this one fails"));
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{false, 1, 0, 0, true}));
    course({"progress"});
    EXPECT_TRUE(says("1 failed check            cause found")) << said();
    write_mine("// my notes\n\n" + text("wrong number, line 3", 1));
    EXPECT_EQ(course({"check", "first"}), kSuccess) << "lines are those of the given file: " << said();
    EXPECT_EQ(record("day01/first"), (ExerciseRecord{true, 1, 0, 1, true}));
}

TEST_F(Verdicts, TheEvidenceIsShownThatWasAskedFor) {
    if (capture({"g++", "-v"}).exit_code != 0) GTEST_SKIP() << "inspection wants g++";
    std::string sheet = read_text(directory_.path() / "day01_add/exercises.md");
    KernelInspection kernel;
    kernel.blocks = kernel.inspected_blocks = 1;
    kernel.lines = {shared_load(4, 32, stride(128))};
    make_inspection(kernel);
    write_sheet(sheet.insert(sheet.find("- minutes: 1\n"), "- version: `v`\n"));
    const std::string page = (directory_.path() / "page.html").string();
    EXPECT_EQ(course({"check", "first", "--inspect", "--html", page.c_str()}), kFailed);
    EXPECT_TRUE(says("32 lanes hit bank 0: a column of a 32-wide tile."));
    EXPECT_TRUE(says("its verdict is still open"));
    EXPECT_TRUE(says("The evidence: ./course check day01/first --inspect"));
    EXPECT_FALSE(std::filesystem::exists(page) && !read_text(page).empty()) << "it would show the solution";
}

TEST_F(Verdicts, StoredCountersAreTheFirstEvidence) {
    std::string sheet = read_text(directory_.path() / "day01_add/exercises.md");
    write_sheet(sheet.insert(sheet.find("- minutes: 1\n"), "- version: `first_repaired`\n"));
    const auto store_counters_of = [&](const std::string& version) {
        directory_.write("docs/measurements/h200/day01_add.counters.jsonl",
                         "{\"device\": \"NVIDIA H200\"}\n{\"version\": \"" + version + "\"}\n");
        EXPECT_EQ(course({"check", "first"}), kFailed);
    };
    store_counters_of("first");
    EXPECT_TRUE(
        says("The evidence: ./course profile day01 --only first, ./course check day01/first --inspect\n"))
        << said();
    store_counters_of("first_repaired");
    EXPECT_TRUE(says("The evidence: ./course check day01/first --inspect\n")) << said();
}

TEST_F(Verdicts, OtherFilesToRepairAreNotBlamed) {
    directory_.write("mine/day01_add/more.cu", "// Verdict: wrong name, line 2\n");
    EXPECT_EQ(course({"check", "second"}), kFailed);
    EXPECT_TRUE(says("the verdict on day01/second is right"));
    EXPECT_EQ(said().find("Still blank"), std::string::npos) << said();
}

TEST_F(Verdicts, AreInTheJson) {
    EXPECT_EQ(state(), "open");
    write_mine(text("gremlins, line 3", 1));
    EXPECT_EQ(state(), "unknown");
    write_mine(text("wrong name, line 3", 1));
    EXPECT_EQ(state(), "wrong");
    write_mine(text("wrong number, line 2", 1));
    EXPECT_EQ(state(), "wrong line");
    course({"progress", "--json"});
    EXPECT_EQ(nlohmann::json::parse(said()).at(0).at("cause"), "open");
    write_mine(text("wrong number, line 3", 1));
    EXPECT_EQ(state(), "right");
    course({"progress", "--json"});
    EXPECT_EQ(nlohmann::json::parse(said()).at(0).at("cause"), "found");
    write_sheet(kHints);
    course({"reset", "day01"});
    write_mine(kLesson);
    EXPECT_EQ(state(), "") << "an exercise without a cause";
}

TEST_F(Verdicts, AuthorsAreToldWhatCannotBeJudged) {
    EXPECT_EQ(course({"exercises"}), kSuccess) << said();
    directory_.write("day01_add/add.cu", text("wrong number, line 2", 1));
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(says("day01_add/first: the verdict of add.cu is not right"));
    directory_.write("day01_add/crimes/add.cu", text("?, line ?", 3));
    EXPECT_EQ(course({"exercises"}), kFailed);
    EXPECT_TRUE(
        says("day01_add/first: 'return 2' of the cause 'wrong number' is on 0 lines of crimes/add.cu"));
}

}  // namespace
}  // namespace course::tool
