// The body of 09c: the lanes of a warp are spread over the whole width of the block's tile.
// exercise: gemm_ladder/warp_tiling
// expect: Its warps load \d+ different bytes from shared memory, those of the lesson's version \d+
__global__ __launch_bounds__(THREADS, 2) void sgemm_warp_tiling(Sgemm gemm) {
    constexpr int ROWS = BM / TM;
    constexpr int COLS = BN / TN;
    alignas(16) __shared__ float a_tile[2][BK][BM];
    alignas(16) __shared__ float b_tile[2][BK][BN];
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    const int ty = thread / COLS;
    const int tx = thread % COLS;
    constexpr int A_DOWN = THREADS * 4 / BK;
    constexpr int B_DOWN = THREADS * 4 / BN;
    const int a_row = thread / (BK / 4);
    const int a_col = thread % (BK / 4) * 4;
    const int b_row = thread / (BN / 4);
    const int b_col = thread % (BN / 4) * 4;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);
    const int cols = remaining(gemm.n(), col0);
    const bool rows_fit = row0 + BM <= gemm.m();
    const bool cols_fit = col0 + BN <= gemm.n();

    float4 a_next[BM / A_DOWN];
    float4 b_next[BK / B_DOWN];
    const auto load_next = [&](std::size_t k0) {
        if (rows_fit && k0 + BK <= gemm.k()) {
#pragma unroll
            for (int n = 0; n < BM / A_DOWN; ++n)
                a_next[n] = *reinterpret_cast<const float4*>(a + n * A_DOWN * lda);
        } else {
            const int depth = remaining(gemm.k(), k0);
#pragma unroll
            for (int n = 0; n < BM / A_DOWN; ++n)
                a_next[n] =
                    load4_or_zero(a + n * A_DOWN * lda, a_row + n * A_DOWN < rows ? depth - a_col : 0);
        }
        if (k0 + BK <= gemm.k() && cols_fit) {
#pragma unroll
            for (int n = 0; n < BK / B_DOWN; ++n)
                b_next[n] = *reinterpret_cast<const float4*>(b + n * B_DOWN * ldb);
        } else {
            const int depth = remaining(gemm.k(), k0);
#pragma unroll
            for (int n = 0; n < BK / B_DOWN; ++n)
                b_next[n] =
                    load4_or_zero(b + n * B_DOWN * ldb, b_row + n * B_DOWN < depth ? cols - b_col : 0);
        }
    };
    const auto store_next = [&](int stage) {
#pragma unroll
        for (int n = 0; n < BM / A_DOWN; ++n) {
            a_tile[stage][a_col + 0][a_row + n * A_DOWN] = a_next[n].x;
            a_tile[stage][a_col + 1][a_row + n * A_DOWN] = a_next[n].y;
            a_tile[stage][a_col + 2][a_row + n * A_DOWN] = a_next[n].z;
            a_tile[stage][a_col + 3][a_row + n * A_DOWN] = a_next[n].w;
        }
#pragma unroll
        for (int n = 0; n < BK / B_DOWN; ++n)
            *reinterpret_cast<float4*>(&b_tile[stage][b_row + n * B_DOWN][b_col]) = b_next[n];
    };
    float a_fragment[2][TM];
    float b_fragment[2][TN];
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][tx * 4 + j * COLS], &b_fragment[buffer][j]);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][ty * 4 + i * ROWS], &a_fragment[buffer][i]);
    };
    int stage = 0;
    load_next(0);
    store_next(stage);
    __syncthreads();
    load_fragments(stage, 0, 0);
    float sums[TM][TN] = {};
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        a += BK;
        b += BK * ldb;
        load_next(k0 + BK);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 == BK) {
                stage ^= 1;
                store_next(stage);
                __syncthreads();
            }
            load_fragments(stage, (k + 1) % BK, (k + 1) % 2);
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[k % 2][i] * b_fragment[k % 2][j];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = ty * 4 + i / 4 * ROWS * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(gemm, row0 + row, col0 + tx * 4 + j * COLS, &sums[i][j]);
    }
}
