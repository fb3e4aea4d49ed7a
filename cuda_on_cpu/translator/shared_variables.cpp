#include "parts.hpp"

namespace translator {

using namespace std::string_literals;

namespace {
const std::string kGap = "256";  // bytes
}  // namespace

void SharedVariables::translate_shared(std::size_t shared) {
    std::size_t end = shared;
    while (end < tokens_.size() && !tokens_[end].is(";")) {
        const bool opens = tokens_[end].kind == TokenKind::punctuation && tokens_.match(end) != kNone;
        end = opens && tokens_.match(end) > end ? tokens_.match(end) + 1 : end + 1;
    }
    if (end == tokens_.size()) fail(shared, "__shared__ without a declaration");

    bool external = false;
    for (std::size_t i = declaration_begin(shared); i < end; ++i) {
        external = external || tokens_[i].is("extern");
        if (tokens_[i].is("extern") || tokens_[i].is("static")) erase(i);
    }
    if (external) {
        translate_dynamic_shared(shared, end);
        return;
    }
    const std::size_t begin = declaration_begin(shared);
    refuse_initialisers({begin, end});
    const bool gaps = gaps_ && in_function(shared);
    text_[shared] = gaps ? "" : "static thread_local";
    align({begin, end});
    move_alignment_to_front({begin, end});
    if (!in_function(shared)) {
        enter_where_used(begin, end);
        return;
    }
    const std::string around = "in_gaps_" + std::to_string(shared) + "_";
    if (gaps) {
        text_[begin].insert(0, "static thread_local struct { char before_[" + kGap + "]; ");
        after_[end] += " char behind_[" + kGap + "]; } " + around + ";";
    }
    const auto parts = split({begin, end});
    // A variable that is declared by itself gets unused bytes on each side.
    const bool beside = !gaps && parts.size() == 1;
    const std::string gap =
        "static constinit thread_local ::cuda_on_cpu::SharedGap gap_" + std::to_string(shared) + "_";
    if (beside) {
        text_[begin].insert(0, gap + "before_; ");
        after_[end] += " " + gap + "behind_;";
    }
    for (const Range& part : parts) {
        const bool first = part.begin == begin;
        std::size_t name = declared_name(part);
        if (!first && name == kNone) name = first_identifier(part);  // `, other[4]` has no type before it
        if (name == kNone) fail(shared, "__shared__: no variable name found in this declaration");
        const std::string variable(tokens_[name].text);
        if (gaps)
            after_[end] += " [[maybe_unused]] auto& " + variable + " = " + around + "." + variable + ";";
        after_[end] += " static constinit thread_local ::cuda_on_cpu::SharedVariable " + variable +
                       "_shared_; " + variable + "_shared_.enter(" + variable + ", \"" + variable + "\"" +
                       (gaps ? ", " + kGap + (parts.size() == 1 ? ", true" : "") : "") +
                       (beside ? ", gap_" + std::to_string(shared) + "_before_, gap_" +
                                     std::to_string(shared) + "_behind_"
                               : "") +
                       ");";
    }
}

// A variable outside functions: each function that uses it begins with a call that poisons it for a
// new block.
void SharedVariables::enter_where_used(std::size_t begin, std::size_t end) {
    if (!is_namespace(tokens_.enclosing_brace(begin)) || tokens_[begin].is("template")) return;
    for (const Range& part : split({begin, end})) {
        std::size_t name = declared_name(part);
        if (name == kNone && part.begin != begin) name = first_identifier(part);
        if (name == kNone) continue;
        const std::string variable(tokens_[name].text);
        const std::string function = "cuda_on_cpu_enter_" + variable + "_";
        after_[end] += " [[maybe_unused]] static void " + function +
                       "() { static constinit thread_local ::cuda_on_cpu::SharedVariable shared_; if "
                       "(::cuda_on_cpu::in_kernel()) shared_.enter(" +
                       variable + ", \"" + variable + "\"); }";
        global_shared_.push_back({variable, " " + scope_of(begin) + function + "();", end});
    }
}

// Vectorised accesses, ldmatrix and WMMA need up to 32-byte alignment. On a GPU shared memory
// starts at such an address, so that variables are aligned unless one of odd size precedes them.
// Beside gaps that are variables of their own 64 bytes, because a compiler that vectorises gives an
// array as much, and would leave other bytes in between. The attribute never lowers another
// alignment.
void SharedVariables::align(Range declaration) {
    for (const Range& part : split(declaration)) {
        const std::size_t last = tokens_.previous(part.end);
        if (last == kNone) continue;
        if (tokens_[last].is("]") || tokens_[last].kind == TokenKind::identifier)
            after_[last] += gaps_ ? " __attribute__((aligned(32)))" : " __attribute__((aligned(64)))";
    }
}

void SharedVariables::refuse_initialisers(Range declaration) const {
    for (const Range& part : split(declaration)) {
        std::size_t name = declared_name(part);
        if (name == kNone && part.begin != declaration.begin) name = first_identifier(part);
        for (std::size_t i = name; i < part.end; i = tokens_.next(i)) {
            if (tokens_[i].is("[")) i = closing(i);
            if (tokens_[i].is("=") || tokens_[i].is("{"))
                fail(i, "the __shared__ variable '" + std::string(tokens_[name].text) +
                            "' has an initialiser, which CUDA does not allow: let a thread assign the "
                            "value, then __syncthreads()");
        }
    }
}

// `__shared__ alignas(16) float tile[4]`: nvcc accepts alignas in the middle of a declaration, g++
// only at its start.
void SharedVariables::move_alignment_to_front(Range declaration) {
    for (std::size_t i = tokens_.next(declaration.begin); i < declaration.end; i = tokens_.next(i)) {
        if (!tokens_[i].is("alignas") || !tokens_.is(tokens_.next(i), "(")) continue;
        const std::size_t close = closing(tokens_.next(i));
        text_[declaration.begin].insert(0, flat({i, close + 1}) + " ");
        erase({i, close + 1});
    }
}

std::size_t SharedVariables::first_identifier(Range range) const {
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (tokens_[i].kind == TokenKind::identifier) return i;
    }
    return kNone;
}

// `extern __shared__ float tile[];` becomes a reference to an array of that type in the block's
// dynamic shared memory.
void SharedVariables::translate_dynamic_shared(std::size_t shared, std::size_t end) {
    const Range declaration{declaration_begin(shared), end};
    const std::size_t name = declared_name(declaration);
    const std::size_t bounds = name == kNone ? kNone : tokens_.next(name);
    if (!tokens_.is(bounds, "["))
        fail(shared, "extern __shared__: expected an array, `extern __shared__ T name[];`");
    const std::size_t head_end = end_of_template_head(declaration.begin);
    std::string type;
    for (std::size_t i = head_end; i < name; ++i) {
        if (is_decoration(i)) {
            const std::size_t close = closing(tokens_.next(i));
            if (names_type(i)) type += flat({i, close + 1});
            i = close;
        } else if (!is_attribute_word(tokens_[i].text)) {
            type += tokens_[i].significant() ? flat({i, i + 1}) : " "s;
        }
    }
    const std::string variable(tokens_[name].text);
    const std::string dimensions = flat({bounds, end});
    const std::string text = "[[maybe_unused]] " + type + "(&" + variable + ")" + dimensions +
                             " = *reinterpret_cast<" + type + "(*)" + dimensions +
                             ">(::cuda_on_cpu::dynamic_shared())";
    const std::string head = flat({declaration.begin, head_end});
    erase(declaration);
    if (!head.empty()) {
        text_[shared] = head + " [[maybe_unused]] inline " + type + "(&" + variable + "())" + dimensions +
                        " { return *reinterpret_cast<" + type + "(*)" + dimensions +
                        ">(::cuda_on_cpu::dynamic_shared()); } static_assert(true)";
        call_with_arguments(variable, end);
    } else if (in_function(shared)) {
        text_[shared] = text;
    } else {
        global_shared_.push_back({variable, " " + text + ";", end});
    }
}

// Behind `template <class T>`, if the declaration begins with that.
std::size_t SharedVariables::end_of_template_head(std::size_t begin) const {
    if (!tokens_[begin].is("template")) return begin;
    const std::size_t close = end_of_angle(tokens_.next(begin));
    return close == kNone ? begin : close + 1;
}

// `template <class T> extern __shared__ T name[];` is a function here, so `name<T>` becomes a call.
void SharedVariables::call_with_arguments(std::string_view name, std::size_t behind) {
    for (std::size_t i = behind; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name) || is_member(i)) continue;
        if (const std::size_t close = end_of_angle(tokens_.next(i)); close != kNone) text_[close] += "()";
    }
}

void SharedVariables::declare_global_shared() {
    for (const GlobalShared& shared : global_shared_) {
        for (std::size_t i = shared.behind; i < tokens_.size(); ++i) {
            if (!tokens_[i].is("{") || tokens_.match(i) == kNone || !opens_function(i)) continue;
            const std::size_t outer = tokens_.enclosing_brace(i);
            if (outer != kNone && in_function(i)) continue;
            if (declares_itself(i, shared.name) || is_constexpr(i)) continue;
            for (std::size_t k = i; k < tokens_.match(i); ++k) {
                if (tokens_[k].is(shared.name) && !is_member(k)) {
                    after_[i] += shared.text;
                    break;
                }
            }
        }
    }
}

bool SharedVariables::is_constexpr(std::size_t body) const {
    for (std::size_t i = declaration_begin(tokens_.previous(body)); i < body; ++i) {
        if (tokens_[i].is("constexpr")) return true;
    }
    return false;
}

// Does the function whose body opens at `body` declare that name, as a parameter or in its
// outermost block?
bool SharedVariables::declares_itself(std::size_t body, std::string_view name) const {
    static constexpr std::array<std::string_view, 5> kNotTypes = {"return", "case", "else", "goto", "throw"};
    for (std::size_t i = declaration_begin(tokens_.previous(body)); i < tokens_.match(body); ++i) {
        if (!tokens_[i].is(name)) continue;
        if (i < body) return true;
        const std::size_t before = tokens_.previous(i);
        const bool follows_type = before != kNone && tokens_[before].kind == TokenKind::identifier &&
                                  !one_of(tokens_[before].text, kNotTypes);
        if (tokens_.enclosing_brace(i) == body && follows_type) return true;
    }
    return false;
}

}  // namespace translator
