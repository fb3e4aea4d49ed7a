// Functions of the program's own that a kernel in loops may call: their value depends on their
// arguments alone, as that of
//
//     __device__ int larger(int a, int b) { return a > b ? a : b; }
//
// Always inlined, its arithmetic becomes that of the kernel (CUDA_ON_CPU_ROW), whichever way that
// runs.
#include "parts.hpp"

namespace translator {

namespace {

// What may stand in such a function besides names, numbers and number types. None of it reads or
// writes memory, or repeats anything.
bool is_value_word(std::string_view word) {
    static constexpr std::array<std::string_view, 7> kWords = {"if",   "else",  "return",     "const",
                                                               "true", "false", "static_cast"};
    return one_of(word, kWords);
}

bool is_value_sign(std::string_view sign) {
    static constexpr std::array<std::string_view, 21> kSigns = {"(", ")", "{", "}", ";", ",", "=",
                                                                "+", "-", "*", "/", "<", ">", "!",
                                                                "?", ":", "&", "|", "^", "~", "%"};
    return one_of(sign, kSigns);
}

// Another file may call the function, so it stays.
constexpr std::string_view kInlined = "__attribute__((__always_inline__, __used__)) ";

bool is_integer_type(std::string_view word) {
    return word != "float" && word != "double";
}

}  // namespace

// Code of no function: a definition there is one of the file.
bool KnownWords::is_outside(std::size_t i) const {
    const std::size_t brace = tokens_.enclosing_brace(i);
    return is_namespace(brace) ||
           tokens_[tokens_.previous(brace)].kind == TokenKind::literal;  // extern "C" {
}

// `float name, const int other`: values of number types, without a default.
bool KnownWords::declare_values(Range parameters) {
    for (const Range& part : split(parameters)) {
        std::size_t i = next_in(part);
        bool has_type = false;
        for (; i != kNone && i < part.end; i = tokens_.next(i)) {
            if (is_number_type(tokens_[i].text))
                has_type = true;
            else if (!tokens_[i].is("const"))
                break;
        }
        if (!has_type || i == kNone || i >= part.end || tokens_[i].kind != TokenKind::identifier ||
            next_in({i + 1, part.end}) != kNone || is_place(tokens_[i].text))
            return false;
        names_.insert(tokens_[i].text);
    }
    return !names_.empty();
}

bool KnownWords::only_computes_value(Range body, bool divides) {
    for (std::size_t i = body.begin; i < body.end; ++i) {
        const Token& token = tokens_[i];
        if (!is_known(i) || !after_[i].empty()) return false;
        if (!token.significant()) continue;
        if (token.kind == TokenKind::identifier) {
            const bool is_call = tokens_.is(tokens_.next(i), "(") && is_mathematical(token.text);
            if (!is_number_type(token.text) && !is_value_word(token.text) && !names_.contains(token.text) &&
                !is_call)
                return false;
        } else if (token.kind == TokenKind::number) {
            if (token.text.find('_') != std::string_view::npos) return false;
        } else if (!is_value_sign(token.text)) {
            return false;
        }
        const bool is_pair = tokens_.is(i - 1, "&") || tokens_.is(i + 1, "&");
        if ((token.is("*") || (token.is("&") && !is_pair)) &&
            (is_unary(i) || is_type_word(tokens_.previous(i))))
            return false;
        // An integer division by zero is a fault, whose line is reported.
        if (token.is("%") || (token.is("/") && !divides)) return false;
    }
    return true;
}

// The function of this name, if it is one that only computes a value. It must be the only thing of
// the file's own scopes with this name: no overload, template or declaration.
std::optional<KnownWords::OwnFunction> KnownWords::find_own_function(std::string_view name) {
    std::size_t found = kNone;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name) || !is_outside(i)) continue;
        if (found != kNone) return std::nullopt;
        found = i;
    }
    if (found == kNone) return std::nullopt;
    const std::size_t open = tokens_.next(found);
    if (!tokens_.is(open, "(")) return std::nullopt;
    const std::size_t brace = tokens_.next(closing(open));
    if (!tokens_.is(brace, "{")) return std::nullopt;
    OwnFunction function{
        next_in({declaration_begin(found), found}), kNone, found, open, closing(brace), false};
    bool is_of_device = false;
    bool divides = true;
    for (std::size_t i = function.begin; i < found; i = tokens_.next(i)) {
        const std::string_view word = tokens_[i].text;
        if (is_number_type(word)) {
            if (function.type == kNone) function.type = i;
        } else if (word == "__attribute__" &&
                   flat({i, closing(tokens_.next(i)) + 1}).find("always_inline") != std::string::npos) {
            i = closing(tokens_.next(i));
        } else if (function.type != kNone || (word != "__device__" && word != "__host__" &&
                                              word != "static" && word != "inline" && word != "__inline__")) {
            return std::nullopt;
        }
        function.is_inline = function.is_inline || word == "inline" || word == "__inline__";
        is_of_device = is_of_device || word == "__device__";
    }
    if (function.type == kNone || !is_of_device) return std::nullopt;
    for (std::size_t i = function.type; i < function.end; ++i)
        divides = divides && !(is_number_type(tokens_[i].text) && is_integer_type(tokens_[i].text));
    const auto kernel_types = std::exchange(types_, {});
    const auto kernel_names = std::exchange(names_, {});
    in_own_function_ = true;
    const bool computes =
        declare_values({open + 1, closing(open)}) && only_computes_value({brace + 1, function.end}, divides);
    in_own_function_ = false;
    types_ = kernel_types;
    names_ = kernel_names;
    return computes ? std::optional(function) : std::nullopt;
}

// Is this a call of such a function?
bool KnownWords::calls_own_function(std::size_t i) {
    const std::string_view name = tokens_[i].text;
    if (in_own_function_ || names_.contains(name) || types_.contains(name)) return false;
    auto known = own_functions_.find(name);
    if (known == own_functions_.end()) known = own_functions_.emplace(name, find_own_function(name)).first;
    if (known->second) called_.insert(name);
    return known->second.has_value();
}

// For a condition of the loops: a header that is not read here may have a function of the same
// name.
std::string KnownWords::only_functions() const {
    std::string conditions;
    for (const std::string_view name : called_) {
        const OwnFunction& function = *own_functions_.at(name);
        conditions += " && ::cuda_on_cpu::is_only<" + flat({function.type, function.name}) +
                      flat({function.open, closing(function.open) + 1}) + ">(" + std::string(name) + ", 0)";
    }
    return conditions;
}

void KnownWords::inline_functions() {
    for (const std::string_view name : called_) {
        const OwnFunction& function = *own_functions_.at(name);
        std::string& first = text_[function.begin];
        if (first.starts_with(kInlined)) continue;
        first.insert(0, std::string(kInlined) + (function.is_inline ? "" : "inline "));
    }
}

}  // namespace translator
