// The ticket releases the block's record, and acquires none.
// exercise: day23/last_block
// expect: its tests pass, but inspection found \d+ problems?:
__global__ void __launch_bounds__(kBlock)
    last_block(const int* in, std::size_t n, Record* total, Board* board, Record* records) {
    __shared__ bool is_last;
    const Record mine = record_of_tile(in, n, blockIdx.x);
    if (threadIdx.x == 0) {
        records[blockIdx.x] = mine;
        is_last = Atomic(board->ticket).fetch_add(1, memory_order_release) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;

    Record sum{};
    for (unsigned k = threadIdx.x; k < gridDim.x; k += kBlock)
        sum = combined(sum, records[k]);
    sum = record_of_block(sum);
    if (threadIdx.x == 0) *total = sum;
}
