#include "cost_table.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <fmt/std.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "common/check/check.hpp"

namespace gemm {
namespace {

using Json = nlohmann::ordered_json;
using Costs = std::array<double, kMostBlocks>;

// The fields with a cost for each number of blocks per SM.
struct Field {
    const char* name;
    Costs TileCost::*costs;
};
constexpr Field kFields[] = {{"whole_step", &TileCost::whole_step},
                             {"whole", &TileCost::whole},
                             {"shared_step", &TileCost::shared_step},
                             {"shared", &TileCost::shared}};

// A line of a file, for messages.
struct Line {
    std::string place;  // "FILE:3"
    Json json;

    [[noreturn]] void refuse(const std::string& what) const {
        throw std::runtime_error(fmt::format("{}: {}", place, what));
    }

    const Json& at(const char* name, bool (Json::*is)() const noexcept, const char* expected) const {
        if (!json.contains(name)) refuse(fmt::format("{} is missing; expected {}", name, expected));
        const Json& value = json.at(name);
        if (!(value.*is)()) refuse(fmt::format("{} is {}; expected {}", name, value.dump(), expected));
        return value;
    }
};

Line parsed(const std::filesystem::path& file, std::size_t number, const std::string& text) {
    Line line{fmt::format("{}:{}", file.string(), number), {}};
    try {
        line.json = Json::parse(text);
    } catch (const Json::exception&) {
        line.refuse(fmt::format("\"{}\" is not JSON; expected a line that ./course tune has written",
                                text.substr(0, 40)));
    }
    if (!line.json.is_object())
        line.refuse(fmt::format("{} is no object; expected {{...}}", text.substr(0, 40)));
    return line;
}

Costs costs_in(const Line& line, const char* name, std::size_t count) {
    const std::string expected = fmt::format("{} numbers greater than 0", count);
    const Json& values = line.at(name, &Json::is_array, expected.c_str());
    const bool right =
        values.size() == count && std::ranges::all_of(values, [](const Json& value) {
            return value.is_number() && value.get<double>() > 0 && std::isfinite(value.get<double>());
        });
    if (!right) line.refuse(fmt::format("{} is {}; expected {}", name, values.dump(), expected));
    Costs costs{};
    std::ranges::transform(values, costs.begin(), [](const Json& value) { return value.get<double>(); });
    return costs;
}

TileCost cost_in(const Line& line) {
    const std::string name = line.at("tile", &Json::is_string, "a name such as \"128x256x8\"");
    const auto known = tiles();
    const auto tile = std::ranges::find(known, name, &TileKernels::name);
    if (tile == known.end()) {
        std::string names;
        for (const TileKernels& one : known)
            names += (names.empty() ? "" : ", ") + std::string(one.name);
        line.refuse(fmt::format("tile is \"{}\"; expected one of {}", name, names));
    }
    TileCost cost{.name = tile->name,
                  .aligned = line.at("aligned", &Json::is_boolean, "true or false"),
                  .whole_step = {},
                  .whole = {},
                  .shared_step = {},
                  .shared = {},
                  .owner = line.at("owner", &Json::is_number, "a number")};
    for (const auto& [field, costs] : kFields)
        cost.*costs = costs_in(line, field, static_cast<std::size_t>(tile->most_blocks));
    if (!(cost.owner >= 0))
        line.refuse(fmt::format("owner is {}; expected a number of at least 0", cost.owner));
    return cost;
}

}  // namespace

const CostTable& shipped_costs() {
    static const CostTable table{.device = "NVIDIA H200",
                                 .capability = 90,
                                 .clock_khz = 1'980'000,
                                 .costs = {
#include "../tune/h200.inc"
                                 }};
    return table;
}

CostTable read_cost_table(const std::filesystem::path& file) {
    std::ifstream input(file);
    if (!input) throw std::runtime_error(fmt::format("{}: cannot be read", file.string()));
    CostTable table;
    std::string text;
    std::size_t number = 0;
    while (std::getline(input, text)) {
        const Line line = parsed(file, ++number, text);
        if (number == 1) {
            table.device = line.at("device", &Json::is_string, "the name of a GPU");
            table.capability =
                line.at("capability", &Json::is_number_integer, "a number such as 90, for 9.0");
            table.clock_khz = line.at("clock_khz", &Json::is_number_integer, "the clock of the SMs in kHz");
            if (table.clock_khz <= 0)
                line.refuse(fmt::format("clock_khz is {}; expected at least 1", table.clock_khz));
            continue;
        }
        const TileCost cost = cost_in(line);
        for (const TileCost& other : table.costs) {
            if (other.name == cost.name && other.aligned == cost.aligned)
                line.refuse(fmt::format("tile {} with aligned {} is here twice; expected once", cost.name,
                                        cost.aligned));
        }
        table.costs.push_back(cost);
    }
    for (const bool aligned : {true, false}) {
        for (const TileKernels& tile : tiles()) {
            const bool found = std::ranges::any_of(table.costs, [&](const TileCost& cost) {
                return cost.name == tile.name && cost.aligned == aligned;
            });
            if (!found) {
                throw std::runtime_error(
                    fmt::format("{}:{}: there is no line with tile \"{}\" and aligned {}; expected one for "
                                "each of the {} "
                                "tiles, aligned and not, after one with the device",
                                file.string(), number + 1, tile.name, aligned, tiles().size()));
            }
        }
    }
    return table;
}

std::string to_json_lines(const CostTable& table) {
    std::string text =
        Json{{"device", table.device}, {"capability", table.capability}, {"clock_khz", table.clock_khz}}
            .dump() +
        "\n";
    for (const TileCost& cost : table.costs) {
        const auto known = tiles();
        const auto tile = std::ranges::find(known, cost.name, &TileKernels::name);
        Json line{{"tile", cost.name}, {"aligned", cost.aligned}};
        for (const auto& [field, costs] : kFields) {
            const Costs& all = cost.*costs;
            line[field] = std::vector<double>(all.begin(), all.begin() + tile->most_blocks);
        }
        line["owner"] = cost.owner;
        text += line.dump() + "\n";
    }
    return text;
}

CostTable costs_for(const std::string& device, const std::filesystem::path& file) {
    if (!std::filesystem::exists(file)) return shipped_costs();
    CostTable table = read_cost_table(file);
    return table.device == device ? table : shipped_costs();
}

std::filesystem::path cost_table_file() {
    const char* const named = std::getenv("COURSE_TILE_COSTS");
    return named != nullptr && *named != '\0' ? named : COURSE_TILE_COSTS_FILE;
}

const CostTable& costs_of_current_gpu() {
    static std::mutex mutex;
    static std::map<int, CostTable> known;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    const std::scoped_lock lock(mutex);
    const auto found = known.find(device);
    if (found != known.end()) return found->second;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    return known.emplace(device, costs_for(properties.name, cost_table_file())).first->second;
}

}  // namespace gemm
