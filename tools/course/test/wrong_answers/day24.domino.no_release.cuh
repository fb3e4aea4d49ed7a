// The word may be visible before the prefix.
// exercise: day24/domino
// expect: single_pass\.cuh:\d+ and .*in no order
__global__ void __launch_bounds__(kBlock)
    domino(const int* in, int* out, std::size_t n, Word* board, int* prefixes) {
    __shared__ int shared[kShared];
    __shared__ int before;
    const unsigned tile = draw_ticket(board);
    const std::size_t first = std::size_t{tile} * kTile;
    Word* const is_ready = board + 1;
    int mine[kEach];
    load_tile(in, n, first, shared, mine);
    const int total = scan_tile(mine);

    if (threadIdx.x == 0) {
        before = 0;
        if (tile > 0) {
            while (load_relaxed(&is_ready[tile - 1]) == 0) {
            }
            __threadfence();  // acquire: the prefix that the word announces is visible
            before = prefixes[tile - 1];
        }
        prefixes[tile] = before + total;
        store_relaxed(&is_ready[tile], Word{1});
    }
    __syncthreads();
    store_tile(mine, before, shared, out, n, first);
}
