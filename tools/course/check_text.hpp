// The messages of a check about a failed run and a failed build. `root` is the checkout; paths are
// shown relative to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "subprocess.hpp"
#include "test_events.hpp"

namespace course::tool {

// For a run that reached the end of its tests: the name of the first failed test, its output, and
// `shown` of its failures; "" if none has failed.
std::string text_of_failures(const TestOutput& output, std::size_t shown, const std::string& root);

struct EndOfRun {
    std::chrono::milliseconds limit;
    std::string slow_place;  // where a slow kernel was; else empty
    std::size_t failures_shown;
};

// For a run that did not reach the end of its tests: the reason, and the last lines of output. For
// a run with too much output, the first lines.
std::string text_of_end(const TestOutput& output, const Captured& run, const EndOfRun& end,
                        const std::string& root);

// The messages of the compiler or the linker, without the lines of the build tool and the command
// after `FAILED:`. They end at the first error in a system header if there is another error before
// it.
std::string text_of_errors(std::string_view messages, const std::string& root);

}  // namespace course::tool
