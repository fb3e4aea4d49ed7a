// How much a kernel has to do, declared beside it.
#pragma once

namespace course {

// Which unit does the arithmetic. Only the FP32 rate of the machine is measured; tensor cores and
// other types go beyond it.
enum class Arithmetic { kFp32, kOther };

// The least any version must do for one problem, not what a version happens to do: each input read
// once, each output written once, and the textbook count of operations (a multiply-add is two).
struct Work {
    double bytes = 0;    // read and written together
    double written = 0;  // of these, written: memory that has to turn round between the two is slower
    double flops = 0;
    Arithmetic arithmetic = Arithmetic::kFp32;
    // Bytes that this version's threads load and store in global memory, whatever the caches
    // answer; 0: not counted. flops / requested is its arithmetic intensity (PMPP 5.1).
    double requested = 0;
};

}  // namespace course
