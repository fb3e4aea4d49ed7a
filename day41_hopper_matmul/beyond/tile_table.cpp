#include "beyond/tile_table.hpp"

#include <fmt/format.h>
#include <fmt/std.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

namespace day41 {
namespace {

using course::Tiling;
using Json = nlohmann::ordered_json;

constexpr std::size_t kTimes = 4;
constexpr double Tiling::*kMembers[kTimes] = {&Tiling::launch, &Tiling::tile, &Tiling::step, &Tiling::load};
constexpr double TileTimes::*kFields[kTimes] = {&TileTimes::launch, &TileTimes::start, &TileTimes::step,
                                                &TileTimes::load};
constexpr const char* kNames[kTimes] = {"launch", "tile_start", "step", "load"};

using Times = std::array<double, kTimes>;

// How often each of the four times is in that of a shape: the model is a sum.
Times counts_of(Tiling tiling, const Shape& shape, std::size_t multiprocessors) {
    Times counts{};
    for (std::size_t i = 0; i < kTimes; ++i) {
        for (std::size_t j = 0; j < kTimes; ++j)
            tiling.*kMembers[j] = i == j ? 1 : 0;
        counts[i] = tiling.time(shape, multiprocessors);
    }
    return counts;
}

// Solves the normal equations for the times that `used` names, the others being 0, by Gaussian
// elimination. Empty when the shapes do not determine them.
std::optional<Times> least_squares(std::span<const Times> rows, unsigned used) {
    double equations[kTimes][kTimes + 1] = {};
    for (std::size_t i = 0; i < kTimes; ++i) {
        if ((used >> i & 1) == 0) {
            equations[i][i] = 1;
            continue;
        }
        for (const Times& row : rows) {
            for (std::size_t j = 0; j < kTimes; ++j)
                if ((used >> j & 1) != 0) equations[i][j] += row[i] * row[j];
            equations[i][kTimes] += row[i];
        }
    }
    for (std::size_t pivot = 0; pivot < kTimes; ++pivot) {
        const double before = equations[pivot][pivot];
        if (!(before > 0)) return {};
        for (std::size_t row = 0; row < kTimes; ++row) {
            if (row == pivot) continue;
            const double factor = equations[row][pivot] / before;
            for (std::size_t column = 0; column <= kTimes; ++column)
                equations[row][column] -= factor * equations[pivot][column];
        }
    }
    Times times{};
    for (std::size_t i = 0; i < kTimes; ++i)
        times[i] = equations[i][kTimes] / equations[i][i];
    return times;
}

double squared_error(std::span<const Times> rows, const Times& times) {
    double sum = 0;
    for (const Times& row : rows) {
        double error = -1;
        for (std::size_t i = 0; i < kTimes; ++i)
            error += row[i] * times[i];
        sum += error * error;
    }
    return sum;
}

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
    throw std::runtime_error(place + ": " + what);
}

Json parsed(const std::string& place, const std::string& text) {
    Json json = Json::parse(text, nullptr, false);
    if (!json.is_object())
        refuse(place, fmt::format("\"{}\" is no JSON object; expected a line that ./course tune has written",
                                  text.substr(0, 40)));
    return json;
}

std::string text_in(const std::string& place, const Json& json, const char* name, const char* expected) {
    if (!json.contains(name)) refuse(place, fmt::format("{} is missing; expected {}", name, expected));
    const Json& value = json.at(name);
    if (!value.is_string()) refuse(place, fmt::format("{} is {}; expected {}", name, value.dump(), expected));
    return value.get<std::string>();
}

TileTimes times_in(const std::string& place, const Json& json) {
    TileTimes times{.tile = text_in(place, json, "tile", "a name such as \"tile_64x128\"")};
    const auto is_it = [&](const Candidate& candidate) { return candidate.version.name == times.tile; };
    if (std::ranges::none_of(candidates(), is_it)) {
        std::string names;
        for (const Candidate& candidate : candidates())
            names += (names.empty() ? "" : ", ") + std::string(candidate.version.name);
        refuse(place, fmt::format("tile is \"{}\"; expected one of {}", times.tile, names));
    }
    for (std::size_t i = 0; i < kTimes; ++i) {
        constexpr const char* kExpected = "microseconds, at least 0";
        if (!json.contains(kNames[i]))
            refuse(place, fmt::format("{} is missing; expected {}", kNames[i], kExpected));
        const Json& value = json.at(kNames[i]);
        if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
            refuse(place, fmt::format("{} is {}; expected {}", kNames[i], value.dump(), kExpected));
        times.*kFields[i] = value.get<double>();
    }
    return times;
}

}  // namespace

std::vector<Shape> shapes_to_measure(const Tiling& tiling, std::size_t multiprocessors) {
    const std::size_t wave = tiling.at_once(multiprocessors);
    std::vector<Shape> shapes;
    for (const std::size_t tiles :
         {std::size_t{1}, std::max<std::size_t>(wave / 2, 1), wave, wave + 1, 2 * wave, 4 * wave}) {
        // As square as the number of tiles allows.
        auto across = static_cast<std::size_t>(std::sqrt(static_cast<double>(tiles)));
        while (tiles % across != 0)
            --across;
        for (const std::size_t steps : {2, 16, 64})
            shapes.push_back({.m = tiles / across * tiling.rows,
                              .n = across * tiling.columns,
                              .k = steps * tiling.depth * tiling.splits});
    }
    return shapes;
}

Tiling fitted_to(Tiling tiling, std::span<const TimeOfShape> measured, std::size_t multiprocessors) {
    std::vector<Times> rows;  // of relative times: each sum should be 1
    for (const auto& [shape, microseconds] : measured) {
        if (!(microseconds > 0) || !std::isfinite(microseconds))
            throw std::invalid_argument(
                fmt::format("fitted_to: {} x {} x {} took {} microseconds; expected more than 0", shape.m,
                            shape.n, shape.k, microseconds));
        Times row = counts_of(tiling, shape, multiprocessors);
        for (double& count : row)
            count /= microseconds;
        rows.push_back(row);
    }
    // Four times: each of the 15 subsets of those that are not 0 is tried.
    double least = std::numeric_limits<double>::infinity();
    for (unsigned used = 1; used < 1U << kTimes; ++used) {
        const std::optional<Times> times = least_squares(rows, used);
        if (!times || std::ranges::any_of(*times, [](double time) { return !(time >= 0); })) continue;
        const double error = squared_error(rows, *times);
        if (error >= least) continue;
        least = error;
        for (std::size_t i = 0; i < kTimes; ++i)
            tiling.*kMembers[i] = (*times)[i];
    }
    return tiling;
}

std::string device_of_table(const std::filesystem::path& file) {
    std::ifstream input(file);
    if (!input) throw std::runtime_error(fmt::format("{}: cannot be read", file.string()));
    std::string text;
    std::getline(input, text);
    const std::string place = fmt::format("{}:1", file.string());
    return text_in(place, parsed(place, text), "device", "the name of a GPU");
}

TileTable read_tile_table(const std::filesystem::path& file) {
    std::ifstream input(file);
    if (!input) throw std::runtime_error(fmt::format("{}: cannot be read", file.string()));
    TileTable table;
    std::string text;
    std::size_t number = 0;
    while (std::getline(input, text)) {
        const std::string place = fmt::format("{}:{}", file.string(), ++number);
        const Json json = parsed(place, text);
        if (number == 1) {
            table.device = text_in(place, json, "device", "the name of a GPU");
            continue;
        }
        TileTimes times = times_in(place, json);
        if (std::ranges::find(table.times, times.tile, &TileTimes::tile) != table.times.end())
            refuse(place, fmt::format("tile {} is here twice; expected once", times.tile));
        table.times.push_back(std::move(times));
    }
    for (const Candidate& candidate : candidates()) {
        if (std::ranges::find(table.times, candidate.version.name, &TileTimes::tile) == table.times.end())
            refuse(fmt::format("{}:{}", file.string(), number + 1),
                   fmt::format("there is no line with tile \"{}\"; expected one for each of the {} tiles, "
                               "after one with the device",
                               candidate.version.name, candidates().size()));
    }
    return table;
}

std::string to_json_lines(const TileTable& table) {
    std::string text = Json{{"device", table.device}}.dump() + "\n";
    for (const TileTimes& times : table.times) {
        Json line{{"tile", times.tile}};
        for (std::size_t i = 0; i < kTimes; ++i)
            line[kNames[i]] = times.*kFields[i];
        text += line.dump() + "\n";
    }
    return text;
}

std::vector<Candidate> candidates_for(const std::string& device, const std::filesystem::path& file) {
    std::vector<Candidate> list = candidates();
    if (!std::filesystem::exists(file)) return list;
    // The table of another GPU is not read further.
    if (device_of_table(file) != device) return list;
    const TileTable table = read_tile_table(file);
    for (Candidate& candidate : list) {
        const auto times = std::ranges::find(table.times, candidate.version.name, &TileTimes::tile);
        for (std::size_t i = 0; i < kTimes; ++i)
            candidate.tiling.*kMembers[i] = (*times).*kFields[i];
    }
    return list;
}

std::filesystem::path tile_table_file() {
    const char* const named = std::getenv("COURSE_WGMMA_TILE_COSTS");
    return named != nullptr && *named != '\0' ? named : COURSE_WGMMA_TILE_COSTS_FILE;
}

}  // namespace day41
