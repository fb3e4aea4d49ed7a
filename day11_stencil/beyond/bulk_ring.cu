#include "bulk_ring.cuh"
#include "bulk_ring.hpp"

namespace day11 {

template void launch_bulk_ring(const float*, float*, const Grid&, const Star<1>&, cudaStream_t);

}  // namespace day11
