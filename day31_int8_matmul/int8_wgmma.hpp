// The version of int8_matmul.hpp with Hopper's own instructions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "common/device/device_view.hpp"
#include "int8_matmul.hpp"

namespace day31 {

// The name of the tile that it takes for a shape, on a GPU with so many multiprocessors.
std::string wgmma_tile_for(const MatmulShape& shape, std::size_t multiprocessors);

// Queues C = A W^T. Rows of A and W are 16-byte aligned, C has elements.
void launch_wgmma(course::DeviceMatrix<const std::int8_t> a, course::DeviceMatrix<const std::int8_t> w,
                  course::DeviceMatrix<std::int32_t> c, cudaStream_t stream);

}  // namespace day31
