// Atomic accesses by the compiler's built-in functions. <atomic> would declare std::mutex,
// std::string and more in every program, where `int mutex;` behind `using namespace std` is then
// ambiguous.
#pragma once

#include "cuda_on_cpu/language.h"

namespace cuda_on_cpu {

// Values are those of std::memory_order and of __NV_ATOMIC_...
enum class MemoryOrder : int {
    relaxed = __ATOMIC_RELAXED,
    consume = __ATOMIC_CONSUME,
    acquire = __ATOMIC_ACQUIRE,
    release = __ATOMIC_RELEASE,
    acq_rel = __ATOMIC_ACQ_REL,
    seq_cst = __ATOMIC_SEQ_CST
};

// What a failed compare-and-exchange counts as: it has not written.
constexpr MemoryOrder of_load(MemoryOrder order) {
    if (order == MemoryOrder::acq_rel) return MemoryOrder::acquire;
    return order == MemoryOrder::release ? MemoryOrder::relaxed : order;
}

// As std::atomic_ref. T is trivially copyable, of a size that the processor handles in one step;
// the functions that calculate are for integers.
template <class T>
class AtomicWord {
  public:
    explicit AtomicWord(T& place) : place_(&place) {}

    __forceinline__ T load(MemoryOrder order) const {
        T value;
        __atomic_load(place_, &value, static_cast<int>(order));
        return value;
    }
    __forceinline__ void store(T value, MemoryOrder order) const {
        __atomic_store(place_, &value, static_cast<int>(order));
    }
    __forceinline__ T exchange(T value, MemoryOrder order) const {
        T old;
        __atomic_exchange(place_, &value, &old, static_cast<int>(order));
        return old;
    }
    // If *place is not `expected`, `expected` becomes what it is. The weak form may fail without
    // that.
    __forceinline__ bool compare_exchange_strong(T& expected, T desired, MemoryOrder order) const {
        return compare_exchange(expected, desired, false, order);
    }
    __forceinline__ bool compare_exchange_weak(T& expected, T desired, MemoryOrder order) const {
        return compare_exchange(expected, desired, true, order);
    }
    __forceinline__ T fetch_add(T value, MemoryOrder order) const {
        return __atomic_fetch_add(place_, value, static_cast<int>(order));
    }
    __forceinline__ T fetch_sub(T value, MemoryOrder order) const {
        return __atomic_fetch_sub(place_, value, static_cast<int>(order));
    }
    __forceinline__ T fetch_and(T value, MemoryOrder order) const {
        return __atomic_fetch_and(place_, value, static_cast<int>(order));
    }
    __forceinline__ T fetch_or(T value, MemoryOrder order) const {
        return __atomic_fetch_or(place_, value, static_cast<int>(order));
    }
    __forceinline__ T fetch_xor(T value, MemoryOrder order) const {
        return __atomic_fetch_xor(place_, value, static_cast<int>(order));
    }

  private:
    __forceinline__ bool compare_exchange(T& expected, T desired, bool weak, MemoryOrder order) const {
        return __atomic_compare_exchange(place_, &expected, &desired, weak, static_cast<int>(order),
                                         static_cast<int>(of_load(order)));
    }

    T* place_;
};

// As std::atomic, for what host threads share.
template <class T>
class Atomic {
  public:
    constexpr Atomic(T value) : value_(value) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(MemoryOrder order = MemoryOrder::seq_cst) const {
        T value;
        __atomic_load(&value_, &value, static_cast<int>(order));
        return value;
    }
    void store(T value, MemoryOrder order = MemoryOrder::seq_cst) { word().store(value, order); }
    operator T() const { return load(); }
    T operator=(T value) {
        store(value);
        return value;
    }
    T operator++() { return word().fetch_add(1, MemoryOrder::seq_cst) + 1; }
    bool compare_exchange_strong(T& expected, T desired) {
        return word().compare_exchange_strong(expected, desired, MemoryOrder::seq_cst);
    }

  private:
    AtomicWord<T> word() { return AtomicWord<T>(value_); }

    T value_;
};

__forceinline__ void atomic_fence(MemoryOrder order) {
    __atomic_thread_fence(static_cast<int>(order));
}

}  // namespace cuda_on_cpu
