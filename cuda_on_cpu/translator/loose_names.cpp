#include "parts.hpp"

namespace translator {

// `Cast<T>::cast<N>(x)`, `c.cast<N>(x)`: g++ takes the `<` for "less than".
void LooseNames::add_template_keyword(std::size_t name) {
    const std::size_t before = tokens_.previous(name);
    const bool scoped = tokens_.is(before, ":") && before > 0 && tokens_[before - 1].is(":");
    const bool member =
        tokens_.is(before, ".") || (tokens_.is(before, ">") && before > 0 && tokens_[before - 1].is("-"));
    if (!scoped && !member) return;
    if (!member_templates_) find_member_templates();
    if (!member_templates_->contains(tokens_[name].text) || !in_template(name)) return;
    if (scoped && !is_dependent_scope(before - 1)) return;
    const std::size_t close = end_of_angle(tokens_.next(name));
    if (close != kNone && tokens_.is(tokens_.next(close), "(")) text_[name].insert(0, "template ");
}

// The names of function templates that are members of a class.
void LooseNames::find_member_templates() {
    member_templates_.emplace();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is("template") || !in_class(i)) continue;
        std::size_t at = end_of_angle(tokens_.next(i));
        while (at != kNone && !tokens_[at].is("(") && !tokens_[at].is(";") && !tokens_[at].is("{")) {
            at = tokens_.next(at);
            if (at != kNone && is_decoration(at) && tokens_.is(tokens_.next(at), "("))
                at = tokens_.next(closing(tokens_.next(at)));
        }
        if (!tokens_.is(at, "(")) continue;
        const std::size_t name = tokens_.previous(at);
        if (tokens_[name].kind == TokenKind::identifier) member_templates_->insert(tokens_[name].text);
    }
}

// Is what precedes this `::` a type with template arguments, or a template's parameter?
bool LooseNames::is_dependent_scope(std::size_t colon) const {
    const std::size_t last = tokens_.previous(colon);
    if (last == kNone) return false;
    if (tokens_[last].kind == TokenKind::identifier) return is_type_parameter(tokens_[last].text);
    if (!tokens_[last].is(">")) return false;
    int depth = 0;
    for (std::size_t p = last; p != kNone; p = tokens_.previous(p)) {
        if (tokens_[p].is(")") && tokens_.match(p) != kNone) p = tokens_.match(p);
        if (tokens_[p].is(">")) ++depth;
        if (tokens_[p].is("<") && --depth == 0) {
            const std::size_t type = tokens_.previous(p);
            return type != kNone && tokens_[type].kind == TokenKind::identifier;
        }
        if (tokens_[p].is(";") || tokens_[p].is("{") || tokens_[p].is("}")) return false;
    }
    return false;
}

bool LooseNames::is_type_parameter(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name)) continue;
        const std::size_t behind = tokens_.next(i);
        const std::string_view before = text_before(i);
        if ((before == "typename" || before == "class") &&
            (tokens_.is(behind, ",") || tokens_.is(behind, ">") || tokens_.is(behind, "=")))
            return true;
    }
    return false;
}

bool LooseNames::in_template(std::size_t i) const {
    for (std::size_t brace = tokens_.enclosing_brace(i); brace != kNone;
         brace = tokens_.enclosing_brace(brace)) {
        const std::size_t last = tokens_.previous(brace);
        if (last == kNone) continue;
        std::size_t begin = declaration_begin(last);
        while (tokens_.is(tokens_.next(begin), ":"))  // `public: template ...`
            begin = tokens_.next(tokens_.next(begin));
        if (tokens_.is(begin, "template")) return true;
    }
    return false;
}

bool LooseNames::in_class(std::size_t i) const {
    const std::size_t brace = tokens_.enclosing_brace(i);
    return brace != kNone && !is_namespace(brace) && !opens_function(brace);
}

// `using config = config<T>;`, `typedef config<T> config;`, `config config;` in a class: g++ says
// that the declaration changes the meaning of the name. With its namespaces the type is another
// name.
void LooseNames::qualify_own_type(std::size_t name) {
    const std::size_t behind = tokens_.next(name);
    const std::string_view type_end = text_before(name);
    const bool is_alias = type_end == "using" && tokens_.is(behind, "=");
    if (!is_alias && type_end != tokens_[name].text && type_end != ">" && type_end != "*" && type_end != "&")
        return;
    if (!is_alias && !tokens_.is(behind, ";") && !tokens_.is(behind, "=") && !tokens_.is(behind, "[") &&
        !tokens_.is(behind, "{") && !tokens_.is(behind, "("))
        return;
    const std::size_t begin = is_alias ? behind : declaration_begin(name);
    const std::size_t end = is_alias ? end_of_statement(behind) : name;
    for (std::size_t i = begin; i < end; ++i) {
        if (!tokens_[i].is(tokens_[name].text)) continue;
        const std::string_view before = text_before(i);
        const std::size_t next = tokens_.next(i);
        const bool is_type = is_alias || tokens_.is(next, "<") || tokens_.is(next, "*") ||
                             tokens_.is(next, "&") || next == name;
        if (!is_type || before == "struct" || before == "class" || before == "enum" || before == "union" ||
            before == "." || (before == ":" && tokens_.is(tokens_.previous(i) - 1, ":")) || !in_class(name))
            continue;
        text_[i].insert(0, scope_of_type(tokens_[name].text));
    }
}

// Where the file declares this type, "::a::b::"; "": nowhere outside classes.
std::string LooseNames::scope_of_type(std::string_view name) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(name)) continue;
        const std::string_view before = text_before(i);
        const bool declares = before == "struct" || before == "class" || before == "union" ||
                              before == "enum" || (before == "using" && tokens_.is(tokens_.next(i), "="));
        if (declares && is_namespace(tokens_.enclosing_brace(i))) return scope_of(i);
    }
    return "";
}

}  // namespace translator
