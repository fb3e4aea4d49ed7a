// What is known of each word of memory: who has written it, who has read it since, which of its
// bytes nothing has written.
// Pure: memory is given as addresses, and nothing here touches it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "races.hpp"
#include "runs.hpp"
#include "short_place.hpp"

namespace cuda_on_cpu::inspector {

using Address = std::uintptr_t;

// `atomic` reads and writes.
enum class AccessKind : std::uint8_t { load, store, atomic_load, atomic, atomic_store };
inline bool writes(AccessKind kind) {
    return kind == AccessKind::store || kind >= AccessKind::atomic;
}
inline bool reads(AccessKind kind) {
    return kind != AccessKind::store && kind != AccessKind::atomic_store;
}
inline bool is_atomic(AccessKind kind) {
    return kind >= AccessKind::atomic_load;
}
// Two accesses to the same bytes that nothing orders: is that a race?
inline bool conflict(AccessKind a, AccessKind b) {
    return (writes(a) || writes(b)) && !(is_atomic(a) && is_atomic(b));
}

// One access of one thread. At most 16 bytes, but an access of several (a structure that is copied)
// may be more.
struct Access {
    unsigned thread = 0;
    Address address = 0;
    unsigned bytes = 0;
    AccessKind kind = AccessKind::load;
    ShortPlace place = 0;

    // Whole words that are in one line of memory, as their number is a power of two.
    bool in_one_line() const { return (bytes == 4 || bytes == 8 || bytes == 16) && address % bytes == 0; }
};

// The other one of two accesses that do not go together.
struct Earlier {
    unsigned thread = 0;
    AccessKind kind = AccessKind::load;
    ShortPlace place = 0;
    unsigned block = 0;  // the number of the watched block, between blocks
};

// An array in shared memory.
struct SharedArray {
    Address begin = 0;
    std::size_t size = 0;
    std::size_t gap = 0;  // bytes before and behind that belong to nobody
    std::string name;
};

// What is found is told at once; addresses are of the byte where it begins.
class SharedSink {
  public:
    virtual ~SharedSink() = default;
    virtual void race(const Access& access, const Earlier& earlier, Address where) = 0;
    // Of an access of several words only if all of it is: a vector may reach beyond what its thread
    // needs.
    virtual void uninitialised(const Access& access, Address where) = 0;
    virtual void missing_wait(const Access& access, const Earlier& copy, Address where) = 0;
};

// The shared memory of one block at a time. Which arrays there are is told anew for each block.
class SharedShadow {
  public:
    // An array, with what is known of each of its words.
    class Region;

    SharedShadow();
    ~SharedShadow();

    void begin_block();
    // `written`: nothing in it counts as uninitialised.
    void add(const SharedArray& array, bool written);
    // The array that holds the address, or whose gap does, or null.
    Region* find(Address address) const;
    static const SharedArray& array_of(const Region& region);

    // An access that lies inside the array whole.
    void access(Region& region, const Access& access, const BlockOrder& order, SharedSink& sink);

    // An asynchronous copy: a write from when it is issued until its thread has waited. `place` of
    // the issue.
    void issue_copy(Region& region, const Access& copy, const BlockOrder& order, SharedSink& sink);
    void complete_copy(Region& region, unsigned thread, Address address, unsigned bytes,
                       const BlockOrder& order);
    // Of a copy for which others wait: a write of `carrier` from now on, as its thread is in no
    // order with it.
    void end_copy(Region& region, Address address, unsigned carrier, const BlockOrder& order);

  private:
    struct Entry;
    struct Cell;
    struct Pending {
        Access copy;
        bool done;
    };

    Cell& fresh(Region& region, Address word);
    void clear(Cell& cell);
    bool is_one_more_reader(Region& region, const Access& access, const BlockOrder& order);
    void check(Cell& cell, const Access& access, std::uint8_t bytes, Address word, const BlockOrder& order,
               SharedSink& sink);
    void note(Cell& cell, const Access& access, std::uint8_t bytes, const BlockOrder& order);
    void append(Cell& cell, const Entry& entry);
    void complete(Region& region, Pending& copy, unsigned bytes, const BlockOrder& order);
    void forget_done();
    void report_pending(const Access& access, Address word, std::uint8_t bytes, SharedSink& sink) const;

    std::uint32_t block_ = 0;
    std::vector<std::unique_ptr<Region>>
        known_;                     // also of earlier blocks, whose arrays most often are the same
    std::vector<Region*> regions_;  // of the running block
    mutable Region* last_ = nullptr;
    std::vector<std::vector<Entry>> more_;  // of words with more entries than a cell holds
    std::vector<std::uint32_t> unused_more_;
    std::vector<Pending> pending_;
};

// --- Device memory -------------------------------------------------------------------------------------------------------

class GlobalSink {
  public:
    virtual ~GlobalSink() = default;
    // Between blocks, or between threads of one (earlier.block is the running one's number then).
    // Once an access; but two plain writes word by word, as some of the values may be the same.
    virtual void race(const Access& access, const Earlier& earlier, Address where) = 0;
};

// Who touched which word of device memory during a launch. Used by several OS threads at once.
class GlobalShadow {
  public:
    // A new launch, or a barrier of the whole grid: nothing before it counts.
    using Generation = std::uint64_t;

    GlobalShadow();
    ~GlobalShadow();
    GlobalShadow(const GlobalShadow&) = delete;
    GlobalShadow& operator=(const GlobalShadow&) = delete;

    void access(const Access& access, Generation generation, const BlockOrder& order,
                const BlockAmongOthers& others, GlobalSink& sink);
    // Many plain reads at once, in the line of 64 bytes that begins there.
    void reads(const Run& run, Address line, Generation generation, const BlockOrder& order,
               const BlockAmongOthers& others, GlobalSink& sink);
    // There will be an access at the address, perhaps.
    void prefetch(Address address) const;
    // While no kernel runs.
    void forget();
    // There is more memory than can be watched.
    bool full() const { return full_.load(std::memory_order_relaxed); }

    // `change` gets what atomic accesses have left at an address in this generation, and may change
    // it, nobody else meanwhile. A block that is not watched does not hear of a grid's barriers,
    // and may come with the generation before.
    void at_atomic(Address address, Generation generation,
                   const std::function<void(SharedBlocksKnowledge&)>& change);
    // While no kernel runs: what atomic accesses have left.
    void forget_atomics();
    // Of one launch, so that they have numbers.
    static constexpr std::uint64_t kMostBlocks = 32768;

  private:
    static constexpr unsigned kPageBytes = 65536;
    static constexpr unsigned kLineBytes = 4 * kLineWords;
    static constexpr std::size_t kMostPages = 2048;  // 128 MiB of the program's memory

    struct Who {
        Epoch epoch = 0;
        ShortPlace place = 0;
        std::uint16_t block = 0;
        std::uint16_t thread = 0;
        std::uint8_t bytes = 0;  // 0: nobody
        AccessKind kind = AccessKind::load;

        // But for the thread.
        bool alike(const Who& other) const {
            return epoch == other.epoch && place == other.place && block == other.block &&
                   bytes == other.bytes && kind == other.kind;
        }
    };
    // All zeros: nobody.
    struct Cell {
        Who writer;
        // Of another block than last_reader where there are several, or else of another thread.
        Who first_reader;
        Who last_reader;
    };
    // What is known of its words is in the runs, or word by word in cells.
    struct alignas(64) Line {
        std::atomic<Generation>
            state;  // the generation, with kWordByWord, and with kBusy while somebody changes the line
        LineOfRuns runs;
    };
    static constexpr unsigned kLines = kPageBytes / kLineBytes;
    using Page =
        std::array<Line, kLines + 1>;  // one more, or a column of memory would be in one set of the cache
    using CellsOfPage = std::array<Cell, kLines * kLineWords>;
    static constexpr std::size_t kNoPage = ~std::size_t{0};
    struct Slot {
        std::atomic<std::size_t> page{kNoPage};
        Address number = 0;
    };
    class Lock;
    class WordByWord;
    static constexpr Generation kBusy = Generation{1} << 63;
    static constexpr Generation kWordByWord = Generation{1} << 62;
    struct Shard {
        std::mutex mutex;
        std::unordered_map<Address, std::pair<Generation, SharedBlocksKnowledge>> atomics;
    };
    static constexpr unsigned kShards = 16;
    // Addresses beyond these are taken for one: what was left at one of them counts as left at all,
    // which errs towards "ordered".
    static constexpr std::size_t kMostAtomics = 2048;  // of a shard

    // Where in pages_ the page of that number is; it is made if there was none. kNoPage: there are
    // too many.
    std::size_t page(Address number);
    [[gnu::noinline]] std::size_t add_page(Address number);
    static std::size_t slot_of(Address number);
    static bool in_order(unsigned block, unsigned thread, Epoch then, unsigned now, const BlockOrder& order,
                         const BlockAmongOthers& others);
    static bool note_run(Line& line, const Run& run, Generation generation, const BlockOrder& order,
                         const BlockAmongOthers& others);
    static void spread(const LineOfRuns& runs, std::span<Cell, kLineWords> cells);
    static bool is_one_more_reader(const Cell& cell, const Who& self);
    static Who note(Cell& cell, const Who& self, const Access& access, const BlockOrder& order,
                    const BlockAmongOthers& others);

    std::array<Shard, kShards> shards_;
    // Found by their numbers without a lock: from its slot on to the next one that is empty.
    static constexpr std::size_t kSlots = 2 * kMostPages;
    std::vector<Slot> slots_;
    std::mutex pages_mutex_;  // for who adds a page
    // Of the system, which gives real memory when it is touched.
    std::span<Page> pages_;
    std::span<CellsOfPage> cells_;
    std::size_t pages_used_ = 0;
    std::atomic<bool> full_{false};
};

// Plain reads of a block that have not been noted yet, so that those of one line are noted
// together. Until then no thread may tell others anything, or hear anything from them.
class PendingReads {
  public:
    using Note = std::function<void(const Run&, Address line)>;

    PendingReads() : sets_(kSets) {}

    // An access in one line, by a thread of the block in an epoch. False: there must be made room
    // for it.
    bool add(const Access& access, Epoch epoch, std::uint16_t block) {
        const Address line = access.address / kLineBytes;
        const LineWords words = words_of(access);
        const Reads* other = nullptr;
        for (Reads& reads : sets_[number_of_set(line)]) {
            Run& run = reads.run;
            if (reads.line != line || run.words == 0 || run.deed.epoch != epoch || run.deed.block != block)
                continue;
            const auto first = static_cast<unsigned>(std::countr_zero(words));
            const auto last = static_cast<unsigned>(std::bit_width(words)) - 1;
            if (run.deed.place == access.place && run.thread.extend(run.words, access.thread, first, last)) {
                run.words |= words;
                return true;
            }
            // Two others have read it before.
            if ((words & ~run.words) != 0) continue;
            if (other != nullptr && two_will_do(run.thread(first), other->run.thread(first), access.thread) &&
                two_will_do(run.thread(last), other->run.thread(last), access.thread))
                return true;
            other = &reads;
        }
        return false;
    }
    // There will be a read at the address, perhaps.
    void prefetch(Address address) const { __builtin_prefetch(&sets_[number_of_set(address / kLineBytes)]); }
    // The same, and `note` gets what was there.
    void make_room(const Access& access, Epoch epoch, std::uint16_t block, const Note& note);
    void note_all(const Note& note);
    bool empty() const { return used_.empty(); }

  private:
    static constexpr std::size_t kSets = 2048;
    static constexpr Address kLineBytes = 4 * kLineWords;
    struct Reads {
        Address line = 0;
        Run run;  // of no words: nothing is here
    };
    struct alignas(64) Set : std::array<Reads, 2> {};

    static std::size_t number_of_set(Address line) { return (line * 0x9E3779B97F4A7C15U >> 32) % kSets; }
    static LineWords words_of(const Access& access) {
        return line_words(access.address % kLineBytes / 4, access.bytes / 4);
    }

    std::vector<Set> sets_;
    std::vector<std::uint16_t> used_;
};

// Which bytes of an allocation have been written. Used by several OS threads at once.
class WrittenBytes {
  public:
    explicit WrittenBytes(std::size_t size);

    void mark(std::size_t first, std::size_t count) {
        if (count > 0 && !all()) mark_some(first, count);
    }
    bool none_written(std::size_t first, std::size_t count) const;
    // The first byte of these that nothing has written, or -1; it counts as written from now on,
    // with its neighbours.
    std::ptrdiff_t first_unwritten(std::size_t first, std::size_t count) {
        return all() ? -1 : first_unwritten_of_some(first, count);
    }
    // Nothing is unwritten.
    bool all() const { return all_.load(std::memory_order_relaxed); }

  private:
    void mark_some(std::size_t first, std::size_t count);
    std::ptrdiff_t first_unwritten_of_some(std::size_t first, std::size_t count);

    std::size_t size_;
    std::atomic<bool> all_{false};
    std::vector<std::atomic<std::uint8_t>>
        words_;  // a bit for each byte: who writes a whole word needs not to know the rest
};

}  // namespace cuda_on_cpu::inspector
