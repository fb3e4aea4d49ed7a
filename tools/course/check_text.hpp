// What a check says of a run that failed and of a build that did. `root` is the checkout: paths are
// shown from there.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "subprocess.hpp"
#include "test_events.hpp"

namespace course::tool {

// Of the first test that failed, where the tests end: its name, what it printed, and `shown` of its
// failures; "" if none has failed.
std::string text_of_failures(const TestOutput& output, std::size_t shown, const std::string& root);

struct EndOfRun {
    std::chrono::milliseconds limit;
    std::string slow_place;  // where the kernel was when it took long; else empty
    std::size_t failures_shown;
};

// Of a run that did not come to the end of its tests: why, and what was printed last; of one that
// printed too much, first.
std::string text_of_end(const TestOutput& output, const Captured& run, const EndOfRun& end,
                        const std::string& root);

// What the compiler or the linker said, less the build's own lines and the command, which follows
// `FAILED:`; up to the first error in a system's header, if there is one before.
std::string text_of_errors(std::string_view messages, const std::string& root);

}  // namespace course::tool
