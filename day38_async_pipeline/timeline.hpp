// What the warps of a block do, and when.
#pragma once

#include <string_view>

namespace day38 {

// What a warp does, from one moment to the next.
enum class Activity : unsigned { kCopy, kWait, kMultiply, kEnd };

// "copy", "wait", "multiply", "end"
std::string_view name(Activity activity);

// The warp started this activity at `time`. All times of a block come from the clock of its SM:
// cycles on a GPU, nanoseconds on the CPU stand-in, from an arbitrary origin.
struct Stamp {
    unsigned warp;
    Activity activity;
    unsigned tile;  // its number along K
    long long time;
};

}  // namespace day38
