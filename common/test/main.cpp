// main() of every test program. Without the variables below, it does what GoogleTest's own main()
// does.
//
// CTest sets COURSE_TEST_REPORT to the name of a file. Then the tests run in a child process, and
// the file records in JSON Lines which test started, which checks failed in it and how it ended:
//
//     {"event": "started", "test": "Sum.AllSizes/shared"}
//     {"event": "failure", "test": "Sum.AllSizes/shared", "file": "sum_test.cpp", "line": 7, "message": "..."}
//     {"event": "ended", "test": "Sum.AllSizes/shared", "result": "failed"}
//     {"event": "finished", "result": "failed"}
//
// A result is passed, failed or skipped; a "message" gives the reason where no failure event does.
// When a test crashes or hangs, the file records that for this test, and another child runs the
// remaining tests. Each test has COURSE_TEST_LIMIT seconds, 300 by default. With COURSE_TEST_ALONE
// each test has a child of its own.
//
// With COURSE_TEST_REPORT=- the tests run in this process, and the lines are part of its standard
// output, in place of what GoogleTest prints. Each event follows the character 0x1e, because the
// output of a test may end in the middle of a line, and the value of COURSE_TEST_KEY, so that no
// other output is taken for an event.
#include <fcntl.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

std::string full_name(const testing::TestInfo& test) {
    return std::string(test.test_suite_name()) + "." + test.name();
}

// One line. Bytes in a message that are not valid UTF-8 are replaced.
std::string text_of(const Json& event) {
    return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_all(int file, const char* bytes, std::size_t count) {
    while (count > 0) {
        const ssize_t written = write(file, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return;
        bytes += written;
        count -= static_cast<std::size_t>(written);
    }
}

// Duplicates the descriptor to a high number, so that tests see the same open files as without
// reports, except for this one.
int far_away(int file) {
    constexpr int kFarAway = 200;
    return fcntl(file, F_DUPFD_CLOEXEC, kFarAway);
}

// Reports the events of the tests; runs in the process of the tests.
class Reporter : public testing::EmptyTestEventListener {
  public:
    // `before` is printed before each line.
    explicit Reporter(int events, std::string before = "") : events_(events), before_(std::move(before)) {}

  private:
    // GoogleTest has read these variables; programs that a test starts must not read them.
    void OnTestProgramStart(const testing::UnitTest&) override {
        unsetenv("GTEST_TOTAL_SHARDS");
        unsetenv("GTEST_SHARD_INDEX");
    }

    void OnTestStart(const testing::TestInfo& test) override {
        running_ = full_name(test);
        tell({{"event", "started"}, {"test", running_}});
    }

    void OnTestPartResult(const testing::TestPartResult& part) override {
        if (!part.failed()) return;
        Json event = {{"event", "failure"}, {"test", running_}};
        if (part.file_name() != nullptr) {  // an exception has none
            event["file"] = part.file_name();
            event["line"] = part.line_number();
        }
        event["message"] = part.message();
        tell(event);
    }

    void OnTestEnd(const testing::TestInfo& test) override {
        const testing::TestResult& result = *test.result();
        Json event = {{"event", "ended"}, {"test", running_}};
        event["result"] = result.Failed() ? "failed" : result.Skipped() ? "skipped" : "passed";
        for (int i = 0; i < result.total_part_count() && result.Skipped(); ++i) {
            const testing::TestPartResult& part = result.GetTestPartResult(i);
            if (part.skipped() && !event.contains("message")) event["message"] = part.message();
        }
        running_.clear();
        tell(event);
    }

    void OnTestProgramEnd(const testing::UnitTest& program) override {
        if (before_.empty()) return;  // the supervisor tells it
        tell({{"event", "finished"}, {"result", program.Passed() ? "passed" : "failed"}});
    }

    void tell(const Json& event) const {
        std::fflush(stdout);  // the earlier output of the test must come first
        const std::string text = before_ + text_of(event);
        write_all(events_, text.data(), text.size());
    }

    int events_;
    std::string before_;
    std::string running_;
};

int number_from_environment(const char* name, int otherwise) {
    const char* const value = std::getenv(name);
    return value == nullptr ? otherwise : std::atoi(value);
}

bool is_disabled(const std::string& test) {
    constexpr std::string_view kPrefix = "DISABLED_";
    for (auto at = test.find(kPrefix); at != std::string::npos; at = test.find(kPrefix, at + 1)) {
        if (at == 0 || test[at - 1] == '.' || test[at - 1] == '/') return true;
    }
    return false;
}

// GoogleTest's rule for filters: "A.*:B.*-*.Slow". Names of tests have no characters with another
// special meaning to fnmatch.
bool matches_one_of(std::string_view patterns, const std::string& test) {
    while (!patterns.empty()) {
        const std::string_view pattern = patterns.substr(0, patterns.find(':'));
        patterns.remove_prefix(std::min(pattern.size() + 1, patterns.size()));
        if (fnmatch(std::string(pattern).c_str(), test.c_str(), FNM_NOESCAPE) == 0) return true;
    }
    return false;
}

bool is_chosen(const std::string& test) {
    const std::string filter = testing::GTEST_FLAG(filter);
    const std::size_t minus = std::min(filter.find('-'), filter.size());
    const std::string_view wanted = std::string_view(filter).substr(0, minus);
    const std::string_view left_out = std::string_view(filter).substr(std::min(minus + 1, filter.size()));
    return matches_one_of(wanted.empty() ? "*" : wanted, test) && !matches_one_of(left_out, test);
}

// The tests that this process runs, by GoogleTest's rule for shards.
std::vector<std::string> tests_of_shard() {
    const int shards = number_from_environment("GTEST_TOTAL_SHARDS", 1);
    const int shard = number_from_environment("GTEST_SHARD_INDEX", 0);
    std::vector<std::string> tests;
    int index = 0;
    const testing::UnitTest& program = *testing::UnitTest::GetInstance();
    for (int i = 0; i < program.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *program.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const std::string test = full_name(*suite.GetTestInfo(j));
            if (!is_disabled(test) && is_chosen(test) && index++ % shards == shard) tests.push_back(test);
        }
    }
    return tests;
}

// COURSE_TEST_KEY. It is removed from the environment before any constructor runs, whatever its
// priority, because a learner's file may have some, which must not report events of their own.
char test_key[64];

void take_test_key(int, char**, char** environment) {
    constexpr std::string_view kName = "COURSE_TEST_KEY=";
    for (char** variable = environment; *variable != nullptr; ++variable) {
        if (std::strncmp(*variable, kName.data(), kName.size()) != 0) continue;
        char* const value = *variable + kName.size();
        std::strncpy(test_key, value, sizeof(test_key) - 1);
        std::memset(value, '-', std::strlen(value));  // as /proc/self/environ shows it
        do {
            variable[0] = variable[1];
        } while (*variable++ != nullptr);
        return;
    }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_constructors)(int, char**,
                                                                                char**) = take_test_key;

struct Pipe {
    Pipe() {
        if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    }
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    void close_end(int end) {
        if (ends[end] >= 0) close(ends[end]);
        ends[end] = -1;
    }
    // Reads and returns what is available, and closes the reading end at the end of the input.
    std::string_view read_some() {
        const ssize_t count = read(ends[0], buffer, sizeof(buffer));
        if (count == 0) close_end(0);
        return {buffer, count > 0 ? static_cast<std::size_t>(count) : 0};
    }

    int ends[2] = {-1, -1};  // to read from, to write to
    char buffer[4096];
};

// Runs the children and writes the report; runs in the parent process.
class Supervisor {
  public:
    Supervisor(const char* report, int limit_s) : report_(report), limit_(limit_s), left_(tests_of_shard()) {
        if (!report_) throw std::runtime_error(std::string("COURSE_TEST_REPORT: cannot write ") + report);
    }

    // Returns whether all tests passed and all children ended normally.
    bool run() {
        bool passed = true;
        if (left_.empty() && testing::GTEST_FLAG(filter) != "*" &&
            number_from_environment("GTEST_TOTAL_SHARDS", 1) == 1) {
            last_words_ = "no test matches the filter " + testing::GTEST_FLAG(filter) + "\n";
            passed = false;
        }
        for (bool is_first = true; !left_.empty(); is_first = false) {
            const std::size_t before = left_.size();
            passed = run_child(is_first) && passed;
            if (left_.size() < before) continue;
            fail(left_.front(), "did not run: the program ends before it\n");
            passed = false;
        }
        Json event = {{"event", "finished"}, {"result", passed ? "passed" : "failed"}};
        if (!passed && !any_failed_) event["message"] = last_words_;  // such as a leak that a sanitizer found
        report_ << text_of(event) << std::flush;
        return passed;
    }

  private:
    [[noreturn]] void be_child(bool is_first, Pipe& events, Pipe& output) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(output.ends[1], STDOUT_FILENO);
        dup2(output.ends[1], STDERR_FILENO);
        const int tell = far_away(events.ends[1]);
        report_.close();
        for (Pipe* pipe : {&events, &output}) {
            pipe->close_end(0);
            pipe->close_end(1);
        }
        unsetenv("COURSE_TEST_REPORT");  // a death test may start this program again
        if (is_alone_ || !is_first) {
            unsetenv("GTEST_TOTAL_SHARDS");
            unsetenv("GTEST_SHARD_INDEX");
            std::string filter = left_.front();
            for (std::size_t i = 1; i < left_.size() && !is_alone_; ++i)
                filter += ":" + left_[i];
            testing::GTEST_FLAG(filter) = filter;
        }
        testing::UnitTest::GetInstance()->listeners().Append(new Reporter(tell));
        std::exit(RUN_ALL_TESTS());
    }

    bool run_child(bool is_first) {
        Pipe events;
        Pipe output;
        running_.clear();
        last_words_.clear();
        unfinished_line_.clear();
        const pid_t child = fork();
        if (child < 0) throw std::runtime_error("fork failed");
        if (child == 0) be_child(is_first, events, output);
        events.close_end(1);
        output.close_end(1);
        const bool hangs = !follow(events, output);
        if (hangs) kill(child, SIGKILL);
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        // A process that the child has started may still hold the pipe, so only the available
        // output is read.
        fcntl(output.ends[0], F_SETFL, O_NONBLOCK);
        while (output.ends[0] >= 0 && copy(output)) {
        }
        const bool broke_off = !running_.empty();
        if (broke_off) fail(running_, how_it_broke_off(hangs, status) + "\n" + words_of(running_));
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 && !broke_off;
    }

    // Returns true when the child has ended, and false when a test exceeds its time limit.
    bool follow(Pipe& events, Pipe& output) {
        Clock::time_point deadline = Clock::now() + limit_;
        while (events.ends[0] >= 0) {
            pollfd waits[2] = {{events.ends[0], POLLIN, 0}, {output.ends[0], POLLIN, 0}};
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
            if (left <= 0) return false;
            if (poll(waits, 2, static_cast<int>(left)) <= 0) continue;
            if (waits[1].revents != 0) copy(output);
            if (waits[0].revents != 0 && take(events)) deadline = Clock::now() + limit_;
        }
        return true;
    }

    // Copies the child's output to stdout, and keeps the end of it.
    bool copy(Pipe& output) {
        constexpr std::size_t kKept = 2000;
        const std::string_view text = output.read_some();
        write_all(STDOUT_FILENO, text.data(), text.size());
        last_words_ += text;
        if (last_words_.size() > kKept) last_words_.erase(0, last_words_.size() - kKept);
        return !text.empty();
    }

    // Processes events. Returns whether a test has started or ended.
    bool take(Pipe& events) {
        unfinished_line_ += events.read_some();
        bool is_news = false;
        for (auto end = unfinished_line_.find('\n'); end != std::string::npos;
             end = unfinished_line_.find('\n')) {
            is_news |= note(Json::parse(unfinished_line_.substr(0, end)));
            unfinished_line_.erase(0, end + 1);
        }
        return is_news;
    }

    bool note(const Json& event) {
        report_ << text_of(event) << std::flush;
        const std::string kind = event.at("event");
        const std::string test = event.at("test");  // a copy, because it may refer to running_
        if (kind == "started") running_ = test;
        if (kind == "ended") {
            running_.clear();
            std::erase(left_, test);
        }
        any_failed_ |= kind == "failure" || event.value("result", "") == "failed";
        return kind != "failure";
    }

    void fail(const std::string& test, const std::string& message) {
        note({{"event", "ended"}, {"test", test}, {"result", "failed"}, {"message", message}});
    }

    // The end of the output of this test.
    std::string words_of(const std::string& test) const {
        const std::string start = "[ RUN      ] " + test + "\n";
        const auto at = last_words_.rfind(start);
        return at == std::string::npos ? last_words_ : last_words_.substr(at + start.size());
    }

    std::string how_it_broke_off(bool hangs, int status) const {
        if (hangs) return "did not end within " + std::to_string(limit_.count()) + " s";
        if (WIFSIGNALED(status)) return std::string("crashed: ") + strsignal(WTERMSIG(status));
        return "ended the program with exit code " + std::to_string(WEXITSTATUS(status));
    }

    std::ofstream report_;
    std::chrono::seconds limit_;
    bool is_alone_ = std::getenv("COURSE_TEST_ALONE") != nullptr;
    std::vector<std::string> left_;  // tests that have not ended yet
    std::string running_;            // a test, or empty
    bool any_failed_ = false;
    std::string last_words_;  // the end of the output
    std::string unfinished_line_;
};

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const char* const report = std::getenv("COURSE_TEST_REPORT");
    if (report == nullptr) return RUN_ALL_TESTS();
    if (std::string_view(report) != "-")
        return Supervisor(report, number_from_environment("COURSE_TEST_LIMIT", 300)).run() ? 0 : 1;
    unsetenv("COURSE_TEST_REPORT");  // a death test may start this program again
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Reporter(far_away(STDOUT_FILENO), std::string("\x1e") + test_key));
    return RUN_ALL_TESTS();
}
