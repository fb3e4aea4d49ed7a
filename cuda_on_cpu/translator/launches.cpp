#include <utility>

#include "parts.hpp"

namespace translator {

namespace {

// `fill(v.begin(), v.end(), 0);` calls std::fill even if a kernel has the same name. Precompiled
// headers declare these functions, so their declarations are not among the file's tokens.
bool is_standard_function(std::string_view name) {
    static constexpr std::array<std::string_view, 35> kNames = {
        "advance",   "copy",      "copy_backward", "copy_if",     "copy_n",       "fill",      "fill_n",
        "for_each",  "free",      "generate",      "generate_n",  "iter_swap",    "make_heap", "memcpy",
        "memmove",   "memset",    "merge",         "nth_element", "partial_sort", "partition", "pop_heap",
        "push_heap", "remove",    "replace",       "replace_if",  "reverse",      "rotate",    "shuffle",
        "sort",      "sort_heap", "stable_sort",   "swap",        "swap_ranges",  "transform", "unique"};
    return one_of(name, kNames);
}

bool is_statement_word(std::string_view word) {
    static constexpr std::array<std::string_view, 12> kWords = {
        "if",   "for", "while", "switch", "constexpr", "catch",
        "else", "do",  "case",  "return", "co_return", "co_yield"};
    return one_of(word, kWords);
}

}  // namespace

// The three angle brackets of a launch: `<<<`, or with a blank `<< <` or `< <<`.
bool Launches::is_launch_bracket(std::size_t i, std::string_view bracket) const {
    if (i >= tokens_.size()) return false;
    const std::size_t second = tokens_.next(i);
    const std::size_t third = tokens_.next(second);
    return tokens_.is(i, bracket) && tokens_.is(second, bracket) && tokens_.is(third, bracket) &&
           (second == i + 1 || third == second + 1);
}

std::size_t Launches::third_bracket(std::size_t i) const {
    return tokens_.next(tokens_.next(i));
}

void Launches::translate_launch(std::size_t open) {
    const std::size_t begin = third_bracket(open) + 1;
    std::size_t close = begin;
    while (!(is_launch_bracket(close, ">") && tokens_.is(tokens_.next(third_bracket(close)), "("))) {
        if (close >= tokens_.size() || tokens_[close].is(";")) fail(open, "<<< without >>>(");
        const bool bracket = tokens_[close].kind == TokenKind::punctuation && tokens_.match(close) != kNone;
        close = bracket && tokens_.match(close) > close ? tokens_.match(close) + 1 : close + 1;
    }
    require_kernel(open);
    const std::size_t end = third_bracket(close) + 1;
    const std::size_t last = closing(tokens_.next(end - 1));
    text_[begin_of_callee(open)].insert(0,
                                        "(::cuda_on_cpu::configuration(" + taken({begin, close}) + ") << (");
    after_[last] = ", ::cuda_on_cpu::Prepared()))" + after_[last];
    erase({open, end});
}

// Takes the translation of some tokens out of the text, on one line.
std::string Launches::taken(Range range) {
    std::string result;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].significant()) {
            if (tokens_[i].text.find('\n') != std::string_view::npos)
                fail(i, "a literal of several lines in here");
            result += text_[i];
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
        result += std::exchange(after_[i], "");
    }
    while (!result.empty() && result.back() == ' ')
        result.pop_back();
    return result;
}

// Where the expression in front of `<<<` begins: `k`, `a::k<int>`, `(*p)`, `list[i].kernel`,
// `find<int>(x)`.
std::size_t Launches::begin_of_callee(std::size_t launch) const {
    std::size_t begin = launch;
    for (;;) {
        std::size_t last = tokens_.previous(begin);
        if (tokens_.is(last, ">")) last = before_template_arguments(last);
        if (tokens_.is(last, ")") || tokens_.is(last, "]")) {
            begin = tokens_.match(last);
            if (begin == kNone) fail(launch, "no kernel in front of <<<");
            if (ends_called(tokens_.previous(begin))) continue;
            return begin;
        }
        if (last == kNone || tokens_[last].kind != TokenKind::identifier)
            fail(launch, "no kernel in front of <<<");
        begin = last;
        std::size_t before = tokens_.previous(begin);
        if (tokens_.is(before, "template")) before = tokens_.previous(before);
        if (tokens_.is(before, ".")) {
            begin = before;
        } else if (tokens_.is(before, ">") && before > 0 && tokens_[before - 1].is("-")) {
            begin = before - 1;
        } else if (tokens_.is(before, ":") && before > 0 && tokens_[before - 1].is(":")) {
            begin = before - 1;
            const std::size_t scope = tokens_.previous(begin);
            if (!tokens_.is(scope, ">") && !is_name(scope)) return begin;
            if (tokens_.is(scope, ">") && before_template_arguments(scope) == kNone) return begin;
        } else {
            return begin;
        }
    }
}

// May an expression that is called, or has an index, end with token `i`?
bool Launches::ends_called(std::size_t i) const {
    if (i == kNone) return false;
    if (tokens_.is(i, ")")) {
        const std::size_t head = tokens_.previous(tokens_.match(i));
        return head == kNone || !is_statement_word(tokens_[head].text);
    }
    if (tokens_.is(i, ">")) return before_template_arguments(i) != kNone;
    return tokens_.is(i, "]") || is_name(i);
}

bool Launches::is_name(std::size_t i) const {
    return i != kNone && tokens_[i].kind == TokenKind::identifier && !is_statement_word(tokens_[i].text);
}

// `f<<<...>>>()` would call f whatever it is. A function that is known not to be a kernel is
// refused, as nvcc refuses it.
void Launches::require_kernel(std::size_t launch) const {
    std::size_t name = tokens_.previous(launch);
    if (tokens_.is(name, ">")) name = before_template_arguments(name);
    if (name == kNone || tokens_[name].kind != TokenKind::identifier) return;
    const std::size_t definition = plain_function(tokens_[name].text);
    if (definition == kNone) return;
    const std::string function(tokens_[name].text);
    fail(launch, "'" + function + "' is launched with <<<...>>> and is no kernel: its definition in " +
                     place_of(definition) + " has no __global__. Write __global__ void " + function +
                     "(...), or call it without <<<...>>>");
}

// `k(x);` would call the kernel as a function and launch nothing.
void Launches::require_configuration(std::size_t name) const {
    if (!begins_statement(name)) return;
    std::size_t open = tokens_.next(name);
    if (tokens_.is(open, "<") && !is_launch_bracket(open, "<")) open = behind_template_arguments(open);
    if (!tokens_.is(open, "(") || !tokens_.is(tokens_.next(closing(open)), ";")) return;
    if (is_standard_function(tokens_[name].text) || is_declared_without(name, {"__global__"})) return;
    const std::string kernel(tokens_[name].text);
    fail(name, "the kernel '" + kernel + "' is called without <<<...>>>: expected " + kernel +
                   "<<<grid, block>>>(...)");
}

std::size_t Launches::behind_template_arguments(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i != kNone; i = tokens_.next(i)) {
        if (tokens_[i].is("<")) ++depth;
        if (tokens_[i].is(">") && --depth == 0) return tokens_.next(i);
        if (tokens_[i].is(";") || tokens_[i].is("{")) break;
        if (tokens_[i].is("(")) i = closing(i);
    }
    return kNone;
}

// The name before the template argument list that ends at `close`; kNone if it is not clear.
std::size_t Launches::before_template_arguments(std::size_t close) const {
    int depth = 0;
    for (std::size_t p = close; p != kNone; p = tokens_.previous(p)) {
        const bool closes = tokens_[p].is(")") || tokens_[p].is("]") || tokens_[p].is("}");
        if (closes && tokens_.match(p) != kNone) {  // inside brackets it is an operator
            p = tokens_.match(p);
            continue;
        }
        if (tokens_[p].is(">")) ++depth;
        if (tokens_[p].is("<") && --depth == 0) return tokens_.previous(p);
        if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
    }
    return kNone;
}

// Where the file defines the function `name`; kNone if the name may also be a kernel, a variable or
// a member.
std::size_t Launches::plain_function(std::string_view name) const {
    std::size_t definition = kNone;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (tokens_[i].kind != TokenKind::identifier || !tokens_[i].is(name)) continue;
        const std::size_t before = tokens_.previous(i);
        const std::size_t behind = tokens_.next(i);
        const bool is_declared = before != kNone && (tokens_[before].kind == TokenKind::identifier ||
                                                     tokens_[before].is("*") || tokens_[before].is("&") ||
                                                     tokens_[before].is(">") || ends_decoration(before));
        if (!is_declared) continue;
        if (!tokens_.is(behind, "(")) {
            if (!tokens_.is(behind, "<")) return kNone;
            continue;
        }
        for (std::size_t p = declaration_begin(i); p < i; ++p) {
            if (tokens_[p].is("__global__")) return kNone;
        }
        if (!tokens_.is(tokens_.next(closing(behind)), "{")) continue;
        if (!is_namespace(tokens_.enclosing_brace(i))) return kNone;
        definition = i;
    }
    return definition;
}

}  // namespace translator
