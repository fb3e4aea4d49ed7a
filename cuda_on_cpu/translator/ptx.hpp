// Inline PTX: turns the text of an asm statement into C++ that calls the functions of
// cuda_on_cpu/ptx.h, one for each instruction.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

// "=r"(x): the constraint and the C++ expression.
struct PtxOperand {
    std::string constraint;
    std::string expression;
};

// asm("text" : outputs : inputs), the literals of the text joined and their escapes resolved.
struct PtxStatement {
    std::string text;
    std::vector<PtxOperand> outputs;
    std::vector<PtxOperand> inputs;
};

// An instruction for which the CPU has no function, or text that is not PTX.
struct PtxError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Is the text PTX, such as `add.s32 %0, %1, %2;`? The host's own instructions have no dots between
// letters, and none looks like `trap;`.
bool is_ptx(std::string_view text);

// Returns a block of C++ on one line.
std::string translate_ptx(const PtxStatement& statement);

}  // namespace translator
