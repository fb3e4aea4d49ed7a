// What a profile shows: the counters of a GPU beside the counts of an inspection, as figures with
// names; the class and the waits of warps in plain words, with what to try.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"
#include "counters.hpp"
#include "inspect_view.hpp"
#include "measurements.hpp"

namespace course::tool {

// What is known of one version, or of one kernel of the user's own program.
struct Profile {
    std::string name;
    std::string problem;
    std::string gpu{};                                 // "NVIDIA H200"
    std::vector<KernelCounters> kernels{};             // the longest first; empty: not counted
    std::string reason{};                              // of the longest kernel's class, by the rule
    std::optional<MeasuredRecord> timed{};             // of the same version and problem, warm
    std::optional<MeasuredRecord> timed_on_another{};  // where `timed` is empty: of another problem
    std::string inspected_problem{};                   // of `inspected`
    std::vector<KernelInspection> inspected{};         // of the longest kernel, or of all
    Facts facts{};                                     // of the inspected version as a whole
    std::optional<MultiprocessorLimits> inspected_on{};
    std::string not_inspected{};  // why `inspected` is empty
};

// How to read the name of a class or of a stall, what to try, and the days that teach it.
struct Advice {
    std::string_view name;   // "barriers", "long_scoreboard"
    std::string_view words;  // of a stall: what warps do. Empty for a class, whose reason says it
    std::string_view attempt;
    std::vector<std::string_view> days;  // "day15", "gemm_ladder"
};
std::span<const Advice> advice_on_limits();
std::span<const Advice> advice_on_stalls();
std::span<const Advice> advice_on_signs();
// Throws std::runtime_error for a name without advice.
const Advice& advice_on(std::span<const Advice> all, std::string_view name);
// "day 1, day 15, the ladder"
std::string days_text(const Advice& advice);

// A line of a screen. `value` and `predicted_value` are numbers to compare; empty where there are
// none. `percent`: they are shares of a whole.
struct Figure {
    std::string name;
    std::string counted;      // on the GPU
    std::string predicted{};  // by the inspection
    std::optional<double> value{};
    bool percent = false;
    std::optional<double> predicted_value{};
};

// A state of the warps, and its share of their time.
struct Wait {
    double share = 0;
    const Advice* advice = nullptr;
};

// A cause that the counters of the longest kernel prove, and the figures that do. The words of its
// advice say what they mean.
struct Sign {
    std::string figures;
    const Advice* advice = nullptr;
};
std::vector<Sign> signs_of(const Profile& profile);
// Of all kernels; of the work, as the record of its time has them, or 0.
double dram_bytes(const Profile& profile);
double bytes_needed(const Profile& profile);
// "52 % of the time, on average"
std::string active_text(const KernelCounters& kernel);

struct Screen {
    std::string name;
    std::string problem;
    std::string gpu;
    std::string inspected_problem;
    std::string not_inspected;
    std::string limited_by;  // empty: not counted
    std::string reason;
    const Advice* limit = nullptr;
    std::vector<Sign> signs;
    std::vector<Figure> units;        // how busy each is, the busiest first
    std::vector<Figure> hardware;     // what only the GPU can tell
    std::vector<Wait> waits;          // the two largest
    std::vector<Figure> predictable;  // what an inspection can tell as well
};
Screen screen_of(const Profile& profile);
// Advice on a single wait is left out where other figures prove the cause, and for a kernel that is
// over too soon for a wait to matter.
bool waits_have_attempts(const Screen& screen);

// The figures of two versions, those that differ most first. A share that differs by 25 points
// counts as much as a factor of two.
struct Change {
    std::string name;
    std::string before;
    std::string after;
    std::string factor;  // "0.12×", "+40 points", "new"; empty: much the same
};
std::vector<Change> changes(const Screen& before, const Screen& after);

std::string screen_text(const Screen& screen, bool colour);
std::string comparison_text(const Screen& before, const Screen& after, bool colour);

}  // namespace course::tool
