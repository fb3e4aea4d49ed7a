// The table of PTX instructions and their translations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

// One form of an instruction. An instruction may have several forms, with different modifiers or
// operands.
//
// `name` is the instruction's name, which may include modifiers. In `modifiers` each word stands
// for one modifier, with its alternatives separated by bars: "rn|rz". A word may have prefixes:
//     ?   the modifier is optional and may be at any position
//     !   the modifier may be at any position
//     X:  the alternative that is present is bound to the letter X; F collects flags, of which there may be several
// `operands` are separated by commas:
//     T           a value of the type bound to T, or of a named type, such as u32
//     =T          a destination
//     *T, ~T      the same, in a register that may be wider than the type
//     =T|=pred    two destinations
//     {T*V}       V values, {=T*V} or {~T*V} destinations; V is bound to v4 or x4, or is a number
//     {&T*N/2}    results of the asm statement that the instruction changes later; N is bound to the number in m64n128k16
//     []          an address
//     [2]         the address of a tensor map, and 2 coordinates
//     @           a label
// `call` is the function of cuda_on_cpu/ptx.h with its template arguments. A destination is its
// return value; several destinations are its first parameters.
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

// Of the forms whose name is a prefix of `instruction`, dots included, those with the longest name.
std::vector<const PtxForm*> ptx_forms(std::string_view instruction);

// %tid.x and similar registers: the function that reads the register, and its width in bits.
struct PtxSpecialRegister {
    std::string_view name;
    unsigned bits;
    std::string_view function;
};
const PtxSpecialRegister* ptx_special_register(std::string_view name);

}  // namespace translator
