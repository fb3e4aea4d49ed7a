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
    const std::size_t begin = begin_of_qualified(name);
    const bool takes_address = tokens_.is(tokens_.previous(begin), "&");
    if (tokens_.is(tokens_.next(name), ".")) return;
    if (tokens_.is(tokens_.next(name), "[") && !takes_address) return;
    if (!is_device_argument(name)) return;
    const std::string variable = with_qualifiers(name);
    text_[begin].insert(0, takes_address ? "::cuda_on_cpu::host_shadow(" : "::cuda_on_cpu::host_value(");
    after_[name] += ", \"" + variable + "\")";
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
    const std::size_t begin = begin_of_qualified(name);
    const auto look_up = [&](const auto& functions) {
        const auto found = functions.find(tokens_[name].text);
        return found == functions.end() ? nullptr : &found->second;
    };
    const DeviceFunction* found = look_up(*device_functions_);
    if (found == nullptr && begin != name) found = look_up(*device_members_);
    if (found == nullptr) return;
    // With template arguments it is one function if there is one for each parameter.
    const std::size_t close = end_of_angle(tokens_.next(name));
    const std::size_t last = close == kNone ? name : close;
    const std::size_t behind = tokens_.next(last);
    static constexpr std::array<std::string_view, 5> kEnds = {";", ",", ")", "}", ":"};
    if (behind == kNone || !one_of(tokens_[behind].text, kEnds) ||
        (tokens_.is(behind, ":") && tokens_.is(tokens_.next(behind), ":")))
        return;
    if (!is_of_host(name)) return;
    std::size_t before = tokens_.previous(begin);
    const bool takes_address = tokens_.is(before, "&");
    if (takes_address) before = tokens_.previous(before);
    static constexpr std::array<std::string_view, 6> kBegins = {"=", "(", ",", "{", "?", "return"};
    if (before == kNone || !(one_of(tokens_[before].text, kBegins) || ends_condition(before)) ||
        !is_value(name))
        return;
    const std::string function = with_qualifiers(name);
    if (told_of_.insert(tokens_[name].text).second)
        warn(name,
             "host code takes the address of the __device__ function '" + function +
                 "': on a GPU a kernel cannot call that. Take it in device code, as in `__device__ auto "
                 "pointer = " +
                 function + ";`, and bring it to the host with cudaMemcpyFromSymbol");
    // Of an overload the type of the pointer chooses one.
    if (found->count != 1 || found->parameters != arguments_in(tokens_.next(name), close)) return;
    text_[begin].insert(0, "::cuda_on_cpu::host_address(");
    after_[last] += ", \"" + function + "\")";
    if (takes_address) erase(tokens_.previous(begin));
}

// How many there are between < and >; 0 without these.
int HostNames::arguments_in(std::size_t open, std::size_t close) const {
    if (close == kNone) return 0;
    int count = 1, depth = 0;
    for (std::size_t i = tokens_.next(open); i < close; i = tokens_.next(i)) {
        if (tokens_[i].is("(")) i = closing(i);
        depth += tokens_[i].is("<") ? 1 : tokens_[i].is(">") ? -1 : 0;
        count += depth == 0 && tokens_[i].is(",") ? 1 : 0;
    }
    return count;
}

// The colon of `a ? b : c`?
bool HostNames::ends_condition(std::size_t colon) const {
    if (!tokens_.is(colon, ":") || tokens_.is(tokens_.previous(colon), ":")) return false;
    for (std::size_t p = tokens_.previous(colon); p != kNone; p = tokens_.previous(p)) {
        const Token& token = tokens_[p];
        if (token.is("?")) return true;
        if (token.is(";") || token.is("{") || token.is("}") || token.is("(")) return false;
        if ((token.is(")") || token.is("]")) && tokens_.match(p) != kNone) p = tokens_.match(p);
    }
    return false;
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
    if (name < device_code_end_ || !in_body(name) || is_member(name)) return false;
    if (begin_of_qualified(name) != name) return names_device_entity(name);
    if (declares(name)) return false;
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

// The first token of `name`, `::name` or `a::b::name`.
std::size_t HostNames::begin_of_qualified(std::size_t name) const {
    std::size_t begin = name;
    for (;;) {
        const std::size_t second = tokens_.previous(begin);
        if (!tokens_.is(second, ":")) return begin;
        const std::size_t first = tokens_.previous(second);
        if (!tokens_.is(first, ":")) return begin;
        const std::size_t scope = tokens_.previous(first);
        begin = first;
        if (scope == kNone || tokens_[scope].kind != TokenKind::identifier || tokens_[scope].is("return"))
            return begin;
        begin = scope;
    }
}

std::string HostNames::with_qualifiers(std::size_t name) const {
    std::string text;
    for (std::size_t i = begin_of_qualified(name); i <= name; ++i)
        if (tokens_[i].significant()) text += tokens_[i].text;
    return text;
}

// Does the file declare what the qualified name names for the device alone? Of the qualifiers the
// last one counts.
bool HostNames::names_device_entity(std::size_t qualified) const {
    static constexpr std::array<std::string_view, 5> kOthers = {"__host__", "__global__", "__managed__",
                                                                "const", "constexpr"};
    const std::size_t scope = tokens_.previous(tokens_.previous(tokens_.previous(qualified)));
    const bool is_global = begin_of_qualified(qualified) == tokens_.previous(tokens_.previous(qualified));
    for (std::size_t i = 0; i < qualified; ++i) {
        if (!tokens_[i].is(tokens_[qualified].text) || !may_be_declared(i)) continue;
        const std::size_t brace = tokens_.enclosing_brace(i);
        if (is_global ? brace != kNone
                      : brace == kNone || !tokens_.is(tokens_.previous(brace), tokens_[scope].text))
            continue;
        bool device = false, others = false;
        for (std::size_t p = declaration_begin(i); p < i; ++p) {
            device = device || tokens_[p].is("__device__") || tokens_[p].is("__constant__");
            others = others || one_of(tokens_[p].text, kOthers);
        }
        if (device && !others) return true;
    }
    return false;
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

// Functions at namespace scope, and static ones of classes, for the device alone, and how many of a
// name there are.
void HostNames::find_device_functions() {
    device_functions_.emplace();
    device_members_.emplace();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const std::size_t open = tokens_.next(i);
        if (tokens_[i].kind != TokenKind::identifier || !tokens_.is(open, "(") ||
            tokens_.match(open) == kNone || !may_be_declared(i))
            continue;
        bool device = false, others = false, is_static = false;
        const std::size_t begin = declaration_begin(i);
        for (std::size_t p = begin; p < i; ++p) {
            is_static = is_static || tokens_[p].is("static");
            device = device || tokens_[p].is("__device__");
            others = others || tokens_[p].is("__host__") || tokens_[p].is("__global__") ||
                     tokens_[p].is("operator") || tokens_[p].is("=") || tokens_[p].is("(");
        }
        const bool of_namespace = is_namespace(tokens_.enclosing_brace(i));
        if (!device || others || !(of_namespace || is_static)) continue;
        const bool defines = tokens_.is(tokens_.next(closing(open)), "{");
        const std::size_t angle = tokens_.next(begin);
        DeviceFunction& function = (*(of_namespace ? device_functions_ : device_members_))[tokens_[i].text];
        if (tokens_[begin].is("template")) function.parameters = arguments_in(angle, end_of_angle(angle));
        function.count += defines ? 1 : 0;
    }
}

}  // namespace translator
