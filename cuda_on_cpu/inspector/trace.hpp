// An entry of a lane's trace: the place in the program, the operation, and the address.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda_on_cpu/inspection.h"

namespace cuda_on_cpu::inspector {

inline constexpr unsigned kLanes = 32;
using LaneMask = std::uint32_t;

// A return address in the program, or the number of a Site of the runtime (source_places.hpp). 48
// bits.
using Place = std::uint64_t;

// Place, space, operation and size in one word: accesses of several lanes with equal words may be
// one instruction.
class Action {
  public:
    constexpr Action() = default;
    constexpr Action(Place place, Space space, Operation operation, unsigned bytes)
        : word_(place | std::uint64_t(space) << 48 | std::uint64_t(operation) << 49 |
                std::uint64_t(std::countr_zero(bytes)) << 52) {}
    static constexpr Action of_word(std::uint64_t word) {
        Action action;
        action.word_ = word;
        return action;
    }
    // A place where the lane waits for others; not an access.
    static constexpr Action sync_point(Place place) {
        Action action;
        action.word_ = place | kSyncPoint;
        return action;
    }

    constexpr Action in(Space space) const { return Action(place(), space, operation(), bytes()); }

    constexpr Place place() const { return word_ & ((std::uint64_t{1} << 48) - 1); }
    constexpr Space space() const { return static_cast<Space>(word_ >> 48 & 1); }
    constexpr Operation operation() const { return static_cast<Operation>(word_ >> 49 & 7); }
    constexpr unsigned bytes() const { return 1U << (word_ >> 52 & 7); }
    constexpr bool is_sync_point() const { return (word_ & kSyncPoint) != 0; }
    constexpr std::uint64_t word() const { return word_; }
    constexpr bool operator==(const Action&) const = default;

  private:
    static constexpr std::uint64_t kSyncPoint = std::uint64_t{1} << 55;
    std::uint64_t word_ = 0;
};

// A small cache of the most recent distinct values.
template <class T>
class RecentlyUsed {
  public:
    // The first for which fits(value) is true, or T{}.
    template <class Fits>
    T find(Fits fits) const {
        for (const T& one : used_) {
            if (one != T{} && fits(one)) return one;
        }
        return T{};
    }
    void add(T one) { used_[next_++ % used_.size()] = one; }
    void clear() { used_.fill(T{}); }

  private:
    std::array<T, 4> used_{};
    std::size_t next_ = 0;
};

// A value per instruction, in a small cache, because most instructions access the same memory
// again.
template <class T>
class ByPlace {
  public:
    T& operator[](Place place) { return lately_[index(place)]; }
    const T& operator[](Place place) const { return lately_[index(place)]; }
    void clear() { lately_.fill(T{}); }

  private:
    static constexpr std::size_t kSize = 64;
    static std::size_t index(Place place) { return (place ^ place >> 6) % kSize; }
    std::array<T, kSize> lately_{};
};

struct TraceEntry {
    Action action;
    std::uint64_t address;
};

}  // namespace cuda_on_cpu::inspector
