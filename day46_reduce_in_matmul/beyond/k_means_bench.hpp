// k-means as a case of the day's program, and a run of it in the plane for a figure.
#pragma once

#include <string>

#include "common/bench/program.hpp"

namespace day46 {

// dims: points x centres x numbers of each. An iteration is timed, with each version of the
// assignment. Throws std::invalid_argument when they are not three, or there are fewer points than
// centres.
course::Case make_k_means_case(const course::Dims& dims);

// Writes a run of k-means on a few hundred points in the plane as JSON: the points, the final
// assignment of each, and the centres and the inertia of each iteration. scripts/plot_k_means.py
// draws it.
void write_clusters(const std::string& path);

}  // namespace day46
