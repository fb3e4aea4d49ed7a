// What the litmus tests of day 23 counted, as text. (A file of its own: some versions of g++ behind
// nvcc do not compile fmt's checked format strings.)
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "litmus.hpp"

namespace day23 {
namespace {

const char* verdict_of(const LitmusForm& form) {
    return form.is_race ? "race" : form.may_be_weak ? "allowed" : "forbidden";
}

}  // namespace

std::string litmus_table(std::span<const LitmusResult> results) {
    std::string text = fmt::format("{:<17} {:<18} {:<9} {:<10} {:>12} {:>10}\n", "test", "form", "outcome",
                                   "the model", "runs", "weak");
    for (const LitmusResult& r : results)
        text += fmt::format("{:<17} {:<18} {:<9} {:<10} {:>12} {:>10}\n", r.form->test, r.form->form,
                            r.form->weak, verdict_of(*r.form), r.runs, r.weak);
    return text;
}

std::string litmus_json(std::span<const LitmusResult> results) {
    std::string text;
    for (const LitmusResult& r : results) {
        nlohmann::ordered_json line{{"test", r.form->test},    {"form", r.form->form},
                                    {"outcome", r.form->weak}, {"model", verdict_of(*r.form)},
                                    {"runs", r.runs},          {"weak", r.weak}};
        nlohmann::ordered_json counts;
        for (unsigned i = 0; i < 1U << r.form->used; ++i) {
            std::string key;
            for (unsigned k = 0; k < r.form->used; ++k)
                key += (key.empty() ? "" : " ") + std::to_string(i >> k & 1);
            counts[key] = r.counts[i];
        }
        line["counts"] = counts;
        text += line.dump() + "\n";
    }
    return text;
}

}  // namespace day23
