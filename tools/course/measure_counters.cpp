#include "measure_counters.hpp"

#include <nlohmann/json.hpp>

#include "common/bench/build_info.hpp"
#include "common/bench/machine.hpp"
#include "errors.hpp"

namespace course::tool {
namespace {

std::string header() {
    const Machine machine = this_machine();
    return nlohmann::ordered_json{
        {"device", machine.device}, {"driver", machine.driver}, {"cuda", machine.cuda}, {"commit", commit()}}
        .dump();
}

}  // namespace

void require_profiler() {
    if (capture({"ncu", "--version"}).exit_code == kSuccess) return;
    throw UsageError(
        "this needs Nsight Compute: ncu is not in PATH. Where it comes from:\n"
        "  the CUDA Toolkit    has it: PATH=$PATH:/usr/local/cuda/bin\n"
        "  Debian, Ubuntu      apt-get install cuda-nsight-compute-13-0, from NVIDIA's package source; the\n"
        "                      last numbers are the version that nvcc --version prints\n"
        "  conda               conda install -c nvidia nsight-compute\n"
        "  WSL                 the Linux packages, inside WSL; the driver is that of Windows\n"
        "  a container         an image with the development tools: nvidia/cuda:...-devel-...");
}

Command count_day(const Checkout& checkout, const Day& day, const std::string& version,
                  const std::filesystem::path& output) {
    Command command = {checkout.root / "scripts/counters.py", "--header", header()};
    if (!version.empty()) command.insert(command.end(), {"--only", version});
    command.insert(command.end(), {"--measure", day.directory, checkout.program(day.directory), output});
    return command;
}

Command count_program(const Checkout& checkout, const Command& program, const std::filesystem::path& output) {
    Command command = {checkout.root / "scripts/counters.py", "--header", header(), "--measure-program",
                       output};
    command.insert(command.end(), program.begin(), program.end());
    return command;
}

}  // namespace course::tool
