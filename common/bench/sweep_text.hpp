#pragma once

#include <span>
#include <string>

#include "common/bench/report.hpp"

namespace course {

// The summary of a sweep: the speed-up of our version over the fastest peer (or the limit, if
// there is no peer) as geometric mean and minimum, and the ten worst problems; first warm, then
// flushed. Empty unless there is exactly one version, and a peer or a limit.
std::string text_of_sweep(std::span<const Record> records);

}  // namespace course
