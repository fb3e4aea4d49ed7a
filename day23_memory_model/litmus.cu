// Day 23's litmus tests: the list of forms, and how they are run. The kernels are in litmus.cuh.
#include <algorithm>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "litmus.cuh"
#include "litmus.hpp"

namespace day23 {
namespace {

using litmus::Access;
using litmus::Fence;
using enum Access;

struct Test {
    const char* name;
    const char* weak;
    unsigned roles, used, weak_index;
};
constexpr Test kMessage{"message_passing", "1 0", 2, 2, 0b01};
constexpr Test kStores{"store_buffering", "0 0", 2, 2, 0b00};
constexpr Test kLoads{"load_buffering", "1 1", 2, 2, 0b11};
constexpr Test kCoherence{"coherence", "1 0", 2, 2, 0b01};
constexpr Test kReaders{"two_readers", "1 0 1 0", 4, 4, 0b0101};

enum class Verdict { kRace, kWeak, kForbidden };

template <class Kernel>
LitmusForm form(const Test& test, const char* name, Verdict verdict, Kernel* kernel) {
    LitmusForm made{.test = test.name, .form = name, .weak = test.weak};
    made.may_be_weak = verdict != Verdict::kForbidden;
    made.is_race = verdict == Verdict::kRace;
    made.roles = test.roles;
    made.used = test.used;
    made.weak_index = test.weak_index;
    made.launch = [kernel, roles = test.roles](const LitmusForm::Memory& memory, unsigned groups,
                                               cudaStream_t stream) {
        litmus::launch(kernel, {memory.words, memory.registers, memory.met}, groups, roles, stream);
        CUDA_CHECK_LAUNCH();
    };
    return made;
}

std::vector<LitmusForm> all_forms() {
    using namespace litmus;
    using enum Verdict;
    constexpr Fence kNoFence = Fence::kNone;
    constexpr Fence kBlockFence = Fence::kBlock;
    constexpr Fence kDeviceFence = Fence::kDevice;
    return {
        form(kMessage, "plain", kRace, message_passing<kPlain>),
        form(kMessage, "volatile flag", kRace, message_passing<kVolatile>),
        form(kMessage, "relaxed flag", kRace, message_passing<kRelaxed>),
        form(kMessage, "no acquire", kRace, message_passing<kRelaxed, kDeviceFence, kNoFence>),
        form(kMessage, "no release", kRace, message_passing<kRelaxed, kNoFence, kDeviceFence>),
        form(kMessage, "fences of a block", kRace, message_passing<kRelaxed, kBlockFence, kBlockFence>),
        form(kMessage, "scope of a block", kRace, message_passing<kOrderedInBlock>),
        form(kMessage, "fences", kForbidden, message_passing<kRelaxed, kDeviceFence, kDeviceFence>),
        form(kMessage, "release, acquire", kForbidden, message_passing<kOrdered>),
        form(kMessage, "all relaxed", kWeak, message_passing<kRelaxed, kNoFence, kNoFence, kRelaxed>),
        form(kMessage, "relaxed, fences", kForbidden,
             message_passing<kRelaxed, kDeviceFence, kDeviceFence, kRelaxed>),

        form(kStores, "plain", kRace, store_buffering<kPlain>),
        form(kStores, "relaxed", kWeak, store_buffering<kRelaxed>),
        form(kStores, "release, acquire", kWeak, store_buffering<kOrdered>),
        form(kStores, "fences", kForbidden, store_buffering<kRelaxed, kDeviceFence>),
        form(kStores, "sequential", kForbidden, store_buffering<kSequential>),

        form(kLoads, "plain", kRace, load_buffering<kPlain>),
        form(kLoads, "relaxed", kWeak, load_buffering<kRelaxed>),
        form(kLoads, "release, acquire", kForbidden, load_buffering<kOrdered>),

        form(kCoherence, "plain", kRace, coherence<kPlain>),
        form(kCoherence, "relaxed", kForbidden, coherence<kRelaxed>),

        form(kReaders, "plain", kRace, two_readers<kPlain>),
        form(kReaders, "relaxed", kWeak, two_readers<kRelaxed>),
        form(kReaders, "release, acquire", kWeak, two_readers<kOrdered>),
        form(kReaders, "fences", kForbidden, two_readers<kRelaxed, kDeviceFence>),
        form(kReaders, "sequential", kForbidden, two_readers<kSequential>),
    };
}

}  // namespace

std::span<const LitmusForm> litmus_forms() {
    static const std::vector<LitmusForm> list = all_forms();
    return list;
}

const LitmusForm& find_litmus_form(const std::string& test, const std::string& form) {
    const auto list = litmus_forms();
    const auto found =
        std::ranges::find_if(list, [&](const LitmusForm& f) { return f.test == test && f.form == form; });
    course::require(found != list.end(), "find_litmus_form: there is no ", test, " with ", form);
    return *found;
}

LitmusCounts run_litmus(const LitmusForm& form, std::uint64_t runs, unsigned groups) {
    course::require(runs > 0, "run_litmus: runs is 0; expected at least 1");
    if (groups == 0) groups = std::max(1U, course::multiprocessors() * 8 / form.roles);
    const unsigned instances = groups * litmus::kThreads;
    course::DeviceBuffer<unsigned> words(std::size_t{instances} * 2);
    course::DeviceBuffer<unsigned> registers(std::size_t{instances} * litmus::kRegisters);
    course::DeviceBuffer<unsigned> met(groups);
    course::DeviceBuffer<unsigned long long> counts(LitmusCounts{}.size());
    CUDA_CHECK(cudaMemset(counts.data(), 0, counts.bytes()));
    for (std::uint64_t done = 0; done < runs; done += instances) {
        CUDA_CHECK(cudaMemsetAsync(words.data(), 0, words.bytes(), nullptr));
        CUDA_CHECK(cudaMemsetAsync(met.data(), 0, met.bytes(), nullptr));
        form.launch({words.data(), registers.data(), met.data()}, groups, nullptr);
        litmus::count_outcomes<<<course::blocks_for(instances, 256), 256>>>(registers.data(), instances,
                                                                            form.used, counts.data());
        CUDA_CHECK_LAUNCH();
    }
    LitmusCounts result{};
    std::ranges::copy(counts.to_host(), result.begin());
    return result;
}

std::vector<LitmusResult> run_litmus_tests(std::uint64_t runs) {
    std::vector<LitmusResult> results;
    for (const LitmusForm& form : litmus_forms()) {
        LitmusResult result{&form, 0, 0, run_litmus(form, runs)};
        for (const std::uint64_t count : result.counts)
            result.runs += count;
        result.weak = result.counts[form.weak_index];
        results.push_back(result);
    }
    return results;
}

}  // namespace day23
