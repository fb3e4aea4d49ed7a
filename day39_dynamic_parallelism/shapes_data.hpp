// Curves and points for the test and the program.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/random.hpp"
#include "shapes.hpp"

namespace day39 {

// Curves in the unit square: most are nearly straight, a few bend much.
inline std::vector<Curve> random_curves(std::size_t n, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<Curve> curves(n);
    const auto unit = [&random] { return random.uniform(0.0f, 1.0f); };
    for (Curve& c : curves) {
        c.p0 = {unit(), unit()};
        c.p2 = {unit(), unit()};
        const float bend = std::pow(unit(), 8.0f);
        c.p1 = {(c.p0.x + c.p2.x) / 2 + bend * (unit() - 0.5f),
                (c.p0.y + c.p2.y) / 2 + bend * (unit() - 0.5f)};
    }
    return curves;
}

enum class Pattern { uniform, equal, on_lines, diagonal, clustered };
inline constexpr Pattern kPatterns[] = {Pattern::uniform, Pattern::equal, Pattern::on_lines,
                                        Pattern::diagonal, Pattern::clustered};

inline std::string name(Pattern pattern) {
    static constexpr const char* kNames[] = {"uniform", "equal", "on_lines", "diagonal", "clustered"};
    return kNames[static_cast<int>(pattern)];
}

// n points of the unit square. on_lines: all on lines between squares of depth 1 to 3. clustered:
// most near one corner, the closer the more.
inline std::vector<float2> random_points(std::size_t n, Pattern pattern, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float2> points(n);
    const auto unit = [&random] { return random.uniform(0.0f, 1.0f); };
    for (float2& p : points) {
        switch (pattern) {
            case Pattern::uniform:
                p = {unit(), unit()};
                break;
            case Pattern::equal:
                p = {0.3125f, 0.7f};
                break;
            case Pattern::on_lines:
                p = {static_cast<float>(random.below(8)) / 8, static_cast<float>(random.below(8)) / 8};
                break;
            case Pattern::diagonal:
                p.x = unit();
                p.y = p.x;
                break;
            case Pattern::clustered:
                p.x = std::pow(unit(), 6.0f);
                p.y = std::pow(unit(), 6.0f);
                if (!in_unit_square(p)) p = {0, 0};
                break;
        }
    }
    return points;
}

}  // namespace day39
