// A thread loads and stores the four elements of its pack one by one.
// exercise: day20/warm_up
// expect: In global memory it needs \d+ sectors, the lesson's version \d+\.\n\s+\S*elementwise.cuh:\d+: each request of a warp touches
template <float (*kFunction)(float), int kWidth>
__global__ void apply(const float* in, float* out, std::size_t n) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (std::size_t k = 0; k < kWidth; ++k)
        if (kWidth * i + k < n) out[kWidth * i + k] = kFunction(in[kWidth * i + k]);
}
