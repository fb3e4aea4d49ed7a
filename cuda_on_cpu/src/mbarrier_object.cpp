#include "mbarrier_object.hpp"

#include <atomic>

namespace cuda_on_cpu {
namespace {

// Bits from the lowest on: 20 for pending arrivals, 20 for expected arrivals, 21 for bytes
// (signed), 1 for the parity, and a tag of 2 that marks an initialised mbarrier. Neither 0 nor
// poison has a valid tag.
constexpr unsigned kCountBits = 20;
constexpr unsigned kBytesAt = 2 * kCountBits;
constexpr unsigned kParityAt = 61;
constexpr unsigned kTagAt = 62;
constexpr std::uint64_t kPublished = 1;
constexpr std::uint64_t kInitialised = 2;

std::uint64_t encode(const MbarrierState& state) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(state.bytes) & ((1u << 21) - 1);
    return std::uint64_t{state.pending} | std::uint64_t{state.expected} << kCountBits | bytes << kBytesAt |
           std::uint64_t{state.parity} << kParityAt | (state.published ? kPublished : kInitialised) << kTagAt;
}

std::optional<MbarrierState> decode(std::uint64_t word) {
    const std::uint64_t tag = word >> kTagAt;
    if (tag != kPublished && tag != kInitialised) return std::nullopt;
    // Shift left and then right to extend the sign.
    const auto bytes = static_cast<std::int64_t>(word << (64 - kParityAt)) >> (64 - kParityAt + kBytesAt);
    return MbarrierState{.expected = static_cast<unsigned>(word >> kCountBits) & kMostArrivals,
                         .pending = static_cast<unsigned>(word) & kMostArrivals,
                         .bytes = static_cast<int>(bytes),
                         .parity = static_cast<unsigned>(word >> kParityAt & 1),
                         .published = tag == kPublished};
}

std::atomic_ref<std::uint64_t> atomic(const std::uint64_t* barrier) {
    return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(barrier));
}

// Applies the change to `state` and returns ""; or returns what is wrong with it.
std::string apply(MbarrierState& state, unsigned arrivals, int bytes, unsigned leaving, bool& ended) {
    const auto text = [](auto number) { return std::to_string(number); };
    if (arrivals == 1 && state.pending == 0)
        return "one arrival more than the " + text(state.expected) + " that the mbarrier's phase takes";
    if (arrivals > state.pending)
        return text(arrivals) + " arrivals at an mbarrier that expects " + text(state.pending) + " more of " +
               text(state.expected);
    state.pending -= arrivals;
    state.expected -= leaving;
    state.bytes += bytes;
    if (state.bytes > kMostBytes || state.bytes < -kMostBytes)
        return "the mbarrier would wait for " + text(state.bytes) + " bytes; it counts up to " +
               text(kMostBytes);
    if (state.pending == 0 && state.bytes < 0)
        return text(-state.bytes) + " bytes more have come than the mbarrier's phase was told to expect";
    ended = state.pending == 0 && state.bytes == 0;
    if (ended) {
        state.parity ^= 1;
        state.pending = state.expected;
    }
    return "";
}

}  // namespace

std::optional<MbarrierState> read_mbarrier(const std::uint64_t* barrier) {
    return decode(atomic(barrier).load());
}

void write_mbarrier(std::uint64_t* barrier, const MbarrierState& state) {
    atomic(barrier).store(encode(state));
}

MbarrierChange change_mbarrier(std::uint64_t* barrier, unsigned arrivals, int bytes, unsigned leaving) {
    std::uint64_t word = atomic(barrier).load();
    for (;;) {
        std::optional<MbarrierState> state = decode(word);
        if (!state) return {.error = "the mbarrier has not been initialised, or has been overwritten"};
        MbarrierChange change;
        change.error = apply(*state, arrivals, bytes, leaving, change.phase_ended);
        if (!change.error.empty() || atomic(barrier).compare_exchange_weak(word, encode(*state)))
            return change;
    }
}

std::string describe_mbarrier(const std::uint64_t* barrier) {
    const std::optional<MbarrierState> state = read_mbarrier(barrier);
    if (!state) return "an mbarrier that has been overwritten";
    return "phase of parity " + std::to_string(state->parity) + ", " + std::to_string(state->pending) +
           " of " + std::to_string(state->expected) + " arrivals missing, " + std::to_string(state->bytes) +
           " bytes missing";
}

}  // namespace cuda_on_cpu
