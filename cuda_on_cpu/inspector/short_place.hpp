// A place in 32 bits. For code it is the distance from the variable `here` below; 0: too far away.
#pragma once

#include <cstdint>

#include "trace.hpp"

namespace cuda_on_cpu::inspector {

using ShortPlace = std::int32_t;

// Code is at most 1 GiB away from here; the small numbers of sites are stored above that range.
inline constexpr std::int64_t kFarPlace = 1 << 30;
inline constexpr Place kMostSites = 1 << 22;

inline std::int64_t middle_of_places() {
    static const char here = 0;
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&here));
}

inline ShortPlace short_place(Place place) {
    if (place < kMostSites)
        return place == 0 ? 0 : static_cast<ShortPlace>(kFarPlace + static_cast<std::int64_t>(place));
    const std::int64_t distance = static_cast<std::int64_t>(place) - middle_of_places();
    return distance > -kFarPlace && distance < kFarPlace ? static_cast<ShortPlace>(distance) : 0;
}

inline Place long_place(ShortPlace place) {
    if (place == 0) return 0;
    return static_cast<Place>(place > kFarPlace ? place - kFarPlace : middle_of_places() + place);
}

}  // namespace cuda_on_cpu::inspector
