#include "cuda_on_cpu/tensor_core.h"

#include <mma.h>

#include <array>
#include <cstring>
#include <string>

#include "block.hpp"
#include "cuda_on_cpu/ptx_matrix.h"
#include "cuda_on_cpu/small_float.h"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

void need_whole_warp(const Lanes& lanes, const char* name, Site site) {
    if (lanes.mask == 0xffffffffu) return;
    block_runner().fail(cudaErrorLaunchFailure,
                        std::string(name) + " in a warp of fewer than 32 threads; it needs them all", site);
}

// ---- Products -----------------------------------------------------------------------------------

// The differences between the MMA formats: the number of elements of A and B per register, the
// element type of D, and the type of the sums.
struct Tf32 {
    static constexpr const char* kName = "mma_m16n8k8_tf32";
    static constexpr Capability kCapability{8, 0};
    static constexpr unsigned kPerRegister = 1;
    using Result = float;
    using Sum = double;
    static double element(unsigned bits, unsigned) {
        return static_cast<double>(std::bit_cast<float>(bits & 0xffffe000u));
    }
};

template <class Format>
struct Float16 {
    static constexpr Capability kCapability{8, 0};
    static constexpr unsigned kPerRegister = 2;
    using Result = float;
    using Sum = double;
    static double element(unsigned bits, unsigned i) {
        return static_cast<double>(decode<Format>(static_cast<std::uint16_t>(bits >> 16 * i)));
    }
};
struct F16 : Float16<Binary16> {
    static constexpr const char* kName = "mma_m16n8k16_f16";
};
struct Bf16 : Float16<Bfloat16> {
    static constexpr const char* kName = "mma_m16n8k16_bf16";
};

template <class Format>
struct Float8 {
    static constexpr Capability kCapability{8, 9};
    static constexpr unsigned kPerRegister = 4;
    using Result = float;
    using Sum = double;
    static double element(unsigned bits, unsigned i) {
        return static_cast<double>(decode<Format>(static_cast<std::uint8_t>(bits >> 8 * i)));
    }
};
struct Fp8E4m3 : Float8<E4m3> {
    static constexpr const char* kName = "mma_m16n8k32_e4m3";
};
struct Fp8E5m2 : Float8<E5m2> {
    static constexpr const char* kName = "mma_m16n8k32_e5m2";
};

struct S8 {
    static constexpr Capability kCapability{8, 0};
    static constexpr const char* kName = "mma_m16n8k32_s8";
    static constexpr unsigned kPerRegister = 4;
    using Result = int;
    using Sum = std::uint32_t;  // wraps; so do products of sign-extended numbers
    static std::uint32_t element(unsigned bits, unsigned i) {
        return static_cast<std::uint32_t>(static_cast<std::int8_t>(bits >> 8 * i));
    }
};

// A lane's operands of an MMA.
template <class Format>
struct Fragments {
    typename Format::Result* d;
    const unsigned* a;
    const unsigned* b;
    Site site;
};

// The register layout is that of the PTX ISA, "Matrix Fragments for mma.m16n8k8" (k16, k32), with
// lane = 4 * group + in_group. One rule covers all formats: a register holds elements that are
// consecutive along k, and so do the registers of the four lanes of a group. Registers i and i + 2
// of A (0 and 1 of B) are half of k apart.
template <class Format>
void multiply(const Lanes& lanes) {
    constexpr unsigned kP = Format::kPerRegister;
    constexpr unsigned kM = 16, kN = 8, kK = 8 * kP;
    using Sum = typename Format::Sum;
    const Site site = lanes.at<Fragments<Format>>(static_cast<unsigned>(std::countr_zero(lanes.mask))).site;
    block_runner().need_capability(Format::kCapability, kNewest, Format::kName, site);
    need_whole_warp(lanes, Format::kName, site);
    Sum a[kM][kK], b[kK][kN], d[kM][kN];
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& own = lanes.at<Fragments<Format>>(lane);
        const unsigned group = lane / 4, in_group = lane % 4;
        for (unsigned j = 0; j < kP; ++j) {
            const unsigned k = kP * in_group + j;
            for (unsigned i = 0; i < 4; ++i)
                a[group + 8 * (i % 2)][k + kK / 2 * (i / 2)] = Format::element(own.a[i], j);
            for (unsigned i = 0; i < 2; ++i)
                b[k + kK / 2 * i][group] = Format::element(own.b[i], j);
        }
        for (unsigned i = 0; i < 4; ++i)
            d[group + 8 * (i / 2)][2 * in_group + i % 2] = static_cast<Sum>(own.d[i]);
    }
    for (unsigned row = 0; row < kM; ++row) {
        for (unsigned k = 0; k < kK; ++k) {
            for (unsigned col = 0; col < kN; ++col)
                d[row][col] += a[row][k] * b[k][col];
        }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& own = lanes.at<Fragments<Format>>(lane);
        for (unsigned i = 0; i < 4; ++i)
            own.d[i] =
                static_cast<typename Format::Result>(d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
    }
}

template <class Format>
void mma(typename Format::Result* d, const unsigned* a, const unsigned* b, Site site) {
    Fragments<Format> own{d, a, b, site};
    warp_collective(0xffffffffu, &own, multiply<Format>, Format::kName, site);
}

// ---- Fragments ----------------------------------------------------------------------------------

constexpr unsigned kFragmentSide = 16;

void multiply_whole_fragments(const Lanes& lanes) {
    const auto& first = lanes.at<WmmaOperands>(static_cast<unsigned>(std::countr_zero(lanes.mask)));
    need_whole_warp(lanes, "mma_sync", first.site);
    using Matrix = std::array<std::array<double, kFragmentSide>, kFragmentSide>;
    Matrix a, b, d;
    namespace wmma = nvcuda::wmma;
    const auto visit = [&lanes]<class Use>(Use, const auto& work) {
        for (unsigned lane = 0; lane < 32; ++lane) {
            const auto& own = lanes.at<WmmaOperands>(lane);
            for (unsigned i = 0; i < kFragmentSide * kFragmentSide / 32; ++i) {
                const auto [row, column] = wmma::detail::place_of<Use, 16, 16, 16, __half>(lane, i);
                work(own, i, row, column);
            }
        }
    };
    const auto number = [&first](const void* elements, unsigned i) {
        std::uint16_t bits;
        std::memcpy(&bits, static_cast<const char*>(elements) + sizeof bits * i, sizeof bits);
        return static_cast<double>(first.decode(bits));
    };
    visit(wmma::matrix_a(), [&](const WmmaOperands& own, unsigned i, unsigned row, unsigned column) {
        a[row][column] = number(own.a, i);
    });
    visit(wmma::matrix_b(), [&](const WmmaOperands& own, unsigned i, unsigned row, unsigned column) {
        b[row][column] = number(own.b, i);
    });
    visit(wmma::accumulator(), [&](const WmmaOperands& own, unsigned i, unsigned row, unsigned column) {
        d[row][column] = static_cast<double>(own.c[i]);
    });
    for (unsigned row = 0; row < kFragmentSide; ++row) {
        for (unsigned k = 0; k < kFragmentSide; ++k) {
            for (unsigned column = 0; column < kFragmentSide; ++column)
                d[row][column] += a[row][k] * b[k][column];
        }
    }
    visit(wmma::accumulator(), [&](const WmmaOperands& own, unsigned i, unsigned row, unsigned column) {
        own.d[i] = static_cast<float>(d[row][column]);
    });
}

struct FragmentAccess {
    const void* pointer;
    unsigned leading_dimension;
    std::size_t element_size;
    const char* name;
    Site site;
};

// Checks the offset within the allocation, because on a GPU allocations begin at multiples of 256
// bytes. Here they end at a guard page (memory.hpp) and may begin at any multiple of 16.
bool is_aligned(const void* pointer, std::size_t alignment) {
    const auto allocation = find_allocation(pointer);
    const bool ours = allocation && allocation->mapping != nullptr;  // not registered by the program
    const auto begin = ours ? reinterpret_cast<std::uintptr_t>(allocation->begin) : 0;
    return (reinterpret_cast<std::uintptr_t>(pointer) - begin) % alignment == 0;
}

void compare_fragment_accesses(const Lanes& lanes) {
    const auto& first = lanes.at<FragmentAccess>(static_cast<unsigned>(std::countr_zero(lanes.mask)));
    need_whole_warp(lanes, first.name, first.site);
    for (unsigned lane = 0; lane < 32; ++lane) {
        const auto& other = lanes.at<FragmentAccess>(lane);
        if (other.pointer != first.pointer || other.leading_dimension != first.leading_dimension)
            block_runner().fail(
                cudaErrorLaunchFailure,
                std::string(first.name) + ": the lanes of a warp have passed different matrices", first.site);
    }
    // CUDA requires 32 bytes, but NVIDIA's own sample for 8-bit elements (immaTensorCoreGemm) uses
    // multiples of 16.
    const unsigned alignment = first.element_size == 1 ? 16 : 32;
    if (!is_aligned(first.pointer, alignment) || first.leading_dimension * first.element_size % 16 != 0)
        block_runner().fail(
            cudaErrorMisalignedAddress,
            std::string(first.name) + ": misaligned access: the matrix must begin at a multiple of " +
                std::to_string(alignment) + " bytes, and its leading dimension be a multiple of 16 bytes",
            first.site);
}

// ---- Loads --------------------------------------------------------------------------------------

constexpr unsigned kSide = 8;  // of a matrix
constexpr unsigned kRowBytes = 16;

// A lane's operands of ldmatrix: the row whose address it passes, and the destination of its
// elements.
struct RowAndPlace {
    const void* row;
    unsigned* r;
    const char* name;
    Site site;
};

std::array<const void*, 32> rows_of(const Lanes& lanes) {
    std::array<const void*, 32> rows;
    for (unsigned lane = 0; lane < 32; ++lane)
        rows[lane] = lanes.at<RowAndPlace>(lane).row;
    return rows;
}

// Lane 8 m + i passes the address of row i of matrix m. Lane 4 g + t receives elements 2 t and 2 t
// + 1 of row g of each matrix; transposed, of column g.
template <unsigned kMatrices, bool kTranspose>
void load_matrices(const Lanes& lanes) {
    const auto& first = lanes.at<RowAndPlace>(static_cast<unsigned>(std::countr_zero(lanes.mask)));
    need_whole_warp(lanes, first.name, first.site);
    if (block_runner().observed())
        block_runner().notify(
            event::MatricesLoaded{current_warp, rows_of(lanes).data(), kMatrices, first.site});
    for (unsigned m = 0; m < kMatrices; ++m) {
        std::uint16_t matrix[kSide][kSide];
        for (unsigned i = 0; i < kSide; ++i)
            std::memcpy(matrix[i], lanes.at<RowAndPlace>(kSide * m + i).row, kRowBytes);
        for (unsigned lane = 0; lane < 32; ++lane) {
            const unsigned g = lane / 4, t = lane % 4;
            const unsigned low = kTranspose ? matrix[2 * t][g] : matrix[g][2 * t];
            const unsigned high = kTranspose ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
            lanes.at<RowAndPlace>(lane).r[m] = low | high << 16;
        }
    }
}

// The reverse: register m of lane 4 g + t holds elements 2 t and 2 t + 1 of row g; transposed, of
// column g.
template <unsigned kMatrices, bool kTranspose>
void store_matrices(const Lanes& lanes) {
    const auto& first = lanes.at<RowAndPlace>(static_cast<unsigned>(std::countr_zero(lanes.mask)));
    need_whole_warp(lanes, first.name, first.site);
    if (block_runner().observed())
        block_runner().notify(
            event::MatricesStored{current_warp, rows_of(lanes).data(), kMatrices, first.site});
    for (unsigned m = 0; m < kMatrices; ++m) {
        for (unsigned lane = 0; lane < 32; ++lane) {
            const unsigned r = lanes.at<RowAndPlace>(lane).r[m];
            const unsigned g = lane / 4, t = lane % 4;
            const auto row = [&](unsigned i) {
                return static_cast<char*>(const_cast<void*>(lanes.at<RowAndPlace>(kSide * m + i).row));
            };
            if constexpr (kTranspose) {
                const auto low = static_cast<std::uint16_t>(r), high = static_cast<std::uint16_t>(r >> 16);
                std::memcpy(row(2 * t) + sizeof low * g, &low, sizeof low);
                std::memcpy(row(2 * t + 1) + sizeof high * g, &high, sizeof high);
            } else {
                std::memcpy(row(g) + sizeof r * t, &r, sizeof r);
            }
        }
    }
}

void check_row(const void* row, std::size_t matrices, const char* name, Site site) {
    if (current_lane >= kSide * matrices) return;
    BlockRunner& runner = block_runner();
    if (reinterpret_cast<std::uintptr_t>(row) % kRowBytes != 0) {
        runner.fail(cudaErrorMisalignedAddress,
                    std::string(name) + ": misaligned access: a row must be at a multiple of 16 bytes", site);
    }
    if (!runner.shared().holds(row, kRowBytes)) {
        runner.fail(cudaErrorIllegalAddress,
                    std::string(name) + ": the row is not in the block's shared memory", site);
    }
}

template <bool kTranspose, std::size_t kMatrices>
void ldmatrix(unsigned (&r)[kMatrices], const void* row, const char* name, Site site) {
    check_row(row, kMatrices, name, site);
    RowAndPlace own{row, r, name, site};
    warp_collective(0xffffffffu, &own, load_matrices<kMatrices, kTranspose>, name, site);
}

template <std::size_t kMatrices, bool kTranspose>
void stmatrix(void* row, const unsigned* r, const char* name, Site site) {
    check_row(row, kMatrices, name, site);
    RowAndPlace own{row, const_cast<unsigned*>(r), name, site};
    warp_collective(0xffffffffu, &own, store_matrices<kMatrices, kTranspose>, name, site);
}

}  // namespace

void require_whole_warp(const Lanes& lanes, const char* name, Site site) {
    need_whole_warp(lanes, name, site);
}

void multiply_fragments(WmmaOperands own) {
    warp_collective(0xffffffffu, &own, multiply_whole_fragments, "mma_sync", own.site);
}

void check_fragment_access(const void* pointer, unsigned leading_dimension, std::size_t element_size,
                           const char* name, Site site) {
    FragmentAccess own{pointer, leading_dimension, element_size, name, site};
    warp_collective(0xffffffffu, &own, compare_fragment_accesses, name, site);
}

void ptx::mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    mma<Tf32>(d, a, b, site);
}
void ptx::mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    mma<F16>(d, a, b, site);
}
void ptx::mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    mma<Bf16>(d, a, b, site);
}
void ptx::mma_m16n8k32_e4m3(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    mma<Fp8E4m3>(d, a, b, site);
}
void ptx::mma_m16n8k32_e5m2(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    mma<Fp8E5m2>(d, a, b, site);
}
void ptx::mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site) {
    mma<S8>(d, a, b, site);
}

void ptx::ldmatrix_x1(unsigned (&r)[1], const void* row, Site site) {
    ldmatrix<false>(r, row, "ldmatrix_x1", site);
}
void ptx::ldmatrix_x2(unsigned (&r)[2], const void* row, Site site) {
    ldmatrix<false>(r, row, "ldmatrix_x2", site);
}
void ptx::ldmatrix_x4(unsigned (&r)[4], const void* row, Site site) {
    ldmatrix<false>(r, row, "ldmatrix_x4", site);
}
void ptx::ldmatrix_x2_trans(unsigned (&r)[2], const void* row, Site site) {
    ldmatrix<true>(r, row, "ldmatrix_x2_trans", site);
}
void ptx::ldmatrix_x4_trans(unsigned (&r)[4], const void* row, Site site) {
    ldmatrix<true>(r, row, "ldmatrix_x4_trans", site);
}

void ptx::stmatrix_x4(void* row, const unsigned (&r)[4], Site site) {
    stmatrix<4, false>(row, r, "stmatrix_x4", site);
}
void ptx::stmatrix_x4_trans(void* row, const unsigned (&r)[4], Site site) {
    stmatrix<4, true>(row, r, "stmatrix_x4_trans", site);
}

void ptx::isa::load_matrices(unsigned* r, int count, bool transpose, const void* row, Site site) {
    const auto load = [&]<std::size_t kCount>(std::integral_constant<std::size_t, kCount>) {
        auto& registers = *reinterpret_cast<unsigned(*)[kCount]>(r);
        if (transpose) {
            cuda_on_cpu::ldmatrix<true>(registers, row, "ldmatrix.trans", site);
        } else {
            cuda_on_cpu::ldmatrix<false>(registers, row, "ldmatrix", site);
        }
    };
    if (count == 1) load(std::integral_constant<std::size_t, 1>{});
    if (count == 2) load(std::integral_constant<std::size_t, 2>{});
    if (count == 4) load(std::integral_constant<std::size_t, 4>{});
}
void ptx::isa::store_matrices(void* row, const unsigned* r, int count, bool transpose, Site site) {
    const auto store = [&]<std::size_t kCount>(std::integral_constant<std::size_t, kCount>) {
        if (transpose) {
            cuda_on_cpu::stmatrix<kCount, true>(row, r, "stmatrix.trans", site);
        } else {
            cuda_on_cpu::stmatrix<kCount, false>(row, r, "stmatrix", site);
        }
    };
    if (count == 1) store(std::integral_constant<std::size_t, 1>{});
    if (count == 2) store(std::integral_constant<std::size_t, 2>{});
    if (count == 4) store(std::integral_constant<std::size_t, 4>{});
}

}  // namespace cuda_on_cpu
