#include "inspect_code.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cuda_on_cpu/translator/tokens.hpp"

namespace course::tool {
namespace {

using translator::Token;
using translator::TokenKind;

constexpr auto kKeywords = std::to_array<std::string_view>(
    {"alignas",     "alignof",  "asm",      "auto",     "bool",       "break",     "case",
     "char",        "class",    "concept",  "const",    "const_cast", "consteval", "constexpr",
     "constinit",   "continue", "decltype", "default",  "delete",     "do",        "double",
     "else",        "enum",     "explicit", "extern",   "false",      "float",     "for",
     "friend",      "if",       "inline",   "int",      "long",       "mutable",   "namespace",
     "new",         "noexcept", "nullptr",  "operator", "private",    "public",    "reinterpret_cast",
     "requires",    "return",   "short",    "signed",   "sizeof",     "static",    "static_assert",
     "static_cast", "struct",   "switch",   "template", "this",       "true",      "typedef",
     "typename",    "union",    "unsigned", "using",    "void",       "while"});
static_assert(std::ranges::is_sorted(kKeywords));

constexpr std::array<std::string_view, 5> kBuiltIn = {"blockDim", "blockIdx", "gridDim", "threadIdx",
                                                      "warpSize"};

bool is_word_of_cuda(std::string_view word) {
    return std::ranges::find(kBuiltIn, word) != kBuiltIn.end() || word.starts_with("__") ||
           (word.starts_with("atomic") && word.size() > 6);
}

std::string_view class_of(const Token& token) {
    switch (token.kind) {
        case TokenKind::identifier:
            if (is_word_of_cuda(token.text)) return "cuda";
            return std::ranges::binary_search(kKeywords, token.text) ? "keyword" : "";
        case TokenKind::number:
            return "number";
        case TokenKind::literal:
            return "string";
        case TokenKind::directive:
            return "directive";
        case TokenKind::space:
            return token.text.find('/') == std::string_view::npos ? "" : "comment";
        case TokenKind::punctuation:
            break;
    }
    return "";
}

// Lines that grow token by token.
class Lines {
  public:
    void add(std::string_view text, std::string_view style) {
        while (true) {
            const std::string_view part = text.substr(0, text.find('\n'));
            add_within_line(part, style);
            if (part.size() == text.size()) return;
            lines_.emplace_back();
            text.remove_prefix(part.size() + 1);
        }
    }
    std::vector<CodeLine> take() { return std::move(lines_); }

  private:
    void add_within_line(std::string_view text, std::string_view style) {
        const std::size_t blank = std::min(text.find_first_not_of(' '), text.size());
        append(text.substr(0, blank), "");
        append(text.substr(blank), style);
    }
    void append(std::string_view text, std::string_view style) {
        CodeLine& line = lines_.back();
        if (text.empty()) return;
        if (!line.empty() && line.back().style == style) {
            line.back().text += text;
        } else {
            line.push_back({std::string(style), std::string(text)});
        }
    }

    std::vector<CodeLine> lines_ = {{}};
};

}  // namespace

std::vector<CodeLine> coloured(const std::vector<std::string>& lines) {
    const std::string text = fmt::format("{}", fmt::join(lines, "\n"));
    const translator::Tokens tokens(text);
    Lines parts;
    bool in_directive = false;  // an indented directive, which the tokens do not mark
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const Token& token = tokens[i];
        in_directive = in_directive || token.is("#");
        const std::string_view style = class_of(token);
        parts.add(token.text, in_directive && style != "comment" ? "directive" : style);
        in_directive = in_directive && token.text.find('\n') == std::string_view::npos;
    }
    std::vector<CodeLine> result = parts.take();
    result.resize(lines.size());
    return result;
}

}  // namespace course::tool
