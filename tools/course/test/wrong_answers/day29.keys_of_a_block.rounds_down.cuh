// The share is rounded down, so the last keys belong to no block.
// exercise: day29/keys_of_a_block
// expect: key \d+ of \d+, \d+ blocks: weight 0: it is in the range of no block
__device__ inline Range range_of(int length, int split, int splits, int step) {
    const int share = length / splits / step * step;
    return {split * share, split * share + share};
}
