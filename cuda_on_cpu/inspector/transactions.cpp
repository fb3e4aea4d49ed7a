#include "transactions.hpp"

#include <algorithm>
#include <bit>

namespace cuda_on_cpu::inspector {
namespace {

constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
// The most that a lane can request: 16 bytes.
constexpr unsigned kMostWords = 4;

unsigned divide_up(unsigned value, unsigned step) {
    return (value + step - 1) / step;
}

// The largest number of distinct words in one bank: each costs a wavefront.
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
    unsigned most() const { return most_; }

  private:
    static constexpr std::uint8_t kNone = 0xFF;
    std::array<std::uint64_t, kMostWords * kLanes> words_;
    std::array<std::uint8_t, kMostWords * kLanes> older_;
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

// The largest number of distinct words in one bank, over lanes that are served together.
unsigned distinct_words_in_a_bank(LaneMask mask, const Addresses& addresses, unsigned bytes) {
    BankCounter banks;
    for_each_lane(mask, [&](unsigned lane) {
        const std::uint64_t last = (addresses[lane] + bytes - 1) / kBankBytes;
        for (std::uint64_t word = addresses[lane] / kBankBytes; word <= last; ++word)
            banks.add(word);
    });
    return banks.most();
}

// Atomics on one word are served one lane after the other.
unsigned lanes_at_a_bank(LaneMask mask, const Addresses& addresses, unsigned bytes) {
    std::array<unsigned, kBanks> lanes{};
    for_each_lane(mask, [&](unsigned lane) {
        const std::uint64_t last = (addresses[lane] + bytes - 1) / kBankBytes;
        for (std::uint64_t word = addresses[lane] / kBankBytes; word <= last; ++word)
            ++lanes[word % kBanks];
    });
    return *std::max_element(lanes.begin(), lanes.end());
}

// Does every active lane have the same address as the lane whose number differs in the bit
// `difference`, if that lane is active?
bool paired(LaneMask mask, const Addresses& addresses, unsigned difference) {
    for (LaneMask left = mask; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const unsigned other = lane ^ difference;
        if ((mask >> other & 1) != 0 && addresses[lane] != addresses[other]) return false;
    }
    return true;
}

unsigned wavefronts(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes) {
    if (operation == Operation::kAtomic || (operation == Operation::kAsyncCopy && bytes <= 4))
        return lanes_at_a_bank(mask, addresses, bytes);
    unsigned together = bytes <= 4 ? kLanes : 4 * kLanes / bytes;
    // Loads: twice as many lanes are served together where all pairs of lanes at distance 1, or at
    // distance 2, share their addresses.
    if (operation == Operation::kLoad && together < kLanes &&
        (paired(mask, addresses, 1) || paired(mask, addresses, 2)))
        together *= 2;
    unsigned sum = 0;
    for (unsigned first = 0; first < kLanes; first += together) {
        const LaneMask part = mask & (~LaneMask{0} >> (kLanes - together)) << first;
        if (part != 0) sum += distinct_words_in_a_bank(part, addresses, bytes);
    }
    return sum;
}

// Each sector is visited as many times as the largest number of lanes that access the same word of
// it.
unsigned atomic_visits(LaneMask mask, const Addresses& addresses, const Sectors& sectors) {
    unsigned sum = 0;
    for (unsigned i = 0; i < sectors.count; ++i) {
        unsigned most = 0;
        for_each_lane(mask, [&](unsigned lane) {
            if (addresses[lane] / kSectorBytes != sectors.sector[i]) return;
            unsigned same = 0;
            for_each_lane(mask, [&](unsigned other) { same += addresses[other] == addresses[lane] ? 1 : 0; });
            most = std::max(most, same);
        });
        sum += most;
    }
    return sum;
}

// The two most frequent patterns need no counting.
bool all_lanes_alike(const Addresses& addresses) {
    std::uint64_t differences = 0;
    for (const std::uint64_t address : addresses)
        differences |= address ^ addresses[0];
    return differences == 0;
}
bool all_lanes_in_a_row(const Addresses& addresses, unsigned bytes) {
    std::uint64_t differences = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane)
        differences |= addresses[lane] ^ (addresses[0] + lane * std::uint64_t{bytes});
    return differences == 0;
}

struct Distinct {
    unsigned bytes = 0;
    unsigned sectors = 0;
};

// Counts bytes and sectors that at least one lane accesses. `sectors` may be null.
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

Count count_shared(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes) {
    constexpr LaneMask kAll = ~LaneMask{0};
    const unsigned words = divide_up(static_cast<unsigned>(std::popcount(mask)) * bytes, kBanks * kBankBytes);
    if (mask == kAll && operation == Operation::kLoad && addresses[0] % bytes == 0) {
        if (all_lanes_in_a_row(addresses, bytes)) return {words, words, kLanes * bytes};
        if (all_lanes_alike(addresses)) {
            const unsigned needed = bytes == 16 ? 2 : 1;
            return {needed, needed, bytes};
        }
    }
    Count count;
    count.transactions = wavefronts(operation, mask, addresses, bytes);
    // Lanes that share an address may need fewer.
    count.ideal = std::min(words, count.transactions);
    count.bytes_used = distinct(mask, addresses, bytes, nullptr).bytes;
    return count;
}

Count count_global(Operation operation, LaneMask mask, const Addresses& addresses, unsigned bytes,
                   Sectors& sectors) {
    if (mask == ~LaneMask{0} && operation != Operation::kAtomic && addresses[0] % bytes == 0) {
        const bool in_a_row = all_lanes_in_a_row(addresses, bytes);
        if (in_a_row || all_lanes_alike(addresses)) {
            const unsigned length = in_a_row ? kLanes * bytes : bytes;
            const std::uint64_t first = addresses[0] / kSectorBytes;
            sectors.count = static_cast<unsigned>((addresses[0] + length - 1) / kSectorBytes - first) + 1;
            for (unsigned i = 0; i < sectors.count; ++i)
                sectors.sector[i] = first + i;
            return {sectors.count, divide_up(length, kSectorBytes), length};
        }
    }
    const Distinct touched = distinct(mask, addresses, bytes, &sectors);
    const unsigned visits =
        operation == Operation::kAtomic ? atomic_visits(mask, addresses, sectors) : touched.sectors;
    return {visits, divide_up(touched.bytes, kSectorBytes), touched.bytes};
}

// A matrix needs at least one wavefront: 8 rows of 16 bytes, in all banks.
Count count_matrices(const Addresses& rows, unsigned matrices) {
    constexpr unsigned kRows = 8;
    constexpr unsigned kRowBytes = 16;
    Count count;
    for (unsigned m = 0; m < matrices; ++m)
        count.transactions += distinct_words_in_a_bank(LaneMask{0xFF} << kRows * m, rows, kRowBytes);
    const LaneMask named = ~LaneMask{0} >> (kLanes - kRows * matrices);
    count.bytes_used = distinct(named, rows, kRowBytes, nullptr).bytes;
    count.ideal = matrices;
    return count;
}

}  // namespace cuda_on_cpu::inspector
