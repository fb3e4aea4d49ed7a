#include "build.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "errors.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

// The same lock that the ./course script takes: two builds in one directory would spoil each other.
class BuildLock {
  public:
    explicit BuildLock(const Checkout& checkout) {
        const std::string file = checkout.build.string() + ".lock";
        descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor_ < 0) throw BuildError(fmt::format("cannot open {}: {}", file, std::strerror(errno)));
        if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
        fmt::print(stderr, "course: waiting for another ./course that is building\n");
        while (flock(descriptor_, LOCK_EX) != 0) {
            if (errno == EINTR) continue;
            close(descriptor_);
            throw BuildError(fmt::format("cannot lock {}: {}", file, std::strerror(errno)));
        }
    }
    ~BuildLock() { close(descriptor_); }
    BuildLock(const BuildLock&) = delete;
    BuildLock& operator=(const BuildLock&) = delete;

  private:
    int descriptor_ = -1;
};

// Ninja's "[3/40] Building CXX object ...".
bool is_step(std::string_view line) {
    return line.starts_with("[");
}

// Steps that are worth telling of; a build with nothing to do still asks git for the commit.
bool is_work(std::string_view line) {
    return is_step(line) && (line.find("] Building") != std::string_view::npos ||
                             line.find("] Linking") != std::string_view::npos);
}

// On a terminal the current step, on one line that the next one overwrites; elsewhere that there is something to build.
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
        }
        shown_ = true;
    }

  private:
    static std::size_t columns() {
        winsize size{};
        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
    }

    std::string target_;
    bool on_terminal_ = isatty(STDERR_FILENO) == 1;
    bool shown_ = false;
};

// What a failed build printed, less the steps that went well.
void print_messages(std::string_view log) {
    while (!log.empty()) {
        const std::string_view line = log.substr(0, log.find('\n'));
        log.remove_prefix(std::min(line.size() + 1, log.size()));
        if (!is_step(line)) fmt::print(stderr, "{}\n", line);
    }
}

// A directory configured for another place (the checkout was moved or copied) is of no use here.
bool is_configured(const Checkout& checkout) {
    if (!std::filesystem::exists(checkout.build / "build.ninja")) return false;
    std::ifstream cache(checkout.build / "CMakeCache.txt");
    const std::string wanted = "CMAKE_HOME_DIRECTORY:INTERNAL=" + checkout.root.string();
    for (std::string line; std::getline(cache, line);) {
        if (line == wanted) return true;
    }
    return false;
}

}  // namespace

void configure(const Checkout& checkout, const std::string& preset,
               const std::vector<std::string>& settings) {
    std::filesystem::create_directories(checkout.build);
    const BuildLock lock(checkout);
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

void build_target(const Checkout& checkout, const std::string& target) {
    const BuildLock lock(checkout);
    const Command command = {"cmake", "--build", checkout.build.string(), "--target", target};
    const Captured build = [&] {
        Progress progress(target == "all" ? "everything" : target);
        return capture(command, [&progress](std::string_view line) {
            if (is_work(line)) progress.show(line);
        });
    }();
    if (build.exit_code == kSuccess) return;
    print_messages(build.output);
    throw BuildError(fmt::format("building {} failed: {}", target, shell_quoted(command)));
}

}  // namespace course::tool
