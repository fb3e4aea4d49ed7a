#include "parts.hpp"

namespace translator {

namespace {

std::string characters_of(std::string_view literal) {
    const std::size_t quote = literal.find('"');
    if (quote == std::string_view::npos || literal.size() < quote + 2) return "";
    if (quote > 0 && literal[quote - 1] == 'R') {
        const std::size_t begin = literal.find('(') + 1;
        return std::string(literal.substr(begin, literal.rfind(')') - begin));
    }
    static constexpr std::string_view kEscapes = "ntrvfab0";
    static constexpr std::string_view kMeant = "\n\t\r\v\f\a\b ";
    std::string text;
    for (std::size_t i = quote + 1; i + 1 < literal.size(); ++i) {
        if (literal[i] != '\\' || i + 2 >= literal.size()) {
            text += literal[i];
            continue;
        }
        ++i;
        const std::size_t escape = kEscapes.find(literal[i]);
        if (literal[i] == '\n') continue;
        text += escape == std::string_view::npos ? literal[i] : kMeant[escape];
    }
    return text;
}

std::string string_literal(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c == '\n' || c == '\t' ? ' ' : c;
    }
    return result + "\"";
}

}  // namespace

// Each PTX instruction becomes a function call. An instruction that is not supported becomes a call
// that fails to compile only where code is generated for it, because headers may have asm
// statements that the program never uses.
void AsmStatements::translate_asm(std::size_t word) {
    std::size_t open = tokens_.next(word);
    while (open != kNone && tokens_[open].kind == TokenKind::identifier)  // volatile
        open = tokens_.next(open);
    if (!tokens_.is(open, "(") || tokens_.match(open) == kNone) return;
    const std::size_t close = tokens_.match(open);
    std::vector<Range> sections = {{open + 1, open + 1}};
    for (std::size_t i = open + 1; i < close; ++i) {
        if (tokens_[i].is(":")) {
            sections.push_back({i + 1, i + 1});
            continue;
        }
        if (tokens_.match(i) != kNone && tokens_.match(i) > i) i = tokens_.match(i);
        sections.back().end = i + 1;
    }
    PtxStatement statement;
    statement.text = joined_literals(sections[0]);
    if (!is_ptx(statement.text)) return;
    const std::size_t end = tokens_.next(close);
    if (!tokens_.is(end, ";")) fail(word, "asm with PTX is not followed by a semicolon");
    std::string text;
    try {
        if (sections.size() > 1) statement.outputs = asm_operands(sections[1]);
        if (sections.size() > 2) statement.inputs = asm_operands(sections[2]);
        text = translate_ptx(statement);
    } catch (const PtxError& error) {
        const std::string function = "cuda_on_cpu_refuses_ptx_" + std::to_string(word);
        text = "{ extern void " + function + "() __attribute__((error(" + string_literal(error.what()) +
               "))); " + function + "(); }";
    }
    erase({word, end});
    for (std::size_t i = word; i < end; ++i)
        after_[i].clear();
    text_[word] = text;
    text_[end].erase(0, 1);  // the semicolon
}

// The translation of some tokens, on one line.
std::string AsmStatements::translated(Range range) const {
    std::string result;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].significant() && tokens_[i].text.find('\n') != std::string_view::npos)
            fail(i, "a literal of several lines in here");
        if (tokens_[i].significant()) {
            result += text_[i];
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
        result += after_[i];
    }
    return result;
}

// Adjacent string literals, joined.
std::string AsmStatements::joined_literals(Range range) const {
    std::string text;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].kind == TokenKind::literal) text += characters_of(tokens_[i].text);
    }
    return text;
}

// "=r"(x), "r"(y)
std::vector<PtxOperand> AsmStatements::asm_operands(Range section) const {
    std::vector<PtxOperand> operands;
    for (std::size_t i = next_in(section); i != kNone; i = next_in({i, section.end})) {
        if (tokens_[i].is("["))
            throw PtxError("PTX: operands with names are not provided; expected %0, %1, ...");
        std::string constraint;
        while (i != kNone && tokens_[i].kind == TokenKind::literal) {
            constraint += characters_of(tokens_[i].text);
            i = tokens_.next(i);
        }
        if (!tokens_.is(i, "(") || constraint.empty())
            fail(section.begin, "asm: expected \"constraint\"(expression)");
        operands.push_back({constraint, translated({i + 1, closing(i)})});
        i = tokens_.next(closing(i));
        if (i >= section.end) break;
        if (tokens_.is(i, ",")) {
            ++i;
        } else if (tokens_[i].kind != TokenKind::literal) {  // nvcc accepts a missing comma
            break;
        }
    }
    return operands;
}

}  // namespace translator
