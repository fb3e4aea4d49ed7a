#include "common/bench/sweep_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace course {

std::string text_of_sweep(std::span<const Record> records) {
    constexpr std::size_t kWorst = 10;
    const auto names_of = [&](Role role) {
        std::set<std::string> names;
        for (const Record& record : records) {
            if (record.role == role && record.measurement) names.insert(record.version);
        }
        return names;
    };
    const std::set<std::string> ours = names_of(Role::kOurs);
    const Role other_role = names_of(Role::kPeer).empty() ? Role::kLimit : Role::kPeer;
    const std::set<std::string> others = names_of(other_role);
    if (ours.size() != 1 || others.empty()) return "";

    std::string text;
    for (const L2State l2 : {L2State::kWarm, L2State::kFlushed}) {
        struct Times {
            double ours = 0;
            double other = 0;
        };
        std::map<std::string, Times> times;
        for (const Record& record : records) {
            if (!record.measurement || record.measurement->l2 != l2) continue;
            const double ms = record.measurement->ms.median;
            Times& of_problem = times[record.problem];
            if (record.role == Role::kOurs) of_problem.ours = ms;
            if (record.role == other_role && (of_problem.other == 0 || ms < of_problem.other))
                of_problem.other = ms;
        }
        std::vector<std::pair<double, std::string>> ratios;
        double logarithms = 0;
        for (const auto& [problem, both] : times) {
            if (both.ours <= 0 || both.other <= 0) continue;
            ratios.emplace_back(both.other / both.ours, problem);
            logarithms += std::log(both.other / both.ours);
        }
        if (ratios.empty()) continue;
        std::ranges::sort(ratios);
        text += fmt::format("\n{} beside {} on {} problems, {}: geometric mean {:.3f}, lowest {:.3f}\n",
                            *ours.begin(), others.size() == 1 ? *others.begin() : "the fastest peer",
                            ratios.size(), l2 == L2State::kWarm ? "warm" : "flushed",
                            std::exp(logarithms / static_cast<double>(ratios.size())), ratios[0].first);
        for (std::size_t i = 0; i < std::min(kWorst, ratios.size()); ++i)
            text += fmt::format("{:8.3f}  {}\n", ratios[i].first, ratios[i].second);
    }
    return text;
}

}  // namespace course
