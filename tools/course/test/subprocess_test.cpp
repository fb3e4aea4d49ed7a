#include "subprocess.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <thread>

namespace course::tool {
namespace {

TEST(Run, PassesTheExitCodeOn) {
    EXPECT_EQ(run({"true"}), 0);
    EXPECT_EQ(run({"sh", "-c", "exit 42"}), 42);
}

TEST(Run, ASignalIs128AndItsNumber) {
    EXPECT_EQ(run({"sh", "-c", "kill -SEGV $$"}), 128 + SIGSEGV);
}

TEST(Run, NamesTheProgramThatCannotBeStarted) {
    try {
        run({"no-such-program-anywhere"});
        FAIL() << "started";
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("no-such-program-anywhere"), std::string::npos);
    }
}

// The tests may have been started with SIGINT ignored, as shells do in the background; children
// would inherit that.
class Interruptible {
  public:
    Interruptible() : before_(std::signal(SIGINT, SIG_DFL)) {}
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;
    ~Interruptible() { std::signal(SIGINT, before_); }

  private:
    void (*before_)(int);
};

TEST(Run, InterruptingTheGroupEndsTheChildOnly) {
    const Interruptible interruptible;
    // Like Ctrl-C: the whole group receives SIGINT. This process survives and returns how the
    // child ended.
    EXPECT_EQ(run({"sh", "-c", "kill -INT $PPID; kill -INT $$; sleep 5"}), 128 + SIGINT);
}

TEST(Run, TerminationIsPassedOnToTheChild) {
    std::thread terminator([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        kill(getpid(), SIGTERM);
    });
    EXPECT_EQ(run({"sleep", "20"}), 128 + SIGTERM);
    terminator.join();
}

TEST(Capture, ArgumentsArriveAsTheyAre) {
    const Command command = {"printf", "%s|", "",  "two words",   "$HOME",    "`id`",
                             "a'b",    "\"",  "*", "back\\slash", "new\nline"};
    std::string expected;
    for (auto argument = command.begin() + 2; argument != command.end(); ++argument)
        expected += *argument + "|";
    EXPECT_EQ(capture(command).output, expected);
}

TEST(Capture, KeepsBothStreamsAndTheExitCode) {
    const Captured captured = capture({"sh", "-c", "echo out; echo err >&2; exit 3"});
    EXPECT_EQ(captured.output, "out\nerr\n");
    EXPECT_EQ(captured.exit_code, 3);
    EXPECT_EQ(capture({"no-such-program-anywhere"}).exit_code, 127);
}

TEST(Capture, ShowsEachLineOnce) {
    std::vector<std::string> lines;
    const Captured captured =
        capture({"seq", "1", "3000"}, [&lines](std::string_view line) { lines.emplace_back(line); });
    ASSERT_EQ(lines.size(), 3000U);
    EXPECT_EQ(lines.front(), "1");
    EXPECT_EQ(lines.back(), "3000");
    EXPECT_EQ(captured.exit_code, 0);
}

TEST(ShellQuoted, AShellReadsBackTheSameArguments) {
    const Command odd = {"",    "two words", "$HOME",       "a'b",       "''", "\"", "*",
                         ";ls", "~",         "back\\slash", "new\nline", "#",  "-n"};
    Command command = {"printf", "%s|"};
    command.insert(command.end(), odd.begin(), odd.end());
    EXPECT_EQ(capture({"sh", "-c", shell_quoted(command)}).output, capture(command).output);
    EXPECT_EQ(shell_quoted({"bin/day01", "--size", "4096x1024"}), "bin/day01 --size 4096x1024");
}

TEST(Capture, EndsAChildThatTakesTooLong) {
    const auto begin = std::chrono::steady_clock::now();
    const Captured late =
        capture({"sh", "-c", "echo before; exec sleep 60"}, {}, std::chrono::milliseconds(300));
    EXPECT_TRUE(late.timed_out);
    EXPECT_EQ(late.output, "before\n");
    EXPECT_EQ(late.exit_code, 128 + 9);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    const Captured in_time = capture({"sh", "-c", "echo a; sleep 0.1; echo b"}, {}, std::chrono::seconds(30));
    EXPECT_FALSE(in_time.timed_out);
    EXPECT_EQ(in_time.output, "a\nb\n");
}

TEST(Capture, EndsWhatSuchAChildHasStarted) {
    int ends[2];  // the sleeper holds the writing end: when it is gone, there is nothing left to read
    ASSERT_EQ(pipe(ends), 0);
    const Captured late =
        capture({"sh", "-c", "sleep 60 & echo started; wait"}, {}, std::chrono::milliseconds(300));
    close(ends[1]);
    EXPECT_TRUE(late.timed_out);
    EXPECT_EQ(late.output, "started\n");
    pollfd reading = {ends[0], POLLIN, 0};
    EXPECT_EQ(poll(&reading, 1, 10'000), 1) << "it still sleeps";
    close(ends[0]);
}

TEST(Capture, CtrlCEndsAChildWithALimitToo) {
    // Such a child is in a process group of its own, which does not receive Ctrl-C from the
    // terminal.
    const Interruptible interruptible;
    std::thread interrupter([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        kill(getpid(), SIGINT);
    });
    const auto begin = std::chrono::steady_clock::now();
    const Captured interrupted = capture({"sleep", "20"}, {}, std::chrono::seconds(30));
    EXPECT_EQ(interrupted.exit_code, 128 + SIGINT);
    EXPECT_FALSE(interrupted.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "ended by itself";
    interrupter.join();
}

TEST(Capture, EndsAChildThatClosesItsOutputAndGoesOn) {
    const auto begin = std::chrono::steady_clock::now();
    const Captured late = capture({"sh", "-c", "echo before; exec >&- 2>&-; while sleep 0.1; do :; done"}, {},
                                  std::chrono::milliseconds(500));
    EXPECT_TRUE(late.timed_out);
    EXPECT_EQ(late.output, "before\n");
    EXPECT_EQ(late.exit_code, 128 + SIGKILL);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(Capture, WaitsForAChildThatClosesItsOutputAndEndsInTime) {
    const Captured in_time =
        capture({"sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 5"}, {}, std::chrono::seconds(30));
    EXPECT_FALSE(in_time.timed_out);
    EXPECT_EQ(in_time.exit_code, 5);
}

TEST(Capture, ASignalThatIsIgnoredDoesNotReachTheChild) {  // nohup ./course check
    void (*const before)(int) = std::signal(SIGHUP, SIG_IGN);
    std::thread closed_terminal([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        kill(getpid(), SIGHUP);
    });
    EXPECT_EQ(capture({"sh", "-c", "sleep 0.5; exit 4"}, {}, std::chrono::seconds(30)).exit_code, 4);
    closed_terminal.join();
    std::signal(SIGHUP, before);
}

// Finding a program takes long in a PATH of many directories, all of them empty names here.
class LongPath {
  public:
    LongPath() : before_(std::getenv("PATH")) {
        setenv("PATH", (std::string(100'000, ':') + before_).c_str(), 1);
    }
    ~LongPath() { setenv("PATH", before_.c_str(), 1); }
    LongPath(const LongPath&) = delete;
    LongPath& operator=(const LongPath&) = delete;

  private:
    std::string before_;
};

TEST(Capture, CtrlCWhileTheChildIsStartedEndsIt) {
    const Interruptible interruptible;
    const LongPath path;
    std::thread interrupter([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        kill(getpid(), SIGINT);
    });
    const Captured interrupted = capture({"sleep", "3"}, {}, std::chrono::seconds(30));
    interrupter.join();
    EXPECT_EQ(interrupted.exit_code, 128 + SIGINT);
}

Job shell(const std::string& script) {
    return {{"sh", "-c", script}, {}};
}

TEST(CaptureTogether, TellsTheResultsInTheOrderOfTheJobs) {
    std::vector<std::string> told;
    capture_together(
        {shell("sleep 0.3; echo slow; exit 3"), shell("echo fast")},
        {.on_end =
             [&](std::size_t job, const Captured& captured) {
                 told.push_back(fmt::format("{}: {} {}", job, captured.exit_code, captured.output));
                 return true;
             }},
        {});
    EXPECT_EQ(told, (std::vector<std::string>{"0: 3 slow\n", "1: 0 fast\n"}));
}

TEST(CaptureTogether, JobsRunAtTheSameTimeAndLinesNameTheirJob) {
    // Each can only end when the other runs, too.
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::string writing = fmt::format("echo x >&{}", ends[1]),
                      reading = fmt::format("read y <&{}", ends[0]);
    std::vector<std::string> lines;
    int ended = 0;
    capture_together({shell(reading + " && echo first"), shell(writing + " && echo second")},
                     {.on_line =
                          [&](std::size_t job, std::string_view line) {
                              lines.push_back(fmt::format("{} {}", job, line));
                              return false;
                          },
                      .on_end =
                          [&](std::size_t, const Captured& captured) {
                              ended += captured.exit_code == 0 && !captured.timed_out;
                              return true;
                          }},
                     std::chrono::seconds(20));
    close(ends[0]);
    close(ends[1]);
    std::ranges::sort(lines);
    EXPECT_EQ(lines, (std::vector<std::string>{"0 first", "1 second"}));
    EXPECT_EQ(ended, 2);
}

TEST(CaptureTogether, APartOfAJobIsGivenTheWholeTime) {
    Captured parts, one_part;
    const JobObserver observer{.on_line = [](std::size_t, std::string_view line) { return line == "part"; },
                               .on_end =
                                   [&](std::size_t job, const Captured& captured) {
                                       (job == 0 ? parts : one_part) = captured;
                                       return true;
                                   }};
    capture_together({shell("for i in 1 2 3; do echo part; sleep 1.1; done"),
                      shell("echo part; while sleep 0.2; do echo line; done")},
                     observer, std::chrono::seconds(3));
    EXPECT_FALSE(parts.timed_out) << "3.3 s, but none longer than 1.1 s";
    EXPECT_EQ(parts.output, "part\npart\npart\n");
    EXPECT_TRUE(one_part.timed_out) << "a line is not a part";
}

TEST(CaptureTogether, SettingsAreTheJobsOwn) {
    setenv("COURSE_TEST_SETTING", "outer", 1);
    std::string output;
    const std::string show = "echo $COURSE_TEST_SETTING $COURSE_TEST_SETTING_2";
    capture_together({{{"sh", "-c", show}, {"COURSE_TEST_SETTING=one"}},
                      {{"sh", "-c", show}, {"COURSE_TEST_SETTING_2=two"}}},
                     {.on_end =
                          [&](std::size_t, const Captured& captured) {
                              output += captured.output;
                              return true;
                          }},
                     {});
    EXPECT_EQ(output, "one\nouter two\n");
    EXPECT_STREQ(std::getenv("COURSE_TEST_SETTING"), "outer");
    unsetenv("COURSE_TEST_SETTING");
}

TEST(CaptureTogether, EnoughEndsTheOthers) {
    const auto begin = std::chrono::steady_clock::now();
    int ended = 0;
    capture_together({shell("exit 1"), shell("sleep 60 & wait")},
                     {.on_end =
                          [&](std::size_t, const Captured&) {
                              ++ended;
                              return false;
                          }},
                     std::chrono::seconds(100));
    EXPECT_EQ(ended, 1);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(CaptureTogether, ThePassingOfAnExceptionEndsThemAll) {
    const auto begin = std::chrono::steady_clock::now();
    const JobObserver throwing{
        .on_end = [](std::size_t, const Captured&) -> bool { throw std::bad_alloc(); }};
    EXPECT_THROW(capture_together({shell("exit 1"), shell("exec sleep 60")}, throwing, {}), std::bad_alloc);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(CaptureTogether, TheTimeOfAJobBeginsWhenTheOneBeforeItHasEnded) {
    std::vector<bool> timed_out;
    const auto remember = [&](std::size_t, const Captured& captured) {
        timed_out.push_back(captured.timed_out);
        return true;
    };
    capture_together({shell("sleep 1"), shell("exec sleep 2"), shell("exec sleep 60")}, {.on_end = remember},
                     std::chrono::milliseconds(1500));
    EXPECT_EQ(timed_out, (std::vector<bool>{false, false, true}));
}

TEST(CaptureTogether, CtrlCEndsAll) {
    const Interruptible interruptible;
    std::thread interrupter([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        kill(getpid(), SIGINT);
    });
    const auto begin = std::chrono::steady_clock::now();
    std::vector<int> codes;
    const auto remember = [&](std::size_t, const Captured& captured) {
        codes.push_back(captured.exit_code);
        return true;
    };
    capture_together({{{"sleep", "20"}, {}}, {{"sleep", "20"}, {}}}, {.on_end = remember},
                     std::chrono::seconds(30));
    EXPECT_EQ(codes, (std::vector<int>(2, 128 + SIGINT)));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    interrupter.join();
}

}  // namespace
}  // namespace course::tool
