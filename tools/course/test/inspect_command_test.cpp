// ./course inspect on a made-up project: there is nothing to compile, and the day's program is a
// script that writes made-up figures.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "command_line.hpp"
#include "errors.hpp"
#include "inspect_example.hpp"
#include "inspect_trace.hpp"
#include "subprocess.hpp"
#include "temporary_directory.hpp"
#include "variable.hpp"

namespace course::tool {
namespace {

InspectionFile figures(std::vector<Finding> findings) {
    return {
        .day = "day01_vector_add",
        .commit = "abc",
        .results = {{.problem = "p",
                     .version = "v",
                     .verified = true,
                     .kernels = {{.name = "add",
                                  .launches = 1,
                                  .blocks = 1,
                                  .inspected_blocks = 1,
                                  .threads_per_block = 32,
                                  .lines = {global_load(4, 4, stride(4)), shared_load(4, 32, stride(128))},
                                  .findings = std::move(findings)}}}}};
}

class Inspect : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.25)\nproject(made_up NONE)\n"
            "add_custom_target(day01_vector_add_program)\n"
            "add_custom_target(day02_broken_program COMMAND echo the compiler said this COMMAND false)\n");
        directory_.write("CMakePresets.json", R"({"version": 6, "configurePresets": [
            {"name": "inspect", "generator": "Ninja", "binaryDir": "${sourceDir}/build/inspect"}]})");
        directory_.write("build/cpu/days.json", R"({"backend": "cpu", "build_type": "Debug", "days": [
            {"directory": "day01_vector_add", "number": 1, "topic": "vector_add", "title": "T"},
            {"directory": "day02_broken", "number": 2, "topic": "broken", "title": "B"}
        ]})");
        executable("build/inspect/bin/day01_vector_add",
                   "printf '%s|' \"$@\" >\"$COURSE_ROOT/arguments\"\n"
                   "echo the program said this\n"
                   "[ -z \"$SIGNAL\" ] || kill -\"$SIGNAL\" $$\n"
                   "[ ! -f \"$COURSE_ROOT/figures.json\" ] || cp \"$COURSE_ROOT/figures.json\" \"$2\"\n"
                   "exit ${EXIT_CODE:-0}\n");
        executable("tools/g++", "echo gcc version 12.2.0\n");
        write_figures({});
    }

    void executable(const char* name, const std::string& script) {
        std::filesystem::permissions(directory_.write(name, "#!/bin/sh\n" + script),
                                     std::filesystem::perms::owner_all);
    }
    void write_figures(std::vector<Finding> findings) {
        directory_.write("figures.json", to_json(figures(std::move(findings))).dump());
    }
    // The exit code; what was printed is in output_ and messages_.
    int inspect(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"./course", "inspect"});
        std::vector<const char*> argv;
        for (const std::string& argument : arguments)
            argv.push_back(argument.c_str());
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int exit_code =
            run_command_line(static_cast<int>(argv.size()), argv.data(),
                             {bench_day, show_profile, update_tables, try_exercises, new_day});
        output_ = testing::internal::GetCapturedStdout();
        messages_ = testing::internal::GetCapturedStderr();
        return exit_code;
    }
    std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
    bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }
    static bool contains(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }

    TemporaryDirectory directory_;
    Variable root_{"COURSE_ROOT", directory_.path().string()};
    Variable build_{"COURSE_BUILD_DIR", path("build/cpu")};
    Variable search_{"PATH", path("tools") + ":" + std::getenv("PATH")};
    Variable compiler_{"CXX", ""};
    Variable exit_code_{"EXIT_CODE", "0"};
    Variable signal_{"SIGNAL", ""};
    std::string output_;
    std::string messages_;
};

TEST_F(Inspect, BuildsRunsAndShowsInADirectoryOfItsOwn) {
    EXPECT_EQ(inspect({"1", "--size", "64", "--only", "v"}), kSuccess) << messages_;
    EXPECT_TRUE(exists("build/inspect/build.ninja"));
    const std::string arguments = read_text(path("arguments"));
    EXPECT_TRUE(arguments.starts_with("--inspect|" + path("build/inspect/inspections/day01_vector_add.")))
        << arguments;
    EXPECT_TRUE(arguments.ends_with(".json|--size|64|--only|v|")) << arguments;
    EXPECT_TRUE(contains(output_, "32 lanes hit bank 0")) << output_;
    EXPECT_TRUE(contains(output_, "no findings"));
    EXPECT_TRUE(std::filesystem::is_empty(path("build/inspect/inspections"))) << "the program's own file";
    EXPECT_TRUE(contains(messages_, "configuring")) << messages_;

    EXPECT_EQ(inspect({"vector_add"}), kSuccess);
    EXPECT_FALSE(contains(messages_, "configuring")) << "once is enough";
}

TEST_F(Inspect, AnnouncesADaysFirstBuildOnly) {
    EXPECT_EQ(inspect({"day02"}), kBuildFailed) << messages_;
    EXPECT_TRUE(contains(messages_, "the first inspection of day02_broken")) << messages_;
    EXPECT_EQ(inspect({"day01"}), kSuccess);
    EXPECT_FALSE(contains(messages_, "the first inspection")) << "it was built before: " << messages_;
}

TEST_F(Inspect, HandsTheProgramsOwnOptionsOver) {
    EXPECT_EQ(inspect({"day01", "--size", "3", "--sigma", "4", "--size", "5"}), kSuccess);
    EXPECT_TRUE(read_text(path("arguments")).ends_with("|--size|3|--sigma|4|--size|5|"));
}

TEST_F(Inspect, FindingsAreOne) {
    write_figures(
        {{.kind = "race", .source = {"a.cu", 7}, .message = "m", .why = "w", .other = {}, .count = 1}});
    EXPECT_EQ(inspect({"day01"}), kFailed);
    EXPECT_TRUE(contains(output_, "1 finding"));
}

TEST_F(Inspect, AnnouncesTheFirstBuildForAProgramOfYours) {
    directory_.write("mine.cu", "int main() {}\n");
    inspect({path("mine.cu")});
    EXPECT_TRUE(contains(messages_, "the first inspection builds what watches")) << messages_;
}

TEST_F(Inspect, AWrongResultIsOneAndIsShown) {
    setenv("EXIT_CODE", "1", 1);
    EXPECT_EQ(inspect({"day01"}), kFailed);
    EXPECT_TRUE(contains(output_, "32 lanes hit bank 0"));
    EXPECT_TRUE(contains(messages_, "the program said this"));
}

TEST_F(Inspect, WhatTheProgramRefusesIsWrongUsage) {
    setenv("EXIT_CODE", "2", 1);
    std::filesystem::remove(path("figures.json"));
    EXPECT_EQ(inspect({"day01", "--only", "x"}), kUsage);
    EXPECT_TRUE(contains(messages_, "the program said this"));
    EXPECT_EQ(output_, "");
}

TEST_F(Inspect, AProgramThatDies) {
    setenv("SIGNAL", "SEGV", 1);
    EXPECT_EQ(inspect({"day01"}), 128 + SIGSEGV);
    setenv("SIGNAL", "", 1);
    setenv("EXIT_CODE", "1", 1);
    std::filesystem::remove(path("figures.json"));
    EXPECT_EQ(inspect({"day01"}), kFailed);
    EXPECT_TRUE(contains(messages_, "day01_vector_add wrote no figures")) << messages_;
    directory_.write("figures.json", "{\"day\": 1}");
    EXPECT_EQ(inspect({"day01"}), kFailed);
    EXPECT_TRUE(contains(messages_, "not an inspection")) << messages_;
}

TEST_F(Inspect, WritesThePageAndTheFiguresWithTheirSentences) {
    EXPECT_EQ(inspect({"day01", "--html", path("new/page.html"), "--json", path("new/all.json")}), kSuccess);
    EXPECT_TRUE(contains(read_text(path("new/page.html")), "32 lanes hit bank 0"));
    const auto json = nlohmann::ordered_json::parse(read_text(path("new/all.json")));
    const auto& lines = json.at("results").at(0).at("kernels").at(0).at("lines");
    EXPECT_EQ(lines.at(0).at("sentence"), "32 adjacent elements of 4 bytes: 4 sectors, as few as possible.");
    EXPECT_EQ(lines.at(1).at("sentence"),
              "32 lanes hit bank 0: a column of a 32-wide tile. Pad the row by one word.");
    EXPECT_EQ(inspection_file_from_json(json), figures({})) << "nothing but the sentences is new";
}

TEST_F(Inspect, WritesTheTraceOfEachKernel) {
    EXPECT_EQ(inspect({"day01", "--trace", path("new/trace.jsonl")}), kSuccess);
    EXPECT_TRUE(read_text(path("arguments")).ends_with("|--trace|"));
    EXPECT_EQ(read_text(path("new/trace.jsonl")), "") << "no kernel has one";

    InspectionFile file = figures({});
    const std::string source = "one\ntwo\nthree\n";
    directory_.write("day/kernel.cu", source);
    const TraceStep load{.source = {"day/kernel.cu", 3},
                         .kind = "load",
                         .lanes = 0x7,
                         .bytes = 4,
                         .transactions = 2,
                         .ideal = 1,
                         .offsets = {0, 4, 64},
                         .array = "in"};
    file.results[0].kernels[0].trace = WarpTrace{.block = {1, 2, 3},
                                                 .warp = 4,
                                                 .steps = 9,
                                                 .recorded = {load,
                                                              load,
                                                              {.source = {"day/kernel.cu", 2},
                                                               .kind = "barrier",
                                                               .lanes = 1,
                                                               .repeats = 5,
                                                               .offsets = {},
                                                               .array = {}},
                                                              {.source = {"day/kernel.cu", 2},
                                                               .kind = "bulk_load",
                                                               .lanes = 2,
                                                               .bytes = 4096,
                                                               .offsets = {},
                                                               .array = {}}}};
    directory_.write("figures.json", to_json(file).dump());
    EXPECT_EQ(inspect({"day01", "--trace", path("new/trace.jsonl")}), kSuccess) << messages_;
    const auto trace = nlohmann::ordered_json::parse(read_text(path("new/trace.jsonl")));
    EXPECT_EQ(trace.at("version"), "v");
    EXPECT_EQ(trace.at("kernel"), "add");
    EXPECT_EQ(trace.at("sources"), (nlohmann::json{{"day/kernel.cu", text_hash(source)}}));
    EXPECT_EQ(trace.at("block").dump(), "[1,2,3]");
    EXPECT_EQ(trace.at("steps"), 9);
    EXPECT_EQ(trace.at("lines").size(), 2u);
    EXPECT_EQ(trace.at("places").size(), 3u) << "equal places are stored once";
    EXPECT_EQ(trace.at("places")[2].dump(),
              R"({"file":"day/kernel.cu","line":2,"kind":"bulk_load","bytes":4096})");
    EXPECT_EQ(trace.at("recorded").dump(), "[[0,7,2,1,0,0,1,4,60,2],[0,7,2,1,0,0,1,4,60,2],[1,1],[2,2]]");
    EXPECT_EQ(trace.at("repeats").dump(), "[[2,5]]");
}

TEST(RunsOf, AreLinesOfOffsets) {
    using Offsets = std::vector<std::int64_t>;
    EXPECT_EQ(runs_of({}), Offsets{});
    EXPECT_EQ(runs_of({-1, -1, 8}), (Offsets{8, 0, 1}));
    EXPECT_EQ(runs_of({-1, 8, -1, 0}), (Offsets{8, -8, 2}));
    EXPECT_EQ(runs_of({5, 5, 5, 5}), (Offsets{5, 0, 4}));
    EXPECT_EQ(runs_of({0, 4, 8, 128, 132, 136}), (Offsets{0, 4, 3, 128, 4, 3}));
    EXPECT_EQ(runs_of({7, 0, 4, 8}), (Offsets{7, 0, 1, 0, 4, 3}));
}

TEST(TextHash, IsThatOfFnv) {
    // Published values of FNV-1a, which scripts/record_traces.py calculates, too.
    EXPECT_EQ(text_hash(""), "cbf29ce484222325");
    EXPECT_EQ(text_hash("a"), "af63dc4c8601ec8c");
    EXPECT_EQ(text_hash("foobar"), "85944171f73967e8");
}

TEST_F(Inspect, AProgramOfYoursHasNoTrace) {
    directory_.write("mine.cu", "int main() {}\n");
    EXPECT_EQ(inspect({path("mine.cu"), "--trace", path("trace.jsonl")}), kUsage);
    EXPECT_TRUE(contains(messages_, "expected a day, not '" + path("mine.cu"))) << messages_;
}

TEST_F(Inspect, AFileThatCannotBeWrittenIsNamedBeforeAnythingIsBuilt) {
    directory_.write("file", "");
    for (const char* option : {"--html", "--json", "--trace"}) {
        EXPECT_EQ(inspect({"day01", option, path("file/below.html")}), kUsage);
        EXPECT_TRUE(contains(messages_, std::string(option) + ": cannot write '" + path("file/below.html")))
            << messages_;
        EXPECT_EQ(inspect({"day01", option, path("build")}), kUsage) << "a directory";
        EXPECT_TRUE(contains(messages_, path("build"))) << messages_;
    }
    EXPECT_EQ(inspect({"day01", "--html", path("same"), "--json", path("same")}), kUsage);
    EXPECT_EQ(inspect({"day01", "--json", path("same"), "--trace", path("same")}), kUsage);
    EXPECT_TRUE(contains(messages_, "--json and --trace are both '" + path("same"))) << messages_;
    EXPECT_FALSE(exists("same"));
    EXPECT_FALSE(exists("build/inspect/build.ninja"));
}

TEST_F(Inspect, AnOldFileStaysWhenNothingNewIsMade) {
    const auto page = directory_.write("page.html", "old");
    setenv("EXIT_CODE", "2", 1);
    EXPECT_EQ(inspect({"day01", "--html", page.string()}), kUsage);
    EXPECT_EQ(read_text(page), "old");
}

TEST_F(Inspect, ADayThatIsNotThereIsWrongUsage) {
    EXPECT_EQ(inspect({"vektor_ad"}), kUsage);
    EXPECT_TRUE(contains(messages_, "nearest is day01_vector_add")) << messages_;
    EXPECT_EQ(inspect({}), kUsage);
    EXPECT_FALSE(exists("build/inspect/build.ninja"));
}

TEST_F(Inspect, WithoutGccItSaysWhatIsMissing) {
    executable("tools/clang++", "echo clang version 14\n");
    setenv("CXX", "clang++", 1);
    executable("tools/g++", "echo clang version 14, under the name of g++\n");
    EXPECT_EQ(inspect({"day01"}), kBuildFailed);
    EXPECT_TRUE(contains(messages_, "needs g++")) << messages_;

    executable("tools/my-gcc", "echo gcc version 13\n");
    setenv("CXX", "my-gcc", 1);
    EXPECT_EQ(inspect({"day01"}), kSuccess) << messages_;
    EXPECT_TRUE(contains(read_text(path("build/inspect/CMakeCache.txt")), "CMAKE_CXX_COMPILER")) << messages_;
}

TEST_F(Inspect, AFailedBuildIsThree) {
    EXPECT_EQ(inspect({"day02"}), kBuildFailed);
    EXPECT_TRUE(contains(messages_, "the compiler said this")) << messages_;
    directory_.write("CMakeLists.txt", "message(FATAL_ERROR \"CMake said this\")\n");
    std::filesystem::remove(path("build/inspect/build.ninja"));
    EXPECT_EQ(inspect({"day01"}), kBuildFailed);
    EXPECT_TRUE(contains(messages_, "CMake said this")) << messages_;
}

}  // namespace
}  // namespace course::tool
