// No tile: the naive kernel.
// exercise: day06/tiled
// expect: takes 32 sectors, on average; expected 4\n\s+the kernel has no store to the tile
__global__ void transpose_tiled(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    if (row < rows && col < cols) out[col * out_ld + row] = in[row * in_ld + col];
}
