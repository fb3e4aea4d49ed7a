// The cases of the day's program that belong to fused attention.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/bench/program.hpp"

namespace day25::fused {

// Makers for course::Program::make_cases: FP32 and BF16, with and without a causal mask, and FP16 without. A size is batch x heads x length x dim, for example
// 4x8x2048x64; for a size of another kind they make a case without contestants.
std::vector<std::function<course::Case(const course::Dims&)>> fused_cases();

// Sizes that show something, for course::Program::bench_sizes.
std::vector<course::Dims> fused_bench_sizes();

// A table: what fused attention takes of the device's memory for 1 x 8 heads of 64 columns in BF16, from 1 k tokens to `longest`, and
// what the matrix of scores would take. Each length is run, the last row is verified. Throws std::runtime_error when it is wrong.
std::string memory_table(std::size_t longest);

}  // namespace day25::fused
