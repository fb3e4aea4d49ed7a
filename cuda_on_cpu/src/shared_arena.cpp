#include "shared_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>

#include "cuda_on_cpu/thread.h"
#include "device.hpp"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kAlignment = 128;  // dynamic shared memory starts at bank 0

std::size_t rounded_up(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool all_canary(const char* begin, std::size_t size) {
    alignas(2) static const auto canary = [] {
        std::array<char, 512> bytes;
        fill(bytes.data(), bytes.size(), kSharedCanary);
        return bytes;
    }();
    const std::size_t phase = reinterpret_cast<std::uintptr_t>(begin) % 2;
    for (const char* const end = begin + size; begin < end;) {
        const std::size_t part = std::min(canary.size() / 2, static_cast<std::size_t>(end - begin));
        if (std::memcmp(begin, canary.data() + phase, part) != 0) return false;
        begin += part;
    }
    return true;
}

}  // namespace

SharedArena::SharedArena() {
    void* memory = mmap(nullptr, bytes() + 2 * guard_size(), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<char*>(memory) + guard_size();
    accessible_ = begin_ + bytes();
}

SharedArena::~SharedArena() {
    munmap(begin_ - guard_size(), bytes() + 2 * guard_size());
}

// Of the pages before `start`, only the one that holds it can be accessed; its other bytes hold the
// canary.
void SharedArena::begin_at(char* start) {
    char* const page = start - reinterpret_cast<std::uintptr_t>(start) % page_size();
    if (page < accessible_)
        mprotect(page, static_cast<std::size_t>(accessible_ - page), PROT_READ | PROT_WRITE);
    if (page > accessible_) mprotect(accessible_, static_cast<std::size_t>(page - accessible_), PROT_NONE);
    accessible_ = page;
    fill(page, static_cast<std::size_t>(start - page), kSharedCanary);
    canary_end_ = start;
}

// Dynamic shared memory ends at the guard page, so that a read past its end faults at the line that
// does it. Up to 127 bytes of alignment between the two hold the canary.
void SharedArena::begin_block(std::size_t dynamic_bytes) {
    const std::size_t room = rounded_up(dynamic_bytes);
    char* const start = begin_ + bytes() - room;
    dynamic_ = start;
    dynamic_bytes_ = dynamic_bytes;
    if (dynamic_bytes > 0) {
        if (start != canary_end_) begin_at(start);
        fill(start, dynamic_bytes, kSharedPoison);
        fill(start + dynamic_bytes, room - dynamic_bytes, kSharedCanary);
    }
    static_bytes_ = 0;
    entered_.clear();
}

bool SharedArena::intact_behind_dynamic() const {
    const char* const end = static_cast<const char*>(dynamic_) + dynamic_bytes_;
    return all_canary(end, static_cast<std::size_t>(begin_ + bytes() - end));
}

bool SharedArena::intact_before_dynamic() const {
    if (dynamic_bytes_ == 0) return true;
    return all_canary(accessible_, static_cast<std::size_t>(canary_end_ - accessible_));
}

bool SharedArena::holds(const void* address, std::size_t size) const {
    if (!in_arena(address)) return in_static_shared(address);
    const char* const byte = static_cast<const char*>(address);
    const char* const begin = static_cast<const char*>(dynamic_);
    return byte >= begin && byte + size <= begin + dynamic_bytes_;
}

// --- `__shared__` variables ----------------------------------------------------------------------

void SharedObject::take_gap(const SharedGap& gap) {
    const char* const first = static_cast<const char*>(begin);
    if (gap.bytes + sizeof gap.bytes == first) gap_before = sizeof gap.bytes;
    if (gap.bytes == first + size) gap_behind = sizeof gap.bytes;
}

bool SharedArena::enter(const SharedObject& object, bool poison) {
    // With late stores, several threads may get here before the first one has recorded the
    // variable.
    if (std::ranges::find(entered_, object.begin, &SharedObject::begin) != entered_.end()) return false;
    entered_.push_back(object);
    static_bytes_ += object.size;
    if (poison) fill(object.begin, object.size, kSharedPoison);
    char* const begin = static_cast<char*>(object.begin);
    fill(begin - object.gap_before, object.gap_before, kSharedCanary);
    fill(begin + object.size, object.gap_behind, kSharedCanary);
    return true;
}

const SharedObject* SharedArena::written_beside() const {
    const auto is_written_beside = [](const SharedObject& object) {
        const char* const begin = static_cast<const char*>(object.begin);
        return !all_canary(begin - object.gap_before, object.gap_before) ||
               !all_canary(begin + object.size, object.gap_behind);
    };
    const auto found = std::ranges::find_if(entered_, is_written_beside);
    return found == entered_.end() ? nullptr : &*found;
}

std::string SharedArena::over_limits() const {
    const DeviceLimits& limits = device_limits();
    if (static_bytes_ > limits.shared_per_block) {
        return "static shared memory of this kernel is over " + std::to_string(limits.shared_per_block) +
               " bytes; nvcc would refuse it. Use dynamic shared memory";
    }
    if (static_bytes_ + dynamic_bytes_ > limits.shared_per_block_optin) {
        return std::to_string(static_bytes_) + " bytes of static and " + std::to_string(dynamic_bytes_) +
               " bytes of dynamic shared memory are more than a block can have (" +
               std::to_string(limits.shared_per_block_optin) + ")";
    }
    return "";
}

// --- Shared addresses ----------------------------------------------------------------------------

std::size_t SharedArena::address_of(const void* pointer) {
    const auto* const byte = static_cast<const char*>(pointer);
    if (in_arena(pointer)) return static_cast<std::size_t>(byte - begin_);
    const auto within = [byte](const char* window) {
        return byte >= window && byte < window + kWindow * 3 / 4;
    };
    auto window = std::find_if(windows_.begin(), windows_.end(), within);
    if (window == windows_.end()) {
        if (windows_.size() == kMostWindows) return kNoAddress;
        const auto number = reinterpret_cast<std::uintptr_t>(byte);
        window = windows_.insert(window, byte - number % (kWindow / 4) - kWindow / 4);
    }
    return kWindow * static_cast<std::size_t>(window - windows_.begin() + 1) +
           static_cast<std::size_t>(byte - *window);
}

void* SharedArena::at(std::uint64_t address, std::size_t bytes) const {
    const std::size_t window = address / kWindow;
    if (window == 0) {
        char* const byte = begin_ + address;
        const char* const dynamic = static_cast<const char*>(dynamic_);
        return byte >= dynamic && byte + bytes <= dynamic + dynamic_bytes_ ? byte : nullptr;
    }
    if (window > windows_.size()) return nullptr;
    return const_cast<char*>(windows_[window - 1]) + address % kWindow;
}

}  // namespace cuda_on_cpu
