// Linked into every program that the nvcc of an inspecting build makes: all its kernels are
// watched, from before main() to its end. The results are written to the file named by
// CUDA_ON_CPU_INSPECTION, as JSON, or to stderr as text.
//
// All names here are local: a program may be linked with this file twice (-lcudart
// -lcudart_static).
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "inspection_json.hpp"
#include "inspector.hpp"

namespace cuda_on_cpu::inspector {
namespace {

constexpr std::size_t kShownLines = 10;
constexpr unsigned kSecondsAfterAbort = 20;

std::string place(const SourceLine& source) {
    return source.line == 0 ? "an unknown place" : source.file + ":" + std::to_string(source.line);
}

std::string triple(const std::array<unsigned, 3>& index) {
    return "(" + std::to_string(index[0]) + ", " + std::to_string(index[1]) + ", " +
           std::to_string(index[2]) + ")";
}

std::uint64_t beyond_ideal(const AccessLine& line) {
    const std::uint64_t bytes = line.space == Space::kShared ? 128 : 32;
    return bytes * (line.transactions - std::min(line.ideal, line.transactions));
}

double each(std::uint64_t count, const AccessLine& line) {
    return static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(line.requests, 1));
}

void print_line(const AccessLine& line) {
    const std::string_view operation = kOperationNames[static_cast<std::size_t>(line.operation)];
    std::fprintf(stderr, "  %s: %s %.*s of %u bytes, %s: %llu requests, %.2f %s each, ideal %.2f\n",
                 place(line.source).c_str(),
                 kSpaceNames[static_cast<std::size_t>(line.space)].data(),  // ends with a zero: a literal
                 static_cast<int>(operation.size()), operation.data(), line.bytes, line.worst.array.c_str(),
                 static_cast<unsigned long long>(line.requests), each(line.transactions, line),
                 line.space == Space::kShared ? "wavefronts" : "sectors", each(line.ideal, line));
}

void print_finding(const Finding& finding) {
    std::fprintf(stderr, "  FINDING %s (%llu): %s: %s\n    thread %s of block %s\n", finding.kind.c_str(),
                 static_cast<unsigned long long>(finding.count), place(finding.source).c_str(),
                 finding.message.c_str(), triple(finding.thread).c_str(), triple(finding.block).c_str());
    if (finding.other) {
        std::fprintf(stderr, "    and %s: thread %s of block %s\n", place(*finding.other).c_str(),
                     triple(finding.other_thread).c_str(), triple(finding.other_block).c_str());
    }
    if (!finding.why.empty()) std::fprintf(stderr, "    %s\n", finding.why.c_str());
}

void print(Inspection seen) {
    std::size_t findings = 0;
    for (KernelInspection& kernel : seen.kernels) {
        const std::string sampled =
            kernel.inspected_blocks == kernel.blocks
                ? ""
                : ", of which " + std::to_string(kernel.inspected_blocks) + " were watched";
        std::fprintf(stderr, "cuda_on_cpu: inspected %s: %llu blocks of %u threads%s\n", kernel.name.c_str(),
                     static_cast<unsigned long long>(kernel.blocks), kernel.threads_per_block,
                     sampled.c_str());
        std::ranges::stable_sort(kernel.lines, std::ranges::greater(), beyond_ideal);
        for (std::size_t i = 0; i < std::min(kernel.lines.size(), kShownLines); ++i)
            print_line(kernel.lines[i]);
        std::ranges::for_each(kernel.findings, print_finding);
        findings += kernel.findings.size();
    }
    if (!seen.kernels.empty())
        std::fprintf(stderr, "cuda_on_cpu: inspection: %zu finding%s\n", findings, findings == 1 ? "" : "s");
}

class WholeProgram {
  public:
    WholeProgram() {
        if (launch_observer != nullptr) return;
        begin_inspection();
        process_ = getpid();
        running = this;
        std::at_quick_exit([] { running->finish(); });
        std::signal(SIGABRT, report_and_abort);
        report_when_interrupted();
    }
    // Constructed before all other static objects and therefore destroyed after them, because their
    // destructors may launch kernels, too.
    ~WholeProgram() {
        // Includes kernels that the program has not waited for.
        static_cast<void>(cudaDeviceSynchronize());
        finish();
    }
    WholeProgram(const WholeProgram&) = delete;
    WholeProgram& operator=(const WholeProgram&) = delete;

  private:
    // The host's assert(), or an uncaught exception: programs often end this way when a result is
    // wrong.
    static void report_and_abort(int) {
        std::signal(SIGABRT, SIG_DFL);
        // The aborting thread may hold a lock that is needed here.
        alarm(kSecondsAfterAbort);
        running->finish();
        std::abort();
    }

    // Ctrl-C, and what `timeout` and `kill` send. The signal may arrive while its thread holds a
    // lock, so another thread reports; kernels go on meanwhile. Does nothing if it is ignored.
    static void report_when_interrupted() {
        if (pipe2(interrupts.data(), O_CLOEXEC) != 0) return;
        for (const int signal : {SIGINT, SIGTERM}) {
            struct sigaction before {};
            if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
            struct sigaction action {};
            action.sa_handler = interrupt;
            action.sa_flags = SA_RESTART;
            sigaction(signal, &action, nullptr);
        }
        std::thread(report_and_end).detach();
    }

    static void interrupt(int signal) {
        // `timeout` sends two at once, and a user who is impatient another one later.
        constexpr std::time_t kSecondsTogether = 2;
        static std::atomic<std::time_t> first = 0;
        std::time_t unset = 0;
        const std::time_t now = std::time(nullptr);
        const bool is_first = first.compare_exchange_strong(unset, now);
        if (!is_first && now - first <= kSecondsTogether) return;
        const auto number = static_cast<unsigned char>(signal);
        if (is_first && running->process_ == getpid() && write(interrupts[1], &number, 1) == 1) return;
        std::signal(signal, SIG_DFL);
        raise(signal);
    }

    static void report_and_end() {
        unsigned char signal = 0;
        if (read(interrupts[0], &signal, 1) != 1) return;
        alarm(kSecondsAfterAbort);
        std::fprintf(stderr, "cuda_on_cpu: interrupted by %s: what the inspection has seen so far follows\n",
                     signal == SIGINT ? "SIGINT" : "SIGTERM");
        running->finish();
        std::signal(signal, SIG_DFL);
        kill(getpid(), signal);
    }

    void finish() {
        pid_t own = getpid();
        if (!process_.compare_exchange_strong(own, 0)) return;  // a child of fork() has nothing to report
        const char* const file = std::getenv("CUDA_ON_CPU_INSPECTION");
        if (file == nullptr || *file == '\0') return print(result_so_far());
        std::ofstream out(file);
        out << json_of(result_so_far()).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
        if (!out.flush())
            std::fprintf(stderr, "cuda_on_cpu: CUDA_ON_CPU_INSPECTION: cannot write '%s'\n", file);
    }

    static constinit WholeProgram* running;

    static constinit std::array<int, 2> interrupts;  // a pipe

    std::atomic<pid_t> process_ = 0;
};

constinit WholeProgram* WholeProgram::running = nullptr;
constinit std::array<int, 2> WholeProgram::interrupts{};
[[gnu::init_priority(101)]] WholeProgram whole_program;

}  // namespace
}  // namespace cuda_on_cpu::inspector
