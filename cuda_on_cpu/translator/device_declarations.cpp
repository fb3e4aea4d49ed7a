#include "parts.hpp"

namespace translator {

// On the CPU these keywords have no effect, except that each .cu file has its own copy of a
// variable.
void DeviceDeclarations::translate_device(std::size_t i) {
    erase(i);
    enter_device_code(i);
    if (tokens_[i].is("__constant__")) choose_constant_section(i);
    if (!is_namespace(tokens_.enclosing_brace(i))) return;
    const Range declaration{declaration_begin(i), tokens_.size()};
    const std::size_t name = variable_name(declaration);
    if (name == kNone || is_shared({declaration.begin, name})) return;
    note_device_variable({declaration.begin, name});
    // "used": a program may access the variable by name, as that of a module, which the compiler
    // cannot see.
    for (std::size_t p = declaration.begin; p < name; ++p) {
        if (text_[p].find("static __attribute__") != std::string::npos) return;  // by an earlier __device__
        if (tokens_[p].is("static")) {
            text_[i] = "__attribute__((used))";
            return;
        }
    }
    if (own_device_variables_ && !is_declared_extern(tokens_[name].text))
        text_[i] = "static __attribute__((used))";
}

// `__device__ __shared__ int x;`: each block has its own.
bool DeviceDeclarations::is_shared(Range declaration) const {
    for (std::size_t i = declaration.begin; i < declaration.end; ++i) {
        if (tokens_[i].is("__shared__")) return true;
    }
    return false;
}

// Constants have the same value on host and device, and a managed variable is one variable for
// both.
void DeviceDeclarations::note_device_variable(Range before_name) {
    static constexpr std::array<std::string_view, 3> kCommon = {"const", "constexpr", "__managed__"};
    for (std::size_t p = before_name.begin; p < before_name.end; ++p) {
        if (one_of(tokens_[p].text, kCommon)) return;
    }
    device_variables_.insert(tokens_[before_name.end].text);
}

// A section cannot hold both writable and read-only variables. The macro __constant__ leaves
// __attribute__((section("cuda_on_cpu_constant"))) after the word.
void DeviceDeclarations::choose_constant_section(std::size_t word) {
    static constexpr std::array<std::string_view, 5> kEnds = {";", "=", "[", "{", ","};
    std::size_t section = kNone;
    bool is_const = false;
    for (std::size_t i = declaration_begin(word); i != kNone && i < tokens_.size(); ++i) {
        const Token& token = tokens_[i];
        if (is_decoration(i)) {
            const std::size_t end = closing(tokens_.next(i));
            for (; i < end; ++i)
                if (tokens_[i].is("\"cuda_on_cpu_constant\"")) section = i;
        } else if (token.is("<")) {
            // Template arguments: a const in there belongs to another type.
            int depth = 1;
            while (depth > 0 && ++i < tokens_.size())
                depth += tokens_[i].is("<") ? 1 : tokens_[i].is(">") ? -1 : tokens_[i].is(">>") ? -2 : 0;
        } else if (token.is("const") || token.is("constexpr")) {
            is_const = true;
        } else if (token.is("*")) {  // a pointer to const is itself writable
            is_const = false;
        } else if (one_of(token.text, kEnds)) {
            break;
        }
    }
    if (is_const && section != kNone) text_[section] = "\"cuda_on_cpu_const\"";
}

// The name of the variable that the declaration declares; kNone if it declares none, or a member of
// a class, or if its linkage is not internal to the file.
std::size_t DeviceDeclarations::variable_name(Range declaration) const {
    static constexpr std::array<std::string_view, 9> kOthers = {
        "extern", "inline", "using", "typedef", "friend", "operator", "namespace", "concept", "template"};
    static constexpr std::array<std::string_view, 4> kEnds = {";", "=", "[", "{"};
    static constexpr std::array<std::string_view, 4> kTypes = {"struct", "class", "union", "enum"};
    std::size_t name = kNone;
    int angle = 0;
    bool defines_type = false;
    for (std::size_t i = declaration.begin; i < declaration.end; ++i) {
        const Token& token = tokens_[i];
        if (!token.significant()) continue;
        if (is_decoration(i)) {
            if (const std::size_t open = tokens_.next(i); tokens_.is(open, "(")) i = closing(open);
        } else if (token.is("<") || token.is(">")) {
            angle += token.is("<") ? 1 : -1;
        } else if (angle > 0) {
            continue;
        } else if (token.is("[") && tokens_.is(tokens_.next(i), "[")) {
            i = closing(i);
        } else if (token.is("{") && defines_type) {
            i = closing(i);
            name = kNone;
        } else if (one_of(token.text, kEnds)) {
            return tokens_.is(tokens_.previous(name), ":") ? kNone : name;
        } else if (token.is("(")) {
            const std::size_t inner = tokens_.next(i);
            return tokens_.is(inner, "*") || tokens_.is(inner, "&") ? tokens_.next(inner) : kNone;
        } else if (one_of(token.text, kOthers)) {
            return kNone;
        } else if (is_attribute_word(token.text)) {
            if (one_of(text_before(i), kTypes)) return kNone;
        } else if (token.kind == TokenKind::identifier) {
            defines_type = defines_type || one_of(token.text, kTypes);
            name = i;
        }
    }
    return kNone;
}

// With `extern __constant__ float c[];` in a header the definition must not be static.
bool DeviceDeclarations::is_declared_extern(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name)) continue;
        for (std::size_t p = declaration_begin(i); p < i; ++p) {
            if (tokens_[p].is("extern")) return true;
        }
    }
    return false;
}

// Host code that reads or writes a __device__ variable by name would use the host's copy of it on a
// GPU. An argument of a function may be a symbol, as in cudaMemcpyToSymbol.
void DeviceDeclarations::tell_of_device_variable(std::size_t name) {
    if (name < device_code_end_ || is_namespace(tokens_.enclosing_brace(name)) || may_be_declared(name) ||
        is_member(name) || tokens_.is(tokens_.previous(name), ":") || is_argument(name) ||
        is_declared_without(name, {"__device__", "__constant__"}) ||
        !told_of_.insert(tokens_[name].text).second)
        return;
    warn(name, "host code uses the __device__ variable '" + std::string(tokens_[name].text) +
                   "' by its name: on a GPU that is another variable. Use cudaMemcpyFromSymbol and "
                   "cudaMemcpyToSymbol");
}

// An argument of a function other than printf.
bool DeviceDeclarations::is_argument(std::size_t i) const {
    static constexpr std::array<std::string_view, 7> kNoCalls = {"if",     "while",  "for",    "switch",
                                                                 "return", "printf", "fprintf"};
    for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
        const Token& token = tokens_[p];
        if (token.is(";") || token.is("{") || token.is("}")) return false;
        if (token.is("(")) {
            const std::size_t function = tokens_.previous(p);
            if (function == kNone) return false;
            const bool is_name = tokens_[function].kind == TokenKind::identifier;
            if (tokens_[function].is(">") || (is_name && !one_of(tokens_[function].text, kNoCalls)))
                return true;
        }
        if ((token.is(")") || token.is("]")) && tokens_.match(p) != kNone) p = tokens_.match(p);
    }
    return false;
}

}  // namespace translator
