#include "transactions.hpp"

#include <algorithm>
#include <bit>

namespace cuda_on_cpu::inspector {
namespace {

constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
constexpr unsigned kSectorBytes = 32;

unsigned divide_up(unsigned value, unsigned step) {
    return (value + step - 1) / step;
}

// Most distinct words in one bank: each costs a wavefront.
class BankCounter {
  public:
    BankCounter() { newest_.fill(kNone); }

    void add(std::uint64_t word) {
        std::uint8_t& newest = newest_[word % kBanks];
        unsigned depth = 1;
        for (std::uint8_t i = newest; i != kNone; i = older_[i], ++depth) {
            if (words_[i] == word) return;
        }
        words_[count_] = word;
        older_[count_] = newest;
        newest = count_++;
        most_ = std::max(most_, depth);
    }
    unsigned wavefronts() const { return most_; }

  private:
    static constexpr std::uint8_t kNone = 0xFF;
    std::array<std::uint64_t, 2 * kLanes> words_;
    std::array<std::uint8_t, 2 * kLanes> older_;
    std::array<std::uint8_t, kBanks> newest_;
    std::uint8_t count_ = 0;
    unsigned most_ = 0;
};

// The lanes of a mask, lowest first.
template <class Do>
void for_each_lane(LaneMask mask, Do action) {
    for (; mask != 0; mask &= mask - 1)
        action(static_cast<unsigned>(std::countr_zero(mask)));
}

unsigned wavefronts_of(LaneMask mask, const Addresses& addresses, unsigned bytes) {
    BankCounter banks;
    for_each_lane(mask, [&](unsigned lane) {
        const std::uint64_t last = (addresses[lane] + bytes - 1) / kBankBytes;
        for (std::uint64_t word = addresses[lane] / kBankBytes; word <= last; ++word)
            banks.add(word);
    });
    return banks.wavefronts();
}

struct Distinct {
    unsigned bytes = 0;
    unsigned sectors = 0;
};

// Bytes and sectors that at least one lane touches. `sectors` may be null.
Distinct distinct(LaneMask mask, const Addresses& addresses, unsigned bytes, Sectors* sectors) {
    Addresses sorted;
    unsigned count = 0;
    bool ascending = true;
    for_each_lane(mask, [&](unsigned lane) {
        sorted[count] = addresses[lane];
        ascending = ascending && (count == 0 || sorted[count - 1] <= sorted[count]);
        ++count;
    });
    if (!ascending) std::sort(sorted.begin(), sorted.begin() + count);
    Distinct result;
    std::uint64_t end = 0;          // of the bytes counted so far
    std::uint64_t next_sector = 0;  // the first one not counted yet
    for (unsigned i = 0; i < count; ++i) {
        const std::uint64_t first = std::max(sorted[i], end);
        end = std::max(end, sorted[i] + bytes);
        result.bytes += static_cast<unsigned>(end - std::min(first, end));
        const std::uint64_t last = (sorted[i] + bytes - 1) / kSectorBytes;
        for (std::uint64_t s = std::max(sorted[i] / kSectorBytes, next_sector); s <= last; ++s) {
            if (sectors != nullptr) sectors->sector[result.sectors] = s;
            ++result.sectors;
        }
        next_sector = last + 1;
    }
    if (sectors != nullptr) sectors->count = result.sectors;
    return result;
}

}  // namespace

// 8 bytes are served half a warp at a time, 16 bytes a quarter.
Count count_shared(Operation, LaneMask mask, const Addresses& addresses, unsigned bytes) {
    Count count;
    const unsigned together = bytes <= 4 ? kLanes : 4 * kLanes / bytes;
    for (unsigned first = 0; first < kLanes; first += together) {
        const LaneMask part = mask & (~LaneMask{0} >> (kLanes - together)) << first;
        if (part != 0) count.transactions += wavefronts_of(part, addresses, bytes);
    }
    count.bytes_used = distinct(mask, addresses, bytes, nullptr).bytes;
    count.ideal = divide_up(static_cast<unsigned>(std::popcount(mask)) * bytes, kBanks * kBankBytes);
    return count;
}

Count count_global(LaneMask mask, const Addresses& addresses, unsigned bytes, Sectors& sectors) {
    const Distinct touched = distinct(mask, addresses, bytes, &sectors);
    return {touched.sectors, divide_up(touched.bytes, kSectorBytes), touched.bytes};
}

// A matrix is a wavefront at best: 8 rows of 16 bytes, in all banks.
Count count_matrix_load(const Addresses& rows, unsigned matrices) {
    constexpr unsigned kRows = 8;
    constexpr unsigned kRowBytes = 16;
    Count count;
    for (unsigned m = 0; m < matrices; ++m)
        count.transactions += wavefronts_of(LaneMask{0xFF} << kRows * m, rows, kRowBytes);
    const LaneMask named = ~LaneMask{0} >> (kLanes - kRows * matrices);
    count.bytes_used = distinct(named, rows, kRowBytes, nullptr).bytes;
    count.ideal = matrices;
    return count;
}

}  // namespace cuda_on_cpu::inspector
