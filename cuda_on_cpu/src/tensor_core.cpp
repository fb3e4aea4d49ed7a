#include "cuda_on_cpu/tensor_core.h"

namespace cuda_on_cpu {
namespace {

// What a lane brings to mma_m16n8k8_tf32().
struct Tf32Fragments {
    float* d;
    const unsigned* a;
    const unsigned* b;
    Site site;
};

double from_tf32(unsigned bits) {
    return static_cast<double>(std::bit_cast<float>(bits & 0xffffe000u));
}

// Which lane holds what: PTX ISA, "Matrix Fragments for mma.m16n8k8", with lane = 4 * group + in_group.
void multiply_tf32(const Lanes& lanes) {
    constexpr unsigned kM = 16, kN = 8, kK = 8;
    if (lanes.mask != 0xffffffffu) {
        device_failure(cudaErrorLaunchFailure,
                       "mma_m16n8k8_tf32 in a warp of fewer than 32 threads; it needs them all",
                       lanes.at<Tf32Fragments>(static_cast<unsigned>(std::countr_zero(lanes.mask))).site);
    }
    double a[kM][kK], b[kK][kN], d[kM][kN];
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& own = lanes.at<Tf32Fragments>(lane);
        const unsigned group = lane / 4, in_group = lane % 4;
        for (unsigned i = 0; i < 4; ++i)
            a[group + 8 * (i % 2)][in_group + 4 * (i / 2)] = from_tf32(own.a[i]);
        for (unsigned i = 0; i < 2; ++i)
            b[in_group + 4 * i][group] = from_tf32(own.b[i]);
        for (unsigned i = 0; i < 4; ++i)
            d[group + 8 * (i / 2)][2 * in_group + i % 2] = static_cast<double>(own.d[i]);
    }
    for (unsigned row = 0; row < kM; ++row) {
        for (unsigned k = 0; k < kK; ++k) {
            for (unsigned col = 0; col < kN; ++col)
                d[row][col] += a[row][k] * b[k][col];
        }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& own = lanes.at<Tf32Fragments>(lane);
        for (unsigned i = 0; i < 4; ++i)
            own.d[i] = static_cast<float>(d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
    }
}

}  // namespace

void ptx::mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    Tf32Fragments own{d, a, b, site};
    warp_collective(0xffffffffu, &own, multiply_tf32, "mma_m16n8k8_tf32", site);
}

}  // namespace cuda_on_cpu
