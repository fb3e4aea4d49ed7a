#include "common/bench/record_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace course {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormatKey = "format";
constexpr const char* kFormat = "course records 1";

// Properties of the run and of the machine, not of a version.
constexpr std::array kHeaderKeys = {
    "day",    "device", "driver", "cuda", "compiler", "limit_bytes_per_second", "limit_flops_per_second",
    "commit", "date"};

// The value that most records have; in a tie, the one that comes first.
Json most_common(const Json& records, const char* key) {
    std::vector<std::pair<Json, int>> values;
    for (const Json& record : records) {
        const auto same = std::ranges::find(values, record.at(key), &std::pair<Json, int>::first);
        if (same == values.end()) {
            values.emplace_back(record.at(key), 1);
        } else {
            ++same->second;
        }
    }
    return std::ranges::max_element(values, {}, &std::pair<Json, int>::second)->first;
}

// The record without what the header says, as a line.
std::string line_of(Json record, const Json& header) {
    for (const auto& [key, value] : header.items()) {
        if (record.contains(key) && record.at(key) == value) record.erase(key);
    }
    return record.dump() + "\n";
}

}  // namespace

std::string to_json_lines(const Json& records) {
    if (records.empty()) return "";
    Json header = {{kFormatKey, kFormat}};
    for (const char* key : kHeaderKeys) {
        // Only keys that all records have: a record can override a key of the header but cannot
        // remove it.
        if (std::ranges::all_of(records, [key](const Json& record) { return record.contains(key); }))
            header[key] = most_common(records, key);
    }
    std::string text = header.dump() + "\n";
    for (const Json& record : records)
        text += line_of(record, header);
    return text;
}

Json from_json_lines(std::string_view text) {
    Json records = Json::array();
    Json header;
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        try {
            Json object = Json::parse(line);
            if (!object.is_object()) throw std::runtime_error("expected an object");
            if (number > 1) {
                Json record = header;
                record.update(object);
                records.push_back(std::move(record));
            } else if (object.value(kFormatKey, "") != kFormat) {
                throw std::runtime_error(
                    fmt::format("expected the header, an object with \"{}\": \"{}\"", kFormatKey, kFormat));
            } else {
                header = std::move(object);
                header.erase(kFormatKey);
            }
        } catch (const std::exception& error) {
            throw std::runtime_error(fmt::format("line {}: {}", number, error.what()));
        }
    }
    return records;
}

std::string with_records_of_host(std::string_view file, const Json& records) {
    if (file.empty()) return to_json_lines(records);
    const auto replaced = [&](const Json& old) {
        return old.at("device") == kHostDevice && std::ranges::any_of(records, [&](const Json& record) {
                   return record.at("problem") == old.at("problem");
               });
    };
    const Json old_records = from_json_lines(file);  // throws for a file that is none
    std::istringstream lines{std::string(file)};
    std::string line;
    std::getline(lines, line);
    const Json header = Json::parse(line);
    std::string text = line + "\n";
    for (const Json& old : old_records) {
        std::getline(lines, line);
        if (!replaced(old)) text += line + "\n";
    }
    for (const Json& record : records)
        text += line_of(record, header);
    return text;
}

}  // namespace course
