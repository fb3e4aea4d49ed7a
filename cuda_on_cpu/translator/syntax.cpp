// Rewriter's queries about C++ syntax.
#include "rewriter.hpp"

namespace translator {

bool Rewriter::begins_statement(std::size_t i) const {
    const std::size_t before = tokens_.previous(i);
    for (const std::string_view end : {";", "{", "}", "else", "do"}) {
        if (tokens_.is(before, end)) return true;
    }
    if (!tokens_.is(before, ")")) return false;
    std::size_t head = tokens_.previous(tokens_.match(before));
    if (tokens_.is(head, "constexpr")) head = tokens_.previous(head);
    return tokens_.is(head, "if") || tokens_.is(head, "for") || tokens_.is(head, "while");
}

bool Rewriter::is_asm(const Token& token) {
    return token.is("asm") || token.is("__asm__") || token.is("__asm");
}

std::string_view Rewriter::text_before(std::size_t i) const {
    const std::size_t before = tokens_.previous(i);
    return before == kNone ? std::string_view() : tokens_[before].text;
}

bool Rewriter::is_attribute_word(std::string_view word) {
    static constexpr std::array<std::string_view, 8> kWords = {
        "__device__", "__host__", "__constant__",      "__managed__",
        "__shared__", "extern",   "__grid_constant__", "static"};
    return one_of(word, kWords);
}

void Rewriter::enter_device_code(std::size_t word) {
    bool has_parameters = false;
    for (std::size_t i = tokens_.next(word); i != kNone; i = tokens_.next(i)) {
        if (tokens_[i].is(";") || tokens_[i].is("=") || tokens_[i].is("}") || tokens_[i].is(",")) return;
        if (tokens_[i].is("{")) {
            if (has_parameters) device_code_end_ = std::max(device_code_end_, closing(i));
            return;
        }
        has_parameters = has_parameters || tokens_[i].is("(");
        if (tokens_[i].is("(") || tokens_[i].is("[")) i = closing(i);
    }
}

bool Rewriter::is_member(std::size_t name) const {
    if (tokens_[name].kind != TokenKind::identifier) return false;
    const std::size_t before = tokens_.previous(name);
    // `p->x`, and neither `a > x` nor `n --> x`.
    return tokens_.is(before, ".") || (tokens_.is(before, ">") && before > 0 && tokens_[before - 1].is("-") &&
                                       !(before > 1 && tokens_[before - 2].is("-")));
}

bool Rewriter::is_declared_without(std::size_t name, std::initializer_list<std::string_view> words) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(tokens_[name].text) || !may_be_declared(i)) continue;
        bool found = false;
        for (std::size_t p = declaration_begin(i); p < i; ++p)
            found = found || std::find(words.begin(), words.end(), tokens_[p].text) != words.end();
        if (!found) return true;
    }
    return false;
}

bool Rewriter::may_be_declared(std::size_t name) const {
    static constexpr std::array<std::string_view, 9> kNoTypes = {"return", "else", "do",     "case",  "goto",
                                                                 "throw",  "new",  "delete", "sizeof"};
    const std::size_t before = tokens_.previous(name);
    if (before == kNone) return false;
    const Token& token = tokens_[before];
    return (token.kind == TokenKind::identifier && !one_of(token.text, kNoTypes)) || token.is("*") ||
           token.is("&") || token.is(">") || ends_decoration(before);
}

bool Rewriter::is_namespace(std::size_t brace) const {
    return brace == kNone || namespace_before(brace) != kNone;
}

std::size_t Rewriter::namespace_before(std::size_t brace) const {
    for (std::size_t p = tokens_.previous(brace); p != kNone; p = tokens_.previous(p)) {
        if (tokens_[p].is("namespace")) return p;
        const std::size_t begin = begin_of_attribute(p);
        if (begin == p && tokens_[p].kind != TokenKind::identifier && !tokens_[p].is(":")) return kNone;
        p = begin;
    }
    return kNone;
}

std::size_t Rewriter::begin_of_attribute(std::size_t last) const {
    const std::size_t open = tokens_.match(last);
    if (open == kNone || open > last) return last;
    if (tokens_.is(last, "]")) {
        const std::size_t inner = tokens_.next(open);
        return tokens_.is(inner, "[") && tokens_.match(inner) == tokens_.previous(last) ? open : last;
    }
    const std::size_t word = tokens_.previous(open);
    return tokens_.is(word, "__attribute__") || tokens_.is(word, "alignas") ? word : last;
}

std::size_t Rewriter::declaration_begin(std::size_t i) const {
    std::size_t begin = i;
    for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
        if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
        begin = p;
    }
    return begin;
}

std::string Rewriter::scope_of(std::size_t i) const {
    std::string scope = "::";
    for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
         brace = tokens_.enclosing_brace(brace)) {
        std::string names;
        for (std::size_t p = tokens_.previous(brace); p != kNone && !tokens_[p].is("namespace");
             p = tokens_.previous(p)) {
            const std::size_t begin = begin_of_attribute(p);
            if (begin == p) names.insert(0, tokens_[p].is("inline") ? "" : tokens_[p].text);
            p = begin;
        }
        if (!names.empty()) scope.insert(0, "::" + names);
    }
    return scope;
}

std::size_t Rewriter::end_of_angle(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; tokens_.is(open, "<") && i != kNone; i = tokens_.next(i)) {
        if (tokens_[i].is("(") || tokens_[i].is("[")) i = closing(i);
        if (tokens_[i].is("<")) ++depth;
        if (tokens_[i].is(">") && --depth == 0) return i;
        if (tokens_[i].is(";") || tokens_[i].is("{")) break;
    }
    return kNone;
}

bool Rewriter::is_decoration(std::size_t i) const {
    static constexpr std::array<std::string_view, 9> kDecorations = {
        "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "alignas",
        "noexcept",          "requires",         "decltype",    "__typeof__"};
    return one_of(tokens_[i].text, kDecorations);
}

bool Rewriter::names_type(std::size_t i) const {
    return tokens_[i].is("decltype") || tokens_[i].is("__typeof__");
}

bool Rewriter::ends_decoration(std::size_t i) const {
    if (!tokens_[i].is(")") || tokens_.match(i) == kNone) return false;
    const std::size_t word = tokens_.previous(tokens_.match(i));
    return word != kNone && is_decoration(word);
}

std::vector<Range> Rewriter::split(Range range) const {
    std::vector<Range> parts;
    std::size_t begin = range.begin;
    int angle = 0;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].kind != TokenKind::punctuation) continue;
        if (tokens_.match(i) != kNone && tokens_.match(i) > i) {
            i = tokens_.match(i);
        } else if (tokens_[i].is("<")) {
            ++angle;
        } else if (tokens_[i].is(">")) {
            angle = std::max(0, angle - 1);
        } else if (tokens_[i].is(",") && angle == 0) {
            parts.push_back({begin, i});
            begin = i + 1;
        }
    }
    parts.push_back({begin, range.end});
    return parts;
}

std::size_t Rewriter::declared_name(Range range) const {
    static constexpr std::array<std::string_view, 16> kNotNames = {
        "const", "volatile", "int",    "unsigned", "signed", "long",     "short",        "char",
        "bool",  "float",    "double", "void",     "auto",   "typename", "__restrict__", "__restrict"};
    std::size_t name = kNone;
    int words = 0;
    int angle = 0;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        const Token& token = tokens_[i];
        if (!token.significant()) continue;
        if (is_decoration(i)) {
            if (names_type(i)) ++words;
            if (const std::size_t open = tokens_.next(i); tokens_.is(open, "(")) i = closing(open);
        } else if (is_attribute_word(token.text)) {
            continue;
        } else if (token.is("<")) {
            ++angle;
        } else if (token.is(">")) {
            --angle;
            name = kNone;
        } else if (angle > 0) {
            continue;
        } else if (token.is("=") || token.is("[")) {
            break;
        } else if (token.is("{")) {
            i = closing(i);
            name = kNone;
        } else if (token.is("(")) {  // (*name)(...), (&name)[...]
            const std::size_t inner = tokens_.next(tokens_.next(i));
            return inner < range.end && tokens_[inner].kind == TokenKind::identifier ? inner : kNone;
        } else if (token.is("*") || token.is("&")) {
            name = kNone;
            words = std::max(words, 1);
        } else if (token.kind == TokenKind::identifier) {
            const bool part_of_type = tokens_.is(tokens_.previous(i), "::") ||
                                      one_of(token.text, kNotNames) || (tokens_.is(tokens_.previous(i), ":"));
            name = part_of_type ? kNone : i;
            if (!token.is("const") && !token.is("volatile") && !token.is("typename")) ++words;
        }
    }
    return words > 1 || angle_before(range, name) ? name : kNone;
}

bool Rewriter::angle_before(Range range, std::size_t name) const {
    if (name == kNone) return false;
    return std::any_of(text_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                       text_.begin() + static_cast<std::ptrdiff_t>(name),
                       [](const auto& t) { return t == ">"; });
}

std::string Rewriter::parameter_names(Range parameters) const {
    std::string names;
    for (const Range& part : split(parameters)) {
        const std::size_t name = declared_name(part);
        if (name == kNone) continue;
        names += ", " + std::string(tokens_[name].text);
        for (std::size_t i = part.begin; i < name; ++i) {
            if (tokens_.is_run(i, ".", 3)) {
                names += "...";
                break;
            }
        }
    }
    return names;
}

bool Rewriter::opens_function(std::size_t brace) const {
    // A brace opens a namespace or a class if such a keyword precedes it; otherwise it is inside a
    // function.
    static constexpr std::array<std::string_view, 4> kScopes = {"namespace", "class", "struct", "union"};
    for (std::size_t p = tokens_.previous(brace); p != kNone; p = tokens_.previous(p)) {
        if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
        p = begin_of_attribute(p);
        if (tokens_[p].is(")")) return true;
        if (one_of(tokens_[p].text, kScopes)) return false;
        if (tokens_[p].kind == TokenKind::literal && tokens_.is(tokens_.previous(p), "extern")) return false;
    }
    return true;
}

bool Rewriter::in_function(std::size_t i) const {
    for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
         brace = tokens_.enclosing_brace(brace)) {
        if (opens_function(brace)) return true;
    }
    return false;
}

bool Rewriter::is_assignment(std::size_t i) const {
    if (!tokens_[i].is("=") || tokens_.is(i + 1, "=") || i == 0) return false;
    if (tokens_[i - 1].is("=") || tokens_[i - 1].is("!")) return false;
    const bool angle = tokens_[i - 1].is("<") || tokens_[i - 1].is(">");
    return !angle || (i > 1 && tokens_[i - 2].is(tokens_[i - 1].text));
}

Range Rewriter::whole_loop(std::size_t loop, std::size_t close) const {
    if (ends_do(loop)) {
        const std::size_t body = tokens_.previous(loop);
        return {tokens_.is(body, "}") ? tokens_.match(body) : declaration_begin(body), close};
    }
    const std::size_t body = tokens_.next(close);
    if (tokens_.is(body, "{")) return {loop, closing(body)};
    return {loop, body == kNone ? close : end_of_statement(body)};
}

std::size_t Rewriter::end_of_statement(std::size_t i) const {
    while (i < tokens_.size() && !tokens_[i].is(";")) {
        const bool opens = tokens_.match(i) != kNone && tokens_.match(i) > i;
        i = opens ? tokens_.match(i) + 1 : i + 1;
    }
    return i;
}

std::size_t Rewriter::next_in(Range range) const {
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].significant()) return i;
    }
    return kNone;
}

bool Rewriter::of_asm(std::size_t i) const {
    const std::size_t before = tokens_.previous(i);
    return before != kNone && is_asm(tokens_[before]);
}

std::size_t Rewriter::outermost_function(std::size_t i) const {
    std::size_t function = kNone;
    for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
         brace = tokens_.enclosing_brace(brace)) {
        if (opens_function(brace)) function = brace;
    }
    return function;
}

bool Rewriter::ends_do(std::size_t loop) const {
    const std::size_t block = tokens_.enclosing_brace(loop);
    for (std::size_t p = tokens_.previous(loop); p != kNone && p != block; p = tokens_.previous(p)) {
        if (tokens_[p].is("}") && tokens_.match(p) != kNone) {
            p = tokens_.match(p);
        } else if (tokens_[p].is("do") && behind_statement(tokens_.next(p)) == loop) {
            return true;
        }
    }
    return false;
}

std::size_t Rewriter::behind_statement(std::size_t i) const {
    static constexpr std::array<std::string_view, 4> kWithCondition = {"if", "for", "while", "switch"};
    if (i == kNone) return kNone;
    if (tokens_[i].is("{")) return tokens_.next(closing(i));
    if (tokens_[i].is("do")) {
        const std::size_t loop = behind_statement(tokens_.next(i));
        return loop == kNone ? kNone : behind_simple_statement(loop);
    }
    if (!one_of(tokens_[i].text, kWithCondition)) return behind_simple_statement(i);
    std::size_t condition = tokens_.next(i);
    if (tokens_.is(condition, "constexpr")) condition = tokens_.next(condition);
    if (!tokens_.is(condition, "(")) return kNone;
    const std::size_t behind = behind_statement(tokens_.next(closing(condition)));
    return tokens_[i].is("if") && tokens_.is(behind, "else") ? behind_statement(tokens_.next(behind))
                                                             : behind;
}

std::size_t Rewriter::behind_simple_statement(std::size_t i) const {
    const std::size_t end = end_of_statement(i);
    return end < tokens_.size() ? tokens_.next(end) : kNone;
}

}  // namespace translator
