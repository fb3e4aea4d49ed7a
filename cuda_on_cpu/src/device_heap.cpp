#include "device_heap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "cuda_on_cpu/device_heap.h"
#include "cuda_on_cpu/host_memory.h"
#include "cuda_on_cpu/thread.h"
#include "current_device.hpp"
#include "pages.hpp"

namespace cuda_on_cpu {
namespace {

// The memory itself is the host's. What kernels have of it is counted.
struct Heap {
    std::size_t size = std::size_t{8} << 20;
    std::size_t used = 0;
    bool in_use = false;
};
struct Piece {
    std::size_t size;
    int device;
    bool freed = false;  // it is still there: a destructor runs after `delete` has freed the memory
};
struct Heaps {
    std::mutex mutex;
    std::array<Heap, kMostDevices> of_device;
    std::array<std::atomic<bool>, kMostDevices> were_full{};  // asked by a signal handler
    std::map<std::uintptr_t, Piece> pieces;
};
// Never destroyed, because destructors of static objects may launch kernels.
Heaps& heaps() {
    static auto& all = *new Heaps;
    return all;
}

// The caller holds the lock.
Heap& current_heap(Heaps& all) {
    return all.of_device[static_cast<std::size_t>(current_device())];
}

// The piece that contains the byte. A pointer to an array lies behind its length, and one to a base
// class may lie inside. The caller holds the lock.
Piece* piece_at(Heaps& all, std::uintptr_t byte) {
    auto behind = all.pieces.upper_bound(byte);
    if (behind == all.pieces.begin()) return nullptr;
    auto& [begin, piece] = *--behind;
    return byte < begin + piece.size || byte == begin ? &piece : nullptr;
}

// Memory that was freed has been given out again. The caller holds the lock.
void forget_freed(Heaps& all, std::uintptr_t begin, std::size_t size) {
    const auto end = all.pieces.lower_bound(begin + std::max<std::size_t>(size, 1));
    auto first = all.pieces.lower_bound(begin);
    if (first != all.pieces.begin() && std::prev(first)->first + std::prev(first)->second.size > begin)
        --first;
    all.pieces.erase(first, end);
}

// Takes `bytes` from the heap for memory that `allocate` returns.
template <class Allocate>
void* take(std::size_t bytes, Allocate allocate) {
    constexpr std::size_t kAlignment = 16;
    if (!in_kernel()) return allocate();
    Heaps& all = heaps();
    const std::size_t size = round_up(bytes, kAlignment);
    bool fits = false;
    {
        const std::scoped_lock lock(all.mutex);
        Heap& heap = current_heap(all);
        heap.in_use = true;
        fits = size >= bytes && size <= heap.size - heap.used;
        if (fits) heap.used += size;
    }
    void* const memory = fits ? allocate() : nullptr;
    const std::scoped_lock lock(all.mutex);
    if (memory != nullptr) {
        forget_freed(all, reinterpret_cast<std::uintptr_t>(memory), size);
        all.pieces[reinterpret_cast<std::uintptr_t>(memory)] = {size, current_device()};
    } else {
        if (fits) current_heap(all).used -= size;
        all.were_full[static_cast<std::size_t>(current_device())] = true;
    }
    return memory;
}

}  // namespace

constinit Atomic<bool> kernels_share_heap = false;

bool set_heap_size(std::size_t bytes) {
    Heaps& all = heaps();
    const std::scoped_lock lock(all.mutex);
    Heap& heap = current_heap(all);
    if (heap.in_use) return false;
    heap.size = bytes;
    return true;
}

std::size_t heap_size() {
    Heaps& all = heaps();
    const std::scoped_lock lock(all.mutex);
    return current_heap(all).size;
}

void reset_heap() {
    Heaps& all = heaps();
    const std::scoped_lock lock(all.mutex);
    std::erase_if(all.pieces, [](const auto& piece) { return piece.second.device == current_device(); });
    current_heap(all) = {};
    kernels_share_heap = false;
    all.were_full[static_cast<std::size_t>(current_device())] = false;
}

bool heap_was_full() {
    return heaps().were_full[static_cast<std::size_t>(current_device())];
}

void* heap_malloc(std::size_t bytes) {
    return take(bytes, [bytes] { return std::malloc(bytes); });
}

void* heap_new(std::size_t bytes, std::size_t alignment) {
    return take(bytes, [=] {
        return alignment == 0 ? ::operator new(bytes, std::nothrow)
                              : ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
    });
}

void note_own_new() {
    if (in_kernel()) kernels_share_heap = true;
}

void heap_free(void* memory) {
    leaves_heap(memory);
    std::free(memory);
}

void leaves_heap(const volatile void* memory) {
    if (memory == nullptr) return;
    const auto byte = reinterpret_cast<std::uintptr_t>(memory);
    Heaps& all = heaps();
    const std::scoped_lock lock(all.mutex);
    Piece* const piece = piece_at(all, byte);
    if (piece == nullptr || piece->freed) return;
    all.of_device[static_cast<std::size_t>(piece->device)].used -= piece->size;
    piece->freed = true;
}

bool in_heap_of_kernels(const void* byte) {
    Heaps& all = heaps();
    const std::scoped_lock lock(all.mutex);
    return piece_at(all, reinterpret_cast<std::uintptr_t>(byte)) != nullptr;
}

}  // namespace cuda_on_cpu
