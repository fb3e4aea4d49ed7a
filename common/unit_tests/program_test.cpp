#include "common/bench/program.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>

#include "common/bench/build_info.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/inspection.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/plain_loop.hpp"
#include "common/bench/record_file.hpp"
#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using course::Contestant;
using course::Dims;

// Fills a buffer with ones. Each contestant may have its own way to do so.
using Fill = std::function<void(course::GuardedBuffer<float>&, cudaStream_t)>;

void fill_right(course::GuardedBuffer<float>& out, cudaStream_t stream) {
    course::testing::fill(out.span(), 1, 0, static_cast<std::int64_t>(out.size()), stream);
}

course::Case make_case(const Dims& size, const Fill& fill, const std::string& cannot_run = "") {
    const auto out = std::make_shared<course::GuardedBuffer<float>>(size.at(0));
    course::Case result;
    result.problem = "fill " + std::to_string(size.at(0));
    result.dtype = "float";
    result.spoil = [out] { out->spoil(); };
    result.verify = [out] {
        course::VerifyResult verified = course::verify(out->to_host(), std::vector<double>(out->size(), 1.0));
        verified.damage = out->damage();
        return verified;
    };
    const course::Work work{.bytes = 4.0 * static_cast<double>(size.at(0))};
    result.contestants = {
        {.name = "right", .launch = [out](cudaStream_t stream) { fill_right(*out, stream); }, .work = work},
        {.name = "tried",
         .launch = [out, fill](cudaStream_t stream) { fill(*out, stream); },
         .work = work,
         .cannot_run = cannot_run},
    };
    return result;
}

class ProgramTest : public course::DeviceTest {
  protected:
    // Runs the program with `arguments`; its output is in out_ and err_.
    int run(std::vector<const char*> arguments, const Fill& fill = fill_right,
            const std::string& cannot_run = "") {
        const course::Program program{
            .day = "day00_fill",
            .title = "fills a buffer",
            .default_size = {1000},
            .bench_sizes = {{100}, {2000}},
            .sweep_sizes = sweep_sizes_,
            .plot_sizes = plot_sizes_,
            .make_cases = {[&](const Dims& size) {
                               course::Case result = make_case(size, fill, cannot_run);
                               result.contestants.back().resources = resources_;
                               result.contestants.back().figures = figures_;
                               result.contestants.back().prepare = prepare_;
                               result.contestants.back().not_profiled = not_profiled_;
                               result.contestants.back().on_host = drives_device_;
                               result.contestants.back().drives_device = drives_device_;
                               result.derive_figures = derive_figures_;
                               if (without_verify_) result.verify = nullptr;
                               if (profiled_instead_ != 0)
                                   result.profiled_instead = [&] {
                                       return make_case({profiled_instead_}, fill);
                                   };
                               for (Contestant& peer : plain_loops_)
                                   result.contestants.push_back(peer);
                               result.comment = [](std::span<const course::Record> records) {
                                   return "comment on " + records.back().version + "\n";
                               };
                               return result;
                           },
                           [](const Dims&) { return course::Case{.problem = "left out", .dtype = "float"}; },
                           [&](const Dims& size) {
                               course::Case other = make_case(size, fill, cannot_run);
                               other.problem = "other " + std::to_string(size.at(0));
                               other.contestants = {other.contestants.front()};
                               other.contestants.front().name = "only_here";
                               return other;
                           }},
            .plot_cases = {[&](const Dims& size) {
                course::Case plotted = make_case(size, fill, cannot_run);
                plotted.problem = "plotted " + std::to_string(size.at(0));
                return plotted;
            }},
            .distributions = distributions(fill, cannot_run),
            .finish = [] { std::puts("the end"); }};
        arguments.insert(arguments.begin(), "day00_fill");
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int code = course::run_program(program, static_cast<int>(arguments.size()), arguments.data());
        std::fflush(nullptr);
        out_ = testing::internal::GetCapturedStdout();
        err_ = testing::internal::GetCapturedStderr();
        return code;
    }

    std::vector<course::Distribution> distributions(const Fill& fill, const std::string& cannot_run) const {
        if (!has_distribution_) return {};
        return {{.name = "lengths",
                 .text = "any n",
                 .most = 5000,
                 .most_on_cpu = 500,
                 .ours = ours_,
                 .draw = [=, this](course::Draw& draw) -> course::RandomProblem {
                     const auto [kind, size] = course::draw_length(draw);
                     return {kind, size, [=, this, size = size] {
                                 if (size[0] > fits_) throw std::bad_alloc();
                                 return make_case(size, fill, cannot_run);
                             }};
                 }}};
    }

    std::string written_text() const {
        std::ifstream file(json_);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    // The random problems that it wrote.
    std::vector<nlohmann::json> written_problems() const {
        std::istringstream lines(written_text());
        std::vector<nlohmann::json> problems;
        for (std::string line; std::getline(lines, line);)
            problems.push_back(nlohmann::json::parse(line));
        return problems;
    }

    void SetUp() override {
        std::filesystem::remove(json_);
        course::DeviceTest::SetUp();
    }
    void TearDown() override { std::filesystem::remove(json_); }
    // The records that the program wrote.
    nlohmann::ordered_json written() const { return course::from_json_lines(written_text()); }

    std::vector<std::string> ours_{"tried", "right"};             // of the distribution
    std::size_t fits_ = std::numeric_limits<std::size_t>::max();  // the longest that memory has room for
    std::vector<Dims> sweep_sizes_;
    std::vector<Dims> plot_sizes_;
    bool has_distribution_ = false;
    std::function<course::KernelResources()> resources_;
    std::function<course::Figures()> figures_;
    std::function<void(Contestant&)> prepare_{};
    std::function<void(std::span<course::Record>)> derive_figures_{};
    bool drives_device_ = false;
    bool without_verify_ = false;
    std::size_t profiled_instead_ = 0;  // a size
    std::string not_profiled_{};
    std::vector<Contestant> plain_loops_;
    std::string out_;
    std::string err_;
    const std::string json_ = testing::TempDir() + "course_program_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl";
};

TEST_F(ProgramTest, WhatIsPreparedIsFreedBeforeTheNext) {
    std::weak_ptr<int> made;
    int times = 0;
    prepare_ = [&](Contestant& contestant) {
        EXPECT_TRUE(made.expired()) << "that of the size before";
        const auto own = std::make_shared<int>(++times);
        made = own;
        contestant.launch = [own, launch = contestant.launch](cudaStream_t stream) { launch(stream); };
        contestant.work.bytes = 4;
    };
    EXPECT_EQ(run({}), 0) << out_ << err_;
    EXPECT_EQ(times, 1);
    EXPECT_TRUE(made.expired());
    EXPECT_EQ(run({"--only", "right"}), 0) << out_ << err_;
    EXPECT_EQ(times, 1) << "made although another was asked for";
}

TEST_F(ProgramTest, WhatCannotBePreparedDoesNotRunAndTheOthersDo) {
    const auto outcome = [&](const auto& error) {
        prepare_ = [error](Contestant&) { throw error; };
        return run({});
    };
    EXPECT_EQ(outcome(std::invalid_argument("row 5 is too long")), 0) << out_ << err_;
    EXPECT_NE(out_.find("tried: row 5 is too long"), std::string::npos) << out_;
    EXPECT_EQ(outcome(std::bad_alloc()), 0) << out_ << err_;
    EXPECT_NE(out_.find("tried: the host has not enough memory"), std::string::npos) << out_;
    EXPECT_EQ(outcome(std::length_error("too many elements")), 0) << out_ << err_;
    EXPECT_EQ(outcome(course::CudaError(cudaErrorMemoryAllocation, "out of memory")), 0) << out_ << err_;
    EXPECT_NE(out_.find("tried: out of memory"), std::string::npos) << out_;
    EXPECT_EQ(outcome(course::CudaError(cudaErrorInvalidValue, "a mistake")), 1) << out_ << err_;
    EXPECT_EQ(outcome(std::runtime_error("another")), 1) << out_ << err_;
}

TEST_F(ProgramTest, VerifiedRunSucceeds) {
    EXPECT_EQ(run({}), 0) << out_ << err_;
    EXPECT_NE(out_.find("fill 1000, float"), std::string::npos) << out_;
    EXPECT_NE(out_.find("the end"), std::string::npos) << out_;
    EXPECT_NE(out_.find("comment on tried\n"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("left out"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("say nothing about a GPU") != std::string::npos, course::is_cpu_stand_in()) << out_;
}

TEST_F(ProgramTest, FiguresMayComeFromTheTimesOfSeveralRecords) {
    derive_figures_ = [](std::span<course::Record> records) {
        ASSERT_GT(records.size(), 1U);
        ASSERT_TRUE(records.front().measurement && records.back().measurement);
        records.back().figures.emplace_back("records seen", static_cast<double>(records.size()));
    };
    EXPECT_EQ(run({"--json", json_.c_str()}), 0) << out_ << err_;
    EXPECT_NE(out_.find("records seen"), std::string::npos) << out_;
    EXPECT_NE(written_text().find("records seen"), std::string::npos);
}

TEST_F(ProgramTest, WhatTheHostTimesMayBeTheDevicesWork) {
    drives_device_ = true;
    EXPECT_EQ(run({"--json", json_.c_str()}), 0) << out_ << err_;
    EXPECT_EQ(written_text().find("host CPU"), std::string::npos) << "the device's records";
}

// The loop is right in all of its runs, or in the first alone.
std::vector<Contestant> loops(int& runs, double seconds, bool only_first = false) {
    return course::plain_loops(
        {}, seconds, [] { return course::unwritten<float>(9); },
        [&runs, only_first](std::vector<float>& out, int) {
            if (++runs == 1 || !only_first) std::ranges::fill(out, 1.0f);
        },
        [](const std::vector<float>& out) { return course::verify(out, std::vector(9, 1.0)); });
}

TEST_F(ProgramTest, PlainLoopsRunWhereTheyAreAskedFor) {
    int runs = 0;
    plain_loops_ = loops(runs, 0);
    EXPECT_EQ(run({}), 0) << out_ << err_;
    EXPECT_EQ(runs, 0) << "they take seconds";
    EXPECT_EQ(run({"--bench"}), 0) << out_ << err_;
    EXPECT_EQ(runs > 0, !course::is_cpu_stand_in());
    EXPECT_EQ(run({"--cpu-times", "--json", json_.c_str()}), 0) << out_ << err_;
    ASSERT_FALSE(written().empty());
    for (const auto& record : written()) {
        EXPECT_TRUE(record.at("version").get<std::string>().starts_with("plain_loop_")) << record;
        EXPECT_EQ(record.at("device"), course::kHostDevice);
        EXPECT_EQ(record.at("role"), "peer");
        EXPECT_GE(record.at("repeats"), 3);
    }
    EXPECT_EQ(out_.find("the end"), std::string::npos) << "nothing else is run";
    EXPECT_EQ(run({"--only", "plain_loop_1_thread"}), 0) << out_ << err_;
    EXPECT_NE(out_.find("plain_loop_1_thread (peer)"), std::string::npos) << out_;
    plain_loops_ = {};
    EXPECT_EQ(run({"--cpu-times"}), 2);
    EXPECT_NE(err_.find("nothing of this day runs on the host's CPU"), std::string::npos) << err_;
}

TEST_F(ProgramTest, ALongPlainLoopIsTimedOnceAndALongerOneLeftOut) {
    int runs = 0;
    EXPECT_EQ(loops(runs, 4).front().plain_loop_repeats, 3);
    EXPECT_EQ(loops(runs, 19).front().plain_loop_repeats, 1);
    plain_loops_ = loops(runs, 21);
    EXPECT_EQ(run({"--only", "plain_loop_1_thread"}), 0) << out_ << err_;
    EXPECT_NE(out_.find("it would take about 21 s"), std::string::npos) << out_;
    EXPECT_EQ(runs, 0);
}

TEST_F(ProgramTest, APlainLoopIsVerifiedAgainAfterItWasTimed) {
    int runs = 0;
    plain_loops_ = loops(runs, 0, true);
    EXPECT_EQ(run({"--only", "plain_loop_1_thread"}), 1) << out_;
    EXPECT_NE(out_.find("WRONG"), std::string::npos) << out_;
}

TEST_F(ProgramTest, WrongResultIsExitCodeOne) {
    EXPECT_EQ(
        run({}, [](auto& out, cudaStream_t stream) { course::testing::fill(out.span(), 1, 0, 999, stream); }),
        1);
    EXPECT_NE(out_.find("[999]: expected 1"), std::string::npos) << out_;
    EXPECT_NE(out_.find("WRONG"), std::string::npos) << out_;
}

TEST_F(ProgramTest, AResultThatNothingChecksIsExitCodeOne) {
    without_verify_ = true;
    EXPECT_EQ(run({}), 1);
    EXPECT_NE(out_.find("right has no verify, and neither has its case; expected one of them"),
              std::string::npos)
        << out_;
}

TEST_F(ProgramTest, OnlyALimitNeedsNoVerify) {
    course::Case problem = make_case({1000}, fill_right);
    problem.verify = nullptr;
    const auto failed = [&](Contestant contestant) {
        const auto records = course::run_contestant("day00_fill", problem, contestant, nullptr,
                                                    {.min_repeats = 1, .max_repeats = 1});
        return records.at(0).failed();
    };
    Contestant contestant = problem.contestants.front();
    EXPECT_TRUE(failed(contestant));
    contestant.role = course::Role::kPeer;
    EXPECT_TRUE(failed(contestant));
    contestant.role = course::Role::kLimit;
    EXPECT_FALSE(failed(contestant));
}

TEST_F(ProgramTest, WriteOutsideIsExitCodeOne) {
    EXPECT_EQ(run({}, [](auto& out,
                         cudaStream_t stream) { course::testing::fill(out.span(), 1, 0, 1001, stream); }),
              1);
    EXPECT_NE(out_.find("after the output were overwritten"), std::string::npos) << out_;
}

TEST_F(ProgramTest, WrongOnlyWhileTimedIsCaughtAfterwards) {
    int launches = 0;
    const auto lazy = [&launches](course::GuardedBuffer<float>& out, cudaStream_t stream) {
        if (launches++ == 0) fill_right(out, stream);
    };
    EXPECT_EQ(run({}, lazy), 1) << out_;
    EXPECT_NE(out_.find("WRONG"), std::string::npos) << out_;
}

TEST_F(ProgramTest, CudaErrorIsExitCodeOne) {
    EXPECT_EQ(run({}, [](auto&, cudaStream_t) { course::testing::launch_too_many_threads(); }), 1);
    EXPECT_NE(out_.find("kernel launch failed"), std::string::npos) << out_;
}

TEST_F(ProgramTest, NothingRunsOnADeviceThatAKernelHasBroken) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "on a GPU no later test of this program could run";
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a sanitizer ends the program at the bad access";
#endif
    const Fill far_outside = [](auto& out, cudaStream_t stream) {
        course::testing::fill(out.span(), 1, 0, 100'000'000, stream);
    };
    EXPECT_EQ(run({}, far_outside), 1);
    EXPECT_NE(out_.find("cudaErrorIllegalAddress"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("other 1000"), std::string::npos) << "only its own case is shown:\n" << out_;
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

TEST_F(ProgramTest, WhatCannotRunSaysWhy) {
    EXPECT_EQ(run({}, fill_right, "needs an even size"), 0);
    EXPECT_NE(out_.find("tried: needs an even size"), std::string::npos) << out_;
}

TEST_F(ProgramTest, BadArgumentsAreExitCodeTwo) {
    EXPECT_EQ(run({"--size", "12y"}), 2);
    EXPECT_NE(err_.find("--size: '12y' is no size"), std::string::npos) << err_;
    EXPECT_EQ(run({"--only", "rigth"}), 2);
    EXPECT_NE(err_.find("did you mean 'right'? Known: right, tried, only_here"), std::string::npos) << err_;
    EXPECT_EQ(run({"--no-such-option"}), 2);
    EXPECT_EQ(run({"--onyl", "right"}), 2);
    EXPECT_NE(err_.find("unknown option '--onyl': did you mean '--only'?"), std::string::npos) << err_;
    EXPECT_EQ(run({"--size", "-5"}), 2);
    EXPECT_NE(err_.find("'-5' is no size: expected numbers > 0"), std::string::npos) << err_;
    EXPECT_EQ(run({"--bench", "--size", "5"}), 2);
    EXPECT_EQ(run({"--help"}), 0);
    EXPECT_NE(out_.find("Example: day00_fill --size 1000"), std::string::npos) << out_;
}

TEST_F(ProgramTest, ASizeThatDoesNotFitSaysHowMuchItNeedsAndWhatThereIs) {
    for (const char* size : {"99999999999999999999", "4000000000x4000000000"}) {
        EXPECT_EQ(run({"--size", size}), 2);
        EXPECT_NE(
            err_.find(std::string("--size: '") + size + "' is too large: expected numbers whose product"),
            std::string::npos)
            << err_;
    }
    EXPECT_EQ(run({"--size", "0"}), 2);
    EXPECT_NE(err_.find("--size: '0' is no size: expected numbers > 0"), std::string::npos) << err_;
    EXPECT_EQ(run({"--size", "1000000000000000"}), 2);  // 10^15 floats
    EXPECT_NE(err_.find("size 1000000000000000: "), std::string::npos) << err_;
    EXPECT_NE(err_.find("3.55 PiB"), std::string::npos) << err_;
}

TEST_F(ProgramTest, ASizeThatDoesNotFitSaysWhatAllItsArraysNeed) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "on a GPU host and device have memory of their own";
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a sanitizer has an operator new of its own";
#endif
    struct Product {
        std::vector<float> a, b;
        course::DeviceBuffer<float> c;
    };
    const course::Program program{
        .day = "day00_product",
        .title = "",
        .default_size = {2, 3, 4},
        .make_cases = {[](const Dims& size) {
            const auto data = std::make_shared<Product>(Product{
                std::vector<float>(size.at(0) * size.at(1)), std::vector<float>(size.at(1) * size.at(2)),
                course::DeviceBuffer<float>(size.at(0) * size.at(2))});
            course::Case result{.problem = "product", .dtype = "float"};
            result.spoil = [data] {};
            return result;
        }}};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::vector<const char*> arguments = {"day00_product", "--size", "400000x300000x200000"};
    EXPECT_EQ(course::run_program(program, static_cast<int>(arguments.size()), arguments.data()), 2);
    testing::internal::GetCapturedStdout();
    const std::string said = testing::internal::GetCapturedStderr();
    // 4 (1.2 + 0.6 + 0.8) 10^11 bytes: none of the three would fit, and the first is 447 GiB.
    EXPECT_NE(said.find("size 400000x300000x200000: needs about 969 GiB; this machine has "),
              std::string::npos)
        << said;
}

TEST_F(ProgramTest, WhatOtherProcessesAllocateMeanwhileIsNotCounted) {
    std::vector<void*> of_others;  // as seen by cudaMemGetInfo
    const course::Program program{
        .day = "day00_others",
        .title = "",
        .default_size = {1000},
        .make_cases = {[&of_others](const Dims& size) {
            CUDA_CHECK(cudaMalloc(&of_others.emplace_back(), of_others.size() << 22));
            const auto data = std::make_shared<course::DeviceBuffer<float>>(size.at(0));
            course::Case result{.problem = "fill", .dtype = "float"};
            result.spoil = [data] {};
            return result;
        }}};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::vector<const char*> arguments = {"day00_others", "--size", "1000000000000000"};
    EXPECT_EQ(course::run_program(program, static_cast<int>(arguments.size()), arguments.data()), 2);
    testing::internal::GetCapturedStdout();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("size 1000000000000000: needs about 3.55 PiB"), std::string::npos) << said;
    for (void* const memory : of_others)
        CUDA_CHECK(cudaFree(memory));
}

TEST_F(ProgramTest, AHostArrayThatDoesNotFitIsRefusedBeforeTheSystemEndsTheProgram) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a sanitizer has an operator new of its own";
#endif
    // As large as the memory of the machine: the system would grant it, although less is
    // available.
    const auto all =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
    try {
        const std::vector<char> array(all - (std::size_t{1} << 20));
        FAIL() << "expected std::bad_alloc";
    } catch (const std::bad_alloc& error) {
        EXPECT_NE(std::string(error.what()).find("iB; this machine has "), std::string::npos) << error.what();
    }
}

TEST_F(ProgramTest, ChosenSizeAndVersionAlone) {
    EXPECT_EQ(run({"--size", "77", "--only", "right"}), 0);
    EXPECT_NE(out_.find("fill 77"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("tried"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("other"), std::string::npos) << out_;
    EXPECT_EQ(run({"--only", "only_here"}), 0) << "a name that not every case has";
    EXPECT_NE(out_.find("other 1000"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("fill 1000"), std::string::npos) << out_;
}

TEST_F(ProgramTest, BenchWritesARecordForEachSizeAndVersion) {
    if (!course::is_release_build()) {
        EXPECT_EQ(run({"--bench"}), 2);
        EXPECT_NE(err_.find("Release"), std::string::npos) << err_;
        return;
    }
    ASSERT_EQ(run({"--bench", "--json", json_.c_str()}), 0) << out_ << err_;
    const auto records = written();
    EXPECT_EQ(records.size(), course::is_cpu_stand_in() ? 6u : 12u)
        << "two sizes, two versions; on a GPU warm and flushed";
    for (const auto& record : records) {
        EXPECT_EQ(record.at("verified"), true);
        EXPECT_EQ(record.at("day"), "day00_fill");
        EXPECT_GE(record.at("repeats"), 3);
    }
}

TEST_F(ProgramTest, SweepIsAnOptionOfThoseThatHaveSizesForIt) {
    EXPECT_EQ(run({"--sweep"}), 2);
    sweep_sizes_ = {{30}, {40}, {50}};
    EXPECT_EQ(run({"--sweep", "--bench"}), 2);
    EXPECT_EQ(run({"--sweep", "--size", "5"}), 2);
    if (!course::is_release_build()) {
        EXPECT_EQ(run({"--sweep"}), 2);
        return;
    }
    EXPECT_EQ(run({"--sweep", "--only", "right"}), 0) << err_;
    for (const char* text : {"fill 30", "fill 40", "fill 50"})
        EXPECT_NE(out_.find(text), std::string::npos) << out_;
    EXPECT_EQ(out_.find("fill 100,"), std::string::npos) << "of --bench:\n" << out_;
}

TEST_F(ProgramTest, PlotIsAnOptionOfThoseThatHaveSizesForItAndHasItsOwnCases) {
    EXPECT_EQ(run({"--plot"}), 2);
    plot_sizes_ = {{30}, {40}};
    sweep_sizes_ = {{50}};
    EXPECT_EQ(run({"--plot", "--bench"}), 2);
    EXPECT_EQ(run({"--plot", "--size", "5"}), 2);
    EXPECT_EQ(run({"--plot", "--sweep"}), 2);
    if (!course::is_release_build()) {
        EXPECT_EQ(run({"--plot"}), 2);
        return;
    }
    EXPECT_EQ(run({"--plot", "--only", "right"}), 0) << err_;
    for (const char* text : {"plotted 30", "plotted 40"})
        EXPECT_NE(out_.find(text), std::string::npos) << out_;
    EXPECT_EQ(out_.find("fill "), std::string::npos) << "of other options:\n" << out_;
    EXPECT_EQ(out_.find("plotted 50"), std::string::npos) << "of --sweep:\n" << out_;
}

TEST_F(ProgramTest, RandomProblemsAreDrawnVerifiedAndWritten) {
    has_distribution_ = true;
    ASSERT_EQ(run({"--random", "5", "--seed", "3", "--json", json_.c_str()}), 0) << out_ << err_;
    EXPECT_NE(out_.find("lengths: any n; at most "), std::string::npos) << out_;
    EXPECT_NE(out_.find("day00_fill, lengths, seed 3: 5 of 5 problems right\n"), std::string::npos) << out_;
    EXPECT_NE(out_.find("tried is right"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("fill 1000,"), std::string::npos) << "of other options:\n" << out_;
    EXPECT_EQ(out_.find("the end"), std::string::npos) << "what belongs to the usual list:\n" << out_;
    const std::vector<nlohmann::json> problems = written_problems();
    ASSERT_EQ(problems.size(), 5u);
    for (std::size_t i = 0; i < problems.size(); ++i) {
        course::Draw draw(3, i, course::is_cpu_stand_in() ? 500 : 5000);
        EXPECT_EQ(problems[i].at("index"), i);
        EXPECT_EQ(problems[i].at("seed"), 3);
        EXPECT_EQ(problems[i].at("size"), course::draw_length(draw).size);
        EXPECT_EQ(problems[i].at("right"), true);
        EXPECT_EQ(problems[i].contains("median_ms"), !course::is_cpu_stand_in())
            << "a time of the stand-in says nothing";
    }
}

TEST_F(ProgramTest, RandomProblemsKeepWithinAGivenLimit) {
    has_distribution_ = true;
    ASSERT_EQ(run({"--random", "30", "--random-limit", "3"}), 0) << out_ << err_;
    EXPECT_NE(out_.find("fill 3; "), std::string::npos) << out_;
    for (const char* larger : {"fill 4", "fill 5", "fill 6", "fill 7", "fill 8", "fill 9", "fill 10"})
        EXPECT_EQ(out_.find(larger), std::string::npos) << out_;
}

TEST_F(ProgramTest, OfOursTheFirstThatCanRunIsTakenOrTheOneNamed) {
    has_distribution_ = true;
    EXPECT_EQ(run({"--random", "2"}, fill_right, "needs an even size"), 0) << err_;
    EXPECT_NE(out_.find(": right is right"), std::string::npos) << out_;
    EXPECT_EQ(run({"--random", "2", "--only", "tried"}, fill_right, "needs an even size"), 0) << err_;
    EXPECT_NE(out_.find("all problems are refused by ours: needs an even size"), std::string::npos) << out_;
    EXPECT_EQ(run({"--random", "2", "--only", "rigth"}), 2);
    EXPECT_NE(err_.find("did you mean 'right'?"), std::string::npos) << err_;
}

TEST_F(ProgramTest, RandomProblemsOfWhichNoneIsSolvedFail) {
    has_distribution_ = true;
    ours_ = {"tried"};
    EXPECT_EQ(run({"--random", "2"}, fill_right, "needs an even size"), 1);
    EXPECT_NE(err_.find("FAILED: lengths: no problem was solved"), std::string::npos) << err_;
}

TEST_F(ProgramTest, ARandomProblemThatDoesNotFitEndsNoOther) {
    has_distribution_ = true;
    fits_ = 20;
    EXPECT_EQ(run({"--random", "12", "--json", json_.c_str()}), 0) << err_;
    EXPECT_NE(out_.find("tried is right"), std::string::npos) << out_;
    const std::vector<nlohmann::json> problems = written_problems();
    ASSERT_EQ(problems.size(), 12u);
    for (const nlohmann::json& problem : problems)
        EXPECT_EQ(problem.contains("cannot_run"), problem["size"][0].get<std::size_t>() > 20) << problem;
}

TEST_F(ProgramTest, AWrongRandomProblemFailsAndTheOthersAreRunAndWritten) {
    has_distribution_ = true;
    const auto only_short = [](course::GuardedBuffer<float>& out, cudaStream_t stream) {
        if (out.size() < 20) fill_right(out, stream);
    };
    EXPECT_EQ(run({"--random", "12", "--json", json_.c_str()}, only_short), 1) << out_;
    EXPECT_NE(err_.find("FAILED: see the problems above"), std::string::npos) << err_;
    EXPECT_NE(out_.find("tried is right"), std::string::npos) << out_;
    EXPECT_NE(out_.find(": FAILED: "), std::string::npos) << out_;
    std::istringstream lines(written_text());
    int count = 0;
    int right = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        const auto problem = nlohmann::json::parse(line);
        EXPECT_EQ(problem.at("right"), problem.at("size").at(0) < 20);
        EXPECT_EQ(problem.at("right"), !problem.contains("failure"));
        right += problem.at("right") ? 1 : 0;
    }
    EXPECT_EQ(count, 12);
    EXPECT_GT(right, 0);
    EXPECT_LT(right, 12);
}

TEST_F(ProgramTest, BadRandomArgumentsNameTheOptionItsValueAndWhatWasExpected) {
    has_distribution_ = true;
    const auto expect = [&](const std::vector<const char*>& arguments, const std::string& message) {
        EXPECT_EQ(run(arguments), 2);
        EXPECT_NE(err_.find("day00_fill: " + message + "\n"), std::string::npos) << err_;
    };
    const std::string most = ": expected a whole number from 1 to 1000000";
    for (const char* count : {"0", "-1", "x", "3x", "1.5", "1000001", "99999999999999999999"})
        expect({"--random", count}, "--random '" + std::string(count) + "'" + most);
    expect({"--random", "1", "--seed", "-1"},
           "--seed '-1': expected a whole number from 0 to 18446744073709551615");
    expect({"--random", "1", "--random-limit", "0"},
           "--random-limit '0': expected a whole number from 1 to 1152921504606846976");
    expect({"--seed", "4"}, "--seed '4': expected with --random N");
    expect({"--random-limit", "4"}, "--random-limit '4': expected with --random N");
    expect({"--random", "7", "--size", "5"}, "--random 7: expected without --size");
    expect({"--random", "7", "--bench"}, "--random 7: expected without --bench");
    expect({"--random", "7", "--cpu-times"}, "--random 7: expected without --cpu-times");
    has_distribution_ = false;
    expect({"--random", "7"},
           "--random 7: day00_fill has no distribution of random problems; expected a program with one");
    EXPECT_EQ(run({"--help"}), 0);
    EXPECT_EQ(out_.find("--random"), std::string::npos) << out_;
}

TEST_F(ProgramTest, AKernelIsAskedForItsResourcesOnceItHasRun) {
    if (!course::is_release_build()) GTEST_SKIP() << "--json needs a Release build";
    bool has_run = false;
    bool had_run = false;
    resources_ = [&] {
        had_run = has_run;
        return course::KernelResources{.threads = 64, .limit = "blocks"};
    };
    const Fill fill = [&](course::GuardedBuffer<float>& out, cudaStream_t stream) {
        has_run = true;
        fill_right(out, stream);
    };
    ASSERT_EQ(run({"--only", "tried", "--json", json_.c_str()}, fill), 0) << out_ << err_;
    EXPECT_TRUE(had_run);
    for (const auto& record : written())
        EXPECT_EQ(record.at("kernel").at("threads"), 64);
}

TEST_F(ProgramTest, FiguresOfAResultAreWritten) {
    if (!course::is_release_build()) GTEST_SKIP() << "--json needs a Release build";
    figures_ = [] { return course::Figures{{"relative error", 0.5}}; };
    ASSERT_EQ(run({"--only", "tried", "--json", json_.c_str()}), 0) << out_ << err_;
    for (const auto& record : written())
        EXPECT_EQ(record.at("figures").at(0).at(1), 0.5);
}

TEST_F(ProgramTest, NothingIsWrittenWhenAResultIsWrong) {
    if (!course::is_release_build()) GTEST_SKIP() << "--json needs a Release build";
    EXPECT_EQ(run({"--json", json_.c_str()}, [](auto&, cudaStream_t) {}), 1);
    EXPECT_FALSE(std::filesystem::exists(json_));
    EXPECT_FALSE(std::filesystem::exists(json_ + ".part"));
}

TEST_F(ProgramTest, WhatIsMeasuredIsInAFileBeforeTheNextProblem) {
    if (!course::is_release_build()) GTEST_SKIP() << "--json needs a Release build";
    std::string before_the_second;
    derive_figures_ = [&](std::span<course::Record> records) {
        if (records.front().problem != "fill 2000") return;
        std::ifstream file(json_ + ".part");
        before_the_second.assign(std::istreambuf_iterator<char>(file), {});
    };
    ASSERT_EQ(run({"--bench", "--json", json_.c_str()}), 0) << out_ << err_;
    std::set<std::string> problems;
    for (const auto& record : course::from_json_lines(before_the_second))
        problems.insert(record.at("problem"));
    EXPECT_EQ(problems, (std::set<std::string>{"fill 100", "other 100"}));
    EXPECT_FALSE(std::filesystem::exists(json_ + ".part"));
}

TEST_F(ProgramTest, AFileThatCannotBeWrittenIsExitCodeOne) {
    if (!course::is_release_build()) GTEST_SKIP() << "--json needs a Release build";
    EXPECT_EQ(run({"--json", "/proc/nowhere.json"}), 1);
    EXPECT_NE(err_.find("/proc/nowhere.json"), std::string::npos) << err_;
}

TEST_F(ProgramTest, InspectSaysWhyItCannot) {
    if (course::why_no_inspection().empty()) GTEST_SKIP() << "this build inspects";
    EXPECT_EQ(run({"--inspect", json_.c_str()}), 2);
    EXPECT_NE(err_.find("cmake --preset inspect"), std::string::npos) << err_;
    EXPECT_FALSE(std::filesystem::exists(json_));
}

TEST_F(ProgramTest, ProfileLaunchesEachVersionOfAProblemTwice) {
    int launches = 0;
    const Fill counted = [&](auto& out, cudaStream_t stream) {
        ++launches;
        fill_right(out, stream);
    };
    ASSERT_EQ(run({"--bench", "--profile", "fill 2000", "--profile", "other 100"}, counted), 0)
        << out_ << err_;
    EXPECT_EQ(launches, 2) << "not on the problem of the other size";
    EXPECT_NE(out_.find("profiled: fill 2000 / right\nprofiled: fill 2000 / tried\n"), std::string::npos)
        << out_;
    EXPECT_NE(out_.find("profiled: other 100 / only_here\n"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("fill 100"), std::string::npos) << out_;

    EXPECT_EQ(run({"--profile", "fill 1000", "--only", "right"}, counted), 0) << out_ << err_;
    EXPECT_EQ(launches, 2);
    EXPECT_EQ(run({"--profile", "fill 1000"}, counted, "too odd"), 0) << err_;
    EXPECT_NE(out_.find("fill 1000 / tried: cannot run: too odd"), std::string::npos) << out_;
}

TEST_F(ProgramTest, ProfileTakesTheCaseMadeForIt) {
    profiled_instead_ = 16;
    EXPECT_EQ(run({"--bench", "--profile", "fill 2000", "--only", "tried"}), 0) << out_ << err_;
    EXPECT_NE(out_.find("profiled: fill 16 / tried\n"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("profiled: fill 2000"), std::string::npos) << out_;
}

TEST_F(ProgramTest, ProfileLeavesOutWhatHasTooManyLaunches) {
    not_profiled_ = "32,769 launches";
    int launches = 0;
    const Fill counted = [&](auto& out, cudaStream_t stream) {
        ++launches;
        fill_right(out, stream);
    };
    EXPECT_EQ(run({"--bench", "--profile", "fill 2000"}, counted), 0) << out_ << err_;
    EXPECT_NE(out_.find("profiled: fill 2000 / right\nfill 2000 / tried: not profiled: 32,769 launches\n"),
              std::string::npos)
        << out_;
    EXPECT_EQ(launches, 0);
}

TEST_F(ProgramTest, ProfileRefusesWhatItDoesNotKnow) {
    EXPECT_EQ(run({"--bench", "--profile", "fill 2001"}), 2);
    EXPECT_NE(err_.find("fill 2000"), std::string::npos) << err_;
    EXPECT_EQ(run({"--profile", "fill 1000", "--only", "tired"}), 2);
    EXPECT_NE(err_.find("tried"), std::string::npos) << err_;
    EXPECT_EQ(run({"--profile", "fill 1000", "--only", "tried"}, [](auto&, cudaStream_t) {}), 1)
        << "the result is wrong";
}

TEST_F(ProgramTest, InspectWritesWhatEachVersionDid) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const auto results = [&] {
        std::ifstream file(json_);
        return course::inspection_file_from_json(nlohmann::ordered_json::parse(file)).results;
    };
    ASSERT_EQ(run({"--inspect", json_.c_str(), "--size", "64"}), 0) << out_ << err_;
    ASSERT_EQ(results().size(), 3u);
    EXPECT_EQ(results()[1].version, "tried");
    EXPECT_TRUE(results()[1].verified);
    ASSERT_EQ(results()[1].kernels.size(), 1u);
    EXPECT_EQ(results()[1].kernels[0].global_written_bytes, 256u);

    // Wrong results and versions that cannot run are written, too.
    EXPECT_EQ(run({"--inspect", json_.c_str(), "--only", "tried"}, [](auto&, cudaStream_t) {}), 1);
    ASSERT_EQ(results().size(), 1u);
    EXPECT_FALSE(results()[0].verified);
    EXPECT_NE(results()[0].failure, "");
    EXPECT_EQ(run({"--inspect", json_.c_str(), "--only", "tried"}, fill_right, "too odd"), 0);
    EXPECT_EQ(results()[0].cannot_run, "too odd");

    without_verify_ = true;
    EXPECT_EQ(run({"--inspect", json_.c_str(), "--only", "tried"}), 1);
    EXPECT_EQ(results()[0].failure, "tried has no verify, and neither has its case; expected one of them");
    without_verify_ = false;

    EXPECT_EQ(run({"--inspect", json_.c_str(), "--only", "tired"}), 2);
    EXPECT_NE(err_.find("tried"), std::string::npos) << err_;
    EXPECT_EQ(run({"--inspect", json_.c_str(), "--bench"}), 2);
}

// A day with its own option, --copies, which sets the size.
class OwnOptionsTest : public course::DeviceTest {
  protected:
    int run(std::vector<const char*> arguments, const Fill& fill = fill_right) {
        int copies = 1;
        const course::Program program{
            .day = "day00_fill",
            .title = "fills a buffer",
            .default_size = {1000},
            .make_cases = {[&](const Dims& size) { return make_case(size, fill); }},
            .add_options =
                [&](CLI::App& app, course::Program& own) {
                    app.add_option("--copies", copies, "how many");
                    app.callback([&] {
                        if (copies < 1) throw std::invalid_argument("--copies: expected at least 1");
                        own.default_size = {static_cast<std::size_t>(copies) * 10};
                    });
                },
            .finish =
                [&] {
                    finished_ = true;
                    if (copies == 99) throw std::invalid_argument("--copies: too late for 99");
                }};
        arguments.insert(arguments.begin(), "day00_fill");
        finished_ = false;
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int code = course::run_program(program, static_cast<int>(arguments.size()), arguments.data());
        std::fflush(nullptr);
        out_ = testing::internal::GetCapturedStdout();
        err_ = testing::internal::GetCapturedStderr();
        return code;
    }

    std::string out_;
    std::string err_;
    bool finished_ = false;
};

TEST_F(OwnOptionsTest, MayChangeTheProgram) {
    EXPECT_EQ(run({"--copies", "7"}), 0) << err_;
    EXPECT_NE(out_.find("fill 70, float"), std::string::npos) << out_;
    EXPECT_TRUE(finished_);
    EXPECT_EQ(run({"--help"}), 0);
    EXPECT_NE(out_.find("--copies"), std::string::npos) << out_;
}

TEST_F(OwnOptionsTest, WrongValuesAreExitCodeTwoBeforeAndAfterTheRun) {
    EXPECT_EQ(run({"--copies", "0"}), 2);
    EXPECT_EQ(err_, "day00_fill: --copies: expected at least 1\n");
    EXPECT_FALSE(finished_);
    EXPECT_EQ(run({"--copies", "99"}), 2);
    EXPECT_NE(err_.find("--copies: too late for 99"), std::string::npos) << err_;
}

TEST_F(OwnOptionsTest, AWrongResultIsNotFinished) {
    EXPECT_EQ(run({}, [](auto&, cudaStream_t) {}), 1);
    EXPECT_FALSE(finished_);
}

TEST(ParseDims, TakesNumbersWithXBetween) {
    EXPECT_EQ(course::parse_dims("4096"), (Dims{4096}));
    EXPECT_EQ(course::parse_dims("4096x1024x3"), (Dims{4096, 1024, 3}));
    for (const char* bad :
         {"", "x", "0", "-1", "4x", "x4", "4xx4", "4 x 4", "1e3", "99999999999999999999999"}) {
        EXPECT_THROW(course::parse_dims(bad), std::invalid_argument) << bad;
    }
}

TEST(BuildInfo, CommitCanBeSetFromOutside) {
    EXPECT_FALSE(course::commit().empty());
    setenv("COURSE_COMMIT", "0123456789ab", 1);
    EXPECT_EQ(course::commit(), "0123456789ab");
    unsetenv("COURSE_COMMIT");
}

}  // namespace
