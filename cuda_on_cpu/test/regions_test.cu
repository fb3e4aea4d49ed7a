// Kernels with barriers. The stand-in runs a block of those that it can follow as one loop over its
// threads after the other (cuda_on_cpu/regions.h), which must not show.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "both_ways.cuh"
#include "on_device.cuh"

namespace {

// ---- Kernels whose regions are known ------------------------------------------------------------

template <int TILE>
__global__ void tiled(float* c, const float* a, const float* b, unsigned n) {
    __shared__ float of_a[TILE][TILE], of_b[TILE][TILE + 1];
    const unsigned row = blockIdx.y * TILE + threadIdx.y;
    const unsigned col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (unsigned tile = 0; tile < (n + TILE - 1) / TILE; ++tile) {
        const unsigned k = tile * TILE;
        of_a[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
        of_b[threadIdx.y][threadIdx.x] =
            col < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i)
            sum += of_a[threadIdx.y][i] * of_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row >= n || col >= n) return;
    c[row * n + col] = sum;
}

TEST(Regions, MultiplyTiles) {
    const std::vector<float> a = random_numbers<float>(1), b = random_numbers<float>(2);
    DeviceVector<float> of_a(a), of_b(b);
    for (const int n : {1, 15, 16, 17, 31}) {
        for (const int tile : {8, 16}) {
            const unsigned blocks = (n + tile - 1) / tile;
            const std::vector<float> c =
                run_both<float>(dim3(blocks, blocks), dim3(tile, tile), tile == 8 ? tiled<8> : tiled<16>,
                                static_cast<const float*>(of_a.data()),
                                static_cast<const float*>(of_b.data()), static_cast<unsigned>(n));
            for (int i = 0; i < n * n; ++i) {
                double expected = 0;
                double magnitude = 0;
                for (int k = 0; k < n; ++k) {
                    expected += double{a[i / n * n + k]} * b[k * n + i % n];
                    magnitude += std::abs(double{a[i / n * n + k]} * b[k * n + i % n]);
                }
                ASSERT_NEAR(c[i], expected, magnitude * n * 6e-8) << n << " " << i;
            }
        }
    }
}

// Declared as C programs do, before the loops, and used after them.
__global__ void old_declarations(float* x, unsigned size) {
    extern __shared__ float column[];
    unsigned i, j, last;
    float pivot = 0, *own = x + size * blockIdx.x;
    column[threadIdx.x] = own[threadIdx.x];
    __syncthreads();
    for (i = 0; i < size - 1; i++) {
        if (threadIdx.x > i) {
            pivot = column[threadIdx.x] * 0.5f;
            for (j = 0; j < i; j++)
                pivot += column[j] * 0.125f;
        }
        __syncthreads();
        if (threadIdx.x > i) column[threadIdx.x] = pivot + i;
        __syncthreads();
    }
    last = i;
    own[threadIdx.x] = column[threadIdx.x] + last;
}

TEST(Regions, CountWithVariablesDeclaredBefore) {
    const std::vector<float> before = random_numbers<float>(7);
    const std::vector<float> found = run_both<float>(10, 96, 96 * sizeof(float), old_declarations, 96u);
    for (int block = 0; block < 10; ++block) {
        std::vector<float> column(before.begin() + 96 * block, before.begin() + 96 * (block + 1));
        for (int i = 0; i < 95; ++i) {
            const std::vector<float> old = column;
            for (int t = i + 1; t < 96; ++t) {
                float pivot = old[t] * 0.5f;
                for (int j = 0; j < i; ++j)
                    pivot += old[j] * 0.125f;
                column[t] = pivot + static_cast<float>(i);
            }
        }
        for (int t = 0; t < 96; ++t)
            ASSERT_NEAR(found[96 * block + t], column[t] + 95, 1e-3 * (100 + std::abs(column[t])))
                << block << " " << t;
    }
}

// Variables that all threads change alike, and some that are computed from them before they change.
__global__ void change_alike(float* x, int n) {
    __shared__ float sums[96];
    const int t = threadIdx.x;
    int count = 0;
    int left = n;
    int i;
    const int place = blockIdx.x * n + t;
    sums[t] = t < n ? x[place] : 0.0f;
    for (i = 1; i < n; i = 2 * i)
        if (n > i) count = i;
    const int first = left + t - count;
    __syncthreads();
    while (left > 1) {
        const int half = (left + 1) / 2;
        const int other = t + half;
        if (other < left) sums[t] += sums[other];
        if (blockIdx.x % 2 == 0)
            left = half;
        else
            left -= left / 2;
        __syncthreads();
        if (left == 5) continue;
        if (t < left) sums[t] *= 0.5f;
        __syncthreads();
    }
    if (t == count - 1) {
        for (i = 0; i < t; ++i)
            sums[0] += 0.25f;
    }
    __syncthreads();
    if (t < n) x[place] = sums[t] + static_cast<float>(i + count + first);
}

TEST(Regions, ChangeVariablesAlike) {
    const std::vector<float> before = random_numbers<float>(7);
    for (const int n : {1, 2, 3, 17, 64, 96}) {
        const std::vector<float> found = run_both<float>(10, 96, change_alike, n);
        for (int block = 0; block < 10; ++block) {
            std::vector<float> sums(before.begin() + n * block, before.begin() + n * (block + 1));
            for (int left = n; left > 1;) {
                const int half = (left + 1) / 2;
                for (int t = 0; t + half < left; ++t)
                    sums[t] += sums[t + half];
                left = half;
                for (int t = 0; t < left && left != 5; ++t)
                    sums[t] *= 0.5f;
            }
            int count = 0, i = 1;
            for (; i < n; i = 2 * i)
                count = i;
            for (int t = 0; t < count - 1; ++t)
                sums[0] += 0.25f;
            for (int t = 0; t < n; ++t) {
                const int own = t == count - 1 ? t : i;
                ASSERT_EQ(found[n * block + t], sums[t] + static_cast<float>(own + count + n + t - count))
                    << n << " " << block << " " << t;
            }
        }
    }
}

template <class T>
__global__ void halve(T* x, unsigned n) {
    __shared__ T partial[128];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    T value = i < n ? x[i] : T(0), other{};
    partial[threadIdx.x] = value;
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (threadIdx.x < stride) {
            other = partial[threadIdx.x + stride];
            partial[threadIdx.x] += other;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && i < n) x[i] = partial[0];
}
template <class T>
__global__ void halve_known(T* x, unsigned n) {
    __shared__ T partial[128];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    T value = i < n ? x[i] : T(0);
    partial[threadIdx.x] = value;
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0 && i < n) x[i] = partial[0] + value - value;
}

template <class T>
void expect_sums(void (*kernel)(T*, unsigned)) {
    const std::vector<T> before = random_numbers<T>(7);
    const std::vector<T> found = run_both<T>(8, 128, kernel, unsigned{kElements});
    for (int block = 0; block < 8; ++block) {
        double sum = 0;
        for (int i = 128 * block; i < kElements && i < 128 * (block + 1); ++i)
            sum += static_cast<double>(before[i]);
        EXPECT_NEAR(static_cast<double>(found[128 * block]), sum, 128 * 50 * 1e-6) << block;
        ASSERT_EQ(found[128 * block + 1], before[128 * block + 1]);
    }
}

TEST(Regions, AddUpInATree) {
    expect_sums<float>(halve<float>);
    expect_sums<float>(halve_known<float>);
    expect_sums<double>(halve_known<double>);
    expect_sums<int>(halve_known<int>);
    expect_sums<short>(halve_known<short>);
}

// Three dimensions, values of several types that last, and names that hide others.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
__global__ void keep(int* out, unsigned mask) {
    __shared__ unsigned char bytes[7 * 5 * 3];
    __shared__ long long sums[2];
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    short small = thread - 50, unused;
    unsigned long long large = 1ULL << (thread % 40), again = large >> thread;
    int* place = out + blockIdx.x * threads + thread;
    const int first = *place;
    bool odd = thread % 2 == 1;
    bytes[thread] = first;
    if (thread < 2) sums[thread] = 0;
    __syncthreads();
    if (thread == 0) {
        for (int thread = 0; thread < threads; ++thread)
            sums[thread & 1] += bytes[thread];
        int small = 3;
        sums[1] += small;
    }
    unused = small;
    __syncthreads();
    {
        int difference = odd ? sums[1] - sums[0] : sums[0] - sums[1];
        small += difference & mask;
        __syncthreads();
        *place = first + small + difference + unused;
    }
    odd = !odd;
    if (odd) *place += static_cast<int>(large % 1000003) + static_cast<int>(again & 7);
}
#pragma GCC diagnostic pop

TEST(Regions, KeepWhatLasts) {
    const std::vector<int> before = random_numbers<int>(7);
    const std::vector<int> found = run_both<int>(9, dim3(7, 5, 3), keep, 15u);
    for (int block = 0; block < 9; ++block) {
        long long sums[2] = {0, 3};
        for (int t = 0; t < 105; ++t)
            sums[t & 1] += static_cast<unsigned char>(before[105 * block + t]);
        for (int t = 0; t < 105; ++t) {
            const int first = before[105 * block + t];
            const int difference = static_cast<int>(t % 2 == 1 ? sums[1] - sums[0] : sums[0] - sums[1]);
            const int small = t - 50;
            int expected = first + small + (difference & 15) + difference + small;
            const unsigned long long large = 1ULL << (t % 40);
            if (t % 2 == 0)
                expected +=
                    static_cast<int>(large % 1000003) + static_cast<int>((t < 64 ? large >> t : 0) & 7);
            ASSERT_EQ(found[105 * block + t], expected) << block << " " << t;
        }
    }
}

// `>` before a name that lasts is no arrow.
__global__ void compare(int* out, int limit) {
    __shared__ int values[64];
    int mine = out[blockIdx.x * 64 + threadIdx.x] + threadIdx.x, steps = 0, left = 5;
    for (int i = 0; i < 100; ++i)
        if (limit > steps++) mine += i;
    values[threadIdx.x] = 5 > left++ ? 1000 : mine;
    __syncthreads();
    int rank = 0;
    for (int j = 0; j < 64; ++j)
        if (values[j] > mine) ++rank;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = 100000 * left + 1000 * rank + (steps >> left);
}

TEST(Regions, CompareWithWhatLasts) {
    const std::vector<int> before = random_numbers<int>(7);
    for (const int limit : {0, 3, 200}) {
        const std::vector<int> found = run_both<int>(5, 64, compare, limit);
        const int more = std::min(limit, 100) * (std::min(limit, 100) - 1) / 2;
        for (int block = 0; block < 5; ++block) {
            const auto mine = [&](int t) { return before[64 * block + t] + t + more; };
            for (int t = 0; t < 64; ++t) {
                int rank = 0;
                for (int j = 0; j < 64; ++j)
                    rank += mine(j) > mine(t) ? 1 : 0;
                ASSERT_EQ(found[64 * block + t], 600000 + 1000 * rank + (100 >> 6)) << block << " " << t;
            }
        }
    }
}

// Conditions that are the same in all threads, around barriers.
__global__ void uniform_conditions(int* out, int rounds, int stop) {
    __shared__ int line[96];
    const int left = threadIdx.x == 0 ? blockDim.x - 1 : threadIdx.x - 1;
    int value = out[blockIdx.x * blockDim.x + threadIdx.x];
    if (rounds % 2 == 0) {
        line[threadIdx.x] = value;
        __syncthreads();
        value += line[left];
    } else if (rounds % 3 == 0) {
        line[threadIdx.x] = 2 * value;
        __syncthreads();
        value -= line[left];
    } else {
        line[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        int before = value;
        line[threadIdx.x] = value;
        __syncthreads();
        if (round == stop) break;
        if (round == 1) {
            continue;
        }
        for (int i = 0; i < 3; ++i) {
            if (line[left] == i) continue;
            if (before > 1000) break;
            value += i + (line[left] & 3);
        }
        __syncthreads();
        value ^= before & 1;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

TEST(Regions, TakeOneWayToABarrier) {
    const std::vector<int> before = random_numbers<int>(7);
    for (const int rounds : {0, 1, 3, 4, 5, 9}) {
        const int stop = 6;
        const std::vector<int> found = run_both<int>(10, 96, uniform_conditions, rounds, stop);
        for (int block = 0; block < 10; ++block) {
            std::vector<int> value(before.begin() + 96 * block, before.begin() + 96 * (block + 1));
            const auto left = [](int t) { return t == 0 ? 95 : t - 1; };
            std::vector<int> line = value;
            if (rounds % 2 == 0) {
                for (int t = 0; t < 96; ++t)
                    value[t] += line[left(t)];
            } else if (rounds % 3 == 0) {
                for (int t = 0; t < 96; ++t)
                    value[t] -= 2 * line[left(t)];
            }
            for (int round = 0; round < rounds && round != stop; ++round) {
                line = value;
                if (round == 1) continue;
                for (int t = 0; t < 96; ++t) {
                    const int old = value[t];
                    for (int i = 0; i < 3 && !(old > 1000 && line[left(t)] != i); ++i)
                        if (line[left(t)] != i) value[t] += i + (line[left(t)] & 3);
                    value[t] ^= old & 1;
                }
            }
            for (int t = 0; t < 96; ++t)
                ASSERT_EQ(found[96 * block + t], value[t]) << rounds << ": " << block << " " << t;
        }
    }
}

// Sums of products, of which a compiler may make fused operations, in one place or another.
__global__ void fuse(float* out, const float* x, float a) {
    __shared__ float own[96];
    const float product = x[threadIdx.x] * a;
    own[threadIdx.x] = product + out[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        own[95 - threadIdx.x] * a + product * x[threadIdx.x] - own[threadIdx.x] * product;
}

TEST(Regions, GiveTheBitsOfSingleThreads) {
    DeviceVector<float> x(random_numbers<float>(3));
    run_both<float>(1, 96, fuse, static_cast<const float*>(x.data()), 1.1f);
}

// ---- Other kernels with barriers ----------------------------------------------------------------

__global__ void changed_parameter(int* out, int rounds) {
    __shared__ int line[96];
    while (rounds-- > 0) {
        line[threadIdx.x] = out[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] += line[95 - threadIdx.x];
        __syncthreads();
    }
}
__global__ void ends_early(int* out, unsigned n) {
    __shared__ int line[96];
    if (threadIdx.x >= n) return;
    line[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = line[n - 1 - threadIdx.x];
}
__global__ void loaded_bound(int* out, const int* rounds) {
    __shared__ int line[96];
    for (int round = 0; round < *rounds; ++round) {
        line[threadIdx.x] = out[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] += line[95 - threadIdx.x];
        __syncthreads();
    }
}
__global__ void bound_in_thread(int* out, int rounds) {
    __shared__ int line[96];
    int count = rounds;
    if (threadIdx.x < 1000) count += 1;
    for (int round = 0; round < count; ++round) {
        line[threadIdx.x] = out[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] += line[95 - threadIdx.x];
        __syncthreads();
    }
}
__global__ void local_array(int* out, int) {
    __shared__ int line[96];
    int own[2] = {out[threadIdx.x], 1};
    line[threadIdx.x] = own[0];
    __syncthreads();
    out[threadIdx.x] = line[95 - threadIdx.x] + own[1];
}

TEST(Regions, AreNotMadeOfWhatIsNotKnown) {
    const std::vector<int> before = random_numbers<int>(7);
    std::vector<int> added(before.begin(), before.begin() + 96);
    std::vector<std::vector<int>> rounds{added};
    for (int round = 0; round < 4; ++round) {
        for (int t = 0; t < 96; ++t)
            added[t] = rounds.back()[t] + rounds.back()[95 - t];
        rounds.push_back(added);
    }
    DeviceVector<int> three(std::vector<int>{3});
    const auto expect = [](std::vector<int> found, const std::vector<int>& expected, const char* name) {
        found.resize(expected.size());
        EXPECT_EQ(found, expected) << name;
    };
    expect(run_both<int>(1, 96, changed_parameter, 3), rounds[3], "changed_parameter");
    expect(run_both<int>(1, 96, loaded_bound, static_cast<const int*>(three.data())), rounds[3],
           "loaded_bound");
    expect(run_both<int>(1, 96, bound_in_thread, 3), rounds[4], "bound_in_thread");
    std::vector<int> reversed(before.rbegin() + (kElements - 50), before.rend());
    expect(run_both<int>(1, 96, ends_early, 50u), reversed, "ends_early");
    reversed.assign(before.rbegin() + (kElements - 96), before.rend());
    for (int& value : reversed)
        ++value;
    expect(run_both<int>(1, 96, local_array, 0), reversed, "local_array");
}

}  // namespace
