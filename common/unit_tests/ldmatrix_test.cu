// Loads of matrices from shared memory to registers (ldmatrix) through common/device/ptx.cuh:
// requirements that hold on every GPU that supports them and on the stand-in.
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"
#include "common/device/random.hpp"
#include "tensor_core_fixture.hpp"

namespace {

using namespace course;

class LdmatrixTest : public TensorCoreTest {};

// ---- The position of each element ---------------------------------------------------------------

// A load, how many matrices it takes and whether it transposes.
struct X1 {
    static constexpr unsigned kMatrices = 1;
    static constexpr bool kTranspose = false;
    __device__ static void load(unsigned (&r)[1], const void* row) { ptx::ldmatrix_x1(r, row); }
};
struct X2 {
    static constexpr unsigned kMatrices = 2;
    static constexpr bool kTranspose = false;
    __device__ static void load(unsigned (&r)[2], const void* row) { ptx::ldmatrix_x2(r, row); }
};
struct X4 {
    static constexpr unsigned kMatrices = 4;
    static constexpr bool kTranspose = false;
    __device__ static void load(unsigned (&r)[4], const void* row) { ptx::ldmatrix_x4(r, row); }
};
struct X2Trans {
    static constexpr unsigned kMatrices = 2;
    static constexpr bool kTranspose = true;
    __device__ static void load(unsigned (&r)[2], const void* row) { ptx::ldmatrix_x2_trans(r, row); }
};
struct X4Trans {
    static constexpr unsigned kMatrices = 4;
    static constexpr bool kTranspose = true;
    __device__ static void load(unsigned (&r)[4], const void* row) { ptx::ldmatrix_x4_trans(r, row); }
};

constexpr unsigned kRows = 32;
constexpr unsigned kWarps = 3;

// Every warp has kRows rows of 8 elements, `stride` elements apart. Element c of row i of warp w is
// 256 w + 8 i + c. Lane l passes row order[l]; lanes whose address is ignored pass an address
// outside of all rows.
template <class Load>
__global__ void load(unsigned* out, const unsigned* order, unsigned stride) {
    extern __shared__ __align__(16) std::uint16_t tiles[];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    std::uint16_t* const tile = tiles + warp * kRows * stride;
    for (unsigned c = 0; c < stride; ++c)
        tile[lane * stride + c] = static_cast<std::uint16_t>(c < 8 ? 256 * warp + 8 * lane + c : 0xffff);
    __syncwarp();
    const bool counts = lane < 8 * Load::kMatrices;
    unsigned r[Load::kMatrices];
    Load::load(r, counts ? tile + order[lane] * stride : tile + 1);
    for (unsigned m = 0; m < Load::kMatrices; ++m)
        out[threadIdx.x * Load::kMatrices + m] = r[m];
}

template <class Load>
class LdmatrixLayout : public LdmatrixTest {};
using Loads = testing::Types<X1, X2, X4, X2Trans, X4Trans>;
TYPED_TEST_SUITE(LdmatrixLayout, Loads);

TYPED_TEST(LdmatrixLayout, EveryElementIsInItsPlace) {
    Random random(3);
    std::vector<unsigned> order(kRows);
    std::iota(order.begin(), order.end(), 0u);
    for (const unsigned stride : {8u, 16u, 24u, 72u}) {
        for (int round = 0; round < 3; ++round) {  // the first with the rows in order
            const DeviceBuffer<unsigned> rows{std::span<const unsigned>(order)};
            DeviceBuffer<unsigned> out(32 * kWarps * TypeParam::kMatrices);
            load<TypeParam><<<1, 32 * kWarps, kWarps * kRows * stride * sizeof(std::uint16_t)>>>(
                out.data(), rows.data(), stride);
            CUDA_CHECK_LAUNCH();
            const std::vector<unsigned> got = out.to_host();
            for (unsigned thread = 0; thread < 32 * kWarps; ++thread) {
                const unsigned g = thread % 32 / 4;
                const unsigned t = thread % 4;
                for (unsigned m = 0; m < TypeParam::kMatrices; ++m) {
                    const auto element = [&](unsigned row, unsigned col) {
                        return 256 * (thread / 32) + 8 * order[8 * m + row] + col;
                    };
                    const unsigned low = TypeParam::kTranspose ? element(2 * t, g) : element(g, 2 * t);
                    const unsigned high =
                        TypeParam::kTranspose ? element(2 * t + 1, g) : element(g, 2 * t + 1);
                    EXPECT_EQ(got[thread * TypeParam::kMatrices + m], low | high << 16)
                        << "thread " << thread << ", matrix " << m << ", stride " << stride << ", round "
                        << round;
                }
            }
            for (unsigned i = kRows; i > 1; --i)
                std::swap(order[i - 1], order[random.below(i)]);
        }
    }
}

// ---- The main use: the operands of an MMA -------------------------------------------------------

constexpr unsigned kM = 16, kN = 8, kK = 16;

// d = a b, all row-major. B is loaded to registers with a transposing load; or, from a
// column-major copy, with a plain load; or together with another matrix, with a load of four
// matrices.
enum class FromB { kTransposed, kColumnMajor, kTwo };

__global__ void multiply(float* d, const std::uint16_t* a, const std::uint16_t* b, FromB from) {
    constexpr unsigned kPad = 8;
    __shared__ __align__(16) std::uint16_t tile_a[kM][kK + kPad];
    __shared__ __align__(16) std::uint16_t tile_b[kK][kN + kPad];
    __shared__ __align__(16) std::uint16_t columns_of_b[kN][kK + kPad];
    const unsigned lane = threadIdx.x;
    for (unsigned i = lane; i < kM * kK; i += 32)
        tile_a[i / kK][i % kK] = a[i];
    for (unsigned i = lane; i < kK * kN; i += 32)
        tile_b[i / kN][i % kN] = columns_of_b[i % kN][i / kN] = b[i];
    __syncwarp();

    unsigned of_a[4], of_b[2], both[4];
    ptx::ldmatrix_x4(of_a, &tile_a[lane % 16][8 * (lane / 16)]);
    if (from == FromB::kTransposed) {
        ptx::ldmatrix_x2_trans(of_b, &tile_b[lane % 16][0]);
    } else if (from == FromB::kColumnMajor) {
        ptx::ldmatrix_x2(of_b, &columns_of_b[lane % 8][8 * (lane / 8 % 2)]);
    } else {  // rows of A as another B, then B
        ptx::ldmatrix_x4_trans(both, lane < 16 ? &tile_a[lane][0] : &tile_b[lane % 16][0]);
        of_b[0] = both[2];
        of_b[1] = both[3];
    }
    float sums[4] = {};
    ptx::mma_m16n8k16_f16(sums, of_a, of_b);
    for (unsigned i = 0; i < 4; ++i)
        d[(lane / 4 + 8 * (i / 2)) * kN + 2 * (lane % 4) + i % 2] = sums[i];
}

TEST_F(LdmatrixTest, FeedsProducts) {
    Random random(4);
    std::vector<int> a(kM * kK), b(kK * kN);
    const auto draw = [&random] { return random.integer(-100, 100); };
    std::generate(a.begin(), a.end(), draw);
    std::generate(b.begin(), b.end(), draw);
    const auto halves = [](const std::vector<int>& numbers) {
        std::vector<std::uint16_t> bits;
        for (const int number : numbers)
            bits.push_back(__half_as_ushort(__float2half_rn(static_cast<float>(number))));
        return bits;
    };
    const std::vector<std::uint16_t> halves_of_a = halves(a), halves_of_b = halves(b);
    const DeviceBuffer<std::uint16_t> on_device_a{std::span<const std::uint16_t>(halves_of_a)};
    const DeviceBuffer<std::uint16_t> on_device_b{std::span<const std::uint16_t>(halves_of_b)};
    for (const FromB from : {FromB::kTransposed, FromB::kColumnMajor, FromB::kTwo}) {
        DeviceBuffer<float> d(kM * kN);
        multiply<<<1, 32>>>(d.data(), on_device_a.data(), on_device_b.data(), from);
        CUDA_CHECK_LAUNCH();
        const std::vector<float> got = d.to_host();
        for (unsigned i = 0; i < got.size(); ++i) {
            int expected = 0;
            for (unsigned k = 0; k < kK; ++k)
                expected += a[i / kN * kK + k] * b[k * kN + i % kN];
            EXPECT_EQ(got[i], static_cast<float>(expected))
                << "number " << i << ", load " << static_cast<int>(from) << ", seed 4";
        }
    }
}

}  // namespace
