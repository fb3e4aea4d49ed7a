// Parts of the reports about a block.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

#include "cuda_on_cpu/thread.h"
#include "vector_types.h"
#include "warp.hpp"

namespace cuda_on_cpu {

// "(5,0,0)"
inline std::string triple(uint3 index) {
    return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," + std::to_string(index.z) +
           ")";
}

// "0x000000ff"
inline std::string hexadecimal(LaneMask mask) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", mask);
    return text;
}

// "reduction.cu:42"
inline std::string place(Site site) {
    return std::string(site.file) + ":" + std::to_string(site.line);
}

inline const char* name_of(BarrierKind kind) {
    static constexpr const char* kNames[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                             "__syncthreads_or", "block.barrier_arrive"};
    return kNames[static_cast<int>(kind)];
}

// The names are usually one and the same literal. The text is compared because several object files
// may include the same header.
inline bool same_place(Site a, Site b) {
    return a.line_and_column == b.line_and_column && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace cuda_on_cpu
