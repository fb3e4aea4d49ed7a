#include "parts.hpp"

namespace translator {

namespace {

// An operator between operands on the right side of an assignment.
bool is_binary(const Token& token) {
    static constexpr std::array<std::string_view, 5> kOperators = {"&", "|", "^", "!", "="};
    return one_of(token.text, kOperators);
}

}  // namespace

// If the shift amount is the width or more, a GPU shifts all bits out, while a CPU takes the amount
// modulo the width. The translation marks the amount; shifts by a marked amount
// (cuda_on_cpu/shift.h) give the GPU's result. A literal needs no mark.
void Shifts::translate_shift(std::size_t i) {
    const std::size_t before = tokens_.previous(i);
    if (before == kNone || tokens_[before].is("operator") || tokens_[before].is(tokens_[i].text)) return;
    const bool assigns = tokens_.is(i + 2 < tokens_.size() ? i + 2 : kNone, "=");
    if (tokens_[i].is(">") && has_open_angle(i)) return;
    const std::size_t begin = tokens_.next(assigns ? i + 2 : i + 1);
    const std::size_t end = end_of_amount(begin, assigns);
    if (begin == kNone || end == kNone || end <= begin) return;
    const bool literal = tokens_[begin].kind == TokenKind::number && tokens_.next(begin) == end;
    if (literal) return;
    if (assigns && is_member(before)) {  // a bit field cannot be referenced: x.f <<= n becomes x.f = x.f << n
        const std::size_t chain = begin_of_chain(before);
        if (chain == kNone) return;
        after_[begin - 1] +=
            " (" + flat({chain, before + 1}) + ") " + std::string(2, tokens_[i].text.front());
        erase({i, i + 2});
    }
    after_[begin - 1] += " ::cuda_on_cpu::shift_amount(";
    after_[tokens_.previous(end)] += ")";
}

// The start of `a.b->c`, whose last name is at `i`; kNone if it contains a call or an index, which
// must not be evaluated twice.
std::size_t Shifts::begin_of_chain(std::size_t i) const {
    while (is_member(i)) {
        const std::size_t dot = tokens_.previous(i);
        i = tokens_.previous(tokens_[dot].is(".") ? dot : tokens_.previous(dot));
        if (i == kNone || tokens_[i].kind != TokenKind::identifier) return kNone;
    }
    return i;
}

// Is an earlier `<` in the same brackets still open, so that `>>` may end two template argument
// lists?
bool Shifts::has_open_angle(std::size_t i) const {
    int closed = 0;
    for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
        if (tokens_[p].is("<") && closed-- == 0) return true;
        if (tokens_[p].is(">") && p > 0 && !tokens_[p - 1].is("-")) ++closed;
        if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("(") || tokens_[p].is("["))
            return false;
        const bool closes = tokens_[p].is(")") || tokens_[p].is("]") || tokens_[p].is("}");
        if (closes && tokens_.match(p) != kNone) p = tokens_.match(p);
    }
    return false;
}

// The token after the shift amount that starts at `i`; kNone if its end is not clear.
std::size_t Shifts::end_of_amount(std::size_t i, bool assigns) const {
    static constexpr std::array<std::string_view, 14> kEnds = {";", ",", ")", "]", "}", "?", ":",
                                                               "<", ">", "=", "!", "&", "|", "^"};
    static constexpr std::array<std::string_view, 4> kCasts = {"static_cast", "reinterpret_cast",
                                                               "const_cast", "bit_cast"};
    const std::size_t begin = i;
    while (i != kNone) {
        const Token& token = tokens_[i];
        const bool opens = token.is("(") || token.is("[") || token.is("{");
        if (opens) {
            if (tokens_.match(i) == kNone) return kNone;
            i = tokens_.next(tokens_.match(i));
        } else if (one_of(token.text, kCasts) && tokens_.is(tokens_.next(i), "<")) {
            while (i != kNone && !tokens_[i].is("(") && !tokens_[i].is(";"))
                i = tokens_.next(i);
        } else if (token.is(":") && tokens_.is(i + 1, ":")) {
            i = tokens_.next(i + 1);
        } else if (token.is("-") && tokens_.is(i + 1, ">")) {
            i = tokens_.next(i + 1);
        } else if (i != begin && one_of(token.text, kEnds) && !(assigns && is_binary(token))) {
            const std::size_t before = tokens_.previous(i);
            const bool may_be_template = token.is("<") && !tokens_.is(i + 1, "<") &&
                                         !tokens_.is(i + 1, "=") &&
                                         tokens_[before].kind == TokenKind::identifier;
            return may_be_template ? kNone : i;
        } else {
            i = tokens_.next(i);
        }
    }
    return kNone;
}

}  // namespace translator
