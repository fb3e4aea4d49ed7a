// Figures 13.9, 13.12 and 13.13: how many elements a thread takes, how many tiles there are, and
// how many elements of A a tile has used.
//
//   ./course run docs/errata/merge.cu
#include <algorithm>

#include "errata.hpp"

constexpr int kTile = 8, kThreads = 4;

// How many of the first k results come from A. Where elements are equal, those of A come first.
__device__ inline int co_rank(int k, const int* a, int m, const int* b, int n) {
    int low = k > n ? k - n : 0, high = k < m ? k : m;
    while (low < high) {
        const int i = (low + high) / 2;
        if (a[i] <= b[k - i - 1])
            low = i + 1;
        else
            high = i;
    }
    return low;
}

// Results first to last - 1, sequentially.
__device__ inline void merge_range(int first, int last, const int* a, int m, const int* b, int n, int* c) {
    int i = co_rank(first, a, m, b, n), j = first - i;
    for (int k = first; k < last; ++k)
        c[k] = j >= n || (i < m && a[i] <= b[j]) ? a[i++] : b[j++];
}

// 13.9: the results are divided among the threads. The reported form rounds a quotient of two whole
// numbers up: it has been rounded down already.
template <bool kReported>
__global__ void merge_shares(const int* a, int m, const int* b, int n, int* c) {
    const int total = m + n, threads = blockDim.x * gridDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int share = kReported ? total / threads : (total + threads - 1) / threads;
    merge_range(min(thread * share, total), min((thread + 1) * share, total), a, m, b, n, c);
}

// One block, tile after tile in shared memory.
// 13.12: the number of tiles, rounded like the share above.
// 13.13: the number of elements of A that a tile has used. The reported form searches both tiles as
// if they were full, although one of the arrays may have ended.
template <bool kReportedTiles, bool kReportedUse>
__global__ void merge_tiles(const int* a, int m, const int* b, int n, int* c) {
    __shared__ int tile_a[kTile], tile_b[kTile];
    // Whatever lay there when the block began.
    for (int i = threadIdx.x; i < kTile; i += kThreads)
        tile_a[i] = tile_b[i] = 0;
    __syncthreads();
    const int tiles = kReportedTiles ? (m + n) / kTile : (m + n + kTile - 1) / kTile;
    int used_a = 0, used_b = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        const int done = tile * kTile, results = min(kTile, m + n - done);
        const int left_a = max(min(kTile, m - used_a), 0), left_b = max(min(kTile, n - used_b), 0);
        for (int i = threadIdx.x; i < kTile; i += kThreads) {
            if (i < left_a) tile_a[i] = a[used_a + i];
            if (i < left_b) tile_b[i] = b[used_b + i];
        }
        __syncthreads();
        constexpr int kShare = kTile / kThreads;
        const int first = min(static_cast<int>(threadIdx.x) * kShare, results),
                  last = min(first + kShare, results);
        merge_range(first, last, tile_a, left_a, tile_b, left_b, c + done);
        used_a += kReportedUse ? co_rank(kTile, tile_a, kTile, tile_b, kTile)
                               : co_rank(results, tile_a, left_a, tile_b, left_b);
        used_b = done + kTile - used_a;
        __syncthreads();
    }
}

int main() {
    // A ends long before B does, and the results are no multiple of a tile.
    const std::vector<int> a = {5, 40, 41};
    std::vector<int> b(27), expected = a;
    for (int i = 0; i < 27; ++i)
        b[i] = 3 * i + 1;
    expected.insert(expected.end(), b.begin(), b.end());
    std::sort(expected.begin(), expected.end());
    const int m = static_cast<int>(a.size()), n = static_cast<int>(b.size());
    const errata::OnDevice<int> on_a(a), on_b(b);
    // The results that `kernel` gets wrong or does not store.
    const auto wrong = [&](void (*kernel)(const int*, int, const int*, int, int*)) {
        const errata::OnDevice<int> c(m + n, -1);
        kernel<<<1, kThreads>>>(on_a.data(), m, on_b.data(), n, c.data());
        return errata::differences(c.to_host(), expected);
    };
    bool all =
        errata::show("13.9", "of 30 results wrong", wrong(merge_shares<true>), wrong(merge_shares<false>));
    const int right = wrong(merge_tiles<false, false>);
    all &= errata::show("13.12", "of 30 results wrong", wrong(merge_tiles<true, false>), right);
    all &= errata::show("13.13", "of 30 results wrong", wrong(merge_tiles<false, true>), right);
    return all ? 0 : 1;
}
