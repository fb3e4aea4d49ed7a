#include "logbook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "renumbered.hpp"
#include "styles.hpp"
#include "workbook.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// Throws nlohmann's exceptions for a value of the wrong type, and std::out_of_range for an
// impossible value.
ExerciseRecord record_from(const nlohmann::json& json) {
    const ExerciseRecord record{.solved = json.at("solved"),
                                .failures = json.at("failures"),
                                .hints = json.at("hints"),
                                .stars = json.at("stars"),
                                .has_cause = json.value("cause", false)};
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

// The lock keeps two simultaneous commands from writing between each other's read and write. Null
// if there is no directory to lock.
std::unique_ptr<FileLock> Logbook::lock_directory() const {
    std::error_code none;
    fs::create_directories(file_.parent_path(), none);
    return fs::is_directory(file_.parent_path(), none)
               ? std::make_unique<FileLock>(file_.parent_path(), /*purpose=*/"")
               : nullptr;
}

void Logbook::set_current(const std::string& id) {
    if (id == current_) return;
    const auto lock = lock_directory();
    read();
    current_ = id;
    write();
}

void Logbook::answered(const std::string& question, bool right) {
    if (answers_.contains(question)) return;
    const auto lock = lock_directory();
    read();
    answers_.emplace(question, right);
    write();
}

int Logbook::right_answers(const std::string& day) const {
    return static_cast<int>(std::ranges::count_if(
        answers_, [&](const auto& each) { return each.second && each.first.starts_with(day + "/"); }));
}

std::string Logbook::lesson_stamp(const std::string& day) const {
    const auto found = lesson_stamps_.find(day);
    return found == lesson_stamps_.end() ? "" : found->second;
}

void Logbook::set_lesson_stamp(const std::string& day, const std::string& stamp) {
    const auto lock = lock_directory();
    read();
    lesson_stamps_[day] = stamp;
    write();
}

void Logbook::read() {
    if (!fs::exists(file_)) return;
    nlohmann::json json;
    int version = 1;
    try {
        json = nlohmann::json::parse(read_text_file(file_));
        if (!json.at("exercises").is_object()) throw std::out_of_range("'exercises' is no list of exercises");
        version = json.value("version", 1);
    } catch (const std::exception& error) {
        return set_aside(error.what(), "what was solved has to be checked again");
    }
    std::map<std::string, ExerciseRecord> records;
    std::vector<std::string> ids;
    for (const auto& [id, record] : json["exercises"].items())
        ids.push_back(id);
    const Renumbering renumbered(ids);
    const bool has_old_numbers = version < kProgressVersion;
    std::string damage, lost;
    for (const auto& [id, record] : json["exercises"].items()) {
        try {
            records[has_old_numbers ? renumbered(id) : id] = record_from(record);
        } catch (const std::exception& error) {
            if (damage.empty()) damage = error.what();
            lost += (lost.empty() ? "" : ", ") + id;
        }
    }
    if (!lost.empty()) set_aside(damage, "lost is the record of " + lost);
    records_ = std::move(records);
    current_ = json.contains("current") && json["current"].is_string() ? json["current"] : "";
    if (has_old_numbers) current_ = renumbered(current_);
    answers_.clear();
    if (const auto answers = json.find("questions"); answers != json.end() && answers->is_object()) {
        for (const auto& [question, right] : answers->items())
            if (right.is_boolean()) answers_.emplace(question, right.get<bool>());
    }
    lesson_stamps_.clear();
    if (const auto stamps = json.find("lessons"); stamps != json.end() && stamps->is_object()) {
        for (const auto& [day, stamp] : stamps->items())
            if (stamp.is_string()) lesson_stamps_.emplace(day, stamp.get<std::string>());
    }
    if (!lost.empty()) write();
}

// The data that this process has read before is kept.
void Logbook::set_aside(const std::string& damage, const std::string& loss) const {
    const fs::path aside = free_name(file_, ".damaged");
    fs::rename(file_, aside);
    fmt::print(stderr, "{} {} is damaged ({}). It is kept as {}; {}. Your own files are as they were\n",
               styled("course:", kNotice, stderr), Workbook::shown(file_), damage, Workbook::shown(aside),
               loss);
}

void Logbook::write() const {
    nlohmann::ordered_json json = {{"version", kProgressVersion}};
    if (!current_.empty()) json["current"] = current_;
    json["exercises"] = nlohmann::ordered_json::object();
    for (const auto& [id, record] : records_) {
        json["exercises"][id] = {{"solved", record.solved},
                                 {"failures", record.failures},
                                 {"hints", record.hints},
                                 {"stars", record.stars}};
        if (record.has_cause) json["exercises"][id]["cause"] = true;
    }
    for (const auto& [day, stamp] : lesson_stamps_)
        json["lessons"][day] = stamp;
    for (const auto& [question, right] : answers_)
        json["questions"][question] = right;
    try {
        replace_file(file_, json.dump(2) + "\n");
    } catch (const std::exception& error) {
        fmt::print(stderr, "{} this is not kept in {}: {}\n", styled("course:", kNotice, stderr),
                   Workbook::shown(file_), error.what());
    }
}

}  // namespace course::tool
