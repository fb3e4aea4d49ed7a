// The flags are seen, and do not order the records.
// exercise: day23/publication
// expect: its tests pass, but inspection found \d+ problems?:
__global__ void __launch_bounds__(kBlock)
    publication(const int* in, std::size_t n, Record* total, Board* board, Record* records) {
    __shared__ unsigned tile;
    if (threadIdx.x == 0) tile = Atomic(board->ticket).fetch_add(1, memory_order_relaxed);
    __syncthreads();
    const Record mine = record_of_tile(in, n, tile);
    if (threadIdx.x == 0) {
        records[tile] = mine;
        Atomic(board->flags[tile]).store(1, memory_order_release);
    }
    if (tile != gridDim.x - 1) return;

    Record sum{};
    for (unsigned k = threadIdx.x; k < gridDim.x; k += kBlock) {
        while (Atomic(board->flags[k]).load(memory_order_relaxed) == 0) {
        }
        sum = combined(sum, records[k]);
    }
    __syncthreads();  // record_of_block is called a second time
    sum = record_of_block(sum);
    if (threadIdx.x == 0) *total = sum;
}
