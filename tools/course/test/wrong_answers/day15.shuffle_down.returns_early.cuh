// Threads without an element have returned when the others read them.
// exercise: day15/shuffle_down
// expect: warp_sums.cuh:\d+, called in [^ ]*warp_sums.cuh:\d+: __shfl_down_sync in lane \d+ reads lane \d+ of its warp, which has ended
__global__ void sum_by_warps(const float* in, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float sum = sum_in_lane_0(in[i]);
    if (i % kWarpSize == 0) out[i / kWarpSize] = sum;
}
