// PTX instructions, one typed function each: the only place with inline assembly.
//
// Names of sections are those of NVIDIA's "Parallel Thread Execution ISA". On a GPU below compute
// capability 8.0, asynchronous copies are synchronous, and tensor-core functions end the kernel
// with a trap, so launchers check the device first.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

namespace course::ptx {

#ifdef CUDA_ON_CPU

// The stand-in's versions of the functions below. They are named with using, not wrapped, so that
// the stand-in's reports give the line in the kernel.
using cuda_on_cpu::ptx::cp_async_16;
using cuda_on_cpu::ptx::cp_async_4;
using cuda_on_cpu::ptx::cp_async_8;
using cuda_on_cpu::ptx::cp_async_commit;
using cuda_on_cpu::ptx::cp_async_wait;
using cuda_on_cpu::ptx::exp2_approx;
using cuda_on_cpu::ptx::ld_relaxed_sys_b128;
using cuda_on_cpu::ptx::ldmatrix_x1;
using cuda_on_cpu::ptx::ldmatrix_x2;
using cuda_on_cpu::ptx::ldmatrix_x2_trans;
using cuda_on_cpu::ptx::ldmatrix_x4;
using cuda_on_cpu::ptx::ldmatrix_x4_trans;
using cuda_on_cpu::ptx::max_nan;
using cuda_on_cpu::ptx::min_nan;
using cuda_on_cpu::ptx::mma_m16n8k16_bf16;
using cuda_on_cpu::ptx::mma_m16n8k16_f16;
using cuda_on_cpu::ptx::mma_m16n8k32_e4m3;
using cuda_on_cpu::ptx::mma_m16n8k32_e5m2;
using cuda_on_cpu::ptx::mma_m16n8k32_s8;
using cuda_on_cpu::ptx::mma_m16n8k8_tf32;
using cuda_on_cpu::ptx::rsqrt_approx;
using cuda_on_cpu::ptx::st_relaxed_sys_b128;
using cuda_on_cpu::ptx::to_tf32;
using cuda_on_cpu::ptx::isa::globaltimer;
using cuda_on_cpu::ptx::isa::smid;

template <class T>
__device__ T ld_fetch_256(const T* address) {
    return *address;  // a CPU's cache takes no hints
}
__device__ inline int opaque(int value) {
    return value;
}
template <int kCount>
__device__ void match_bytes(const unsigned (&bytes)[kCount], unsigned (&equal)[kCount]) {
    for (int i = 0; i < kCount; ++i)
        equal[i] = __match_any_sync(0xffffffffu, bytes[i]);
}

#else

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define COURSE_PTX_AMPERE 1  // the instructions that came with compute capability 8.0
#endif

// ---- Asynchronous copies from global to shared memory -------------------------------------------
//
// A thread issues copies, closes a group of them, and later waits for its older groups. Then *its*
// copies are visible to it, and after a barrier to the other threads. Source and destination are
// aligned to the size of the copy. "memory" keeps the compiler from moving other memory accesses
// across the instruction.

namespace detail {

// PTX ISA, cvta: the address within shared memory. Instructions with .shared in their name take
// such addresses.
__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

template <class Word>
__device__ void copy_now(void* shared, const void* global, unsigned valid_bytes) {
    Word word{};
    if (valid_bytes == sizeof(word)) {
        word = *static_cast<const Word*>(global);
    } else {
        std::memcpy(&word, global, valid_bytes);
    }
    *static_cast<Word*>(shared) = word;
}

}  // namespace detail

// PTX ISA, cp.async: copies 4 bytes, and caches them in L1, too (.ca). If the source is not
// `valid`, it is not read, and the destination is zero-filled.
__device__ inline void cp_async_4(void* shared, const void* global, bool valid = true) {
    const unsigned valid_bytes = valid ? 4 : 0;
#ifdef COURSE_PTX_AMPERE
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(detail::shared_address(shared)),
                 "l"(global), "r"(valid_bytes)
                 : "memory");
#else
    detail::copy_now<unsigned>(shared, global, valid_bytes);
#endif
}

// The same as cp_async_4 for 8 bytes.
__device__ inline void cp_async_8(void* shared, const void* global, bool valid = true) {
    const unsigned valid_bytes = valid ? 8 : 0;
#ifdef COURSE_PTX_AMPERE
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(detail::shared_address(shared)),
                 "l"(global), "r"(valid_bytes)
                 : "memory");
#else
    detail::copy_now<uint2>(shared, global, valid_bytes);
#endif
}

// PTX ISA, cp.async: copies 16 bytes and bypasses L1 (.cg). Bytes from `valid_bytes` on are
// zero-filled, and not read from the source.
__device__ inline void cp_async_16(void* shared, const void* global, unsigned valid_bytes = 16) {
#ifdef COURSE_PTX_AMPERE
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(detail::shared_address(shared)),
                 "l"(global), "r"(valid_bytes)
                 : "memory");
#else
    detail::copy_now<uint4>(shared, global, valid_bytes);
#endif
}

// PTX ISA, cp.async.commit_group: the copies that this thread has issued since the last call form
// a group, which may be empty.
__device__ inline void cp_async_commit() {
#ifdef COURSE_PTX_AMPERE
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// PTX ISA, cp.async.wait_group: waits until all of this thread's groups except the kPending newest
// are complete.
template <int kPending>
__device__ inline void cp_async_wait() {
    static_assert(kPending >= 0, "cp_async_wait<N>: N groups may stay pending, 0 or more");
#ifdef COURSE_PTX_AMPERE
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

// ---- How much L2 fetches ------------------------------------------------------------------------

// PTX ISA, ld with .level::prefetch_size: a load of 4 bytes from global memory. If L2 does not hold
// them, it may fetch the aligned 256 bytes around them.
__device__ inline unsigned ld_fetch_256(const unsigned* address) {
#ifdef COURSE_PTX_AMPERE
    unsigned value;
    asm volatile("ld.global.L2::256B.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
#else
    return *address;
#endif
}

// ---- 16 bytes that other GPUs store or load -----------------------------------------------------
//
// PTX ISA, ld and st with .relaxed.sys.global and .b128 (from compute capability 7.0 on): 16 bytes
// of global memory, 16-byte aligned. They are loaded and stored as a whole, whatever other threads
// of the system do. In newer toolkits, 16-byte loads and stores with cuda::atomic_ref compile to
// these instructions. With a vector type such as .v2.b64, each element would be accessed as a
// whole, but not both together.

template <class T>
__device__ T ld_relaxed_sys_b128(const T* address) {
    static_assert(sizeof(T) == 16 && alignof(T) == 16, "ld_relaxed_sys_b128 loads 16 aligned bytes");
    ulonglong2 halves;
    asm volatile(
        "{\n"
        ".reg .b128 whole;\n"
        "ld.relaxed.sys.global.b128 whole, [%2];\n"
        "mov.b128 {%0, %1}, whole;\n"
        "}"
        : "=l"(halves.x), "=l"(halves.y)
        : "l"(__cvta_generic_to_global(address))
        : "memory");
    T value;
    std::memcpy(&value, &halves, sizeof(value));
    return value;
}

template <class T>
__device__ void st_relaxed_sys_b128(T* address, const T& value) {
    static_assert(sizeof(T) == 16 && alignof(T) == 16, "st_relaxed_sys_b128 stores 16 aligned bytes");
    ulonglong2 halves;
    std::memcpy(&halves, &value, sizeof(halves));
    asm volatile(
        "{\n"
        ".reg .b128 whole;\n"
        "mov.b128 whole, {%1, %2};\n"
        "st.relaxed.sys.global.b128 [%0], whole;\n"
        "}" ::"l"(__cvta_generic_to_global(address)),
        "l"(halves.x), "l"(halves.y)
        : "memory");
}

// ---- Tensor cores -------------------------------------------------------------------------------

// PTX ISA, cvt.rna.tf32: rounds to the nearest number with 10 bits of mantissa, ties away from
// zero. The 13 lowest bits of the result are 0.
__device__ inline unsigned to_tf32(float value) {
    unsigned bits = 0;
#ifdef COURSE_PTX_AMPERE
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#else
    __trap();
#endif
    return bits;
}

// A whole warp computes each MMA below: all 32 lanes call the function together. D += A B; D is 16
// x 8, and a register of A or B holds elements that are adjacent along k, the first one in its
// lowest bits.
#ifdef COURSE_PTX_AMPERE
#define COURSE_PTX_MMA(shape_and_types, in_register)                                    \
    asm volatile("mma.sync.aligned." shape_and_types                                    \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
                 : "+" in_register(d[0]), "+" in_register(d[1]), "+" in_register(d[2]), \
                   "+" in_register(d[3])                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else
#define COURSE_PTX_MMA(shape_and_types, in_register) __trap()
#endif

// PTX ISA, mma.m16n8k8 with .tf32: A 16 x 8, B 8 x 8. The lane 4 g + t holds, as (row, column):
//   a  (g, t)  (g + 8, t)  (g, t + 4)  (g + 8, t + 4)
//   b  (t, g)  (t + 4, g)
//   d  (g, 2 t)  (g, 2 t + 1)  (g + 8, 2 t)  (g + 8, 2 t + 1)
__device__ inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    COURSE_PTX_MMA("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
}

// PTX ISA, mma.m16n8k16 with .f16 or .bf16: A 16 x 16, B 16 x 8, summed in float. The lane 4 g + t
// holds, as (row, columns) for a, (rows, column) for b, (row, column) for d:
//   a  (g, 2 t .. 2 t + 1)  (g + 8, 2 t .. 2 t + 1)  (g, 2 t + 8 .. 2 t + 9)  (g + 8, 2 t + 8 .. 2 t + 9)
//   b  (2 t .. 2 t + 1, g)  (2 t + 8 .. 2 t + 9, g)
//   d  (g, 2 t)  (g, 2 t + 1)  (g + 8, 2 t)  (g + 8, 2 t + 1)
// So d, rounded to pairs, has the layout of half an a. The second product of attention therefore
// needs no exchange between lanes.
__device__ inline void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    COURSE_PTX_MMA("m16n8k16.row.col.f32.f16.f16.f32", "f");
}
__device__ inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    COURSE_PTX_MMA("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
}

// PTX ISA, mma.m16n8k32 with .s8: A 16 x 32, B 32 x 8, D of 32-bit integers; sums wrap on
// overflow. The lane 4 g + t holds, as above:
//   a  (g, 4 t .. 4 t + 3)  (g + 8, 4 t .. 4 t + 3)  (g, 4 t + 16 .. 4 t + 19)  (g + 8, 4 t + 16 .. 4 t + 19)
//   b  (4 t .. 4 t + 3, g)  (4 t + 16 .. 4 t + 19, g)
//   d  (g, 2 t)  (g, 2 t + 1)  (g + 8, 2 t)  (g + 8, 2 t + 1)
__device__ inline void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    COURSE_PTX_MMA("m16n8k32.row.col.s32.s8.s8.s32", "r");
}

// PTX ISA, mma.m16n8k32 with .e4m3 or .e5m2 (from compute capability 8.9 on; below it, a trap):
// the fragments are as for bytes, D is float.
#if defined(COURSE_PTX_AMPERE) && __CUDA_ARCH__ >= 890
#define COURSE_PTX_MMA_FP8(types) COURSE_PTX_MMA(types, "f")
#else
#define COURSE_PTX_MMA_FP8(types) __trap()
#endif
__device__ inline void mma_m16n8k32_e4m3(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    COURSE_PTX_MMA_FP8("m16n8k32.row.col.f32.e4m3.e4m3.f32");
}
__device__ inline void mma_m16n8k32_e5m2(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    COURSE_PTX_MMA_FP8("m16n8k32.row.col.f32.e5m2.e5m2.f32");
}
#undef COURSE_PTX_MMA_FP8
#undef COURSE_PTX_MMA

// ---- Matrices from shared memory to registers ---------------------------------------------------
//
// PTX ISA, ldmatrix with .m8n8 and .b16: 1, 2 or 4 matrices of 8 x 8 elements of 16 bits (or 8 x 16
// bytes), for a whole warp. A row is 16 bytes in shared memory, 16-byte aligned, and lane 8 m + i
// passes the address of row i of matrix m. Addresses of lanes beyond the last row are ignored.
// Register m of lane 4 g + t receives
//   plain       (g, 2 t) and (g, 2 t + 1) of matrix m
//   transposed  (2 t, g) and (2 t + 1, g)
// the first of them in its low half. So for mma_m16n8k16, with l the lane:
//   a, of a row-major A       x4        row l % 16, from column 8 (l / 16) on
//   b, of a column-major B    x2        column l % 8, from row 8 (l / 8 % 2) on
//   b, of a row-major B       x2_trans  row l % 16
// and x4 in place of x2 loads the b of two MMAs. For mma_m16n8k32, count a pair of bytes as one
// element. Transposed loads do not work there, because they would keep the pairs together.
#ifdef COURSE_PTX_AMPERE
#define COURSE_PTX_LDMATRIX(asm_text, ...)                          \
    asm volatile("ldmatrix.sync.aligned.m8n8." asm_text:__VA_ARGS__ \
                 : "r"(detail::shared_address(row))                 \
                 : "memory")
#else
#define COURSE_PTX_LDMATRIX(asm_text, ...) __trap()
#endif
__device__ inline void ldmatrix_x1(unsigned (&r)[1], const void* row) {
    COURSE_PTX_LDMATRIX("x1.shared.b16 {%0}, [%1];", "=r"(r[0]));
}
__device__ inline void ldmatrix_x2(unsigned (&r)[2], const void* row) {
    COURSE_PTX_LDMATRIX("x2.shared.b16 {%0, %1}, [%2];", "=r"(r[0]), "=r"(r[1]));
}
__device__ inline void ldmatrix_x4(unsigned (&r)[4], const void* row) {
    COURSE_PTX_LDMATRIX("x4.shared.b16 {%0, %1, %2, %3}, [%4];", "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
                        "=r"(r[3]));
}
__device__ inline void ldmatrix_x2_trans(unsigned (&r)[2], const void* row) {
    COURSE_PTX_LDMATRIX("x2.trans.shared.b16 {%0, %1}, [%2];", "=r"(r[0]), "=r"(r[1]));
}
__device__ inline void ldmatrix_x4_trans(unsigned (&r)[4], const void* row) {
    COURSE_PTX_LDMATRIX("x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];", "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
                        "=r"(r[3]));
}
#undef COURSE_PTX_LDMATRIX

// ---- The compiler -------------------------------------------------------------------------------

// Returns the same value, but hides it from the compiler. So the compiler recomputes expressions
// that depend on it instead of keeping their earlier values in registers.
__device__ inline int opaque(int value) {
    asm volatile("" : "+r"(value));
    return value;
}

// ---- Where and when -----------------------------------------------------------------------------

// PTX ISA, %smid: the SM that the thread runs on, from 0 on. Numbers may be missing.
__device__ inline unsigned smid() {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

// PTX ISA, %globaltimer: the time in ns, the same on all SMs. It is updated in larger steps.
__device__ inline unsigned long long globaltimer() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

// ---- Votes --------------------------------------------------------------------------------------

// PTX ISA, vote.sync.ballot: equal[i] is the mask of the lanes whose bytes[i] equals this lane's.
// All lanes of the warp call it; bytes are below 256. __match_any_sync returns the same, but
// handles one distinct value after the other, up to 32 for 32 lanes. Here every bit takes one vote,
// and the votes of two bits are combined at once. Several bytes are processed together to hide the
// latency of the votes. If the lane's bit is 0, the complement of the vote v is needed, which is -v
// - 1. A multiply-add computes it, because votes and logic already fill their pipeline.
template <int kCount>
__device__ void match_bytes(const unsigned (&bytes)[kCount], unsigned (&equal)[kCount]) {
    const unsigned all = __ballot_sync(0xffffffffu, true);  // -1, as a value that is unknown to the compiler
#pragma unroll
    for (int i = 0; i < kCount; ++i)
        equal[i] = all;
#pragma unroll
    for (int bit = 0; bit < 8; bit += 2) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            asm volatile(
                "{\n"
                ".reg .pred p, q;\n"
                ".reg .b32 v, w;\n"
                "and.b32 v, %1, %2;\n"
                "and.b32 w, %1, %3;\n"
                "setp.ne.u32 p, v, 0;\n"
                "setp.ne.u32 q, w, 0;\n"
                "vote.sync.ballot.b32 v, p, 0xffffffff;\n"
                "vote.sync.ballot.b32 w, q, 0xffffffff;\n"
                "@!p mad.lo.u32 v, v, %4, %4;\n"
                "@!q mad.lo.u32 w, w, %4, %4;\n"
                "lop3.b32 %0, %0, v, w, 0x80;\n"  // all three
                "}"
                : "+r"(equal[i])
                : "r"(bytes[i]), "r"(1U << bit), "r"(2U << bit), "r"(all));
        }
    }
}

// ---- Arithmetic ---------------------------------------------------------------------------------

// PTX ISA, ex2.approx.ftz: 2^x, at most 2 ulp from the correctly rounded result. Denormal results
// are flushed to 0, and a denormal x counts as 0. 2^-Inf is 0, and NaN stays NaN. Available on
// every GPU.
__device__ inline float exp2_approx(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// PTX ISA, rsqrt.approx.ftz: 1 / sqrt(x), at most 2^-22.9 of itself from the exact value. A
// denormal x counts as 0, which rsqrtf() needs further instructions to avoid. Available on every
// GPU.
__device__ inline float rsqrt_approx(float x) {
    float result;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// PTX ISA, min and max with .NaN: the smaller or larger of the two, or NaN if one of them is NaN.
// One instruction from compute capability 8.0 on.
#ifdef COURSE_PTX_AMPERE
#define COURSE_PTX_EXTREMUM(which, else_function)                      \
    float result;                                                      \
    asm(which ".NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b)); \
    return result
#else
#define COURSE_PTX_EXTREMUM(which, else_function) return isnan(a) ? a : isnan(b) ? b : else_function(a, b)
#endif
__device__ inline float min_nan(float a, float b) {
    COURSE_PTX_EXTREMUM("min", fminf);
}
__device__ inline float max_nan(float a, float b) {
    COURSE_PTX_EXTREMUM("max", fmaxf);
}
#undef COURSE_PTX_EXTREMUM

#undef COURSE_PTX_AMPERE
#endif

}  // namespace course::ptx
