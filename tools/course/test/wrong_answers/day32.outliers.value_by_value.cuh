// A thread loads one value of a row at a time; thread 0 makes the list alone.
// exercise: day32/outliers
// expect: To global memory it makes \d+ requests|In global memory it needs \d+ sectors
template <bool kAligned>
__global__ void __launch_bounds__(kMarkThreads)
    mark_outliers(DeviceMatrix<const __half> x, float threshold, std::uint16_t* keep, unsigned tiles) {
    const std::size_t lane = threadIdx.x % kWarpSize;
    const std::size_t first = blockIdx.x % tiles * std::size_t{kMarkTile} + lane * kOctet;
    const std::size_t begin = blockIdx.x / tiles * kMarkRows;
    const std::size_t end = min(begin + kMarkRows, x.rows());
    for (std::size_t row = begin + threadIdx.x / kWarpSize; row < end; row += kMarkWarps)
        for (std::size_t col = first; col < min(first + kOctet, x.cols()); ++col)
            if (!(fabsf(__half2float(x(row, col))) < threshold)) keep[col] = 0;
}

__global__ void __launch_bounds__(kListThreads)
    list_outliers(const std::uint16_t* keep, std::size_t cols, std::uint32_t* columns, std::uint32_t* count) {
    if (threadIdx.x != 0) return;
    std::uint32_t place = 0;
    for (std::size_t col = 0; col < cols; ++col)
        if (keep[col] == 0) columns[place++] = static_cast<std::uint32_t>(col);
    *count = place;
}
