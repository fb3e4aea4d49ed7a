// The tiles of the sweep: step 12's kernel with many sets of parameters.
#pragma once

#include <string>
#include <vector>

#include "../sgemm.hpp"

namespace gemm {

// As in course::TileShape.
struct TileParameters {
    int bm, bn, bk;
    int wm, wn;
    int tm, tn;
    int stages;
};

struct SweptTile {
    std::string name;              // "128x256x8_64x64_16x8_4": BM x BN x BK, WM x WN, TM x TN, stages
    Kernel kernel;                 // rows must be aligned, and consist of whole float4
    std::size_t shared_bytes = 0;  // of a block
};

// Sets FIRST, FIRST + STEP, ... of the list in sweep.cuh. Each pair of numbers is a file of its
// own, so that several compilers work at the same time (CMakeLists.txt).
template <int FIRST, int STEP>
std::vector<SweptTile> part_of_sweep();

}  // namespace gemm
