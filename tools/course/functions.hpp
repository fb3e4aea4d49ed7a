// Finds function definitions in CUDA C++ by name, and exchanges their bodies. It reads tokens, not
// a grammar: enough for a definition as a person writes it, and errors for what it cannot read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// Where a definition is in the text it was found in: [begin, end).
struct FunctionDefinition {
    std::size_t begin = 0;       // of the comment right above it, if there is one, else of its first word
    std::size_t head = 0;        // its first word: template, __global__...
    std::size_t body_begin = 0;  // the opening brace
    std::size_t body_end = 0;    // after the closing brace
    bool returns_nothing = false;
};

// Every definition of `name` in the order of the text: overloads and specialisations too, no calls,
// no declarations. `Type::name` is a member function, defined inside or outside of Type. Throws
// ExerciseError when brackets do not match.
std::vector<FunctionDefinition> find_functions(std::string_view text, std::string_view name);

// Where the bodies of kernels begin, at their opening braces; none for a kernel that is only
// declared.
std::vector<std::size_t> kernel_bodies(std::string_view text);

// `text` with another body, braces and all, for each definition in `functions`, which are in order.
std::string with_bodies(std::string_view text, const std::vector<FunctionDefinition>& functions,
                        const std::vector<std::string>& bodies);

// `text` with the bodies that `names` have in `source`. Throws ExerciseError when one has another
// number of definitions there, or none.
std::string with_bodies_from(std::string_view text, std::string_view source,
                             const std::vector<std::string>& names);

// The line of the text that `place` is in, from 1.
int line_at(std::string_view text, std::size_t place);

}  // namespace course::tool
