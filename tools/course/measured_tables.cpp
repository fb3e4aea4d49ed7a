#include "measured_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "common/bench/figures.hpp"

namespace course::tool {
namespace {

constexpr std::size_t kMostRows = 10;

// Three significant digits: 4.36, 43.6, 436, 4360.
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

// Columns that no row fills are left out.
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

double tera_flops(const MeasuredRecord& record) {
    return record.flops / record.median_ms * 1e-9;
}

// Percent of the measured rate of FP32 multiply-adds; 0 if that was not measured.
double percent_of_fma_limit(const MeasuredRecord& record) {
    const double limit = record.limit_flops_per_second * 1e-12;
    return limit > 0 ? 100 * tera_flops(record) / limit : 0;
}

std::optional<double> percent_of_limit(const MeasuredRecord& record) {
    return on_other_units(record) ? std::nullopt : record.percent_of_limit;
}

std::string percent(const MeasuredRecord& record) {
    const std::optional<double> share = percent_of_limit(record);
    return share ? fmt::format("{:.1f}", *share) : "";
}

std::string named(const MeasuredRecord& record) {
    return record.role == "ours" ? record.version : fmt::format("{} ({})", record.version, record.role);
}

// "00_cublas", a step of the ladder, becomes "cublas".
std::string without_number(const std::string& version) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return version.size() > 3 && is_digit(version[0]) && is_digit(version[1]) && version[2] == '_'
               ? version.substr(3)
               : version;
}

std::string factor(double value) {
    if (value <= 0) return "";
    return value < 0.1 ? fmt::format("{:.2g}×", value) : fmt::format("{}×", three_digits(value));
}

std::string ratio_text(double value, double unit, int decimals) {
    return value == 0 ? "" : fmt::format("{:.{}f}", unit * value, decimals);
}

// The speed-up of `a` over `b`; 0 if one of them was not measured.
double ratio(const MeasuredRecord* a, const MeasuredRecord* b) {
    return a == nullptr || b == nullptr ? 0 : b->median_ms / a->median_ms;
}

// The fastest record that meets `condition`; null if there is none.
template <class Condition>
const MeasuredRecord* fastest(const std::vector<MeasuredRecord>& records, const Condition& condition) {
    const MeasuredRecord* best = nullptr;
    for (const MeasuredRecord& record : records) {
        if (!condition(record)) continue;
        require_verified(record);
        if (best == nullptr || record.median_ms < best->median_ms) best = &record;
    }
    return best;
}

// The fastest peer of `record`: same work, same device, same state of the cache.
const MeasuredRecord* peer_of(const MeasuredRecord& record, const std::vector<MeasuredRecord>& records) {
    return fastest(records, [&](const MeasuredRecord& other) {
        return other.role == "peer" && other.problem == record.problem && other.dtype == record.dtype &&
               other.device == record.device && other.l2 == record.l2;
    });
}

// The names of the records with this role, in their order.
std::vector<std::string> names_of(const std::vector<MeasuredRecord>& records, const std::string& role) {
    std::vector<std::string> names;
    for (const MeasuredRecord& record : records) {
        if (record.role == role && std::ranges::find(names, record.version) == names.end())
            names.push_back(record.version);
    }
    return names;
}

// The name that all records with this role have.
std::string only_name(const std::vector<MeasuredRecord>& records, const std::string& role) {
    const std::vector<std::string> names = names_of(records, role);
    if (names.empty()) throw std::runtime_error(fmt::format("no record has the role '{}'", role));
    if (names.size() > 1)
        throw std::runtime_error(fmt::format("expected one version with the role '{}', not '{}' and '{}'",
                                             role, names[0], names[1]));
    return names[0];
}

// The record of `version` on `problem`; null where there is none.
const MeasuredRecord* find_record(const std::vector<MeasuredRecord>& records, const std::string& problem,
                                  const std::string& version, const std::string& l2) {
    const auto found = std::ranges::find_if(records, [&](const MeasuredRecord& record) {
        return record.problem == problem && record.version == version && record.l2 == l2;
    });
    if (found == records.end()) return nullptr;
    require_verified(*found);
    return &*found;
}

double geometric_mean(const std::vector<double>& values) {
    double logarithms = 0;
    for (const double value : values)
        logarithms += std::log(value);
    return std::exp(logarithms / static_cast<double>(values.size()));
}

// The warm records of our versions on one problem, in their order. Throws when there is none.
std::vector<MeasuredRecord> ours_warm(const std::vector<MeasuredRecord>& records,
                                      const std::string& problem) {
    std::vector<MeasuredRecord> ours;
    for (const MeasuredRecord& record : records_about(records, problem)) {
        if (record.role != "ours" || record.l2 != "warm") continue;
        require_verified(record);
        ours.push_back(record);
    }
    if (ours.empty()) throw std::runtime_error(fmt::format("no warm record of ours on '{}'", problem));
    return ours;
}

const MeasuredRecord& fastest_of(const std::vector<MeasuredRecord>& ours) {
    return *std::ranges::min_element(ours, {}, &MeasuredRecord::median_ms);
}

// See summary_table().
std::vector<MeasuredRecord> most_telling(const std::vector<MeasuredRecord>& ours, std::size_t most) {
    if (ours.size() <= most) return ours;
    std::vector<std::pair<double, std::size_t>>
        gains;  // the gain over the fastest version before, and the index
    double before = ours.front().median_ms;
    for (std::size_t i = 1; i < ours.size(); ++i) {
        gains.emplace_back(before / ours[i].median_ms, i);
        before = std::min(before, ours[i].median_ms);
    }
    std::ranges::sort(gains, std::ranges::greater{});
    std::set<std::size_t> kept = {0};
    kept.insert(static_cast<std::size_t>(std::ranges::min_element(ours, {}, &MeasuredRecord::median_ms) -
                                         ours.begin()));
    for (const auto& [gain, index] : gains) {
        if (kept.size() < most) kept.insert(index);
    }
    std::vector<MeasuredRecord> shown;
    for (const std::size_t index : kept)
        shown.push_back(ours[index]);
    return shown;
}

// The records of these versions, in the order of `ours`. See summary_table().
std::vector<MeasuredRecord> those_of(const std::vector<std::string>& versions,
                                     const std::vector<MeasuredRecord>& ours, std::size_t most) {
    if (versions.size() > most)
        throw std::runtime_error(
            fmt::format("the marker names {} versions; expected at most {}", versions.size(), most));
    for (const std::string& version : versions)
        if (std::ranges::find(ours, version, &MeasuredRecord::version) == ours.end())
            throw std::runtime_error(fmt::format(
                "the marker names version '{}'; expected one with a warm record of the problem", version));
    std::vector<MeasuredRecord> shown;
    std::ranges::copy_if(ours, std::back_inserter(shown), [&](const MeasuredRecord& record) {
        return std::ranges::find(versions, record.version) != versions.end();
    });
    return shown;
}

// "sum 268435456 (float), warm cache, on NVIDIA H200, 2026-11-21. Other sizes and all columns:
// [docs/...](...)."
std::string caption(const MeasuredRecord& record, std::string_view link) {
    const bool type_is_said = record.problem.find(record.dtype) != std::string::npos;
    return fmt::format("*{}{}, warm cache, {}, {}.* {}\n", record.problem,
                       type_is_said ? "" : fmt::format(" ({})", record.dtype), record.device,
                       record.date.substr(0, 10), link);
}

// A sweep compares one version with the fastest peer of each problem; with the limit where no
// record is a peer's.
struct Sweep {
    std::string ours;
    std::string other;
    std::vector<std::string> problems;
    std::vector<double> other_ms{};  // warm
    std::vector<double> warm{};      // speed-up over the other, for each problem
    std::vector<double> flushed{};   // 0 if one was not measured

    // If a flushed ratio is missing, the mean would be over different problems.
    bool all_flushed() const { return std::ranges::min(flushed) > 0; }
};

Sweep sweep_of(const std::vector<MeasuredRecord>& records) {
    const std::vector<std::string> peers = names_of(records, "peer");
    const std::string role = peers.empty() ? "limit" : "peer";
    Sweep sweep{.ours = only_name(records, "ours"),
                .other = peers.size() > 1 ? "the fastest peer" : only_name(records, role),
                .problems = problems_of(records)};
    for (const std::string& problem : sweep.problems) {
        const auto other = [&](const char* l2) {
            return fastest(records, [&](const MeasuredRecord& record) {
                return record.role == role && record.problem == problem && record.l2 == l2;
            });
        };
        const auto ours = [&](const char* l2) { return find_record(records, problem, sweep.ours, l2); };
        for (const auto& [record, name] :
             {std::pair(ours("warm"), sweep.ours), std::pair(other("warm"), sweep.other)}) {
            if (record == nullptr)
                throw std::runtime_error(fmt::format("'{}' has no warm record of '{}'", problem, name));
        }
        sweep.other_ms.push_back(other("warm")->median_ms);
        sweep.warm.push_back(ratio(ours("warm"), other("warm")));
        sweep.flushed.push_back(ratio(ours("flushed"), other("flushed")));
    }
    return sweep;
}

// 01_naive belongs to step 1; 09a_prepared, a preparation, to none.
std::optional<int> step_of(std::string_view version) {
    if (version.size() < 3 || version[2] != '_') return std::nullopt;
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : -100; };
    const int number = 10 * digit(version[0]) + digit(version[1]);
    return number >= 1 ? std::optional(number) : std::nullopt;
}

}  // namespace

// A record has the share of the nearer limit. If that is less than the share of multiply-adds, it
// must be the share of memory, because the arithmetic is not FP32.
bool on_other_units(const MeasuredRecord& record) {
    constexpr double kRounding = 0.99;
    return record.percent_of_limit && *record.percent_of_limit < kRounding * percent_of_fma_limit(record);
}

std::string full_table(const std::vector<MeasuredRecord>& of_one_problem) {
    Columns columns = {{"version", kLeft},     {"L2", kLeft},
                       {"median", kRight},     {"±", kRight},
                       {"GB/s", kRight},       {"GFLOP/s", kRight},
                       {"% of limit", kRight}, {"peer / this", kRight},
                       {"registers", kRight},  {"shared memory", kRight},
                       {"occupancy", kRight},  {"limited by", kLeft}};
    const std::vector<std::string> figures = figure_names(of_one_problem);
    for (const std::string& figure : figures)
        columns.push_back({figure, kRight});
    std::vector<Row> rows;
    for (const MeasuredRecord& record : of_one_problem) {
        require_verified(record);
        const auto& kernel = record.kernel;
        rows.push_back(
            {named(record), record.l2, format_time(record.median_ms), format_time(record.spread_ms),
             rate(record.bytes, record.median_ms), rate(record.flops, record.median_ms), percent(record),
             record.role == "ours" ? ratio_text(ratio(&record, peer_of(record, of_one_problem)), 1, 2) : "",
             kernel && kernel->registers > 0 ? fmt::format("{}", kernel->registers) : "",
             kernel ? fmt::format("{:.4g} KB", kernel->shared_bytes / 1024) : "",
             kernel ? fmt::format("{:.0f} %", 100 * kernel->occupancy) : "",
             kernel ? kernel->limited_by : ""});
        for (const std::string& figure : figures)
            rows.back().push_back(figure_of(record, figure, ""));
    }
    return markdown(columns, rows);
}

std::string comparison_table(const std::vector<MeasuredRecord>& records) {
    std::vector<Row> rows;
    for (const std::string& problem : problems_of(records)) {
        const MeasuredRecord* const ours = fastest(records, [&](const MeasuredRecord& record) {
            return record.role == "ours" && record.l2 == "warm" && record.problem == problem;
        });
        if (ours == nullptr) continue;
        const MeasuredRecord* const peer = peer_of(*ours, records);
        rows.push_back({problem, ours->dtype, ours->version, format_time(ours->median_ms),
                        rate(ours->bytes, ours->median_ms), rate(ours->flops, ours->median_ms),
                        percent(*ours),
                        peer ? fmt::format("{} {}", peer->version, format_time(peer->median_ms)) : "",
                        ratio_text(ratio(ours, peer), 1, 2)});
    }
    if (rows.empty()) return "";
    return markdown({{"problem", kLeft},
                     {"type", kLeft},
                     {"ours", kLeft},
                     {"median", kRight},
                     {"GB/s", kRight},
                     {"GFLOP/s", kRight},
                     {"% of limit", kRight},
                     {"peer", kLeft},
                     {"peer / ours", kRight}},
                    rows);
}

std::string sweep_table(const std::vector<MeasuredRecord>& records) {
    const Sweep sweep = sweep_of(records);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < sweep.problems.size(); ++i) {
        rows.push_back({sweep.problems[i], format_time(sweep.other_ms[i] / sweep.warm[i]),
                        format_time(sweep.other_ms[i]), ratio_text(sweep.warm[i], 1, 2),
                        ratio_text(sweep.flushed[i], 1, 2)});
    }
    const bool all_flushed = sweep.all_flushed();
    rows.push_back({fmt::format("**geometric mean of {}**", sweep.problems.size()), "", "",
                    ratio_text(geometric_mean(sweep.warm), 1, 3),
                    all_flushed ? ratio_text(geometric_mean(sweep.flushed), 1, 3) : ""});
    rows.push_back({"**lowest**", "", "", ratio_text(std::ranges::min(sweep.warm), 1, 3),
                    all_flushed ? ratio_text(std::ranges::min(sweep.flushed), 1, 3) : ""});
    return markdown({{"problem", kLeft},
                     {sweep.ours, kRight},
                     {sweep.other, kRight},
                     {fmt::format("{} / {}", sweep.other, sweep.ours), kRight},
                     {"with L2 flushed", kRight}},
                    rows);
}

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

std::string main_problem(const std::vector<MeasuredRecord>& records) {
    std::string best;
    std::tuple<std::ptrdiff_t, double> most;
    for (const std::string& problem : problems_of(records)) {
        const auto is_ours = [&](const MeasuredRecord& record) {
            return record.problem == problem && record.role == "ours" && record.l2 == "warm";
        };
        const auto first = std::ranges::find_if(records, is_ours);
        if (first == records.end()) continue;
        const std::tuple here(std::ranges::count_if(records, is_ours), first->bytes);
        if (best.empty() || here > most) std::tie(best, most) = std::tuple(problem, here);
    }
    if (best.empty()) throw std::runtime_error("no warm record of ours");
    return best;
}

std::string summary_table(const std::vector<MeasuredRecord>& records, const std::string& problem,
                          std::string_view link, const std::vector<std::string>& versions) {
    const std::vector<MeasuredRecord> ours = ours_warm(records, problem);
    const MeasuredRecord* const peer = peer_of(ours.front(), records);
    const MeasuredRecord* const limit = fastest(records, [&](const MeasuredRecord& record) {
        return record.role == "limit" && record.problem == problem && record.l2 == "warm";
    });
    const std::size_t most = kMostRows - (peer == nullptr ? 0 : 1) - (limit == nullptr ? 0 : 1);
    std::vector<MeasuredRecord> shown =
        versions.empty() ? most_telling(ours, most) : those_of(versions, ours, most);
    const std::size_t left_out = ours.size() - shown.size();
    for (const MeasuredRecord* other : {peer, limit}) {
        if (other != nullptr) shown.push_back(*other);
    }
    Columns columns = {
        {"version", kLeft},     {"time", kRight},
        {"speed-up", kRight},   {peer == nullptr ? "" : "speed beside " + peer->version, kRight},
        {"% of limit", kRight}, {"limited by", kLeft}};
    const std::vector<std::string> figures = figure_names(shown);
    for (const std::string& figure : figures)
        columns.push_back({figure, kRight});
    std::vector<Row> rows;
    for (const MeasuredRecord& record : shown) {
        const bool is_limit = record.role == "limit";
        rows.push_back({named(record), format_time(record.median_ms),
                        is_limit ? "" : factor(ratio(&record, &ours.front())),
                        is_limit ? "" : factor(ratio(&record, peer)), percent(record), record.limited_by});
        for (const std::string& figure : figures)
            rows.back().push_back(figure_of(record, figure, ""));
    }
    const std::string table = markdown(columns, rows);
    const std::string others = left_out == 0 ? ""
                               : left_out == 1
                                   ? "One more version, other sizes, all columns: "
                                   : fmt::format("{} more versions, other sizes, all columns: ", left_out);
    return table + "\n" +
           caption(ours.front(),
                   fmt::format("{}{}.", left_out == 0 ? "Other sizes, all columns: " : others, link));
}

std::string ladder_table(const std::vector<MeasuredRecord>& records, const std::string& problem,
                         std::string_view link) {
    const std::vector<MeasuredRecord> ours = ours_warm(records, problem);
    std::vector<MeasuredRecord> on_device = records_about(records, problem);
    std::erase_if(on_device,
                  [&](const MeasuredRecord& record) { return record.device != ours.front().device; });
    const std::string peer_name = only_name(on_device, "peer");
    const MeasuredRecord* const peer = find_record(records, problem, peer_name, "warm");
    if (peer == nullptr) throw std::runtime_error(fmt::format("'{}' has no warm record", peer_name));
    std::vector<MeasuredRecord> steps;
    std::set<int> seen;
    for (const MeasuredRecord& record : ours) {
        if (on_other_units(record)) continue;
        if (const auto step = step_of(record.version); step && seen.insert(*step).second)
            steps.push_back(record);
    }
    std::vector<MeasuredRecord> shown = most_telling(steps, kMostRows - 1);
    shown.insert(shown.begin(), *peer);
    std::vector<Row> rows;
    for (const MeasuredRecord& record : shown)
        rows.push_back({record.version, three_digits(tera_flops(record)),
                        ratio_text(ratio(&record, peer), 100, 1),
                        ratio_text(percent_of_fma_limit(record), 1, 1), record.limited_by});
    return markdown({{"version", kLeft},
                     {"TFLOP/s", kRight},
                     {"% of " + without_number(peer_name), kRight},
                     {"% of FMA limit", kRight},
                     {"limited by", kLeft}},
                    rows) +
           "\n" + caption(ours.front(), fmt::format("All versions, other sizes, all columns: {}.", link));
}

std::string sweep_summary(const std::vector<MeasuredRecord>& records, std::string_view link) {
    const Sweep sweep = sweep_of(records);
    const auto mean = [](const std::vector<double>& ratios) {
        return fmt::format("{:.2f}×", geometric_mean(ratios));
    };
    const auto lowest = [&](const std::vector<double>& ratios) {
        const auto place = std::ranges::min_element(ratios);
        return fmt::format("{:.2f}× ({})", *place,
                           sweep.problems[static_cast<std::size_t>(place - ratios.begin())]);
    };
    const auto won = [](const std::vector<double>& ratios) {
        return std::ranges::count_if(ratios, [](double value) { return value >= 1; });
    };
    std::string text =
        fmt::format("`{}` beside {} on {} problems, {}: geometric mean {} with a warm cache", sweep.ours,
                    sweep.other.starts_with("the ") ? sweep.other : fmt::format("`{}`", sweep.other),
                    sweep.problems.size(), records.front().device, mean(sweep.warm));
    if (sweep.all_flushed()) {
        text += fmt::format(", {} with the L2 flushed; lowest {} and {}; at least as fast on {} and {}",
                            mean(sweep.flushed), lowest(sweep.warm), lowest(sweep.flushed), won(sweep.warm),
                            won(sweep.flushed));
    } else {
        text += fmt::format(", lowest {}; at least as fast on {}", lowest(sweep.warm), won(sweep.warm));
    }
    return fmt::format("{}. Every problem: {}.\n", text, link);
}

namespace {

// "25-point 128x128x256x100 on 2 GPUs"
struct Grid {
    std::string problem;
    std::size_t nx = 0, ny = 0, nz = 0, steps = 0, gpus = 0;

    // 1: a cube; N: N cubes; 0: neither.
    std::size_t cubes() const { return nx == ny && nz == nx ? 1 : nx == ny && nz == gpus * nx ? gpus : 0; }
};

std::vector<Grid> grids_of(const std::vector<MeasuredRecord>& records) {
    std::vector<Grid> grids;
    for (const std::string& problem : problems_of(records)) {
        Grid grid{.problem = problem};
        const std::size_t size = problem.find(' ');
        if (size != std::string::npos &&
            std::sscanf(problem.c_str() + size, " %zux%zux%zux%zu on %zu GPUs", &grid.nx, &grid.ny, &grid.nz,
                        &grid.steps, &grid.gpus) == 5 &&
            grid.cubes() > 0)
            grids.push_back(grid);
    }
    std::ranges::sort(grids, {}, [](const Grid& grid) { return std::pair(grid.cubes(), grid.nx); });
    return grids;
}

}  // namespace

std::string scaling_table(const std::vector<MeasuredRecord>& records, std::string_view link) {
    const auto find = [&](const Grid& grid, const auto& condition) {
        return fastest(records, [&](const MeasuredRecord& record) {
            return record.problem == grid.problem && record.l2 == "warm" && condition(record);
        });
    };
    const auto one_gpu = [](const MeasuredRecord& record) { return record.version == "one_gpu"; };
    const auto several = [&](const MeasuredRecord& record) {
        return record.role == "ours" && !one_gpu(record);
    };
    std::vector<Row> strong;
    std::vector<Row> weak;
    std::map<std::size_t, double> cube_on_one;  // ms per time step
    std::size_t gpus = 0;
    for (const Grid& grid : grids_of(records)) {
        const MeasuredRecord* const one = find(grid, one_gpu);
        const MeasuredRecord* const best = find(grid, several);
        const MeasuredRecord* const limit =
            find(grid, [](const MeasuredRecord& record) { return record.version == "no_exchange"; });
        if (one == nullptr || best == nullptr) continue;
        const auto steps = static_cast<double>(grid.steps);
        const double step = best->median_ms / steps;
        const std::string size = fmt::format("{} x {} x {}", grid.nx, grid.ny, grid.nz);
        gpus = grid.gpus;
        if (grid.cubes() == 1) {
            cube_on_one[grid.nx] = one->median_ms / steps;
            strong.push_back({size, format_time(one->median_ms / steps), format_time(step), best->version,
                              factor(ratio(best, one)), factor(ratio(limit, one))});
        } else if (cube_on_one.contains(grid.nx)) {
            weak.push_back({size, format_time(cube_on_one[grid.nx]), format_time(step), best->version,
                            fmt::format("{:.0f} %", 100 * cube_on_one[grid.nx] / step)});
        }
    }
    if (strong.empty()) throw std::runtime_error("no problem is a cube on one GPU and on several");
    const std::string on_all = fmt::format("{} GPUs", gpus);
    std::string text =
        "Strong scaling, a step of the same grid:\n\n" + markdown({{"grid", kLeft},
                                                                   {"1 GPU", kRight},
                                                                   {on_all, kRight},
                                                                   {"by", kLeft},
                                                                   {"speed-up", kRight},
                                                                   {"without exchange", kRight}},
                                                                  strong);
    if (!weak.empty())
        text += fmt::format("\nWeak scaling, a step of {} cubes on {} beside one cube on one:\n\n", gpus,
                            on_all) +
                markdown({{"grid", kLeft},
                          {"1 cube, 1 GPU", kRight},
                          {on_all, kRight},
                          {"by", kLeft},
                          {"efficiency", kRight}},
                         weak);
    return text + fmt::format("\n{}, median of a launch divided by its steps. All versions: {}.\n",
                              records.front().device, link);
}

std::string best_result(const std::vector<MeasuredRecord>& records, const std::string& problem,
                        const std::string& version) {
    std::vector<MeasuredRecord> ours = ours_warm(records, problem);
    if (!version.empty()) {
        std::erase_if(ours, [&](const MeasuredRecord& record) { return record.version != version; });
        if (ours.empty())
            throw std::runtime_error(fmt::format("'{}' has no warm record of '{}'", problem, version));
    }
    const MeasuredRecord& best = fastest_of(ours);
    const MeasuredRecord* const peer = peer_of(best, records);
    return peer == nullptr ? ""
                           : fmt::format("{} {}", factor(ratio(&best, peer)), without_number(peer->version));
}

std::string one_figure(const std::vector<MeasuredRecord>& records, const std::string& problem,
                       const std::string& version, std::string_view quantity) {
    const std::vector<MeasuredRecord> shown = records_about(records, problem);
    const MeasuredRecord* const record = find_record(shown, problem, version, "warm");
    if (record == nullptr)
        throw std::runtime_error(fmt::format("'{}' has no warm record of '{}'", problem, version));
    const auto known = [&](const std::string& text) {
        if (text.empty())
            throw std::runtime_error(
                fmt::format("'{}' of '{}' on '{}' is not known", quantity, version, problem));
        return text;
    };
    if (quantity == "time") return format_time(record->median_ms);
    if (quantity == "GB/s") return known(rate(record->bytes, record->median_ms));
    if (quantity == "GFLOP/s") return known(rate(record->flops, record->median_ms));
    if (quantity == "TFLOP/s") return known(rate(record->flops * 1e-3, record->median_ms));
    if (quantity == "% of limit") return known(percent(*record));
    if (quantity == "% of peer") return known(ratio_text(ratio(record, peer_of(*record, shown)), 100, 0));
    if (quantity == "speed-up") {
        const std::vector<MeasuredRecord> ours = ours_warm(shown, problem);
        return factor(ratio(record, &ours.front()));
    }
    if (quantity == "registers")
        return known(record->kernel && record->kernel->registers > 0
                         ? fmt::format("{}", record->kernel->registers)
                         : "");
    if (quantity == "occupancy")
        return known(record->kernel ? fmt::format("{:.0f} %", 100 * record->kernel->occupancy) : "");
    throw std::runtime_error(
        fmt::format("the quantity is '{}'; expected time, GB/s, GFLOP/s, TFLOP/s, % of limit, % of peer, "
                    "speed-up, registers or occupancy",
                    quantity));
}

std::string format_time(double milliseconds) {
    if (milliseconds < 1) return three_digits(milliseconds * 1e3) + " µs";
    if (milliseconds < 1000) return three_digits(milliseconds) + " ms";
    return three_digits(milliseconds / 1e3) + " s";
}

}  // namespace course::tool
