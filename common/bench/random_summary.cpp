#include "common/bench/random_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace course {
namespace {

constexpr std::size_t kWorst = 10;

double geometric_mean_of(std::span<const double> ratios) {
    double logarithms = 0;
    for (const double ratio : ratios)
        logarithms += std::log(ratio);
    return std::exp(logarithms / static_cast<double>(ratios.size()));
}

// "3 problems have no peer: no cuBLAS (2), no CUDA (1)"; "" for none.
std::string text_of_reasons(const std::vector<RandomResult>& results, std::string RandomResult::*reason,
                            const std::string& what) {
    std::map<std::string, std::size_t> counts;
    std::size_t all = 0;
    for (const RandomResult& result : results) {
        if ((result.*reason).empty()) continue;
        ++counts[result.*reason];
        ++all;
    }
    if (all == 0) return "";
    if (counts.size() == 1 && all == results.size())
        return fmt::format("  all {}: {}\n", what, counts.begin()->first);
    std::string text = fmt::format("  {} of {} {}:", all, results.size(), what);
    constexpr std::size_t kShown = 4;
    std::size_t shown = 0;
    for (const auto& [why, count] : counts) {
        if (shown == kShown) break;
        text += fmt::format("{} {} ({})", shown == 0 ? "" : ",", why, count);
        ++shown;
    }
    if (counts.size() > shown) text += fmt::format(", and {} other reasons", counts.size() - shown);
    return text + "\n";
}

std::string problems(std::size_t count) {
    return fmt::format("{} problem{}", count, count == 1 ? "" : "s");
}

std::string text_of_times(const RandomResult& result) {
    return fmt::format("{:7.3f}  {} {:.4g} ms, {} {:.4g} ms", result.ratio(), result.ours, result.ours_ms,
                       result.peer, result.peer_ms);
}

}  // namespace

double quantile(std::span<const double> values, std::size_t percent) {
    if (values.empty()) throw std::invalid_argument("quantile: no values; expected at least one");
    if (percent == 0 || percent > 100)
        throw std::invalid_argument(
            fmt::format("quantile: percent is {}; expected a number from 1 to 100", percent));
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    return sorted[(percent * sorted.size() + 99) / 100 - 1];
}

std::string head_of(const RandomResult& result) {
    return fmt::format("{:5}  {}; {}: ", result.index, result.problem, result.kind);
}

std::string text_of(const RandomResult& result) {
    if (!result.cannot_run.empty()) return "cannot run: " + result.cannot_run + "\n";
    if (!result.failure.empty()) return "FAILED: " + result.failure + "\n";
    if (result.ratio() > 0) return text_of_times(result) + "\n";
    const std::string time = result.ours_ms > 0 ? fmt::format(", {:.4g} ms", result.ours_ms) : "";
    return fmt::format("{} is right{}\n", result.ours, time);
}

std::string summary_of(const RandomRun& run) {
    std::vector<double> ratios;
    std::map<std::string, std::vector<double>> by_kind;
    std::vector<const RandomResult*> compared;
    std::size_t right = 0;
    std::size_t failed = 0;
    for (const RandomResult& result : run.results) {
        if (!result.failure.empty()) ++failed;
        if (!result.failure.empty() || !result.cannot_run.empty()) continue;
        ++right;
        if (result.ratio() == 0) continue;
        ratios.push_back(result.ratio());
        by_kind[result.kind].push_back(result.ratio());
        compared.push_back(&result);
    }
    std::string text =
        fmt::format("\n{}, {}, seed {}: {} of {} problems right{}\n", run.day, run.distribution, run.seed,
                    right, run.results.size(), failed == 0 ? "" : fmt::format(", {} FAILED", failed));
    text += text_of_reasons(run.results, &RandomResult::cannot_run, "problems are refused by ours");
    text += text_of_reasons(run.results, &RandomResult::no_peer, "problems have nothing to compare with");
    if (ratios.empty()) return text;

    text +=
        fmt::format("  peer/ours on {}, warm: geometric mean {:.3f}, 5 % quantile {:.3f}, lowest {:.3f}\n",
                    problems(ratios.size()), geometric_mean_of(ratios), quantile(ratios, 5),
                    *std::ranges::min_element(ratios));
    for (const auto& [kind, of_kind] : by_kind)
        text +=
            fmt::format("    {}: {}, geometric mean {:.3f}, lowest {:.3f}\n", kind, problems(of_kind.size()),
                        geometric_mean_of(of_kind), *std::ranges::min_element(of_kind));
    std::ranges::stable_sort(compared, {}, [](const RandomResult* result) { return result->ratio(); });
    compared.resize(std::min(compared.size(), kWorst));
    text += compared.size() == 1 ? "  the worst:\n" : fmt::format("  the worst {}:\n", compared.size());
    for (const RandomResult* const result : compared)
        text += fmt::format("  {}; problem {}: {}; {}\n", text_of_times(*result), result->index,
                            result->problem, result->kind);
    return text;
}

std::string to_json_lines(const RandomRun& run, const Machine& machine, const std::string& commit,
                          const std::string& date) {
    std::string lines;
    for (const RandomResult& result : run.results) {
        nlohmann::ordered_json line = {{"format", "course random problems 1"},
                                       {"day", run.day},
                                       {"distribution", run.distribution},
                                       {"seed", run.seed},
                                       {"index", result.index},
                                       {"limit", run.limit},
                                       {"kind", result.kind},
                                       {"size", result.size},
                                       {"problem", result.problem}};
        if (!result.ours.empty()) line["version"] = result.ours;
        if (!result.cannot_run.empty()) line["cannot_run"] = result.cannot_run;
        if (result.cannot_run.empty()) line["right"] = result.failure.empty();
        if (!result.failure.empty()) line["failure"] = result.failure;
        if (result.ours_ms > 0) line["median_ms"] = result.ours_ms;
        if (!result.peer.empty()) line["peer"] = result.peer;
        if (result.peer_ms > 0) line["peer_median_ms"] = result.peer_ms;
        if (result.ratio() > 0) line["ratio"] = result.ratio();
        if (!result.no_peer.empty()) line["no_peer"] = result.no_peer;
        line["device"] = machine.device;
        line["driver"] = machine.driver;
        line["cuda"] = machine.cuda;
        line["commit"] = commit;
        line["date"] = date;
        lines += line.dump() + "\n";
    }
    return lines;
}

}  // namespace course
