// Places in the program, and their source lines.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda_on_cpu/language.h"
#include "trace.hpp"

namespace cuda_on_cpu::inspector {

// The place of an operation that the runtime performed for a kernel. Equal for equal file and line.
Place place_of(Site site);

// "/home/me/course/day01_vector_add/vector_add.cu" -> "day01_vector_add/vector_add.cu"
std::string relative_to_course(std::string_view file);

// The source line of each place. For inlined code it is the innermost line outside cuda_on_cpu/ and
// common/, otherwise the innermost outside cuda_on_cpu/: the lesson's own line. With
// CUDA_ON_CPU_LINES=kernel it is the innermost line in a .cu file, or else in a .cuh file, if there
// is one. Runs addr2line once for each program or library that contains places.
std::unordered_map<Place, SourceLine> source_lines(const std::vector<Place>& places);

}  // namespace cuda_on_cpu::inspector
