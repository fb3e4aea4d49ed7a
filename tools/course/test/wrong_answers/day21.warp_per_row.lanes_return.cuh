// Lanes beyond a short row return before the reductions of the warp.
// exercise: day21/warp_per_row
// expect: __shfl_xor_sync in lane \d+ reads lane \d+
template <Output kOutput, bool kWhole, int kValues>
__global__ void __launch_bounds__(kRowThreads)
    warp_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, std::size_t rows,
                 int cols) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + warp;
    if (index >= rows) return;  // the whole warp
    const Slice<kWhole> row(in + index * in_step, out + index * out_step, cols);

    if (lane * kWidth >= cols) return;  // this lane has nothing
    constexpr int kPacks = kValues / kWidth;
    Pack packs[kPacks];  // this lane's part of the row
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        packs[p] = load_pack(row, p * course::kWarpSize + lane);

    float max = -INFINITY;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        for (const float x : packs[p].value)
            max = fmaxf(max, x);
    max = course::warp_reduce(max, course::Max{});

    float sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        for (float& x : packs[p].value) {
            const float e = exponential(x, max);
            sum += e;
            if (kOutput == Output::kSoftmax) x = e;
        }
    }
    sum = course::warp_reduce(sum, course::Sum{});

    const float factor = 1 / sum;
    const float log_of_sum = logf(sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        for (float& x : packs[p].value)
            x = kOutput == Output::kSoftmax ? x * factor : (x - max) - log_of_sum;
        store_pack(row, p * course::kWarpSize + lane, packs[p]);
    }
}
