// A cell with each access instead of four.
// exercise: day11/register_tiled_float4
// expect: In global memory it needs \d+ sectors, the lesson's version \d+
template <bool kAligned>
__global__ __launch_bounds__(1024) void stencil_register_tiled_float4(const float* __restrict__ in,
                                                                      float* __restrict__ out, Grid grid,
                                                                      Seven k, int planes) {
    const int lane = static_cast<int>(threadIdx.x);
    const int x = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y) * kWarpCells + lane * kLaneCells;
    const int y = static_cast<int>(blockIdx.y * blockDim.z + threadIdx.z) * kThreadRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);
    if (y >= grid.ny) return;

    const auto load = [&](int row, int z) {
        const bool there = row >= 0 && row < grid.ny && z >= 0 && z < grid.nz;
        return there ? load_quad<false>(in + grid.index(0, row, z), x, grid.nx) : Quad{};
    };
    Quad below[kThreadRows], centre[kThreadRows], above[kThreadRows];
#pragma unroll
    for (int r = 0; r < kThreadRows; ++r) {
        below[r] = load(y + r, first - 1);
        centre[r] = load(y + r, first);
    }
    constexpr bool kStreaming = true;
#pragma unroll 3
    for (int z = first; z < end; ++z) {
#pragma unroll
        for (int r = 0; r < kThreadRows; ++r)
            above[r] = load(y + r, z + 1);
        const Quad back = load(y - 1, z);
        const Quad front = load(y + kThreadRows, z);
#pragma unroll
        for (int r = 0; r < kThreadRows; ++r) {
            float left = __shfl_up_sync(course::kWholeWarp, centre[r].value[kLaneCells - 1], 1);
            float right = __shfl_down_sync(course::kWholeWarp, centre[r].value[0], 1);
            if (y + r >= grid.ny) continue;
            if (lane == 0 && x > 0 && x < grid.nx) left = in[grid.index(x - 1, y + r, z)];
            if (lane == 31 && x + kLaneCells < grid.nx) right = in[grid.index(x + kLaneCells, y + r, z)];
            Quad result = weighted_sums(k, centre[r], left, right, r > 0 ? centre[r - 1] : back,
                                        r < kThreadRows - 1 ? centre[r + 1] : front, below[r], above[r]);
            const bool row_inside = y + r > 0 && y + r < grid.ny - 1 && z > 0 && z < grid.nz - 1;
            keep_boundary<kAligned>(result, centre[r], row_inside, x, grid.nx);
            store_quad<false, kStreaming>(out + grid.index(0, y + r, z), x, grid.nx, result);
            below[r] = centre[r];
        }
#pragma unroll
        for (int r = 0; r < kThreadRows; ++r)
            centre[r] = above[r];
    }
}
