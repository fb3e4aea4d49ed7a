#include "build.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "days.hpp"
#include "errors.hpp"
#include "file_lock.hpp"
#include "sandbox.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

// The lock that the ./course script takes, too. Two builds in one directory at the same time would
// damage each other.
class BuildLock : public FileLock {
  public:
    BuildLock(const Checkout& checkout, const std::string& purpose)
        : FileLock(checkout.build.string() + ".lock", purpose) {}
};

// Ninja's "[3/40] Building CXX object ...".
bool is_step(std::string_view line) {
    return line.starts_with("[");
}

// Steps worth reporting. A build with nothing to do still runs the step that reads the commit from
// git.
bool is_work(std::string_view line) {
    return is_step(line) && (line.find("] Building") != std::string_view::npos ||
                             line.find("] Linking") != std::string_view::npos);
}

// "3 of 40" of "[3/40] Building ...".
std::string count_of(std::string_view step) {
    const auto slash = step.find('/'), end = step.find(']');
    if (slash == step.npos || end == step.npos || slash > end) return "";
    return fmt::format("{} of {}", step.substr(1, slash - 1), step.substr(slash + 1, end - slash - 1));
}

// Shows progress. On a terminal: the current step, on one line that the next step overwrites.
// Elsewhere: that a build has started, and its progress every half a minute.
class Progress {
  public:
    explicit Progress(std::string target) : target_(std::move(target)) {}
    ~Progress() {
        if (shown_ && on_terminal_) fmt::print(stderr, "\r\033[K");
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::string_view step) {
        if (on_terminal_) {
            fmt::print(stderr, "\r\033[K{}", step.substr(0, columns() - 1));
            std::fflush(stderr);
        } else if (!shown_) {
            fmt::print(stderr, "course: building {}\n", target_);
        } else if (const auto now = Clock::now(); now - told_ >= std::chrono::seconds(30)) {
            fmt::print(stderr, "course: building {}: step {}\n", target_, count_of(step));
            told_ = now;
        }
        shown_ = true;
    }

  private:
    using Clock = std::chrono::steady_clock;

    static std::size_t columns() {
        winsize size{};
        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
    }

    std::string target_;
    bool on_terminal_ = isatty(STDERR_FILENO) == 1;
    bool shown_ = false;
    Clock::time_point told_ = Clock::now();
};

// The output of a failed build without the successful steps.
std::string messages_of(std::string_view log) {
    std::string messages;
    while (!log.empty()) {
        const std::string_view line = log.substr(0, log.find('\n'));
        log.remove_prefix(std::min(line.size() + 1, log.size()));
        if (!is_step(line)) messages += std::string(line) + "\n";
    }
    return messages;
}

bool has_line(const std::filesystem::path& file, std::string_view wanted) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        if (line == wanted) return true;
    }
    return false;
}

// A directory that was configured at another path (the checkout was moved or copied) does not
// count.
bool is_configured(const Checkout& checkout) {
    if (!std::filesystem::exists(checkout.build / "build.ninja")) return false;
    return has_line(checkout.build / "CMakeCache.txt",
                    "CMAKE_HOME_DIRECTORY:INTERNAL=" + checkout.root.string());
}

Command build_command(const Checkout& checkout, const std::string& target) {
    return {"cmake", "--build", checkout.build.string(), "--target", target};
}

// The GCC to build with: the compiler in CXX if it is GCC, else g++.
std::string find_gcc() {
    const char* const chosen = std::getenv("CXX");
    for (const std::string compiler : {chosen == nullptr ? "" : chosen, "g++"}) {
        if (!compiler.empty() && capture({compiler, "-v"}).output.find("gcc version") != std::string::npos)
            return compiler;
    }
    throw BuildError(
        "inspection needs g++, whose instrumentation shows every access of a kernel; it was not found. "
        "Install it: "
        "apt-get install g++");
}

bool has_variant(const Calendar& calendar, const std::string& variant) {
    return std::ranges::find(calendar.variants, variant) != calendar.variants.end();
}

// `preset`: the build that is another variant as a whole.
VariantBuild find_variant(const Checkout& checkout, const std::string& variant, const std::string& preset) {
    const Checkout alone = preset_checkout(checkout, preset);
    if (checkout.build == alone.build) return {alone, ""};
    for (const Checkout& build : {checkout, preset_checkout(checkout, "cpu")}) {
        if (std::filesystem::exists(build.calendar()) &&
            has_variant(load_calendar(build.calendar()), variant))
            return {build, "_" + variant};
    }
    return {alone, ""};
}

VariantBuild configure_variant(const Checkout& checkout, const std::string& variant,
                               const std::string& preset) {
    if (load_calendar(checkout.calendar()).backend == "gpu") build_of_preset(checkout, "cpu");
    VariantBuild build = find_variant(checkout, variant, preset);
    if (build.suffix.empty()) build_of_preset(checkout, preset);
    return build;
}

}  // namespace

VariantBuild inspected_build(const Checkout& checkout) {
    return find_variant(checkout, "inspected", "inspect");
}

VariantBuild debugged_build(const Checkout& checkout) {
    return find_variant(checkout, "debugged", "cpu-debug");
}

VariantBuild configure_inspected_build(const Checkout& checkout) {
    return configure_variant(checkout, "inspected", "inspect");
}

VariantBuild configure_debugged_build(const Checkout& checkout) {
    return configure_variant(checkout, "debugged", "cpu-debug");
}

void configure(const Checkout& checkout, const std::string& preset,
               const std::vector<std::string>& settings) {
    std::filesystem::create_directories(checkout.build);
    const BuildLock lock(checkout, "configuring " + checkout.build.filename().string());
    if (is_configured(checkout)) return;
    fmt::print(stderr, "course: configuring {}\n", checkout.build.string());
    Command command = {"cmake", "--fresh", "-S", checkout.root.string(), "--preset", preset};
    for (const std::string& setting : settings)
        command.push_back("-D" + setting);
    const Captured configured = capture(command);
    if (configured.exit_code == kSuccess) return;
    fmt::print(stderr, "{}", configured.output);
    throw BuildError(
        fmt::format("configuring {} failed: {}", checkout.build.string(), shell_quoted(command)));
}

Checkout preset_checkout(const Checkout& checkout, const std::string& preset) {
    return {checkout.root, checkout.root / "build" / preset};
}

Checkout build_of_preset(const Checkout& checkout, const std::string& preset) {
    const Checkout other = preset_checkout(checkout, preset);
    if (other.build == checkout.build) return checkout;
    std::vector<std::string> settings;
    if (preset == "inspect") settings.push_back("CMAKE_CXX_COMPILER=" + find_gcc());
    configure(other, preset, settings);
    return other;
}

void announce_first_build(const Checkout& checkout, const std::string& target, const std::string& what) {
    if (std::filesystem::exists(checkout.program(target))) return;
    fmt::print(stderr, "{}\n",
               styled(fmt::format("course: {}, which may take minutes. Those after it take seconds", what),
                      kQuiet, stderr));
}

std::string try_to_build(const Checkout& checkout, const std::string& target) {
    const std::string what = target == "course_tests"            ? "all tests of lessons"
                             : target == "course_tests_thorough" ? "the other tests"
                                                                 : target;
    const BuildLock lock(checkout, "building " + what);
    Progress progress(what);
    const Captured build = capture(
        compiling(build_command(checkout, target)),
        [&progress](std::string_view line) {
            if (is_work(line)) progress.show(line);
        },
        limit_of_compiler());
    if (build.exit_code == kSuccess) return "";
    if (is_interrupted(build.exit_code) ||
        (!in_sandbox() && build.output.find("interrupted by user") != std::string::npos))
        throw Interrupted();
    if (build.timed_out)
        return fmt::format("the compiler was not done after {} s, and was ended\n",
                           limit_of_compiler().count());
    if (build.flooded)
        return fmt::format("the compiler printed more than {} MB, and was ended\n", kMostOutput >> 20);
    const std::string messages = messages_of(build.output);
    return messages.empty() ? fmt::format("exit code {}\n", build.exit_code) : messages;
}

void build_target(const Checkout& checkout, const std::string& target) {
    const std::string messages = try_to_build(checkout, target);
    if (messages.empty()) return;
    fmt::print(stderr, "{}", messages);
    throw BuildError(
        fmt::format("building {} failed: {}", target, shell_quoted(build_command(checkout, target))));
}

void set_cache_path(const Checkout& checkout, const std::string& name, const std::filesystem::path& path) {
    if (has_line(checkout.build / "CMakeCache.txt", fmt::format("{}:PATH={}", name, path.string()))) return;
    const BuildLock lock(checkout, "configuring " + checkout.build.filename().string());
    const Command command = {"cmake", "-S",           checkout.root,
                             "-B",    checkout.build, fmt::format("-D{}:PATH={}", name, path.string())};
    const Captured configured = capture(command);
    if (configured.exit_code == kSuccess) return;
    fmt::print(stderr, "{}", configured.output);
    throw BuildError(
        fmt::format("configuring {} failed: {}", checkout.build.string(), shell_quoted(command)));
}

}  // namespace course::tool
