// Eight adjacent values of a row: one 16-byte load for halves, two for floats, one 8-byte store
// for int8. A row may have any length: columns beyond its end are read as 0 and not stored.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/device/pack.cuh"

namespace course {

inline constexpr int kOctet = 8;

// Columns [col, col + 8) of a row of `cols` columns. kAligned: rows start at multiples of 16
// bytes. Halves stay in pairs, as they are loaded and as instructions take them. If they were
// converted immediately, each would need a register of its own.
template <class T>
class Octet {
    static constexpr bool kHalf = std::is_same_v<T, __half>;
    using Unit = std::conditional_t<kHalf, __half2, T>;
    using Units = Pack<Unit, 4>;
    static constexpr int kPacks = kOctet * sizeof(T) / sizeof(Units);

  public:
    // An octet of value(0) to value(7).
    template <class Value>
    static __device__ Octet of(const Value& value) {
        Octet octet;
        for (int u = 0; u < 4 * kPacks; ++u) {
            if constexpr (kHalf) {
                octet.unit(u) = __halves2half2(value(2 * u), value(2 * u + 1));
            } else {
                octet.unit(u) = value(u);
            }
        }
        return octet;
    }

    template <bool kAligned>
    static __device__ Octet load(const T* row, std::size_t col, std::size_t cols) {
        if (kAligned && col + kOctet <= cols) {
            Octet octet;
            const auto* const units = reinterpret_cast<const Unit*>(row + col);
            for (int p = 0; p < kPacks; ++p)
                octet.pack_[p] = Units::load(units + 4 * p);
            return octet;
        }
        return of([&](int k) { return col + k < cols ? row[col + k] : T(0.0f); });
    }

    template <bool kAligned>
    __device__ void store(T* row, std::size_t col, std::size_t cols) const {
        if (kAligned && col + kOctet <= cols) {
            for (int p = 0; p < kPacks; ++p)
                pack_[p].store(reinterpret_cast<Unit*>(row + col) + 4 * p);
        } else {
            for (int k = 0; k < kOctet; ++k)
                if (col + k < cols) row[col + k] = static_cast<T>((*this)[k]);
        }
    }

    // Value k as a float.
    __device__ float operator[](int k) const {
        if constexpr (kHalf) {
            return k % 2 == 0 ? __low2float(unit(k / 2)) : __high2float(unit(k / 2));
        } else {
            return unit(k);
        }
    }

    // For halves: pairs 0 to 3. For floats: values 0 to 7.
    __device__ Unit& unit(int u) { return pack_[u / 4].value[u % 4]; }
    __device__ const Unit& unit(int u) const { return pack_[u / 4].value[u % 4]; }

  private:
    Units pack_[kPacks];
};

// Eight values of int8. kAligned: rows start at multiples of 8 bytes.
using ByteOctet = Pack<std::int8_t, kOctet>;

template <bool kAligned>
__device__ inline ByteOctet load_bytes(const std::int8_t* row, std::size_t col, std::size_t cols) {
    if (kAligned && col + kOctet <= cols) return ByteOctet::load(row + col);
    ByteOctet bytes{};
    for (int k = 0; k < kOctet; ++k)
        if (col + k < cols) bytes.value[k] = row[col + k];
    return bytes;
}

template <bool kAligned>
__device__ inline void store_bytes(const ByteOctet& bytes, std::int8_t* row, std::size_t col,
                                   std::size_t cols) {
    if (kAligned && col + kOctet <= cols) {
        bytes.store(row + col);
    } else {
        for (int k = 0; k < kOctet; ++k)
            if (col + k < cols) row[col + k] = bytes.value[k];
    }
}

}  // namespace course
