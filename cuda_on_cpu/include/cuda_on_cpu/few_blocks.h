// For tests of indices beyond 32 bits: a grid of millions of blocks of which some run.
#pragma once

#include <vector>

namespace cuda_on_cpu {

// While one lives, kernels that this host thread launches run only the blocks around `places` of
// their grid: 0 is the first block, 1 the last, 0.5 that in the middle; four blocks on each side of
// a place run, too. The device seems to have so many multiprocessors that a kernel with a loop over
// the grid gets as many blocks as it has work for. Cooperative launches and those with clusters run
// whole.
class FewBlocks {
  public:
    explicit FewBlocks(std::vector<double> places);
    ~FewBlocks();
    FewBlocks(const FewBlocks&) = delete;
    FewBlocks& operator=(const FewBlocks&) = delete;
};

}  // namespace cuda_on_cpu
