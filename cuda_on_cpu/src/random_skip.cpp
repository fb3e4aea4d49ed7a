#include "cuda_on_cpu/random_skip.h"

#include <array>
#include <vector>

namespace cuda_on_cpu {
namespace {

// --- XORWOW: a matrix of 160 x 160 bits. Row i is the image of bit i of the state. ---------------

using Bits = std::array<std::uint32_t, 5>;
using BitMatrix = std::array<Bits, 160>;

Bits xorwow_step(const Bits& v) {
    const std::uint32_t t = v[0] ^ (v[0] >> 2);
    return {v[1], v[2], v[3], v[4], (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1))};
}

Bits product(const Bits& v, const BitMatrix& matrix) {
    Bits sum{};
    for (unsigned bit = 0; bit < 160; ++bit) {
        if ((v[bit / 32] >> (bit % 32) & 1) == 0) continue;
        for (unsigned word = 0; word < 5; ++word)
            sum[word] ^= matrix[bit][word];
    }
    return sum;
}

// Powers 2^0, 2^1, ... of a step.
const std::vector<BitMatrix>& xorwow_powers() {
    // Never destroyed, because destructors of static objects may launch kernels.
    static const std::vector<BitMatrix>& powers = *new std::vector<BitMatrix>([] {
        std::vector<BitMatrix> all(160);
        for (unsigned bit = 0; bit < 160; ++bit) {
            Bits unit{};
            unit[bit / 32] = 1u << (bit % 32);
            all[0][bit] = xorwow_step(unit);
        }
        for (std::size_t i = 1; i < all.size(); ++i) {
            for (unsigned bit = 0; bit < 160; ++bit)
                all[i][bit] = product(all[i - 1][bit], all[i - 1]);
        }
        return all;
    }());
    return powers;
}

// --- MRG32k3a: two matrices of 3 x 3 residues ----------------------------------------------------

using Residues = std::array<std::uint64_t, 3>;
using ResidueMatrix = std::array<Residues, 3>;

constexpr std::uint64_t kModulus1 = 4294967087, kModulus2 = 4294944443;

Residues product(const ResidueMatrix& matrix, const Residues& v, std::uint64_t modulus) {
    Residues result{};
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column)
            result[row] = (result[row] + matrix[row][column] * v[column] % modulus) % modulus;
    }
    return result;
}

ResidueMatrix square(const ResidueMatrix& matrix, std::uint64_t modulus) {
    ResidueMatrix result{};
    for (int column = 0; column < 3; ++column) {
        const Residues image =
            product(matrix, {matrix[0][column], matrix[1][column], matrix[2][column]}, modulus);
        for (int row = 0; row < 3; ++row)
            result[row][column] = image[row];
    }
    return result;
}

std::vector<ResidueMatrix> residue_powers(const ResidueMatrix& step, std::uint64_t modulus) {
    std::vector<ResidueMatrix> all{step};
    while (all.size() < 192)
        all.push_back(square(all.back(), modulus));
    return all;
}

void skip_residues(std::uint32_t (&state)[3], const std::vector<ResidueMatrix>& powers, std::uint64_t modulus,
                   std::uint64_t count, unsigned power) {
    Residues v = {state[0], state[1], state[2]};
    for (; count != 0; count >>= 1, ++power) {
        if ((count & 1) != 0) v = product(powers[power], v, modulus);
    }
    for (int i = 0; i < 3; ++i)
        state[i] = static_cast<std::uint32_t>(v[i]);
}

}  // namespace

void skip_xorwow(std::uint32_t (&words)[5], std::uint64_t count, unsigned power) {
    if (count == 0) return;
    Bits v = {words[0], words[1], words[2], words[3], words[4]};
    for (; count != 0; count >>= 1, ++power) {
        if ((count & 1) != 0) v = product(v, xorwow_powers()[power]);
    }
    for (int i = 0; i < 5; ++i)
        words[i] = v[i];
}

void skip_mrg32k3a(std::uint32_t (&first)[3], std::uint32_t (&second)[3], std::uint64_t count,
                   unsigned power) {
    using Powers = std::vector<ResidueMatrix>;
    static const Powers& powers1 =
        *new Powers(residue_powers({{{0, 1, 0}, {0, 0, 1}, {kModulus1 - 810728, 1403580, 0}}}, kModulus1));
    static const Powers& powers2 =
        *new Powers(residue_powers({{{0, 1, 0}, {0, 0, 1}, {kModulus2 - 1370589, 0, 527612}}}, kModulus2));
    skip_residues(first, powers1, kModulus1, count, power);
    skip_residues(second, powers2, kModulus2, count, power);
}

}  // namespace cuda_on_cpu
