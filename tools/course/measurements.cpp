#include "measurements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace course::tool {
namespace {

template <class T>
std::optional<T> optional_at(const nlohmann::json& json, const char* key) {
    const auto& value = json.at(key);
    return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

MeasuredRecord parse_record(const nlohmann::json& json) {
    MeasuredRecord record;
    json.at("day").get_to(record.day);
    json.at("problem").get_to(record.problem);
    json.at("dtype").get_to(record.dtype);
    json.at("variant").get_to(record.variant);
    json.at("role").get_to(record.role);
    json.at("l2").get_to(record.l2);
    json.at("median_ms").get_to(record.median_ms);
    json.at("spread_ms").get_to(record.spread_ms);
    json.at("bytes").get_to(record.bytes);
    json.at("flops").get_to(record.flops);
    record.percent_of_limit = optional_at<double>(json, "percent_of_limit");
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

// Three digits that mean something: 4.36, 43.6, 436, 4360.
std::string three_digits(double value) {
    const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
    return fmt::format("{:.{}f}", value, decimals);
}

std::string rate(double amount, double milliseconds) {
    return amount > 0 ? three_digits(amount / milliseconds / 1e6) : "";
}

constexpr std::size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;
constexpr std::string_view kLeft = "---";
constexpr std::string_view kRight = "--:";

struct Column {
    std::string heading;
    std::string_view rule;
};
using Columns = std::array<Column, kColumns>;

const Columns kMeasurements = {{{"problem", kLeft},
                                {"version", kLeft},
                                {"L2", kLeft},
                                {"median", kRight},
                                {"±", kRight},
                                {"GB/s", kRight},
                                {"GFLOP/s", kRight},
                                {"% of limit", kRight}}};
const Columns kComparison = {{{"problem", kLeft},
                              {"ours", kLeft},
                              {"median", kRight},
                              {"GB/s", kRight},
                              {"GFLOP/s", kRight},
                              {"% of limit", kRight},
                              {"peer", kLeft},
                              {"peer / ours", kRight}}};

std::string percent(const MeasuredRecord& record) {
    return record.percent_of_limit ? fmt::format("{:.1f}", *record.percent_of_limit) : "";
}

Row make_row(const MeasuredRecord& record) {
    return {record.problem,
            record.role == "ours" ? record.variant : fmt::format("{} ({})", record.variant, record.role),
            record.l2,
            format_time(record.median_ms),
            format_time(record.spread_ms),
            rate(record.bytes, record.median_ms),
            rate(record.flops, record.median_ms),
            percent(record)};
}

// Columns that nobody fills are left out.
std::string markdown(const Columns& columns, const std::vector<Row>& rows) {
    std::string heading = "|";
    std::string rule = "|";
    std::vector<std::string> lines(rows.size(), "|");
    for (std::size_t column = 0; column < kColumns; ++column) {
        if (std::ranges::all_of(rows, [column](const Row& row) { return row[column].empty(); })) continue;
        heading += fmt::format(" {} |", columns[column].heading);
        rule += fmt::format(" {} |", columns[column].rule);
        for (std::size_t i = 0; i < rows.size(); ++i)
            lines[i] += fmt::format(" {} |", rows[i][column]);
    }
    return fmt::format("{}\n{}\n{}\n", heading, rule, fmt::join(lines, "\n"));
}

void require_verified(const MeasuredRecord& record) {
    if (record.verified == false) {
        throw std::runtime_error(
            fmt::format("'{}' on '{}' is not verified; a wrong result's time is no figure", record.variant,
                        record.problem));
    }
}

// "Measured on NVIDIA H200, driver 580.65.06, CUDA 13.0, commit 1a2b3c4d5e6f, 2026-11-21."
std::string provenance(const std::vector<MeasuredRecord>& records) {
    std::vector<std::string> devices;
    std::vector<std::string> runs;
    const auto add = [](std::vector<std::string>& list, const std::string& text) {
        if (std::ranges::find(list, text) == list.end()) list.push_back(text);
    };
    for (const MeasuredRecord& record : records) {
        add(devices, record.device);
        add(runs, fmt::format("driver {}, CUDA {}, commit {}, {}", record.driver, record.cuda, record.commit,
                              record.date.substr(0, 10)));
    }
    return fmt::format("Measured on {}, {}.", fmt::join(devices, " and "), fmt::join(runs, "; "));
}

}  // namespace

std::vector<MeasuredRecord> load_records(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    try {
        std::vector<MeasuredRecord> records;
        for (const auto& json : nlohmann::json::parse(stream))
            records.push_back(parse_record(json));
        if (records.empty()) throw std::runtime_error("no records");
        return records;
    } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", file.string(), error.what()));
    }
}

std::string markdown_table(const std::vector<MeasuredRecord>& records,
                           const std::optional<std::string>& problem) {
    std::vector<MeasuredRecord> shown;
    for (const MeasuredRecord& record : records) {
        if (!problem || record.problem == *problem) shown.push_back(record);
    }
    if (shown.empty())
        throw std::runtime_error(fmt::format("no record has the problem '{}'", problem.value_or("")));

    std::vector<Row> rows;
    for (const MeasuredRecord& record : shown) {
        require_verified(record);
        rows.push_back(make_row(record));
    }
    return markdown(kMeasurements, rows) + "\n" + provenance(shown) + "\n";
}

std::string comparison_table(const std::vector<MeasuredRecord>& records) {
    const auto same_work = [](const MeasuredRecord& a, const MeasuredRecord& b) {
        return a.day == b.day && a.problem == b.problem && a.dtype == b.dtype;
    };
    const auto fastest = [&](const char* role, const auto& condition) {
        const MeasuredRecord* best = nullptr;
        for (const MeasuredRecord& record : records) {
            if (record.role != role || record.l2 != "warm" || !condition(record)) continue;
            require_verified(record);
            if (best == nullptr || record.median_ms < best->median_ms) best = &record;
        }
        return best;
    };
    std::vector<Row> rows;
    std::vector<const MeasuredRecord*> listed;
    for (const MeasuredRecord& record : records) {
        const auto is_this = [&](const MeasuredRecord& other) { return same_work(record, other); };
        if (std::ranges::any_of(listed, [&](const MeasuredRecord* other) { return is_this(*other); }))
            continue;
        const MeasuredRecord* const ours = fastest("ours", is_this);
        if (ours == nullptr) continue;
        listed.push_back(ours);
        const MeasuredRecord* const peer = fastest("peer", [&](const MeasuredRecord& other) {
            return is_this(other) && other.device == ours->device;
        });
        rows.push_back({ours->problem, ours->variant, format_time(ours->median_ms),
                        rate(ours->bytes, ours->median_ms), rate(ours->flops, ours->median_ms),
                        percent(*ours),
                        peer ? fmt::format("{} {}", peer->variant, format_time(peer->median_ms)) : "",
                        peer ? fmt::format("{:.2f}", peer->median_ms / ours->median_ms) : ""});
    }
    if (rows.empty()) throw std::runtime_error("no record of ours to compare");
    return markdown(kComparison, rows) + "\n" + provenance(records) + "\n";
}

std::string format_time(double milliseconds) {
    if (milliseconds < 1) return three_digits(milliseconds * 1e3) + " µs";
    if (milliseconds < 1000) return three_digits(milliseconds) + " ms";
    return three_digits(milliseconds / 1e3) + " s";
}

}  // namespace course::tool
