// What softmax.cu and softmax_rows.cu share on the host.
#pragma once

#include <span>

#include "softmax.hpp"

namespace day20 {

using course::DeviceMatrix;
using course::DeviceSpan;

constexpr std::size_t kMaxParts = 1024;  // of a row, so that a block can take all of them together quickly

// At most so many parts of a row of `cols` have a maximum and a sum of their own.
std::size_t most_parts(std::size_t cols);

// Throws std::invalid_argument unless the arguments are as softmax.hpp says. False when there is nothing to do.
bool check_arguments(DeviceMatrix<const float> in, DeviceMatrix<float> out, DeviceSpan<MaxSum> workspace);

// Throws std::invalid_argument unless `reason`, of a constraint, is empty.
void require_possible(const std::string& reason);

// In softmax_rows.cu: the versions for many rows, and the rule by which `auto` chooses between them.
std::span<const Softmax> row_variants();
const Softmax& choose_row_variant(const Problem& problem);

course::Work work(const Problem& problem);

}  // namespace day20
