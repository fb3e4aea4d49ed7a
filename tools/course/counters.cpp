#include "counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "measured_tables.hpp"

namespace course::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "course counters 1";

// All lines of the file, the header first.
std::vector<Json> lines_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    std::vector<Json> lines;
    const auto refuse = [&](std::size_t line, std::string_view why) {
        throw std::runtime_error(fmt::format("{}: line {}: {}", file.string(), line, why));
    };
    try {
        for (std::string line; std::getline(stream, line);)
            lines.push_back(Json::parse(line));
    } catch (const Json::exception& error) {
        refuse(lines.size() + 1, error.what());
    }
    if (lines.empty() || !lines.front().is_object() || lines.front().value("format", "") != kFormat)
        refuse(1, fmt::format(R"(expected a header with "format": "{}")", kFormat));
    return lines;
}

std::vector<std::pair<std::string, double>> pairs(const Json& object) {
    std::vector<std::pair<std::string, double>> all;
    for (const auto& [key, value] : object.items())
        all.emplace_back(key, value.get<double>());
    return all;
}

KernelCounters parse(const Json& json) {
    return {.problem = json.at("problem"),
            .version = json.at("version"),
            .kernel = json.at("kernel"),
            .launches = json.at("launches"),
            .microseconds = json.at("us"),
            .limited_by = json.at("limited_by"),
            .busy = pairs(json.at("busy")),
            .stalls = pairs(json.at("stalls")),
            .megahertz = json.at("MHz"),
            .highest_megahertz = json.value("highest_MHz", 0.0),
            .occupancy = json.at("occupancy"),
            .largest_occupancy = json.at("largest_occupancy"),
            .occupancy_limit = json.at("occupancy_limit"),
            .sectors_per_load = json.value("sectors_per_load", 0.0),
            .sectors_per_store = json.value("sectors_per_store", 0.0),
            .lanes = json.value("lanes", 0.0),
            .waves = json.value("waves", 0.0),
            .active = json.value("active", 100.0),
            .dram_bytes_read = json.value("dram_bytes_read", 0.0),
            .dram_bytes_written = json.value("dram_bytes_written", 0.0),
            .shared_wavefronts = json.value("shared_wavefronts", 0.0),
            .bank_conflicts = json.at("bank_conflicts"),
            .spills = json.at("local_loads").get<double>() + json.at("local_stores").get<double>(),
            .registers = json.at("registers")};
}

// "memory 92 %, L2 94 %": the two busiest units.
std::string busiest(const KernelCounters& kernel) {
    auto units = kernel.busy;
    std::ranges::sort(units, std::ranges::greater{}, &std::pair<std::string, double>::second);
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, units.size()); ++i)
        text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", units[i].first, units[i].second);
    return text;
}

std::string waits(const KernelCounters& kernel) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, kernel.stalls.size()); ++i)
        text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", kernel.stalls[i].first,
                            100 * kernel.stalls[i].second);
    return text;
}

std::string sectors(double count) {
    return count > 0 ? fmt::format("{:.3g}", count) : "";
}

}  // namespace

std::vector<KernelCounters> load_counters(const std::filesystem::path& file) {
    const std::vector<Json> lines = lines_of(file);
    std::vector<KernelCounters> counters;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        try {
            counters.push_back(parse(lines[i]));
        } catch (const std::exception& error) {
            throw std::runtime_error(fmt::format("{}: line {}: {}", file.string(), i + 1, error.what()));
        }
    }
    return counters;
}

std::vector<KernelCounters> kernels_of(const std::vector<KernelCounters>& counters, std::string_view problem,
                                       std::string_view version) {
    std::vector<KernelCounters> kernels;
    std::ranges::copy_if(counters, std::back_inserter(kernels), [&](const KernelCounters& kernel) {
        return kernel.problem == problem && kernel.version == version;
    });
    std::ranges::stable_sort(kernels, std::ranges::greater{}, &KernelCounters::microseconds);
    return kernels;
}

std::string counted_device(const std::filesystem::path& file) {
    return lines_of(file).front().value("device", "an unknown GPU");
}

std::string counters_provenance(const std::filesystem::path& file) {
    const Json header = lines_of(file).front();
    return fmt::format("Counted by Nsight Compute {} on {}, driver {}, CUDA {}, commit {}, {}.\n",
                       header.value("ncu", "of unknown version"), header.value("device", "an unknown GPU"),
                       header.value("driver", "unknown"), header.value("cuda", "unknown"),
                       header.value("commit", "unknown"), header.value("date", "").substr(0, 10));
}

std::string limit_of(const std::vector<KernelCounters>& counters, std::string_view problem,
                     std::string_view version, double microseconds) {
    const std::vector<KernelCounters> kernels = kernels_of(counters, problem, version);
    double counted = 0;
    for (const KernelCounters& kernel : kernels)
        counted += kernel.microseconds;
    const std::string limit = kernels.empty() ? "" : kernels.front().limited_by;
    return 2 * counted < microseconds && limit != "launch" ? "" : limit;
}

std::string counters_table(const std::vector<KernelCounters>& counters, std::string_view problem) {
    std::string table =
        "| version | kernel | launches | time | limited by | busiest units | warps wait: largest states | "
        "occupancy | sectors per load, store | bank conflicts | registers | local accesses | clock |\n"
        "| --- | --- | --: | --: | --- | --- | --- | --: | --: | --: | --: | --: | --: |\n";
    for (const KernelCounters& kernel : counters) {
        if (kernel.problem != problem) continue;
        table += fmt::format(
            "| {} | {} | {} | {} | {} | {} | {} | {:.0f} of {:.0f} % ({}) | {}, {} | {:.0f} | {} | {:.0f} | "
            "{:.0f} "
            "MHz |\n",
            kernel.version, kernel.kernel, kernel.launches, format_time(kernel.microseconds * 1e-3),
            kernel.limited_by, busiest(kernel), waits(kernel), kernel.occupancy, kernel.largest_occupancy,
            kernel.occupancy_limit, sectors(kernel.sectors_per_load), sectors(kernel.sectors_per_store),
            kernel.bank_conflicts, kernel.registers, kernel.spills, kernel.megahertz);
    }
    return table;
}

}  // namespace course::tool
