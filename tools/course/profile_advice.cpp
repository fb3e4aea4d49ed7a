// The words of a profile: each class of scripts/counters.py, and each state of a warp in which
// Nsight Compute finds it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "profile_view.hpp"

namespace course::tool {
namespace {

const std::array<Advice, 16> kLimits = {{
    {"memory",
     "",
     "move fewer bytes: fuse kernels, read the data once, use smaller types. Near 100 % nothing else helps",
     {"day11", "day20"}},
    {"L2",
     "",
     "fewer sectors: coalesce the accesses, and reuse data from shared memory or registers",
     {"day05", "day06", "day07"}},
    {"shared memory",
     "",
     "wider accesses (float4), and more results per thread from values in registers",
     {"day06", "day07", "gemm_ladder"}},
    {"L1",
     "",
     "fewer sectors in each request, and data that several threads use through shared memory",
     {"day05", "day06"}},
    {"atomics",
     "",
     "add up in registers or shared memory first, then once per block",
     {"day07", "day12", "day15"}},
    {"tensor",
     "",
     "a matrix product has arrived where it should be; what remains is fewer operations, or 8-bit operands",
     {"day41", "day42"}},
    {"FMA",
     "",
     "a product in FP32 has arrived where it should be; what remains is fewer operations, or tensor cores",
     {"gemm_ladder", "day40"}},
    {"ALU",
     "",
     "fewer integer operations and comparisons: indices out of the loop, constants known to the compiler",
     {"day17", "day48"}},
    {"FP64",
     "",
     "is double needed? Write 1.0f instead of 1.0, and sqrtf() instead of sqrt(): one double makes an "
     "expression double",
     {"day00"}},
    {"special functions",
     "",
     "fewer exponentials and square roots, or some of them as polynomials on the FMA units",
     {"day20", "day43"}},
    {"issue",
     "",
     "fewer instructions: wider loads, unrolled loops, several results per thread",
     {"day15", "gemm_ladder"}},
    {"power",
     "",
     "the units are full, and the GPU lowers its clock: fewer operations, and operands that move less often",
     {"day41"}},
    {"launch",
     "",
     "fewer launches with more work in each: fuse kernels, or use a CUDA graph",
     {"day07", "day09", "day24"}},
    {"barriers",
     "",
     "fewer barriers, more work between two of them, shuffles within a warp, or smaller blocks",
     {"day15", "day38"}},
    {"constant memory",
     "",
     "less constant memory than the constant cache of an SM holds, or shared memory in place of it",
     {"day10", "day37"}},
    {"latency",
     "",
     "more work in flight: independent loads and results per thread, more warps, asynchronous copies",
     {"day03", "day04", "day07", "day38"}},
}};

const std::array<Advice, 18> kStalls = {{
    {"barrier",
     "wait at a barrier for slower warps of the block",
     "fewer barriers, equal work for all warps, smaller blocks",
     {"day15", "day38"}},
    {"branch_resolving",
     "wait until a branch is decided",
     "fewer branches in the inner loop: unroll it, or compute both sides and choose",
     {"day03"}},
    {"dispatch_stall",
     "are ready, but the dispatch is held back, for instance by two operands in one register bank",
     "another order of the same operations; the compiler decides, so compare the machine code",
     {"gemm_ladder"}},
    {"drain",
     "are done, and wait until their last stores have left",
     "coalesced stores, and more work per block before them",
     {"day06"}},
    {"imc_miss",
     "wait for constants or parameters that are not in the constant cache",
     "fewer different constants; more work per block, so that the first loads count less",
     {"day10"}},
    {"lg_throttle",
     "wait for a place in the queue of global and local memory accesses",
     "fewer and wider loads (float4), coalesced, or data reused from shared memory",
     {"day05", "day06", "day15"}},
    {"long_scoreboard",
     "wait for data from global or local memory",
     "more loads in flight before the first is used, fewer sectors, data reused from shared memory",
     {"day04", "day15", "day38"}},
    {"math_pipe_throttle",
     "are ready, but the arithmetic unit that they need is busy",
     "fewer of these operations, or some of them on another unit",
     {"day40", "day43"}},
    {"membar",
     "wait at a memory fence until their writes can be seen",
     "fewer fences, and acquire and release at the flags only",
     {"day24"}},
    {"mio_throttle",
     "wait for a place in the queue of shared memory, shuffles and special functions",
     "fewer and wider accesses to shared memory (float4), values reused from registers",
     {"day05", "gemm_ladder"}},
    {"misc",
     "wait for another reason, which the profiler does not name",
     "look at the other waits",
     {"day03"}},
    {"no_instruction",
     "wait for the next instruction, which is not in the instruction cache",
     "shorter code: less unrolling, smaller kernels",
     {"gemm_ladder"}},
    {"not_selected",
     "are ready, but the scheduler issues another warp",
     "no loss: there are enough warps. Some could be traded for more results per thread",
     {"day03", "gemm_ladder"}},
    {"selected", "issue an instruction", "fewer instructions, if issue is what limits", {"day03"}},
    {"short_scoreboard",
     "wait for data from shared memory, for a shuffle or for a special function",
     "no bank conflicts, values in registers, independent work between access and use",
     {"day06", "gemm_ladder"}},
    {"sleeping", "sleep in __nanosleep()", "a shorter sleep, or less to wait for", {"day24"}},
    {"tex_throttle",
     "wait for a place in the queue of textures and surfaces",
     "fewer of these accesses",
     {"day10"}},
    {"wait",
     "wait the fixed number of cycles that the instruction before takes",
     "independent instructions: several results per thread, unrolled loops",
     {"day03", "gemm_ladder"}},
}};

}  // namespace

std::span<const Advice> advice_on_limits() {
    return kLimits;
}

std::span<const Advice> advice_on_stalls() {
    return kStalls;
}

const Advice& advice_on(std::span<const Advice> all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &Advice::name);
    if (found == all.end()) throw std::runtime_error(fmt::format("there are no words for '{}'", name));
    return *found;
}

std::string days_text(const Advice& advice) {
    std::vector<std::string> names;
    for (const std::string_view day : advice.days)
        names.push_back(day == "gemm_ladder" ? "the ladder" : fmt::format("day {}", day.substr(3)));
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace course::tool
