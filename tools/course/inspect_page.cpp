#include "inspect_page.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "inspect_code.hpp"
#include "inspect_explain.hpp"
#include "inspect_html.hpp"
#include "inspect_request.hpp"

namespace course::tool {
namespace {

using Json = nlohmann::ordered_json;

// --- One access ----------------------------------------------------------------------------------

std::string_view style_of(Grade grade) {
    return grade == Grade::kIdeal ? "good" : grade == Grade::kFair ? "fair" : "bad";
}

// [[[word, lanes], ...] of bank 0, ... of bank 31], for each group of lanes that is served at once
Json banks_of(const AccessLine& line) {
    Json groups = Json::array();
    for (const BankGroup& group : bank_groups(line)) {
        Json banks = Json::array();
        for (const std::vector<Wanted>& words : group.banks) {
            banks.push_back(Json::array());
            for (const Wanted& word : words)
                banks.back().push_back(Json::array({word.index, word.lanes}));
        }
        groups.push_back(std::move(banks));
    }
    return groups;
}

// [sector, [lanes that access byte 0, ... byte 31]]
Json sectors_of(const AccessLine& line) {
    Json touched = Json::array();
    for (const Sector& sector : sectors(line))
        touched.push_back(Json::array({sector.index, sector.bytes}));
    return touched;
}

Json of_access(const AccessLine& access, double blocks_each) {
    std::string operation(name(access.operation));
    std::ranges::replace(operation, '_', ' ');
    const double ideal = static_cast<double>(access.ideal);
    Json json = {
        {"what", what(access)},
        {"operation", operation},
        {"array", array_of(access)},
        {"unit", unit(access)},
        {"requests", requests_text(access, blocks_each)},
        {"transactions", transactions_per_request(access)},
        {"ideal", ideal_per_request(access)},
        {"times_ideal", ideal == 0 ? 0 : static_cast<double>(access.transactions) / ideal},
        {"grade", style_of(grade(access))},
        {"lanes", lanes_per_request(access)},
        {"lanes_per_element", lanes_per_element(access)},
        {"broadcast", is_broadcast(access)},
        {"sentence", explain(access)},
        {"sharing", explain_sharing(access)},
        {"worst",
         {{"warp", access.worst.warp},
          {"block", access.worst.block},
          {"transactions", access.worst.transactions}}},
    };
    if (access.space == Space::kShared) {
        json["banks"] = banks_of(access);
    } else {
        json["percent_used"] = 100 * share_of_bytes_used(access);
        json["sectors"] = sectors_of(access);
    }
    return json;
}

// --- Kernels and versions ------------------------------------------------------------------------

Json of_place(const SourceLine& source, const std::array<unsigned, 3>& thread,
              const std::array<unsigned, 3>& block) {
    return {{"file", source.file},
            {"line", source.line},
            {"place", place(source)},
            {"thread", thread_name(thread, block)}};
}

Json of_finding(const Finding& finding) {
    Json json = {{"kind", finding.kind},
                 {"count", finding.count},
                 {"message", finding.message},
                 {"why", finding.why},
                 {"at", of_place(finding.source, finding.thread, finding.block)}};
    if (finding.other) json["other_at"] = of_place(*finding.other, finding.other_thread, finding.other_block);
    return json;
}

// The lines are in the order of their cost.
Json of_kernel(const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits) {
    std::uint64_t bytes = 0;
    Json lines = Json::array();
    for (const InspectedLine& line : costliest_first(kernel)) {
        Json accesses = Json::array();
        for (const AccessLine* access : line.accesses)
            accesses.push_back(of_access(*access, line.blocks_each));
        bytes += bytes_moved(line);
        lines.push_back({{"file", line.source.file},
                         {"line", line.source.line},
                         {"bytes", bytes_moved(line)},
                         {"accesses", std::move(accesses)}});
    }
    Json findings = Json::array();
    for (const Finding& finding : kernel.findings)
        findings.push_back(of_finding(finding));
    return {
        {"name", short_name(kernel.name)},   {"extent", extent(kernel)},        {"bytes", bytes},
        {"facts", facts_of(kernel, limits)}, {"findings", std::move(findings)}, {"lines", std::move(lines)}};
}

Json of_bytes(const BytesMoved& moved) {
    return {{"ideal", moved.ideal}, {"beyond_ideal", moved.beyond_ideal}, {"text", bytes_text(moved.all())}};
}

Json of_version(const InspectedVersion& version, const std::optional<MultiprocessorLimits>& limits) {
    Json kernels = Json::array();
    for (const KernelInspection& kernel : version.kernels)
        kernels.push_back(of_kernel(kernel, limits));
    return {{"version", version.version},
            {"problem", version.problem},
            {"judged", version.judged},
            {"verified", version.verified},
            {"cannot_run", version.cannot_run},
            {"failure", version.failure},
            {"facts", facts_of(version)},
            {"sampled", is_sampled(version)},
            {"moved",
             {{"global", of_bytes(bytes_moved(version, Space::kGlobal))},
              {"shared", of_bytes(bytes_moved(version, Space::kShared))}}},
            {"kernels", std::move(kernels)}};
}

// The lines of every file in the inspection, in the colours of its code.
Json of_sources(const InspectionFile& file, Sources& sources) {
    std::set<std::string> names;
    for (const InspectedVersion& version : file.results) {
        for (const KernelInspection& kernel : version.kernels) {
            for (const AccessLine& line : kernel.lines)
                names.insert(line.source.file);
            for (const Finding& finding : kernel.findings) {
                names.insert(finding.source.file);
                if (finding.other) names.insert(finding.other->file);
            }
        }
    }
    Json json = Json::object();
    for (const std::string& name : names) {
        Json& lines = json[name] = Json::array();
        for (const CodeLine& line : coloured(sources.lines(name))) {
            lines.push_back(Json::array());
            for (const CodePart& part : line)
                lines.back().push_back(part.style.empty() ? Json(part.text)
                                                          : Json::array({part.style, part.text}));
        }
    }
    return json;
}

}  // namespace

std::string inspection_page(const PageHead& head, const InspectionFile& file,
                            const std::optional<MultiprocessorLimits>& limits, Sources& sources) {
    Json versions = Json::array();
    for (const InspectedVersion& version : file.results)
        versions.push_back(of_version(version, limits));
    const Json json = {
        {"title", head.title},   {"question", head.question},       {"day", file.day},
        {"commit", file.commit}, {"versions", std::move(versions)}, {"sources", of_sources(file, sources)}};
    std::string page(kInspectHtml);
    constexpr std::string_view kBefore = R"(id="inspection">)";
    const std::size_t at = page.find(kBefore) + kBefore.size();
    // "</script>" in a line of code would end the JSON.
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (std::size_t less = text.find('<'); less != std::string::npos; less = text.find('<', less))
        text.replace(less, 1, "\\u003c");
    return page.insert(at, text);
}

}  // namespace course::tool
