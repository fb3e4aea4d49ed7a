#include "shadow.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <span>
#include <utility>

namespace cuda_on_cpu::inspector {
namespace {

constexpr Address kWord = 4;
constexpr std::uint8_t kWholeWord = 0xF;

// The bytes of an access that are in one word, as a bit mask.
std::uint8_t bytes_in_word(Address word, Address address, std::size_t bytes) {
    const Address begin = std::max(word, address) - word;
    const Address end = std::min(word + kWord, address + bytes) - word;
    return static_cast<std::uint8_t>((1U << end) - (1U << begin));
}

template <class Visit>
void for_each_word(Address address, std::size_t bytes, Visit visit) {
    for (Address word = address / kWord * kWord; word < address + bytes; word += kWord)
        visit(word, bytes_in_word(word, address, bytes));
}

}  // namespace

// --- Shared memory -------------------------------------------------------------------------------

// Accesses by lanes of one warp, in one epoch, at one place, to the same bytes of a word.
struct SharedShadow::Entry {
    Epoch epoch;
    LaneMask lanes;
    ShortPlace place;
    std::uint8_t warp;
    std::uint8_t bytes;  // a bit for each
    AccessKind kind;
};

struct SharedShadow::Cell {
    static constexpr unsigned kInline = 7;

    std::uint32_t block = 0;   // all below is of this block
    Epoch newest = 0;          // of the entries
    std::uint32_t more = 0;    // not 0: all entries are in more_[more - 1]
    std::uint8_t count = 0;    // else so many are in `entries`
    std::uint8_t written = 0;  // a bit for each byte
    std::uint8_t pending = 0;  // bytes that an asynchronous copy will write
    bool any_write = false;    // among the entries
    std::array<Entry, kInline> entries;
};

class SharedShadow::Region : public SharedArray {
  public:
    explicit Region(const SharedArray& array)
        : SharedArray(array),
          first_word_(begin / kWord),
          cells_((begin + size + kWord - 1) / kWord - first_word_) {}

    Cell& cell(Address word) { return cells_[word / kWord - first_word_]; }

    bool written = false;

  private:
    Address first_word_;
    std::vector<Cell> cells_;
};

SharedShadow::SharedShadow() = default;
SharedShadow::~SharedShadow() = default;

const SharedArray& SharedShadow::array_of(const Region& region) {
    return region;
}

void SharedShadow::begin_block() {
    ++block_;
    regions_.clear();
    last_ = nullptr;
    pending_.clear();
    constexpr std::size_t kMostKnown = 64;
    if (known_.size() > kMostKnown) {
        known_.clear();
        more_.clear();
        unused_more_.clear();
    }
}

void SharedShadow::add(const SharedArray& array, bool written) {
    const auto same = std::find_if(known_.begin(), known_.end(), [&](const auto& region) {
        return region->begin == array.begin && region->size == array.size && region->gap == array.gap;
    });
    Region* region =
        same == known_.end() ? known_.emplace_back(std::make_unique<Region>(array)).get() : same->get();
    region->name = array.name;
    region->written = written;
    regions_.push_back(region);
}

SharedShadow::Region* SharedShadow::find(Address address) const {
    if (last_ != nullptr && address - last_->begin < last_->size) return last_;
    for (Region* region : regions_) {
        if (address - region->begin < region->size) return last_ = region;
    }
    for (Region* region : regions_) {
        if (address - (region->begin - region->gap) < region->size + 2 * region->gap) return last_ = region;
    }
    return nullptr;
}

void SharedShadow::clear(Cell& cell) {
    if (cell.more != 0) {
        more_[cell.more - 1].clear();
        unused_more_.push_back(cell.more);
        cell.more = 0;
    }
    cell.count = 0;
    cell.any_write = false;
}

SharedShadow::Cell& SharedShadow::fresh(Region& region, Address word) {
    Cell& cell = region.cell(word);
    if (cell.block != block_) {
        clear(cell);
        cell.block = block_;
        cell.written = region.written ? 0xF : 0;
        cell.pending = 0;
    }
    return cell;
}

bool SharedShadow::usual_read(Region& region, const Access& access, const BlockOrder& order) {
    if (access.kind != AccessKind::load || !access.in_one_line()) return false;
    if (access.address - region.begin > region.size ||
        region.begin + region.size - access.address < access.bytes)
        return false;
    const Address end = access.address + access.bytes;
    for (Address word = access.address; word < end; word += kWord) {
        const Cell& cell = region.cell(word);
        if (cell.block != block_ || cell.written != kWholeWord || cell.pending != 0) return false;
        if (cell.any_write && cell.newest >= order.phase_start()) return false;
    }
    for (Address word = access.address; word < end; word += kWord) {
        Cell& cell = region.cell(word);
        if (cell.newest < order.phase_start()) clear(cell);
        note(cell, access, kWholeWord, order);
    }
    return true;
}

void SharedShadow::access(Region& region, const Access& access, const BlockOrder& order, SharedSink& sink) {
    if (usual_read(region, access, order)) return;
    Address unwritten = 0;  // the first byte
    unsigned unwritten_bytes = 0;
    bool reported_pending = false;
    for_each_word(access.address, access.bytes, [&](Address word, std::uint8_t bytes) {
        Cell& cell = fresh(region, word);
        if ((cell.pending & bytes) != 0) {
            if (!std::exchange(reported_pending, true)) report_pending(access, word, bytes, sink);
            return;  // not also reported as a race with the copy
        }
        if (const auto missing = static_cast<unsigned>(bytes & ~cell.written); missing != 0) {
            if (unwritten_bytes == 0) unwritten = word + static_cast<unsigned>(std::countr_zero(missing));
            unwritten_bytes += static_cast<unsigned>(std::popcount(missing));
            cell.written |= bytes;  // an unwritten byte is reported once
        }
        check(cell, access, bytes, word, order, sink);
        note(cell, access, bytes, order);
    });
    if (!reads(access.kind) || unwritten_bytes == 0) return;
    if (access.bytes <= kWord || unwritten_bytes == access.bytes) sink.uninitialised(access, unwritten);
}

void SharedShadow::take_back(Region& region, Address address, unsigned bytes, unsigned thread,
                             const BlockOrder& order) {
    if (address < region.begin || address + bytes > region.begin + region.size) return;
    for_each_word(address, bytes, [&](Address word, std::uint8_t) {
        Cell& cell = fresh(region, word);
        const std::span<Entry> entries =
            cell.more != 0 ? std::span(more_[cell.more - 1]) : std::span(cell.entries.data(), cell.count);
        for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
            const LaneMask lane = LaneMask{1} << thread % kLanes;
            if (entry->kind != AccessKind::load || entry->warp != thread / kLanes ||
                entry->epoch != order.epoch(thread) || (entry->lanes & lane) == 0)
                continue;
            entry->lanes &= ~lane;
            return;
        }
    });
}

void SharedShadow::check(Cell& cell, const Access& access, std::uint8_t bytes, Address word,
                         const BlockOrder& order, SharedSink& sink) {
    if (cell.newest < order.phase_start()) {
        clear(cell);
        return;
    }
    if (!cell.any_write && !writes(access.kind)) return;
    const std::span<Entry> entries =
        cell.more != 0 ? std::span(more_[cell.more - 1]) : std::span(cell.entries.data(), cell.count);
    // A thread that has accessed a word atomically is ordered after earlier atomic accesses to it.
    const auto own_atomic = [&](const Entry& e) {
        return !is_plain(e.kind) && !of_thread(e.kind) && e.warp == access.thread / kLanes &&
               (e.lanes >> access.thread % kLanes & 1U) != 0;
    };
    for (const Entry& entry : entries) {
        if ((entry.bytes & bytes) == 0 || !conflict(entry.kind, access.kind)) continue;
        if (is_atomic(entry.kind) && std::any_of(entries.begin(), entries.end(), own_atomic)) continue;
        for (LaneMask left = entry.lanes; left != 0; left &= left - 1) {
            const unsigned thread = entry.warp * kLanes + static_cast<unsigned>(std::countr_zero(left));
            if (order.ordered(thread, entry.epoch, access.thread)) continue;
            const auto first =
                static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(entry.bytes & bytes)));
            sink.race(access, Earlier{thread, entry.kind, entry.place, 0}, word + first);
            return;
        }
    }
}

void SharedShadow::note(Cell& cell, const Access& access, std::uint8_t bytes, const BlockOrder& order) {
    const unsigned warp = access.thread / kLanes;
    const Epoch epoch = order.epoch(access.thread);
    const Entry entry{epoch,        LaneMask{1} << access.thread % kLanes,
                      access.place, static_cast<std::uint8_t>(warp),
                      bytes,        access.kind};
    const auto same = [&](const Entry& e) {
        return e.epoch == entry.epoch && e.place == entry.place && e.warp == entry.warp &&
               e.bytes == entry.bytes && e.kind == entry.kind;
    };
    const bool write = writes(access.kind);
    std::vector<Entry>* more = cell.more != 0 ? &more_[cell.more - 1] : nullptr;
    const std::span<Entry> entries =
        more != nullptr ? std::span(*more) : std::span(cell.entries.data(), cell.count);
    if (!write) {
        // Where many warps read a word, most readers have no entry yet. Only the last few entries
        // are compared, unless there are many.
        constexpr std::size_t kMany = 64;
        constexpr std::size_t kFew = 4;
        const std::size_t last = entries.size() < kMany ? entries.size() - std::min(entries.size(), kFew) : 0;
        for (std::size_t i = entries.size(); i-- > last;) {
            if (!same(entries[i])) continue;
            entries[i].lanes |= entry.lanes;
            return;
        }
        if (entries.size() < kMany) {
            append(cell, entry);
            return;
        }
    }
    // A later access that is ordered after this one is also ordered after everything that happens
    // before this one, so those entries can be dropped.
    const auto superseded = [&](const Entry& e) {
        if ((e.bytes & ~bytes) != 0) return false;
        // An access that conflicts with more accesses stays.
        if (write) return strength(access.kind) <= strength(e.kind);
        return e.kind == access.kind && order.all_ordered(e.warp, e.epoch, access.thread);
    };
    const auto kept = std::remove_if(entries.begin(), entries.end(), superseded);
    const auto count = static_cast<std::size_t>(kept - entries.begin());
    if (more != nullptr) {
        more->resize(count);
    } else {
        cell.count = static_cast<std::uint8_t>(count);
    }
    if (count == 0) cell.any_write = false;
    append(cell, entry);
}

void SharedShadow::append(Cell& cell, const Entry& entry) {
    constexpr std::size_t kMost = 96;  // entries of one word; then the oldest is dropped
    cell.newest = std::max(cell.newest, entry.epoch);
    cell.any_write |= writes(entry.kind);
    if (cell.more == 0 && cell.count < Cell::kInline) {
        cell.entries[cell.count++] = entry;
        return;
    }
    if (cell.more == 0) {
        if (unused_more_.empty()) {
            more_.emplace_back();
            unused_more_.push_back(static_cast<std::uint32_t>(more_.size()));
        }
        cell.more = unused_more_.back();
        unused_more_.pop_back();
        more_[cell.more - 1].assign(cell.entries.begin(), cell.entries.end());
        cell.count = 0;
    }
    std::vector<Entry>& more = more_[cell.more - 1];
    if (more.size() >= kMost) more.erase(more.begin());
    more.push_back(entry);
}

void SharedShadow::visit_writes(Region& region, Address address, std::size_t bytes, const VisitWrite& visit) {
    for_each_word(address, bytes, [&](Address word, std::uint8_t) {
        const Cell& cell = region.cell(word);
        if (cell.block != block_ || !cell.any_write) return;
        const std::span<const Entry> entries = cell.more != 0
                                                   ? std::span<const Entry>(more_[cell.more - 1])
                                                   : std::span<const Entry>(cell.entries.data(), cell.count);
        for (const Entry& entry : entries) {
            if (!writes(entry.kind)) continue;
            for (LaneMask left = entry.lanes; left != 0; left &= left - 1)
                visit(entry.warp * kLanes + static_cast<unsigned>(std::countr_zero(left)), entry.epoch,
                      entry.place, word);
        }
    });
}

// --- Asynchronous copies

void SharedShadow::issue_copy(Region& region, const Access& copy, const BlockOrder& order, SharedSink& sink) {
    bool reported_pending = false;
    for_each_word(copy.address, copy.bytes, [&](Address word, std::uint8_t bytes) {
        Cell& cell = fresh(region, word);
        if ((cell.pending & bytes) != 0) {
            if (!std::exchange(reported_pending, true)) report_pending(copy, word, bytes, sink);
        } else {
            check(cell, copy, bytes, word, order, sink);
        }
        note(cell, copy, bytes, order);
        cell.pending |= bytes;
    });
    pending_.push_back({copy, false});
}

void SharedShadow::complete_copy(Region& region, unsigned thread, Address address, unsigned bytes,
                                 const BlockOrder& order) {
    const auto copy = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& pending) {
        return !pending.done && pending.copy.address == address && pending.copy.thread == thread;
    });
    if (copy == pending_.end()) return;
    complete(region, *copy, bytes, order);
}

void SharedShadow::end_copy(Region& region, Address address, unsigned engine, const BlockOrder& order) {
    const auto copy = std::ranges::find_if(
        pending_, [&](const Pending& pending) { return !pending.done && pending.copy.address == address; });
    if (copy == pending_.end()) return;
    copy->copy.thread = engine;
    complete(region, *copy, copy->copy.bytes, order);
}

// From now on the copy is a write of its thread.
void SharedShadow::complete(Region& region, Pending& copy, unsigned bytes, const BlockOrder& order) {
    copy.done = true;
    for_each_word(copy.copy.address, bytes, [&](Address word, std::uint8_t in_word) {
        Cell& cell = fresh(region, word);
        cell.pending &= static_cast<std::uint8_t>(~in_word);
        cell.written |= in_word;
        note(cell, copy.copy, in_word, order);
    });
    forget_done();
}

void SharedShadow::forget_done() {
    while (!pending_.empty() && pending_.back().done)
        pending_.pop_back();
    constexpr std::size_t kTidy = 4096;
    if (pending_.size() > kTidy) std::erase_if(pending_, [](const Pending& pending) { return pending.done; });
}

void SharedShadow::report_pending(const Access& access, Address word, std::uint8_t bytes,
                                  SharedSink& sink) const {
    for (const Pending& pending : pending_) {
        if (pending.done) continue;
        const Access& copy = pending.copy;
        if (word + kWord <= copy.address || copy.address + copy.bytes <= word) continue;
        const auto overlap = static_cast<unsigned>(bytes & bytes_in_word(word, copy.address, copy.bytes));
        if (overlap == 0) continue;
        sink.missing_wait(access, Earlier{copy.thread, copy.kind, copy.place, 0},
                          word + static_cast<unsigned>(std::countr_zero(overlap)));
        return;
    }
}

// --- Device memory -------------------------------------------------------------------------------

// Locks a line. If the line is of another generation, it is emptied and gets this one.
class GlobalShadow::Lock {
  public:
    Lock(Line& line, Generation generation) : line_(line), state_(generation) {
        Generation before = line.state.load(std::memory_order_relaxed);
        do {
            before &= ~kBusy;
        } while (!line.state.compare_exchange_weak(before, before | kBusy, std::memory_order_acquire,
                                                   std::memory_order_relaxed));
        if ((before & ~kWordByWord) == generation) {
            state_ = before;
        } else {
            line.runs.clear();
        }
    }
    ~Lock() { line_.state.store(state_, std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    bool word_by_word() const { return (state_ & kWordByWord) != 0; }
    void set_word_by_word() { state_ |= kWordByWord; }

  private:
    Line& line_;
    Generation state_;
};

namespace {

template <class T>
std::span<T> reserve_zeros(std::size_t count) {
    void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return {static_cast<T*>(memory), count};
}

template <class T>
void back_to_zeros(std::span<T> memory) {
    madvise(memory.data(), memory.size_bytes(), MADV_DONTNEED);
}

}  // namespace

GlobalShadow::GlobalShadow()
    : slots_(kSlots),
      pages_(reserve_zeros<Page>(kMostPages)),
      cells_(reserve_zeros<CellsOfPage>(kMostPages)) {
    madvise(pages_.data(), pages_.size_bytes(), MADV_HUGEPAGE);
}

GlobalShadow::~GlobalShadow() {
    munmap(pages_.data(), pages_.size_bytes());
    munmap(cells_.data(), cells_.size_bytes());
}

// Adjacent pages have adjacent slots, in one cache line.
std::size_t GlobalShadow::slot_of(Address number) {
    constexpr Address kTogether = 64 / sizeof(Slot);
    return ((number / kTogether * 0x9E3779B97F4A7C15U >> 32) * kTogether + number % kTogether) % kSlots;
}

std::size_t GlobalShadow::page(Address number) {
    for (std::size_t slot = slot_of(number);; slot = (slot + 1) % kSlots) {
        const std::size_t page = slots_[slot].page.load(std::memory_order_acquire);
        if (page == kNoPage) return add_page(number);
        if (slots_[slot].number == number) return page;
    }
}

void GlobalShadow::prefetch(Address address) const {
    const Slot& slot = slots_[slot_of(address / kPageBytes)];
    const std::size_t page = slot.page.load(std::memory_order_acquire);
    if (page != kNoPage && slot.number == address / kPageBytes)
        __builtin_prefetch(&pages_[page][address % kPageBytes / kLineBytes], 1);
}

std::size_t GlobalShadow::add_page(Address number) {
    if (full()) return kNoPage;
    const std::scoped_lock lock(pages_mutex_);
    std::size_t slot = slot_of(number);
    for (; slots_[slot].page != kNoPage; slot = (slot + 1) % kSlots) {
        if (slots_[slot].number == number)
            return slots_[slot].page;  // another OS thread added the page first
    }
    if (pages_used_ == pages_.size()) {
        full_ = true;
        return kNoPage;
    }
    slots_[slot].number = number;
    slots_[slot].page.store(pages_used_, std::memory_order_release);
    return pages_used_++;
}

void GlobalShadow::forget_atomics() {
    for (Shard& shard : shards_) {
        const std::scoped_lock lock(shard.mutex);
        shard.atomics.clear();
    }
}

void GlobalShadow::forget() {
    forget_atomics();
    for (Slot& slot : slots_)
        slot.page = kNoPage;
    back_to_zeros(pages_);
    back_to_zeros(cells_);
    pages_used_ = 0;
    full_ = false;
}

// Does an operation of a thread of a block in an epoch happen before the current operation of
// thread `now` of this block?
bool GlobalShadow::in_order(unsigned block, unsigned thread, Epoch then, unsigned now,
                            const BlockOrder& order, const GridOrder& others) {
    if (block == others.number() && order.ordered(thread, then, now)) return true;
    // Threads of one block can also be ordered through another block.
    return others.ordered(block, thread, then, now);
}

// The most frequent read: one more thread of a block reads a word that another of its threads has
// just read. The identity of that thread matters only for a later write by a thread of the same
// block, and for the rule that two readers of two warps are enough. Another OS thread may change
// the cell at the same time; this then sees either the old or the new state.
bool GlobalShadow::is_one_more_reader(const Cell& cell, const LastAccess& self) {
    if (!cell.last_reader.alike(self)) return false;
    const LastAccess& first = cell.first_reader;
    return cell.last_reader.thread == self.thread ||
           (first.bytes != 0 &&
            (first.block != self.block ||
             (first.alike(self) && two_readers_suffice(first.thread, cell.last_reader.thread, self.thread))));
}

// Returns the earlier access that races with this one; .bytes == 0 if there is none.
GlobalShadow::LastAccess GlobalShadow::note(Cell& cell, const LastAccess& self, const Access& access,
                                            const BlockOrder& order, const GridOrder& others) {
    // A thread that has accessed a word atomically is ordered after earlier atomic accesses to it.
    const LastAccess& last = cell.last_reader;
    const bool own_atomic =
        last.bytes != 0 && !is_plain(last.kind) && !of_thread(last.kind) && last.block == self.block;
    const auto bad = [&](const LastAccess& earlier) {
        if ((earlier.bytes & self.bytes) == 0) return false;
        const bool in_conflict = earlier.block == self.block
                                     ? conflict(earlier.kind, self.kind)
                                     : conflict_between_blocks(earlier.kind, self.kind);
        const bool after_own = own_atomic && is_atomic(earlier.kind) && !is_atomic(self.kind);
        return in_conflict && !after_own &&
               !in_order(earlier.block, earlier.thread, earlier.epoch, access.thread, order, others);
    };
    LastAccess race;
    if (bad(cell.writer)) race = cell.writer;
    if (writes(self.kind)) {
        if (race.bytes == 0 && bad(cell.last_reader)) race = cell.last_reader;
        if (race.bytes == 0 && bad(cell.first_reader)) race = cell.first_reader;
        // A plain write also conflicts with a later atomic access of the same block, so it is kept.
        const bool keep = strength(self.kind) > strength(cell.writer.kind) && cell.writer.bytes != 0 &&
                          cell.writer.block == self.block;
        if (!keep) cell.writer = self;
        cell.last_reader.bytes = cell.first_reader.bytes = 0;
    } else {
        const bool other_block_first = cell.first_reader.bytes != 0 && cell.first_reader.block != self.block;
        if (last.bytes != 0 &&
            (last.block != self.block || (last.thread != self.thread && !other_block_first)))
            cell.first_reader = last;
        cell.last_reader = self;
    }
    return race;
}

// Copies the runs of a line to its cells, word by word.
void GlobalShadow::spread(const LineOfRuns& runs, std::span<Cell, kLineWords> cells) {
    std::ranges::fill(cells, Cell{});
    runs.for_each([&](const RunKey& key, unsigned thread, unsigned word) {
        Cell& cell = cells[word];
        const LastAccess one{key.epoch,  key.place,
                             key.block,  static_cast<std::uint16_t>(thread),
                             kWholeWord, key.write ? AccessKind::store : AccessKind::load};
        if (key.write) {
            cell.writer = one;
            return;
        }
        // Two readers are kept, of two blocks if possible.
        const LastAccess& last = cell.last_reader;
        if (last.bytes != 0 && (cell.first_reader.bytes == 0 || last.block != one.block))
            cell.first_reader = last;
        cell.last_reader = one;
    });
}

// Records the words of one access, one after the other. A race is reported once, or word by word if
// both accesses are plain writes.
class GlobalShadow::WordByWord {
  public:
    WordByWord(GlobalShadow& shadow, const Access& access, Generation generation, const BlockOrder& order,
               const GridOrder& others, GlobalSink& sink)
        : shadow_(shadow),
          access_(access),
          generation_(generation),
          order_(order),
          others_(others),
          sink_(sink),
          self_{order.epoch(access.thread),
                access.place,
                static_cast<std::uint16_t>(others.number()),
                static_cast<std::uint16_t>(access.thread),
                0,
                access.kind} {}

    void note(std::size_t page, Address word, std::uint8_t bytes) {
        const std::size_t number = word % kPageBytes / kLineBytes;
        Line& line = shadow_.pages_[page][number];
        const std::span<Cell, kLineWords> cells(&shadow_.cells_[page][number * kLineWords], kLineWords);
        Cell& cell = cells[word % kLineBytes / kWord];
        self_.bytes = bytes;
        if (!writes(access_.kind) &&
            line.state.load(std::memory_order_relaxed) == (generation_ | kWordByWord) &&
            is_one_more_reader(cell, self_))
            return;
        LastAccess race;
        {
            Lock lock(line, generation_);
            if (!lock.word_by_word()) {
                spread(line.runs, cells);
                lock.set_word_by_word();
            }
            race = GlobalShadow::note(cell, self_, access_, order_, others_);
        }
        if (race.bytes == 0) return;
        const bool two_writes = is_store(race.kind) && is_store(self_.kind);
        if (!two_writes && std::exchange(reported_, true)) return;
        const auto first = static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(race.bytes & bytes)));
        sink_.race(access_, Earlier{race.thread, race.kind, race.place, race.block, race.epoch},
                   word + first);
    }

  private:
    GlobalShadow& shadow_;
    const Access& access_;
    Generation generation_;
    const BlockOrder& order_;
    const GridOrder& others_;
    GlobalSink& sink_;
    LastAccess self_;
    bool reported_ = false;
};

// Returns true if the run is recorded and has no race.
bool GlobalShadow::note_run(Line& line, const Run& run, Generation generation, const BlockOrder& order,
                            const GridOrder& others) {
    const Lock lock(line, generation);
    return !lock.word_by_word() &&
           line.runs.note(run, [&](Epoch then, std::uint16_t block, unsigned thread, unsigned now) {
               return in_order(block, thread, then, now, order, others);
           });
}

void GlobalShadow::access(const Access& access, Generation generation, const BlockOrder& order,
                          const GridOrder& others, GlobalSink& sink) {
    if (access.in_one_line() && is_plain(access.kind)) {
        const std::size_t page = this->page(access.address / kPageBytes);
        if (page == kNoPage) return;
        Run run;
        run.key.epoch = order.epoch(access.thread);
        run.key.place = access.place;
        run.key.block = static_cast<std::uint16_t>(others.number());
        run.key.write = access.kind == AccessKind::store;
        run.thread = ThreadOfWord(access.thread);
        run.words = line_words(access.address % kLineBytes / kWord, access.bytes / kWord);
        Line& line = pages_[page][access.address % kPageBytes / kLineBytes];
        if (note_run(line, run, generation, order, others)) return;
    }
    WordByWord words(*this, access, generation, order, others, sink);
    std::size_t page = 0;
    Address number = ~Address{0};
    for_each_word(access.address, access.bytes, [&](Address word, std::uint8_t bytes) {
        if (std::exchange(number, word / kPageBytes) != word / kPageBytes) page = this->page(number);
        if (page != kNoPage) words.note(page, word, bytes);
    });
}

void GlobalShadow::reads(const Run& run, Address line, Generation generation, const BlockOrder& order,
                         const GridOrder& others, GlobalSink& sink) {
    const std::size_t page = this->page(line / kPageBytes);
    if (page == kNoPage) return;
    if (note_run(pages_[page][line % kPageBytes / kLineBytes], run, generation, order, others)) return;
    for (unsigned left = run.words; left != 0;) {
        const auto first = static_cast<unsigned>(std::countr_zero(left));
        const Access access{run.thread(first), line + first * kWord, kWord, AccessKind::load, run.key.place};
        WordByWord words(*this, access, generation, order, others, sink);
        for (; left != 0; left &= left - 1) {
            const auto word = static_cast<unsigned>(std::countr_zero(left));
            if (run.thread(word) != access.thread) break;
            words.note(page, line + word * kWord, kWholeWord);
        }
    }
}

bool GlobalShadow::conflicts_with(Generation launch, AccessKind kind, Address word, std::uint8_t bytes,
                                  Earlier& earlier) {
    constexpr unsigned kOfLaunch = 32;  // the upper bits, but for kBusy and kWordByWord
    const std::size_t page = this->page(word / kPageBytes);
    if (page == kNoPage) return false;
    const std::size_t number = word % kPageBytes / kLineBytes;
    Line& line = pages_[page][number];
    const Generation last = line.state.load(std::memory_order_relaxed) & ~(kBusy | kWordByWord);
    if (last >> kOfLaunch != launch >> kOfLaunch) return false;
    Cell cell;
    {
        const Lock lock(line, last);
        std::array<Cell, kLineWords> of_runs{};
        const std::span<Cell, kLineWords> cells(&cells_[page][number * kLineWords], kLineWords);
        if (!lock.word_by_word()) spread(line.runs, of_runs);
        cell =
            (lock.word_by_word() ? cells : std::span<Cell, kLineWords>(of_runs))[word % kLineBytes / kWord];
    }
    for (const LastAccess& each : {cell.writer, cell.first_reader, cell.last_reader}) {
        if ((each.bytes & bytes) == 0 || !conflict(each.kind, kind)) continue;
        earlier = {each.thread, each.kind, each.place, each.block};
        return true;
    }
    return false;
}

// --- Pending reads

void PendingReads::make_room(const Run& reads, Address line, const Note& note) {
    const std::size_t number = number_of_set(line);
    Set& set = sets_[number];
    if (set[0].run.words == 0) {
        used_.push_back(static_cast<std::uint16_t>(number));
    } else {
        if (set[1].run.words != 0) note(set[1].run, set[1].line * kLineBytes);
        set[1] = set[0];
    }
    set[0] = {line, reads};
}

void PendingReads::note_all(const Note& note) {
    for (const std::uint16_t number : used_) {
        for (Reads& reads : sets_[number]) {
            if (reads.run.words != 0) note(reads.run, reads.line * kLineBytes);
            reads.run.words = 0;
        }
    }
    used_.clear();
}

void GlobalShadow::at_atomic(Address address, Generation generation,
                             const std::function<void(SharedBlockClocks&)>& change) {
    Shard& shard = shards_[address / kLineBytes % kShards];
    const std::scoped_lock lock(shard.mutex);
    constexpr Address kOthers = 0;
    const bool known = shard.atomics.size() < kMostAtomics || shard.atomics.contains(address);
    auto& [then, knowledge] = shard.atomics[known ? address : kOthers];
    if (then < generation) {
        then = generation;
        knowledge.reset();
    }
    change(knowledge);
}

// --- Which bytes have been written

WrittenBytes::WrittenBytes(std::size_t size) : size_(size), words_(size / kWord + 1) {}

void WrittenBytes::mark_some(std::size_t first, std::size_t count) {
    if (first == 0 && count >= size_) {
        all_ = true;
        return;
    }
    for_each_word(first, std::min(count, size_ - first), [&](std::size_t word, std::uint8_t bytes) {
        std::atomic<std::uint8_t>& written = words_[word / kWord];
        const std::uint8_t before = written.load(std::memory_order_relaxed);
        if (bytes == kWholeWord) {
            if (before != kWholeWord) written.store(kWholeWord, std::memory_order_relaxed);
        } else if ((before & bytes) != bytes) {
            written.fetch_or(bytes, std::memory_order_relaxed);
        }
    });
}

bool WrittenBytes::none_written(std::size_t first, std::size_t count) const {
    if (all()) return count == 0;
    bool none = true;
    for_each_word(first, std::min(count, size_ - first), [&](std::size_t word, std::uint8_t bytes) {
        none = none && (words_[word / kWord].load(std::memory_order_relaxed) & bytes) == 0;
    });
    return none;
}

std::ptrdiff_t WrittenBytes::first_unwritten_of_some(std::size_t first, std::size_t count) {
    std::ptrdiff_t found = -1;
    for_each_word(first, std::min(count, size_ - first), [&](std::size_t word, std::uint8_t bytes) {
        const auto missing =
            static_cast<unsigned>(bytes & ~words_[word / kWord].load(std::memory_order_relaxed));
        if (found < 0 && missing != 0) found = static_cast<std::ptrdiff_t>(word) + std::countr_zero(missing);
    });
    if (found >= 0) mark(first, count);
    return found;
}

}  // namespace cuda_on_cpu::inspector
