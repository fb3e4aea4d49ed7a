// Shadow memory: for each word its last writer, the readers since then, and which of its bytes have
// been written. Memory is identified by its addresses and never accessed here.
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

// `atomic` reads and writes. Those of a block are atomic only among the threads of one block, and
// those of a thread order and protect nothing among threads.
enum class AccessKind : std::uint8_t {
    load,
    store,
    volatile_load,
    volatile_store,
    atomic_load,
    atomic,
    atomic_store,
    block_atomic_load,
    block_atomic,
    block_atomic_store,
    thread_atomic_load,
    thread_atomic,
    thread_atomic_store,
};
inline bool is_plain(AccessKind kind) {
    return kind <= AccessKind::store;
}
inline bool is_volatile(AccessKind kind) {
    return kind == AccessKind::volatile_load || kind == AccessKind::volatile_store;
}
inline bool of_thread(AccessKind kind) {
    return kind >= AccessKind::thread_atomic_load;
}
// Is it atomic for more than one thread?
inline bool is_atomic(AccessKind kind) {
    return kind >= AccessKind::atomic_load && !of_thread(kind);
}
inline bool of_block(AccessKind kind) {
    return kind >= AccessKind::block_atomic_load;
}
// The same access with the scope of a block.
inline AccessKind in_block(AccessKind kind) {
    constexpr unsigned kApart =
        static_cast<unsigned>(AccessKind::block_atomic) - static_cast<unsigned>(AccessKind::atomic);
    return is_atomic(kind) && !of_block(kind) ? static_cast<AccessKind>(static_cast<unsigned>(kind) + kApart)
                                              : kind;
}
inline AccessKind in_thread(AccessKind kind) {
    constexpr unsigned kApart =
        static_cast<unsigned>(AccessKind::thread_atomic) - static_cast<unsigned>(AccessKind::block_atomic);
    return is_atomic(kind) ? static_cast<AccessKind>(static_cast<unsigned>(in_block(kind)) + kApart) : kind;
}
inline bool is_load(AccessKind kind) {
    return kind == AccessKind::load || kind == AccessKind::volatile_load || kind == AccessKind::atomic_load ||
           kind == AccessKind::block_atomic_load || kind == AccessKind::thread_atomic_load;
}
// A write that is no atomic access.
inline bool is_store(AccessKind kind) {
    return kind == AccessKind::store || kind == AccessKind::volatile_store;
}
inline bool writes(AccessKind kind) {
    return !is_load(kind);
}
inline bool reads(AccessKind kind) {
    return is_load(kind) || kind == AccessKind::atomic || kind == AccessKind::block_atomic ||
           kind == AccessKind::thread_atomic;
}
// Plain accesses conflict with more accesses than volatile ones and atomic ones of a thread, and
// these with more than atomic ones.
inline unsigned strength(AccessKind kind) {
    return is_plain(kind) ? 0 : is_atomic(kind) ? 2 : 1;
}
// Are two unordered accesses to the same bytes by threads of one block a race? A volatile read
// beside an atomic access is none: PTX takes it for a relaxed one.
inline bool conflict(AccessKind a, AccessKind b) {
    if (!writes(a) && !writes(b)) return false;
    return strength(a) + strength(b) < 3 || (strength(a) == 1 && writes(a) && is_atomic(b)) ||
           (strength(b) == 1 && writes(b) && is_atomic(a));
}
// The same for threads of two blocks.
inline bool conflict_between_blocks(AccessKind a, AccessKind b) {
    return conflict(a, b) || ((writes(a) || writes(b)) && (of_block(a) || of_block(b)));
}

// One access of one thread: at most 16 bytes, or more when a structure is copied.
struct Access {
    unsigned thread = 0;
    Address address = 0;
    unsigned bytes = 0;
    AccessKind kind = AccessKind::load;
    ShortPlace place = 0;

    // Is the access 4, 8 or 16 aligned bytes? Then it covers whole words within one line of the
    // shadow memory.
    bool in_one_line() const { return (bytes == 4 || bytes == 8 || bytes == 16) && address % bytes == 0; }
};

// The earlier one of two conflicting accesses.
struct Earlier {
    unsigned thread = 0;
    AccessKind kind = AccessKind::load;
    ShortPlace place = 0;
    // Between blocks: the number of the watched block, and the epoch of its thread.
    unsigned block = 0;
    Epoch epoch = 0;
};

// An array in shared memory.
struct SharedArray {
    Address begin = 0;
    std::size_t size = 0;
    // Unused bytes before and after it.
    std::size_t gap = 0;
    std::string name;
};

// Receives mistakes as they are found. `where` is the address of the first byte.
class SharedSink {
  public:
    virtual ~SharedSink() = default;
    virtual void race(const Access& access, const Earlier& earlier, Address where) = 0;
    // Called for an access of several words only if none of them was written: a vector may contain
    // elements that its thread does not need.
    virtual void uninitialised(const Access& access, Address where) = 0;
    virtual void missing_wait(const Access& access, const Earlier& copy, Address where) = 0;
};

// The shared memory of one block at a time. Its arrays are added again for each block.
class SharedShadow {
  public:
    // An array with the shadow of its words.
    class Region;

    SharedShadow();
    ~SharedShadow();

    void begin_block();
    // `written`: all bytes count as written.
    void add(const SharedArray& array, bool written);
    // Returns the array that contains the address, including its gap; null if there is none.
    Region* find(Address address) const;
    static const SharedArray& array_of(const Region& region);

    // The most frequent access: a plain load of whole words that have been written, but not since
    // the last barrier. Records it, or returns false if it is another one, which may be outside the
    // array.
    bool usual_read(Region& region, const Access& access, const BlockOrder& order);
    // The access must be completely inside the array.
    void access(Region& region, const Access& access, const BlockOrder& order, SharedSink& sink);

    // Calls `visit` with the writes that these bytes were last written by, as far as no barrier of
    // the block and later access has made them forgotten.
    using VisitWrite = std::function<void(unsigned thread, Epoch epoch, ShortPlace place, Address word)>;
    void visit_writes(Region& region, Address address, std::size_t bytes, const VisitWrite& visit);

    // The thread's last plain load of these bytes in its epoch is forgotten.
    void take_back(Region& region, Address address, unsigned bytes, unsigned thread, const BlockOrder& order);

    // An asynchronous copy: a write that is pending from its issue until its thread has waited.
    // `place` is the place of the issue.
    void issue_copy(Region& region, const Access& copy, const BlockOrder& order, SharedSink& sink);
    void complete_copy(Region& region, unsigned thread, Address address, unsigned bytes,
                       const BlockOrder& order);
    // Completes a bulk copy, for which other threads wait. From now on it is a write of the copy
    // engine, because it is unordered with the thread that issued it.
    void end_copy(Region& region, Address address, unsigned engine, const BlockOrder& order);

  private:
    struct Entry;
    struct Cell;
    struct Pending {
        Access copy;
        bool done;
    };

    Cell& fresh(Region& region, Address word);
    void clear(Cell& cell);
    void check(Cell& cell, const Access& access, std::uint8_t bytes, Address word, const BlockOrder& order,
               SharedSink& sink);
    void note(Cell& cell, const Access& access, std::uint8_t bytes, const BlockOrder& order);
    void append(Cell& cell, const Entry& entry);
    void complete(Region& region, Pending& copy, unsigned bytes, const BlockOrder& order);
    void forget_done();
    void report_pending(const Access& access, Address word, std::uint8_t bytes, SharedSink& sink) const;

    std::uint32_t block_ = 0;
    // Includes arrays of earlier blocks, because most blocks have the same arrays.
    std::vector<std::unique_ptr<Region>> known_;
    // Of the running block.
    std::vector<Region*> regions_;
    mutable Region* last_ = nullptr;
    // The entries of words that have more than fit into a cell.
    std::vector<std::vector<Entry>> more_;
    std::vector<std::uint32_t> unused_more_;
    std::vector<Pending> pending_;
};

// --- Device memory -------------------------------------------------------------------------------

class GlobalSink {
  public:
    virtual ~GlobalSink() = default;
    // A race between blocks, or between threads of one block; earlier.block is then the running
    // block's number. Called once per access, except that two plain writes are reported word by
    // word, because some of the values may be equal.
    virtual void race(const Access& access, const Earlier& earlier, Address where) = 0;
};

// The accesses to each word of device memory during a launch (LastAccess). Used by several OS
// threads at once.
class GlobalShadow {
  public:
    // Incremented by a launch and by a barrier of the grid, because both order all earlier
    // accesses.
    using Generation = std::uint64_t;

    GlobalShadow();
    ~GlobalShadow();
    GlobalShadow(const GlobalShadow&) = delete;
    GlobalShadow& operator=(const GlobalShadow&) = delete;

    void access(const Access& access, Generation generation, const BlockOrder& order, const GridOrder& others,
                GlobalSink& sink);
    // Many plain reads at once, in the 64-byte line at `line`.
    void reads(const Run& run, Address line, Generation generation, const BlockOrder& order,
               const GridOrder& others, GlobalSink& sink);
    // An access at the address is likely to follow.
    void prefetch(Address address) const;
    // Has the launch of that generation accessed the word last, in conflict with such an access?
    bool conflicts_with(Generation launch, AccessKind kind, Address word, std::uint8_t bytes,
                        Earlier& earlier);
    // Drops all recorded accesses. No kernel may run.
    void forget();
    // True if the kernels accessed more memory than the shadow has room for.
    bool full() const { return full_.load(std::memory_order_relaxed); }

    // Calls `change` under a lock with the clocks that atomic accesses have released at an address
    // in this generation. A block that is not watched gets no events of grid barriers, and may
    // therefore pass an earlier generation.
    void at_atomic(Address address, Generation generation,
                   const std::function<void(SharedBlockClocks&)>& change);
    // Drops the clocks of atomic accesses. No kernel may run.
    void forget_atomics();
    // The most watched blocks of one launch: their numbers have 15 bits.
    static constexpr std::uint64_t kMostBlocks = 32768;

  private:
    static constexpr unsigned kPageBytes = 65536;
    static constexpr unsigned kLineBytes = 4 * kLineWords;
    static constexpr std::size_t kMostPages = 2048;  // 128 MiB of the program's memory

    struct LastAccess {
        Epoch epoch = 0;
        ShortPlace place = 0;
        std::uint16_t block = 0;
        std::uint16_t thread = 0;
        std::uint8_t bytes = 0;  // 0: no access
        AccessKind kind = AccessKind::load;

        // Equal except for the thread.
        bool alike(const LastAccess& other) const {
            return epoch == other.epoch && place == other.place && block == other.block &&
                   bytes == other.bytes && kind == other.kind;
        }
    };
    // All zeros: no access.
    struct Cell {
        LastAccess writer;
        // A reader of another block than last_reader's if there is one, otherwise of another
        // thread.
        LastAccess first_reader;
        LastAccess last_reader;
    };
    // The accesses to a line are recorded in its runs, or word by word in cells.
    struct alignas(64) Line {
        // The generation, with the bits kWordByWord, and kBusy while the line is locked.
        std::atomic<Generation> state;
        LineOfRuns runs;
    };
    static constexpr unsigned kLines = kPageBytes / kLineBytes;
    // One more line, because otherwise a column of memory would map to one set of the cache.
    using Page = std::array<Line, kLines + 1>;
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
        std::unordered_map<Address, std::pair<Generation, SharedBlockClocks>> atomics;
    };
    static constexpr unsigned kShards = 16;
    // If a shard has more addresses than this, the additional ones share an entry: a clock released
    // at one of them counts as released at all of them, which errs towards "ordered".
    static constexpr std::size_t kMostAtomics = 2048;

    // The index in pages_ of the page with that number, which is added if needed. kNoPage: there is
    // no room.
    std::size_t page(Address number);
    [[gnu::noinline]] std::size_t add_page(Address number);
    static std::size_t slot_of(Address number);
    static bool in_order(unsigned block, unsigned thread, Epoch then, unsigned now, const BlockOrder& order,
                         const GridOrder& others);
    static bool note_run(Line& line, const Run& run, Generation generation, const BlockOrder& order,
                         const GridOrder& others);
    static void spread(const LineOfRuns& runs, std::span<Cell, kLineWords> cells);
    static bool is_one_more_reader(const Cell& cell, const LastAccess& self);
    static LastAccess note(Cell& cell, const LastAccess& self, const Access& access, const BlockOrder& order,
                           const GridOrder& others);

    std::array<Shard, kShards> shards_;
    // A hash table with linear probing, read without a lock.
    static constexpr std::size_t kSlots = 2 * kMostPages;
    std::vector<Slot> slots_;
    std::mutex pages_mutex_;  // for adding a page
    // Reserved address space: the operating system provides a page of memory at its first access.
    std::span<Page> pages_;
    std::span<CellsOfPage> cells_;
    std::size_t pages_used_ = 0;
    std::atomic<bool> full_{false};
};

// Plain reads of a block that are not recorded yet, so that those of one line can be recorded
// together. They must be recorded before any thread releases or acquires a clock.
class PendingReads {
  public:
    using Note = std::function<void(const Run&, Address line)>;

    PendingReads() : sets_(kSets) {}

    // Adds an access within one line, by a thread of the block in an epoch. Returns false if
    // make_room() has to be called first.
    bool add(const Access& access, Epoch epoch, std::uint16_t block) {
        const Address line = access.address / kLineBytes;
        const LineWords words = words_of(access);
        const Reads* other = nullptr;
        for (Reads& reads : sets_[number_of_set(line)]) {
            Run& run = reads.run;
            if (reads.line != line || run.words == 0 || run.key.epoch != epoch || run.key.block != block)
                continue;
            const auto first = static_cast<unsigned>(std::countr_zero(words));
            const auto last = static_cast<unsigned>(std::bit_width(words)) - 1;
            if (run.key.place == access.place && run.thread.extend(run.words, access.thread, first, last)) {
                run.words |= words;
                return true;
            }
            // Two other threads have already read the word.
            if ((words & ~run.words) != 0) continue;
            if (other != nullptr &&
                two_readers_suffice(run.thread(first), other->run.thread(first), access.thread) &&
                two_readers_suffice(run.thread(last), other->run.thread(last), access.thread))
                return true;
            other = &reads;
        }
        return false;
    }
    // The same for reads of several threads, which one instruction has made of that line.
    bool add(const Run& reads, Address line) {
        const Run* other = nullptr;
        for (Reads& known : sets_[number_of_set(line)]) {
            Run& run = known.run;
            if (known.line != line || run.words == 0 || run.key.epoch != reads.key.epoch ||
                run.key.block != reads.key.block)
                continue;
            if (run.key.place == reads.key.place && run.thread == reads.thread) {
                run.words |= reads.words;
                return true;
            }
            if ((reads.words & ~run.words) != 0) continue;
            if (other != nullptr && have_enough_readers(*other, run, reads)) return true;
            other = &run;
        }
        return false;
    }
    // Forgets the thread's read of these bytes in that epoch.
    void take_back(Address address, unsigned bytes, unsigned thread, Epoch epoch) {
        const Address line = address / kLineBytes;
        if (bytes < 4 || address % bytes != 0) return;
        const LineWords words = line_words(address % kLineBytes / 4, bytes / 4);
        for (Reads& reads : sets_[number_of_set(line)]) {
            Run& run = reads.run;
            if (reads.line != line || (words & ~run.words) != 0 || run.key.epoch != epoch) continue;
            const auto first = static_cast<unsigned>(std::countr_zero(words));
            const auto last = static_cast<unsigned>(std::bit_width(words)) - 1;
            if (!run.thread.is(thread, first, last)) continue;
            run.words &= static_cast<LineWords>(~words);
            return;
        }
    }
    // A read at the address is likely to follow.
    void prefetch(Address address) const { __builtin_prefetch(&sets_[number_of_set(address / kLineBytes)]); }
    // As add(), after `note` has been called with the reads that occupied its place.
    void make_room(const Access& access, Epoch epoch, std::uint16_t block, const Note& note) {
        make_room({{epoch, access.place, block, false}, ThreadOfWord(access.thread), words_of(access)},
                  access.address / kLineBytes, note);
    }
    void make_room(const Run& reads, Address line, const Note& note);
    void note_all(const Note& note);
    bool empty() const { return used_.empty(); }

  private:
    static constexpr std::size_t kSets = 2048;
    static constexpr Address kLineBytes = 4 * kLineWords;
    struct Reads {
        Address line = 0;
        // No words: the entry is empty.
        Run run;
    };
    struct alignas(64) Set : std::array<Reads, 2> {};

    // Has each word that `reads` reads two readers already, of `a` and of `b`?
    static bool have_enough_readers(const Run& a, const Run& b, const Run& reads) {
        for (unsigned left = reads.words; left != 0; left &= left - 1) {
            const auto word = static_cast<unsigned>(std::countr_zero(left));
            if (!two_readers_suffice(a.thread(word), b.thread(word), reads.thread(word))) return false;
        }
        return true;
    }
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
    // Returns the first unwritten of these bytes, or -1. From now on all of them count as written,
    // so that they are reported only once.
    std::ptrdiff_t first_unwritten(std::size_t first, std::size_t count) {
        return all() ? -1 : first_unwritten_of_some(first, count);
    }
    // Are all bytes written?
    bool all() const { return all_.load(std::memory_order_relaxed); }

  private:
    void mark_some(std::size_t first, std::size_t count);
    std::ptrdiff_t first_unwritten_of_some(std::size_t first, std::size_t count);

    std::size_t size_;
    std::atomic<bool> all_{false};
    // For each word, a bit for each byte: writing a whole word then need not read the old bits.
    std::vector<std::atomic<std::uint8_t>> words_;
};

}  // namespace cuda_on_cpu::inspector
