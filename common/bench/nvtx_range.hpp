// Names a range of time in the profiler (Nsight Systems, Nsight Compute). Does nothing without a
// GPU.
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
