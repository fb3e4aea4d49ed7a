// Figures 13.16 and 13.19: merging with circular buffers. What a tile has not used stays where it
// is; the buffer is filled up behind it.
//
//   ./course run docs/errata/merge_circular.cu
#include <algorithm>

#include "errata.hpp"

constexpr int kTile = 8, kThreads = 4;

enum class Form { kCorrected, kPlaceOfB, kSource, kCoRank };

__device__ inline int slot(int start, int offset) {
    return (start + offset + kTile) % kTile;
}

// How many of the first k results of a tile come from A. Offsets count from the start of a buffer.
// 13.19: the element of B before j is at offset j - 1 = k - i - 1. The reported form takes i - 1.
template <Form kForm>
__device__ int co_rank(int k, const int* a, int start_a, int m, const int* b, int start_b, int n) {
    int low = k > n ? k - n : 0, high = k < m ? k : m;
    while (low < high) {
        const int i = (low + high) / 2, j = k - i;
        const int before = kForm == Form::kCoRank ? i - 1 : j - 1;
        if (a[slot(start_a, i)] <= b[slot(start_b, before)])
            low = i + 1;
        else
            high = i;
    }
    return low;
}

// One block.
// 13.16, place: the reported form computes from A's count where the new elements of B go.
// 13.16, source: element used_a + o of A belongs at offset o. The reported form reads the new
// elements from used_a on; there lie those that the buffer still has.
template <Form kForm>
__global__ void merge_circular(const int* a, int m, const int* b, int n, int* c) {
    __shared__ int tile_a[kTile], tile_b[kTile];
    int start_a = 0, start_b = 0, used_a = 0, used_b = 0, new_a = kTile, new_b = kTile;
    for (int done = 0; done < m + n; done += kTile) {
        const int kept_a = kTile - new_a, kept_b = kTile - new_b;
        for (int i = threadIdx.x; i < kTile; i += kThreads) {
            const int from_a = used_a + i + (kForm == Form::kSource ? 0 : kept_a);
            const int from_b = used_b + i + (kForm == Form::kSource ? 0 : kept_b);
            if (i < new_a && from_a < m) tile_a[slot(start_a, kept_a + i)] = a[from_a];
            if (i < new_b && from_b < n)
                tile_b[slot(start_b, (kForm == Form::kPlaceOfB ? kept_a : kept_b) + i)] = b[from_b];
        }
        __syncthreads();
        const int results = min(kTile, m + n - done), left_a = min(kTile, m - used_a),
                  left_b = min(kTile, n - used_b);
        constexpr int kShare = kTile / kThreads;
        const int first = min(static_cast<int>(threadIdx.x) * kShare, results),
                  last = min(first + kShare, results);
        int i = co_rank<kForm>(first, tile_a, start_a, left_a, tile_b, start_b, left_b), j = first - i;
        for (int k = first; k < last; ++k) {
            const int next_a = tile_a[slot(start_a, i)], next_b = tile_b[slot(start_b, j)];
            const bool takes_a = j >= left_b || (i < left_a && next_a <= next_b);
            c[done + k] = takes_a ? next_a : next_b;
            ++(takes_a ? i : j);
        }
        new_a = co_rank<kForm>(results, tile_a, start_a, left_a, tile_b, start_b, left_b);
        new_b = results - new_a;
        used_a += new_a;
        used_b += new_b;
        start_a = slot(start_a, new_a);
        start_b = slot(start_b, new_b);
        __syncthreads();
    }
}

int main() {
    std::vector<int> a(20), b(24);
    for (int i = 0; i < 20; ++i)
        a[i] = i * i / 6 + i;
    for (int i = 0; i < 24; ++i)
        b[i] = 3 * i + i % 3;
    std::vector<int> expected = a;
    expected.insert(expected.end(), b.begin(), b.end());
    std::sort(expected.begin(), expected.end());
    const errata::OnDevice<int> on_a(a), on_b(b);
    const auto wrong = [&](void (*kernel)(const int*, int, const int*, int, int*)) {
        const errata::OnDevice<int> c(a.size() + b.size(), -1);
        kernel<<<1, kThreads>>>(on_a.data(), static_cast<int>(a.size()), on_b.data(),
                                static_cast<int>(b.size()), c.data());
        return errata::differences(c.to_host(), expected);
    };
    const int right = wrong(merge_circular<Form::kCorrected>);
    bool all = errata::show("13.16a", "of 44 results wrong", wrong(merge_circular<Form::kPlaceOfB>), right);
    all &= errata::show("13.16b", "of 44 results wrong", wrong(merge_circular<Form::kSource>), right);
    all &= errata::show("13.19", "of 44 results wrong", wrong(merge_circular<Form::kCoRank>), right);
    return all ? 0 : 1;
}
