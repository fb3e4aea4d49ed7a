#include "make_rule.hpp"

namespace translator {

std::string_view prerequisites(std::string_view rule) {
    const std::size_t colon = rule.find(": ");
    if (colon == std::string_view::npos) return {};
    rule.remove_prefix(colon + 1);
    while (rule.ends_with('\n'))
        rule.remove_suffix(1);
    return rule;
}

std::vector<std::string> names_in(std::string_view prerequisites) {
    std::vector<std::string> names(1);
    for (std::size_t i = 0; i < prerequisites.size(); ++i) {
        const char here = prerequisites[i];
        const char next = i + 1 < prerequisites.size() ? prerequisites[i + 1] : '\n';
        if (here == ' ' || here == '\n') {
            if (!names.back().empty()) names.emplace_back();
        } else if ((here == '\\' && (next == ' ' || next == '#')) || (here == '$' && next == '$')) {
            names.back() += next;
            ++i;
        } else if (here != '\\' || next != '\n') {
            names.back() += here;
        }
    }
    if (names.back().empty()) names.pop_back();
    return names;
}

}  // namespace translator
