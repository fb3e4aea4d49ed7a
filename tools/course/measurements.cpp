#include "measurements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/bench/figures.hpp"

namespace course::tool {
namespace {

// Null is written for what is not known, and for numbers that are not finite.
template <class T, class Key>
std::optional<T> optional_at(const nlohmann::json& json, Key key) {
    const nlohmann::json& value = json.at(key);
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
    record.limit_flops_per_second = json.value("limit_flops_per_second", 0.0);
    if (json.contains("kernel")) {
        const auto& kernel = json.at("kernel");
        record.kernel = {.registers = kernel.at("registers"),
                         .shared_bytes = kernel.at("shared_bytes"),
                         .occupancy = kernel.at("occupancy"),
                         .limited_by = kernel.at("limited_by")};
    }
    for (const auto& figure : json.value("figures", nlohmann::json::array()))
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

// Three digits that mean something: 4.36, 43.6, 436, 4360.
std::string three_digits(double value) {
    const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
    return fmt::format("{:.{}f}", value, decimals);
}

std::string rate(double amount, double milliseconds) {
    return amount > 0 ? three_digits(amount / milliseconds / 1e6) : "";
}

using Row = std::vector<std::string>;
constexpr std::string_view kLeft = "---";
constexpr std::string_view kRight = "--:";

struct Column {
    std::string heading;
    std::string_view rule;
};
using Columns = std::vector<Column>;

const Columns kMeasurements = {{"problem", kLeft},  {"version", kLeft},    {"L2", kLeft},
                               {"median", kRight},  {"±", kRight},         {"GB/s", kRight},
                               {"GFLOP/s", kRight}, {"% of limit", kRight}};
const Columns kComparison = {{"problem", kLeft}, {"ours", kLeft},        {"median", kRight},
                             {"GB/s", kRight},   {"GFLOP/s", kRight},    {"% of limit", kRight},
                             {"peer", kLeft},    {"peer / ours", kRight}};

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
    for (std::size_t column = 0; column < columns.size(); ++column) {
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

std::vector<MeasuredRecord> about(const std::vector<MeasuredRecord>& records, const std::string& problem) {
    std::vector<MeasuredRecord> found;
    std::ranges::copy_if(records, std::back_inserter(found),
                         [&](const MeasuredRecord& record) { return record.problem == problem; });
    if (found.empty()) throw std::runtime_error(fmt::format("no record has the problem '{}'", problem));
    return found;
}

// The name that all records with this role have.
std::string only_name(const std::vector<MeasuredRecord>& records, const std::string& role) {
    std::string name;
    for (const MeasuredRecord& record : records) {
        if (record.role != role || record.variant == name) continue;
        if (!name.empty())
            throw std::runtime_error(fmt::format("expected one version with the role '{}', not '{}' and '{}'",
                                                 role, name, record.variant));
        name = record.variant;
    }
    if (name.empty()) throw std::runtime_error(fmt::format("no record has the role '{}'", role));
    return name;
}

// The record of `variant` on `problem`; null where there is none.
const MeasuredRecord* find_record(const std::vector<MeasuredRecord>& records, const std::string& problem,
                                  const std::string& variant, const std::string& l2) {
    const auto found = std::ranges::find_if(records, [&](const MeasuredRecord& record) {
        return record.problem == problem && record.variant == variant && record.l2 == l2;
    });
    if (found == records.end()) return nullptr;
    require_verified(*found);
    return &*found;
}

// The values of one field, each once, in the order of the file.
std::vector<std::string> distinct(const std::vector<MeasuredRecord>& records,
                                  std::string MeasuredRecord::*field) {
    std::vector<std::string> values;
    for (const MeasuredRecord& record : records) {
        if (std::ranges::find(values, record.*field) == values.end()) values.push_back(record.*field);
    }
    return values;
}

// How many times as fast as `b` `a` is; 0 where one of them was not measured.
double ratio(const MeasuredRecord* a, const MeasuredRecord* b) {
    return a == nullptr || b == nullptr ? 0 : b->median_ms / a->median_ms;
}

std::string ratio_text(double value, double unit, int decimals) {
    return value == 0 ? "" : fmt::format("{:.{}f}", unit * value, decimals);
}

double geometric_mean(const std::vector<double>& values) {
    double logarithms = 0;
    for (const double value : values)
        logarithms += std::log(value);
    return std::exp(logarithms / static_cast<double>(values.size()));
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
    const std::vector<MeasuredRecord> shown = problem ? about(records, *problem) : records;
    const std::vector<std::string> figures = figure_names(shown);
    Columns columns = kMeasurements;
    for (const std::string& figure : figures)
        columns.push_back({figure, kRight});
    std::vector<Row> rows;
    for (const MeasuredRecord& record : shown) {
        require_verified(record);
        rows.push_back(make_row(record));
        for (const std::string& figure : figures)
            rows.back().push_back(figure_of(record, figure, ""));
    }
    return markdown(columns, rows) + "\n" + provenance(shown) + "\n";
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

std::string ladder_table(const std::vector<MeasuredRecord>& records, const std::string& problem) {
    const std::vector<MeasuredRecord> shown = about(records, problem);
    const std::string peer = only_name(shown, "peer");
    const Columns columns = {{"version", kLeft},         {"median", kRight},     {"TFLOP/s", kRight},
                             {"% of " + peer, kRight},   {"L2 flushed", kRight}, {"% of " + peer, kRight},
                             {"% of FMA limit", kRight}, {"registers", kRight},  {"shared memory", kRight},
                             {"occupancy", kRight},      {"limited by", kLeft}};
    const MeasuredRecord* const peer_warm = find_record(shown, problem, peer, "warm");
    const MeasuredRecord* const peer_flushed = find_record(shown, problem, peer, "flushed");
    std::vector<Row> rows;
    for (const std::string& variant : distinct(shown, &MeasuredRecord::variant)) {
        const MeasuredRecord* const warm = find_record(shown, problem, variant, "warm");
        const MeasuredRecord* const flushed = find_record(shown, problem, variant, "flushed");
        if (warm == nullptr) throw std::runtime_error(fmt::format("'{}' has no warm record", variant));
        const double flops_per_second = warm->flops / (warm->median_ms * 1e-3);
        const double limit = warm->limit_flops_per_second;
        const auto& kernel = warm->kernel;
        rows.push_back({variant, format_time(warm->median_ms), three_digits(flops_per_second * 1e-12),
                        ratio_text(ratio(warm, peer_warm), 100, 1),
                        flushed ? format_time(flushed->median_ms) : "",
                        ratio_text(ratio(flushed, peer_flushed), 100, 1),
                        limit > 0 ? fmt::format("{:.1f}", 100 * flops_per_second / limit) : "",
                        kernel && kernel->registers > 0 ? fmt::format("{}", kernel->registers) : "",
                        kernel ? fmt::format("{:.4g} KB", kernel->shared_bytes / 1024) : "",
                        kernel ? fmt::format("{:.0f} %", 100 * kernel->occupancy) : "",
                        kernel ? kernel->limited_by : ""});
    }
    return markdown(columns, rows) + "\n" + provenance(shown) + "\n";
}

std::string sweep_table(const std::vector<MeasuredRecord>& records) {
    const std::string ours = only_name(records, "ours");
    const std::string peer = only_name(records, "peer");
    const Columns columns = {{"problem", kLeft},
                             {ours, kRight},
                             {peer, kRight},
                             {fmt::format("{} / {}", peer, ours), kRight},
                             {"with L2 flushed", kRight}};
    std::vector<Row> rows;
    std::vector<double> warm_ratios;
    std::vector<double> flushed_ratios;
    for (const std::string& problem : distinct(records, &MeasuredRecord::problem)) {
        const MeasuredRecord* const our_warm = find_record(records, problem, ours, "warm");
        const MeasuredRecord* const peer_warm = find_record(records, problem, peer, "warm");
        if (our_warm == nullptr || peer_warm == nullptr) {
            throw std::runtime_error(
                fmt::format("'{}' has no warm record of '{}'", problem, our_warm == nullptr ? ours : peer));
        }
        const double warm = ratio(our_warm, peer_warm);
        const double flushed = ratio(find_record(records, problem, ours, "flushed"),
                                     find_record(records, problem, peer, "flushed"));
        warm_ratios.push_back(warm);
        if (flushed != 0) flushed_ratios.push_back(flushed);
        rows.push_back({problem, format_time(our_warm->median_ms), format_time(peer_warm->median_ms),
                        ratio_text(warm, 1, 2), ratio_text(flushed, 1, 2)});
    }
    // One flushed ratio missing, and the mean would be that of other problems.
    const bool all_flushed = flushed_ratios.size() == warm_ratios.size();
    rows.push_back({fmt::format("**geometric mean of {}**", warm_ratios.size()), "", "",
                    ratio_text(geometric_mean(warm_ratios), 1, 3),
                    all_flushed ? ratio_text(geometric_mean(flushed_ratios), 1, 3) : ""});
    rows.push_back({"**lowest**", "", "", ratio_text(std::ranges::min(warm_ratios), 1, 3),
                    all_flushed ? ratio_text(std::ranges::min(flushed_ratios), 1, 3) : ""});
    return markdown(columns, rows) + "\n" + provenance(records) + "\n";
}

std::string format_time(double milliseconds) {
    if (milliseconds < 1) return three_digits(milliseconds * 1e3) + " µs";
    if (milliseconds < 1000) return three_digits(milliseconds) + " ms";
    return three_digits(milliseconds / 1e3) + " s";
}

}  // namespace course::tool
