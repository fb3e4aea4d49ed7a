// How much work a kernel has to do. Each version declares it.
#pragma once

namespace course {

// The unit that does the arithmetic. Only the FP32 rate of the machine is measured; tensor cores
// and other types can exceed it.
enum class Arithmetic { kFp32, kOther };

// The minimum work of any version for one problem, not the work that a particular version does:
// each input is read once, each output written once, and operations are counted as in a textbook (a
// multiply-add is two).
struct Work {
    double bytes = 0;    // read and written together
    double written = 0;  // the written part: switching between reads and writes slows memory down
    double flops = 0;
    Arithmetic arithmetic = Arithmetic::kFp32;
    // Bytes that this version's threads load from and store to global memory, including those that
    // a cache serves; 0: not counted. flops / requested is its arithmetic intensity (PMPP 5.1).
    double requested = 0;
};

}  // namespace course
