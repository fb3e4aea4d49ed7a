#include "device_variables.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "current_device.hpp"
#include "memory.hpp"
#include "peer_guard.hpp"
#include "variable_gaps.hpp"

namespace cuda_on_cpu {

namespace {

// The variable itself holds the values of one device at a time, that of `resident`.
struct Variable {
    std::size_t size = 0;
    int resident = 0;
    std::vector<char> initial;                // initial values, for devices that have no copy yet
    std::map<int, std::vector<char>> copies;  // copies of the other devices
    // The values when kernels of two devices began to share the variable.
    std::vector<char> shared;
};

struct Kernels {
    std::mutex mutex;
    std::condition_variable ended;
    std::array<unsigned, kMostDevices> running{};
    unsigned all = 0;
    unsigned polling = 0;  // of these, kernels that may wait for another one
    int guarded_from = -1;
    std::uint64_t have_run = 0;           // devices
    std::map<char*, Variable> variables;  // indexed by their first byte
    std::map<char*, std::size_t> copied;  // sizes of those that the host has copied
};
Kernels& kernels() {
    static auto& only = *new Kernels;
    return only;
}

std::vector<char>& copy_of(Variable& variable, int device) {
    const auto [found, is_new] = variable.copies.try_emplace(device);
    if (is_new) found->second = variable.initial;
    return found->second;
}

// Does the variable hold values of another device that differ from those of `device`?
bool differs(char* place, Variable& variable, int device) {
    return variable.resident != device &&
           std::memcmp(place, copy_of(variable, device).data(), variable.size) != 0;
}

void move_in(char* place, Variable& variable, int device) {
    if (variable.resident == device) return;
    variable.copies[variable.resident].assign(place, place + variable.size);
    std::memcpy(place, copy_of(variable, device).data(), variable.size);
    variable.copies.erase(device);
    variable.resident = device;
}

// The caller holds the lock. While kernels of other devices run, their variables must stay in
// place.
bool waits_for_others(Kernels& k, int device) {
    if (k.all == k.running[static_cast<std::size_t>(device)]) return false;
    for (auto& [place, variable] : k.variables) {
        if (differs(place, variable, device)) return true;
    }
    return false;
}

void say_shared(const char* place, const Variable& variable) {
    std::fprintf(
        stderr,
        "cuda_on_cpu: kernels of several devices, which ran at the same time, have shared a "
        "__device__ variable%s of %zu bytes, and one has written it: on GPUs each device has its own. "
        "Use memory of cudaMalloc\n",
        quoted_name_of_variable(place).c_str(), variable.size);
}

// The caller holds the lock.
void bring_variables(Kernels& k, int device) {
    const bool alone = k.all == k.running[static_cast<std::size_t>(device)];
    for (auto& [place, variable] : k.variables) {
        if (alone) {
            move_in(place, variable, device);
        } else if (variable.resident != device && variable.shared.empty()) {
            variable.shared.assign(place, place + variable.size);
        }
    }
}

// The caller holds the lock, and no kernel runs.
void end_sharing(Kernels& k) {
    for (auto& [place, variable] : k.variables) {
        if (variable.shared.empty()) continue;
        if (std::memcmp(place, variable.shared.data(), variable.size) != 0) say_shared(place, variable);
        variable.shared.clear();
    }
}

#ifndef CUDA_ON_CPU_ASAN
void guard_from(int device) {
    for_each_live_allocation([device](const Allocation& allocation) {
        if (allocation.mapping == nullptr || may_access(device, allocation)) return;
        guard({allocation.mapping, allocation.mapping_size, allocation.device, allocation.readers,
               allocation.of_pool});
    });
}
#else
void guard_from(int) {}  // the sanitizer's handler would report the fault
#endif

// The caller holds the lock. Sets the guard for the device whose kernels run; no guard if there are
// several such devices.
void adjust_guard(Kernels& k) {
    int only = -1;
    for (int device = 0; device < device_count() && k.all > 0; ++device) {
        if (k.running[static_cast<std::size_t>(device)] == k.all) only = device;
    }
    if (only == k.guarded_from) return;
    lift_guard();
    k.guarded_from = only;
    if (only >= 0) guard_from(only);
}

}  // namespace

KernelOnDevice::KernelOnDevice(int device, bool may_poll)
    : device_(several_devices() ? device : -1), polls_(may_poll) {
    if (device_ < 0) return;
    // Waits for a limited time only, because kernels that poll may be waiting for this one.
    constexpr auto kPatience = std::chrono::seconds(1);
    Kernels& k = kernels();
    std::unique_lock lock(k.mutex);
    while (waits_for_others(k, device)) {
        if (k.polling == 0) {
            k.ended.wait(lock);
            continue;
        }
        if (k.ended.wait_for(lock, kPatience) != std::cv_status::timeout) continue;
        std::fprintf(stderr,
                     "cuda_on_cpu: a kernel of device %d begins with another device's values in a "
                     "__device__ variable: kernels of both devices run at the same time, for which there is "
                     "one copy here. Use memory of cudaMalloc\n",
                     device);
        break;
    }
    if (polls_) ++k.polling;
    ++k.running[static_cast<std::size_t>(device)];
    ++k.all;
    k.have_run |= std::uint64_t{1} << device;
    bring_variables(k, device);
    adjust_guard(k);
}

KernelOnDevice::~KernelOnDevice() {
    if (device_ < 0) return;
    Kernels& k = kernels();
    const std::scoped_lock lock(k.mutex);
    if (polls_) --k.polling;
    --k.running[static_cast<std::size_t>(device_)];
    if (--k.all == 0) end_sharing(k);
    adjust_guard(k);
    k.ended.notify_all();
}

std::map<char*, std::size_t> known_variables() {
    std::map<char*, std::size_t> known;
    for (const GuardedVariable& variable : guarded_variables()) {
        if (variable.writable) known.emplace(const_cast<char*>(variable.begin), variable.size);
    }
    Kernels& k = kernels();
    const std::scoped_lock lock(k.mutex);
    known.insert(k.copied.begin(), k.copied.end());
    return known;
}

void note_variable(const char* function, void* variable, std::size_t size, bool reads) {
    Kernels& k = kernels();
    const std::scoped_lock lock(k.mutex);
    auto* const place = static_cast<char*>(variable);
    if (size > 0) k.copied.emplace(place, size);
    if (!several_devices() || size == 0) return;
    const auto [found, is_new] = k.variables.try_emplace(place);
    if (!is_new) return;
    found->second.size = size;
    found->second.resident = current_device();
    found->second.initial.assign(place, place + size);
    if (!reads || (k.have_run & (k.have_run - 1)) == 0) return;
    std::fprintf(
        stderr,
        "cuda_on_cpu: %s: kernels of several devices ran before the host first used this __device__ "
        "variable%s of %zu bytes, and had one copy of it; on GPUs each device has its own. Write it on "
        "each device (cudaMemcpyToSymbol) before its first kernel\n",
        function, quoted_name_of_variable(variable).c_str(), size);
}

namespace {

// The caller holds the lock. The address of the current device's copy of these bytes; null: they do
// not belong to a variable.
char* place_of(Kernels& k, const void* pointer, std::size_t bytes) {
    auto* const byte = static_cast<char*>(const_cast<void*>(pointer));
    auto after = k.variables.upper_bound(byte);
    if (after == k.variables.begin()) return nullptr;
    auto& [place, variable] = *--after;
    const auto offset = static_cast<std::size_t>(byte - place);
    if (offset + bytes > variable.size) return nullptr;
    return variable.resident == current_device() ? byte : copy_of(variable, current_device()).data() + offset;
}

}  // namespace

bool copy_variable(void* to, const void* from, std::size_t bytes) {
    if (!several_devices()) return false;
    Kernels& k = kernels();
    const std::scoped_lock lock(k.mutex);
    char* const variable_to = place_of(k, to, bytes);
    const char* const variable_from = place_of(k, from, bytes);
    if (variable_to == nullptr && variable_from == nullptr) return false;
    std::memmove(variable_to != nullptr ? variable_to : to, variable_from != nullptr ? variable_from : from,
                 bytes);
    return true;
}

}  // namespace cuda_on_cpu
