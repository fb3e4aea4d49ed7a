// Amounts of memory in messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace course {

// "512 bytes", "1.2 PiB"
inline std::string text_of_bytes(std::size_t bytes) {
    constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1000 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%.3g %s", value, kUnits[unit]);
    return text.data();
}

}  // namespace course
