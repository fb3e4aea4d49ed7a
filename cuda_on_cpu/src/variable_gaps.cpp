#include "variable_gaps.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "cuda_on_cpu/variable_gaps.h"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

struct Variables {
    std::mutex mutex;
    std::vector<GuardedVariable> all;
    std::atomic<bool> any{false};
};
// Never destroyed, because destructors of static objects may launch kernels.
Variables& variables() {
    static auto& only = *new Variables;
    return only;
}

// Sets the gaps of which each byte is known to belong to nothing else.
GuardedVariable guarded(const VariableInGaps& noted) {
    constexpr std::ptrdiff_t kMostAlignment = 64;
    const char* const end = noted.begin + noted.size;
    GuardedVariable variable{noted.begin,   noted.begin, noted.size,    end,
                             noted.element, noted.name,  noted.writable};
    const char* const lower = std::min(noted.gaps[0], noted.gaps[1], std::less<>());
    const char* const upper = std::max(noted.gaps[0], noted.gaps[1], std::less<>());
    const std::ptrdiff_t before = noted.begin - (lower + noted.gap_size);
    const std::ptrdiff_t behind = upper - end;
    if (before >= 0 && before < kMostAlignment && behind >= 0 && behind < kMostAlignment) {
        variable.from = lower;
        variable.to = upper + noted.gap_size;
    } else if (lower == end || upper == end) {
        variable.to = end + noted.gap_size;
    }
    return variable;
}

void fill_gaps(const GuardedVariable& variable) {
    const char* const end = variable.begin + variable.size;
    fill(const_cast<char*>(variable.from), static_cast<std::size_t>(variable.begin - variable.from),
         kVariableCanary);
    fill(const_cast<char*>(end), static_cast<std::size_t>(variable.to - end), kVariableCanary);
}

// The first byte from `byte` to `end` that something has written; `end` if there is none.
const char* first_written(const char* byte, const char* end) {
    const auto intact = [](const char* at) {
        const bool is_high = reinterpret_cast<std::uintptr_t>(at) % 2 != 0;  // as fill() has it
        return *at == static_cast<char>(is_high ? kVariableCanary >> 8 : kVariableCanary & 0xFF);
    };
    const std::ptrdiff_t size = end - byte;
    if (size > 2 && intact(byte) && intact(byte + 1) &&
        std::memcmp(byte, byte + 2, static_cast<std::size_t>(size - 2)) == 0)
        return end;
    return std::find_if_not(byte, end, [&](const char& each) { return intact(&each); });
}

}  // namespace

void add_variable(const VariableInGaps& noted) {
    const GuardedVariable variable = guarded(noted);
    if (variable.from == variable.begin && variable.to == variable.begin + variable.size) return;
    if (variable.writable) fill_gaps(variable);
    Variables& v = variables();
    const std::scoped_lock lock(v.mutex);
    const auto place =
        std::ranges::upper_bound(v.all, variable.begin, std::less<>(), &GuardedVariable::begin);
    v.all.insert(place, variable);
    v.any = true;
}

void remove_variable(const char* begin) {
    Variables& v = variables();
    const std::scoped_lock lock(v.mutex);
    std::erase_if(v.all, [=](const GuardedVariable& variable) { return variable.begin == begin; });
}

std::vector<GuardedVariable> guarded_variables() {
    Variables& v = variables();
    const std::scoped_lock lock(v.mutex);
    return v.all;
}

std::string quoted_name_of_variable(const void* begin) {
    Variables& v = variables();
    const std::scoped_lock lock(v.mutex);
    const auto found = std::ranges::find(v.all, begin, &GuardedVariable::begin);
    return found == v.all.end() ? "" : " '" + std::string(found->name) + "'";
}

std::string describe_index(const GuardedVariable& variable, const char* byte) {
    const std::ptrdiff_t offset = byte - variable.begin;
    const auto element = static_cast<std::ptrdiff_t>(variable.element);
    const bool is_array = variable.element < variable.size;
    const std::ptrdiff_t index = offset / element - (offset % element < 0 ? 1 : 0);
    return (is_array ? "index " + std::to_string(index) : "byte " + std::to_string(offset)) + " of '" +
           variable.name + "', which has " +
           (is_array ? std::to_string(variable.size / variable.element) + " elements"
                     : std::to_string(variable.size) + " bytes");
}

std::string damaged_variable() {
    Variables& v = variables();
    if (!v.any) return {};
    const std::scoped_lock lock(v.mutex);
    for (const GuardedVariable& variable : v.all) {
        if (!variable.writable) continue;
        const char* const end = variable.begin + variable.size;
        const char* written = first_written(variable.from, variable.begin);
        if (written == variable.begin) written = first_written(end, variable.to);
        if (written == variable.to) continue;
        fill_gaps(variable);
        return "wrote outside a __device__ variable: at " + describe_index(variable, written);
    }
    return {};
}

}  // namespace cuda_on_cpu
