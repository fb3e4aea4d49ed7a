#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cuda_on_cpu/translator/tokens.hpp"
#include "exercise_sheet.hpp"

namespace course::tool {
namespace {

using translator::kNone;
using translator::TokenKind;
using translator::Tokens;

class Source {
  public:
    explicit Source(std::string_view text) : text_(text), tokens_(text) { require_brackets(); }

    std::vector<FunctionDefinition> definitions(std::string_view name) const {
        const auto colons = name.rfind("::");
        const std::string_view scope = colons == std::string_view::npos ? "" : name.substr(0, colons);
        const std::string_view word = colons == std::string_view::npos ? name : name.substr(colons + 2);
        std::vector<FunctionDefinition> found;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i].kind != TokenKind::identifier || !tokens_[i].is(word) || !in_scope(i, scope))
                continue;
            const std::size_t type = before_attributes(before_qualifiers(i));
            const std::size_t brace = body_of(i);
            if (brace != kNone && may_end_a_type(type)) found.push_back(definition(i, type, brace));
        }
        return found;
    }

  private:
    std::size_t place(std::size_t token) const {
        return static_cast<std::size_t>(tokens_[token].text.data() - text_.data());
    }

    void require_brackets() const {
        static constexpr std::string_view kOpen = "([{", kClose = ")]}";
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i].kind != TokenKind::punctuation) continue;
            const char bracket = tokens_[i].text.front();
            const auto open = kOpen.find(bracket);
            if (open == std::string_view::npos && kClose.find(bracket) == std::string_view::npos) continue;
            const std::size_t other = tokens_.match(i);
            const bool pair =
                other != kNone && (open == std::string_view::npos
                                       ? kClose.find(bracket) == kOpen.find(tokens_[other].text.front())
                                       : open == kClose.find(tokens_[other].text.front()));
            if (!pair)
                throw ExerciseError(
                    fmt::format("line {}: '{}' has no partner", line_at(text_, place(i)), bracket));
        }
    }

    bool is_colons_before(std::size_t i, std::size_t& word) const {
        const std::size_t second = tokens_.previous(i);
        const std::size_t first = tokens_.previous(second);
        if (!tokens_.is(second, ":") || !tokens_.is(first, ":")) return false;
        word = tokens_.previous(first);
        return word != kNone && tokens_[word].kind == TokenKind::identifier;
    }

    // The token before the name and the `Type::` in front of it.
    std::size_t before_qualifiers(std::size_t name) const {
        std::size_t word = name;
        while (is_colons_before(word, word)) {
        }
        return tokens_.previous(word);
    }

    // `void __launch_bounds__(256) kernel`: goes back to the type.
    std::size_t before_attributes(std::size_t i) const {
        while (tokens_.is(i, ")") || tokens_.is(i, "]")) {
            const std::size_t before = tokens_.previous(tokens_.match(i));
            if (tokens_.is(i, "]")) {
                i = before;
            } else if (tokens_.is(before, "__launch_bounds__") || tokens_.is(before, "__attribute__") ||
                       tokens_.is(before, "alignas")) {
                i = tokens_.previous(before);
            } else {
                return i;
            }
        }
        return i;
    }

    bool in_scope(std::size_t name, std::string_view scope) const {
        if (scope.empty()) return true;
        if (std::size_t word = kNone; is_colons_before(name, word)) return tokens_[word].is(scope);
        const std::size_t brace = tokens_.enclosing_brace(name);
        // `struct Type final : Base {`: goes back to the keyword.
        for (std::size_t i = tokens_.previous(brace); i != kNone; i = tokens_.previous(i)) {
            if (tokens_[i].is(";") || tokens_[i].is("}") || tokens_[i].is("{")) return false;
            if (tokens_[i].is("struct") || tokens_[i].is("class")) return tokens_.is(tokens_.next(i), scope);
        }
        return false;
    }

    // In a definition, the token before the name ends a type. Before a call, it is an operator, a
    // bracket or a keyword.
    bool may_end_a_type(std::size_t i) const {
        static constexpr std::array<std::string_view, 12> kNoTypes = {
            "return", "else", "do",        "new",      "delete",   "throw",
            "case",   "goto", "co_return", "co_yield", "co_await", "not"};
        if (i == kNone) return false;
        if (tokens_[i].kind == TokenKind::identifier)
            return std::ranges::find(kNoTypes, tokens_[i].text) == kNoTypes.end();
        return tokens_[i].is("*") || tokens_[i].is("&") || tokens_[i].is(">");
    }

    // The position after the `<...>` of a specialisation; `i` itself if there is none.
    std::size_t after_template_arguments(std::size_t i) const {
        if (!tokens_.is(i, "<") || tokens_.is_run(i, "<", 2)) return i;
        int depth = 0;
        for (; i != kNone; i = tokens_.next(i)) {
            if (tokens_[i].is("(") || tokens_[i].is("{")) {
                i = tokens_.match(i);
            } else if (tokens_[i].is("<")) {
                ++depth;
            } else if (tokens_[i].is(">") && --depth == 0) {
                return tokens_.next(i);
            } else if (tokens_[i].is(";")) {
                break;
            }
        }
        return kNone;
    }

    // The opening brace of the body of the function whose name is at `name`; kNone for a
    // declaration, a call or a kernel launch.
    std::size_t body_of(std::size_t name) const {
        std::size_t i = after_template_arguments(tokens_.next(name));
        if (!tokens_.is(i, "(")) return kNone;
        for (i = tokens_.next(tokens_.match(i)); i != kNone; i = tokens_.next(i)) {
            if (tokens_[i].is("{")) return i;
            if (tokens_[i].is("(") || tokens_[i].is("[")) {  // noexcept(...), [[attribute]], requires (...)
                i = tokens_.match(i);
            } else if (tokens_[i].kind != TokenKind::identifier &&
                       std::string_view("&-><:*").find(tokens_[i].text.front()) == std::string_view::npos) {
                return kNone;
            }
        }
        return kNone;
    }

    FunctionDefinition definition(std::size_t name, std::size_t type, std::size_t brace) const {
        std::size_t head = name;
        for (std::size_t i = tokens_.previous(name); i != kNone; i = tokens_.previous(i)) {
            if (tokens_[i].is(")") || tokens_[i].is("]")) {
                i = tokens_.match(i);
            } else if (tokens_[i].is(";") || tokens_[i].is("}") || tokens_[i].is("{") || is_access_colon(i)) {
                break;
            }
            head = i;
        }
        FunctionDefinition result{
            .begin = place(head),
            .head = place(head),
            .body_begin = place(brace),
            .body_end = place(tokens_.match(brace)) + 1,
            .returns_nothing = tokens_.is(type, "void") || returns_void_after_arrow(brace)};
        if (head > 0 && tokens_[head - 1].kind == TokenKind::space)
            result.begin -= comment_at_end(tokens_[head - 1].text);
        return result;
    }

    // `public:`
    bool is_access_colon(std::size_t i) const {
        const std::size_t word = tokens_.previous(i);
        return tokens_[i].is(":") &&
               (tokens_.is(word, "public") || tokens_.is(word, "private") || tokens_.is(word, "protected"));
    }

    bool returns_void_after_arrow(std::size_t brace) const {
        const std::size_t type = tokens_.previous(brace);
        const std::size_t arrow = tokens_.previous(type);
        return tokens_.is(type, "void") && tokens_.is(arrow, ">") && tokens_.is(tokens_.previous(arrow), "-");
    }

    // The length of the comment at the end of `space`, with its indentation, if no empty line
    // separates it from the text that follows.
    static std::size_t comment_at_end(std::string_view space) {
        std::size_t begin = space.rfind('\n') + 1;  // start of the line of the declaration
        if (begin == 0) return 0;
        const std::size_t indentation = space.size() - begin;
        while (begin > 0) {
            const std::size_t line = begin < 2 ? 0 : space.rfind('\n', begin - 2) + 1;
            const std::string_view text = space.substr(line, begin - line);
            // The text before the first line break belongs to the previous line
            // (`} // namespace`), so it is not the comment of this function.
            if (line == 0 || text.find_first_not_of(" \t\r\n") == std::string_view::npos) break;
            begin = line;
        }
        const std::size_t size = space.size() - begin;
        return size == indentation ? 0 : size;
    }

    std::string_view text_;
    Tokens tokens_;
};

}  // namespace

std::vector<std::size_t> kernel_bodies(std::string_view text) {
    const Tokens tokens(text);
    std::vector<std::size_t> bodies;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i].kind != TokenKind::identifier || !tokens[i].is("__global__")) continue;
        std::size_t at = tokens.next(i);
        while (at != kNone && !tokens.is(at, "{") && !tokens.is(at, ";"))
            at = tokens.next(tokens.is(at, "(") && tokens.match(at) != kNone ? tokens.match(at) : at);
        if (tokens.is(at, "{"))
            bodies.push_back(static_cast<std::size_t>(tokens[at].text.data() - text.data()));
    }
    return bodies;
}

std::vector<FunctionDefinition> find_functions(std::string_view text, std::string_view name) {
    return Source(text).definitions(name);
}

std::string with_bodies(std::string_view text, const std::vector<FunctionDefinition>& functions,
                        const std::vector<std::string>& bodies) {
    std::string result;
    std::size_t done = 0;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        result += text.substr(done, functions[i].body_begin - done);
        result += bodies.at(i);
        done = functions[i].body_end;
    }
    return result += text.substr(done);
}

std::string with_bodies_from(std::string_view text, std::string_view source,
                             const std::vector<std::string>& names) {
    std::string result(text);
    for (const std::string& name : names) {
        const auto wanted = find_functions(source, name);
        const auto found = find_functions(result, name);
        if (found.size() != wanted.size() || found.empty()) {
            throw ExerciseError(
                fmt::format("'{}' has {} definitions; expected {}", name, found.size(), wanted.size()));
        }
        std::vector<std::string> bodies;
        for (const FunctionDefinition& function : wanted)
            bodies.emplace_back(source.substr(function.body_begin, function.body_end - function.body_begin));
        result = with_bodies(result, found, bodies);
    }
    return result;
}

int line_at(std::string_view text, std::size_t place) {
    return 1 + static_cast<int>(std::ranges::count(text.substr(0, place), '\n'));
}

}  // namespace course::tool
