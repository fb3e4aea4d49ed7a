// The shadow of a line of device memory (64 bytes) in compressed form. The accesses of a warp by
// one instruction, or of a thread in a loop, are one run. Runs store only plain accesses without a
// race: GlobalShadow records other lines word by word.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "races.hpp"
#include "short_place.hpp"

namespace cuda_on_cpu::inspector {

// Two threads of a block have read a word in one epoch. A write that races with any reader also
// races with one of these two, so a third reader need not be recorded. The exception is a third
// reader of another warp than the first two when these share a warp, because that warp may have
// synchronised alone.
inline bool two_readers_suffice(unsigned a, unsigned b, unsigned third) {
    return a != b && (a / kLanes != b / kLanes || a / kLanes == third / kLanes);
}

// The properties that all accesses of a run share.
struct RunKey {
    Epoch epoch = 0;
    ShortPlace place = 0;
    std::uint16_t block = 0;  // 15 bits
    bool write = false;

    bool operator==(const RunKey&) const = default;
};

// Words of a line, as a bit mask.
using LineWords = std::uint16_t;
inline constexpr unsigned kLineWords = 16;
// first ... first + count - 1
inline LineWords line_words(unsigned first, unsigned count) {
    return static_cast<LineWords>(((1U << count) - 1) << first);
}

// The thread that accesses each word: base + (word << step), or for vectors base + (word >> -step),
// or the same thread for all words.
class ThreadOfWord {
  public:
    ThreadOfWord() = default;
    explicit ThreadOfWord(unsigned thread) : ThreadOfWord(thread, 0, kConstant) {}
    // Consecutive threads access 1, 2 or 4 words each, `thread` those from `word` on.
    static ThreadOfWord in_a_row(unsigned thread, unsigned word, unsigned words_of_each) {
        return ThreadOfWord(thread, word, kStepOne - static_cast<unsigned>(std::countr_zero(words_of_each)));
    }

    unsigned operator()(unsigned word) const {
        return static_cast<unsigned>((code_ & 0xFFF) - kBase + offset(code_ >> 12, word));
    }
    bool operator==(const ThreadOfWord&) const = default;

    // Do the words from the first to the last belong to `thread`? It is enough to check these two.
    bool is(unsigned thread, unsigned first, unsigned last) const {
        return (*this)(first) == thread && (*this)(last) == thread;
    }
    // Adds the words first ... last of `thread` to `words`. Returns false if no step fits both.
    // While all words belong to one thread, the step is still undetermined.
    bool extend(LineWords words, unsigned thread, unsigned first, unsigned last) {
        if (is(thread, first, last)) return true;
        return (words & line_words(first, last - first + 1)) == 0 && choose_step(words, thread, first, last);
    }

  private:
    static constexpr unsigned kConstant = 0;
    // 1, 2: four or two words per thread; 4 ... 9: every 2nd ... 64th thread.
    static constexpr unsigned kStepOne = 3;
    static constexpr unsigned kSteps = 10;
    static constexpr int kBase = 1024;

    ThreadOfWord(unsigned thread, unsigned word, unsigned step)
        : code_(static_cast<std::uint16_t>(
              static_cast<unsigned>(static_cast<int>(thread) - offset(step, word) + kBase) | step << 12)) {}
    static int offset(unsigned step, unsigned word) {
        if (step == kConstant) return 0;
        return static_cast<int>(step < kStepOne ? word >> (kStepOne - step) : word << (step - kStepOne));
    }
    [[gnu::noinline]] bool choose_step(LineWords words, unsigned thread, unsigned first, unsigned last) {
        const auto low = static_cast<unsigned>(std::countr_zero(words));
        const auto high = static_cast<unsigned>(std::bit_width(words)) - 1;
        const unsigned holder = (*this)(low);
        if ((*this)(high) != holder) return false;
        for (unsigned step = 1; step < kSteps; ++step) {
            const ThreadOfWord other(thread, first, step);
            if (!other.is(thread, first, last) || !other.is(holder, low, high)) continue;
            *this = other;
            return true;
        }
        return false;
    }

    std::uint16_t code_ = 0;
};

struct Run {
    RunKey key;
    ThreadOfWord thread;
    LineWords words = 0;

    unsigned first() const { return static_cast<unsigned>(std::countr_zero(words)); }
    unsigned last() const { return static_cast<unsigned>(std::bit_width(words)) - 1; }
};

class LineOfRuns {
  public:
    void clear() { words_.fill(0); }

    // `in_order(then, block, thread, now)` returns whether operations of that thread in epoch
    // `then` happen before the current operation of thread `now`. note() returns false and records
    // nothing if the run races with a recorded one, or if there is no room.
    template <class InOrder>
    bool note(const Run& run, InOrder in_order) {
        const RunKey& key = run.key;
        unsigned own = kRuns;
        unsigned conflicting = 0;  // words of other runs that this run may race with
        for (unsigned r = 0; r < kRuns; ++r) {
            if (own == kRuns && words_[r] != 0 && is(r, key) && extend(r, run)) {
                own = r;
            } else if (key.write || is_write(r)) {
                conflicting |= words_[r];
            }
        }
        if ((conflicting & run.words) != 0) {
            if (!is_ordered(own, run, in_order)) return false;
            // A later write that is ordered after this one is ordered after everything before it.
            if (key.write) forget(own, run.words, [](unsigned) { return true; });
        }
        if (own == kRuns) {
            if (!key.write) {
                if (has_enough_readers(run)) return true;
                forget(own, run.words,
                       [&](unsigned r) { return !is_write(r) && all_in_order(r, run, in_order); });
            }
            own = free_run(key);
            if (own == kRuns) return false;
            epoch_[own] = key.epoch;
            place_[own] = key.place;
            block_[own] = static_cast<std::uint16_t>(key.block | unsigned{key.write} << 15);
            thread_[own] = run.thread;
            words_[own] = 0;
        }
        words_[own] |= run.words;
        return true;
    }

    // Calls action(key, thread, word) for each recorded word.
    template <class Do>
    void for_each(Do action) const {
        for (unsigned r = 0; r < kRuns; ++r) {
            for_each_word_of(words_[r], [&](unsigned word) {
                action(RunKey{epoch_[r], place_[r], block(r), is_write(r)}, thread_[r](word), word);
                return true;
            });
        }
    }

  private:
    static constexpr unsigned kRuns = 4;

    // Stops as soon as an action returns false.
    template <class Do>
    static bool for_each_word_of(unsigned words, Do action) {
        for (; words != 0; words &= words - 1) {
            if (!action(static_cast<unsigned>(std::countr_zero(words)))) return false;
        }
        return true;
    }

    std::uint16_t block(unsigned r) const { return block_[r] & 0x7FFF; }
    bool is_write(unsigned r) const { return block_[r] >> 15 != 0; }
    bool is(unsigned r, const RunKey& key) const {
        return epoch_[r] == key.epoch && place_[r] == key.place && block(r) == key.block &&
               is_write(r) == key.write;
    }

    // Can one ThreadOfWord describe the words of both runs?
    bool extend(unsigned r, const Run& run) {
        if (thread_[r] == run.thread) return true;
        const unsigned thread = run.thread(run.first());
        if (run.thread(run.last()) == thread)
            return thread_[r].extend(words_[r], thread, run.first(), run.last());
        const Run here{{}, thread_[r], words_[r]};
        if (!run.thread.is(thread_[r](here.first()), here.first(), here.last()) ||
            !thread_[r].is(thread_[r](here.first()), here.first(), here.last()))
            return false;
        thread_[r] = run.thread;
        return true;
    }

    template <class InOrder>
    bool all_in_order(unsigned r, const Run& run, InOrder in_order) const {
        return for_each_word_of(words_[r] & run.words, [&](unsigned word) {
            return in_order(epoch_[r], block(r), thread_[r](word), run.thread(word));
        });
    }
    template <class InOrder>
    bool is_ordered(unsigned own, const Run& run, InOrder in_order) const {
        for (unsigned r = 0; r < kRuns; ++r) {
            if (r != own && (run.key.write || is_write(r)) && !all_in_order(r, run, in_order)) return false;
        }
        return true;
    }
    template <class Which>
    void forget(unsigned own, LineWords words, Which which) {
        for (unsigned r = 0; r < kRuns; ++r) {
            if (r != own && which(r)) words_[r] &= static_cast<LineWords>(~words);
        }
    }

    bool has_enough_readers(const Run& run) const {
        unsigned readers = 0;
        std::array<ThreadOfWord, kRuns> thread;
        for (unsigned r = 0; r < kRuns; ++r) {
            if (!is_write(r) && epoch_[r] == run.key.epoch && block(r) == run.key.block &&
                (run.words & ~words_[r]) == 0)
                thread[readers++] = thread_[r];
        }
        return readers >= 2 && for_each_word_of(run.words, [&](unsigned word) {
                   return two_readers_suffice(thread[0](word), thread[1](word), run.thread(word));
               });
    }

    // Returns a run that is empty or whose words have two other readers; kRuns if there is none. A
    // reader of another block is kept.
    unsigned free_run(const RunKey& key) const {
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
                if (block(other) != key.block) elsewhere |= words_[other];
            }
            if (block(r) != key.block) twice &= elsewhere;
            if ((words_[r] & ~twice) == 0) return r;
        }
        return kRuns;
    }

    std::array<Epoch, kRuns> epoch_;
    std::array<ShortPlace, kRuns> place_;
    // The highest bit is set for a write.
    std::array<std::uint16_t, kRuns> block_;
    std::array<ThreadOfWord, kRuns> thread_;
    std::array<LineWords, kRuns> words_;  // none: the run is empty
};

}  // namespace cuda_on_cpu::inspector
