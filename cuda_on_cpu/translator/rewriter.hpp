// The tokens of a file, the text that replaces them, and the syntax queries that all parts of the
// translation (parts.hpp) share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.hpp"
#include "translate.hpp"

namespace translator {

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

// A half-open range of tokens.
struct Range {
    std::size_t begin;
    std::size_t end;
};

// A file during its translation.
struct File {
    File(std::string_view input, std::vector<Warning>* to_warn);

    Tokens tokens;
    std::vector<std::string> text;  // of each token, changed or not
    // Text that is inserted after the token.
    std::vector<std::string> after;
    std::vector<Warning>* warnings;
    std::size_t device_code_end = 0;  // tokens before this one are in device code
    // Names for which a warning was given.
    std::set<std::string_view> told_of;
};

// The base of each part of the translation.
class Rewriter {
  protected:
    explicit Rewriter(File& file)
        : tokens_(file.tokens),
          text_(file.text),
          after_(file.after),
          device_code_end_(file.device_code_end),
          told_of_(file.told_of),
          warnings_(file.warnings) {}

    // --- Editing ---------------------------------------------------------------------------------

    // Removes a token. Line ends (a raw string may contain some) and directives stay, so that line
    // numbers do not change.
    void erase(std::size_t i);
    void erase(Range range);
    static std::string line_ends(std::string_view text);
    // The text of some tokens, on one line.
    std::string flat(Range range) const;
    std::size_t closing(std::size_t open) const;
    // The name in the last line marker, `# line "file" flags`, before token `i`.
    std::string file_of(std::size_t i) const;
    std::string place_of(std::size_t i) const;
    void warn(std::size_t i, const std::string& message) const;
    [[noreturn]] void fail(std::size_t i, const std::string& message) const;

    // --- What the tokens mean --------------------------------------------------------------------

    bool begins_statement(std::size_t i) const;
    std::string_view text_before(std::size_t i) const;
    // Is this a specifier before a declaration, and not part of its type?
    static bool is_attribute_word(std::string_view word);
    // After `__global__` or `__device__`: device code ends with the function's body, if it has one.
    void enter_device_code(std::size_t word);
    bool is_member(std::size_t name) const;
    // Does some declaration of this name in the file have none of these words? A guess: no symbol
    // table is kept.
    bool is_declared_without(std::size_t name, std::initializer_list<std::string_view> words) const;
    // Does what precedes this name look like a type?
    bool may_be_declared(std::size_t name) const;
    // The first token of the attribute that ends with this token: `[[deprecated("x")]]`,
    // `__attribute__((...))`, `alignas(16)`; the token itself if none does.
    std::size_t begin_of_attribute(std::size_t last) const;
    // The word `namespace` before this brace; kNone if it opens something else.
    std::size_t namespace_before(std::size_t brace) const;
    // Does this brace open a namespace? True also outside all braces.
    bool is_namespace(std::size_t brace) const;
    // The first token of the declaration that token `i` is part of.
    std::size_t declaration_begin(std::size_t i) const;
    // The namespaces around token `i`, "::a::b::".
    std::string scope_of(std::size_t i) const;
    // The `>` that belongs to the `<` at `open`; kNone if this opens no template arguments.
    std::size_t end_of_angle(std::size_t open) const;
    // Is this a specifier with arguments of its own, such as `__launch_bounds__(256)`?
    bool is_decoration(std::size_t i) const;
    bool names_type(std::size_t i) const;
    // Is this the `)` of such a specifier?
    bool ends_decoration(std::size_t i) const;
    // Splits at the commas that are outside all brackets, template argument lists included.
    std::vector<Range> split(Range range) const;
    // The name that a declaration such as `const T* name`, `T name[N][M]` or `void (*name)(int)`
    // declares; kNone if none.
    std::size_t declared_name(Range range) const;
    // `Array<float, 4> x`: the name of the type precedes the angle bracket and was counted only
    // once.
    bool angle_before(Range range, std::size_t name) const;
    std::string parameter_names(Range parameters) const;
    // Does this brace open a function, and no namespace or class?
    bool opens_function(std::size_t brace) const;
    bool in_function(std::size_t i) const;
    std::size_t outermost_function(std::size_t i) const;
    // `=`, also as the end of `+=`, but not of a comparison.
    bool is_assignment(std::size_t i) const;
    // A loop from its first word to the end of its body.
    Range whole_loop(std::size_t loop, std::size_t close) const;
    // The first `;` from `i` on that is outside all brackets opened after `i`.
    std::size_t end_of_statement(std::size_t i) const;
    std::size_t next_in(Range range) const;
    static bool is_asm(const Token& token);
    // `asm volatile`: the functions for inline PTX already yield to other threads.
    bool of_asm(std::size_t i) const;
    // Does the `while` at `loop` end a do statement? If so, the body of a `do` in the same block
    // ends directly before it.
    bool ends_do(std::size_t loop) const;
    // The first token after the statement that starts at `i`; kNone if there is none.
    std::size_t behind_statement(std::size_t i) const;
    std::size_t behind_simple_statement(std::size_t i) const;

    const Tokens& tokens_;
    std::vector<std::string>& text_;
    std::vector<std::string>& after_;
    std::size_t& device_code_end_;
    std::set<std::string_view>& told_of_;

  private:
    std::vector<Warning>* warnings_;
};

}  // namespace translator
