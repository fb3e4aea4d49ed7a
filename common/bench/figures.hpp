// The figures that a day reports besides times, as text. Programs that print a table and the tool
// that generates README tables from records share these functions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace course {

// Three significant digits, whole numbers in full; "-" for a missing value and for one that is not
// finite.
inline std::string figure_text(std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return "-";
    return *value == std::trunc(*value) && std::abs(*value) < 1e15 ? fmt::format("{:.0f}", *value)
                                                                   : fmt::format("{:.3g}", *value);
}

// The names of the figures in all records, each once, in order of first appearance. A record has
// `figures`: pairs of name and value.
template <class Records>
std::vector<std::string> figure_names(const Records& records) {
    std::vector<std::string> names;
    for (const auto& record : records) {
        for (const auto& figure : record.figures)
            if (std::ranges::find(names, figure.first) == names.end()) names.push_back(figure.first);
    }
    return names;
}

// The text of the figure with this name; `none` for a record without it.
template <class Record>
std::string figure_of(const Record& record, const std::string& name, std::string_view none) {
    for (const auto& figure : record.figures)
        if (figure.first == name) return figure_text(figure.second);
    return std::string(none);
}

}  // namespace course
