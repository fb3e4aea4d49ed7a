#include "profile_page.hpp"

#include <fmt/format.h>

#include <string_view>

#include "inspect_html.hpp"

namespace course::tool {
namespace {

// What the style sheet of an inspection lacks.
constexpr std::string_view kStyle = R"(
.table { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .8rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
  border-bottom: 1px solid var(--rule); }
thead th { color: var(--quiet); font-weight: normal; }
tbody th { color: var(--quiet); font-weight: normal; overflow-wrap: anywhere; min-width: 5.5rem; }
.limit { border-left: 4px solid var(--link); padding: .1rem .9rem; margin: .6rem 0; }
.limit p { margin: .3rem 0; }
.units { margin: .8rem 0; max-width: 46rem; } .units .bar { grid-template-columns: 8rem 1fr 3rem; }
.units .bar .amount { grid-column: auto; }
@media (min-width: 40rem) {
  table { font-size: .9rem; } th, td { padding-right: 1rem; } tbody th { min-width: 9rem; }
}
)";

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            default:
                safe += c;
        }
    }
    return safe;
}

std::string attempt(const Advice& advice) {
    return fmt::format("<p>Try: {} <span class=\"quiet\">({})</span></p>\n", escaped(advice.attempt),
                       escaped(days_text(advice)));
}

std::string signs(const Screen& screen) {
    std::string text;
    for (const Sign& sign : screen.signs)
        text += fmt::format("<p><b>{}</b>: {}</p>\n{}", escaped(sign.figures), escaped(sign.advice->words),
                            attempt(*sign.advice));
    return text;
}

std::string style_sheet() {
    constexpr std::string_view kEnd = "</style>";
    const std::size_t begin = kInspectHtml.find("<style>");
    const std::size_t end = kInspectHtml.find(kEnd, begin);
    return fmt::format("{}{}{}", kInspectHtml.substr(begin, end - begin), kStyle, kEnd);
}

using Cells = std::vector<std::string>;

// The first cell of each row is its heading. A table may be wider than a phone: it scrolls.
std::string table(std::string_view label, const Cells& heading, const std::vector<Cells>& rows) {
    std::string text = fmt::format(
        "<div class=\"table\" role=\"region\" aria-label=\"{}\" tabindex=\"0\"><table>\n<thead><tr>",
        escaped(label));
    for (const std::string& cell : heading)
        text += fmt::format("<th scope=\"col\">{}</th>", escaped(cell));
    text += "</tr></thead>\n<tbody>\n";
    for (const Cells& row : rows) {
        text += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(row.front()));
        for (std::size_t i = 1; i < row.size(); ++i)
            text += fmt::format("<td>{}</td>", escaped(row[i]));
        text += "</tr>\n";
    }
    return text + "</tbody></table></div>\n";
}

std::string units(const Screen& screen) {
    std::string text = "<div class=\"units\">\n";
    constexpr double kIdle = 0.5;
    for (const Figure& unit : screen.units) {
        if (*unit.value < kIdle) continue;
        text += fmt::format(
            "<div class=\"bar\"><span class=\"quiet\">{}</span><span class=\"track\" aria-hidden=\"true\"><i "
            "class=\"global\" style=\"width:{:.1f}%\"></i></span><span class=\"amount\">{}</span></div>\n",
            escaped(unit.name), *unit.value, escaped(unit.counted));
    }
    return text + "</div>\n";
}

std::string hardware(const Screen& screen) {
    std::string text = "<h3>What only the hardware knows</h3>\n<dl>\n";
    for (const Figure& figure : screen.hardware)
        text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(figure.name), escaped(figure.counted));
    text += "</dl>\n" + units(screen);
    for (const Wait& wait : screen.waits)
        text += fmt::format("<p>{:.0f} % of their time, warps {} (<code>{}</code>).</p>\n{}",
                            100 * wait.share, escaped(wait.advice->words), escaped(wait.advice->name),
                            waits_have_attempts(screen) ? attempt(*wait.advice) : "");
    return text;
}

std::string predictable(const Screen& screen) {
    const bool counted = !screen.gpu.empty();
    const bool inspected = screen.not_inspected.empty();
    Cells heading = {""};
    if (counted) heading.push_back(screen.gpu);
    if (inspected) heading.push_back("inspected here, " + screen.inspected_problem);
    std::vector<Cells> rows;
    for (const Figure& figure : screen.predictable) {
        if (figure.counted.empty() && figure.predicted.empty()) continue;
        Cells row = {figure.name};
        if (counted) row.push_back(figure.counted);
        if (inspected) row.push_back(figure.predicted);
        rows.push_back(std::move(row));
    }
    std::string text =
        "<h3>What can be predicted</h3>\n" + table(screen.name + ", what can be predicted", heading, rows);
    if (!inspected) text += fmt::format("<p class=\"quiet\">{}</p>\n", escaped(screen.not_inspected));
    return text;
}

std::string section(const Screen& screen, std::size_t number) {
    std::string text = fmt::format("<section id=\"v{}\">\n<h2>{} <span class=\"quiet\">{}</span></h2>\n",
                                   number, escaped(screen.name), escaped(screen.problem));
    if (screen.limit != nullptr) {
        text +=
            fmt::format("<div class=\"limit\"><p><b>Limited by {}</b>{}{}</p>\n{}</div>\n",
                        escaped(screen.limited_by), screen.reason.empty() ? "" : ": ", escaped(screen.reason),
                        screen.signs.empty() ? attempt(*screen.limit) : signs(screen));
        text += hardware(screen);
    }
    return text + predictable(screen) + "</section>\n";
}

std::string differences(const Screen& before, const Screen& after) {
    std::vector<Cells> rows = {{"limited by", before.limited_by, after.limited_by, ""}};
    for (const Change& change : changes(before, after))
        rows.push_back({change.name, change.before, change.after, change.factor});
    return "<section id=\"changes\">\n<h2>What changed most stands first</h2>\n" +
           table("differences", {"", before.name, after.name, "change"}, rows) + "</section>\n";
}

std::string navigation(const std::vector<Screen>& screens, bool comparison) {
    std::string text = comparison ? "<li><a href=\"#changes\">What changed</a></li>\n" : "";
    for (std::size_t i = 0; i < screens.size(); ++i)
        text += fmt::format("<li><a href=\"#v{}\">{}</a></li>\n", i, escaped(screens[i].name));
    return text;
}

}  // namespace

std::string profile_page(const PageHead& head, const std::vector<Screen>& screens, bool comparison,
                         const std::string& note) {
    std::string page = fmt::format(
        R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{0}, profiled</title>
{1}
</head>
<body>
<a class="skip" href="#main">Skip to the profile</a>
<header><h1>{0}</h1>
<p>{2}</p>
<p class="quiet">What limits each kernel: what a GPU counts, beside what can be predicted without one.</p></header>
<div class="layout">
<nav aria-label="Versions"><ul>
{3}</ul></nav>
<main id="main" tabindex="-1">
)",
        escaped(head.title), style_sheet(), escaped(head.question), navigation(screens, comparison));
    if (comparison) page += differences(screens.at(0), screens.at(1));
    for (std::size_t i = 0; i < screens.size(); ++i)
        page += section(screens[i], i);
    return page +
           fmt::format("</main>\n</div>\n<footer class=\"quiet small\">{}</footer>\n</body>\n</html>\n",
                       escaped(note));
}

}  // namespace course::tool
