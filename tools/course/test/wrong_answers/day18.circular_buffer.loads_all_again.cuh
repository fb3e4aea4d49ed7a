// The keys that a tile left over are loaded again.
// exercise: day18/circular_buffer
// expect: Is one loaded again that the buffer still has
// needs: co_rank, basic, tiled
__global__ void __launch_bounds__(kTiledBlock)
    circular_buffer(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out) {
    __shared__ Key slots_a[kTiledTile];
    __shared__ Key slots_b[kTiledTile];
    __shared__ unsigned taken_from_a;
    Part rest = part_of_block(a, m, b, n);
    Ring ring_a{slots_a, 0};
    Ring ring_b{slots_b, 0};
    unsigned kept_a = 0;  // elements that the last tile left over
    unsigned kept_b = 0;
    while (rest.k < rest.k_end) {
        const auto size_a = static_cast<unsigned>(smaller<std::size_t>(rest.i_end - rest.i, kTiledTile));
        const auto size_b = static_cast<unsigned>(smaller<std::size_t>(rest.j_end - rest.j, kTiledTile));
        for (unsigned x = threadIdx.x; x < size_a; x += kTiledBlock)
            slots_a[ring_a.slot(x)] = a[rest.i + x];
        for (unsigned x = threadIdx.x; x < size_b; x += kTiledBlock)
            slots_b[ring_b.slot(x)] = b[rest.j + x];
        __syncthreads();

        const unsigned size = smaller(size_a + size_b, kTiledTile);
        const unsigned k = smaller(threadIdx.x * kTiledShare, size);
        const unsigned k_end = smaller(k + kTiledShare, size);
        const unsigned i = co_rank(k, ring_a, size_a, ring_b, size_b);
        const unsigned i_end = co_rank(k_end, ring_a, size_a, ring_b, size_b);
        const unsigned j = k - i;
        const unsigned j_end = k_end - i_end;
        merge_sequential(ring_a.from(i), i_end - i, ring_b.from(j), j_end - j, out + rest.k + k);

        if (threadIdx.x == kTiledBlock - 1) taken_from_a = i_end;
        __syncthreads();
        const unsigned taken_from_b = size - taken_from_a;
        ring_a.first += taken_from_a;
        ring_b.first += taken_from_b;
        kept_a = size_a - taken_from_a;
        kept_b = size_b - taken_from_b;
        rest.i += taken_from_a;
        rest.j += taken_from_b;
        rest.k += size;
    }
}
