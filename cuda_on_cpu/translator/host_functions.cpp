#include "parts.hpp"

namespace translator {

// nvcc refuses device code that calls a host function.
void HostFunctions::tell_of_host_function(std::size_t name) {
    if (!host_functions_) host_functions_ = find_host_functions();
    if (!host_functions_->contains(tokens_[name].text) || is_member(name) || may_be_declared(name) ||
        tokens_.is(tokens_.previous(name), ":") || !told_of_.insert(tokens_[name].text).second)
        return;
    const std::string function(tokens_[name].text);
    warn(name, "device code calls '" + function +
                   "', a function of the host: nvcc refuses that. Write __device__ or __host__ "
                   "__device__ before it");
}

// Functions at namespace scope that the program's own files define for the host alone.
std::set<std::string_view> HostFunctions::find_host_functions() const {
    static constexpr std::array<std::string_view, 6> kOthers = {"__global__", "__device__", "constexpr",
                                                                "consteval",  "operator",   "friend"};
    std::set<std::string_view> host, others;
    bool own_file = true;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::directive && token.text.starts_with("# "))
            own_file = !token.text.ends_with(" 3") && token.text.find(" 3 ") == std::string_view::npos &&
                       token.text.find("cuda_on_cpu/include/") == std::string_view::npos;
        const std::size_t open = tokens_.next(i);
        if (token.kind != TokenKind::identifier || !may_be_declared(i)) continue;
        bool is_host = own_file && tokens_.is(open, "(") && tokens_.match(open) != kNone &&
                       tokens_.is(tokens_.next(tokens_.match(open)), "{") &&
                       is_namespace(tokens_.enclosing_brace(i));
        for (std::size_t p = declaration_begin(i); p < i && is_host; ++p)
            is_host = !one_of(tokens_[p].text, kOthers);
        (is_host ? host : others).insert(token.text);
    }
    for (const std::string_view name : others)
        host.erase(name);
    return host;
}

}  // namespace translator
