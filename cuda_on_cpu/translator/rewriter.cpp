#include "rewriter.hpp"

namespace translator {

File::File(std::string_view input, std::vector<Warning>* to_warn) : tokens(input), warnings(to_warn) {
    text.reserve(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
        text.emplace_back(tokens[i].text);
    after.resize(tokens.size());
}

void Rewriter::erase(std::size_t i) {
    if (tokens_[i].significant()) text_[i] = line_ends(tokens_[i].text);
}

std::string Rewriter::line_ends(std::string_view text) {
    return std::string(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), '\n');
}

void Rewriter::erase(Range range) {
    for (std::size_t i = range.begin; i < range.end; ++i)
        erase(i);
}

std::string Rewriter::flat(Range range) const {
    std::string result;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].significant()) {
            if (tokens_[i].text.find('\n') != std::string_view::npos)
                fail(i, "a literal of several lines in here");
            result += tokens_[i].text;
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
    }
    while (!result.empty() && result.back() == ' ')
        result.pop_back();
    return result;
}

std::size_t Rewriter::closing(std::size_t open) const {
    const std::size_t close = tokens_.match(open);
    if (close == kNone) fail(open, "this bracket is never closed");
    if (close < open) fail(open, "expected '(' before this");
    return close;
}

std::string Rewriter::file_of(std::size_t i) const {
    for (std::size_t at = i + 1; at-- > 0;) {
        const std::string_view text = tokens_[at].text;
        if (tokens_[at].kind != TokenKind::directive || !text.starts_with("# ")) continue;
        const std::size_t open = text.find('"');
        if (open == std::string_view::npos) continue;
        return std::string(text.substr(open + 1, text.rfind('"') - open - 1));
    }
    return "";
}

std::string Rewriter::place_of(std::size_t i) const {
    const std::string file = file_of(i);
    return (file.empty() ? "line " : file + ":") + std::to_string(tokens_[i].line);
}

void Rewriter::warn(std::size_t i, const std::string& message) const {
    if (warnings_ != nullptr) warnings_->push_back({file_of(i), tokens_[i].line, message});
}

void Rewriter::fail(std::size_t i, const std::string& message) const {
    const std::size_t place = std::min(i, tokens_.size() - 1);
    throw TranslationError(file_of(place), tokens_[place].line, message);
}

}  // namespace translator
