#include "parts.hpp"

namespace translator {

// In code that an inspection watches, a cast to a pointer tells the inspector what it has to align:
// `(float4*)p` becomes `::cuda_on_cpu::cast_to((float4*)p)`
// (include/cuda_on_cpu/inspected_casts.h).
void PointerCasts::translate_named_cast(std::size_t i) {
    if (!watched_) return;
    const std::size_t close = end_of_angle(tokens_.next(i));
    const std::size_t open = close == kNone ? kNone : tokens_.next(close);
    if (!tokens_.is(open, "(")) return;
    const Range type{tokens_.next(i) + 1, close};
    const bool to_reference = tokens_.is(tokens_.previous(close), "&") && tokens_[i].is("reinterpret_cast") &&
                              !tokens_.is(tokens_.previous(tokens_.previous(close)), "&");
    if (is_pointer_type(type) || to_reference) wrap(i, closing(open));
}

// `(T*)p`, at its first bracket.
void PointerCasts::translate_cast(std::size_t open) {
    const std::size_t close = tokens_.match(open);
    if (!watched_ || close == kNone || !is_pointer_type({open + 1, close})) return;
    static constexpr std::array<std::string_view, 4> kBefore = {"return", "case", "else", "throw"};
    const std::size_t before = tokens_.previous(open);
    if (before == kNone) return;
    // A function's parameters, or an argument of sizeof.
    const bool follows_name =
        tokens_[before].kind == TokenKind::identifier && !one_of(tokens_[before].text, kBefore);
    if (follows_name || tokens_[before].is(")") || tokens_[before].is("]") || tokens_[before].is(">")) return;
    const std::size_t last = end_of_operand(tokens_.next(close));
    if (last != kNone) wrap(open, last);
}

void PointerCasts::wrap(std::size_t first, std::size_t last) {
    text_[first].insert(0, "::cuda_on_cpu::cast_to(");
    after_[last].insert(0, ")");
}

// `T*`, `const T* const`, `A<B>*`, but no `void*`.
bool PointerCasts::is_pointer_type(Range range) const {
    static constexpr std::array<std::string_view, 4> kQualifiers = {"const", "volatile", "__restrict__",
                                                                    "__restrict"};
    std::size_t last = tokens_.previous(range.end);
    while (last != kNone && last > range.begin && one_of(tokens_[last].text, kQualifiers))
        last = tokens_.previous(last);
    if (last == kNone || last <= range.begin || !tokens_[last].is("*")) return false;
    bool has_name = false;
    for (std::size_t i = range.begin; i < last; ++i) {
        const Token& token = tokens_[i];
        if (!token.significant()) continue;
        if (token.is("<") && has_name) {
            i = end_of_angle(i);
            if (i == kNone) return false;
        } else if (token.kind == TokenKind::identifier) {
            has_name = has_name || !(token.is("void") || one_of(token.text, kQualifiers));
        } else if (!token.is(":") && !token.is("*")) {
            return false;
        }
    }
    return has_name;
}

// The last token of the operand of a cast that starts at `i`; kNone if that is not clear.
std::size_t PointerCasts::end_of_operand(std::size_t i) const {
    while (tokens_.is(i, "&") || tokens_.is(i, "*"))
        i = tokens_.next(i);
    if (i == kNone || tokens_[i].is("new")) return kNone;
    std::size_t last = i;
    if (tokens_[i].is("(")) {
        last = tokens_.match(i);
        const std::size_t behind = last == kNone ? kNone : tokens_.next(last);
        if (behind == kNone) return kNone;
        // Another cast.
        if (tokens_[behind].kind == TokenKind::identifier || tokens_[behind].kind == TokenKind::number ||
            (is_pointer_type({i + 1, last}) && (tokens_[behind].is("&") || tokens_[behind].is("*"))))
            return end_of_operand(behind);
    } else if (tokens_[i].is(":") || tokens_[i].kind == TokenKind::identifier) {
        last = kNone;
        for (; i != kNone; i = tokens_.next(i)) {
            if (tokens_[i].kind == TokenKind::identifier && (last == kNone || tokens_[last].is(":"))) {
                last = i;
                const std::size_t angle = tokens_.next(i);
                const std::size_t close = tokens_.is(angle, "<") ? end_of_angle(angle) : kNone;
                const std::size_t behind = close == kNone ? kNone : tokens_.next(close);
                if (tokens_.is(behind, "(") || tokens_.is(behind, ":")) last = i = close;
            } else if (tokens_[i].is(":") && (tokens_.is(i + 1, ":") || tokens_.is(i - 1, ":"))) {
                last = i;
            } else {
                break;
            }
        }
    } else if (tokens_[i].kind != TokenKind::number) {
        return kNone;
    }
    while (last != kNone) {
        const std::size_t behind = tokens_.next(last);
        if (tokens_.is(behind, "(") || tokens_.is(behind, "[")) {
            last = tokens_.match(behind);
        } else if (tokens_.is(behind, ".") || (tokens_.is(behind, "-") && tokens_.is(behind + 1, ">"))) {
            last = tokens_.next(tokens_[behind].is(".") ? behind : behind + 1);
            if (last == kNone || tokens_[last].kind != TokenKind::identifier) return kNone;
        } else {
            const bool counts = (tokens_.is(behind, "+") && tokens_.is(behind + 1, "+")) ||
                                (tokens_.is(behind, "-") && tokens_.is(behind + 1, "-"));
            const bool is_list = tokens_.is(behind, "{");
            return counts || is_list ? kNone : last;
        }
    }
    return kNone;
}

}  // namespace translator
