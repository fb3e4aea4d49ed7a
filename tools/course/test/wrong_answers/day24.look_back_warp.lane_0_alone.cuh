// One lane walks back, one word at a time, as in look_back.
// exercise: day24/look_back_warp
// needs: grid_barrier, domino, look_back
// expect: of 32 lanes take part in a relaxed or an atomic access to global memory, in the lesson.s version
__device__ inline int walk_back_warp(const Word* words, unsigned tile) {
    int sum = 0;
    if (threadIdx.x == 0) sum = walk_back(words, tile);
    return __shfl_sync(kWholeWarp, sum, 0);
}
