// Who touched the words of one line of device memory (64 bytes), in a few words for all of them: what a warp does with one instruction,
// or a thread in a loop, is one run. Plain accesses only, and only while nothing in the line goes wrong: GlobalShadow keeps the
// words of other lines one by one.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "races.hpp"
#include "short_place.hpp"

namespace cuda_on_cpu::inspector {

// What all accesses of a run have in common.
struct Deed {
    Epoch epoch = 0;
    ShortPlace place = 0;
    std::uint16_t block = 0;
    bool write = false;
};

class LineOfRuns {
  public:
    static constexpr unsigned kWords = 16;

    void clear() { words_.fill(0); }

    // Notes an access of `thread` to `count` words from `first` on: 1, 2 or 4, of which `first` is a multiple.
    // `in_order(epoch, block, thread)`: did what that thread did then come before? False, and nothing is noted: it does not go together
    // with what is here, or there is no room.
    template <class InOrder>
    bool note(const Deed& deed, unsigned thread, unsigned first, unsigned count, InOrder in_order) {
        const auto mask = static_cast<Words>(((1U << count) - 1) << first);
        const unsigned last = first + count - 1;
        unsigned own = kRuns;
        unsigned against = 0;  // words of other runs that an access like this may not go together with
        for (unsigned r = 0; r < kRuns; ++r) {
            if (own == kRuns && words_[r] != 0 && is(r, deed) && extend(r, thread, first, last)) {
                own = r;
            } else if (deed.write || is_write(r)) {
                against |= words_[r];
            }
        }
        if ((against & mask) != 0) {
            if (!goes_together(own, deed, mask, in_order)) return false;
            // A write that comes later and goes together with this one also goes together with what came before it.
            if (deed.write) forget(own, mask, [](unsigned) { return true; });
        }
        if (own == kRuns) {
            if (!deed.write) {
                if (others_will_do(deed, first, last)) return true;
                forget(own, mask,
                       [&](unsigned r) { return !is_write(r) && all_in_order(r, mask, in_order); });
            }
            own = free_run(deed);
            if (own == kRuns) return false;
            epoch_[own] = deed.epoch;
            place_[own] = deed.place;
            block_[own] = deed.block;
            who_[own] = encode(thread, 0, kConstant, deed.write);
            words_[own] = 0;
        }
        words_[own] |= mask;
        return true;
    }

    // All that is known: action(deed, thread, word).
    template <class Do>
    void for_each(Do action) const {
        for (unsigned r = 0; r < kRuns; ++r) {
            for (unsigned left = words_[r]; left != 0; left &= left - 1) {
                const auto word = static_cast<unsigned>(std::countr_zero(left));
                action(Deed{epoch_[r], place_[r], block_[r], is_write(r)}, thread_of(who_[r], word), word);
            }
        }
    }

  private:
    static constexpr unsigned kRuns = 4;
    using Words = std::uint16_t;  // a bit for each

    // The thread of word i: base + (i << step), or for vectors base + (i >> -step), or always the same.
    // As a number: base in 11 bits, write in one, step in four.
    using Who = std::uint16_t;
    static constexpr unsigned kConstant = 0;
    static constexpr unsigned kStepOne =
        3;  // 1, 2: four words, two words a thread; 4 ... 9: every 2nd ... 64th thread
    static constexpr unsigned kSteps = 10;
    static constexpr int kBase = 1024;

    static int offset(unsigned step, unsigned word) {
        if (step == kConstant) return 0;
        return static_cast<int>(step < kStepOne ? word >> (kStepOne - step) : word << (step - kStepOne));
    }
    static Who encode(unsigned thread, unsigned word, unsigned step, bool write) {
        const int base = static_cast<int>(thread) - offset(step, word) + kBase;
        return static_cast<Who>(static_cast<unsigned>(base) | unsigned{write} << 11 | step << 12);
    }
    static unsigned thread_of(Who who, unsigned word) {
        return static_cast<unsigned>((who & 0x7FF) - kBase + offset(who >> 12, word));
    }
    bool is_write(unsigned r) const { return (who_[r] >> 11 & 1) != 0; }
    bool is(unsigned r, const Deed& deed) const {
        return epoch_[r] == deed.epoch && place_[r] == deed.place && block_[r] == deed.block &&
               is_write(r) == deed.write;
    }

    // Can the run hold these words of the thread? As long as all its words are one thread's, any step will do that fits.
    bool extend(unsigned r, unsigned thread, unsigned first, unsigned last) {
        const auto fits = [&](Who who) {
            return thread_of(who, first) == thread && thread_of(who, last) == thread;
        };
        if (fits(who_[r])) return true;
        const auto low = static_cast<unsigned>(std::countr_zero(words_[r]));
        const auto high = static_cast<unsigned>(std::bit_width(words_[r])) - 1;
        const unsigned holder = thread_of(who_[r], low);
        if (thread_of(who_[r], high) != holder) return false;
        for (unsigned step = 1; step < kSteps; ++step) {
            const Who who = encode(thread, first, step, is_write(r));
            if (!fits(who) || thread_of(who, low) != holder || thread_of(who, high) != holder) continue;
            who_[r] = who;
            return true;
        }
        return false;
    }

    template <class InOrder>
    bool all_in_order(unsigned r, Words mask, InOrder in_order) const {
        for (unsigned left = words_[r] & mask; left != 0; left &= left - 1) {
            const auto word = static_cast<unsigned>(std::countr_zero(left));
            if (!in_order(epoch_[r], block_[r], thread_of(who_[r], word))) return false;
        }
        return true;
    }
    template <class InOrder>
    bool goes_together(unsigned own, const Deed& deed, Words mask, InOrder in_order) const {
        for (unsigned r = 0; r < kRuns; ++r) {
            if (r != own && (deed.write || is_write(r)) && !all_in_order(r, mask, in_order)) return false;
        }
        return true;
    }
    template <class Which>
    void forget(unsigned own, Words mask, Which which) {
        for (unsigned r = 0; r < kRuns; ++r) {
            if (r != own && which(r)) words_[r] &= static_cast<Words>(~mask);
        }
    }

    // Two threads of the block have read these words in this epoch: who writes there races with one of them, and a third is no news.
    bool others_will_do(const Deed& deed, unsigned first, unsigned last) const {
        const unsigned mask = (2U << last) - (1U << first);
        unsigned readers = 0;
        std::array<Who, kRuns> who;
        for (unsigned r = 0; r < kRuns; ++r) {
            if (is_write(r) || epoch_[r] != deed.epoch || block_[r] != deed.block ||
                (words_[r] & mask) != mask)
                continue;
            who[readers++] = who_[r];
        }
        return readers >= 2 && thread_of(who[0], first) != thread_of(who[1], first) &&
               thread_of(who[0], last) != thread_of(who[1], last);
    }

    // One that is empty, or whose words two others have read besides; kRuns: none. A reader of another block stays.
    unsigned free_run(const Deed& deed) const {
        for (unsigned r = 0; r < kRuns; ++r) {
            if (words_[r] == 0) return r;
        }
        for (unsigned r = 0; r < kRuns; ++r) {
            if (is_write(r)) continue;
            unsigned once = 0;
            unsigned twice = 0;
            unsigned elsewhere = 0;
            for (unsigned other = 0; other < kRuns; ++other) {
                if (other == r || is_write(other)) continue;
                twice |= once & words_[other];
                once |= words_[other];
                if (block_[other] != deed.block) elsewhere |= words_[other];
            }
            if (block_[r] != deed.block) twice &= elsewhere;
            if ((words_[r] & ~twice) == 0) return r;
        }
        return kRuns;
    }

    std::array<Epoch, kRuns> epoch_;
    std::array<ShortPlace, kRuns> place_;
    std::array<std::uint16_t, kRuns> block_;
    std::array<Who, kRuns> who_;
    std::array<Words, kRuns> words_;  // none: the run is empty
};

}  // namespace cuda_on_cpu::inspector
