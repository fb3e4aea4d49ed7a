#include "parts.hpp"

namespace translator {

bool is_number_type(std::string_view word) {
    static constexpr std::array<std::string_view, 19> kTypes = {
        "int",      "unsigned", "long",     "short",   "char",     "signed",   "float",
        "double",   "bool",     "int8_t",   "uint8_t", "int16_t",  "uint16_t", "int32_t",
        "uint32_t", "int64_t",  "uint64_t", "size_t",  "ptrdiff_t"};
    return one_of(word, kTypes);
}

bool is_place(std::string_view word) {
    static constexpr std::array<std::string_view, 4> kWords = {"threadIdx", "blockIdx", "blockDim",
                                                               "gridDim"};
    return one_of(word, kWords);
}

bool is_mathematical(std::string_view word) {
    static constexpr std::array<std::string_view, 77> kNames = {
        "abs",    "acosf",      "asinf",     "atan2f",    "atanf",     "cbrtf",      "ceil",
        "ceilf",  "cos",        "cosf",      "coshf",     "erff",      "exp",        "exp2f",
        "expf",   "fabs",       "fabsf",     "floor",     "floorf",    "fma",        "fmaf",
        "fmax",   "fmaxf",      "fmin",      "fminf",     "fmodf",     "hypotf",     "log",
        "log10f", "log1pf",     "log2f",     "logf",      "max",       "min",        "pow",
        "powf",   "rint",       "rintf",     "round",     "roundf",    "rsqrt",      "rsqrtf",
        "sin",    "sinf",       "sinhf",     "sqrt",      "sqrtf",     "tan",        "tanf",
        "tanhf",  "trunc",      "truncf",    "__fadd_rn", "__fdiv_rn", "__fmaf_rn",  "__fmul_rn",
        "__expf", "__logf",     "__log2f",   "__log10f",  "__powf",    "__sinf",     "__cosf",
        "__tanf", "__fsqrt_rn", "__frcp_rn", "__mul24",   "__umul24",  "log2",       "exp2",
        "ldexpf", "copysignf",  "fmod",      "atan",      "atan2",     "__fdividef", "exp10f"};
    return one_of(word, kNames);
}

namespace {

// float4, uchar2, ulonglong3, ...
bool is_vector(std::string_view word) {
    static constexpr std::array<std::string_view, 12> kOf = {"char",  "uchar",  "short",    "ushort",
                                                             "int",   "uint",   "long",     "ulong",
                                                             "float", "double", "longlong", "ulonglong"};
    if (word.empty() || word.back() < '1' || word.back() > '4') return false;
    word.remove_suffix(1);
    return one_of(word, kOf);
}

// Words of statements without loops.
bool is_plain_keyword(std::string_view word) {
    static constexpr std::array<std::string_view, 14> kWords = {
        "if",   "else", "return",  "const",  "constexpr",    "static_cast", "reinterpret_cast",
        "auto", "true", "nullptr", "sizeof", "__restrict__", "false",       "__restrict"};
    return one_of(word, kWords);
}

}  // namespace

bool KnownWords::begin_kernel(const KernelBody& kernel) {
    types_.clear();
    names_.clear();
    shared_.clear();
    called_.clear();
    uses_vectors_ = false;
    return declare_parameters(kernel);
}

bool KnownWords::is_known(std::size_t i) {
    const Token& token = tokens_[i];
    if (token.kind == TokenKind::directive) {
        const std::string_view text = token.text;
        return text.starts_with("# ") && text.size() > 2 && text[2] >= '0' && text[2] <= '9';
    }
    // A shift by a marked amount calls nothing but operators of the stand-in.
    const bool is_marked = after_[i] == " ::cuda_on_cpu::shift_amount(" || after_[i] == ")";
    if (text_[i] != token.text || (!after_[i].empty() && !is_marked)) return false;
    if (token.kind == TokenKind::identifier)
        return (!begins_statement(i) || declare_local(i)) && is_known_word(i);
    if (token.is("[")) {
        // A lambda, an attribute, or a call that a lambda begins?
        const std::size_t before = tokens_.previous(i);
        return tokens_.is(before, "]") || tokens_.is(before, ")") ||
               tokens_[before].kind == TokenKind::identifier;
    }
    return !token.is("(") || !tokens_.is(tokens_.previous(i), "]");
}

void KnownWords::note_vectors(Range range) {
    for (std::size_t i = range.begin; i < range.end; ++i)
        uses_vectors_ = uses_vectors_ || is_vector(tokens_[i].text);
}

void KnownWords::qualify_places(Range range, std::string_view with) {
    for (std::size_t i = range.begin; i < range.end; ++i)
        if (is_place(tokens_[i].text)) text_[i].insert(0, with);
}

void KnownWords::replace_in_call(const KernelBody& kernel, std::string_view word, const std::string& by) {
    std::string& call = after_[kernel.brace];
    call.replace(call.find(word), word.size(), by);
}

std::string KnownWords::prepare(std::string_view function) const {
    std::string types;
    for (const std::string_view type : types_)
        types += (types.empty() ? "" : ", ") + std::string(type);
    return "." + std::string(function) + "<::cuda_on_cpu::all_plain<" + types + ">" + only_functions() + ">(";
}

bool KnownWords::is_known_word(std::size_t i) {
    const std::string_view word = tokens_[i].text;
    const std::size_t after = tokens_.next(i);
    const std::size_t before = tokens_.previous(i);
    const bool of_pointer = tokens_.is(before, ">") && tokens_.is(before - 1, "-");
    if (tokens_.is(before, ".") || of_pointer) {
        static constexpr std::array<std::string_view, 4> kMembers = {"x", "y", "z", "w"};
        return one_of(word, kMembers) && !tokens_.is(after, "(");
    }
    if (tokens_.is(after, ":") && tokens_.is(after + 1, ":"))
        return word == "std" && !tokens_.is(before, ":") &&
               is_number_type(tokens_[tokens_.next(after + 1)].text);
    if (is_number_type(word) || is_plain_keyword(word) || is_place(word) || types_.contains(word))
        return true;
    if (is_vector(word)) return uses_vectors_ = true;
    if (tokens_.is(before, ":") && tokens_.is(before - 1, ":")) return false;
    if (tokens_.is(after, "(")) return is_mathematical(word) ? !is_defined_here(word) : calls_own_function(i);
    return names_.contains(word) || is_number(word);
}

bool KnownWords::is_type_word(std::size_t i) const {
    const std::string_view word = tokens_[i].text;
    return is_number_type(word) || is_vector(word) || types_.contains(word) || word == "auto" ||
           word == "const";
}

// Is this `*`, `&` or the like an operator with one operand?
bool KnownWords::is_unary(std::size_t i) const {
    const std::size_t before = tokens_.previous(i);
    if (tokens_.is(before, ")")) {  // `(x) * y`, or `(float)*p`
        const std::size_t open = tokens_.match(before);
        return open != kNone && behind_type(tokens_.next(open)) == before;
    }
    const Token& token = tokens_[before];
    if (token.kind != TokenKind::identifier) return token.kind != TokenKind::number && !token.is("]");
    return !names_.contains(token.text) && !shared_.contains(token.text) && !is_member(before) &&
           !is_number(token.text);
}

// The first token behind a type made of known words; `i` itself where there is none.
std::size_t KnownWords::behind_type(std::size_t i) const {
    bool named = false;
    for (; i != kNone; i = tokens_.next(i)) {
        const std::string_view word = tokens_[i].text;
        const bool is_type =
            is_number_type(word) || is_vector(word) || types_.contains(word) || word == "auto";
        const bool of_type = word == "const" || word == "constexpr" || word == "std" || word == ":" ||
                             word == "*" || word == "&" || word == "__restrict__" || word == "__restrict";
        if (!is_type && !of_type) break;
        if (word == "&" || (word == "*" && !named) || (word == ":" && named)) return kNone;
        named = named || is_type;
    }
    return named ? i : kNone;
}

// Declares what the statement at `i` declares. False: something of an unknown kind.
bool KnownWords::declare_local(std::size_t i) {
    const std::size_t first = behind_type(i);
    if (first == kNone || tokens_[first].kind != TokenKind::identifier) return true;  // no declaration
    const std::size_t end = end_of_statement(first);
    if (end == kNone) return false;
    for (const Range& declarator : split({first, end})) {
        std::size_t name = next_in(declarator);
        while (name != kNone && tokens_.is(name, "*"))
            name = tokens_.next(name);
        if (name == kNone || name >= declarator.end || tokens_[name].kind != TokenKind::identifier)
            return false;
        // An array of its own would lie on the stack, where a thread may write past its end.
        const std::size_t behind = tokens_.next(name);
        if (!tokens_.is(behind, "=") && !tokens_.is(behind, ";") && !tokens_.is(behind, ",") &&
            !tokens_.is(behind, "{"))
            return false;
        if (is_place(tokens_[name].text)) return false;
        names_.insert(tokens_[name].text);
    }
    return true;
}

// The parameters of the kernel, and of its template.
bool KnownWords::declare_parameters(const KernelBody& kernel) {
    const std::size_t head = next_in(kernel.head);
    if (tokens_.is(head, "template")) {
        const std::size_t open = tokens_.next(head);
        const std::size_t close = tokens_.is(open, "<") ? end_of_angle(open) : kNone;
        if (close == kNone) return false;
        for (const Range& part : split({open + 1, close})) {
            const std::size_t word = next_in(part);
            if (word == kNone) return false;
            const bool is_type = tokens_[word].is("class") || tokens_[word].is("typename");
            const std::size_t name = is_type ? tokens_.next(word) : behind_type(word);
            if (name == kNone || name >= part.end || tokens_[name].kind != TokenKind::identifier)
                return false;
            if (const std::size_t behind = tokens_.next(name); behind < part.end && !tokens_.is(behind, "="))
                return false;
            if (is_place(tokens_[name].text)) return false;
            (is_type ? types_ : names_).insert(tokens_[name].text);
        }
    }
    for (const Range& part : split(kernel.parameters)) {
        const std::size_t word = next_in(part);
        if (word == kNone || (tokens_[word].is("void") && next_in({word + 1, part.end}) == kNone)) continue;
        const std::size_t name = behind_type(word);
        if (name == kNone || name >= part.end || tokens_[name].kind != TokenKind::identifier) return false;
        if (next_in({name + 1, part.end}) != kNone) return false;
        note_vectors({word, name});
        if (is_place(tokens_[name].text)) return false;
        names_.insert(tokens_[name].text);
    }
    return true;
}

// `constexpr int kName = ...;`, `__constant__ float name[8];` or `__device__ int name;` of a
// namespace. Another part of the file may use the name for something else, so each declaration of
// it must look like this.
bool KnownWords::is_number(std::string_view name) const {
    bool found = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name) || !is_outside(i)) continue;
        const std::size_t before = tokens_.previous(i);
        if (tokens_.is(before, "*") || tokens_.is(before, "&") || tokens_.is(before, ">")) return false;
        if (before == kNone || tokens_[before].kind != TokenKind::identifier) continue;
        const std::size_t behind = tokens_.next(i);
        bool is_value = tokens_.is(behind, "=") || tokens_.is(behind, ";") || tokens_.is(behind, "{") ||
                        tokens_.is(behind, "[");
        bool is_of_device = false;
        for (std::size_t p = declaration_begin(i); p < i; ++p) {
            const Token& token = tokens_[p];
            is_value = is_value && !token.is("volatile");
            is_of_device = is_of_device || token.is("const") || token.is("constexpr") ||
                           token.is("__constant__") || token.is("__device__");
        }
        if (!is_number_type(tokens_[before].text) || !is_value || !is_of_device) return false;
        found = true;
    }
    return found;
}

// Does the program define a function of this name?
bool KnownWords::is_defined_here(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name) || !tokens_.is(tokens_.next(i), "(")) continue;
        const std::size_t behind = tokens_.next(closing(tokens_.next(i)));
        const std::size_t before = tokens_.previous(i);
        const bool declares =
            before != kNone &&
            (tokens_.is(before, "*") || tokens_.is(before, "&") ||
             (tokens_[before].kind == TokenKind::identifier && !tokens_[before].is("return")));
        if (!declares ||
            !(tokens_.is(behind, "{") || tokens_.is(behind, ";") || tokens_.is(behind, "noexcept")))
            continue;
        if (!is_outside(i)) continue;
        const std::string file = file_of(i);
        if (!file.starts_with("/usr/") && file.find("cuda_on_cpu/include/") == std::string::npos &&
            file.find("include/cuda_on_cpu/") == std::string::npos)
            return true;
    }
    return false;
}

// Does the program define `a + b` for some of CUDA's vectors?
bool KnownWords::has_vector_operators() {
    if (has_vector_operators_) return *has_vector_operators_;
    has_vector_operators_ = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is("operator") || !is_outside(i)) continue;
        std::size_t open = tokens_.next(i);
        while (open != kNone && !tokens_[open].is("(") && !tokens_[open].is(";"))
            open = tokens_.next(open);
        if (open == kNone || !tokens_[open].is("(")) continue;
        std::size_t close = closing(open);
        if (tokens_.is(tokens_.next(close), "(")) close = closing(tokens_.next(close));
        for (std::size_t p = declaration_begin(i); p < close; ++p) {
            if (is_vector(tokens_[p].text) || tokens_[p].is("template")) has_vector_operators_ = true;
        }
    }
    return *has_vector_operators_;
}

}  // namespace translator
