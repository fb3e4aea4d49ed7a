// mma.sync in inline PTX: one rule for all shapes.
#include "cuda_on_cpu/ptx_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "block.hpp"
#include "cuda_on_cpu/small_float.h"

namespace cuda_on_cpu::ptx::isa {
namespace {

void need_whole_warp(const Lanes& lanes, const char* name, Site site) {
    if (lanes.mask == 0xffffffffu) return;
    block_runner().fail(cudaErrorLaunchFailure,
                        std::string(name) + " in a warp of fewer than 32 threads; it needs them all", site);
}

// Element i of a register of A or B, exactly.
struct Tf32Element {
    using Word = std::uint32_t;
    static constexpr unsigned kPerRegister = 1;
    static double number(Word word, unsigned) {
        return static_cast<double>(std::bit_cast<float>(word & 0xffffe000u));
    }
};
struct F64Element {
    using Word = std::uint64_t;
    static constexpr unsigned kPerRegister = 1;
    static double number(Word word, unsigned) { return std::bit_cast<double>(word); }
};
template <class Format, unsigned kBits>
struct SmallElement {
    using Word = std::uint32_t;
    static constexpr unsigned kPerRegister = 32 / kBits;
    static double number(Word word, unsigned i) {
        constexpr std::uint32_t kMask = (1u << kBits) - 1;
        return static_cast<double>(decode<Format>(static_cast<std::uint16_t>(word >> kBits * i & kMask)));
    }
};
template <class Byte>
struct ByteElement {
    using Word = std::uint32_t;
    static constexpr unsigned kPerRegister = 4;
    static double number(Word word, unsigned i) {
        return static_cast<double>(static_cast<Byte>(word >> 8 * i));
    }
};

struct Fragments {
    MatrixShape shape;
    void* d;
    const void* a;
    const void* b;
    Site site;
};

constexpr unsigned kMostM = 16, kMostK = 32, kN = 8;

// PTX ISA, "Matrix Fragments for mma": with lane = 4 * group + in_group, a register holds elements
// that are consecutive along k, and so do the registers of the four lanes of a group. The registers
// of A run first through the halves of the rows and then along k, those of B along k.
template <class Element, class Set>
void gather_operand(const Lanes& lanes, unsigned row_halves, unsigned k, const void* Fragments::*member,
                    Set set) {
    constexpr unsigned kP = Element::kPerRegister;
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto* const words =
            static_cast<const typename Element::Word*>(lanes.at<Fragments>(lane).*member);
        const unsigned group = lane / 4, in_group = lane % 4;
        const unsigned registers = row_halves * (k / (4 * kP));
        for (unsigned i = 0; i < registers; ++i) {
            for (unsigned j = 0; j < kP; ++j)
                set(group + 8 * (i % row_halves), 4 * kP * (i / row_halves) + kP * in_group + j,
                    Element::number(words[i], j));
        }
    }
}
template <class Set>
void gather_operand(MatrixElement element, const Lanes& lanes, unsigned row_halves, unsigned k,
                    const void* Fragments::*member, Set set) {
    switch (element) {
        case MatrixElement::f16:
            return gather_operand<SmallElement<Binary16, 16>>(lanes, row_halves, k, member, set);
        case MatrixElement::bf16:
            return gather_operand<SmallElement<Bfloat16, 16>>(lanes, row_halves, k, member, set);
        case MatrixElement::tf32:
            return gather_operand<Tf32Element>(lanes, row_halves, k, member, set);
        case MatrixElement::e4m3:
            return gather_operand<SmallElement<E4m3, 8>>(lanes, row_halves, k, member, set);
        case MatrixElement::e5m2:
            return gather_operand<SmallElement<E5m2, 8>>(lanes, row_halves, k, member, set);
        case MatrixElement::u8:
            return gather_operand<ByteElement<std::uint8_t>>(lanes, row_halves, k, member, set);
        case MatrixElement::s8:
            return gather_operand<ByteElement<std::int8_t>>(lanes, row_halves, k, member, set);
        case MatrixElement::f64:
            return gather_operand<F64Element>(lanes, row_halves, k, member, set);
    }
}

// Element `i` of D in a lane: a register, or half of one if it holds two elements.
double load_sum(const Fragments& own, unsigned i) {
    const auto* const bytes = static_cast<const char*>(own.d);
    const auto word = [&]<class T>(T value) {
        std::memcpy(&value, bytes + sizeof value * i, sizeof value);
        return value;
    };
    switch (own.shape.sum) {
        case MatrixSum::f16:
            return static_cast<double>(decode<Binary16>(word(std::uint16_t{})));
        case MatrixSum::f32:
            return static_cast<double>(word(float{}));
        case MatrixSum::s32:
            return static_cast<double>(word(std::int32_t{}));
        case MatrixSum::f64:
            return word(double{});
    }
    return 0;
}
void store_sum(const Fragments& own, unsigned i, double sum) {
    auto* const bytes = static_cast<char*>(own.d);
    const auto store = [&](auto value) { std::memcpy(bytes + sizeof value * i, &value, sizeof value); };
    switch (own.shape.sum) {
        case MatrixSum::f16:
            return store(encode<Binary16>(sum));
        case MatrixSum::f32:
            return store(static_cast<float>(sum));
        case MatrixSum::s32: {  // exact in double; wraps, or is clamped
            using Limits = std::numeric_limits<std::int32_t>;
            const auto exact = static_cast<std::int64_t>(sum);
            if (own.shape.saturates)
                return store(
                    static_cast<std::int32_t>(std::clamp<std::int64_t>(exact, Limits::min(), Limits::max())));
            return store(static_cast<std::uint32_t>(exact));
        }
        case MatrixSum::f64:
            return store(sum);
    }
}

void multiply(const Lanes& lanes) {
    const auto& first = lanes.at<Fragments>(static_cast<unsigned>(std::countr_zero(lanes.mask)));
    need_whole_warp(lanes, "mma.sync", first.site);
    const MatrixShape& shape = first.shape;
    const unsigned halves = shape.m / 8;
    std::array<std::array<double, kMostK>, kMostM> a;
    std::array<std::array<double, kN>, kMostK> b;
    std::array<std::array<double, kN>, kMostM> d;
    gather_operand(shape.a, lanes, halves, shape.k, &Fragments::a,
                   [&](unsigned row, unsigned k, double value) { a[row][k] = value; });
    gather_operand(shape.b, lanes, 1, shape.k, &Fragments::b,
                   [&](unsigned column, unsigned k, double value) { b[k][column] = value; });
    const auto visit = [&](auto work) {
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned i = 0; i < 2 * halves; ++i)
                work(lanes.at<Fragments>(lane), i, d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
        }
    };
    visit([](const Fragments& own, unsigned i, double& sum) { sum = load_sum(own, i); });
    for (unsigned row = 0; row < shape.m; ++row) {
        for (unsigned k = 0; k < shape.k; ++k) {
            for (unsigned column = 0; column < kN; ++column)
                d[row][column] += a[row][k] * b[k][column];
        }
    }
    visit([](const Fragments& own, unsigned i, double& sum) { store_sum(own, i, sum); });
}

// Lane 4 g + t holds elements 2 t and 2 t + 1 of row g, and receives those of column g.
struct Transposed {
    std::uint32_t given;
    std::uint32_t result;
    Site site;
};
void transpose(const Lanes& lanes) {
    need_whole_warp(lanes, "movmatrix",
                    lanes.at<Transposed>(static_cast<unsigned>(std::countr_zero(lanes.mask))).site);
    const auto element = [&](unsigned row, unsigned column) {
        return lanes.at<Transposed>(4 * row + column / 2).given >> 16 * (column % 2) & 0xffffu;
    };
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned g = lane / 4, t = lane % 4;
        lanes.at<Transposed>(lane).result = element(2 * t, g) | element(2 * t + 1, g) << 16;
    }
}

}  // namespace

void multiply_matrices(const MatrixShape& shape, void* d, const void* a, const void* b, Site site) {
    Fragments own{shape, d, a, b, site};
    warp_collective(0xffffffffu, &own, multiply, "mma.sync", site);
}

std::uint32_t transposed(std::uint32_t r, Site site) {
    Transposed own{r, 0, site};
    warp_collective(0xffffffffu, &own, transpose, "movmatrix", site);
    return own.result;
}

// ---- Warpgroups ---------------------------------------------------------------------------------

void start_product(void* const* sums, unsigned count, std::uint64_t a, std::uint64_t b, bool adds,
                   const ProductOf& product, Site site) {
    auto* const first = static_cast<char*>(sums[0]);
    for (unsigned i = 0; i < count; ++i) {
        if (sums[i] == first + sizeof(float) * i) continue;
        block_runner().fail(
            cudaErrorNotSupported,
            "wgmma: result " + std::to_string(i) +
                " is not beside the one before it; expected the elements of one array, in order",
            site);
    }
    if (!adds) std::memset(first, 0, sizeof(float) * count);
    issue_product(first, count, a, b, product, site);
}

void check_scales(int a, int b, int transpose_a, Site site) {
    if (a != 1 || b != 1)
        block_runner().fail(cudaErrorNotSupported,
                            "wgmma: operands of " + std::to_string(a) + " and " + std::to_string(b) +
                                " for A and B; provided is 1",
                            site);
    if (transpose_a != 0)
        block_runner().fail(cudaErrorNotSupported, "wgmma: a transposed A is not provided", site);
}

}  // namespace cuda_on_cpu::ptx::isa
