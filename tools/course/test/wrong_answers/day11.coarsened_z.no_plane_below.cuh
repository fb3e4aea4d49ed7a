// The plane below the block's first one is not loaded.
// exercise: day11/coarsened_z
// expect: is -nan; expected [^\n]*, bit for bit\n[^\n]*\n[^\n]*computed from shared memory that no thread had written
__global__ void stencil_coarsened_z(const float* in, float* out, Grid grid, Seven k) {
    __shared__ float planes[3][kPlaneTile][kPlaneTile];
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(blockIdx.x) * kInnerPlaneTile + tx - 1;
    const int y = static_cast<int>(blockIdx.y) * kInnerPlaneTile + ty - 1;
    const int first = static_cast<int>(blockIdx.z) * kPlanesOfBlock;
    const int end = min(first + kPlanesOfBlock, grid.nz);
    const bool in_halo = tx == 0 || tx == kPlaneTile - 1 || ty == 0 || ty == kPlaneTile - 1;
    planes[(first + 1) % 3][ty][tx] = grid.has(x, y, first) ? in[grid.index(x, y, first)] : 0.0f;
    for (int z = first; z < end; ++z) {
        const auto& below = planes[z % 3];
        const auto& current = planes[(z + 1) % 3];
        auto& above = planes[(z + 2) % 3];
        above[ty][tx] = grid.has(x, y, z + 1) ? in[grid.index(x, y, z + 1)] : 0.0f;
        __syncthreads();
        if (!in_halo && grid.has(x, y, z)) {
            float value = current[ty][tx];
            if (grid.inside(x, y, z)) {
                value = weighted_sum(k, value, current[ty][tx - 1], current[ty][tx + 1], current[ty - 1][tx],
                                     current[ty + 1][tx], below[ty][tx], above[ty][tx]);
            }
            out[grid.index(x, y, z)] = value;
        }
        __syncthreads();
    }
}
