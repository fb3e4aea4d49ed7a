// Places in the program, and the lines of source that they come from.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda_on_cpu/language.h"
#include "trace.hpp"

namespace cuda_on_cpu::inspector {

// The place of an operation that the runtime performed for a kernel, from its line. Equal for equal
// file and line.
Place place_of(Site site);

// "/home/me/course/day01_vector_add/vector_add.cu" -> "day01_vector_add/vector_add.cu"
std::string relative_to_course(std::string_view file);

// The source line of each place. Of code that was inlined it is the innermost line outside
// cuda_on_cpu/ and common/, else outside cuda_on_cpu/: the lesson's own; with
// CUDA_ON_CPU_LINES=kernel the innermost in a .cu file, if there is one. Asks addr2line, once for
// each program or library that the places are in.
std::unordered_map<Place, SourceLine> source_lines(const std::vector<Place>& places);

}  // namespace cuda_on_cpu::inspector
