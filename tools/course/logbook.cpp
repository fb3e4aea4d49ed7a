#include "logbook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "styles.hpp"
#include "workbook.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// Throws nlohmann's exceptions for a value of another type, std::out_of_range for one that cannot be.
ExerciseRecord record_from(const nlohmann::json& json) {
    const ExerciseRecord record{.solved = json.at("solved"),
                                .failures = json.at("failures"),
                                .hints = json.at("hints"),
                                .stars = json.at("stars")};
    if (std::min({record.failures, record.hints, record.stars}) < 0) throw std::out_of_range("a number < 0");
    return record;
}

}  // namespace

Logbook::Logbook(fs::path file) : file_(std::move(file)) {
    read();
}

const ExerciseRecord& Logbook::of(const std::string& id) const {
    static const ExerciseRecord kNothing;
    const auto found = records_.find(id);
    return found == records_.end() ? kNothing : found->second;
}

void Logbook::read() {
    if (!fs::exists(file_)) return;
    const auto json = nlohmann::json::parse(read_text_file(file_), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("exercises") || !json["exercises"].is_object())
        return set_aside("is damaged");
    std::map<std::string, ExerciseRecord> records;
    std::string lost;
    for (const auto& [id, record] : json["exercises"].items()) {
        try {
            records[id] = record_from(record);
        } catch (const std::exception&) {
            lost += (lost.empty() ? "" : ", ") + id;
        }
    }
    if (!lost.empty()) set_aside("is damaged where it tells of " + lost);
    records_ = std::move(records);
    if (!lost.empty()) write();
}

// What was read before, by this process, stays.
void Logbook::set_aside(const std::string& reason) const {
    const fs::path aside = free_name(file_, ".damaged");
    fs::rename(file_, aside);
    fmt::print(stderr, "{} {} {}; it is kept as {}\n", styled("course:", kNotice, stderr),
               Workbook::shown(file_), reason, aside.filename().string());
}

void Logbook::write() const {
    nlohmann::ordered_json json = {{"version", 1}, {"exercises", nlohmann::ordered_json::object()}};
    for (const auto& [id, record] : records_) {
        json["exercises"][id] = {{"solved", record.solved},
                                 {"failures", record.failures},
                                 {"hints", record.hints},
                                 {"stars", record.stars}};
    }
    replace_file(file_, json.dump(2) + "\n");
}

}  // namespace course::tool
