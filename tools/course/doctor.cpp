#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "commands.hpp"
#include "days.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {
namespace {

struct Tool {
    std::string name;
    std::string purpose;  // printed if the tool is missing
};

bool has_digit(const std::string& line) {
    return std::ranges::any_of(line, [](unsigned char character) { return std::isdigit(character) != 0; });
}

// The line of `tool --version` that contains the version. nvcc and ncu print a copyright notice
// first, so a line with "Version" or "release" is preferred, then the first line with a digit.
std::string version_line(const std::string& output) {
    std::string first;
    for (std::size_t begin = 0; begin < output.size();) {
        const std::size_t end = std::min(output.find('\n', begin), output.size());
        const std::string line = output.substr(begin, end - begin);
        begin = end + 1;
        if (!has_digit(line)) continue;
        if (line.find("release ") != std::string::npos || line.find("Version ") != std::string::npos)
            return line;
        if (first.empty()) first = line;
    }
    return first;
}

void print_heading(const std::string& text) {
    fmt::print("{}\n", styled(text, kHeading, stdout));
}

void print_facts(const std::vector<Fact>& facts) {
    for (const auto& [name, value] : facts)
        fmt::print("  {:<24} {}\n", name, value);
}

Fact examine(const Tool& tool) {
    Captured answer = capture({tool.name, "--version"});
    // The CUDA Toolkit installs its tools here, often without adding the directory to PATH.
    if (answer.exit_code == 127) answer = capture({"/usr/local/cuda/bin/" + tool.name, "--version"});
    if (answer.exit_code != 0) return {tool.name, fmt::format("not found: {}", tool.purpose)};
    return {tool.name, version_line(answer.output)};
}

std::vector<Fact> examine(const std::vector<Tool>& tools) {
    std::vector<Fact> facts;
    for (const Tool& tool : tools)
        facts.push_back(examine(tool));
    return facts;
}

const Tool kNvcc = {"nvcc", "no CUDA Toolkit, so no kernels for a GPU"};

std::string why_no_gpu() {
    const Captured gpus = capture({"nvidia-smi", "-L"});
    if (gpus.exit_code == 127) return "nvidia-smi was not found: no NVIDIA driver here";
    if (gpus.exit_code != 0)
        return fmt::format("nvidia-smi -L: {}", gpus.output.substr(0, gpus.output.find('\n')));
    if (gpus.output.find("GPU 0") == std::string::npos) return "nvidia-smi -L lists no GPU";
    if (examine(kNvcc).second.starts_with("not found")) return "there is a GPU, but nvcc was not found";
    return "there is a GPU and nvcc, but COURSE_PRESET asked for a build for the CPU";
}

}  // namespace

int doctor(const Checkout& checkout) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const bool on_cpu = calendar.backend == "cpu";

    print_heading("Toolchain");
    print_facts(examine({{"cmake", "describes the build"},
                         {"ninja", "runs the build"},
                         {"c++", "compiles the course"},
                         {"clang++", "a second compiler, not needed"},
                         kNvcc}));
    print_heading("Optional");
    print_facts(examine({{"gdb", "stops inside kernels run on the CPU"},
                         {"ncu", "profiles kernels on a GPU"},
                         {"compute-sanitizer", "finds races and bad accesses on a GPU"},
                         {"clang-format", "lays out the sources"}}));
    print_heading("Build");
    print_facts(
        {{"directory", checkout.build.string()},
         {"type", calendar.build_type},
         {"kernels run on", on_cpu ? "the CPU: results are real, times say nothing about a GPU" : "a GPU"}});
    if (on_cpu) print_facts({{"why not on a GPU", why_no_gpu()}});

    print_heading(on_cpu ? "Device (the CPU, standing in)" : "Device");
    const DeviceReport device = inspect_device();
    if (!device.problem.empty()) {
        print_facts({{"none to use", device.problem}, {"why", why_no_gpu()}});
        return kSuccess;
    }
    print_facts(device.facts);
    print_facts(measure_device());
    return kSuccess;
}

}  // namespace course::tool
