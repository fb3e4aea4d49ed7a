#include "tokens.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

namespace translator {
namespace {

bool starts_identifier(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool continues_identifier(char c) {
    return starts_identifier(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_blank(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}

// Each of these returns the end of the token that starts at `i`.

std::size_t end_of_line(std::string_view s, std::size_t i) {
    while (i < s.size() && s[i] != '\n')
        i += s[i] == '\\' ? 2 : 1;
    return std::min(i, s.size());
}

std::size_t end_of_quoted(std::string_view s, std::size_t i) {
    const char quote = s[i++];
    while (i < s.size() && s[i] != quote)
        i += s[i] == '\\' ? 2 : 1;
    return std::min(i + 1, s.size());
}

std::size_t end_of_raw_string(std::string_view s, std::size_t quote) {
    const std::size_t open = s.find('(', quote);
    if (open == std::string_view::npos) return s.size();
    const std::string close = ")" + std::string(s.substr(quote + 1, open - quote - 1)) + "\"";
    const std::size_t end = s.find(close, open);
    return end == std::string_view::npos ? s.size() : end + close.size();
}

std::size_t end_of_space(std::string_view s, std::size_t i) {
    while (i < s.size()) {
        if (is_blank(s[i])) {
            ++i;
        } else if (s.substr(i, 2) == "//") {
            i = end_of_line(s, i);
        } else if (s.substr(i, 2) == "/*") {
            const std::size_t end = s.find("*/", i + 2);
            i = end == std::string_view::npos ? s.size() : end + 2;
        } else {
            break;
        }
        // A directive starts a token of its own.
        if (i > 0 && i < s.size() && s[i - 1] == '\n' && s[i] == '#') break;
    }
    return i;
}

std::size_t end_of_number(std::string_view s, std::size_t i) {
    while (i < s.size() &&
           (continues_identifier(s[i]) || s[i] == '.' || s[i] == '\'' ||
            ((s[i] == '+' || s[i] == '-') && std::string_view("eEpP").find(s[i - 1]) != s.npos))) {
        ++i;
    }
    return i;
}

bool is_string_prefix(std::string_view word) {
    static constexpr std::string_view kPrefixes[] = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
    return std::find(std::begin(kPrefixes), std::end(kPrefixes), word) != std::end(kPrefixes);
}

}  // namespace

Tokens::Tokens(std::string_view s) {
    int line = 1;
    bool line_start = true;
    for (std::size_t i = 0; i < s.size();) {
        const char c = s[i];
        std::size_t end = i + 1;
        TokenKind kind = TokenKind::punctuation;
        if (line_start && c == '#') {
            kind = TokenKind::directive;
            end = end_of_line(s, i);
        } else if (is_blank(c) || s.substr(i, 2) == "//" || s.substr(i, 2) == "/*") {
            kind = TokenKind::space;
            end = end_of_space(s, i);
        } else if (starts_identifier(c)) {
            kind = TokenKind::identifier;
            while (end < s.size() && continues_identifier(s[end]))
                ++end;
            if (end < s.size() && (s[end] == '"' || s[end] == '\'') &&
                is_string_prefix(s.substr(i, end - i))) {
                kind = TokenKind::literal;
                end = s[end - 1] == 'R' ? end_of_raw_string(s, end) : end_of_quoted(s, end);
            }
        } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
                   (c == '.' && i + 1 < s.size() &&
                    std::isdigit(static_cast<unsigned char>(s[i + 1])) != 0)) {
            kind = TokenKind::number;
            end = end_of_number(s, i + 1);
        } else if (c == '"' || c == '\'') {
            kind = TokenKind::literal;
            end = end_of_quoted(s, i);
        }
        const std::string_view text = s.substr(i, end - i);
        tokens_.push_back({kind, text, line});
        if (kind == TokenKind::directive && text.size() > 2 &&
            std::isdigit(static_cast<unsigned char>(text[2])) != 0) {
            constexpr int kMostLines = 1 << 30;
            int number = 0;
            const std::errc error = std::from_chars(text.data() + 2, text.data() + text.size(), number).ec;
            // The marker's own line end counts.
            if (error == std::errc() && number < kMostLines) line = number - 1;
        }
        line += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
        line_start = !text.empty() && text.back() == '\n';
        i = end;
    }
    match_brackets();
}

void Tokens::match_brackets() {
    match_.assign(tokens_.size(), kNone);
    brace_.assign(tokens_.size(), kNone);
    std::vector<std::size_t> open;
    std::vector<std::size_t> braces;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        brace_[i] = braces.empty() ? kNone : braces.back();
        if (tokens_[i].kind != TokenKind::punctuation) continue;
        switch (tokens_[i].text.front()) {
            case '{':
                braces.push_back(i);
                [[fallthrough]];
            case '(':
            case '[':
                open.push_back(i);
                break;
            case '}':
                if (!braces.empty()) braces.pop_back();
                [[fallthrough]];
            case ')':
            case ']':
                if (!open.empty()) {
                    match_[i] = open.back();
                    match_[open.back()] = i;
                    open.pop_back();
                }
                break;
            default:
                break;
        }
    }
}

std::size_t Tokens::next(std::size_t i) const {
    if (i == kNone) return kNone;
    for (++i; i < tokens_.size(); ++i) {
        if (tokens_[i].significant()) return i;
    }
    return kNone;
}

std::size_t Tokens::previous(std::size_t i) const {
    if (i == kNone) return kNone;
    while (i-- > 0) {
        if (tokens_[i].significant()) return i;
    }
    return kNone;
}

bool Tokens::is_run(std::size_t i, std::string_view character, std::size_t count) const {
    if (i + count > tokens_.size()) return false;
    for (std::size_t k = 0; k < count; ++k) {
        if (!tokens_[i + k].is(character)) return false;
    }
    return true;
}

}  // namespace translator
