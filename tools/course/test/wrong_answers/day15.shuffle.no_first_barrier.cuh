// A second call overwrites sums that the first has not read.
// exercise: day15/shuffle
// expect: the tests pass: the result depends on the order of threads. Is a barrier
__device__ inline float block_sum(float value) {
    __shared__ float of_warp[kWarps];  // the sum of each warp
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;
    value = warp_sum(value);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();  // all sums are written
    if (warp == 0) value = warp_sum(lane < kWarps ? of_warp[lane] : 0.0f);
    return value;
}
