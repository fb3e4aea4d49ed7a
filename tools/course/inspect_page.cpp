#include "inspect_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "inspect_explain.hpp"
#include "inspect_picture.hpp"

namespace course::tool {
namespace {

constexpr std::string_view kStyle = R"css(
:root { --text: #1c2128; --ground: #fff; --quiet: #66707c; --rule: #d8dde3; --empty: #eceff3; --card: #f6f8fa;
        --good: #1a7f37; --fair: #9a6700; --bad: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e8ee; --ground: #14181d; --quiet: #93a0ad; --rule: #303840; --empty: #232a31; --card: #1b2128;
          --good: #4ac26b; --fair: #d4a72c; --bad: #ff7b6b; } }
body { margin: 2rem auto; max-width: 1180px; padding: 0 1rem; color: var(--text); background: var(--ground);
       font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: 1rem; }
h3 { font-size: 1.05rem; margin-bottom: .3rem; } a { color: inherit; }
.quiet { color: var(--quiet); } .good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); }
table { border-collapse: collapse; margin: .5rem 0 1rem; } td, th { padding: .15rem .9rem .15rem 0; text-align: left; vertical-align: top; }
th { font-weight: normal; color: var(--quiet); } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.source { border: 1px solid var(--rule); border-radius: 6px; overflow-x: auto; margin: .6rem 0 1.4rem; padding: .3rem 0; }
.row { display: grid; grid-template-columns: 3.2rem 4.6rem 20rem 1fr; column-gap: .7rem; min-width: 60rem;
       font: 12.5px/1.5 ui-monospace, monospace; }
.row .number { text-align: right; color: var(--quiet); } .row code { font: inherit; white-space: pre; }
.share { position: relative; text-align: right; color: var(--quiet); }
.share i { position: absolute; right: 0; top: .12rem; bottom: .12rem; background: var(--bad); opacity: .22; border-radius: 2px; }
summary.row { cursor: pointer; list-style: none; } summary.row::-webkit-details-marker { display: none; }
summary.row:hover, details[open] > summary.row { background: var(--card); }
.counts span { display: block; border-left: 4px solid; padding-left: .45rem; white-space: nowrap; }
.cut { border-top: 1px dashed var(--rule); margin: .3rem 0; }
.card { margin: .2rem 0 .8rem 3.9rem; padding: .5rem .9rem; background: var(--card); border-radius: 6px; }
.card p { margin: .3rem 0; } .finding { border-left: 4px solid var(--bad); padding: .1rem .9rem; margin: .6rem 0; }
button { font: inherit; }
)css";

// Only convenience: everything is there without it.
constexpr std::string_view kScript = R"js(
const tools = document.getElementById("tools");
for (const [text, open] of [["open all lines", true], ["close all lines", false]]) {
  const button = document.createElement("button");
  button.textContent = text;
  button.onclick = () => document.querySelectorAll("details").forEach(each => each.open = open);
  tools.append(button, " ");
}
)js";

std::string_view style_of(Grade grade) {
    return grade == Grade::kGood ? "good" : grade == Grade::kFair ? "fair" : "bad";
}

// --- One access ------------------------------------------------------------------------------------------------------

// "1 sector", "32 wavefronts"
std::string count_of(unsigned count, std::string_view units) {
    return fmt::format("{} {}", count, count == 1 ? units.substr(0, units.size() - 1) : units);
}

// "shared load, tile 32.00 / 1.00"
std::string margin_of(const AccessLine& access) {
    const std::string all = what(access);
    const std::string array = array_of(access);
    return fmt::format(
        R"(<span class="{}" title="{} per request, and the ideal">{}{}{} {:.2f} / {:.2f}</span>)",
        style_of(grade(access)), unit(access), all.substr(0, all.find(" of ")), array.empty() ? "" : ", ",
        escaped(array), transactions_per_request(access), ideal_per_request(access));
}

std::string card(const AccessLine& access) {
    const WorstRequest& worst = access.worst;
    std::string facts = fmt::format("{} requests, {:.2f} {} each (ideal {:.2f}), {:.1f} lanes",
                                    access.requests, transactions_per_request(access), unit(access),
                                    ideal_per_request(access), lanes_per_request(access));
    if (access.space == Space::kGlobal)
        facts += fmt::format(", {:.1f} % of the bytes used", 100 * share_of_bytes_used(access));
    return fmt::format(R"(<div class="card"><p><b>{}</b>: {}.</p><p>{}</p>)"
                       R"(<p class="quiet">The worst request: warp {} of block ({}), {}, in {}.</p>{}</div>)"
                       "\n",
                       escaped(what(access)), escaped(facts), escaped(explain(access)), worst.warp,
                       fmt::join(worst.block, ", "), count_of(worst.transactions, unit(access)),
                       worst.array.empty() ? "memory" : escaped(worst.array), picture(access));
}

// --- Source ----------------------------------------------------------------------------------------------------------

// What there is to say of each line of a file.
struct Annotations {
    std::map<int, const InspectedLine*> accesses;
    std::set<int> findings;
};

std::map<std::string, Annotations> annotations_of(const KernelInspection& kernel,
                                                  const std::vector<InspectedLine>& lines) {
    std::map<std::string, Annotations> files;
    for (const InspectedLine& line : lines)
        files[line.source.file].accesses[line.source.line] = &line;
    for (const Finding& finding : kernel.findings) {
        files[finding.source.file].findings.insert(finding.source.line);
        if (finding.other) files[finding.other->file].findings.insert(finding.other->line);
    }
    return files;
}

// Empty for a line that is not there: the place is not known, or the file has changed.
std::string_view line_of(const std::vector<std::string>& text, int number) {
    const bool is_there = number >= 1 && static_cast<std::size_t>(number) <= text.size();
    return is_there ? std::string_view(text[static_cast<std::size_t>(number) - 1]) : "";
}

// The line on which the kernel's definition begins, with the comment above it, when that is not far above `line`; else `line`.
int beginning_of(const std::string& kernel, const std::vector<std::string>& text, int line) {
    constexpr int kFar = 100;
    const std::string head = kernel.substr(0, kernel.find_first_of("<( ")) + "(";
    int first = std::min(line, static_cast<int>(text.size()));
    while (first >= 1 && line_of(text, first).find(head) == std::string_view::npos) {
        if (line - first >= kFar) return line;
        --first;
    }
    if (first < 1) return line;
    const auto belongs_to_it = [](std::string_view above) {
        return above.starts_with("//") || above.starts_with("template");
    };
    while (first > 1 && belongs_to_it(line_of(text, first - 1)))
        --first;
    return first;
}

// First and last lines of the parts that are shown: around everything annotated, the kernel from its beginning.
std::vector<std::pair<int, int>> parts_of(const KernelInspection& kernel, const Annotations& annotations,
                                          const std::vector<std::string>& text) {
    constexpr int kAround = 2;
    constexpr int kSmallGap = 12;  // shown, too
    std::set<int> numbers = annotations.findings;
    for (const auto& [number, line] : annotations.accesses)
        numbers.insert(number);
    std::vector<std::pair<int, int>> parts;
    for (const int number : numbers) {
        const int last = std::max(number, std::min(number + kAround, static_cast<int>(text.size())));
        const int begin = beginning_of(short_name(kernel.name), text, number);
        const int first = number < 1 ? number : std::max(1, std::min(number - kAround, begin));
        if (!parts.empty() && first <= parts.back().second + kSmallGap) {
            parts.back().second = std::max(parts.back().second, last);
        } else {
            parts.emplace_back(first, last);
        }
    }
    return parts;
}

// The four cells of a line: number, share of the kernel's transactions, counts, text.
std::string cells(int number, std::string_view share, std::string_view counts, std::string_view text) {
    return fmt::format(R"(<span class="number">{}</span><span class="share">{}</span>)"
                       R"(<span class="counts">{}</span><code>{}</code>)",
                       number, share, counts, escaped(text));
}

std::string source_row(int number, const Annotations& annotations, std::string_view text,
                       std::uint64_t transactions, const InspectedLine* opened) {
    std::string counts;
    if (annotations.findings.contains(number)) counts = R"(<span class="bad"><b>finding</b></span>)";
    const auto found = annotations.accesses.find(number);
    if (found == annotations.accesses.end())
        return fmt::format("<div class=\"row\">{}</div>\n", cells(number, "", counts, text));

    const InspectedLine& line = *found->second;
    std::string cards;
    for (const AccessLine* access : line.accesses) {
        counts += margin_of(*access);
        cards += card(*access);
    }
    const double percent =
        transactions == 0 ? 0
                          : 100 * static_cast<double>(line.transactions) / static_cast<double>(transactions);
    const std::string share = fmt::format(R"(<i style="width: {0:.0f}%"></i>{0:.0f} %)", percent);
    return fmt::format("<details{}><summary class=\"row\">{}</summary>\n{}</details>\n",
                       &line == opened ? " open" : "", cells(number, share, counts, text), cards);
}

std::string source_listing(const KernelInspection& kernel, Sources& sources) {
    const std::vector<InspectedLine> lines = costliest_first(kernel);
    std::uint64_t transactions = 0;
    for (const InspectedLine& line : lines)
        transactions += line.transactions;
    const InspectedLine* const opened = lines.empty() ? nullptr : &lines.front();

    std::string listing;
    for (const auto& [file, annotations] : annotations_of(kernel, lines)) {
        const std::vector<std::string>& text = sources.lines(file);
        listing += fmt::format("<p class=\"quiet\">{}</p><div class=\"source\">\n", escaped(file));
        bool first_part = true;
        for (const auto& [first, last] : parts_of(kernel, annotations, text)) {
            if (!std::exchange(first_part, false)) listing += "<div class=\"cut\"></div>\n";
            for (int number = first; number <= last; ++number) {
                listing += source_row(number, annotations, line_of(text, number), transactions, opened);
            }
        }
        listing += "</div>\n";
    }
    return listing;
}

// --- Kernels and versions --------------------------------------------------------------------------------------------

std::string facts_table(const Facts& facts) {
    if (facts.empty()) return "";
    std::string rows;
    for (const auto& [fact, value] : facts)
        rows += fmt::format("<tr><th>{}</th><td>{}</td></tr>", escaped(fact), escaped(value));
    return fmt::format("<table>{}</table>\n", rows);
}

std::string finding_box(const Finding& finding) {
    std::string other;
    if (finding.other) {
        other = fmt::format("<br>{}: {}", escaped(place(*finding.other)),
                            who(finding.other_thread, finding.other_block));
    }
    return fmt::format(
        R"(<div class="finding"><p><b class="bad">{}</b>{}: {}</p><p class="quiet">{}: {}{}</p><p>{}</p></div>)"
        "\n",
        escaped(finding.kind), finding.count > 1 ? fmt::format(", {} times", finding.count) : "",
        escaped(finding.message), escaped(place(finding.source)), who(finding.thread, finding.block), other,
        escaped(finding.why));
}

std::string kernel_section(const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits,
                           Sources& sources) {
    std::string section = fmt::format("<h3><code>{}</code> <span class=\"quiet\">{}</span></h3>\n",
                                      escaped(short_name(kernel.name)), escaped(extent(kernel)));
    for (const Finding& finding : kernel.findings)
        section += finding_box(finding);
    return section + facts_table(facts_of(kernel, limits)) + source_listing(kernel, sources);
}

std::string state_of(const InspectedVariant& variant) {
    if (!variant.cannot_run.empty()) return "<span class=\"quiet\">not run</span>";
    return variant.verified ? "<span class=\"good\">verified</span>"
                            : "<span class=\"bad\">wrong result</span>";
}

std::string variant_section(const InspectedVariant& variant, std::size_t number,
                            const std::optional<MultiprocessorLimits>& limits, Sources& sources) {
    std::string section = fmt::format("<h2 id=\"v{}\">{} <span class=\"quiet\">{}</span> {}</h2>\n", number,
                                      escaped(variant.variant), escaped(variant.problem), state_of(variant));
    for (const std::string* note : {&variant.cannot_run, &variant.failure}) {
        if (!note->empty()) section += fmt::format("<p>{}</p>\n", escaped(*note));
    }
    section += facts_table(facts_of(variant));
    for (const KernelInspection& kernel : variant.kernels)
        section += kernel_section(kernel, limits, sources);
    return section;
}

// Transactions against their ideal, of all kernels of a version in one space.
std::string total_of(const InspectedVariant& variant, Space space) {
    AccessLine total;
    total.space = space;
    for (const KernelInspection& kernel : variant.kernels) {
        for (const AccessLine& line : kernel.lines) {
            if (line.space != space) continue;
            total.transactions += line.transactions;
            total.ideal += line.ideal;
        }
    }
    if (total.transactions == 0) return "-";
    return fmt::format("<span class=\"{}\">{} / {}</span>", style_of(grade(total)), total.transactions,
                       total.ideal);
}

std::string overview(const InspectionFile& file) {
    std::string rows;
    for (std::size_t i = 0; i < file.results.size(); ++i) {
        const InspectedVariant& variant = file.results[i];
        std::size_t findings = 0;
        for (const KernelInspection& kernel : variant.kernels)
            findings += kernel.findings.size();
        rows += fmt::format(
            "<tr><td><a href=\"#v{}\">{}</a></td><td>{}</td><td>{}</td><td class=\"number\">{}</td>"
            "<td class=\"number\">{}</td><td class=\"number{}\">{}</td></tr>\n",
            i, escaped(variant.variant), escaped(variant.problem), state_of(variant),
            total_of(variant, Space::kShared), total_of(variant, Space::kGlobal), findings > 0 ? " bad" : "",
            findings);
    }
    return fmt::format(
        "<table><tr><th>version</th><th>problem</th><th></th><th class=\"number\">wavefronts / ideal</th>"
        "<th class=\"number\">sectors / ideal</th><th class=\"number\">findings</th></tr>\n{}</table>\n",
        rows);
}

constexpr std::string_view kHowToRead =
    "<p class=\"quiet\">The margin of a line: its share of the kernel's transactions, then what its requests "
    "take and "
    "what they would take at best. A request is what the lanes of a warp ask for with one instruction. "
    "Shared memory "
    "answers in wavefronts, one a clock; global memory is moved in sectors of 32 bytes. Click a line to see "
    "its worst "
    "request: numbers in it are lanes; blue is the first word of a bank, or bytes that lanes want; red are "
    "further words of a "
    "bank, a wavefront each; pale red are bytes that are moved and that nobody wants.</p>\n<p "
    "id=\"tools\"></p>\n";

}  // namespace

std::string escaped(std::string_view text) {
    std::string html;
    for (const char character : text) {
        switch (character) {
            case '&':
                html += "&amp;";
                break;
            case '<':
                html += "&lt;";
                break;
            case '>':
                html += "&gt;";
                break;
            case '"':
                html += "&quot;";
                break;
            default:
                html += character;
        }
    }
    return html;
}

std::string inspection_page(const InspectionFile& file, const std::optional<MultiprocessorLimits>& limits,
                            Sources& sources) {
    std::string body = fmt::format("<h1>{}, inspected</h1>\n<p class=\"quiet\">commit {}</p>\n{}{}",
                                   escaped(file.day), escaped(file.commit), overview(file), kHowToRead);
    for (std::size_t i = 0; i < file.results.size(); ++i)
        body += variant_section(file.results[i], i, limits, sources);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}, inspected</title>\n"
        "<style>{}{}</style>\n</head>\n<body>\n{}<script>{}</script>\n</body>\n</html>\n",
        escaped(file.day), kStyle, kPictureStyle, body, kScript);
}

}  // namespace course::tool
