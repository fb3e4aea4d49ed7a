#include "parts.hpp"

namespace translator {

namespace {

bool takes_device_pointers(std::string_view function) {
    static constexpr std::array<std::string_view, 10> kNames = {
        "cudaMemcpy",   "cudaMemcpyAsync", "cudaMemcpy2D",      "cudaMemcpy2DAsync", "cudaMemset",
        "cudaMemset2D", "cudaMemsetAsync", "cudaMemset2DAsync", "cudaMemcpyPeer",    "cudaFree"};
    return one_of(function, kNames);
}

}  // namespace

// `cudaMemcpy(table, ...)`, `kernel<<<1, 1>>>(table, &n)`: on a GPU the host has a `table` of its
// own, whose address is none of the device.
void HostNames::replace_variable(std::size_t name) {
    if (!is_of_host(name)) return;
    std::size_t first = tokens_.previous(name);
    const bool takes_address = tokens_.is(first, "&");
    if (tokens_.is(tokens_.next(name), ".")) return;
    if (tokens_.is(tokens_.next(name), "[") && !takes_address) return;
    if (!is_device_argument(name)) return;
    const std::string variable(tokens_[name].text);
    text_[name] = (takes_address ? "::cuda_on_cpu::host_shadow(" : "::cuda_on_cpu::host_value(") + variable +
                  ", \"" + variable + "\")";
    if (told_of_.insert(tokens_[name].text).second)
        warn(name, "host code passes the __device__ variable '" + variable +
                       "' by its name: on a GPU that is another variable, of the host. Use "
                       "cudaMemcpyFromSymbol and cudaMemcpyToSymbol, or cudaGetSymbolAddress");
}

// Is the token part of an argument of a launch, or of a function that takes device pointers?
bool HostNames::is_device_argument(std::size_t i) const {
    for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
        const Token& token = tokens_[p];
        if (token.is(";") || token.is("{") || token.is("}") || token.is("[")) return false;
        if ((token.is(")") || token.is("]")) && tokens_.match(p) != kNone) {
            p = tokens_.match(p);
        } else if (token.is("(")) {
            const std::size_t before = tokens_.previous(p);
            if (before == kNone) return false;
            if (tokens_[before].kind == TokenKind::identifier)
                return takes_device_pointers(tokens_[before].text);
            if (tokens_[before].is(">") && tokens_.is(tokens_.previous(before), ">") &&
                tokens_.is(tokens_.previous(tokens_.previous(before)), ">"))
                return true;
        }
    }
    return false;
}

// `Op op = twice;`, `apply<<<1, 32>>>(data, &twice)`, where `twice` is a function of the device.
void HostNames::replace_function(std::size_t name) {
    if (!device_functions_) find_device_functions();
    const auto found = device_functions_->find(tokens_[name].text);
    if (found == device_functions_->end() || !is_of_host(name)) return;
    std::size_t before = tokens_.previous(name);
    const bool takes_address = tokens_.is(before, "&");
    if (takes_address) before = tokens_.previous(before);
    static constexpr std::array<std::string_view, 5> kBegins = {"=", "(", ",", "{", "return"};
    if (before == kNone || !one_of(tokens_[before].text, kBegins) || !is_value(name)) return;
    const std::string function(tokens_[name].text);
    if (told_of_.insert(tokens_[name].text).second)
        warn(name,
             "host code takes the address of the __device__ function '" + function +
                 "': on a GPU a kernel cannot call that. Take it in device code, as in `__device__ auto "
                 "pointer = " +
                 function + ";`, and bring it to the host with cudaMemcpyFromSymbol");
    if (found->second == 1)  // of an overload the type of the pointer chooses one
        text_[name] = "::cuda_on_cpu::host_address(" + function + ", \"" + function + "\")";
    if (found->second == 1 && takes_address) erase(tokens_.previous(name));
}

// Not an argument of a template, of decltype() or sizeof().
bool HostNames::is_value(std::size_t i) const {
    int angle = 0;
    for (std::size_t p = tokens_.previous(i); p != kNone; p = tokens_.previous(p)) {
        const Token& token = tokens_[p];
        if (token.is(";") || token.is("{") || token.is("}")) return true;
        if ((token.is(")") || token.is("]")) && tokens_.match(p) != kNone) {
            p = tokens_.match(p);
        } else if (token.is("(")) {
            static constexpr std::array<std::string_view, 4> kTypes = {"decltype", "sizeof", "noexcept",
                                                                       "static_assert"};
            const std::size_t before = tokens_.previous(p);
            return before == kNone || !one_of(tokens_[before].text, kTypes);
        } else if (token.is(">")) {
            ++angle;
        } else if (token.is("<") && --angle < 0) {
            return false;
        }
    }
    return true;
}

// Is it used in a function of the host, as the name of what is declared outside functions and
// classes?
bool HostNames::is_of_host(std::size_t name) const {
    if (name < device_code_end_ || !in_body(name) || is_member(name) ||
        tokens_.is(tokens_.previous(name), ":") || declares(name))
        return false;
    std::size_t outermost = kNone;
    for (std::size_t brace = tokens_.enclosing_brace(name); brace != kNone && !is_namespace(brace);
         brace = tokens_.enclosing_brace(brace))
        outermost = brace;
    if (outermost == kNone) return false;
    std::size_t begin = declaration_begin(tokens_.previous(outermost));
    for (std::size_t i = begin; i < outermost; ++i) {
        if (tokens_[i].is(":") && tokens_.is(i + 1, ":") &&
            tokens_.is(tokens_.next(tokens_.next(i + 1)), "("))
            begin = 0;  // a member of a class: any declaration in the file may be of that class
    }
    for (std::size_t i = begin; i < (begin == 0 ? tokens_.size() : closing(outermost)); ++i) {
        if (!tokens_[i].is(tokens_[name].text) || !declares(i)) continue;
        if (begin > 0 || !is_namespace(tokens_.enclosing_brace(i))) return false;
    }
    return true;
}

// In the body of a function, and not in the braces of an initialiser outside functions?
bool HostNames::in_body(std::size_t i) const {
    for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
         brace = tokens_.enclosing_brace(brace)) {
        for (std::size_t p = tokens_.previous(brace); p != kNone; p = tokens_.previous(p)) {
            p = begin_of_attribute(p);  // `namespace std __attribute__((...)) {`
            if (tokens_[p].is(")")) return true;
            if (tokens_[p].is("=") || tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) break;
        }
    }
    return false;
}

// Does this look like the name in a declaration, `T name`, `T* name`, `T<U>& name`?
bool HostNames::declares(std::size_t name) const {
    if (!may_be_declared(name)) return false;
    const std::size_t before = tokens_.previous(name);
    if (!tokens_[before].is("&") && !tokens_[before].is("*")) return true;
    std::size_t type = tokens_.previous(before);
    while (tokens_.is(type, "*") || tokens_.is(type, "&"))
        type = tokens_.previous(type);
    return type != kNone && !tokens_[type].is("return") &&
           (tokens_[type].kind == TokenKind::identifier || tokens_[type].is(">"));
}

// Functions at namespace scope for the device alone, and how many of a name there are. Templates
// count twice: they may have more than one type.
void HostNames::find_device_functions() {
    device_functions_.emplace();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const std::size_t open = tokens_.next(i);
        if (tokens_[i].kind != TokenKind::identifier || !tokens_.is(open, "(") ||
            tokens_.match(open) == kNone || !may_be_declared(i))
            continue;
        bool device = false, others = false;
        const std::size_t begin = declaration_begin(i);
        for (std::size_t p = begin; p < i; ++p) {
            device = device || tokens_[p].is("__device__");
            others = others || tokens_[p].is("__host__") || tokens_[p].is("__global__") ||
                     tokens_[p].is("operator") || tokens_[p].is("=") || tokens_[p].is("(");
        }
        if (!device || others || !is_namespace(tokens_.enclosing_brace(i))) continue;
        const bool defines = tokens_.is(tokens_.next(closing(open)), "{");
        const bool several = tokens_[begin].is("template");
        (*device_functions_)[tokens_[i].text] += several ? 2 : defines ? 1 : 0;
    }
}

}  // namespace translator
