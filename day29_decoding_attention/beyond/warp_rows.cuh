// Day 29, beyond: the work of a warp on a tile of keys: the products on tensor cores and the online
// softmax of up to 16 rows. Days 26 and 40 explain the fragments.
#pragma once

#include "common/device/half_fragment.cuh"
#include "decoding_attention.cuh"

namespace day29 {

using course::mma;

constexpr int kKeys = 16;  // of a tile

// Keys of a warp and their values, in packs of 8 elements. Packs are swizzled: the same pack of 8
// consecutive rows is in different banks.
template <class T, int D>
struct Tile {
    static constexpr int kPacks = D / 8;  // of a row: 8 or 16

    uint4 k[kKeys * kPacks];
    uint4 v[kKeys * kPacks];

    // Where a pack is. For every even c below kPacks, place(row, pack) ^ c is place(row, pack ^ c):
    // a thread computes one place, and the others with one instruction each.
    static __device__ int place(int row, int pack) { return row * kPacks + (pack ^ row % 8); }
};

// The rows of a head of K, and what a warp knows about them: lane 4 g + t has rows g and g + 8.
template <class T, int D>
class WarpRows {
    static constexpr float kSlack = 8;  // rescale only when a score is 2^8 times above the maximum

  public:
    // `rows` rows of D elements from q on; row i is query i % queries of a head.
    __device__ WarpRows(const T* q, int rows, int queries) : rows_(rows), queries_(queries) {
        const auto* const pairs = reinterpret_cast<const unsigned*>(q);  // D / 2 in a row
#pragma unroll
        for (int c = 0; c < D / 16; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = g_ + i % 2 * 8;
                q_[c][i] = row < rows ? pairs[row * (D / 2) + c * 8 + i / 2 * 4 + t_] : 0;
            }
        }
    }

    // Adds the keys of a tile. The newest query sees `left` of them, all if it is kKeys or more;
    // each query before it one fewer.
    __device__ void attend(Tile<T, D>& tile, int left, float scale) {
        float scores[kKeys / 8][4] = {};  // 16 rows x 8 keys each
#pragma unroll
        for (int c = 0; c < D / 8; c += 2) {
#pragma unroll
            for (int j = 0; j < kKeys / 8; j += 2) {
                unsigned k[4];  // of 16 keys
                course::ptx::ldmatrix_x4(k, &tile.k[(k_place_ ^ c) + j * D]);
                mma(scores[j], q_[c / 2], {k[0], k[1]}, T{});
                mma(scores[j + 1], q_[c / 2], {k[2], k[3]}, T{});
            }
        }
        if (left < kKeys + queries_ - 1) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = g_ + i / 2 * 8;
                const int seen = left - (queries_ - 1 - row % queries_) - t_ * 2 - i % 2;
#pragma unroll
                for (int j = 0; j < kKeys / 8; ++j) {
                    if (j * 8 >= seen) scores[j][i] = -kInfinity;
                }
            }
        }
        raise_maximum(scores, scale);
#pragma unroll
        for (int j = 0; j < kKeys / 8; j += 2) {
            unsigned p[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = i % 2;
                p[i] = 0;
                if (row == 1 && rows_ <= 8) continue;  // there are no rows 8 to 15
                const float shift = max_[row] == -kInfinity ? 0 : max_[row];
                const float* const two = &scores[j + i / 2][row * 2];
                const float first = course::ptx::exp2_approx(fmaf(two[0], scale, -shift));
                const float second = course::ptx::exp2_approx(fmaf(two[1], scale, -shift));
                sum_[row] += first + second;
                p[i] = course::pair<T>(first, second);
            }
#pragma unroll
            for (int c = 0; c < D / 8; c += 2) {
                unsigned v[4];  // of 16 columns
                course::ptx::ldmatrix_x4_trans(v, &tile.v[(v_place_ ^ c) + j * D]);
                mma(out_[c], p, {v[0], v[1]}, T{});
                mma(out_[c + 1], p, {v[2], v[3]}, T{});
            }
        }
    }

    // The parts of WARPS warps become one: store(row, col, part) for each element. All
    // threads of the block call this function. In shared memory there is room for 4 rows at a time.
    // SETS: warp w has the rows [16 s, 16 s + 16) with s = w % SETS, and the parts of the warps
    // with the same rows become one. With several sets, store() is called for all of their 16 rows.
    template <int WARPS, int SETS = 1, class Store>
    __device__ void merge_warps(Store store) {
        constexpr int ROWS = 4;
        __shared__ float maxima[WARPS][16];
        __shared__ float sums[WARPS][16];
        __shared__ float block_max[SETS * 16];
        __shared__ float block_sum[SETS * 16];
        alignas(16) __shared__ float outs[WARPS][ROWS][D];
        const int warp = static_cast<int>(threadIdx.x / 32);
        const int set = warp % SETS;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            sum_[i] += __shfl_xor_sync(course::kWholeWarp, sum_[i], 1);
            sum_[i] += __shfl_xor_sync(course::kWholeWarp, sum_[i], 2);
            if (t_ == 0) {
                maxima[warp][g_ + i * 8] = max_[i];
                sums[warp][g_ + i * 8] = sum_[i];
            }
        }
        __syncthreads();
        // Each warp brings its own sums to the common maximum.
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float max = -kInfinity;
#pragma unroll
            for (int w = set; w < WARPS; w += SETS)
                max = fmaxf(max, maxima[w][g_ + i * 8]);
            const float weight = weight_of(max_[i], max);
#pragma unroll
            for (int c = 0; c < D / 8; ++c) {
                out_[c][i * 2] *= weight;
                out_[c][i * 2 + 1] *= weight;
            }
            if (warp >= SETS || t_ > 0) continue;
            float sum = 0;
#pragma unroll
            for (int w = set; w < WARPS; w += SETS)
                sum += weight_of(maxima[w][g_ + i * 8], max) * sums[w][g_ + i * 8];
            block_max[set * 16 + g_ + i * 8] = max;
            block_sum[set * 16 + g_ + i * 8] = sum;
        }
        const int rows = SETS == 1 ? rows_ : 16;  // the same for all warps
        for (int first = 0; first < rows; first += ROWS) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int row = g_ + i * 8 - first;
                if (row < 0 || row >= ROWS) continue;
#pragma unroll
                for (int c = 0; c < D / 8; ++c)
                    *reinterpret_cast<float2*>(&outs[warp][row][c * 8 + t_ * 2]) =
                        make_float2(out_[c][i * 2], out_[c][i * 2 + 1]);
            }
            __syncthreads();
            const int here = min(rows - first, ROWS);
            for (int i = static_cast<int>(threadIdx.x); i < SETS * here * D; i += WARPS * 32) {
                const int of_set = SETS == 1 ? 0 : i / (here * D);
                const int at = SETS == 1 ? i : i % (here * D);
                float out = 0;
#pragma unroll
                for (int w = 0; w < WARPS; w += SETS)
                    out += outs[w + of_set][at / D][at % D];
                const int row = of_set * 16 + first + at / D;
                store(row, at % D, Part{block_max[row], block_sum[row], out});
            }
            __syncthreads();  // all has been read
        }
    }

  private:
    // Brings the maxima up to date, if a score is more than kSlack above. fmaxf ignores a NaN,
    // which makes p and so the sum NaN.
    __device__ void raise_maximum(const float (&scores)[kKeys / 8][4], float scale) {
        float top[2];
        bool grown = false;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            top[i] = -kInfinity;
#pragma unroll
            for (int j = 0; j < kKeys / 8; ++j)
                top[i] = fmaxf(top[i], fmaxf(scores[j][i * 2], scores[j][i * 2 + 1]));
            top[i] *= scale;
            grown |= top[i] > max_[i] + kSlack;
        }
        if (!__any_sync(course::kWholeWarp, grown)) return;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            top[i] = fmaxf(top[i], __shfl_xor_sync(course::kWholeWarp, top[i], 1));
            top[i] = fmaxf(top[i], __shfl_xor_sync(course::kWholeWarp, top[i], 2));
            const float raised = fmaxf(max_[i], top[i]);
            const float factor = weight_of(max_[i], raised);
            max_[i] = raised;
            sum_[i] *= factor;
#pragma unroll
            for (int c = 0; c < D / 8; ++c) {
                out_[c][i * 2] *= factor;
                out_[c][i * 2 + 1] *= factor;
            }
        }
    }

    const int lane_ = static_cast<int>(threadIdx.x % 32);
    const int g_ = lane_ / 4;
    const int t_ = lane_ % 4;
    // Of the packs whose addresses this lane passes to ldmatrix, for the first columns.
    const int k_place_ = Tile<T, D>::place(lane_ / 16 * 8 + lane_ % 8, lane_ / 8 % 2);
    const int v_place_ = Tile<T, D>::place(lane_ % 16, lane_ / 16);
    int rows_;
    int queries_;
    unsigned q_[D / 16][4];
    float max_[2] = {-kInfinity, -kInfinity};  // times scale
    float sum_[2] = {};                        // of this lane's p
    float out_[D / 8][4] = {};
};

}  // namespace day29
