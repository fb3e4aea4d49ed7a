// The version of int8_matmul.hpp with Hopper's own instructions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/device/device_view.hpp"
#include "int8_matmul.hpp"

namespace day31 {

// The name of the tile that it chooses for a shape, on a GPU with so many multiprocessors.
std::string wgmma_tile_for(const MatmulShape& shape, std::size_t multiprocessors);

// The names of all tiles.
std::vector<std::string> wgmma_tiles();

// Queues C = A W^T with the tile of that name; std::invalid_argument if there is none. Rows of A
// and W are 16-byte aligned, C has elements.
void launch_wgmma_tile(std::string_view tile, course::DeviceMatrix<const std::int8_t> a,
                       course::DeviceMatrix<const std::int8_t> w, course::DeviceMatrix<std::int32_t> c,
                       cudaStream_t stream);

// Queues C = A W^T with the tile for its shape. Rows of A and W are 16-byte aligned, C has
// elements.
void launch_wgmma(course::DeviceMatrix<const std::int8_t> a, course::DeviceMatrix<const std::int8_t> w,
                  course::DeviceMatrix<std::int32_t> c, cudaStream_t stream);

}  // namespace day31
