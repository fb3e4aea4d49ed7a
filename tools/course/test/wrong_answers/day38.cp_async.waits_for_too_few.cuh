// One group of copies too many may still be in flight.
// exercise: day38/cp_async
// expect: \d+ of them computed from shared memory that no thread had written: .* the wait for a copy
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_cp_async(Operands operands, Watch watch) {
    auto& stages = Shared<T>::of_block().stage;
    const int thread = static_cast<int>(threadIdx.x);
    const Origin origin = origin_of_block<T>(operands.c);
    const auto place = Place<T>::of_thread(thread);
    Source<T, VEC, T::THREADS> source(operands, origin, thread);
    const unsigned tiles = tiles_along_k<T>(operands);

    const auto copy = [&](unsigned tile) {
        if (tile < tiles) {
            watch.begin(Activity::kCopy, tile);
            source.next(stages[tile % T::STAGES], CopyByInstruction<VEC>{});
        }
        course::ptx::cp_async_commit();
    };
    for (unsigned tile = 0; tile + 1 < T::STAGES; ++tile)
        copy(tile);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        course::ptx::cp_async_wait<T::STAGES - 1>();
        __syncthreads();
        copy(tile + T::STAGES - 1);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}
