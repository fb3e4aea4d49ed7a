// ./course run my.cu on a made-up project, where nvcc is a script that records its arguments.
#include "own_program.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "command_line.hpp"
#include "errors.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

// Its rule names the source and header.cuh; what it links notes its arguments and ends with exit
// code 7.
constexpr const char* kNvcc = R"(#!/bin/sh
cd "$COURSE_ROOT" && echo "$*" >>compiled
mkdir busy 2>/dev/null || echo "two at once" >>compiled
[ -z "$COMPILER_SECONDS" ] || sleep "$COMPILER_SECONDS"
trap 'rmdir busy' EXIT
source= rdc=
while [ $# -gt 0 ]; do
    case $1 in
        -o) made=$2; shift ;;
        -MF) rule=$2; shift ;;
        -c) source=$2; shift ;;
        -rdc=true) rdc=yes ;;
    esac
    shift
done
if [ -n "$source" ]; then
    case $source in *broken*) echo half >"$made"; exit 1 ;; esac
    case $source in *unresolved*) [ -n "$rdc" ] || { echo "ptxas fatal   : Unresolved extern function '_Z1fi'"; exit 1; } ;; esac
    echo "made: $source \\
 $COURSE_ROOT/header.cuh" >"$rule"
    echo object >"$made"
else
    printf '#!/bin/sh\nprintf "%%s|" "$@" >"$COURSE_ROOT/arguments"\nexit 7\n' >"$made"
    chmod +x "$made"
fi
)";

class OwnProgram : public testing::Test {
  protected:
    void SetUp() override {
        directory_.write("CMakeLists.txt",
                         "cmake_minimum_required(VERSION 3.25)\nproject(made_up NONE)\n"
                         "add_custom_target(cuda_on_cpu_nvcc)\n");
        const std::string root = directory_.path().string();
        const Captured configured = capture({"cmake", "-S", root, "-B", root + "/build", "-G", "Ninja"});
        ASSERT_EQ(configured.exit_code, 0) << configured.output;
        directory_.write("build/days.json", R"({"backend": "cpu", "build_type": "Release", "days": []})");
        directory_.write("build/bin/cuda_on_cpu_compile", "");
        directory_.write("build/cuda_on_cpu/libcuda_on_cpu.a", "");
        std::filesystem::permissions(directory_.write("build/cuda/bin/nvcc", kNvcc),
                                     std::filesystem::perms::owner_all);
        for (const char* file : {"my.cu", "more.cu", "broken.cu", "unresolved.cu", "header.cuh"})
            directory_.write(file, "");
        setenv("COURSE_ROOT", root.c_str(), 1);
        setenv("COURSE_BUILD_DIR", (root + "/build").c_str(), 1);
    }

    std::string file(const char* name) const { return (directory_.path() / name).string(); }

    static int run(const std::vector<std::string>& arguments) { return course("run", arguments); }
    static int course(const char* command, const std::vector<std::string>& arguments) {
        std::vector<const char*> argv = {"./course", command};
        for (const std::string& argument : arguments)
            argv.push_back(argument.c_str());
        testing::internal::CaptureStderr();
        const int exit_code =
            run_command_line(static_cast<int>(argv.size()), argv.data(),
                             {bench_day, show_profile, update_tables, try_exercises, new_day});
        said() = testing::internal::GetCapturedStderr();
        return exit_code;
    }
    // What the last command wrote to its standard error output.
    static std::string& said() {
        static std::string text;
        return text;
    }
    // How often nvcc ran since the last call.
    int compiler_runs() const {
        const std::string lines = read_text(file("compiled"));
        std::filesystem::remove(file("compiled"));
        return static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
    }

    TemporaryDirectory directory_;
};

TEST_F(OwnProgram, IsCompiledLinkedAndRunWithItsArguments) {
    EXPECT_EQ(run({file("my.cu"), file("more.cu"), "--", "1", "--size", "a b", "last.cu"}), 7);
    EXPECT_EQ(compiler_runs(), 3);
    EXPECT_EQ(read_text(file("arguments")), "1|--size|a b|last.cu|");
}

TEST_F(OwnProgram, WithoutDashesItsOptionsAreItsOwn) {
    run({file("my.cu"), "7", "--size", "3"});
    EXPECT_EQ(read_text(file("arguments")), "7|--size|3|");
}

TEST_F(OwnProgram, ThatHasNotChangedIsNotCompiledAgain) {
    run({file("my.cu")});
    EXPECT_EQ(compiler_runs(), 2);
    EXPECT_EQ(run({file("my.cu")}), 7);
    EXPECT_EQ(compiler_runs(), 0);
}

TEST_F(OwnProgram, OfTwoCommandsAtOnceOnlyOneCompilesIt) {
    setenv("COMPILER_SECONDS", "0.3", 1);
    const pid_t other = fork();
    if (other == 0) _exit(run({file("my.cu")}));
    EXPECT_EQ(run({file("my.cu")}), 7);
    int status = 0;
    ASSERT_EQ(waitpid(other, &status, 0), other);
    unsetenv("COMPILER_SECONDS");
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_EQ(compiler_runs(), 2);
}

TEST_F(OwnProgram, IsCompiledAgainWhenAHeaderHasChanged) {
    run({file("my.cu")});
    compiler_runs();
    std::filesystem::last_write_time(file("header.cuh"),
                                     std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2));
    run({file("my.cu")});
    EXPECT_EQ(compiler_runs(), 2);
}

TEST_F(OwnProgram, ThatDoesNotCompileIsNotRun) {
    EXPECT_EQ(run({file("broken.cu")}), kBuildFailed);
    EXPECT_EQ(compiler_runs(), 1);
    EXPECT_EQ(run({file("broken.cu")}), kBuildFailed);
    EXPECT_EQ(compiler_runs(), 1);
    EXPECT_FALSE(std::filesystem::exists(file("arguments")));
}

TEST_F(OwnProgram, WithoutItsFileIsWrongUsage) {
    EXPECT_EQ(run({file("nowhere.cu")}), kUsage);
    EXPECT_EQ(run({file("my.cu"), file("nowhere.cu")}), kUsage);
}

TEST_F(OwnProgram, MayBeginWithAFileOfTheHost) {
    directory_.write("main.cpp", "");
    EXPECT_EQ(run({file("main.cpp"), file("my.cu"), "3"}), 7);
    EXPECT_EQ(read_text(file("arguments")), "3|");
}

TEST_F(OwnProgram, OfSeveralFilesIsInspectedWithItsArguments) {
    for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--rdc"}}) {
        std::vector<std::string> arguments = options;
        arguments.insert(arguments.end(), {file("my.cu"), file("nowhere.cu"), "--", "7", "--size"});
        for (const char* command : {"inspect", "debug"}) {
            course(command, arguments);
            EXPECT_NE(said().find("there is no file"), std::string::npos) << command << ": " << said();
        }
    }
}

TEST_F(OwnProgram, WithoutACuFileIsToldWhatIsExpected) {
    directory_.write("host.cpp", "");
    directory_.write("notes.txt", "");
    directory_.write("kernels.cuh", "");
    for (const char* name : {"host.cpp", "notes.txt", "kernels.cuh", "nowhere.cpp", "nowhere.txt"}) {
        EXPECT_EQ(run({file(name)}), kUsage);
        const bool is_there = std::string(name).find("nowhere") == std::string::npos;
        EXPECT_NE(said().find(is_there ? fmt::format("'{}' is not a .cu file", file(name))
                                       : fmt::format("there is no file '{}'", file(name))),
                  std::string::npos)
            << said();
        EXPECT_NE(said().find("expected a day, such as day01, or the files of a program, at least one of "
                              "which ends with .cu"),
                  std::string::npos)
            << said();
    }
    EXPECT_EQ(compiler_runs(), 0);
    EXPECT_EQ(course("inspect", {file("host.cpp")}), kUsage) << "before a build is made, which fails here";
    EXPECT_NE(said().find("is not a .cu file"), std::string::npos) << said();
}

TEST_F(OwnProgram, SharesDeviceCodeBetweenItsFilesWithAnOption) {
    EXPECT_EQ(run({"--rdc", file("my.cu"), file("more.cu"), "3", "--rdc"}), 7);
    EXPECT_EQ(read_text(file("arguments")), "3|--rdc|");
    const std::string commands = read_text(file("compiled"));
    EXPECT_EQ(compiler_runs(), 3);
    std::size_t with_option = 0;
    for (std::size_t at = commands.find("-rdc=true"); at != commands.npos;
         at = commands.find("-rdc=true", at + 1))
        ++with_option;
    EXPECT_EQ(with_option, 3U) << "both files and the program: " << commands;
    EXPECT_EQ(run({"--rdc", file("my.cu"), "--", "4"}), 7);
    EXPECT_EQ(read_text(file("arguments")), "4|");
    compiler_runs();
    EXPECT_EQ(run({file("my.cu"), file("more.cu")}), 7);
    EXPECT_EQ(read_text(file("compiled")).find("-rdc=true"), std::string::npos);
    EXPECT_EQ(compiler_runs(), 3) << "objects of a build without the option are others";
}

TEST_F(OwnProgram, WhoseFilesShareDeviceCodeIsToldOfTheOption) {
    EXPECT_EQ(run({file("my.cu"), file("unresolved.cu")}), kBuildFailed);
    EXPECT_NE(said().find("Unresolved extern function"), std::string::npos) << said();
    EXPECT_NE(said().find(fmt::format("./course run --rdc {} {}", file("my.cu"), file("unresolved.cu"))),
              std::string::npos)
        << said();
    EXPECT_EQ(run({"--rdc", file("my.cu"), file("unresolved.cu")}), 7);
    EXPECT_EQ(run({file("my.cu"), file("broken.cu")}), kBuildFailed);
    EXPECT_EQ(said().find("--rdc"), std::string::npos) << "for another mistake: " << said();
}

TEST_F(OwnProgram, OnlyHasDeviceCodeToShare) {
    for (const char* command : {"run", "inspect", "debug"}) {
        EXPECT_EQ(course(command, {"--rdc", "day05"}), kUsage);
        EXPECT_NE(
            said().find("--rdc: expected the files of a program of your own, such as my.cu more.cu, not "
                        "'day05'"),
            std::string::npos)
            << said();
    }
}

TEST(OwnFiles, EndWhereArgumentsBegin) {
    EXPECT_EQ(own_files({"a.cu", "b.cpp", "7", "c.cu"}), (std::vector<std::string>{"a.cu", "b.cpp"}));
    EXPECT_EQ(own_files({"a.cu", "--", "c.cu"}), (std::vector<std::string>{"a.cu"}));
    EXPECT_EQ(own_files({"a.cpp", "b.cu"}), (std::vector<std::string>{"a.cpp", "b.cu"}));
    EXPECT_TRUE(own_files({"day01", "a.cu"}).empty());
    EXPECT_TRUE(own_files({}).empty());
}

TEST(Prerequisites, AreTheNamesBehindTheColon) {
    EXPECT_EQ(prerequisites("a.o: a.cu \\\n /usr/b.h c\\ d.h\n"),
              (std::vector<std::string>{"a.cu", "/usr/b.h", "c d.h"}));
    EXPECT_TRUE(prerequisites("").empty());
}

}  // namespace
}  // namespace course::tool
