// Source code in colours, for the page.
#pragma once

#include <string>
#include <vector>

namespace course::tool {

// comment, keyword, cuda, string, number or directive; empty: none of these.
struct CodePart {
    std::string style;
    std::string text;

    bool operator==(const CodePart&) const = default;
};
using CodeLine = std::vector<CodePart>;

// Lines of CUDA C++, each divided into comments, keywords, the words of CUDA, literals, directives
// and what is between them. No part crosses the end of a line.
std::vector<CodeLine> coloured(const std::vector<std::string>& lines);

}  // namespace course::tool
