// The shared memory of the running block: its dynamic shared memory, a list of the `__shared__`
// variables that it has reached, and the 32-bit shared addresses of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pages.hpp"

namespace cuda_on_cpu {

struct SharedGap;

struct SharedObject {
    void* begin;
    std::size_t size;
    const char* name;
    // Unused bytes on each side, which hold a canary.
    std::size_t gap_before = 0;
    std::size_t gap_behind = 0;

    // Adds the gap to the unused bytes, if it begins where the object ends, or ends where it
    // begins.
    void take_gap(const SharedGap& gap);
};

class SharedArena {
  public:
    SharedArena();
    ~SharedArena();
    SharedArena(const SharedArena&) = delete;
    SharedArena& operator=(const SharedArena&) = delete;

    // A new block: `dynamic_bytes` of dynamic shared memory, poisoned, and no `__shared__`
    // variables yet.
    void begin_block(std::size_t dynamic_bytes);
    // False: the block has written past the end of its dynamic shared memory, or before its start.
    bool intact_behind_dynamic() const;
    bool intact_before_dynamic() const;
    // The block failed: what lies before its dynamic shared memory may be overwritten.
    void renew_canary() { canary_end_ = nullptr; }

    // The arena is as large as an SM's shared memory. Dynamic shared memory is at its end, before a
    // guard page. Before its start lies a canary, and before that nothing that can be accessed.
    char* begin() const { return begin_; }
    void* dynamic() const { return dynamic_; }
    std::size_t dynamic_bytes() const { return dynamic_bytes_; }
    std::size_t static_bytes() const { return static_bytes_; }
    bool in_arena(const void* address) const { return address >= begin_ && address < begin_ + bytes(); }
    bool beside_dynamic(const void* address) const {
        return (address >= begin_ - guard_size() && address < dynamic_) ||
               (address >= begin_ + bytes() && address < begin_ + bytes() + guard_size());
    }
    // Does [address, address + size) belong to the block? The rest of the arena does not.
    bool holds(const void* address, std::size_t size) const;

    // A thread has reached the declaration of a `__shared__` variable. False: another thread
    // reached it before.
    bool enter(const SharedObject& object, bool poison);
    // A variable whose unused bytes the block has overwritten; null: none.
    const SharedObject* written_beside() const;
    // Why a GPU would refuse a block with that much shared memory; "": it would accept it.
    std::string over_limits() const;

    // A shared address has 32 bits. In the arena it is the offset from the start. Memory elsewhere,
    // such as `__shared__` variables and other blocks of a cluster, has a window of addresses that
    // begins at a multiple of 2^24.
    static constexpr std::size_t kNoAddress = ~std::size_t{0};
    // kNoAddress: all windows are taken.
    std::size_t address_of(const void* pointer);
    // Null: the address is not in the block's shared memory.
    void* at(std::uint64_t address, std::size_t bytes) const;
    static constexpr std::size_t kMostWindows = 255;

  private:
    void begin_at(char* start);

    static std::size_t bytes() { return round_up_to_pages(std::size_t{228} << 10); }
    static constexpr std::size_t kWindow = std::size_t{1} << 24;

    char* begin_ = nullptr;
    char* accessible_ = nullptr;  // first page of the arena that can be accessed
    char* canary_end_ = nullptr;  // the canary before dynamic shared memory begins with that page
    void* dynamic_ = nullptr;
    std::size_t dynamic_bytes_ = 0;
    std::size_t static_bytes_ = 0;
    std::vector<SharedObject> entered_;  // `__shared__` variables
    // The start of each window: the upper 8 bits of a shared address are the index here, plus 1.
    std::vector<const char*> windows_;
};

// Is the byte among the thread-local objects of this OS thread, where `__shared__` variables are?
bool in_static_shared(const void* address);
// Is the byte less than 1 MB away from them?
bool beside_static_shared(const void* address);

}  // namespace cuda_on_cpu
