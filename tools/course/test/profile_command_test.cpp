// ./course profile on a made-up project: stored counters, and a day's program that writes made-up
// figures of an inspection.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "common/bench/machine.hpp"
#include "common/test/device_test.hpp"
#include "errors.hpp"
#include "inspect_example.hpp"
#include "subprocess.hpp"
#include "temporary_directory.hpp"
#include "variable.hpp"

namespace course::tool {
namespace {

constexpr const char* kHeader =
    R"({"format":"course counters 1","day":"day01_vector_add","device":"NVIDIA H200","driver":"580","cuda":"13.0","ncu":"2025.3.1","commit":"0123","date":"2026-11-29T00:00:00Z"})"
    "\n";

std::string kernel_line(const char* problem, const char* version, const char* kernel, double us,
                        double memory) {
    return fmt::format(
        R"({{"problem":"{}","version":"{}","kernel":"{}","launches":1,"us":{},"busy":{{"memory":{},"L2":50,"issue":11}},"stalls":{{"long_scoreboard":0.91,"wait":0.05}},"MHz":1980,"highest_MHz":1980,"active":100,"occupancy":80.2,"largest_occupancy":100,"occupancy_limit":"warps","sectors_per_load":16,"bank_conflicts":0,"local_loads":0,"local_stores":0,"registers":32,"limited_by":"{}"}})"
        "\n",
        problem, version, kernel, us, memory, memory >= 60 ? "memory" : "latency");
}

// What Nsight Compute prints of one kernel, and an ncu that prints it.
constexpr const char* kNcuTable =
    R"csv("ID","thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread","dram__throughput.avg.pct_of_peak_sustained_elapsed","sm__inst_issued.avg.pct_of_peak_sustained_elapsed","sm__inst_issued.avg.pct_of_peak_sustained_active","sm__cycles_elapsed.avg.per_second","sm__warps_active.avg.pct_of_peak_sustained_active","sm__maximum_warps_per_active_cycle_pct","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","launch__occupancy_limit_warps","device__attribute_clock_rate"
"","","","ns","","%","%","%","hz","%","%","","block","kHz"
"0","""<default domain>:add 2^28 / plain:none:none:none:none:none:none""","void add<4>(float *)","1000","40","77","30","40","1980000000","50","60","6","8","1980000"
)csv";
constexpr const char* kNcu = R"(
case "$1" in
    --version) echo "Version 2025.3.1.0" ;;
    --query-metrics) echo "dram__throughput  Counter  %" ;;
    *) printf '%s|' "$@" >"$COURSE_ROOT/arguments"
       while [ "$1" != --log-file ]; do shift; done
       cat "$COURSE_ROOT/log" >"$2"
       [ -z "$NCU_FAILS" ] ;;
esac
)";
constexpr const char* kMadeUpNvcc = R"(
while [ $# -gt 0 ]; do
    case $1 in -o) : >"$2" ;; -MF) echo "made:" >"$2" ;; esac
    shift
done
)";

class ProfileCommand : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write("CMakeLists.txt",
                         "cmake_minimum_required(VERSION 3.25)\nproject(made_up NONE)\n"
                         "add_custom_target(day01_vector_add_program)\n");
        directory_.write("CMakePresets.json", R"({"version": 6, "configurePresets": [
            {"name": "inspect", "generator": "Ninja", "binaryDir": "${sourceDir}/build/inspect"}]})");
        directory_.write("build/cpu/days.json", R"({"backend": "cpu", "build_type": "Debug", "days": [
            {"directory": "day01_vector_add", "number": 1, "topic": "vector_add", "title": "T"},
            {"directory": "day02_other", "number": 2, "topic": "other", "title": "O"},
            {"directory": "day03_host", "number": 3, "topic": "host", "title": "H",
             "no_counters": "Host code. Look at the timeline."}]})");
        directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl",
                         kHeader + kernel_line("add 2^10", "plain", "add", 2, 1) +
                             kernel_line("add 2^28", "plain", "prepare", 9, 1) +
                             kernel_line("add 2^28", "plain", "add", 740, 92) +
                             kernel_line("add 2^28", "float4", "add_float4", 1500, 40));
        directory_.write(
            "docs/measurements/h200/day01_vector_add.jsonl",
            R"({"format":"course records 1","day":"day01_vector_add","dtype":"float","role":"ours","spread_ms":0.1,"bytes":3e9,"flops":0,"percent_of_limit":null,"verified":true,"device":"d","driver":"1","cuda":"13.0","commit":"c","date":"2026-11-21","limit_bytes_per_second":4e12}
{"problem":"add 2^20","version":"plain","median_ms":5,"l2":"warm"}
{"problem":"add 2^10","version":"float4","median_ms":1,"l2":"warm"}
{"problem":"add 2^20","version":"float4","median_ms":2,"l2":"warm"}
{"problem":"add 2^22","version":"float4","median_ms":3,"l2":"flushed"}
{"problem":"add 2^28","version":"plain","median_ms":9,"l2":"flushed"}
{"problem":"add 2^28","version":"plain","median_ms":0.75,"l2":"warm"}
)");
        std::filesystem::create_directory_symlink(std::filesystem::path(CHECKOUT) / "scripts",
                                                  directory_.path() / "scripts");
        executable("tools/g++", "echo gcc version 12.2.0\n");
    }

    void executable(const std::string& name, const std::string& script) {
        std::filesystem::permissions(directory_.write(name, "#!/bin/sh\n" + script),
                                     std::filesystem::perms::owner_all);
    }
    // Builds the day's inspection, whose program knows the version `plain`.
    void build_inspection() {
        KernelInspection kernel = example_kernel();
        kernel.name = "day01::add [with int N = 4]";
        const InspectionFile file{
            .day = "day01_vector_add",
            .commit = "abc",
            .results = {{.problem = "add 1000", .version = "plain", .verified = true, .kernels = {kernel}},
                        {.problem = "add 1000", .version = "float4", .cannot_run = "Not on this machine."}}};
        directory_.write("figures.json", to_json(file).dump());
        executable(
            "build/inspect/bin/day01_vector_add",
            "printf '%s|' \"$@\" >>\"$COURSE_ROOT/arguments\"\ncp \"$COURSE_ROOT/figures.json\" \"$2\"\n");
    }
    // From now on the build is one for a GPU, which is measured by a made-up ncu.
    void have_a_gpu() {
        executable("tools/ncu", kNcu);
        executable("tools/nvcc", kMadeUpNvcc);
        directory_.write("log", kNcuTable);
        const std::string days = path("build/cpu/days.json");
        std::string text = read_text(days);
        text.replace(text.find("\"cpu\""), 5, "\"gpu\"");
        directory_.write(days, text);
        const Captured configured = capture({"cmake", "-S", path(""), "-B", path("build/cpu"), "-G", "Ninja",
                                             "-DCOURSE_NVCC:FILEPATH=" + path("tools/nvcc")});
        ASSERT_EQ(configured.exit_code, 0) << configured.output;
    }
    std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
    // The exit code; what was printed is in output_ and messages_.
    int profile(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "profile");
        return course(std::move(arguments));
    }
    int course(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "./course");
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
    static bool contains(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }

    TemporaryDirectory directory_;
    Variable root_{"COURSE_ROOT", directory_.path().string()};
    Variable build_{"COURSE_BUILD_DIR", (directory_.path() / "build/cpu").string()};
    Variable search_{"PATH", (directory_.path() / "tools").string() + ":" + std::getenv("PATH")};
    Variable compiler_{"CXX", ""};
    std::string output_;
    Variable fails_{"NCU_FAILS", ""};
    std::string messages_;
};

TEST_F(ProfileCommand, ShowsTheStoredCountersOfEachVersion) {
    EXPECT_EQ(profile({"1"}), kSuccess) << messages_;
    EXPECT_TRUE(contains(output_, "=== plain, add 2^28, NVIDIA H200\n"))
        << "the longest problem: " << output_;
    EXPECT_TRUE(contains(output_, "limited by memory: memory is 92 % busy, and from 60 %")) << output_;
    EXPECT_TRUE(contains(output_, "unprofiled          750 µs")) << "warm, not flushed: " << output_;
    EXPECT_TRUE(contains(output_, "prepare 9.00 µs (latency)")) << output_;
    EXPECT_TRUE(contains(output_, "=== float4, add 2^28")) << output_;
    EXPECT_TRUE(contains(output_, "unprofiled          2.00 ms for add 2^20")) << "the longest: " << output_;
    EXPECT_TRUE(contains(output_, "limited by latency: no unit is 60 % busy (memory is 40 % busy)"))
        << output_;
    EXPECT_TRUE(contains(output_, "./course profile 1 --inspect")) << output_;
    EXPECT_TRUE(contains(output_, "Counted by Nsight Compute 2025.3.1 on NVIDIA H200")) << output_;
    EXPECT_FALSE(std::filesystem::exists(directory_.path() / "build/inspect"))
        << "a build without being asked";
}

TEST_F(ProfileCommand, AnInspectionThatIsBuiltStandsBesideThem) {
    build_inspection();
    EXPECT_EQ(profile({"day01", "--only", "plain"}), kSuccess) << messages_;
    EXPECT_TRUE(contains(read_text(directory_.path() / "arguments"), ".json|--only|plain|"));
    EXPECT_TRUE(contains(output_, "inspected here, add 1000")) << output_;
    EXPECT_TRUE(contains(output_, "    sectors per load              16.00                           4.00\n"))
        << output_;
    EXPECT_FALSE(contains(output_, "float4,")) << output_;
    EXPECT_EQ(profile({"day01", "--only", "float4"}), kSuccess);
    EXPECT_TRUE(contains(output_, "Not on this machine.")) << output_;
}

TEST_F(ProfileCommand, ComparesTwoVersions) {
    EXPECT_EQ(profile({"day01", "--compare", "plain", "float4"}), kSuccess) << messages_;
    EXPECT_TRUE(contains(output_, "limited by              memory")) << output_;
    EXPECT_TRUE(contains(output_, "busy: memory            92 %")) << output_;
    EXPECT_TRUE(contains(output_, "-52 points")) << output_;
    EXPECT_EQ(profile({"day01", "--compare", "plain", "--only", "plain"}), kUsage);
    EXPECT_EQ(profile({"day01", "--compare", "plain", "plain"}), kUsage);
    EXPECT_TRUE(contains(messages_, "--compare: 'plain' stands there twice; expected two versions"))
        << messages_;
}

TEST_F(ProfileCommand, NamesTheDamagedLineOfAFile) {
    const auto message = [&](const std::string& text) {
        directory_.write("docs/measurements/h200/day01_vector_add.counters.jsonl", text);
        EXPECT_EQ(profile({"1"}), kFailed) << output_;
        return messages_;
    };
    const std::string header = kHeader;
    const std::string good = kernel_line("add 2^28", "plain", "add", 740, 92);
    EXPECT_TRUE(contains(message(header + good + good.substr(0, 90)), ".counters.jsonl: line 3: "))
        << messages_;
    std::string damaged = good;
    damaged.replace(damaged.find("740"), 3, "NaN");
    EXPECT_TRUE(contains(message(header + damaged + good), ".counters.jsonl: line 2: ")) << messages_;
    damaged = good;
    damaged.replace(damaged.find("\"us\""), 4, "\"ns\"");
    EXPECT_TRUE(contains(message(header + good + damaged), "line 3: ")) << messages_;
    EXPECT_TRUE(contains(messages_, "key 'us' not found")) << messages_;
    for (const std::string& headless : {good, std::string("7\n"), std::string()})
        EXPECT_TRUE(contains(message(headless), "line 1: expected a header")) << messages_;
    EXPECT_TRUE(contains(message(header), "no kernel behind the header")) << messages_;
}

TEST_F(ProfileCommand, AGpuIsMeasuredNow) {
    if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    have_a_gpu();
    EXPECT_EQ(profile({"day01", "--only", "plain"}), kSuccess) << messages_;
    EXPECT_TRUE(contains(messages_, "scripts/counters.py --header")) << messages_;
    const std::string arguments = read_text(path("arguments"));
    EXPECT_TRUE(contains(arguments, path("build/cpu/bin/day01_vector_add") + "|--bench|--profile|"))
        << arguments;
    EXPECT_TRUE(arguments.ends_with("|--only|plain|")) << arguments;
    EXPECT_TRUE(contains(output_, "limited by memory: memory is 77 % busy")) << output_;
    EXPECT_TRUE(contains(output_, "Counted by Nsight Compute 2025.3.1 on " + this_machine().device))
        << output_;

    EXPECT_EQ(profile({"day01", "--only", "plain", "--gpu", "h200"}), kSuccess) << messages_;
    EXPECT_TRUE(contains(output_, "memory is 92 % busy")) << "the stored counters: " << output_;
}

TEST_F(ProfileCommand, KernelsOfAProgramOfYoursAreMeasured) {
    if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    have_a_gpu();
    directory_.write("mine.cu", "");
    EXPECT_EQ(profile({path("mine.cu"), "--", "7", "--only"}), kSuccess) << messages_;
    EXPECT_TRUE(read_text(path("arguments")).ends_with("/mine|7|--only|")) << read_text(path("arguments"));
    EXPECT_TRUE(contains(output_, "=== add, the whole program, ")) << output_;
    EXPECT_TRUE(contains(output_, "./course inspect " + path("mine.cu"))) << output_;
    EXPECT_EQ(profile({path("mine.cu"), "--only", "ad"}), kUsage);
    EXPECT_TRUE(contains(messages_, "unknown kernel 'ad': did you mean 'add'?")) << messages_;
    EXPECT_EQ(profile({path("mine.cu"), "--gpu", "h200"}), kUsage);
    EXPECT_EQ(profile({path("yours.cu")}), kUsage);
    EXPECT_TRUE(contains(messages_, "there is no file")) << messages_;
}

TEST_F(ProfileCommand, WithoutPermissionItSaysWhatPermits) {
    if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    have_a_gpu();
    directory_.write("log", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n");
    setenv("NCU_FAILS", "1", 1);
    EXPECT_EQ(profile({"day01"}), kFailed);
    for (const char* words : {"NVreg_RestrictProfilingToAdminUsers=0", "--cap-add=SYS_ADMIN", "WSL",
                              "./course profile day01 --gpu h200"})
        EXPECT_TRUE(contains(messages_, words)) << words << ": " << messages_;
    EXPECT_EQ(output_, "");
}

TEST_F(ProfileCommand, WithoutNsightComputeItSaysWhereItIs) {
    have_a_gpu();
    executable("tools/ncu", "exit 127\n");
    EXPECT_EQ(profile({"day01"}), kUsage);
    for (const char* words : {"ncu is not in PATH", "cuda-nsight-compute", "conda install", "WSL"})
        EXPECT_TRUE(contains(messages_, words)) << words << ": " << messages_;
}

TEST_F(ProfileCommand, WritesAPage) {
    EXPECT_EQ(profile({"day01", "--html", path("new/page.html")}), kSuccess) << messages_;
    EXPECT_TRUE(contains(output_, "written: " + path("new/page.html"))) << output_;
    const std::string page = read_text(path("new/page.html"));
    EXPECT_TRUE(contains(page, "<h1>Day 1: T</h1>") && contains(page, "<b>Limited by memory</b>")) << page;
    EXPECT_EQ(profile({"day01", "--html", path("CMakeLists.txt/page.html")}), kUsage);
    EXPECT_TRUE(contains(messages_, "--html: cannot write")) << messages_;
}

TEST_F(ProfileCommand, ADayWithNothingToCountSaysWhatToLookAt) {
    const std::string message = "day03_host: there is nothing to profile. Host code. Look at the timeline.\n";
    EXPECT_EQ(profile({"day03"}), kUsage);
    EXPECT_TRUE(contains(messages_, message)) << messages_;
    EXPECT_EQ(output_, "");
    have_a_gpu();
    EXPECT_EQ(profile({"day03", "--gpu", "h200"}), kUsage);
    EXPECT_TRUE(contains(messages_, message)) << messages_;
    EXPECT_EQ(profile({"day03"}), kUsage) << "nothing is built or measured";
    EXPECT_TRUE(contains(messages_, message)) << messages_;
    EXPECT_EQ(course({"bench", "day03", "--counters"}), kUsage);
    EXPECT_TRUE(contains(messages_, message)) << messages_;
}

TEST_F(ProfileCommand, WhatIsNotThereIsNamedWithWhatIs) {
    EXPECT_EQ(profile({"day01", "--only", "float5"}), kUsage);
    EXPECT_TRUE(contains(messages_, "unknown version 'float5': did you mean 'float4'?")) << messages_;
    EXPECT_EQ(profile({"day01", "--gpu", "h100"}), kUsage);
    EXPECT_TRUE(contains(messages_, "--gpu: unknown machine with counters 'h100'")) << messages_;
    EXPECT_EQ(profile({"day02"}), kUsage);
    EXPECT_TRUE(contains(messages_, "no counters of day02_other are stored; these days have some: day01"))
        << messages_;
    EXPECT_EQ(profile({"day03"}), kUsage);
    EXPECT_EQ(profile({}), kUsage);
}

}  // namespace
}  // namespace course::tool
