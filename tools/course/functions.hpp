// Finds function definitions in CUDA C++ by name, and replaces their bodies. It works on tokens,
// without a grammar. That is enough for hand-written definitions, and it reports errors for
// everything else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// The position of a definition in its text.
struct FunctionDefinition {
    std::size_t begin = 0;  // start of the comment directly above it if there is one, else of its first word
    std::size_t head = 0;   // its first word: template, __global__...
    std::size_t body_begin = 0;  // the opening brace
    std::size_t body_end = 0;    // after the closing brace
    bool returns_nothing = false;
};

// All definitions of `name` in the order of the text, including overloads and specialisations, but
// no calls or declarations. `Type::name` is a member function, defined inside or outside of Type.
// Throws ExerciseError if brackets do not match.
std::vector<FunctionDefinition> find_functions(std::string_view text, std::string_view name);

// The positions of the opening braces of all kernel bodies. A kernel that is only declared has
// none.
std::vector<std::size_t> kernel_bodies(std::string_view text);

// `text` with a new body, including the braces, for each definition in `functions`, which are in
// order.
std::string with_bodies(std::string_view text, const std::vector<FunctionDefinition>& functions,
                        const std::vector<std::string>& bodies);

// `text` with the bodies that `names` have in `source`. Throws ExerciseError if a name has a
// different number of definitions there, or none.
std::string with_bodies_from(std::string_view text, std::string_view source,
                             const std::vector<std::string>& names);

// The line number of `place` in the text, counted from 1.
int line_at(std::string_view text, std::size_t place);

}  // namespace course::tool
