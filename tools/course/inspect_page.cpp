#include "inspect_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "inspect_code.hpp"
#include "inspect_explain.hpp"
#include "inspect_picture.hpp"
#include "inspect_style.hpp"

namespace course::tool {
namespace {

std::string_view style_of(Grade grade) {
    return grade == Grade::kIdeal ? "good" : grade == Grade::kFair ? "fair" : "bad";
}

// "32", "4.25"
std::string number(double value) {
    std::string text = fmt::format("{:.2f}", value);
    while (text.back() == '0')
        text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

std::string chip(std::string_view style, std::string_view text) {
    return fmt::format(R"(<b class="chip {}">{}</b>)", style, text);
}

// Equal neighbours as one, with how many they are.
std::string folded(const std::vector<std::string>& lines) {
    std::string text;
    for (auto line = lines.begin(); line != lines.end();) {
        const auto end =
            std::find_if(line, lines.end(), [&](const std::string& other) { return other != *line; });
        text += fmt::format(R"(<span class="count">{}{}</span>)", *line,
                            end - line > 1 ? fmt::format(" (x {})", end - line) : "");
        line = end;
    }
    return text;
}

// --- One access ------------------------------------------------------------------------------------------------------

// "1 sector", "32 wavefronts"
std::string count_of(double count, std::string_view units) {
    return fmt::format("{} {}", number(count), count == 1 ? units.substr(0, units.size() - 1) : units);
}

// Of the costs: "8 x ideal", "ideal", "broadcast"
std::string chip_of(const AccessLine& access) {
    const Grade graded = grade(access);
    if (graded != Grade::kIdeal) {
        const double times =
            access.ideal == 0 ? 0
                              : static_cast<double>(access.transactions) / static_cast<double>(access.ideal);
        return chip(style_of(graded), fmt::format("{:.3g} x ideal", times));
    }
    return is_broadcast(access) ? chip("quiet", "broadcast") : chip("good", "ideal");
}

// "tile load: 32 wavefronts, ideal 1"
std::string count_line(const AccessLine& access) {
    std::string operation(name(access.operation));
    std::ranges::replace(operation, '_', ' ');
    const std::string array = array_of(access);
    const double taken = transactions_per_request(access);
    const double lanes = lanes_per_element(access);
    std::string more;
    if (grade(access) != Grade::kIdeal) {
        more = fmt::format(", ideal {}", number(ideal_per_request(access)));
    } else if (lanes >= 2) {
        more = fmt::format(", each element for {:.3g} lanes", lanes);
    }
    return fmt::format("{} {}{}: {}{}", chip_of(access),
                       array.empty() ? "" : fmt::format("<code>{}</code> ", escaped(array)), operation,
                       count_of(taken, unit(access)), more);
}

std::string card(const AccessLine& access, double blocks_each, std::string_view how_often) {
    const WorstRequest& worst = access.worst;
    const std::string array = array_of(access);
    std::string facts =
        fmt::format("{} requests, {} each (ideal {}), {:.3g} of 32 lanes", requests_text(access, blocks_each),
                    count_of(transactions_per_request(access), unit(access)),
                    number(ideal_per_request(access)), lanes_per_request(access));
    if (access.space == Space::kGlobal)
        facts += fmt::format(", {:.3g} % of the bytes used", 100 * share_of_bytes_used(access));
    const std::string sharing = explain_sharing(access);
    return fmt::format(
        R"(<div class="card"><p><b>{}{}</b>{}. {}.</p><p>{}</p>{}<p class="quiet small">The request that takes most: warp {} of block ({}), {}.</p>{}</div>)"
        "\n",
        escaped(what(access)), array.empty() ? "" : fmt::format(", <code>{}</code>", escaped(array)),
        how_often, facts, escaped(explain(access)),
        sharing.empty() ? "" : fmt::format("<p>{}</p>", escaped(sharing)), worst.warp,
        fmt::join(worst.block, ", "), count_of(worst.transactions, unit(access)), picture(access));
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

// The line on which the kernel's definition begins, with the comment above it, when that is not far
// above `line`; else `line`.
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

// First and last lines of the parts that are shown: around everything annotated, the kernel from
// its beginning.
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

// Number, code and, where there are any, counts.
std::string cells(int number, std::string_view code, std::string_view counts, std::string_view share) {
    std::string text = fmt::format(R"(<span class="line">{}</span><code>{}</code>)",
                                   number == 0 ? "?" : std::to_string(number), code);
    if (!counts.empty())
        text += fmt::format(R"(<span class="counts"><span>{}</span><span class="share">{}</span></span>)",
                            counts, share);
    return text;
}

std::string source_row(int number, const Annotations& annotations, std::string_view code, std::uint64_t bytes,
                       const InspectedLine* opened) {
    std::vector<std::string> counts;
    if (annotations.findings.contains(number)) counts.push_back(chip("bad", "finding"));
    const auto found = annotations.accesses.find(number);
    if (found == annotations.accesses.end())
        return fmt::format("<div class=\"row\">{}</div>\n", cells(number, code, folded(counts), ""));

    const InspectedLine& line = *found->second;
    std::vector<std::string> cards;
    for (const AccessLine* access : line.accesses) {
        counts.push_back(count_line(*access));
        cards.push_back(card(*access, line.blocks_each, ""));
    }
    std::string details;
    for (auto each = cards.begin(); each != cards.end();) {
        const auto end =
            std::find_if(each, cards.end(), [&](const std::string& other) { return other != *each; });
        const auto access = line.accesses[static_cast<std::size_t>(each - cards.begin())];
        details +=
            end - each == 1 ? *each : card(*access, line.blocks_each, fmt::format(" (x {})", end - each));
        each = end;
    }
    const double percent =
        bytes == 0 ? 0 : 100 * static_cast<double>(bytes_moved(line)) / static_cast<double>(bytes);
    return fmt::format("<details{}><summary class=\"row\">{}</summary>\n{}</details>\n",
                       &line == opened ? " open" : "",
                       cells(number, code, folded(counts),
                             fmt::format("{:.0f} %<span class=\"narrow\"> of the bytes</span>", percent)),
                       details);
}

// Makes the parts of the page that show source.
class Listings {
  public:
    explicit Listings(Sources& sources) : sources_(sources) {}

    std::string of(const KernelInspection& kernel) {
        const std::vector<InspectedLine> lines = costliest_first(kernel);
        std::uint64_t bytes = 0;
        for (const InspectedLine& line : lines)
            bytes += bytes_moved(line);
        const InspectedLine* const opened = lines.empty() ? nullptr : &lines.front();
        std::string listing;
        for (const auto& [file, annotations] : annotations_of(kernel, lines)) {
            const std::vector<std::string>& text = sources_.lines(file);
            const std::string name = escaped(file.empty() ? "an unknown place" : file);
            listing += fmt::format(
                "<p class=\"quiet small\"><code>{0}</code></p>\n<div class=\"source\" role=\"region\" "
                "aria-label=\"{0}, with counts\" tabindex=\"0\"><div class=\"lines\">\n"
                "<div class=\"row head\"><span class=\"line\">line</span><span>code</span><span "
                "class=\"counts\"><span>each request of a warp</span><span "
                "class=\"share\">bytes</span></span></div>\n",
                name);
            bool first_part = true;
            for (const auto& [first, last] : parts_of(kernel, annotations, text)) {
                if (!std::exchange(first_part, false)) listing += "<div class=\"cut\"></div>\n";
                for (int number = first; number <= last; ++number)
                    listing += source_row(number, annotations, line_of(code(file), number), bytes, opened);
            }
            listing += "</div></div>\n";
        }
        return listing;
    }

  private:
    const std::vector<std::string>& code(const std::string& file) {
        const auto [known, is_new] = code_.try_emplace(file);
        if (is_new) known->second = coloured(sources_.lines(file));
        return known->second;
    }

    Sources& sources_;
    std::map<std::string, std::vector<std::string>> code_;
};

// --- Kernels and versions --------------------------------------------------------------------------------------------

std::string facts_list(const Facts& facts) {
    if (facts.empty()) return "";
    std::string rows;
    for (const auto& [fact, value] : facts)
        rows += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(fact), escaped(value));
    return fmt::format("<dl>{}</dl>\n", rows);
}

std::string finding_box(const Finding& finding) {
    std::string other;
    if (finding.other) {
        other = fmt::format("<br>{}: {}", escaped(place(*finding.other)),
                            thread_name(finding.other_thread, finding.other_block));
    }
    return fmt::format(
        R"(<div class="finding"><p><b class="bad">{}</b>{}: {}</p><p class="quiet">{}: {}{}</p><p>{}</p></div>)"
        "\n",
        escaped(finding.kind), finding.count > 1 ? fmt::format(", {} times", finding.count) : "",
        escaped(finding.message), escaped(place(finding.source)), thread_name(finding.thread, finding.block),
        other, escaped(finding.why));
}

std::string kernel_part(const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits,
                        Listings& listings) {
    std::string part = fmt::format("<h3><code>{}</code> <span class=\"quiet\">{}</span></h3>\n",
                                   escaped(short_name(kernel.name)), escaped(extent(kernel)));
    for (const Finding& finding : kernel.findings)
        part += finding_box(finding);
    return part + facts_list(facts_of(kernel, limits)) + listings.of(kernel);
}

std::size_t findings_of(const InspectedVersion& version) {
    std::size_t findings = 0;
    for (const KernelInspection& kernel : version.kernels)
        findings += kernel.findings.size();
    return findings;
}

// "verified", "wrong result, 2 findings"
std::string state_of(const InspectedVersion& version) {
    if (!version.cannot_run.empty()) return R"(<span class="quiet">not run</span>)";
    const std::size_t findings = findings_of(version);
    const std::string found =
        findings == 0 ? "" : fmt::format(", {} finding{}", findings, findings == 1 ? "" : "s");
    if (!version.judged) return found.empty() ? "" : chip("bad", found.substr(2));
    return fmt::format(R"(<span class="{}">{}{}</span>)", version.verified && findings == 0 ? "good" : "bad",
                       version.verified ? "verified" : "wrong result", found);
}

std::string version_section(const InspectedVersion& version, std::size_t number,
                            const std::optional<MultiprocessorLimits>& limits, Listings& listings) {
    std::string section =
        fmt::format("<section id=\"v{}\">\n<h2>{} <span class=\"quiet\">{}</span> {}</h2>\n", number,
                    escaped(version.version), escaped(version.problem), state_of(version));
    for (const std::string* note : {&version.cannot_run, &version.failure}) {
        if (!note->empty()) section += fmt::format("<p>{}</p>\n", escaped(*note));
    }
    section += facts_list(facts_of(version));
    for (const KernelInspection& kernel : version.kernels)
        section += kernel_part(kernel, limits, listings);
    return section + "</section>\n";
}

// --- Overview --------------------------------------------------------------------------------------------------------

constexpr std::pair kGlobal(Space::kGlobal, std::string_view("global"));
constexpr std::pair kShared(Space::kShared, std::string_view("shared"));

std::string bar(const InspectedVersion& version, const std::pair<Space, std::string_view>& space,
                double longest) {
    const BytesMoved moved = bytes_moved(version, space.first);
    const auto piece = [&](double bytes, std::string_view style) {
        return bytes <= 0
                   ? ""
                   : fmt::format(R"(<i class="{}" style="width:{:.2f}%"></i>)", style, 100 * bytes / longest);
    };
    if (moved.all() <= 0) {
        return fmt::format("<div class=\"bar quiet\"><span>{}</span><span>none</span></div>\n", space.second);
    }
    const double times = moved.ideal > 0 ? moved.all() / moved.ideal : 1;
    return fmt::format(
        R"(<div class="bar"><span class="quiet">{}</span><span class="track" aria-hidden="true">{}{}</span><span class="amount">{}{}</span></div>)"
        "\n",
        space.second, piece(moved.ideal, space.second), piece(moved.beyond_ideal, "waste"),
        bytes_text(moved.all()),
        times >= 1.05
            ? fmt::format(R"( <span class="{}">{:.3g} x ideal</span>)", times < 2 ? "fair" : "bad", times)
            : "");
}

// The versions of one problem, all on one scale.
std::string bars_of(const InspectionFile& file, const std::string& problem) {
    double longest = 0;
    bool sampled = false;
    for (const InspectedVersion& version : file.results) {
        if (version.problem != problem) continue;
        for (const auto& space : {kGlobal, kShared})
            longest = std::max(longest, bytes_moved(version, space.first).all());
        sampled = sampled || is_sampled(version);
    }
    std::string items;
    std::string not_run;
    for (std::size_t i = 0; i < file.results.size(); ++i) {
        const InspectedVersion& version = file.results[i];
        if (version.problem != problem) continue;
        const std::string link = fmt::format("<a href=\"#v{}\">{}</a>", i, escaped(version.version));
        if (version.kernels.empty()) {
            not_run += (not_run.empty() ? "" : ", ") + link;
            continue;
        }
        items +=
            fmt::format("<li><div>{} <span class=\"small\">{}</span></div>\n<div>{}{}</div></li>\n", link,
                        state_of(version), bar(version, kGlobal, longest), bar(version, kShared, longest));
    }
    if (!not_run.empty())
        items += fmt::format("<li><div class=\"quiet\">not run</div>\n<div>{}</div></li>\n", not_run);
    return fmt::format(
        "<h3>{}</h3>\n<ul class=\"bars\">\n{}</ul>\n<p class=\"quiet small\">These bars have one scale: the "
        "longest is "
        "{}.{}</p>\n",
        escaped(problem), items, bytes_text(longest),
        sampled
            ? " Of large grids some blocks were watched; the bytes of all blocks are estimated from these."
            : "");
}

std::string overview(const InspectionFile& file) {
    std::vector<std::string> problems;
    for (const InspectedVersion& version : file.results) {
        if (std::ranges::find(problems, version.problem) == problems.end())
            problems.push_back(version.problem);
    }
    std::string charts;
    for (const std::string& problem : problems)
        charts += bars_of(file, problem);
    return fmt::format(
        "<section id=\"bytes\">\n<h2>Bytes that each version moves</h2>\n<p class=\"small\">"
        "<span class=\"key\"><span class=\"swatch global\"></span>global memory, 32 bytes a sector</span> "
        "<span class=\"key\"><span class=\"swatch shared\"></span>shared memory, 128 bytes a "
        "wavefront</span> "
        "<span class=\"key\"><span class=\"swatch waste\"></span>beyond the ideal: uncoalesced accesses, "
        "bank "
        "conflicts</span></p>\n{}</section>\n",
        charts);
}

std::string legend() {
    return fmt::format(
        "<section id=\"reading\">\n<h2>How to read the page</h2>\n"
        "<p>A <b>request</b> is what the 32 lanes of a warp ask for with one instruction. Shared memory "
        "answers it in "
        "<b>wavefronts</b>: one for all lanes whose words are in different banks. Global memory is moved in "
        "<b>sectors</b> of 32 bytes. The <b>ideal</b> is the smallest number that the same bytes can "
        "take.</p>\n"
        "<p>Beside each line that accesses memory you see what its requests take. Open the line to see the "
        "request "
        "that takes most. The numbers in the boxes are lanes; 16x are sixteen of them.</p>\n"
        "<div class=\"legend\"><div>{}</div>\n<ul class=\"swatches\">\n"
        "<li><span class=\"swatch once\"></span><span>the first word that lanes want of a bank, or bytes of "
        "a sector "
        "that lanes want</span></li>\n"
        "<li><span class=\"swatch again\"></span><span>a further word of the same bank: one more "
        "wavefront</span></li>\n"
        "<li><span class=\"swatch moved\"></span><span>bytes that are moved with the sector, and that no "
        "lane "
        "wants</span></li>\n"
        "<li><span class=\"swatch idle\"></span><span>a bank with nothing to do, or a sector that is not "
        "moved</span></li>\n</ul></div>\n<p id=\"tools\"></p>\n</section>\n",
        picture_of_example());
}

std::string navigation(const InspectionFile& file) {
    std::string items =
        "<li><a href=\"#bytes\">Bytes moved</a></li>\n<li><a href=\"#reading\">How to read</a></li>\n";
    std::string problem;
    for (std::size_t i = 0; i < file.results.size(); ++i) {
        const InspectedVersion& version = file.results[i];
        if (!version.cannot_run.empty()) continue;
        if (version.problem != problem)
            items += fmt::format("<li class=\"group\">{}</li>\n", escaped(problem = version.problem));
        const bool wrong = findings_of(version) > 0 || (version.judged && !version.verified);
        items += fmt::format("<li><a href=\"#v{}\">{}{}</a></li>\n", i, escaped(version.version),
                             wrong ? " <b class=\"bad\">!</b>" : "");
    }
    return fmt::format("<nav aria-label=\"Versions\"><ul>\n{}</ul></nav>\n", items);
}

}  // namespace

std::string inspection_page(const PageHead& head, const InspectionFile& file,
                            const std::optional<MultiprocessorLimits>& limits, Sources& sources) {
    Listings listings(sources);
    std::string sections = overview(file) + legend();
    for (std::size_t i = 0; i < file.results.size(); ++i)
        sections += version_section(file.results[i], i, limits, listings);
    const std::size_t findings = count_findings(file);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}, inspected</title>\n"
        "<style>{1}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the inspection</a>\n"
        "<header><h1>{0}</h1>\n{2}<p class=\"quiet\">How the kernels of <code>{3}</code> use memory: every "
        "access of "
        "every thread was watched, on the CPU. {4}</p></header>\n"
        "<div class=\"layout\">\n{5}<main id=\"main\" tabindex=\"-1\">\n{6}</main>\n</div>\n"
        "<footer class=\"quiet small\"><code>{3}</code>{7}</footer>\n"
        "<script>{8}</script>\n</body>\n</html>\n",
        escaped(head.title), kPageStyle,
        head.question.empty() ? "" : fmt::format("<p>{}</p>\n", escaped(head.question)), escaped(file.day),
        findings == 0 ? "No findings."
                      : fmt::format("<b class=\"bad\">{} finding{}</b>.", findings, findings == 1 ? "" : "s"),
        navigation(file), sections,
        file.commit.empty() ? "" : fmt::format(", commit <code>{}</code>", escaped(file.commit)),
        kPageScript);
}

}  // namespace course::tool
