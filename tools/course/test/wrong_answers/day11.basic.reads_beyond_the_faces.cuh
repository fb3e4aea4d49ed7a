// Cells on the faces of the grid have fewer than six neighbours, and are computed like the others.
// exercise: day11/basic
// expect: stencil.cuh:\d+|is an index out of range
__global__ void stencil_basic(const float* in, float* out, Grid grid, Seven k) {
    const int x = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kTile + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z) * kTile + static_cast<int>(threadIdx.z);
    if (!grid.has(x, y, z)) return;
    const std::size_t i = grid.index(x, y, z);
    out[i] = weighted_sum(k, in[i], in[i - 1], in[i + 1], in[i - grid.row()], in[i + grid.row()],
                          in[i - grid.plane()], in[i + grid.plane()]);
}
