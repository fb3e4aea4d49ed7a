// Names a stretch of time in the profiler (Nsight Systems, Nsight Compute). Without a GPU there is
// nothing to name.
#pragma once

#ifndef CUDA_ON_CPU
#include <nvtx3/nvToolsExt.h>
#endif

#include <string>

namespace course {

class NvtxRange {
  public:
#ifdef CUDA_ON_CPU
    explicit NvtxRange(const std::string&) {}
#else
    explicit NvtxRange(const std::string& name) {
        nvtxRangePushA(name.c_str());
    }
    ~NvtxRange() {
        nvtxRangePop();
    }
#endif
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace course
