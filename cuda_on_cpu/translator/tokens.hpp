// Splits preprocessed C++ into tokens. Every byte of the input is in exactly one token, so that an
// empty translation reproduces the input.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

enum class TokenKind { identifier, number, literal, punctuation, space, directive };

struct Token {
    TokenKind kind;
    std::string_view text;  // into the input
    int line;               // of the original source, according to the line markers

    bool is(std::string_view word) const { return text == word; }
    bool significant() const { return kind != TokenKind::space && kind != TokenKind::directive; }
};

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class Tokens {
  public:
    explicit Tokens(std::string_view input);

    std::size_t size() const { return tokens_.size(); }
    const Token& operator[](std::size_t i) const { return tokens_[i]; }

    // The next or previous token that is neither space nor a directive; kNone at the ends, and if
    // `i` is kNone.
    std::size_t next(std::size_t i) const;
    std::size_t previous(std::size_t i) const;
    // The bracket that belongs to the bracket at `i`; kNone if it has none.
    std::size_t match(std::size_t i) const { return i < match_.size() ? match_[i] : kNone; }
    // The brace around token `i`; kNone outside all braces.
    std::size_t enclosing_brace(std::size_t i) const { return brace_[i]; }

    bool is(std::size_t i, std::string_view word) const { return i < tokens_.size() && tokens_[i].is(word); }
    // Do `count` equal one-character tokens stand at `i` with nothing between them, as in `<<<`?
    bool is_run(std::size_t i, std::string_view character, std::size_t count) const;

  private:
    void match_brackets();

    std::vector<Token> tokens_;
    std::vector<std::size_t> match_;
    std::vector<std::size_t> brace_;
};

}  // namespace translator
