// Warp collectives: every lane named in the mask supplies an operand, and the last lane to arrive
// does the work for all. Values may be of any trivially copyable type.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// A lane's operand of a shuffle: its value, the source lane, the result.
template <class T>
struct Shuffle {
    T value;
    unsigned source;
    T result;
    bool defined;
};

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const char* name, Site site) {
    static_assert(std::is_trivially_copyable_v<T>, "a shuffle moves bits");
    Shuffle<T> own{value, source, value, true};
    warp_collective(
        mask, &own,
        [](const Lanes& lanes) {
            for (unsigned left = lanes.mask; left != 0; left &= left - 1) {
                auto& reader = lanes.at<Shuffle<T>>(static_cast<unsigned>(__builtin_ctz(left)));
                if (lanes.holds(reader.source)) {
                    reader.result = lanes.at<Shuffle<T>>(reader.source).value;
                } else {  // undefined on a GPU, so an implausible value
                    std::memset(static_cast<void*>(&reader.result), 0xFF, sizeof reader.result);
                    reader.defined = false;
                }
            }
        },
        name, site, Ended::reported);
    if (!own.defined) note_undefined_shuffle(mask, source, name, site);
    return own.result;
}

// The first lane of the segment of `width` lanes that contains this lane. A width must be a power
// of two up to 32.
inline unsigned segment(int width, const char* name, Site site) {
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
        device_failure(cudaErrorLaunchFailure, name, site);
    return current_lane & ~static_cast<unsigned>(width - 1);
}

inline unsigned lanes_with(const Lanes& lanes, bool (*holds)(const void*)) {
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (lanes.holds(lane) && holds(lanes.operands[lane])) result |= 1U << lane;
    }
    return result;
}

struct Vote {
    int predicate;
    unsigned ballot;
};

inline unsigned ballot(unsigned mask, int predicate, const char* name, Site site) {
    Vote own{predicate, 0};
    warp_collective(
        mask, &own,
        [](const Lanes& lanes) {
            const unsigned result = lanes_with(
                lanes, [](const void* vote) { return static_cast<const Vote*>(vote)->predicate != 0; });
            for (unsigned lane = 0; lane < 32; ++lane) {
                if (lanes.holds(lane)) lanes.at<Vote>(lane).ballot = result;
            }
        },
        name, site, Ended::allowed);
    return own.ballot;
}

template <class T>
struct Match {
    T value;
    unsigned same;   // lanes with the same value
    unsigned lanes;  // all that took part
};

template <class T>
Match<T> match(unsigned mask, T value, const char* name, Site site) {
    Match<T> own{value, 0, 0};
    warp_collective(
        mask, &own,
        [](const Lanes& lanes) {
            using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
            Bits bits[32] = {};
            for (unsigned lane = 0; lane < 32; ++lane)
                if (lanes.holds(lane)) std::memcpy(&bits[lane], &lanes.at<Match<T>>(lane).value, sizeof(T));
            for (unsigned lane = 0; lane < 32; ++lane) {
                if (!lanes.holds(lane)) continue;
                unsigned same = 0;
                for (unsigned other = 0; other < 32; ++other)
                    same |= static_cast<unsigned>(bits[other] == bits[lane]) << other;
                auto& mine = lanes.at<Match<T>>(lane);
                mine.lanes = lanes.mask;
                mine.same = same & lanes.mask;
            }
        },
        name, site, Ended::reported);
    return own;
}

// Folds the values of all lanes of the mask, in lane order, with a stateless function object.
template <class T, class Fold>
T warp_fold(unsigned mask, T value, Fold, const char* name, Site site) {
    T own = value;
    warp_collective(
        mask, &own,
        [](const Lanes& lanes) {
            const unsigned leader = static_cast<unsigned>(__builtin_ctz(lanes.mask));
            T total = lanes.at<T>(leader);
            for (unsigned lane = leader + 1; lane < 32; ++lane) {
                if (lanes.holds(lane)) total = Fold{}(total, lanes.at<T>(lane));
            }
            for (unsigned lane = leader; lane < 32; ++lane) {
                if (lanes.holds(lane)) lanes.at<T>(lane) = total;
            }
        },
        name, site, Ended::reported);
    return own;
}

inline void warp_barrier(unsigned mask, Site site) {
    warp_collective(mask, nullptr, nullptr, "__syncwarp", site, Ended::allowed);
}

struct FoldAdd {
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }
};
struct FoldMin {
    template <class T>
    T operator()(T a, T b) const {
        return b < a ? b : a;
    }
};
struct FoldMax {
    template <class T>
    T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};
struct FoldAnd {
    unsigned operator()(unsigned a, unsigned b) const { return a & b; }
};
struct FoldOr {
    unsigned operator()(unsigned a, unsigned b) const { return a | b; }
};
struct FoldXor {
    unsigned operator()(unsigned a, unsigned b) const { return a ^ b; }
};

}  // namespace cuda_on_cpu

// --- Shuffles (CUDA C++ Programming Guide, "Warp Shuffle Functions") -------------------------------------------------

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    const unsigned first =
        cuda_on_cpu::segment(width, "__shfl_sync: width must be a power of two up to 32", site);
    const unsigned from = first + (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1));
    return cuda_on_cpu::shuffle(mask, value, from, "__shfl_sync", site);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    const unsigned lane = cuda_on_cpu::current_lane;
    const unsigned first =
        cuda_on_cpu::segment(width, "__shfl_up_sync: width must be a power of two up to 32", site);
    return cuda_on_cpu::shuffle(mask, value, lane - first >= delta ? lane - delta : lane, "__shfl_up_sync",
                                site);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    const unsigned lane = cuda_on_cpu::current_lane;
    const unsigned first =
        cuda_on_cpu::segment(width, "__shfl_down_sync: width must be a power of two up to 32", site);
    const unsigned end = first + static_cast<unsigned>(width);
    return cuda_on_cpu::shuffle(mask, value, delta < end - lane ? lane + delta : lane, "__shfl_down_sync",
                                site);
}

// A lane may read from earlier segments, but not from later ones.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    const unsigned lane = cuda_on_cpu::current_lane;
    const unsigned first =
        cuda_on_cpu::segment(width, "__shfl_xor_sync: width must be a power of two up to 32", site);
    const unsigned from = lane ^ (static_cast<unsigned>(lane_mask) & 31U);
    return cuda_on_cpu::shuffle(mask, value, from < first + static_cast<unsigned>(width) ? from : lane,
                                "__shfl_xor_sync", site);
}

// --- Votes and matches -------------------------------------------------------------------------------------------------

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::ballot(mask, predicate, "__ballot_sync", site);
}
inline int __any_sync(unsigned mask, int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::ballot(mask, predicate, "__any_sync", site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::ballot(mask, predicate == 0, "__all_sync", site) == 0;
}
// Do all lanes have the same predicate?
inline int __uni_sync(unsigned mask, int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::ballot(mask, predicate, "__uni_sync", site) == 0 ||
           cuda_on_cpu::ballot(mask, predicate == 0, "__uni_sync", site) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::match(mask, value, "__match_any_sync", site).same;
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_equal,
                          cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    const auto result = cuda_on_cpu::match(mask, value, "__match_all_sync", site);
    *all_equal = result.same == result.lanes;
    return *all_equal ? result.lanes : 0;
}

// --- Reductions --------------------------------------------------------------------------------------------------------

inline unsigned __reduce_add_sync(unsigned mask, unsigned value,
                                  cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::warp_fold(mask, value, cuda_on_cpu::FoldAdd{}, "__reduce_add_sync", site);
}
inline int __reduce_add_sync(unsigned mask, int value, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    // Unsigned arithmetic: overflow wraps on a GPU.
    return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), site));
}
template <class T>
requires std::is_same_v<T, int> || std::is_same_v<T, unsigned> T
__reduce_min_sync(unsigned mask, T value, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::warp_fold(mask, value, cuda_on_cpu::FoldMin{}, "__reduce_min_sync", site);
}
template <class T>
requires std::is_same_v<T, int> || std::is_same_v<T, unsigned> T
__reduce_max_sync(unsigned mask, T value, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::warp_fold(mask, value, cuda_on_cpu::FoldMax{}, "__reduce_max_sync", site);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value,
                                  cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::warp_fold(mask, value, cuda_on_cpu::FoldAnd{}, "__reduce_and_sync", site);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value,
                                 cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::warp_fold(mask, value, cuda_on_cpu::FoldOr{}, "__reduce_or_sync", site);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value,
                                  cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::warp_fold(mask, value, cuda_on_cpu::FoldXor{}, "__reduce_xor_sync", site);
}
