#include "common/bench/random_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "common/device/random.hpp"

namespace course {

std::vector<Dims> random_matmuls(const RandomShapes& how) {
    constexpr std::size_t kSteps = 7;  // 1 to 64
    Random random(how.seed);
    const auto draw = [&](double least, double most) {
        const double unit = static_cast<double>(random.next() >> 11) * 0x1p-53;
        return static_cast<std::size_t>(std::lround(std::exp2(least + unit * (most - least))));
    };
    std::vector<Dims> shapes;
    for (std::size_t i = 0; i < how.count; ++i) {
        Dims dims = {draw(how.least, how.most), draw(how.least, how.most), draw(how.least, how.most)};
        if (i % 4 == 3) dims[i / 4 % 3] = draw(how.thinnest, how.least);
        for (std::size_t& extent : dims) {
            const std::size_t step =
                std::max(how.multiple, std::min(std::size_t{1} << i % kSteps, std::bit_floor(extent)));
            extent = std::max(extent / step, std::size_t{1}) * step;
        }
        shapes.push_back(dims);
    }
    return shapes;
}

std::string text_of_sweep(std::span<const Record> records) {
    constexpr std::size_t kWorst = 10;
    struct Times {
        double ours = 0;
        double peer = 0;
    };
    std::set<std::string> ours, peers;
    std::map<std::string, Times> times;
    for (const Record& record : records) {
        if (!record.measurement || record.measurement->l2 != L2State::kWarm) continue;
        Times& of_problem = times[record.problem];
        (record.role == Role::kPeer ? of_problem.peer : of_problem.ours) = record.measurement->ms.median;
        (record.role == Role::kPeer ? peers : ours).insert(record.version);
    }
    if (ours.size() != 1 || peers.size() != 1) return "";
    std::vector<std::pair<double, std::string>> ratios;
    double logarithms = 0;
    for (const auto& [problem, both] : times) {
        if (both.ours <= 0 || both.peer <= 0) continue;
        ratios.emplace_back(both.peer / both.ours, problem);
        logarithms += std::log(both.peer / both.ours);
    }
    if (ratios.empty()) return "";
    std::ranges::sort(ratios);
    std::string text =
        fmt::format("\n{} beside {} on {} problems, warm: geometric mean {:.3f}, lowest {:.3f}\n",
                    *ours.begin(), *peers.begin(), ratios.size(),
                    std::exp(logarithms / static_cast<double>(ratios.size())), ratios[0].first);
    for (std::size_t i = 0; i < std::min(kWorst, ratios.size()); ++i)
        text += fmt::format("{:8.3f}  {}\n", ratios[i].first, ratios[i].second);
    return text;
}

}  // namespace course
