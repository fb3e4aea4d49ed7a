#include "measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/bench/record_file.hpp"

namespace course::tool {
namespace {

// The files have null for unknown values and for numbers that are not finite.
template <class T, class Key>
std::optional<T> optional_at(const nlohmann::ordered_json& json, Key key) {
    const nlohmann::ordered_json& value = json.at(key);
    return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

MeasuredRecord parse_record(const nlohmann::ordered_json& json) {
    MeasuredRecord record;
    json.at("day").get_to(record.day);
    json.at("problem").get_to(record.problem);
    json.at("dtype").get_to(record.dtype);
    json.at("version").get_to(record.version);
    json.at("role").get_to(record.role);
    json.at("l2").get_to(record.l2);
    json.at("median_ms").get_to(record.median_ms);
    json.at("spread_ms").get_to(record.spread_ms);
    json.at("bytes").get_to(record.bytes);
    json.at("flops").get_to(record.flops);
    record.percent_of_limit = optional_at<double>(json, "percent_of_limit");
    record.limit_bytes_per_second = json.value("limit_bytes_per_second", 0.0);
    record.limit_flops_per_second = json.value("limit_flops_per_second", 0.0);
    if (json.contains("kernel")) {
        const auto& kernel = json.at("kernel");
        record.kernel = {.registers = kernel.at("registers"),
                         .shared_bytes = kernel.at("shared_bytes"),
                         .occupancy = kernel.at("occupancy"),
                         .limited_by = kernel.at("limited_by")};
    }
    for (const auto& figure : json.value("figures", nlohmann::ordered_json::array()))
        record.figures.emplace_back(figure.at(0), optional_at<double>(figure, 1));
    record.verified = optional_at<bool>(json, "verified");
    json.at("device").get_to(record.device);
    json.at("driver").get_to(record.driver);
    json.at("cuda").get_to(record.cuda);
    json.at("commit").get_to(record.commit);
    json.at("date").get_to(record.date);
    if (!(record.median_ms > 0))
        throw std::runtime_error(fmt::format("median_ms is {}, not positive", record.median_ms));
    return record;
}

}  // namespace

std::vector<MeasuredRecord> load_records(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    try {
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        std::vector<MeasuredRecord> records;
        for (const auto& json : from_json_lines(text))
            records.push_back(parse_record(json));
        if (records.empty()) throw std::runtime_error("no records");
        return records;
    } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", file.string(), error.what()));
    }
}

std::vector<std::string> problems_of(const std::vector<MeasuredRecord>& records) {
    std::vector<std::string> problems;
    for (const MeasuredRecord& record : records) {
        if (std::ranges::find(problems, record.problem) == problems.end()) problems.push_back(record.problem);
    }
    return problems;
}

std::vector<MeasuredRecord> records_about(const std::vector<MeasuredRecord>& records,
                                          const std::string& problem) {
    std::vector<MeasuredRecord> found;
    std::ranges::copy_if(records, std::back_inserter(found),
                         [&](const MeasuredRecord& record) { return record.problem == problem; });
    if (found.empty()) throw std::runtime_error(fmt::format("no record has the problem '{}'", problem));
    return found;
}

void require_verified(const MeasuredRecord& record) {
    if (record.verified == false) {
        throw std::runtime_error(
            fmt::format("'{}' on '{}' is not verified; a wrong result's time is no figure", record.version,
                        record.problem));
    }
}

}  // namespace course::tool
