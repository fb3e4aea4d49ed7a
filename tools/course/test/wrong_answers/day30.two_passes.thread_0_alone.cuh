// Thread 0 of a block reads the whole chunk.
// exercise: day30/two_passes
// needs: plain, dequantize, row_in_registers
// expect: In global memory it needs \d+ sectors, the lesson.s version \d+\.
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    find_row_ranges(DeviceMatrix<const T> in, unsigned chunks, float* scale, std::int32_t* zero_point) {
    const std::size_t row = blockIdx.x / chunks;
    const std::size_t begin = blockIdx.x % chunks * kChunk;
    if (threadIdx.x != 0) return;
    Range range{};
    for (std::size_t c = begin; c < min(begin + kChunk, in.cols()); ++c)
        range.template include<kScheme>(static_cast<float>(in(row, c)));
    collect<kScheme>(range, scale, zero_point, kGranularity == Granularity::kRow ? row : 0);
}
