// Variables that all threads of a block change alike, such as the number of elements that a loop
// with a barrier halves:
//
//     int left = n;
//     for (int i = 2; i <= 64; i *= 2)
//         if (n >= i) left = i;
//
// The block has one of them. It is changed by statements that depend on nothing but such variables
// and other uniform values, which run once for all threads, between regions.
#include <algorithm>

#include "parts.hpp"

namespace translator {

void Regions::find_uniform_variables() {
    uniform_.clear();
    declarations_.clear();
    statements_.clear();
    collect_statements(body_);
    for (const Declared& each : declarations_)
        uniform_.insert(each.name);
    const auto is_uniform = [this](const Declared& declared) {
        if (next_in(declared.value) == kNone || !is_uniform_value(declared.value, {})) return false;
        return std::ranges::none_of(statements_, [&](const Range& statement) {
            return is_changed(declared.name, statement) && !is_uniform_statement(statement, {}, true);
        });
    };
    for (bool found = true; found;) {
        found = false;
        for (const Declared& each : declarations_) {
            if (!uniform_.contains(each.name) || is_uniform(each)) continue;
            found = true;
            uniform_.erase(each.name);
            for (const Declared& other : declarations_)  // one statement cannot declare both kinds
                if (other.statement.begin == each.statement.begin) uniform_.erase(other.name);
        }
    }
}

// The declarations and statements outside of regions, or that are whole statements of one.
void Regions::collect_statements(Range list) {
    for (std::size_t i = next_in(list); i != kNone && i < list.end;) {
        const std::size_t behind = behind_statement(i);
        if (behind == kNone || behind > list.end) return;
        collect_statement({i, tokens_.previous(behind) + 1});
        i = behind;
    }
}

void Regions::collect_statement(Range statement) {
    const std::size_t first = statement.begin;
    if (shared_word(first) != kNone || is_barrier(first)) return;
    if (!has_barrier(statement)) {
        statements_.push_back(statement);
        collect_declaration(first);
        return;
    }
    if (tokens_[first].is("{")) return collect_statements({first + 1, closing(first)});
    const std::size_t open = tokens_.next(first);
    if (!tokens_.is(open, "(")) return;
    if (tokens_[first].is("for")) collect_declaration(tokens_.next(open));
    const std::size_t body = tokens_.next(closing(open));
    const std::size_t behind = behind_statement(body);
    if (behind == kNone) return;
    collect_statement({body, tokens_.previous(behind) + 1});
    if (!tokens_.is(behind, "else") || behind >= statement.end) return;
    collect_statement({tokens_.next(behind), statement.end});
}

// `const int a = 1, b = n;`. What has no value of a number type is not uniform.
void Regions::collect_declaration(std::size_t begin) {
    const std::size_t first = behind_type(begin);
    if (first == kNone || tokens_[first].kind != TokenKind::identifier) return;
    bool is_number = true;
    for (std::size_t i = next_in({begin, first}); i < first; i = tokens_.next(i))
        is_number = is_number && (is_number_type(tokens_[i].text) || tokens_[i].is("const"));
    for (const Range& declarator : split({first, end_of_statement(first)})) {
        std::size_t name = next_in(declarator);
        bool is_value = is_number;
        for (; tokens_.is(name, "*"); name = tokens_.next(name))
            is_value = false;
        const std::size_t sign = tokens_.next(name);
        is_value = is_value && tokens_.is(sign, "=") && sign < declarator.end;
        declarations_.push_back({tokens_[name].text,
                                 {begin, end_of_statement(first)},
                                 is_value ? Range{sign + 1, declarator.end} : Range{begin, begin}});
    }
}

// Is this an expression of uniform values that changes nothing?
bool Regions::is_uniform_value(Range range, const Names& locals) {
    static constexpr std::array<std::string_view, 18> kSigns = {"(", ")", ",", "+", "-", "*", "/", "%", "<",
                                                                ">", "!", "?", ":", "&", "|", "^", "~", "="};
    for (std::size_t i = next_in(range); i != kNone && i < range.end; i = tokens_.next(i)) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::number) continue;
        if (token.kind == TokenKind::identifier) {
            if (!is_uniform_word(i, locals)) return false;
        } else if (token.is(".")) {
            if (!is_place(tokens_[tokens_.previous(i)].text)) return false;
        } else if (!one_of(token.text, kSigns) || is_change(i) || (token.is("-") && tokens_.is(i + 1, ">"))) {
            return false;
        }
        const bool is_pair = tokens_.is(i - 1, "&") || tokens_.is(i + 1, "&");
        if ((token.is("*") || (token.is("&") && !is_pair)) && is_unary(i)) return false;
    }
    return true;
}

bool Regions::is_uniform_word(std::size_t i, const Names& locals) {
    const std::string_view word = tokens_[i].text;
    if (is_member(i)) return is_place(tokens_[tokens_.previous(tokens_.previous(i))].text);
    if (word == "threadIdx" || shared_.contains(word)) return false;
    if (is_place(word) || is_number_type(word) || types_.contains(word) || word == "true" ||
        word == "false" || word == "static_cast")
        return true;
    if (tokens_.is(tokens_.next(i), "(")) return is_mathematical(word) || called_.contains(word);
    if (locals.contains(word) || uniform_.contains(word)) return true;
    const bool is_declared =
        std::ranges::any_of(declarations_, [&](const Declared& each) { return each.name == word; });
    if (is_declared) return false;
    if (parameters_.contains(word)) return true;
    return !names_.contains(word) && is_number(word) && !is_variable_of_device(word);
}

// Is this `x = 1`, `x += 1` or `++x` of uniform values?
bool Regions::is_uniform_change(Range range, const Names& locals) {
    for (const Range& part : split(range)) {
        std::size_t name = next_in(part);
        std::size_t last = tokens_.previous(part.end);
        if (name == kNone) return false;
        for (const std::string_view step : {"+", "-"}) {
            if (tokens_.is_run(name, step, 2)) name = tokens_.next(name + 1);
            if (tokens_.is_run(last - 1, step, 2)) last = tokens_.previous(last - 1);
        }
        const std::string_view word = tokens_[name].text;
        if (!locals.contains(word) && !uniform_.contains(word)) return false;
        if (name == last) continue;
        std::size_t sign = tokens_.next(name);
        if (name != next_in(part) || !is_change(sign)) return false;
        while (!tokens_.is(sign, "="))
            if ((sign = tokens_.next(sign)) >= part.end) return false;
        if (next_in({sign + 1, part.end}) == kNone || !is_uniform_value({sign + 1, part.end}, locals))
            return false;
    }
    return true;
}

// Does the statement do nothing but change uniform variables, by uniform values? `for (i = 0; ...)`
// may change another one that it sets first, if it is the whole statement.
bool Regions::is_uniform_statement(Range statement, Names locals, bool is_whole) {
    const std::size_t first = statement.begin;
    if (tokens_[first].is("{")) {
        const Range list{first + 1, closing(first)};
        for (std::size_t i = next_in(list); i != kNone && i < list.end;) {
            const std::size_t behind = behind_statement(i);
            if (behind == kNone || behind > list.end ||
                !is_uniform_statement({i, tokens_.previous(behind) + 1}, locals, false))
                return false;
            i = behind;
        }
        return true;
    }
    const bool is_loop = tokens_[first].is("for");
    if (!is_loop && !tokens_[first].is("if"))
        return tokens_.is(statement.end - 1, ";") && end_of_statement(first) == statement.end - 1 &&
               is_uniform_change({first, statement.end - 1}, locals);
    const std::size_t open = tokens_.next(first);
    if (!tokens_.is(open, "(")) return false;
    const std::size_t close = closing(open);
    Range condition{open + 1, close};
    if (is_loop) {
        std::size_t begin = tokens_.next(open);
        const Range init{begin, end_of_statement(begin)};
        condition = {init.end + 1, end_of_statement(init.end + 1)};
        if (init.end >= close || condition.end >= close) return false;
        if (const std::size_t name = behind_type(begin);
            name != kNone && tokens_[name].kind == TokenKind::identifier) {
            const bool is_declared = std::ranges::any_of(
                declarations_, [&](const Declared& each) { return each.name == tokens_[name].text; });
            if (is_declared || parameters_.contains(tokens_[name].text)) return false;
            begin = name;
        } else if (!uniform_.contains(tokens_[begin].text) && !is_whole) {
            return false;
        }
        if (tokens_[begin].kind != TokenKind::identifier || !is_assignment(tokens_.next(begin)) ||
            split({begin, init.end}).size() != 1 ||
            !is_uniform_value({tokens_.next(begin) + 1, init.end}, locals))
            return false;
        locals.insert(tokens_[begin].text);
        if (!is_uniform_change({condition.end + 1, close}, locals)) return false;
    }
    if (next_in(condition) == kNone || !is_uniform_value(condition, locals)) return false;
    const std::size_t body = tokens_.next(close);
    const std::size_t behind = behind_statement(body);
    if (behind == kNone) return false;
    const std::size_t end = std::min(tokens_.previous(behind) + 1, statement.end);
    std::size_t otherwise = kNone;
    for (std::size_t i = tokens_.next(end - 1); i != kNone && i < statement.end && otherwise == kNone;)
        otherwise = tokens_.is(i, "else") ? i : statement.end;
    if (!is_uniform_statement({body, end}, locals, false)) return false;
    if (otherwise == kNone) return true;
    return otherwise != statement.end && !is_loop &&
           is_uniform_statement({tokens_.next(otherwise), statement.end}, locals, false);
}

// Does the statement change a uniform variable?
bool Regions::changes_uniform(Range statement) const {
    return std::ranges::any_of(uniform_, [&](std::string_view name) { return is_changed(name, statement); });
}

bool Regions::plan_uniform_statement(Range statement) {
    close_region();
    if (may_have_ended_ || !is_uniform_statement(statement, {}, true)) return false;
    if (!tokens_[statement.begin].is("for")) return true;
    const std::size_t begin = tokens_.next(tokens_.next(statement.begin));
    const std::size_t type = behind_type(begin);
    if (type != kNone && tokens_[type].kind == TokenKind::identifier) return true;
    if (uniform_.contains(tokens_[begin].text)) return true;
    const Variable* const counter = find(tokens_[begin].text);
    if (counter == nullptr || counter->kind != Kind::kept) return false;
    const auto variable = static_cast<std::size_t>(counter - variables_.data());
    loops_.push_back({statement.begin, statement.end - 1, variable});
    variables_[variable].lasts = true;
    return true;
}

}  // namespace translator
