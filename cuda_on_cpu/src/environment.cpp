#include "environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

namespace cuda_on_cpu {
namespace {

[[noreturn]] void refuse_setting(const char* name, std::string_view value, const char* expected) {
    std::fprintf(stderr, "cuda_on_cpu: %s is '%.*s'; expected %s\n", name, static_cast<int>(value.size()),
                 value.data(), expected);
    std::exit(2);
}

unsigned positive_number(const char* name, unsigned otherwise, unsigned maximum) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') return otherwise;
    const std::string_view value = text;
    unsigned number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number == 0 || number > maximum) {
        const std::string expected = "a whole number from 1 to " + std::to_string(maximum);
        refuse_setting(name, value, expected.c_str());
    }
    return number;
}

// Is the variable set to the second of two words? The first is the default.
bool second_word(const char* name, std::string_view first, std::string_view second) {
    const char* text = std::getenv(name);
    const std::string_view word = text == nullptr ? "" : text;
    if (word.empty() || word == first) return false;
    if (word == second) return true;
    refuse_setting(name, word, (std::string(first) + " or " + std::string(second)).c_str());
}

BarrierRule barrier_rule(const char* name) {
    const char* text = std::getenv(name);
    const std::string_view word = text == nullptr ? "" : text;
    if (word.empty() || word == "same") return BarrierRule::same;
    if (word == "any") return BarrierRule::any;
    if (word == "whole") return BarrierRule::whole;
    refuse_setting(name, word, "same, any or whole");
}

// "cudaMemcpy:2"
Refusal refusal_of(const char* name) {
    const char* text = std::getenv(name);
    const std::string_view word = text == nullptr ? "" : text;
    if (word.empty()) return {};
    constexpr std::string_view kCalls[] = {"cudaMalloc:", "cudaMemcpy:", "launch:"};  // as in RefusedCall
    for (std::size_t i = 0; i < std::size(kCalls); ++i) {
        if (!word.starts_with(kCalls[i])) continue;
        Refusal refusal{static_cast<RefusedCall>(i)};
        const char* const end = word.data() + word.size();
        const auto [read, error] = std::from_chars(word.data() + kCalls[i].size(), end, refusal.number);
        if (error == std::errc() && read == end && refusal.number > 0) return refusal;
    }
    refuse_setting(name, word, "cudaMalloc, cudaMemcpy or launch, and which one: cudaMalloc:1");
}

// A compute capability that device_limits() supports.
Capability capability_of(const char* name) {
    const char* text = std::getenv(name);
    const std::string_view word = text == nullptr ? "" : text;
    if (word.empty()) return {9, 0};
    for (const Capability known : {Capability{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {12, 0}}) {
        if (word == std::to_string(known.major) + "." + std::to_string(known.minor)) return known;
    }
    refuse_setting(name, word, "7.5, 8.0, 8.6, 8.9, 9.0, 10.0 or 12.0");
}

// One of two words, or `random:SEED`. The first word is the default.
template <class Word>
Seeded<Word> seeded_word(const char* name, std::string_view first, std::string_view second) {
    const char* text = std::getenv(name);
    const std::string_view word = text == nullptr ? "" : text;
    if (word.empty() || word == first) return {};
    if (word == second) return {static_cast<Word>(1), 0};
    constexpr std::string_view kRandom = "random:";
    if (word.starts_with(kRandom)) {
        std::uint64_t seed = 0;
        const char* const end = word.data() + word.size();
        const auto [read, error] = std::from_chars(word.data() + kRandom.size(), end, seed);
        if (error == std::errc() && read == end) return {static_cast<Word>(2), seed};
    }
    refuse_setting(
        name, word,
        (std::string(first) + ", " + std::string(second) + " or random: and a seed, random:1").c_str());
}

}  // namespace

const Environment& environment() {
    static const Environment read = {
        .devices = positive_number("CUDA_ON_CPU_DEVICES", 1, kMostDevices),
        .capability = capability_of("CUDA_ON_CPU_CAPABILITY"),
        .threads =
            positive_number("CUDA_ON_CPU_THREADS", std::max(1U, std::thread::hardware_concurrency()), 1024),
        .descending = second_word("CUDA_ON_CPU_ORDER", "ascending", "descending"),
        .timeout = std::chrono::seconds(positive_number("CUDA_ON_CPU_TIMEOUT", 30, 86400)),
        .notice = positive_number("CUDA_ON_CPU_NOTICE", 0, 86400),
        .named_lines = second_word("CUDA_ON_CPU_PRINTF", "plain", "threads"),
        .rows = !second_word("CUDA_ON_CPU_LOOPS", "on", "off"),
        .late_stores = second_word("CUDA_ON_CPU_STORES", "prompt", "late"),
        .findings = !second_word("CUDA_ON_CPU_FINDINGS", "on", "off"),
        .barriers = barrier_rule("CUDA_ON_CPU_BARRIERS"),
        .lockstep = second_word("CUDA_ON_CPU_LOCKSTEP", "0", "1"),
        .hints = !second_word("CUDA_ON_CPU_HINTS", "on", "off"),
        .limit = positive_number("CUDA_ON_CPU_LIMIT", 0, 86400),
        .notice_is_set = std::getenv("CUDA_ON_CPU_NOTICE") != nullptr,
        .leaks = second_word("CUDA_ON_CPU_LEAKS", "off", "on"),
        .first_blocks = positive_number("CUDA_ON_CPU_FIRST_BLOCKS", 0, 2147483647),
        .kernel_lines = second_word("CUDA_ON_CPU_LINES", "innermost", "kernel"),
        .closes_device_memory = !second_word("CUDA_ON_CPU_HOST_ACCESS", "refused", "allowed"),
        .watches_managed = second_word("CUDA_ON_CPU_MANAGED", "free", "watched"),
        .tells_shuffles = second_word("CUDA_ON_CPU_SHUFFLES", "quiet", "tell"),
        .refusal = refusal_of("CUDA_ON_CPU_REFUSE"),
        .streams = seeded_word<IssueOrder>("CUDA_ON_CPU_STREAMS", "issue", "late"),
        .blocks = seeded_word<BlockOrder>("CUDA_ON_CPU_BLOCKS", "ascending", "descending"),
        .early_children = second_word("CUDA_ON_CPU_CHILDREN", "late", "early"),
        .inspect_blocks = positive_number("CUDA_ON_CPU_INSPECT_BLOCKS", 256, 32768),
        .atomic_volatile = second_word("CUDA_ON_CPU_VOLATILE", "plain", "atomic"),
    };
    return read;
}

bool is_debugged() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
    }
    return false;
}

}  // namespace cuda_on_cpu
