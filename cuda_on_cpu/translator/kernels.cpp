#include "parts.hpp"

namespace translator {

using namespace std::string_literals;

std::size_t Kernels::skip_decorations(std::size_t i) const {
    while (i != kNone) {
        if (is_decoration(i)) {
            const std::size_t open = tokens_.next(i);
            i = tokens_.is(open, "(") ? tokens_.next(closing(open)) : open;
        } else if (tokens_[i].is("[")) {
            i = tokens_.next(closing(i));
        } else {
            break;
        }
    }
    return i;
}

std::string Kernels::decoration_argument(Range range, std::string_view name) const {
    for (std::size_t i = range.begin; i < range.end; ++i) {
        if (!tokens_[i].is(name)) continue;
        const std::size_t open = tokens_.next(i);
        if (tokens_.is(open, "(")) return flat({open + 1, closing(open)});
    }
    return {};
}

void Kernels::translate_kernel(std::size_t global) {
    erase(global);
    enter_device_code(global);
    std::size_t parameters = skip_decorations(tokens_.next(global));
    while (parameters != kNone && !tokens_[parameters].is("(")) {
        if (tokens_[parameters].is(";") || tokens_[parameters].is("{"))
            fail(global, "__global__ without a function");
        parameters = skip_decorations(tokens_.next(parameters));
    }
    if (parameters == kNone) fail(global, "__global__ without a function");
    if (const std::size_t name = tokens_.previous(parameters); tokens_[name].kind == TokenKind::identifier)
        kernels_.insert(tokens_[name].text);
    const std::size_t body = skip_decorations(tokens_.next(closing(parameters)));
    if (!tokens_.is(body, "{")) return;  // a declaration, or an explicit instantiation

    const Range declaration{declaration_begin(global), body};
    require_void({declaration.begin, parameters});
    // The bound is the first of up to three arguments.
    const std::string bounds = decoration_argument(declaration, "__launch_bounds__");
    const std::string cluster = decoration_argument(declaration, "__cluster_dims__");
    std::string constructor = "__PRETTY_FUNCTION__";
    if (!bounds.empty() || !cluster.empty()) {
        constructor += ", ::cuda_on_cpu::first_of(" + (bounds.empty() ? "1024"s : bounds) + ")";
    }
    if (!cluster.empty()) constructor += ", dim3(" + cluster + ")";
    const Range list{parameters + 1, closing(parameters)};
    tell_of_references(list);
    const std::string names = parameter_names(list);
    after_[body] =
        " static constinit ::cuda_on_cpu::Kernel cuda_on_cpu_kernel_(" + constructor +
        "); if (cuda_on_cpu_kernel_.is_query" + parameter_types(list) + "()) return; " + kMark +
        (mentions_volatile({parameters, closing(body)}) ? "::cuda_on_cpu::share_with_host(); " : "") +
        "cuda_on_cpu_kernel_.prepare(\"" + (names.empty() ? "" : names.substr(2)) + "\", [=]() mutable {" +
        grid_constants(list) + after_[body];
    text_[closing(body)] = "}" + names + ");}";
    const bool plain = bounds.empty() && cluster.empty() && grid_constants(list).empty();
    if (plain) bodies_.push_back({{declaration.begin, global}, list, body});
}

// Such a kernel may exchange values with the host while it runs.
bool Kernels::mentions_volatile(Range range) const {
    for (std::size_t i = range.begin; i < range.end; ++i)
        if (tokens_[i].is("volatile") && !of_asm(i)) return true;
    return false;
}

// Declares the addresses of __grid_constant__ parameters, in a file that queries them. In other
// files their addresses are not taken, so that they stay in registers.
std::string Kernels::grid_constants(Range parameters) {
    std::string names;
    for (const Range& part : split(parameters)) {
        for (std::size_t i = part.begin; i < part.end; ++i)
            if (tokens_[i].is("__grid_constant__")) names += parameter_names(part);
    }
    if (names.empty() || !asks_for_kinds()) return "";
    return " const ::cuda_on_cpu::GridConstants cuda_on_cpu_grid_constants_(" + names.substr(2) + ");";
}

// Does the file call __isGridConstant(), __isGlobal() or __isLocal(), or use the PTX instruction
// isspacep?
bool Kernels::asks_for_kinds() {
    static constexpr std::array<std::string_view, 3> kNames = {"__isGridConstant", "__isGlobal", "__isLocal"};
    if (!asks_for_kinds_) {
        asks_for_kinds_ = false;
        for (std::size_t i = 0; i < tokens_.size() && !*asks_for_kinds_; ++i)
            asks_for_kinds_ = (one_of(tokens_[i].text, kNames) && text_before(i) != "int") ||
                              (tokens_[i].kind == TokenKind::literal &&
                               tokens_[i].text.find("isspacep.") != std::string_view::npos);
    }
    return *asks_for_kinds_;
}

void Kernels::require_void(Range head) const {
    static constexpr std::array<std::string_view, 5> kResults = {"int", "float", "double", "bool",
                                                                 "unsigned"};
    bool returns_value = false;
    for (std::size_t i = head.begin; i < head.end; ++i) {
        if (tokens_[i].is("void")) return;
        returns_value = returns_value || one_of(tokens_[i].text, kResults);
    }
    if (returns_value) fail(head.end, "a kernel returns nothing: expected __global__ void");
}

// On a GPU a launch would copy the address of the argument; here it copies the value.
void Kernels::tell_of_references(Range parameters) const {
    for (const Range& part : split(parameters)) {
        int angle = 0;
        for (std::size_t i = part.begin; i < part.end; ++i) {
            if (tokens_[i].is("<")) ++angle;
            if (tokens_[i].is(">")) --angle;
            if (tokens_[i].is("(")) i = closing(i);
            if (!tokens_[i].is("&") || angle > 0) continue;
            warn(i,
                 "a parameter of a kernel is a reference: on a GPU it refers to the host's memory. "
                 "Pass the value, or a pointer to device memory");
            break;
        }
    }
}

// "_with<decltype(x), decltype(n)>"; empty if a parameter has no name.
std::string Kernels::parameter_types(Range parameters) const {
    std::string types;
    for (const Range& part : split(parameters)) {
        const std::size_t first = next_in(part);
        if (first == kNone || (tokens_[first].is("void") && next_in({first + 1, part.end}) == kNone))
            continue;
        const std::string name = parameter_names(part);
        if (name.empty()) return "";
        const bool pack = name.ends_with("...");
        types += std::string(types.empty() ? "" : ", ") + "decltype(" +
                 name.substr(2, name.size() - (pack ? 5 : 2)) + ")" + (pack ? "..." : "");
    }
    return "_with<" + types + ">";
}

}  // namespace translator
