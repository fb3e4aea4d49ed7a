#include "parts.hpp"

namespace translator {

namespace {

// Loads with a cache hint. __ldcv is not in the list, because it already lets other threads run.
bool is_load(std::string_view word) {
    static constexpr std::array<std::string_view, 5> kLoads = {"__ldca", "__ldcg", "__ldcs", "__ldg",
                                                               "__ldlu"};
    return one_of(word, kLoads);
}

bool is_builtin_type(std::string_view word) {
    static constexpr std::array<std::string_view, 10> kTypes = {"int",   "unsigned", "char", "long", "short",
                                                                "float", "double",   "bool", "void", "const"};
    return one_of(word, kTypes);
}

}  // namespace

// `while (*flag == 0);` polls memory. On a GPU other threads run meanwhile; here the loop must
// yield to them.
bool WaitingLoops::translate_empty_loop(std::size_t loop) {
    const std::size_t open = tokens_.next(loop);
    if (!tokens_.is(open, "(") || ends_do(loop)) return false;
    const std::size_t body = tokens_.next(closing(open));
    if (tokens_.is(body, ";")) {
        text_[body] = "{ ::cuda_on_cpu::empty_loop(); }";
        return true;
    }
    if (tokens_.is(body, "{") && tokens_.next(body) == tokens_.match(body)) {
        after_[body] += " ::cuda_on_cpu::empty_loop(); ";
        return true;
    }
    return false;
}

// A loop with a body also polls memory if it reads volatile memory, directly or through a function,
// or if all its iterations do the same. In a loop without a counter, loads with a cache hint poll,
// too, if they load repeatedly from the same address.
void WaitingLoops::translate_waiting_loop(std::size_t loop) {
    const std::size_t open = tokens_.next(loop);
    if (!tokens_.is(open, "(")) return;
    const std::size_t close = closing(open);
    const Range whole = whole_loop(loop, close);
    Range condition{open + 1, close};
    if (tokens_[loop].is("for")) {
        condition.begin = end_of_statement(open + 1) + 1;
        condition.end = condition.begin >= close ? close : end_of_statement(condition.begin);
        if (condition.end >= close) return;  // for (element : range)
    }
    const bool counts = tokens_[loop].is("for") && next_in({condition.end + 1, close}) != kNone;
    if (!counts) replace_loads(whole);
    if (!mentions_volatile(whole) && (counts || !repeats_itself(whole))) return;
    const std::size_t first = next_in(condition);
    if (first == kNone || tokens_[first].is("true") || tokens_[first].is("1")) {
        // The condition stays, so that the compiler still sees an endless loop.
        const std::size_t body = ends_do(loop) ? tokens_.match(tokens_.previous(loop)) : tokens_.next(close);
        if (tokens_.is(body, "{")) {
            after_[body] += " ::cuda_on_cpu::poll();";
        } else if (tokens_[loop].is("for") && !counts) {
            text_[close] = "::cuda_on_cpu::poll()" + text_[close];
        }
        return;
    }
    const std::size_t second = next_in({first + 1, condition.end});
    const bool declares = second != kNone && tokens_[first].kind == TokenKind::identifier &&
                          tokens_[second].kind == TokenKind::identifier;  // while (int value = ...)
    if (declares) return;
    if (ends_do(loop)) {
        // Behind the condition: `do { s[i] = mine; } while (s[i] != mine);` finds out whether a
        // lane of the warp has written at the same time, so no other thread may run before it
        // looks.
        text_[first] = "(" + text_[first];
        text_[condition.end] = ") && (::cuda_on_cpu::poll(), true)" + text_[condition.end];
        return;
    }
    text_[first] = "::cuda_on_cpu::poll(), (" + text_[first];
    text_[condition.end] = ")" + text_[condition.end];
}

// `again: ... goto again;` is also a loop.
void WaitingLoops::translate_goto(std::size_t jump) {
    const std::size_t target = tokens_.next(jump);
    const std::size_t end = tokens_.next(target);
    if (!tokens_.is(end, ";")) return;
    const std::size_t label = label_before(jump, tokens_[target].text);
    if (label == kNone) return;
    const Range whole{tokens_.next(tokens_.next(label)), jump};
    replace_loads(whole);
    if (!mentions_volatile(whole) && !repeats_itself(whole)) return;
    text_[jump] = "{ ::cuda_on_cpu::poll(); " + text_[jump];
    text_[end] += " }";
}

// The label `name:` before `i` in the same function.
std::size_t WaitingLoops::label_before(std::size_t i, std::string_view name) const {
    const std::size_t function = outermost_function(i);
    if (function == kNone) return kNone;
    for (std::size_t p = tokens_.previous(i); p != kNone && p > function; p = tokens_.previous(p)) {
        if (tokens_[p].is(name) && tokens_.is(tokens_.next(p), ":") && !tokens_.is(tokens_.previous(p), "?"))
            return p;
    }
    return kNone;
}

// Replaces loads in this range, and in functions that it calls and that the file defined earlier.
void WaitingLoops::replace_loads(Range range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].kind != TokenKind::identifier || !tokens_.is(tokens_.next(i), "(")) continue;
        if (is_load(tokens_[i].text)) {
            text_[i] = "::cuda_on_cpu::load_in_loop";
            continue;
        }
        for (const LoadingFunction& function : loading_functions_) {
            if (!tokens_[i].is(function.name) || (function.brace < i && closing(function.brace) > i))
                continue;
            for (std::size_t k = function.brace; k < closing(function.brace); ++k)
                if (is_load(tokens_[k].text)) text_[k] = "::cuda_on_cpu::load_in_loop";
        }
    }
}

// Do all iterations of a loop do the same unless memory changes? They do if the loop counts no
// variable, stores nothing, calls no other function, and assigns only values that do not depend on
// earlier assignments. Such a loop waits, or ends at once.
bool WaitingLoops::repeats_itself(Range range) const {
    static constexpr std::array<std::string_view, 15> kMayBeCalled = {"if",
                                                                      "while",
                                                                      "for",
                                                                      "do",
                                                                      "switch",
                                                                      "sizeof",
                                                                      "__nanosleep",
                                                                      "__syncwarp",
                                                                      "__ldcv",
                                                                      "__threadfence",
                                                                      "return",
                                                                      "static_cast",
                                                                      "reinterpret_cast",
                                                                      "const_cast",
                                                                      "__threadfence_block"};
    static constexpr std::array<std::string_view, 6> kJumps = {"break", "continue", "goto",
                                                               "else",  "true",     "false"};
    std::vector<std::string_view> assigned;
    std::vector<Range> values;
    // Whether the loop reads a variable.
    bool looks = false;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::identifier && tokens_.is(tokens_.next(i), "(") &&
            !one_of(token.text, kMayBeCalled) && !is_load(token.text))
            return false;
        if (token.is("(") && (tokens_.is(tokens_.previous(i), "]") || tokens_.is(tokens_.previous(i), ")")))
            return false;  // a lambda, or a call through a pointer
        looks = looks || (token.kind == TokenKind::identifier && !one_of(token.text, kMayBeCalled) &&
                          !one_of(token.text, kJumps));
        if (tokens_.is_run(i, "+", 2) || tokens_.is_run(i, "-", 2)) return false;
        if (!is_assignment(i)) continue;
        const std::size_t name = tokens_.previous(i);
        if (name == kNone || tokens_[name].kind != TokenKind::identifier || is_compound(i)) return false;
        const std::size_t before = tokens_.previous(name);
        if (tokens_.is(before, ".") || tokens_.is(before, ">") || tokens_.is(before, "*")) return false;
        assigned.push_back(tokens_[name].text);
        values.push_back({i + 1, end_of_statement(i + 1)});
    }
    for (const Range& value : values) {
        for (std::size_t i = value.begin; i < value.end; ++i) {
            if (std::find(assigned.begin(), assigned.end(), tokens_[i].text) != assigned.end()) return false;
        }
    }
    return looks;
}

bool WaitingLoops::is_compound(std::size_t i) const {
    static constexpr std::array<std::string_view, 10> kOperators = {"+", "-", "*", "/", "%",
                                                                    "&", "|", "^", "<", ">"};
    return i > 0 && one_of(tokens_[i - 1].text, kOperators);
}

bool WaitingLoops::mentions_volatile(Range range) const {
    const std::size_t function = outermost_function(range.begin);
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].kind != TokenKind::identifier) continue;
        if (tokens_[i].is("volatile") && !of_asm(i)) return true;
        for (const VolatileName& name : volatile_names_) {
            if (tokens_[i].is(name.text) && (name.function == kNone || name.function == function))
                return true;
        }
    }
    return false;
}

// Skips system headers, because no code in them waits for a CUDA thread.
void WaitingLoops::find_volatile_names() {
    bool system = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const std::string_view text = tokens_[i].text;
        if (tokens_[i].kind == TokenKind::directive && text.starts_with("# ")) {
            const std::string_view flags = text.substr(text.rfind('"') + 1);  // of `# line "file" flags`
            system = flags.find('3') != std::string_view::npos;
        } else if (!system && tokens_[i].is("volatile") && !of_asm(i)) {
            note_volatile(i);
        } else if (!system && is_load(tokens_[i].text)) {
            note_loading_function(i);
        }
    }
}

void WaitingLoops::note_loading_function(std::size_t i) {
    const std::size_t function = outermost_function(i);
    if (function == kNone || (!loading_functions_.empty() && loading_functions_.back().brace == function))
        return;
    if (const std::size_t name = name_of_function(function); name != kNone)
        loading_functions_.push_back({tokens_[name].text, function});
}

void WaitingLoops::note_volatile(std::size_t i) {
    static constexpr std::array<std::string_view, 6> kEnds = {";", "=", "[", ",", ")", "{"};
    std::size_t name = i;
    std::size_t end = tokens_.next(i);
    while (end != kNone && !one_of(tokens_[end].text, kEnds) && !tokens_[end].is("(") &&
           !tokens_[end].is(">")) {
        name = end;
        end = tokens_.next(end);
    }
    const bool named = end != kNone && one_of(tokens_[end].text, kEnds) &&
                       tokens_[name].kind == TokenKind::identifier && !is_builtin_type(tokens_[name].text);
    std::size_t function = outermost_function(i);
    const std::size_t parentheses = enclosing_parenthesis(i);
    if (function == kNone && parentheses != kNone) {  // a parameter
        function = skip_to_body(closing(parentheses));
        if (function == kNone) return;
    }
    if (named) volatile_names_.push_back({tokens_[name].text, function});
    if (function != kNone) {
        if (const std::size_t own = name_of_function(function); own != kNone) {
            volatile_names_.push_back({tokens_[own].text, kNone});
        }
    }
}

// The `(` of the parameter list that contains token `i`, which is outside functions.
std::size_t WaitingLoops::enclosing_parenthesis(std::size_t i) const {
    for (std::size_t p = declaration_begin(i); p < i; ++p) {
        if (tokens_[p].is("(") && tokens_.match(p) != kNone && tokens_.match(p) > i) return p;
    }
    return kNone;
}

// The brace of the body after this end of a parameter list; kNone if it is only a declaration.
std::size_t WaitingLoops::skip_to_body(std::size_t parameters_end) const {
    for (std::size_t p = tokens_.next(parameters_end); p != kNone; p = tokens_.next(p)) {
        if (tokens_[p].is("{")) return p;
        if (tokens_[p].is(";") || tokens_[p].is("}")) return kNone;
    }
    return kNone;
}

std::size_t WaitingLoops::name_of_function(std::size_t brace) const {
    for (std::size_t p = declaration_begin(brace == 0 ? 0 : tokens_.previous(brace)); p < brace; ++p) {
        if (tokens_[p].kind == TokenKind::identifier && !is_decoration(p) && tokens_.is(tokens_.next(p), "("))
            return p;
    }
    return kNone;
}

}  // namespace translator
