// What the files of the driver API have in common.
#pragma once

#include <cuda.h>

namespace cuda_on_cpu {

// Says on stderr which function refused what, and gives the error back.
[[gnu::format(printf, 3, 4)]] CUresult refuse_call(CUresult error, const char* function, const char* format,
                                                   ...);
// cuInit was called, and the device exists; or else which of the two is not so.
CUresult check_device(const char* function, CUdevice device);

}  // namespace cuda_on_cpu
