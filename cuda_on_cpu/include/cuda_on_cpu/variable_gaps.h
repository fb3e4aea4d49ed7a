// Unused bytes that the translator declares before and after a `__device__` or `__constant__`
// array, so that an index past its end does not reach the next variable.
#pragma once

#include <cstddef>
#include <type_traits>

namespace cuda_on_cpu {

// What the gaps hold: NaN, as a 16-bit pattern that is repeated.
constexpr unsigned short kVariableCanary = 0x7FFB;

// Without an argument it is zero until the program begins, so that the compiler places it beside
// variables without initial values; with one it lies beside those that have some.
template <std::size_t kBytes>
struct VariableGap {
    constexpr VariableGap() : words{} {}
    explicit constexpr VariableGap(unsigned short word) : words{} {
        for (unsigned short& each : words)
            each = word;
    }
    unsigned short words[kBytes / sizeof(unsigned short)];
};

// The compiler places the three side by side, in the order of their declarations or in reverse. A
// gap that lies elsewhere is not used.
struct VariableInGaps {
    const char* begin;
    std::size_t size;
    std::size_t element;  // the size of an element; that of the variable, if it is no array
    const char* name;
    const char* gaps[2];
    std::size_t gap_size;
    bool writable;
};
void add_variable(const VariableInGaps& variable);
void remove_variable(const char* begin);

// One object for each variable, with its lifetime: that of the program, or of a library.
class NotedVariable {
  public:
    template <class T, class Gap>
    NotedVariable(const T& object, const char* name, const Gap& one, const Gap& other, bool writable)
        : begin_((const char*)__builtin_addressof(object)) {
        add_variable({begin_,
                      sizeof object,
                      sizeof(std::remove_all_extents_t<T>),
                      name,
                      {(const char*)one.words, (const char*)other.words},
                      sizeof one,
                      writable});
    }
    ~NotedVariable() { remove_variable(begin_); }
    NotedVariable(const NotedVariable&) = delete;
    NotedVariable& operator=(const NotedVariable&) = delete;

  private:
    const char* begin_;
};

}  // namespace cuda_on_cpu
