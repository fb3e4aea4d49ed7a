// The six protocols of the exercises: what each computes, and how it is launched.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace day23 {

// Fills `out` from `in`, n integers each. `words` are kProtocolWords + n words of device memory,
// all 0 before the launch, which the blocks share.
constexpr unsigned kProtocolWords = 8;
using ProtocolLauncher = void (*)(const int* in, int* out, unsigned n, unsigned* words, cudaStream_t stream);

struct Protocol {
    std::string name;
    ProtocolLauncher launch;
    std::vector<int> (*on_cpu)(const std::vector<int>& in);
    // After the launch this word is the sum of what the blocks of 64 have put in. 0: there is none.
    unsigned word_of_sum = 0;
};

std::span<const Protocol> protocols();         // as the lesson repairs them
std::span<const Protocol> broken_protocols();  // as the exercises give them

}  // namespace day23
