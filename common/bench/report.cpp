#include "common/bench/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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
#include <vector>

#include "common/bench/build_info.hpp"
#include "common/bench/figures.hpp"

namespace course {
namespace {

constexpr const char* kRed = "\033[31m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kPlain = "\033[0m";

struct Column {
    std::string heading;
    bool text = false;  // text is aligned to the left, numbers to the right
    std::vector<std::string> cells{};
};

// Four significant digits, in a suitable unit.
std::string duration(double ms) {
    if (ms >= 1000) return fmt::format("{:.4g} s", ms / 1000);
    if (ms >= 0.9995) return fmt::format("{:.4g} ms", ms);
    return fmt::format("{:.4g} us", ms * 1000);
}

// Four significant digits, and no exponent for large figures.
std::string four_digits(double value) {
    return value < 9999.5 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

std::string rate(const Record& record, double amount, double unit) {
    const double ms = record.measurement ? record.measurement->ms.median : 0;
    return amount == 0 || ms == 0 || !record.violation.empty() ? "-"
                                                               : four_digits(amount / unit / (ms * 1e-3));
}

std::string result_word(const Record& record) {
    if (!record.cannot_run.empty()) return "not run";
    if (record.verified == false || !record.failure.empty()) return "WRONG";
    if (!record.violation.empty()) return "IMPOSSIBLE";
    return record.verified ? "ok" : "-";
}

// The peer's name, where there is one peer and it ran on the device.
std::string only_peer(std::span<const Record> records) {
    std::string peer;
    for (const Record& record : records) {
        if (record.role != Role::kPeer || !record.measurement || !record.device.empty()) continue;
        if (!peer.empty() && peer != record.version) return "";
        peer = record.version;
    }
    return peer;
}

std::string percent_of(const std::string& peer, const Record& record, std::span<const Record> all) {
    if (!record.measurement || !record.violation.empty()) return "-";
    for (const Record& other : all) {
        if (other.version == peer && other.measurement && other.measurement->l2 == record.measurement->l2)
            return fmt::format("{:.1f}", 100 * other.measurement->ms.median / record.measurement->ms.median);
    }
    return "-";
}

std::vector<Column> columns_of(std::span<const Record> records) {
    std::vector<Column> columns;
    const auto add = [&](const std::string& heading, bool text, const auto& cell) {
        columns.push_back({heading, text});
        for (const Record& record : records)
            columns.back().cells.push_back(cell(record));
    };
    const auto add_measured = [&](const std::string& heading, bool text, const auto& cell) {
        add(heading, text,
            [&](const Record& r) { return r.measurement ? std::string(cell(*r.measurement)) : "-"; });
    };
    const auto add_resource = [&](const std::string& heading, bool text, const auto& cell) {
        if (std::ranges::none_of(records, [](const Record& r) { return r.resources.has_value(); })) return;
        add(heading, text, [&](const Record& r) { return r.resources ? cell(*r.resources) : "-"; });
    };

    add("version", true, [](const Record& r) {
        return r.role == Role::kOurs ? r.version : fmt::format("{} ({})", r.version, name(r.role));
    });
    add_measured("L2", true, [](const Measurement& m) { return name(m.l2); });
    add_measured("median", false, [](const Measurement& m) { return duration(m.ms.median); });
    add_measured("+-", false, [](const Measurement& m) { return duration(m.ms.spread); });
    add_measured("repeats", false, [](const Measurement& m) {
        return fmt::format("{}{}{}", m.ms.count,
                           m.launches_per_repeat > 1 ? fmt::format("x{}", m.launches_per_repeat) : "",
                           m.stopped_by == StopReason::kPrecise ? "" : "*");
    });
    add("GB/s", false, [](const Record& r) { return rate(r, r.work.bytes, 1e9); });
    const bool tera = std::ranges::any_of(records, [](const Record& r) {
        return r.measurement && r.work.flops > 1e12 * (r.measurement->ms.median * 1e-3);
    });
    add(tera ? "TFLOP/s" : "GFLOP/s", false,
        [&](const Record& r) { return rate(r, r.work.flops, tera ? 1e12 : 1e9); });
    add("% of limit", false, [](const Record& r) {
        return r.percent_of_limit ? fmt::format("{:.1f}", *r.percent_of_limit) : "-";
    });
    if (const std::string peer = only_peer(records); !peer.empty())
        add("% of " + peer, false, [&](const Record& r) { return percent_of(peer, r, records); });
    add_resource("registers", false, [](const KernelResources& k) {
        return k.registers == 0 ? "-" : std::to_string(k.registers);
    });
    add_resource("shared", false,
                 [](const KernelResources& k) { return fmt::format("{:.4g} KB", k.shared_bytes / 1024.0); });
    // On the CPU a kernel has no registers, and its occupancy on a GPU cannot be computed without
    // them.
    add_resource("occupancy", false, [](const KernelResources& k) {
        return k.registers == 0 ? "-" : fmt::format("{:.0f} %", 100 * k.occupancy);
    });
    add_resource("limited by", true,
                 [](const KernelResources& k) { return k.registers == 0 ? "-" : k.limit; });
    for (const std::string& figure : figure_names(records))
        add(figure, false, [&](const Record& r) { return figure_of(r, figure, "-"); });
    add("result", false, result_word);
    return columns;
}

std::string notes(std::span<const Record> records) {
    std::string text;
    bool capped = false;
    for (const Record& record : records) {
        for (const std::string* note : {&record.cannot_run, &record.failure, &record.violation}) {
            if (!note->empty()) text += fmt::format("  {}: {}\n", record.version, *note);
        }
        capped = capped || (record.measurement && record.measurement->stopped_by != StopReason::kPrecise);
    }
    if (capped) text += "  * stopped by a cap before the mean was known to 1 %\n";
    return text;
}

// JSON has neither infinity nor NaN, so null replaces both.
nlohmann::ordered_json finite_or_null(double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

// Counts are doubles, so that products of sizes do not overflow, but are written without a decimal
// point.
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
    const std::vector<Column> columns = columns_of(records);
    std::string text;
    const auto add_cell = [&text](const Column& column, std::string_view content, const char* style) {
        std::size_t width = column.heading.size();
        for (const std::string& cell : column.cells)
            width = std::max(width, cell.size());
        const std::string padded =
            column.text ? fmt::format("{:<{}}", content, width) : fmt::format("{:>{}}", content, width);
        text += fmt::format("  {}{}{}", style, padded, *style == '\0' ? "" : kPlain);
    };
    for (const Column& column : columns)
        add_cell(column, column.heading, "");
    text += '\n';
    for (std::size_t i = 0; i < records.size(); ++i) {
        const char* style = !colour                       ? ""
                            : records[i].failed()         ? kRed
                            : records[i].verified == true ? kGreen
                                                          : "";
        for (const Column& column : columns)
            add_cell(column, column.cells[i], &column == &columns.back() ? style : "");
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
                        {"version", record.version},
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
                        {"compiler", compiler()},
                        {"commit", commit},
                        {"date", date}});
        if (record.resources) {
            const KernelResources& kernel = *record.resources;
            list.back()["kernel"] = {{"threads", kernel.threads},
                                     {"registers", kernel.registers},
                                     {"local_bytes", kernel.local_bytes},
                                     {"shared_bytes", kernel.shared_bytes},
                                     {"blocks_per_multiprocessor", kernel.blocks},
                                     {"occupancy", kernel.occupancy},
                                     {"limited_by", kernel.limit}};
        }
        for (const auto& [figure, value] : record.figures)
            list.back()["figures"].push_back({figure, finite_or_null(value)});
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
