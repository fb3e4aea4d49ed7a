// The warp scans through shared memory.
// exercise: day16/warp_scan
// needs: kogge_stone
// expect: In shared memory it needs \d+ wavefronts, the lesson's version \d+
template <class T>
__device__ T warp_scan(T value) {
    __shared__ T values[kBlock];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    values[threadIdx.x] = value;
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        __syncwarp();
        const T left = lane >= stride ? values[threadIdx.x - stride] : T{0};
        __syncwarp();
        values[threadIdx.x] += left;
    }
    return values[threadIdx.x];
}
