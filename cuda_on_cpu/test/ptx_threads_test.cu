// Inline PTX that concerns memory and more than one thread: addresses, loads and stores, atomic
// operations, what warps and blocks do together, asynchronous copies, matrices.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "on_device.cuh"

namespace {

using Word = std::uint32_t;

__device__ Word shared_address(const void* pointer) {
    return static_cast<Word>(__cvta_generic_to_shared(pointer));
}

template <class T>
std::vector<T> numbered(std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>(i);
    return values;
}

// ---- Special registers --------------------------------------------------------------------------

__global__ void special_registers(Checks check) {
    if (threadIdx.x != 33 || blockIdx.x != 2) return;
    Word d;
#define EXPECT_REGISTER(name, expected)                \
    asm volatile("mov.u32 %0, %%" name ";" : "=r"(d)); \
    check.equal(d, expected)
    EXPECT_REGISTER("tid.x", 33u);
    EXPECT_REGISTER("ntid.x", 64u);
    EXPECT_REGISTER("ntid.y", 1u);
    EXPECT_REGISTER("ctaid.x", 2u);
    EXPECT_REGISTER("nctaid.x", 3u);
    EXPECT_REGISTER("laneid", 1u);
    EXPECT_REGISTER("warpid", 1u);
    EXPECT_REGISTER("lanemask_eq", 2u);
    EXPECT_REGISTER("lanemask_lt", 1u);
    EXPECT_REGISTER("lanemask_le", 3u);
    EXPECT_REGISTER("lanemask_gt", 0xfffffffcu);
    EXPECT_REGISTER("lanemask_ge", 0xfffffffeu);
    EXPECT_REGISTER("dynamic_smem_size", 48u);
#undef EXPECT_REGISTER
    Word sm, sms;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
    check.equal(sm < sms, true);
    std::uint64_t before, after;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
    do {
        asm volatile("nanosleep.u32 1000;\n\tmov.u64 %0, %%globaltimer;" : "=l"(after));
    } while (after == before);
    check.equal(after > before, true);
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(before));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(after));
    check.equal(after >= before, true);
}
TEST(PtxThreads, SpecialRegisters) {
    DeviceVector<Observation> observations(Checks::kCapacity);
    DeviceVector<unsigned> count(1);
    special_registers<<<3, 64, 48>>>(Checks(observations.data(), count.data()));
    compare(observations.to_host(), count.to_host()[0]);
}

// ---- Addresses, loads and stores ----------------------------------------------------------------

__device__ Word device_word = 77;

__global__ void addresses(Checks check, Word* global) {
    __shared__ Word fixed[8];
    __shared__ double other;
    extern __shared__ Word dynamic[];
    Word local = 5;
    fixed[3] = 11;
    dynamic[2] = 12;
    other = 13;
    Word d;
    asm volatile("ld.shared.u32 %0, [%1+12];" : "=r"(d) : "r"(shared_address(fixed)) : "memory");
    check.equal(d, 11u);
    asm volatile("{.reg .u64 a; cvta.to.shared.u64 a, %1; ld.shared.u32 %0, [a];}"
                 : "=r"(d)
                 : "l"(dynamic + 2)
                 : "memory");
    check.equal(d, 12u);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_address(&fixed[5])), "r"(14) : "memory");
    check.equal(fixed[5], 14u);
    asm volatile("st.u32 [%0+-4], 15;" ::"l"(&fixed[5]) : "memory");
    check.equal(fixed[4], 15u);
    double e;
    asm volatile("{.reg .u64 a; cvt.u64.u32 a, %1; cvta.shared.u64 a, a; ld.f64 %0, [a];}"
                 : "=d"(e)
                 : "r"(shared_address(&other))
                 : "memory");
    check.equal(e, 13.0);
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(d) : "l"(&device_word) : "memory");
    check.equal(d, 77u);
    const auto in_space = [](const void* pointer) {
        Word spaces;
        asm("{.reg .pred s, l, g; .reg .u32 t; isspacep.shared s, %1; isspacep.local l, %1; isspacep.global "
            "g, %1;"
            " selp.u32 %0, 1, 0, s; selp.u32 t, 2, 0, l; or.b32 %0, %0, t; selp.u32 t, 4, 0, g; or.b32 %0, "
            "%0, t;}"
            : "=&r"(spaces)
            : "l"(pointer));
        return spaces;
    };
    check.equal(in_space(&fixed[1]), 1u);
    check.equal(in_space(dynamic), 1u);
    check.equal(in_space(&local), 2u);
    check.equal(in_space(global), 4u);
    const auto space = [](const void* pointer) {
        return (__isShared(pointer) != 0 ? 1u : 0u) + (__isLocal(pointer) != 0 ? 2u : 0u) +
               (__isGlobal(pointer) != 0 ? 4u : 0u);
    };
    check.equal(space(&fixed[1]), 1u);
    check.equal(space(dynamic), 1u);
    check.equal(space(&local), 2u);
    check.equal(space(global), 4u);
    check.equal(space(&device_word), 4u);
}
TEST(PtxThreads, Addresses) {
    DeviceVector<Observation> observations(Checks::kCapacity);
    DeviceVector<unsigned> count(1);
    DeviceVector<Word> global(1);
    addresses<<<1, 1, 64>>>(Checks(observations.data(), count.data()), global.data());
    compare(observations.to_host(), count.to_host()[0]);
}

__constant__ Word constant_word;
__constant__ const Word constant_words[2] = {4, 5};
__device__ const Word plain_words[2] = {6, 7};

__global__ void constant_addresses(Checks check, Word* global) {
    __shared__ Word shared;
    Word local = 0;
    const auto constant = [](const void* pointer) {
        Word inside;
        asm("{.reg .pred p; isspacep.const p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(inside) : "l"(pointer));
        return 2 * __isConstant(pointer) + inside;
    };
    check.equal(constant(&constant_word), 3u);
    check.equal(constant(&constant_words[1]), 3u);
    check.equal(constant(&plain_words[1]), 0u);
    check.equal(constant(&device_word), 0u);
    check.equal(constant(&shared), 0u);
    check.equal(constant(&local), 0u);
    check.equal(constant(global), 0u);
    check.equal(__isGlobal(&constant_word), 0u);
    check.equal(__isGlobal(&plain_words[1]), 1u);
    check.equal(constant_word + constant_words[1], 7u);
    const void* const there = __cvta_grid_constant_to_generic(__cvta_generic_to_grid_constant(global));
    check.equal(there == global, true);
}
TEST(PtxThreads, ConstantMemory) {
    DeviceVector<Word> global(1);
    const Word two = 2;
    ASSERT_EQ(cudaMemcpyToSymbol(constant_word, &two, sizeof two), cudaSuccess);
    run_checks(constant_addresses, global.data());
}

struct Row {
    int of[3];
};
__device__ bool is_grid_constant(const void* pointer) {
    return __isGridConstant(pointer) != 0;
}
__global__ void grid_constants(Checks check, Row plain, const __grid_constant__ Row row,
                               const __grid_constant__ double number) {
    const Row local = row;
    check.equal(is_grid_constant(&row), true);
    check.equal(is_grid_constant(&row.of[hidden(2)]), true);
    check.equal(is_grid_constant(&number), true);
    check.equal(is_grid_constant(&plain.of[hidden(1)]), false);
    check.equal(is_grid_constant(&local.of[hidden(1)]), false);
    check.equal(is_grid_constant(&device_word), false);
    check.equal(__isLocal(&row), 0u);
    check.equal(__isShared(&row), 0u);
    __syncwarp();
    check.equal(is_grid_constant(&row.of[1]), true);
}
template <class... All>
__global__ void pack_of_grid_constants(Word* are, const __grid_constant__ All... all) {
    *are = (100 + ... + (__isGridConstant(&all) != 0 ? 1u : 0u));
}
// The same thread, but no parameter of this kernel is one.
__global__ void no_grid_constants(Checks check, Row row) {
    check.equal(is_grid_constant(&row.of[hidden(0)]), false);
    check.equal(is_grid_constant(&check), false);
}
TEST(PtxThreads, ParametersThatAreGridConstants) {
    run_checks(grid_constants, Row{{1, 2, 3}}, Row{{4, 5, 6}}, 8.0);
    run_checks(no_grid_constants, Row{{1, 2, 3}});
    DeviceVector<Word> are(1);
    pack_of_grid_constants<int, double><<<1, 1>>>(are.data(), 7, 8.0);
    EXPECT_EQ(are.to_host()[0], 102u);
    pack_of_grid_constants<><<<1, 1>>>(are.data());
    EXPECT_EQ(are.to_host()[0], 100u);
}

// Each kind of access to bytes 0x80, 0x81, ... 0x8f.
__global__ void loads(Checks check, const unsigned char* in) {
    Word d, x, y, z;
    short h, i;
    long long l, m;
    float f;
#define EXPECT_LOAD(text, expected)                            \
    asm volatile("ld." text " %0, [%1];" : "=r"(d) : "l"(in)); \
    check.equal(d, expected)
    EXPECT_LOAD("global.u8", 0x80u);
    EXPECT_LOAD("global.s8", 0xffffff80u);
    EXPECT_LOAD("u16", 0x8180u);
    EXPECT_LOAD("global.ca.s16", 0xffff8180u);
    EXPECT_LOAD("volatile.global.b32", 0x83828180u);
    EXPECT_LOAD("relaxed.gpu.global.u32", 0x83828180u);
    EXPECT_LOAD("acquire.sys.u32", 0x83828180u);
    EXPECT_LOAD("global.cg.u32", 0x83828180u);
    EXPECT_LOAD("global.cv.u32", 0x83828180u);
    EXPECT_LOAD("global.nc.u32", 0x83828180u);
    EXPECT_LOAD("global.nc.L1::no_allocate.L2::128B.u32", 0x83828180u);
#undef EXPECT_LOAD
    asm volatile("ld.global.s8 %0, [%1+1];" : "=h"(h) : "l"(in));
    check.equal(h, static_cast<short>(-127));
    asm volatile("ld.global.v2.b16 {%0, %1}, [%2];" : "=h"(h), "=h"(i) : "l"(in));
    check.equal(i, static_cast<short>(0x8382));
    asm volatile("ld.global.s32 %0, [%1];" : "=l"(l) : "l"(in));
    check.equal(l, -0x7c7d7e80ll);
    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(l), "=l"(m) : "l"(in));
    check.equal(m, static_cast<long long>(0x8f8e8d8c8b8a8988ull));
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(l), "=l"(m) : "l"(in));
    check.equal(l, static_cast<long long>(0x8786858483828180ull));
    check.equal(m, static_cast<long long>(0x8f8e8d8c8b8a8988ull));
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(d) : "l"(in));
    check.equal(x ^ y ^ z, 0x8b8a8988u ^ 0x04040404u);
    check.equal(d, 0x8f8e8d8cu);
    asm volatile("ld.global.v2.u8 {%0, %1}, [%2+4];" : "=r"(x), "=r"(y) : "l"(in));
    check.equal(x << 8 | y, 0x8485u);
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(f) : "l"(in));
    check.equal(__float_as_uint(f), 0x83828180u);
}
TEST(PtxThreads, Loads) {
    std::vector<unsigned char> bytes = numbered<unsigned char>(16);
    for (unsigned char& byte : bytes)
        byte = static_cast<unsigned char>(byte + 0x80);
    DeviceVector<unsigned char> in(bytes);
    run_checks<const unsigned char*>(loads, in.data());
}

__global__ void stores(unsigned char* out) {
    asm volatile("st.global.u8 [%0], %1;" ::"l"(out), "r"(0x1234) : "memory");
    asm volatile("st.b16 [%0+2], %1;" ::"l"(out), "h"(static_cast<short>(0x5678)) : "memory");
    asm volatile("st.global.cs.v2.f32 [%0+8], {%1, %2};" ::"l"(out), "f"(1.0f), "f"(-2.0f) : "memory");
    asm volatile("st.release.gpu.global.v2.b32 [%0+16], {%1, %2};" ::"l"(out), "r"(1), "r"(2) : "memory");
    asm volatile("st.volatile.global.u64 [%0+24], %1;" ::"l"(out), "l"(0x1122334455667788ll) : "memory");
    asm volatile("st.relaxed.cta.u32 [%0+4], 0xdeadbeef;" ::"l"(out) : "memory");
    asm volatile("st.relaxed.sys.global.v2.b64 [%0+32], {%1, %2};" ::"l"(out), "l"(3ll), "l"(4ll) : "memory");
}
TEST(PtxThreads, Stores) {
    DeviceVector<unsigned char> out(48);
    stores<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host(),
              (std::vector<unsigned char>{0x34, 0,    0x78, 0x56, 0xef, 0xbe, 0xad, 0xde, 0, 0, 0x80, 0x3f,
                                          0,    0,    0,    0xc0, 1,    0,    0,    0,    2, 0, 0,    0,
                                          0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3, 0, 0,    0,
                                          0,    0,    0,    0,    4,    0,    0,    0,    0, 0, 0,    0}));
}

// ---- Atomic operations --------------------------------------------------------------------------

__global__ void atomics(Word* words, float* sums, __half2* halves, unsigned long long* longs) {
    __shared__ Word shared;
    if (threadIdx.x == 0) shared = 0;
    __syncthreads();
    const Word t = threadIdx.x;
    Word old;
    asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(&words[0]), "r"(t) : "memory");
    asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(old) : "r"(shared_address(&shared)) : "memory");
    asm volatile("red.relaxed.gpu.global.min.s32 [%0], %1;" ::"l"(&words[1]), "r"(5 - static_cast<int>(t))
                 : "memory");
    asm volatile("red.global.max.u32 [%0], %1;" ::"l"(&words[2]), "r"(t) : "memory");
    asm volatile("red.global.or.b32 [%0], %1;" ::"l"(&words[3]), "r"(1u << t % 32) : "memory");
    asm volatile("red.global.and.b32 [%0], %1;" ::"l"(&words[4]), "r"(~(1u << t % 16)) : "memory");
    asm volatile("red.global.xor.b32 [%0], %1;" ::"l"(&words[5]), "r"(t) : "memory");
    asm volatile("atom.global.inc.u32 %0, [%1], 9;" : "=r"(old) : "l"(&words[6]) : "memory");
    asm volatile("red.global.dec.u32 [%0], 6;" ::"l"(&words[7]) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(sums), "f"(0.5f) : "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(halves), "r"(0x3c003800u) : "memory");
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(longs), "l"(1ull << 33) : "memory");
    // A lock: the loop waits for other threads.
    asm volatile(
        "{\n.reg .pred taken;\n.reg .u32 n;\nTRY:\n"
        "atom.acquire.gpu.global.cas.b32 n, [%0], 0, 1;\n"
        "setp.ne.u32 taken, n, 0;\n@taken bra TRY;\n"
        "ld.global.u32 n, [%0+4];\nadd.u32 n, n, 1;\nst.global.u32 [%0+4], n;\n"
        "atom.release.gpu.global.exch.b32 n, [%0], 0;\n}" ::"l"(&words[8])
        : "memory");
    __syncthreads();
    if (t == 0 && old < 10) words[10] = shared;
}
TEST(PtxThreads, Atomics) {
    std::vector<Word> begin(11);
    begin[4] = ~0u;
    DeviceVector<Word> words(begin);
    DeviceVector<float> sums(1);
    DeviceVector<__half2> halves(1);
    DeviceVector<unsigned long long> longs(1);
    atomics<<<1, 64>>>(words.data(), sums.data(), halves.data(), longs.data());
    EXPECT_EQ(words.to_host(),
              (std::vector<Word>{2016, static_cast<Word>(-58), 63, ~0u, 0xffff0000, 0, 4, 6, 0, 64, 64}));
    EXPECT_EQ(sums.to_host()[0], 32.0f);
    EXPECT_EQ(__low2float(halves.to_host()[0]), 32.0f);
    EXPECT_EQ(__high2float(halves.to_host()[0]), 64.0f);
    EXPECT_EQ(longs.to_host()[0], 64ull << 33);
}

// Block 1 waits for what block 0 publishes.
__global__ void publish(Word* flag, Word* data, Word* out) {
    if (blockIdx.x == 1) {
        *data = 42;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
        return;
    }
    Word seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        if (seen > 1) out[1] = seen;
    } while (seen == 0);
    out[0] = *data;
}
TEST(PtxThreads, LoadsThatAreRepeatedLetOthersRun) {
    DeviceVector<Word> flag(1), data(1), out(2);
    publish<<<2, 1>>>(flag.data(), data.data(), out.data());
    EXPECT_EQ(out.to_host()[0], 42u);
}

// ---- Warps --------------------------------------------------------------------------------------

__global__ void shuffles(Word* values, Word* inside) {
    const Word t = threadIdx.x;
    Word d, p;
    int k = 0;
#define SHUFFLE(mode, b, c)                                                  \
    asm volatile("{.reg .pred p; shfl.sync." mode ".b32 %0|p, %2, " b ", " c \
                 ", 0xffffffff; selp.u32 %1, 1, 0, p;}"                      \
                 : "=r"(d), "=r"(p)                                          \
                 : "r"(100 + t));                                            \
    values[32 * k + t] = d;                                                  \
    inside[32 * k++ + t] = p;
    SHUFFLE("up", "3", "0")
    SHUFFLE("up", "2", "0x1800")
    SHUFFLE("down", "5", "0x1f")
    SHUFFLE("down", "3", "0x181f")
    SHUFFLE("bfly", "6", "0x1f")
    SHUFFLE("bfly", "9", "0x1807")
    SHUFFLE("idx", "7", "0x1f")
    SHUFFLE("idx", "37", "0x181f")
#undef SHUFFLE
}
TEST(PtxThreads, Shuffles) {
    constexpr int kCases = 8;
    DeviceVector<Word> values(32 * kCases), inside(32 * kCases);
    shuffles<<<1, 32>>>(values.data(), inside.data());
    const std::vector<Word> got = values.to_host(), predicates = inside.to_host();
    struct Case {
        char mode;
        int b, c;
    };
    const Case cases[kCases] = {{'u', 3, 0},    {'u', 2, 0x1800}, {'d', 5, 0x1f}, {'d', 3, 0x181f},
                                {'b', 6, 0x1f}, {'b', 9, 0x1807}, {'i', 7, 0x1f}, {'i', 5, 0x181f}};
    for (int k = 0; k < kCases; ++k) {
        const auto [mode, b, c] = cases[k];
        const int bound = c & 31, segment = c >> 8;
        for (int lane = 0; lane < 32; ++lane) {
            const int last = (lane & segment) | (bound & ~segment), first = lane & segment;
            int from = mode == 'u'   ? lane - b
                       : mode == 'd' ? lane + b
                       : mode == 'b' ? lane ^ b
                                     : first | (b & ~segment);
            const bool within = mode == 'u' ? from >= last : from <= last;
            if (!within) from = lane;
            EXPECT_EQ(got[static_cast<std::size_t>(32 * k + lane)], 100u + static_cast<Word>(from))
                << mode << " " << k << " lane " << lane;
            EXPECT_EQ(predicates[static_cast<std::size_t>(32 * k + lane)], within ? 1u : 0u)
                << mode << " " << k << " lane " << lane;
        }
    }
}

__global__ void votes(Checks check) {
    const int t = static_cast<int>(threadIdx.x);
    Word d, e;
#define VOTE(mode, condition)                                           \
    asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; vote.sync." mode \
                 ".pred p, p, 0xffffffff; selp.u32 %0, 1, 0, p;}"       \
                 : "=r"(d)                                              \
                 : "r"(static_cast<int>(condition)))
    VOTE("all", t < 32);
    Word seen = d;
    VOTE("all", t < 31);
    seen = seen << 1 | d;
    VOTE("any", t == 7);
    seen = seen << 1 | d;
    VOTE("uni", t < 40);
    seen = seen << 1 | d;
    VOTE("uni", t < 4);
    seen = seen << 1 | d;
#undef VOTE
    asm volatile("{.reg .pred p; setp.gt.s32 p, %1, 28; vote.sync.ballot.b32 %0, !p, 0xffffffff;}"
                 : "=r"(d)
                 : "r"(t));
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(e) : "r"(t % 4));
    Word sum, least, mask;
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(t));
    asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(t - 10));
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    if (t != 2) return;
    check.equal(seen, 0b10110u);
    check.equal(d, 0x1fffffffu);
    check.equal(e, 0x44444444u);
    check.equal(sum, 496u);
    check.equal(static_cast<int>(least), -10);
    check.equal(mask, 0xffffffffu);
}
TEST(PtxThreads, Votes) {
    DeviceVector<Observation> observations(Checks::kCapacity);
    DeviceVector<unsigned> count(1);
    votes<<<1, 32>>>(Checks(observations.data(), count.data()));
    compare(observations.to_host(), count.to_host()[0]);
}

__global__ void uniform_votes(Word* out) {
    const Word lane = threadIdx.x;
    out[lane] = __uni_sync(~0u, lane < 32) + 2 * __uni_sync(~0u, lane > 99) + 4 * __uni_sync(~0u, lane == 7) +
                8 * __uni_sync(lane < 16 ? 0xffffu : 0xffff0000u, lane < 16);
}
TEST(PtxThreads, UniformVotes) {
    DeviceVector<Word> out(32);
    uniform_votes<<<1, 32>>>(out.data());
    for (const Word votes : out.to_host())
        EXPECT_EQ(votes, 1u + 2 + 8);
}

// ---- Blocks -------------------------------------------------------------------------------------

// The first warp produces, the second one consumes; half of the threads end before.
__global__ void named_barriers(Word* out) {
    __shared__ Word box[32];
    const Word t = threadIdx.x, lane = t % 32;
    if (t >= 64) asm volatile("exit;");
    for (Word round = 0; round < 3; ++round) {
        if (t < 32) {
            if (round > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
            box[lane] = round * 100 + lane;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync %0, %1;" ::"r"(1), "n"(64) : "memory");
            out[lane] += box[31 - lane];
            if (round < 2) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}
TEST(PtxThreads, NamedBarriersAndExit) {
    DeviceVector<Word> out(32);
    named_barriers<<<1, 128>>>(out.data());
    const std::vector<Word> got = out.to_host();
    for (Word lane = 0; lane < 32; ++lane)
        EXPECT_EQ(got[lane], 300 + 3 * (31 - lane));
}

// The same by functions: two groups of 64 threads, each at a barrier of its own; then all.
__global__ void barriers_by_number(Word* out) {
    __shared__ Word box[128];
    const Word t = threadIdx.x, group = t / 64;
    if (t == 127) box[127] = 5;
    box[t] = 1000 + t;
    __barrier_sync_count(1 + group, 64);
    const Word other = box[64 * group + 63 - t % 64];
    __barrier_sync(3);
    box[t] = other;
    __barrier_sync(0);
    out[t] = box[127 - t];
}
TEST(PtxThreads, NamedBarriersAsFunctions) {
    DeviceVector<Word> out(128);
    barriers_by_number<<<1, 128>>>(out.data());
    const std::vector<Word> got = out.to_host();
    for (Word t = 0; t < 128; ++t) {
        const Word from = 127 - t;
        EXPECT_EQ(got[t], 1000 + from / 64 * 64 + 63 - from % 64) << t;
    }
}

__global__ void count_in_block(Word* out) {
    __shared__ Word last;
    Word count, all;
    last = 0;
    asm volatile("bar.sync 0;" ::: "memory");
    if (threadIdx.x == 95) last = 95;
    asm volatile("barrier.sync.aligned 0;" ::: "memory");
    asm volatile(
        "{.reg .pred p, q; setp.lt.u32 p, %2, 40; bar.red.popc.u32 %0, 0, p; bar.red.and.pred q, 0, p; "
        "selp.u32 %1, 1, "
        "0, q;}"
        : "=r"(count), "=r"(all)
        : "r"(threadIdx.x));
    if (threadIdx.x == 3) {
        out[0] = last;
        out[1] = count;
        out[2] = all;
    }
}
TEST(PtxThreads, BlockBarriers) {
    DeviceVector<Word> out(3);
    count_in_block<<<1, 96>>>(out.data());
    EXPECT_EQ(out.to_host(), (std::vector<Word>{95, 40, 0}));
}

// Two halves of the block of 128 vote at barriers of their own, several times in a row.
__global__ void vote_in_halves(Word* out) {
    const Word half = threadIdx.x / 64;
    for (Word i = 0; i < 3; ++i) {
        Word count, any, all;
        asm volatile(
            "{.reg .pred p, q, r; setp.lt.u32 p, %3, %4;\n"
            "barrier.red.popc.aligned.u32 %0, %5, 64, p;\n"
            "bar.red.or.pred q, %5, 64, p;\n"
            "bar.red.and.pred r, %5, 64, p;\n"
            "selp.u32 %1, 1, 0, q; selp.u32 %2, 1, 0, r;}"
            : "=r"(count), "=r"(any), "=r"(all)
            : "r"(threadIdx.x), "r"(80 + 24 * i), "r"(1 + half));
        Word everywhere;
        asm volatile(
            "{.reg .pred p, q; setp.eq.u32 p, %1, 127; bar.red.or.pred q, 5, p; selp.u32 %0, 1, 0, q;}"
            : "=r"(everywhere)
            : "r"(threadIdx.x));
        if (threadIdx.x % 64 == 7) {
            Word* const mine = out + 4 * (3 * half + i);
            mine[0] = count;
            mine[1] = any;
            mine[2] = all;
            mine[3] = everywhere;
        }
    }
}
TEST(PtxThreads, VoteAtNamedBarriers) {
    DeviceVector<Word> out(24);
    vote_in_halves<<<1, 128>>>(out.data());
    EXPECT_EQ(out.to_host(), (std::vector<Word>{64, 1, 1, 1, 64, 1, 1, 1, 64, 1, 1, 1,  //
                                                16, 1, 0, 1, 40, 1, 0, 1, 64, 1, 1, 1}));
}

// A barrier counts whole warps: the last one of 40 threads has 8.
__global__ void meet_in_whole_warps(Word* out) {
    __shared__ Word box[40];
    const Word t = threadIdx.x;
    for (Word i = 0; i < 3; ++i) {
        box[t] = 100 * i + t;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[t] += box[39 - t];
        asm volatile("bar.sync 2;" ::: "memory");
    }
    if (t >= 32) {
        box[t] = t;
        asm volatile("bar.sync 3, 32;" ::: "memory");
        out[t] = box[71 - t];
    }
    Word count;
    asm volatile("{.reg .pred p; setp.ge.u32 p, %1, 10; bar.red.popc.u32 %0, 4, 64, p;}"
                 : "=r"(count)
                 : "r"(t));
    if (t == 0) out[40] = count;
}
TEST(PtxThreads, NamedBarriersCountWholeWarps) {
    DeviceVector<Word> out(41);
    meet_in_whole_warps<<<1, 40>>>(out.data());
    const std::vector<Word> got = out.to_host();
    for (Word t = 0; t < 40; ++t)
        EXPECT_EQ(got[t], t < 32 ? 300 + 3 * (39 - t) : 71 - t) << t;
    EXPECT_EQ(got[40], 30u);
}

// ---- Asynchronous copies ------------------------------------------------------------------------

__global__ void copies(const float* in, float* out) {
    __shared__ alignas(16) float tile[4][128];
    const Word t = threadIdx.x;
    const Word at = shared_address(&tile[0][4 * t]);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(at), "l"(in + 4 * t), "n"(16));
    asm volatile("cp.async.commit_group;\n" ::);
    asm volatile("cp.async.ca.shared::cta.global [%0+512], [%1], 16, %2;" ::"r"(at), "l"(in + 4 * t),
                 "r"(t % 2 == 0 ? 16 : 4));
    asm volatile("cp.async.commit_group;");
    asm volatile(
        "{.reg .pred p; setp.eq.u32 p, %2, 5; cp.async.ca.shared.global [%0+1024], [%1], 8, p;}" ::"r"(at),
        "l"(in + 4 * t), "r"(t));
    asm volatile("cp.async.wait_group %0;\n" ::"n"(1) : "memory");
    out[t] = tile[0][4 * t + 3];
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    out[32 + t] = tile[1][4 * t] + tile[1][4 * t + 3];
    out[64 + t] = tile[2][4 * t + 1];
}
TEST(PtxThreads, AsynchronousCopies) {
    DeviceVector<float> in(numbered<float>(128)), out(96);
    copies<<<1, 32>>>(in.data(), out.data());
    const std::vector<float> got = out.to_host();
    for (std::size_t t = 0; t < 32; ++t) {
        const float first = 4.0f * static_cast<float>(t);
        EXPECT_EQ(got[t], first + 3);
        EXPECT_EQ(got[32 + t], t % 2 == 0 ? 2 * first + 3 : first);
        EXPECT_EQ(got[64 + t], t == 5 ? 0 : first + 1);
    }
}

// All threads arrive, half of them with copies; those that wait ask again and again.
__global__ void arrivals(const Word* in, Word* out) {
    __shared__ std::uint64_t barrier;
    __shared__ Word box[64];
    const Word t = threadIdx.x;
    if (t == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(64)
                     : "memory");
    __syncthreads();
    for (Word round = 0; round < 3; ++round) {
        std::uint64_t state;
        box[t] = in[t] + round;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];"
                     : "=l"(state)
                     : "r"(shared_address(&barrier))
                     : "memory");
        Word done;
        do {
            asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(shared_address(&barrier)), "l"(state)
                         : "memory");
        } while (done == 0);
        out[t] += box[63 - t];
        __syncthreads();
    }
}
TEST(PtxThreads, Mbarriers) {
    DeviceVector<Word> in(numbered<Word>(64)), out(64);
    arrivals<<<1, 64>>>(in.data(), out.data());
    const std::vector<Word> got = out.to_host();
    for (Word t = 0; t < 64; ++t)
        EXPECT_EQ(got[t], 3 * (63 - t) + 3);
}

// ---- Matrices -----------------------------------------------------------------------------------

// ldmatrix and stmatrix, with and without .trans, as their definition says.
__global__ void load_matrices(const unsigned short* in, Word* out) {
    __shared__ alignas(16) unsigned short tile[32][8];
    const Word t = threadIdx.x;
    for (int c = 0; c < 8; ++c)
        tile[t][c] = in[8 * t + c];
    __syncwarp();
    const Word row = shared_address(tile[t]);
    Word r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row));
    for (int i = 0; i < 4; ++i)
        out[32 * i + t] = r[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row));
    out[128 + t] = r[0];
    out[160 + t] = r[1];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 {%0}, [%1];\n" : "=r"(r[0]) : "r"(row));
    out[192 + t] = r[0];
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[1]) : "r"(r[0]));
    out[224 + t] = r[1];
}
TEST(PtxThreads, MatricesFromSharedMemory) {
    DeviceVector<unsigned short> in(numbered<unsigned short>(256));
    DeviceVector<Word> out(256);
    load_matrices<<<1, 32>>>(in.data(), out.data());
    const std::vector<Word> got = out.to_host();
    const auto element = [](Word m, Word row, Word column) { return 64 * m + 8 * row + column; };
    for (Word t = 0; t < 32; ++t) {
        const Word g = t / 4, c = 2 * (t % 4);
        for (Word m = 0; m < 4; ++m)
            EXPECT_EQ(got[32 * m + t], element(m, g, c) | element(m, g, c + 1) << 16);
        for (Word m = 0; m < 2; ++m)
            EXPECT_EQ(got[128 + 32 * m + t], element(m, c, g) | element(m, c + 1, g) << 16);
        EXPECT_EQ(got[192 + t], got[128 + t]);
        EXPECT_EQ(got[224 + t], got[t]);
    }
}

// Products of small whole numbers are exact in every type.
template <class Kernel, class Pack>
void expect_product(Kernel kernel, Word m, Word k, Word per_register, Pack pack) {
    std::vector<int> a(m * k), b(k * 8), c(m * 8);
    const std::vector<Word> words = random_words(a.size() + b.size() + c.size());
    std::size_t next = 0;
    for (std::vector<int>* matrix : {&a, &b, &c}) {
        for (int& element : *matrix)
            element = static_cast<int>(words[next++] % 8);
    }
    const Word halves = m / 8, parts = k / (4 * per_register);
    std::vector<Word> fragments_a(32 * 4), fragments_b(32 * 2);
    std::vector<float> fragments_c(32 * 4);
    for (Word lane = 0; lane < 32; ++lane) {
        const Word g = lane / 4, t = lane % 4;
        for (Word j = 0; j < per_register; ++j) {
            for (Word i = 0; i < halves * parts; ++i)
                fragments_a[4 * lane + i] |= pack(
                    a[(g + 8 * (i % halves)) * k + 4 * per_register * (i / halves) + per_register * t + j],
                    j);
            for (Word i = 0; i < parts; ++i)
                fragments_b[2 * lane + i] |=
                    pack(b[(4 * per_register * i + per_register * t + j) * 8 + g], j);
        }
        for (Word i = 0; i < 2 * halves; ++i)
            fragments_c[4 * lane + i] = static_cast<float>(c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2]);
    }
    DeviceVector<Word> device_a(fragments_a), device_b(fragments_b);
    DeviceVector<float> device_c(fragments_c);
    kernel<<<1, 32>>>(device_a.data(), device_b.data(), device_c.data());
    const std::vector<float> got = device_c.to_host();
    for (Word lane = 0; lane < 32; ++lane) {
        for (Word i = 0; i < 2 * halves; ++i) {
            const Word row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            int expected = c[row * 8 + column];
            for (Word l = 0; l < k; ++l)
                expected += a[row * k + l] * b[l * 8 + column];
            EXPECT_EQ(got[4 * lane + i], static_cast<float>(expected))
                << "row " << row << ", column " << column;
        }
    }
}

#define MMA_KERNEL(name, text_f32, ...)                               \
    __global__ void name(const Word* a, const Word* b, float* c) {    \
        a += 4 * threadIdx.x;                                         \
        b += 2 * threadIdx.x;                                         \
        c += 4 * threadIdx.x;                                         \
        asm volatile("mma.sync.aligned." text_f32                     \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
                     : __VA_ARGS__);                                  \
    }
#define A4 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
MMA_KERNEL(
    mma_f16_k16,
    "m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n", A4,
    "r"(b[0]), "r"(b[1]))
MMA_KERNEL(mma_f16_k8, "m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};",
           "r"(a[0]), "r"(a[1]), "r"(b[0]))
MMA_KERNEL(mma_bf16_k16,
           "m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};", A4,
           "r"(b[0]), "r"(b[1]))
MMA_KERNEL(mma_tf32_k8,
           "m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};", A4,
           "r"(b[0]), "r"(b[1]))
MMA_KERNEL(mma_tf32_k4, "m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};",
           "r"(a[0]), "r"(a[1]), "r"(b[0]))
#undef MMA_KERNEL
__global__ void mma_f16_sums(const Word* a, const Word* b, float* c) {
    a += 4 * threadIdx.x;
    b += 2 * threadIdx.x;
    c += 4 * threadIdx.x;
    Word d[2];
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d[0]) : "f"(c[1]), "f"(c[0]));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d[1]) : "f"(c[3]), "f"(c[2]));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};\n"
        : "+r"(d[0]), "+r"(d[1])
        : A4, "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i)
        asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}"
            : "=f"(c[i])
            : "r"(i % 2 == 0 ? d[i / 2] : d[i / 2] >> 16));
}
__global__ void mma_s8_k32(const Word* a, const Word* b, float* c) {
    a += 4 * threadIdx.x;
    b += 2 * threadIdx.x;
    c += 4 * threadIdx.x;
    int d[4];
    for (int i = 0; i < 4; ++i)
        d[i] = static_cast<int>(c[i]);
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : A4, "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i)
        c[i] = static_cast<float>(d[i]);
}
#undef A4
__global__ void mma_f64_k4(const Word* a, const Word* b, float* c) {
    c += 4 * threadIdx.x;
    double d[2] = {c[0], c[1]};
    const double x = __uint_as_float(a[4 * threadIdx.x]), y = __uint_as_float(b[2 * threadIdx.x]);
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(x), "d"(y));
    c[0] = static_cast<float>(d[0]);
    c[1] = static_cast<float>(d[1]);
}
TEST(PtxThreads, MatrixProducts) {
    const auto half = [](int value, Word j) {
        return Word{__half_raw(__float2half_rn(static_cast<float>(value))).x} << 16 * j;
    };
    const auto upper_half = [](int value, Word j) {
        return __builtin_bit_cast(Word, static_cast<float>(value)) >> 16 << 16 * j;
    };
    const auto whole = [](int value, Word) { return __builtin_bit_cast(Word, static_cast<float>(value)); };
    const auto byte = [](int value, Word j) { return static_cast<Word>(value & 255) << 8 * j; };
    expect_product(mma_f16_k16, 16, 16, 2, half);
    expect_product(mma_f16_k8, 16, 8, 2, half);
    expect_product(mma_f16_sums, 16, 16, 2, half);
    expect_product(mma_bf16_k16, 16, 16, 2, upper_half);
    expect_product(mma_tf32_k8, 16, 8, 1, whole);
    expect_product(mma_tf32_k4, 16, 4, 1, whole);
    expect_product(mma_s8_k32, 16, 32, 4, byte);
    expect_product(mma_f64_k4, 8, 4, 1, whole);
}

}  // namespace
