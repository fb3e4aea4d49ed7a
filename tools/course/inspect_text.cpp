#include "inspect_text.hpp"

#include <fmt/color.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "inspect_explain.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

constexpr std::size_t kShownLines = 10;
constexpr std::size_t kColumns = 110;

class Text {
  public:
    explicit Text(bool colour) : colour_(colour) {}

    std::string in(const fmt::text_style& style, std::string_view text) const {
        return colour_ ? fmt::format(style, "{}", text) : std::string(text);
    }
    void line(std::string_view text = "") {
        text_ += text;
        text_ += '\n';
    }
    // Wraps the text between words, and indents every line by `indent`.
    void paragraph(std::size_t indent, std::string_view text, const fmt::text_style& style = {}) {
        while (!text.empty()) {
            std::size_t end = text.size();
            if (end > kColumns - indent) {
                end = text.rfind(' ', kColumns - indent);
                if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
            }
            line(fmt::format("{:{}}{}", "", indent, in(style, text.substr(0, end))));
            text.remove_prefix(std::min(text.size(), end + 1));
        }
    }
    std::string take() { return std::move(text_); }

  private:
    bool colour_;
    std::string text_;
};

constexpr std::size_t kCells = 6;
using Cells = std::array<std::string, kCells>;

const Cells kColumnNames = {"", "requests", "per request", "ideal", "lanes", "bytes used"};

// "shared load of 4 bytes, tile"
std::string label_of(const AccessLine& access) {
    const std::string array = array_of(access);
    return array.empty() ? what(access) : fmt::format("{}, {}", what(access), array);
}

Cells cells_of(const AccessLine& access, double blocks_each) {
    return {
        label_of(access),
        requests_text(access, blocks_each),
        fmt::format("{:.2f} {:<10}", transactions_per_request(access), unit(access)),
        fmt::format("{:.2f}", ideal_per_request(access)),
        fmt::format("{:.1f}", lanes_per_request(access)),
        access.space == Space::kShared ? "-" : fmt::format("{:.1f} %", 100 * share_of_bytes_used(access))};
}

fmt::text_style style_of(Grade grade) {
    switch (grade) {
        case Grade::kIdeal:
            return kGood;
        case Grade::kFair:
            return kNotice;
        case Grade::kPoor:
            break;
    }
    return kBad;
}

// The first column is aligned to the left, the others to the right; the third has the colour of
// its grade.
std::string row_of(const Cells& cells, const std::array<std::size_t, kCells>& widths, const Text& text,
                   const fmt::text_style& style) {
    std::string row = fmt::format("    {:<{}}", cells[0], widths[0]);
    for (std::size_t i = 1; i < kCells; ++i) {
        const std::string cell = fmt::format("{:>{}}", cells[i], widths[i]);
        row += "  " + (i == 2 ? text.in(style, cell) : cell);
    }
    return row;
}

std::array<std::size_t, kCells> widths_of(const std::vector<InspectedLine>& lines) {
    std::array<std::size_t, kCells> widths{};
    const auto widen = [&widths](const Cells& cells) {
        for (std::size_t i = 0; i < kCells; ++i)
            widths[i] = std::max(widths[i], cells[i].size());
    };
    widen(kColumnNames);
    for (const InspectedLine& line : lines) {
        for (const AccessLine* access : line.accesses)
            widen(cells_of(*access, line.blocks_each));
    }
    return widths;
}

void add_lines(Text& text, std::vector<InspectedLine> lines, Sources& sources) {
    const std::size_t left_out = lines.size() - std::min(lines.size(), kShownLines);
    lines.resize(lines.size() - left_out);
    const auto widths = widths_of(lines);
    text.line(text.in(kQuiet, row_of(kColumnNames, widths, text, {})));
    for (const InspectedLine& line : lines) {
        text.line(fmt::format("  {}: {}", text.in(kQuiet, place(line.source)),
                              text.in(kHeading, sources.text(line.source))));
        for (const AccessLine* access : line.accesses) {
            text.line(row_of(cells_of(*access, line.blocks_each), widths, text, style_of(grade(*access))));
            text.paragraph(6, explain(*access), grade(*access) == Grade::kIdeal ? kQuiet : fmt::text_style());
        }
    }
    if (left_out > 0)
        text.line(fmt::format("  ... and {} cheaper lines; --html and --json have them all", left_out));
}

void add_facts(Text& text, const Facts& facts) {
    for (const auto& [fact, value] : facts)
        text.line(fmt::format("  {:<20}  {}", fact, value));
}

void add_finding(Text& text, const Finding& finding) {
    const std::string times = finding.count > 1 ? fmt::format(" ({} times)", finding.count) : "";
    text.line(fmt::format("  {} {}{}: {}", text.in(kBad, "FINDING"), text.in(kBad, finding.kind), times,
                          place(finding.source)));
    text.paragraph(4, finding.message);
    text.line(fmt::format("    {}: {}", place(finding.source), thread_name(finding.thread, finding.block)));
    if (finding.other) {
        text.line(fmt::format("    {}: {}", place(*finding.other),
                              thread_name(finding.other_thread, finding.other_block)));
    }
    text.paragraph(4, finding.why);
}

void add_kernel(Text& text, const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits,
                Sources& sources) {
    text.line(fmt::format("{}: {}", text.in(kHeading, short_name(kernel.name)), extent(kernel)));
    if (!kernel.lines.empty()) add_lines(text, costliest_first(kernel), sources);
    add_facts(text, facts_of(kernel, limits));
    for (const Finding& finding : kernel.findings)
        add_finding(text, finding);
}

void add_version(Text& text, const InspectedVersion& version,
                 const std::optional<MultiprocessorLimits>& limits, Sources& sources) {
    const std::string state = !version.cannot_run.empty() ? ", not run"
                              : !version.judged           ? ""
                              : version.verified          ? ", " + text.in(kGood, "verified")
                                                          : ", " + text.in(kBad, "WRONG RESULT");
    text.line();
    text.line(fmt::format("{} {}, {}{}", text.in(kQuiet, "==="), text.in(kHeading, version.version),
                          version.problem, state));
    text.paragraph(2, version.cannot_run);
    text.paragraph(2, version.failure);
    add_facts(text, facts_of(version));
    for (const KernelInspection& kernel : version.kernels)
        add_kernel(text, kernel, limits, sources);
}

}  // namespace

std::string inspection_text(const InspectionFile& file, const std::optional<MultiprocessorLimits>& limits,
                            Sources& sources, bool colour) {
    Text text(colour);
    for (const InspectedVersion& version : file.results)
        add_version(text, version, limits, sources);
    const std::size_t findings = count_findings(file);
    text.line();
    if (std::ranges::all_of(file.results, &std::vector<KernelInspection>::empty,
                            &InspectedVersion::kernels)) {
        text.line("nothing was inspected");
        return text.take();
    }
    text.line(findings == 0 ? text.in(kGood, "no findings")
                            : text.in(kBad, fmt::format("{} finding{}", findings, findings == 1 ? "" : "s")));
    return text.take();
}

}  // namespace course::tool
