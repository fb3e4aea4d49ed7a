#pragma once

#include <span>
#include <string>

#include "common/bench/report.hpp"

namespace course {

// The end of a sweep: how many times as fast as the fastest peer our version is (as the limit,
// where there is no peer), as geometric mean and least, and the worst ten problems; warm, then
// flushed. Empty unless there is one version, and a peer or a limit.
std::string text_of_sweep(std::span<const Record> records);

}  // namespace course
