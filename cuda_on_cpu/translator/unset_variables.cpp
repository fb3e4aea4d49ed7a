#include "parts.hpp"

namespace translator {

namespace {

bool is_arithmetic(std::string_view word) {
    static constexpr std::array<std::string_view, 21> kTypes = {
        "int",     "unsigned", "long",     "short",   "char",     "signed",  "float",
        "double",  "half",     "__half",   "half2",   "__half2",  "int8_t",  "uint8_t",
        "int16_t", "uint16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "size_t"};
    return one_of(word, kTypes);
}

}  // namespace

// `float sum; for (...) sum += x[i];`: the first that happens to the variable is that it is read
// and changed, and it is assigned nowhere. The compiler itself does not see it if the variable's
// address is taken, as those of tensor cores' operands are.
void UnsetVariables::look_at_declaration(std::size_t word) {
    std::size_t begin = word;
    const bool is_fragment = tokens_[word].is("fragment");
    if (!is_fragment && !is_arithmetic(tokens_[word].text)) return;
    while (tokens_.is(tokens_.previous(begin), ":") || is_name_before_colons(begin))
        begin = tokens_.previous(begin);
    if (!begins_statement(begin) || !in_block(begin)) return;
    std::size_t first = tokens_.next(word);
    if (is_fragment) {
        if (!tokens_.is(first, "<")) return;
        const std::size_t end = end_of_statement(first);
        bool is_accumulator = false;
        std::size_t close = first;
        for (std::size_t depth = 0; close < end; ++close) {
            depth += tokens_[close].is("<") ? 1 : 0;
            is_accumulator = is_accumulator || tokens_[close].is("accumulator");
            if (tokens_[close].is(">") && --depth == 0) break;
        }
        if (!is_accumulator || close >= end) return;
        first = tokens_.next(close);
    } else {
        while (first != kNone && is_arithmetic(tokens_[first].text))
            first = tokens_.next(first);
    }
    if (first == kNone) return;
    const std::size_t end = end_of_statement(first);
    for (const Range& declarator : split({first, end})) {
        const std::size_t name = next_in(declarator);
        if (name == kNone || tokens_[name].kind != TokenKind::identifier) continue;
        const std::size_t behind = behind_subscripts(name);
        if (behind < declarator.end && next_in({behind, declarator.end}) != kNone) continue;  // initialised
        look_at_uses(name, end);
    }
}

bool UnsetVariables::is_name_before_colons(std::size_t i) const {
    const std::size_t colon = tokens_.previous(i);
    return tokens_[i].is(":") && colon != kNone && tokens_[colon].kind == TokenKind::identifier &&
           !begins_statement(i);
}

// In the block of a function or of a statement, and not in a class.
bool UnsetVariables::in_block(std::size_t i) const {
    const std::size_t brace = tokens_.enclosing_brace(i);
    if (brace == kNone) return false;
    const std::size_t before = tokens_.previous(brace);
    for (const std::string_view word : {")", "{", "}", ";", "else", "do"}) {
        if (tokens_.is(before, word)) return true;
    }
    return false;
}

std::size_t UnsetVariables::behind_subscripts(std::size_t name) const {
    std::size_t i = tokens_.next(name);
    while (i != kNone && tokens_.is(i, "["))
        i = tokens_.next(closing(i));
    return i == kNone ? tokens_.size() : i;
}

void UnsetVariables::look_at_uses(std::size_t name, std::size_t from) {
    const std::size_t scope_end = closing(tokens_.enclosing_brace(name));
    std::size_t changed = kNone, loop_end = kNone;
    for (std::size_t i = from; i < scope_end; ++i) {
        if (!tokens_[i].is(tokens_[name].text) || is_member(i)) continue;
        const Use use = use_at(i);
        if (use == Use::assigned) return;
        if (changed == kNone) {
            if (use != Use::changed) return;
            changed = i;
            loop_end = end_of_loops(i, name);
        } else if (use == Use::passed && i < loop_end) {
            return;
        }
    }
    if (changed == kNone) return;
    warn(changed, "'" + std::string(tokens_[name].text) +
                      "' is changed, but nothing has set it: on a GPU it holds what was left in the "
                      "register. Give it a value where it is declared");
}

UnsetVariables::Use UnsetVariables::use_at(std::size_t i) const {
    const std::size_t before = tokens_.previous(i), behind = behind_subscripts(i);
    if (behind >= tokens_.size()) return Use::passed;
    if (before != kNone && (is_arithmetic(tokens_[before].text) || tokens_[before].is("auto") ||
                            tokens_[before].is(".") || tokens_.is(behind, ".")))
        return Use::assigned;  // another variable, or something that is not understood
    if (tokens_.is_run(behind, "+", 2) || tokens_.is_run(behind, "-", 2)) return Use::changed;
    if (before != kNone && before > 0 &&
        (tokens_.is_run(before - 1, "+", 2) || tokens_.is_run(before - 1, "-", 2)))
        return Use::changed;
    if (tokens_.is(behind, "=") && is_assignment(behind)) return Use::assigned;
    for (const std::string_view sign : {"+", "-", "*", "/", "|", "&", "^"}) {
        if (tokens_.is(behind, sign) && behind + 1 < tokens_.size() && tokens_[behind + 1].is("=") &&
            is_assignment(behind + 1))
            return Use::changed;
    }
    if (tokens_.is(before, "&")) return Use::passed;
    if (!tokens_.is(before, "(") && !tokens_.is(before, ",")) return Use::read;
    // An argument, or an operand of an asm statement.
    std::size_t open = before;
    while (open != kNone && !tokens_[open].is("(")) {
        const bool closes = tokens_.match(open) != kNone && tokens_.match(open) < open;
        open = closes ? tokens_.previous(tokens_.match(open)) : tokens_.previous(open);
        if (open == kNone || tokens_[open].is(";") || tokens_[open].is("{")) return Use::passed;
    }
    const std::size_t callee = tokens_.previous(open);
    if (callee == kNone) return Use::passed;
    if (const std::string_view text = tokens_[callee].text; text.find('"') != std::string_view::npos)
        return text.find('+') != std::string_view::npos   ? Use::changed
               : text.find('=') != std::string_view::npos ? Use::assigned
                                                          : Use::read;
    if (tokens_[callee].is("if") || tokens_[callee].is("while")) return Use::read;
    // Of WMMA, the first argument of mma_sync is written, the last one is read.
    if (tokens_[callee].is("mma_sync")) {
        if (before != open) return Use::read;
        const std::vector<Range> arguments = split({open + 1, closing(open)});
        const bool adds = arguments.size() >= 4 && next_in(arguments[3]) != kNone &&
                          tokens_[next_in(arguments[3])].is(tokens_[i].text);
        return adds ? Use::changed : Use::assigned;
    }
    if (tokens_[callee].is("store_matrix_sync")) return Use::read;
    return Use::passed;
}

// The end of the outermost loop around the use that does not contain the declaration.
std::size_t UnsetVariables::end_of_loops(std::size_t use, std::size_t name) const {
    std::size_t end = use;
    for (std::size_t i = name; i < use; ++i) {
        if (tokens_[i].is("do")) return closing(tokens_.enclosing_brace(name));
        if (!tokens_[i].is("for") && !tokens_[i].is("while")) continue;
        const std::size_t open = tokens_.next(i);
        if (!tokens_.is(open, "(")) continue;
        const Range loop = whole_loop(i, closing(open));
        if (loop.begin <= use && use < loop.end) end = std::max(end, loop.end);
    }
    return end;
}

}  // namespace translator
