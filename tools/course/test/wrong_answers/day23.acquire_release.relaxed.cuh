// The lock is taken and given back, and orders nothing.
// exercise: day23/acquire_release
// expect: its tests pass, but inspection found \d+ problems?:
__global__ void __launch_bounds__(kBlock)
    acquire_release(const int* in, std::size_t n, Record* total, Board* board) {
    const Record mine = record_of_tile(in, n, blockIdx.x);
    if (threadIdx.x != 0) return;

    while (Atomic(board->lock).exchange(1, memory_order_relaxed) != 0) {
    }
    *total = combined(*total, mine);
    Atomic(board->lock).store(0, memory_order_relaxed);
}
