// The styles of the command's own output; use_colour() of common/bench/report.hpp decides whether
// they apply.
#pragma once

#include <fmt/color.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "common/bench/report.hpp"

namespace course::tool {

// `text` in `style` where `stream` is a terminal that shows colours, else as it is.
inline std::string styled(std::string_view text, const fmt::text_style& style, std::FILE* stream) {
    return use_colour(stream) ? fmt::format(style, "{}", text) : std::string(text);
}

inline const fmt::text_style kGood = fmt::fg(fmt::terminal_color::green);
inline const fmt::text_style kBad = fmt::fg(fmt::terminal_color::red);
inline const fmt::text_style kNotice = fmt::fg(fmt::terminal_color::yellow);
inline const fmt::text_style kHeading = fmt::emphasis::bold;
inline const fmt::text_style kQuiet = fmt::emphasis::faint;

}  // namespace course::tool
