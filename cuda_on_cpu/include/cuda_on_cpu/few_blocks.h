// For tests of indices beyond 32 bits: a grid of millions of blocks, of which only some run.
#pragma once

#include <vector>

namespace cuda_on_cpu {

// While an object of this class exists, kernels that this host thread launches run only the blocks
// around `places` of their grid: 0 is the first block, 1 the last, 0.5 the middle one. Four blocks
// on each side of a place run as well. The device reports so many multiprocessors that a kernel
// with a grid-stride loop gets as many blocks as it has work for. Cooperative launches and launches
// with clusters run completely.
class FewBlocks {
  public:
    explicit FewBlocks(std::vector<double> places);
    ~FewBlocks();
    FewBlocks(const FewBlocks&) = delete;
    FewBlocks& operator=(const FewBlocks&) = delete;
};

}  // namespace cuda_on_cpu
