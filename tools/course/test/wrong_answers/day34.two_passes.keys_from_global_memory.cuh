// The tile of keys is in shared memory for weigh_tile() alone: the product reads them again.
// exercise: day34/two_passes
// expect: In global memory it needs \d+ sectors
template <int D>
__global__ void __launch_bounds__(kThreads) recompute_queries(const Gradient<float> a, const RowTerms terms) {
    extern __shared__ float4 memory[];
    Tiles<D>& tiles = *reinterpret_cast<Tiles<D>*>(memory);
    const int in_head = (a.q.length() + kTile - 1) / kTile;
    const std::size_t head = blockIdx.x / static_cast<unsigned>(in_head);
    const int row = static_cast<int>(blockIdx.x % static_cast<unsigned>(in_head)) * kTile;
    const int i = static_cast<int>(threadIdx.x) / kAcross;
    const int first = static_cast<int>(threadIdx.x) % kAcross;
    load_tile<D>(tiles.q, a.q, head, row);
    load_tile<D>(tiles.d_out, a.d_out, head, row);
    float dq[D / kAcross] = {};
    const auto last = static_cast<std::size_t>(min(row + kTile, a.q.length()) - 1);
    const auto keys = static_cast<int>(
        course::attention::visible_keys(last, a.q.extents().length, a.k.extents().length, a.causal));
    for (int key = 0; key < keys; key += kTile) {
        load_tile<D>(tiles.k, a.k, head, key);
        load_tile<D>(tiles.v, a.v, head, key);
        __syncthreads();
        weigh_tile<D>(a, terms, tiles, head, row, key);
        __syncthreads();
        for (int j = 0; j < kTile && key + j < a.k.length(); ++j)
            for (int n = 0; n < D / kAcross; ++n)
                if (first + n * kAcross < a.k.dim())
                    dq[n] += tiles.ds[i][j] *
                             row_of(a.k, head, static_cast<std::size_t>(key + j))[first + n * kAcross];
        __syncthreads();
    }
    if (row + i >= a.q.length()) return;
    float* const to = row_of(a.dq, head, static_cast<std::size_t>(row + i));
    for (int n = 0; n < D / kAcross; ++n)
        if (first + n * kAcross < a.q.dim()) to[first + n * kAcross] = dq[n] * a.scale;
}

template <int D>
struct KeySums {
    __device__ void add(const Tiles<D>& tiles) {
        const int j = static_cast<int>(threadIdx.x) / kAcross;
        const int first = static_cast<int>(threadIdx.x) % kAcross;
        for (int i = 0; i < kTile; ++i) {
            for (int n = 0; n < D / kAcross; ++n) {
                dk[n] += tiles.ds[i][j] * tiles.q[i][first + n * kAcross];
                dv[n] += tiles.p[i][j] * tiles.d_out[i][first + n * kAcross];
            }
        }
    }
};
