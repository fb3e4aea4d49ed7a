// The timeline of a block. A kernel calls watch.begin() at each change of activity. With Silent the
// calls compile to nothing.
#pragma once

#include <cuda_runtime.h>

#include "timeline.hpp"

namespace day38 {

struct Silent {
    __device__ void begin(Activity, unsigned) {}
};

// Records the stamps of one block: lane 0 of each warp stores up to `most`.
class Stamping {
  public:
    Stamping(Stamp* stamps, unsigned* counts, unsigned block, unsigned most)
        : stamps_(stamps), counts_(counts), block_(block), most_(most) {}

    __device__ void begin(Activity activity, unsigned tile) {
        if (blockIdx.x != block_ || threadIdx.x % 32 != 0 || next_ == most_) return;
        const unsigned warp = threadIdx.x / 32;
        stamps_[warp * most_ + next_] = {warp, activity, tile, clock64()};
        counts_[warp] = ++next_;
    }

  private:
    Stamp* stamps_;
    unsigned* counts_;
    unsigned block_;
    unsigned most_;
    unsigned next_ = 0;
};

}  // namespace day38
