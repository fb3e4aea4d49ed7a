// Inline PTX: addresses, loads, stores and atomic operations (PTX ISA, "Data Movement and
// Conversion Instructions", "Parallel Synchronization and Communication Instructions"). Cache hints
// have no effect here.
#pragma once

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/ptx_float.h"
#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu::ptx::isa {

// ---- Addresses ---------------------------------------------------------------------------------------------------------

// Shared memory has its own address space, whose addresses fit into 32 bits. All other addresses
// are those of C++. It is an error to convert a pointer that is not to shared memory of the
// cluster, or an address that did not come from such a pointer.
std::uint64_t shared_address_of(const void* pointer, Site site);
void* shared_pointer(std::uint64_t address, std::size_t bytes, Site site);
bool is_shared(const void* pointer);
bool is_shared_of_block(const void* pointer);
bool is_local(const void* pointer);
bool is_grid_constant(const void* pointer);
// Does not recognise variables of modules, nor those of templates, which g++ does not place in a
// section.
bool is_constant(const void* pointer);

template <Space kSpace>
__forceinline__ void* pointer_to(std::uint64_t address, std::size_t bytes, Site site) {
    if constexpr (kSpace == Space::shared) return shared_pointer(address, bytes, site);
    return reinterpret_cast<void*>(address);
}

template <Space kSpace, class T>
__forceinline__ Bits<T> cvta_to(Bits<T> address, Site site = Site::here()) {
    if constexpr (kSpace == Space::shared)
        return static_cast<Bits<T>>(
            shared_address_of(reinterpret_cast<const void*>(std::uintptr_t{address}), site));
    return address;
}
template <Space kSpace, class T>
__forceinline__ Bits<T> cvta(Bits<T> address, Site site = Site::here()) {
    static_assert(kSpace != Space::shared || sizeof address == 8,
                  "cvta.shared.u32 is not provided: a generic address has 64 bits");
    return static_cast<Bits<T>>(reinterpret_cast<std::uintptr_t>(pointer_to<kSpace>(address, 0, site)));
}
template <Space kSpace>
__forceinline__ bool isspacep(std::uint64_t address) {
    const void* const pointer = reinterpret_cast<const void*>(address);
    switch (kSpace) {
        case Space::shared:
            return is_shared(pointer);
        case Space::local:
            return is_local(pointer);
        case Space::global:
            return !is_shared(pointer) && !is_local(pointer) && !is_constant(pointer);
        case Space::const_:
            return is_constant(pointer);
        default:
            return false;
    }
}
template <Space kSpace, class T>
__forceinline__ Bits<T> mapa(Bits<T> address, std::uint32_t rank, Site site = Site::here()) {
    void* const there = map_shared(pointer_to<kSpace>(address, 0, site), rank, site);
    if constexpr (kSpace == Space::shared) return static_cast<Bits<T>>(shared_address_of(there, site));
    return static_cast<Bits<T>>(reinterpret_cast<std::uintptr_t>(there));
}
template <Space kSpace, class T>
__forceinline__ std::uint32_t getctarank(Bits<T> address, Site site = Site::here()) {
    return shared_rank(pointer_to<kSpace>(address, 0, site), site);
}

// ---- Loads and stores --------------------------------------------------------------------------------------------------

// Memory accessed as one or several words at once, whatever its type is.
template <class Word, int kCount>
struct __attribute__((may_alias)) Access {
    alignas(sizeof(Word) * kCount) Word word[kCount];
};

template <class T, int kCount, Space kSpace>
__forceinline__ void* place_of(std::uint64_t address, Site site) {
    constexpr std::size_t kBytes = sizeof(Bits<T>) * kCount;
    if ((address & (kBytes - 1)) != 0)
        device_failure(cudaErrorMisalignedAddress,
                       "asm: misaligned access: an address must be a multiple of the number of bytes", site);
    return pointer_to<kSpace>(address, kBytes, site);
}

template <Scope kScope>
__forceinline__ void fence() {
    if constexpr (kScope == Scope::cta) {
        __threadfence_block();
    } else {
        __threadfence();
    }
}

// For one access at once (inspected_scope.h).
template <Scope kScope, class Word>
__forceinline__ AtomicWord<Word> atomic_at(Word& word) {
    next_atomic_in_block(kScope == Scope::cta);
    return AtomicWord(word);
}

// Flags of accesses to memory that other threads may write at the same time; kPolled: a thread may
// be waiting for it. In a vector of more than 8 bytes each element is atomic separately, as on a
// GPU.
template <unsigned F>
inline constexpr bool kAtomic = (F & (flag::volatile_ | flag::relaxed | flag::acquire | flag::release |
                                      flag::mmio)) != 0;
template <unsigned F>
inline constexpr bool kPolled = kAtomic<F> || (F & (flag::cg | flag::cv)) != 0;
template <unsigned F>
inline constexpr MemoryOrder kOrder = [] {
    if ((F & flag::acq_rel) != 0) return MemoryOrder::acq_rel;
    if ((F & flag::acquire) != 0) return MemoryOrder::acquire;
    return (F & flag::release) != 0 ? MemoryOrder::release : MemoryOrder::relaxed;
}();

template <class T, int kCount, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void ld_vector(Bits<T> (&d)[kCount], std::uint64_t address, Site site = Site::here()) {
    void* const place = place_of<T, kCount, kSpace>(address, site);
    if constexpr (kPolled<F>) poll();
    // Each asm statement loads from memory again.
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if constexpr (kAtomic<F> && sizeof d <= 8) {
        const Word<8 * sizeof d> word =
            atomic_at<kScope>(*static_cast<Word<8 * sizeof d>*>(place)).load(kOrder<F>);
        std::memcpy(d, &word, sizeof d);
    } else if constexpr (kAtomic<F>) {
        for (int i = 0; i < kCount; ++i)
            d[i] = atomic_at<kScope>(static_cast<Bits<T>*>(place)[i]).load(kOrder<F>);
    } else {
        const auto access = *static_cast<Access<Bits<T>, kCount>*>(place);
        std::memcpy(d, &access, sizeof d);
    }
}
template <class T, Space kSpace, unsigned F, Scope kScope>
__forceinline__ Bits<T> ld(std::uint64_t address, Site site = Site::here()) {
    Bits<T> d[1];
    ld_vector<T, 1, kSpace, F, kScope>(d, address, site);
    return d[0];
}
template <class T, Space kSpace, unsigned F, Scope kScope>
__forceinline__ Bits<T> ld_with(std::uint64_t address, std::uint64_t, Site site = Site::here()) {
    return ld<T, kSpace, F, kScope>(address, site);
}
template <class T, int kCount, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void ld_vector_with(Bits<T> (&d)[kCount], std::uint64_t address, std::uint64_t,
                                    Site site = Site::here()) {
    ld_vector<T, kCount, kSpace, F, kScope>(d, address, site);
}

template <class T, int kCount, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void st_vector(std::uint64_t address, List<Bits<T>, kCount> values,
                               Site site = Site::here()) {
    void* const place = place_of<T, kCount, kSpace>(address, site);
    if constexpr (kAtomic<F> && sizeof values <= 8) {
        Word<8 * sizeof values> word;
        std::memcpy(&word, &values, sizeof word);
        atomic_at<kScope>(*static_cast<Word<8 * sizeof values>*>(place)).store(word, kOrder<F>);
    } else if constexpr (kAtomic<F>) {
        for (int i = 0; i < kCount; ++i)
            atomic_at<kScope>(static_cast<Bits<T>*>(place)[i]).store(values.word[i], kOrder<F>);
    } else {
        Access<Bits<T>, kCount> access;
        std::memcpy(&access, &values, sizeof values);
        *static_cast<Access<Bits<T>, kCount>*>(place) = access;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
template <class T, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void st(std::uint64_t address, Bits<T> value, Site site = Site::here()) {
    st_vector<T, 1, kSpace, F, kScope>(address, List<Bits<T>, 1>{{value}}, site);
}
template <class T, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void st_with(std::uint64_t address, Bits<T> value, std::uint64_t, Site site = Site::here()) {
    st<T, kSpace, F, kScope>(address, value, site);
}
template <class T, int kCount, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void st_vector_with(std::uint64_t address, List<Bits<T>, kCount> values, std::uint64_t,
                                    Site site = Site::here()) {
    st_vector<T, kCount, kSpace, F, kScope>(address, values, site);
}

// ---- Atomic operations -------------------------------------------------------------------------------------------------

template <class T, Op kOp>
__forceinline__ Bits<T> changed(Bits<T> old, Bits<T> b) {
    if constexpr (kOp == Op::add && (T::kFloat)) {
        return add_float<T, 0>(old, b);
    } else if constexpr (kOp == Op::add) {
        return add<T>(old, b);
    } else if constexpr (kOp == Op::min) {
        return min<T>(old, b);
    } else if constexpr (kOp == Op::max) {
        return max<T>(old, b);
    } else if constexpr (kOp == Op::inc) {
        return old >= b ? 0 : old + 1;
    } else if constexpr (kOp == Op::dec) {
        return old == 0 || old > b ? b : old - 1;
    } else if constexpr (kOp == Op::and_) {
        return old & b;
    } else if constexpr (kOp == Op::or_) {
        return old | b;
    } else if constexpr (kOp == Op::xor_) {
        return old ^ b;
    } else {
        return b;
    }
}

// An operation that changes nothing may belong to a waiting thread (atomics.h).
template <class T, Op kOp, Space kSpace, unsigned F, Scope kScope>
__forceinline__ Bits<T> atom(std::uint64_t address, Bits<T> b, Site site = Site::here()) {
    auto* const place = static_cast<Bits<T>*>(place_of<T, 1, kSpace>(address, site));
    note(AtomicKind::ordered, place);
    Bits<T> old;
    [[maybe_unused]] unsigned number = 0;
    if constexpr (kOp == Op::add && !T::kFloat) {
        old = atomic_at<kScope>(*place).fetch_add(b, kOrder<F>);
    } else if constexpr (kOp == Op::exch) {
        number = next_atomic_may_be_unused();
        old = atomic_at<kScope>(*place).exchange(b, kOrder<F>);
    } else {
        next_atomic_in_block(kScope == Scope::cta);
        old = fetch_and_change(
            place, [b](Bits<T> before) { return changed<T, kOp>(before, b); }, kOrder<F>);
    }
    constexpr bool kMayWait =
        kOp != Op::min && kOp != Op::max && kOp != Op::inc && kOp != Op::dec && !T::kFloat;
    if (kMayWait && changed<T, kOp>(old, b) == old) spin_hint();
    if constexpr (kOp == Op::exch) return result_of_exchange(old, number);
    return old;
}
template <class T, Space kSpace, unsigned F, Scope kScope>
__forceinline__ Bits<T> atom_cas(std::uint64_t address, Bits<T> expected, Bits<T> desired,
                                 Site site = Site::here()) {
    auto* const place = static_cast<Bits<T>*>(place_of<T, 1, kSpace>(address, site));
    note(AtomicKind::ordered, place);
    Bits<T> old = expected;
    atomic_at<kScope>(*place).compare_exchange_strong(old, desired, kOrder<F>);
    if (old != expected || desired == expected) spin_hint();
    return old;
}
template <class T, Op kOp, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void red(std::uint64_t address, Bits<T> b, Site site = Site::here()) {
    atom<T, kOp, kSpace, F, kScope>(address, b, site);
}
// Each element is a separate atomic operation.
template <class T, Op kOp, int kCount, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void atom_vector(Bits<T> (&d)[kCount], std::uint64_t address, List<Bits<T>, kCount> values,
                                 Site site = Site::here()) {
    place_of<T, kCount, kSpace>(address, site);
    for (unsigned i = 0; i < kCount; ++i)
        d[i] = atom<T, kOp, kSpace, F, kScope>(address + sizeof(Bits<T>) * i, values.word[i], site);
}
template <class T, Op kOp, int kCount, Space kSpace, unsigned F, Scope kScope>
__forceinline__ void red_vector(std::uint64_t address, List<Bits<T>, kCount> values,
                                Site site = Site::here()) {
    Bits<T> ignored[kCount];
    atom_vector<T, kOp, kCount, kSpace, F, kScope>(ignored, address, values, site);
}

// ---- Hints -------------------------------------------------------------------------------------------------------------

inline void prefetch(std::uint64_t) {}
inline void prefetch_of(std::uint64_t, std::uint32_t) {}
inline std::uint64_t policy() {
    return 0;
}
inline std::uint64_t policy_of(std::uint32_t) {
    return 0;
}

}  // namespace cuda_on_cpu::ptx::isa

// ---- Loads and stores that day code calls by name (common/device/ptx.cuh) ----------------------------------------------

namespace cuda_on_cpu::ptx {

// Atomic as a whole, all 16 bytes. The load may belong to a waiting thread.
template <class T>
__forceinline__ T ld_relaxed_sys_b128(const T* address, Site site = Site::here()) {
    spin_hint();
    isa::place_of<isa::b64, 2, isa::Space::global>(reinterpret_cast<std::uintptr_t>(address), site);
    return load_16_bytes(address);
}
template <class T>
__forceinline__ void st_relaxed_sys_b128(T* address, const std::type_identity_t<T>& value,
                                         Site site = Site::here()) {
    isa::place_of<isa::b64, 2, isa::Space::global>(reinterpret_cast<std::uintptr_t>(address), site);
    store_16_bytes(address, value);
}

}  // namespace cuda_on_cpu::ptx

// ---- Which memory is it? isspacep as functions -------------------------------------------------------------------------

inline unsigned int __isGlobal(const void* pointer) {
    using namespace cuda_on_cpu::ptx::isa;
    return isspacep<Space::global>(reinterpret_cast<std::uintptr_t>(pointer)) ? 1 : 0;
}
inline unsigned int __isShared(const void* pointer) {
    using namespace cuda_on_cpu::ptx::isa;
    return isspacep<Space::shared>(reinterpret_cast<std::uintptr_t>(pointer)) ? 1 : 0;
}
inline unsigned int __isLocal(const void* pointer) {
    using namespace cuda_on_cpu::ptx::isa;
    return isspacep<Space::local>(reinterpret_cast<std::uintptr_t>(pointer)) ? 1 : 0;
}
inline unsigned int __isConstant(const void* pointer) {
    return cuda_on_cpu::ptx::isa::is_constant(pointer) ? 1 : 0;
}
// Is it a __grid_constant__ parameter of the kernel? Each thread has its own copy here.
inline unsigned int __isGridConstant(const void* pointer) {
    return cuda_on_cpu::ptx::isa::is_grid_constant(pointer) ? 1 : 0;
}
// Of the block itself; the other function includes all blocks of its cluster.
inline unsigned int __isCtaShared(const void* pointer) {
    return cuda_on_cpu::ptx::isa::is_shared_of_block(pointer) ? 1 : 0;
}
inline unsigned int __isClusterShared(const void* pointer) {
    return __isShared(pointer);
}
