// libFuzzer's target for what reads source text: tokens, translation, and the merging of the host's
// pass with the device's, which a line "---" parts here. Any text is translated line by line, or
// refused with a TranslationError. ci/steps.sh fuzz builds and runs it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "merge.hpp"
#include "tokens.hpp"
#include "translate.hpp"

namespace {

using namespace translator;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

void split(std::string_view text) {
    const Tokens tokens(text);
    std::string again;
    for (std::size_t i = 0; i < tokens.size(); ++i)
        again += tokens[i].text;
    require(again == text, "a byte of the text is in no token, or in two");
}

void translate_for(std::string_view text, Dialect dialect) {
    try {
        std::vector<Warning> warnings;
        const std::string translated =
            translate(text, dialect, SharedArrays::in_gaps, DeviceVariables::own, &warnings);
        require(std::ranges::count(translated, '\n') == std::ranges::count(text, '\n'),
                "the translation has other lines");
    } catch (const TranslationError&) {
        // refused: as good
    }
}

void merge(std::string_view text) {
    constexpr std::string_view kBetween = "\n---\n";
    const auto cut = text.find(kBetween);
    if (cut == text.npos) return;
    std::vector<Warning> warnings;
    try {
        merge_passes(text.substr(0, cut + 1), text.substr(cut + kBetween.size()), warnings);
    } catch (const TranslationError&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    split(text);
    translate_for(text, Dialect::gnu);
    translate_for(text, Dialect::clang);
    merge(text);
    return 0;
}
