// The scan of a tile is stored before the sums are known, and read again: 4 n, not 3 n.
// exercise: day24/grid_barrier
// expect: In global memory it needs \d+ sectors, the lesson's version \d+\.
__global__ void __launch_bounds__(kBlock) grid_barrier(const int* in, int* out, std::size_t n, int* sums) {
    __shared__ int shared[kShared];
    const cg::grid_group grid = cg::this_grid();
    const std::size_t tiles = course::ceil_div<std::size_t>(n, kTile);
    int mine[kEach];
    for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        load_tile(in, n, tile * kTile, shared, mine);
        const int total = scan_tile(mine);
        store_tile(mine, 0, shared, out, n, tile * kTile);
        if (threadIdx.x == 0) sums[tile] = total;
    }
    grid.sync();  // all sums are stored
    if (blockIdx.x == 0) {
        int before = 0;
        for (std::size_t first = 0; first < tiles; first += kTile) {
            load_tile(sums, tiles, first, shared, mine);
            const int total = scan_tile(mine);
            store_tile(mine, before, shared, sums, tiles, first);
            before += total;
        }
    }
    grid.sync();  // all sums are scanned
    for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        load_tile(out, n, tile * kTile, shared, mine);
        store_tile(mine, tile > 0 ? sums[tile - 1] : 0, shared, out, n, tile * kTile);
    }
}
