// The limit that day 5's tiled versions are compared with; not a version, because its result is of
// no use.
#pragma once

#include <cuda_runtime.h>

#include "common/bench/work.hpp"
#include "matmul_tiled.hpp"

namespace day05 {

// The main loop of multiply_tiled on tiles that are loaded once: as many blocks and iterations as
// the product has, but no global loads. No kernel whose threads compute one element each and load
// both operands of every multiply-add from shared memory can be faster. Throws CudaError when the
// launch fails.
void launch_tile_limit(Shape shape, cudaStream_t stream);

// Its blocks compute whole tiles, also at the edges of C: these are the operations it does.
course::Work tile_limit_work(const Shape& shape);

}  // namespace day05
