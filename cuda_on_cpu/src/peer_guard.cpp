#include "peer_guard.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "current_device.hpp"
#include "pages.hpp"
#include "spin_lock.hpp"

namespace cuda_on_cpu {

namespace {

std::array<std::atomic<std::uint64_t>, kMostDevices> peers{};  // bit d of peers[c]: c may access d's memory

constexpr std::uint64_t bit(int device) {
    return std::uint64_t{1} << device;
}

SpinLock guard_lock;
std::vector<GuardedMemory>& guarded() {
    static auto& all = *new std::vector<GuardedMemory>;
    return all;
}
std::atomic<unsigned> times_lifted{0};

void protect(const GuardedMemory& memory, int protection) {
    mprotect(memory.mapping + guard_size(), memory.size - 2 * guard_size(), protection);
}

bool reaches(int device, const GuardedMemory& memory) {
    return memory.of_pool ? (memory.readers & bit(device)) != 0 : has_peer_access(device, memory.owner);
}

// The caller holds the lock.
void lift() {
    for (const GuardedMemory& memory : guarded())
        protect(memory, PROT_READ | PROT_WRITE);
    guarded().clear();
    ++times_lifted;
}

}  // namespace

bool has_peer_access(int device, int owner) {
    return device == owner || (peers[static_cast<std::size_t>(device)] & bit(owner)) != 0;
}

bool set_peer_access(int device, int owner, bool allowed) {
    std::atomic<std::uint64_t>& of_device = peers[static_cast<std::size_t>(device)];
    const std::uint64_t before = allowed ? of_device.fetch_or(bit(owner)) : of_device.fetch_and(~bit(owner));
    return ((before & bit(owner)) != 0) != allowed;
}

void guard(const GuardedMemory& memory) {
    const std::scoped_lock lock(guard_lock);
    guarded().push_back(memory);
    protect(memory, PROT_NONE);
}

GuardFault guard_fault(const void* address, int device) {
    struct Tried {
        const void* address;
        unsigned times_lifted;
    };
    constinit thread_local static Tried last{nullptr, 0};
    const auto* byte = static_cast<const char*>(address);
    const std::scoped_lock lock(guard_lock);
    for (const GuardedMemory& memory : guarded()) {
        if (byte < memory.mapping + guard_size() || byte >= memory.mapping + memory.size - guard_size())
            continue;
        if (device >= 0 && !reaches(device, memory)) return GuardFault::forbidden;
        lift();
        return GuardFault::retry;
    }
    // Another thread may have lifted the guard between the access and this check, so the access is
    // retried once.
    if (last.address == address && last.times_lifted == times_lifted) return GuardFault::none;
    last = {address, times_lifted};
    return GuardFault::retry;
}

void forget_guarded(const char* mapping) {
    if (!several_devices()) return;
    const std::scoped_lock lock(guard_lock);
    std::erase_if(guarded(), [mapping](const GuardedMemory& memory) {
        if (memory.mapping != mapping) return false;
        protect(memory, PROT_READ | PROT_WRITE);
        return true;
    });
}

void lift_guard() {
    if (!several_devices()) return;
    const std::scoped_lock lock(guard_lock);
    lift();
}

}  // namespace cuda_on_cpu
