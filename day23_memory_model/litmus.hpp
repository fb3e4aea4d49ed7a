// The host API of day 23's litmus tests. The kernels are in litmus.cuh.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace day23 {

// A test in one form: with these accesses and fences.
struct LitmusForm {
    std::string test;         // "message_passing"
    std::string form;         // "release, acquire"
    std::string weak;         // the outcome that it asks for: "1 0", r0 first
    bool may_be_weak = true;  // does CUDA's memory model allow it?
    bool is_race = false;     // two threads access a word without an order, and not by atomics

    unsigned roles = 2;  // threads of the test
    unsigned used = 2;   // registers
    unsigned weak_index = 0;
    struct Memory {
        unsigned *words, *registers, *met;
    };
    std::function<void(const Memory&, unsigned groups, cudaStream_t)> launch{};
};

std::span<const LitmusForm> litmus_forms();
// Throws std::invalid_argument if there is none.
const LitmusForm& find_litmus_form(const std::string& test, const std::string& form);

// How many instances ended with which registers: [r0 + 2 r1 + 4 r2 + 8 r3].
using LitmusCounts = std::array<std::uint64_t, 16>;

// Runs at least `runs` instances, as many at the same time as the device has room for, or
// `groups` times 64 if that is not 0.
LitmusCounts run_litmus(const LitmusForm& form, std::uint64_t runs, unsigned groups = 0);

// All forms, `runs` instances each (at least 1).
struct LitmusResult {
    const LitmusForm* form;
    std::uint64_t runs;
    std::uint64_t weak;
    LitmusCounts counts;
};
std::vector<LitmusResult> run_litmus_tests(std::uint64_t runs);
std::string litmus_table(std::span<const LitmusResult> results);  // for people
std::string litmus_json(std::span<const LitmusResult> results);   // an object in each line

}  // namespace day23
