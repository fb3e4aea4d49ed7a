// The references of the hunts: Kernel::on_cpu.
#pragma once

#include "hunts.hpp"

namespace hunts {

using Reference = void(const Layout& layout, std::span<const float> in, std::span<const float> vector,
                       std::span<double> out, std::span<double> magnitude);

Reference filter_on_cpu;
Reference resample_on_cpu;
Reference vector_matrix_on_cpu;
Reference midpoints_on_cpu;
Reference warp_sums_on_cpu;
Reference centre_rows_on_cpu;
Reference column_sums_on_cpu;
Reference scale_rows_on_cpu;
Reference transpose_on_cpu;
Reference fold_on_cpu;
Reference running_sums_on_cpu;
Reference shelves_on_cpu;
Reference rods_on_cpu;
Reference places_on_cpu;
Reference flood_on_cpu;
Reference halves_on_cpu;
Reference letters_on_cpu;
Reference squares_on_cpu;
Reference details_on_cpu;
Reference recordings_on_cpu;
Reference gradient_on_cpu;

}  // namespace hunts
