// Tiles that lie partly outside of the matrix are not stored.
// exercise: day06/tiled
// expect: 75 x 203: 825 of 15225 values differ.*\n\s+825 values were never written
__global__ void transpose_tiled(const float* in, int in_ld, float* out, int out_ld, int rows, int cols) {
    __shared__ float tile[kTile][kTile];
    const int first_row = blockIdx.y * kTile;
    const int first_col = blockIdx.x * kTile;
    int row = first_row + threadIdx.y;
    int col = first_col + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * in_ld + col];
    __syncthreads();
    row = first_row + threadIdx.x;
    col = first_col + threadIdx.y;
    if (row < rows && first_col + kTile <= cols) out[col * out_ld + row] = tile[threadIdx.x][threadIdx.y];
}
