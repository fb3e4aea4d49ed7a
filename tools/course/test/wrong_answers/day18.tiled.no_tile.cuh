// No tile: each thread merges its share from global memory, as in `basic`.
// exercise: day18/tiled
// needs: co_rank, basic
// expect: In global memory it needs \d+ sectors, the lesson's version \d+
__global__ void __launch_bounds__(kTiledBlock)
    tiled(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out) {
    const Part part = part_of_block(a, m, b, n);
    for (std::size_t tile = part.k; tile < part.k_end; tile += kTiledTile) {
        const std::size_t k = smaller(tile + threadIdx.x * kTiledShare, part.k_end);
        const std::size_t k_end = smaller(k + kTiledShare, part.k_end);
        const std::size_t i = co_rank(k, a, m, b, n);
        const std::size_t i_end = co_rank(k_end, a, m, b, n);
        merge_sequential(a + i, i_end - i, b + (k - i), k_end - i_end - (k - i), out + k);
    }
}
