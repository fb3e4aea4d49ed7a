#include "inspect_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace course::tool {
namespace {

using Json = nlohmann::ordered_json;

// What is the same for all requests of an instruction.
Json place_of(const TraceStep& step) {
    Json place = {{"file", step.source.file}, {"line", step.source.line}, {"kind", step.kind}};
    if (step.bytes > 0) place["bytes"] = step.bytes;
    if (step.offsets.empty()) return place;
    place["space"] = name(step.space);
    place["array"] = step.array;
    return place;
}

Json line_of(const AccessLine& line) {
    return {{"file", line.source.file},     {"line", line.source.line},
            {"space", name(line.space)},    {"operation", name(line.operation)},
            {"bytes", line.bytes},          {"array", line.worst.array},
            {"requests", line.requests},    {"transactions", line.transactions},
            {"ideal", line.ideal},          {"active_lanes", line.active_lanes},
            {"bytes_used", line.bytes_used}};
}

void add_steps(Json& json, const WarpTrace& trace) {
    json["block"] = trace.block;
    json["warp"] = trace.warp;
    json["steps"] = trace.steps;
    Json places = Json::array();
    Json recorded = Json::array();
    Json repeats = Json::array();
    for (const TraceStep& step : trace.recorded) {
        Json place = place_of(step);
        const auto found = std::ranges::find(places, place);
        const auto number = found - places.begin();
        if (found == places.end()) places.push_back(std::move(place));
        Json entry = {number, step.lanes};
        if (!step.offsets.empty()) {
            entry.push_back(step.transactions);
            entry.push_back(step.ideal);
            for (const std::int64_t value : runs_of(step.offsets))
                entry.push_back(value);
        }
        if (step.repeats > 0) repeats.push_back({recorded.size(), step.repeats});
        recorded.push_back(std::move(entry));
    }
    json["places"] = std::move(places);
    json["recorded"] = std::move(recorded);
    if (!repeats.empty()) json["repeats"] = std::move(repeats);
}

// Of the files that the lines and the steps name.
Json hashes(const KernelInspection& kernel, Sources& sources) {
    std::set<std::string> files;
    for (const AccessLine& line : kernel.lines)
        files.insert(line.source.file);
    for (const TraceStep& step : kernel.trace->recorded)
        files.insert(step.source.file);
    Json json = Json::object();
    for (const std::string& file : files) {
        const std::vector<std::string>& lines = sources.lines(file);
        if (!lines.empty()) json[file] = text_hash(fmt::format("{}\n", fmt::join(lines, "\n")));
    }
    return json;
}

}  // namespace

std::string text_hash(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char byte : text)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
    return fmt::format("{:016x}", hash);
}

std::vector<std::int64_t> runs_of(const std::vector<std::int64_t>& offsets) {
    std::vector<std::int64_t> active = offsets;
    std::erase(active, -1);
    std::vector<std::int64_t> runs;
    for (std::size_t i = 0; i < active.size();) {
        const std::int64_t step = i + 1 < active.size() ? active[i + 1] - active[i] : 0;
        std::size_t end = i + 1;
        while (end < active.size() && active[end] - active[end - 1] == step)
            ++end;
        // Of two lanes without a rule, the second may begin a longer run.
        if (end == i + 2 && end < active.size()) end = i + 1;
        runs.insert(runs.end(), {active[i], end == i + 1 ? 0 : step, static_cast<std::int64_t>(end - i)});
        i = end;
    }
    return runs;
}

std::string trace_text(const InspectionFile& file, Sources& sources) {
    std::string text;
    for (const InspectedVersion& version : file.results) {
        for (const KernelInspection& kernel : version.kernels) {
            if (!kernel.trace) continue;
            Json json = {{"format", "course trace 1"},
                         {"day", file.day},
                         {"version", version.version},
                         {"problem", version.problem},
                         {"kernel", short_name(kernel.name)},
                         {"blocks", kernel.blocks},
                         {"inspected_blocks", kernel.inspected_blocks},
                         {"threads", kernel.threads_per_block},
                         {"launches", kernel.launches},
                         {"sources", hashes(kernel, sources)}};
            Json lines = Json::array();
            for (const AccessLine& line : kernel.lines)
                lines.push_back(line_of(line));
            json["lines"] = std::move(lines);
            add_steps(json, *kernel.trace);
            text += json.dump() + "\n";
        }
    }
    return text;
}

}  // namespace course::tool
