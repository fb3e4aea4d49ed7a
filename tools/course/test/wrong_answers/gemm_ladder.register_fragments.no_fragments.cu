// Operands come from shared memory for each multiply-add, as in step 4.
// exercise: gemm_ladder/register_fragments
// expect: In shared memory it needs \d+ wavefronts, the lesson's version \d+
__global__ __launch_bounds__(THREADS, 2) void sgemm_register_fragments(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C begins at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty, ty + ROWS... and columns tx, tx + COLS... of the tile, as in step 4.
    const int ty = thread / COLS;
    const int tx = thread % COLS;
    // Thread to loads: element (a_row, a_col) of A's tile and those THREADS / BK rows further down;
    // of B's likewise.
    const int a_row = thread / BK;
    const int a_col = thread % BK;
    const int b_row = thread / BN;
    const int b_col = thread % BN;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);

    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        const int depth = remaining(gemm.k(), k0);
#pragma unroll
        for (int down = 0; down < BM; down += THREADS / BK)
            a_tile[a_row + down][a_col] = a_row + down < rows && a_col < depth ? a[down * lda] : 0.0f;
#pragma unroll
        for (int down = 0; down < BK; down += THREADS / BN)
            b_tile[b_row + down][b_col] = b_row + down < depth && b_col < cols ? b[down * ldb] : 0.0f;
        a += BK;
        b += BK * ldb;
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_tile[ty + i * ROWS][k] * b_tile[k][tx + j * COLS];
                }
            }
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j)
            store(gemm, row0 + ty + i * ROWS, col0 + tx + j * COLS, sums[i][j]);
    }
}
