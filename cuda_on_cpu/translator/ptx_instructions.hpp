// Which PTX instructions there are, and what each becomes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

// One form of an instruction. An instruction may have several, with other modifiers or other
// operands.
//
// `name` begins with the instruction's; what follows it there are modifiers. In `modifiers` each
// word stands for one, with the
// alternatives between bars: "rn|rz". Before them may stand
//     ?   it may be left out, and stand anywhere
//     !   it may stand anywhere
//     X:  the one that is there is bound to the letter X; those bound to F are flags, of which there may be several
// `operands` are separated by commas:
//     T           a value of the type bound to T, or of a named one, such as u32
//     =T          a destination
//     *T, ~T      the same, in a register that may be wider than the type
//     =T|=pred    two destinations
//     {T*V}       so many values, {=T*V} or {~T*V} destinations; V is bound to v4 or x4, or is a number
//     {&T*N/2}    results of the asm statement that the instruction changes later; N is bound to the number in m64n128k16
//     []          an address
//     [2]         the address of a tensor map, and so many coordinates
//     @           a label
// `call` is the function of cuda_on_cpu/ptx.h, with what it takes as template arguments.
// Destinations are what it returns, or, if they are several, its first parameters.
struct PtxForm {
    std::string_view name;
    std::string_view modifiers;
    std::string_view operands;
    std::string_view call;
};

struct PtxType {
    unsigned bits;  // 1: a predicate
    bool floating;
};
std::optional<PtxType> ptx_type(std::string_view name);

// The forms with the longest name that `instruction`, dots included, begins with.
std::vector<const PtxForm*> ptx_forms(std::string_view instruction);

// %tid.x and the like: the function that reads it, and its bits.
struct PtxSpecialRegister {
    std::string_view name;
    unsigned bits;
    std::string_view function;
};
const PtxSpecialRegister* ptx_special_register(std::string_view name);

}  // namespace translator
