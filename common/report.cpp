#include "common/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace course {
namespace {

constexpr const char* kRed = "\033[31m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kPlain = "\033[0m";

constexpr std::array kHeadings = {"variant", "L2",      "median",     "+-",    "repeats",
                                  "GB/s",    "GFLOP/s", "% of limit", "result"};
using Row = std::array<std::string, kHeadings.size()>;

// Four significant digits, in the unit that suits.
std::string duration(double ms) {
    if (ms >= 1000) return fmt::format("{:.4g} s", ms / 1000);
    if (ms >= 0.9995) return fmt::format("{:.4g} ms", ms);
    return fmt::format("{:.4g} us", ms * 1000);
}

std::string rate(double amount, double ms) {
    return amount == 0 || ms == 0 ? "-" : fmt::format("{:.4g}", amount * 1e-9 / (ms * 1e-3));
}

std::string result_word(const Record& record) {
    if (!record.cannot_run.empty()) return "not run";
    if (record.verified == false || !record.failure.empty()) return "WRONG";
    if (!record.violation.empty()) return "IMPOSSIBLE";
    return record.verified ? "ok" : "-";
}

Row make_row(const Record& record) {
    const std::string variant = record.role == Role::kOurs
                                    ? record.variant
                                    : fmt::format("{} ({})", record.variant, name(record.role));
    if (!record.measurement) return {variant, "-", "-", "-", "-", "-", "-", "-", result_word(record)};
    const Measurement& m = *record.measurement;
    const bool possible = record.violation.empty();
    return {variant,
            std::string(name(m.l2)),
            duration(m.ms.median),
            duration(m.ms.spread),
            fmt::format("{}{}{}", m.ms.count,
                        m.launches_per_repeat > 1 ? fmt::format("x{}", m.launches_per_repeat) : "",
                        m.stopped_by == StopReason::kPrecise ? "" : "*"),
            possible ? rate(record.work.bytes, m.ms.median) : "-",
            possible ? rate(record.work.flops, m.ms.median) : "-",
            record.percent_of_limit ? fmt::format("{:.1f}", *record.percent_of_limit) : "-",
            result_word(record)};
}

std::string notes(std::span<const Record> records) {
    std::string text;
    bool capped = false;
    for (const Record& record : records) {
        for (const std::string* note : {&record.cannot_run, &record.failure, &record.violation}) {
            if (!note->empty()) text += fmt::format("  {}: {}\n", record.variant, *note);
        }
        capped = capped || (record.measurement && record.measurement->stopped_by != StopReason::kPrecise);
    }
    if (capped) text += "  * stopped by a cap before the mean was known to 1 %\n";
    return text;
}

// JSON has no infinity; null says "not a number" there.
nlohmann::ordered_json finite_or_null(double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

// Counts are doubles, so that products of sizes do not overflow, but are written without a decimal point.
std::int64_t whole(double count) {
    return std::llround(count);
}

template <class T>
nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string_view name(Role role) {
    switch (role) {
        case Role::kOurs:
            return "ours";
        case Role::kPeer:
            return "peer";
        case Role::kLimit:
            return "limit";
    }
    throw std::invalid_argument("name: not a Role");
}

bool use_colour(std::FILE* stream) {
    const char* no_color = std::getenv("NO_COLOR");
    return (no_color == nullptr || *no_color == '\0') && isatty(fileno(stream)) == 1;
}

std::string table(std::span<const Record> records, bool colour) {
    std::vector<Row> rows;
    for (const Record& record : records)
        rows.push_back(make_row(record));

    std::array<std::size_t, kHeadings.size()> widths{};
    for (std::size_t column = 0; column < widths.size(); ++column) {
        widths[column] = std::strlen(kHeadings[column]);
        for (const Row& row : rows)
            widths[column] = std::max(widths[column], row[column].size());
    }
    const auto cell = [&widths](std::size_t column, std::string_view text) {
        return column < 2 ? fmt::format("{:<{}}", text, widths[column])
                          : fmt::format("{:>{}}", text, widths[column]);
    };

    std::string text;
    for (std::size_t column = 0; column < widths.size(); ++column)
        text += "  " + cell(column, kHeadings[column]);
    text += '\n';
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t column = 0; column < widths.size(); ++column) {
            const bool coloured =
                colour && column + 1 == widths.size() && (records[i].failed() || records[i].verified == true);
            const std::string padded = cell(column, rows[i][column]);
            text += coloured ? fmt::format("  {}{}{}", records[i].failed() ? kRed : kGreen, padded, kPlain)
                             : "  " + padded;
        }
        text += '\n';
    }
    return text + notes(records);
}

nlohmann::ordered_json to_json(std::span<const Record> records, const Machine& machine,
                               const std::string& commit, const std::string& date) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Record& record : records) {
        if (!record.measurement) continue;
        const Measurement& m = *record.measurement;
        list.push_back({{"day", record.day},
                        {"problem", record.problem},
                        {"variant", record.variant},
                        {"role", name(record.role)},
                        {"dtype", record.dtype},
                        {"median_ms", m.ms.median},
                        {"spread_ms", m.ms.spread},
                        {"min_ms", m.ms.min},
                        {"repeats", m.ms.count},
                        {"launches_per_repeat", m.launches_per_repeat},
                        {"stopped_by", name(m.stopped_by)},
                        {"l2", name(m.l2)},
                        {"bytes", whole(record.work.bytes)},
                        {"flops", whole(record.work.flops)},
                        {"requested_bytes", whole(record.work.requested)},
                        {"percent_of_limit", value_or_null(record.percent_of_limit)},
                        {"limit_bytes_per_second", whole(record.limit_bytes_per_second)},
                        {"limit_flops_per_second", whole(record.limit_flops_per_second)},
                        {"verified", value_or_null(record.verified)},
                        {"max_error", finite_or_null(record.max_error)},
                        {"device", record.device.empty() ? machine.device : record.device},
                        {"driver", machine.driver},
                        {"cuda", machine.cuda},
                        {"commit", commit},
                        {"date", date}});
    }
    return list;
}

std::string utc_now() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    const auto fail = [&path](const std::string& reason) {
        throw std::runtime_error(fmt::format("cannot write '{}': {}", path.string(), reason));
    };
    std::error_code error;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
    if (error) fail(error.message());

    const std::filesystem::path unfinished = fmt::format("{}.{}.tmp", path.string(), getpid());
    std::ofstream file(unfinished, std::ios::binary);
    file << text;
    file.close();
    if (!file) {
        const std::string reason = std::strerror(errno);
        std::filesystem::remove(unfinished, error);
        fail(reason);
    }
    std::filesystem::rename(unfinished, path, error);
    if (error) {
        const std::string reason = error.message();
        std::filesystem::remove(unfinished, error);
        fail(reason);
    }
}

}  // namespace course
