// The page of an inspection, from made-up figures: its contents, and whether it is accessible to
// all readers. Node.js runs the script that is in the page.
#include "inspect_page.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "inspect_code.hpp"
#include "inspect_example.hpp"
#include "inspect_html.hpp"
#include "subprocess.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

class Page : public testing::Test {
  protected:
    Page() { directory_.write("day/kernel.cu", kExampleSource); }

    void SetUp() override {
        if (capture({"node", "--version"}).exit_code != 0)
            GTEST_SKIP() << "no Node.js: scripts/install_dependencies.sh --developer";
    }

    // The file as it is written.
    std::string written(const InspectionFile& file) {
        return inspection_page({"Day 9: Transpose & more", "Why <slow>?"}, file, kExampleLimits, sources_);
    }
    // The page after its script has run, as in a browser.
    std::string page(const InspectionFile& file) {
        const Captured shown = capture({"node", SHOW_PAGE, directory_.write("page.html", written(file))});
        EXPECT_EQ(shown.exit_code, 0) << shown.output;
        return shown.output;
    }
    // Of one access.
    std::string picture(const AccessLine& line) {
        InspectionFile file = example_inspection();
        file.results[0].kernels[0].lines = {at(4, line)};
        const std::string html = page(file);
        const auto begin = html.find("<svg", html.find("<section id=\"v0\""));
        return html.substr(begin, html.find("</svg>", begin) - begin);
    }

    TemporaryDirectory directory_;
    Sources sources_{directory_.path()};
};

std::vector<std::string> matches(const std::string& text, const char* expression) {
    const std::regex pattern(expression);
    std::vector<std::string> found;
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
        found.push_back((*match)[1]);
    return found;
}

std::string style_sheet() {
    const std::size_t begin = kInspectHtml.find("<style>");
    return std::string(kInspectHtml.substr(begin, kInspectHtml.find("</style>") - begin));
}

bool shows(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A version that makes `requests` requests to global memory, of `sectors` sectors each; 4 would do.
InspectedVersion version(const std::string& name, std::uint64_t requests, unsigned sectors) {
    KernelInspection kernel = example_kernel();
    kernel.lines = {at(4, access(Space::kGlobal, Operation::kLoad, 4, sectors, stride(4), requests))};
    return {.problem = "p", .version = name, .verified = true, .kernels = {kernel}};
}

// --- What stands in it ---------------------------------------------------------------------------

TEST_F(Page, HasTheLessonsTitleAboveAndTheCommitBelow) {
    const std::string html = page(example_inspection());
    EXPECT_TRUE(shows(html, "<title>Day 9: Transpose &amp; more, inspected</title>"));
    EXPECT_TRUE(shows(html, "<h1>Day 9: Transpose &amp; more</h1>\n<p>Why &lt;slow&gt;?</p>"));
    EXPECT_EQ(count(html, "<code>abc</code>"), 1U);
    EXPECT_GT(html.find("commit <code>abc</code>"), html.find("</main>"));
}

TEST_F(Page, ShowsTheSourceFromTheKernelsBeginning) {
    const std::string html = page(example_inspection());
    const std::string plain = std::regex_replace(html, std::regex("</?span[^>]*>"), "");
    for (const char* line : {"// Idea: a column.", "template &lt;int TILE&gt;", "    tile[y][x] = in[i];",
                             "    out[i] = tile[x][y] &lt; limit &amp;&amp; &quot;&amp;&quot;;"})
        EXPECT_EQ(count(plain, fmt::format("<code>{}</code>", line)), 1U) << line;
    EXPECT_TRUE(shows(html, "transpose&lt;32, true&gt;"));
    EXPECT_EQ(count(html, "<details open>"), 1U) << "the costliest line is open";
    EXPECT_TRUE(shows(html, "<details open><summary class=\"row\"><span class=\"line\">5<"));
    EXPECT_EQ(count(html, "<svg"), 4U) << "a picture for each access, and the example";
    EXPECT_TRUE(shows(html, "32 lanes hit bank 0"));
}

TEST_F(Page, PutsTheCountsBehindTheCode) {
    const std::string html = page(example_inspection());
    const auto row = html.find("<span class=\"line\">5</span>");
    EXPECT_EQ(html.find("<code>", row), row + std::string("<span class=\"line\">5</span>").size());
    EXPECT_LT(html.find("</code>", row), html.find("class=\"counts\"", row));
    EXPECT_TRUE(
        shows(html, "<b class=\"chip bad\">32 x ideal</b> <code>tile</code> load: 32 wavefronts, ideal 1<"))
        << "of a bad access the ideal is told";
    EXPECT_TRUE(shows(html, "<b class=\"chip good\">ideal</b> <code>tile</code> load: 4 sectors<"));
}

TEST_F(Page, ABroadcastIsExplained) {
    const std::string html = page(example_inspection());
    EXPECT_TRUE(shows(html,
                      "<b class=\"chip quiet\">broadcast</b> <code>tile</code> load: 1 wavefront, each "
                      "element for 32 lanes<"));
    EXPECT_TRUE(shows(html, "A broadcast: 32 lanes want the same element."));
}

TEST_F(Page, EqualAccessesOfALineAreFolded) {
    InspectionFile file = example_inspection();
    file.results[0].kernels[0].lines.assign(32, at(4, global_load(4, 4, stride(4))));
    const std::string html = page(file);
    EXPECT_TRUE(shows(html, "load: 4 sectors (x 32)</span>"));
    EXPECT_EQ(count(html, "class=\"card\""), 1U);
    EXPECT_TRUE(shows(html, "<code>tile</code></b> (x 32). 10 requests"));
    file.results[0].kernels[0].lines[1].requests = 7;
    EXPECT_EQ(count(page(file), "class=\"card\""), 3U) << "one of them is not like its neighbours";
}

TEST_F(Page, BytesOfVersionsAreBarsOfOneScale) {
    InspectionFile file = example_inspection();
    file.results = {version("slow", 1000, 16), version("fast", 500, 4)};
    const std::string html = page(file);
    EXPECT_TRUE(shows(html,
                      "<i class=\"global\" style=\"width:25.00%\"></i><i class=\"waste\" "
                      "style=\"width:75.00%\"></i></span><span class=\"amount\">512 KB <span "
                      "class=\"bad\">4 x ideal</span>"));
    EXPECT_TRUE(shows(html,
                      "<i class=\"global\" style=\"width:12.50%\"></i></span><span "
                      "class=\"amount\">64 KB</span>"));
    EXPECT_EQ(count(html, "<span>shared</span><span>none</span>"), 2U);
    EXPECT_TRUE(shows(html, "the longest is 512 KB."));
}

TEST_F(Page, EachProblemHasAScaleOfItsOwn) {
    InspectionFile file = example_inspection();
    file.results = {version("slow", 1000, 16), version("fast", 500, 4)};
    file.results[1].problem = "q";
    EXPECT_EQ(count(page(file), "style=\"width:100.00%\""), 1U);
    EXPECT_TRUE(shows(page(file), "the longest is 64 KB."));
}

TEST_F(Page, BytesOfSampledBlocksAreThoseOfAllBlocks) {
    InspectionFile file = example_inspection();
    file.results = {version("sampled", 1000, 4)};
    EXPECT_FALSE(shows(page(file), "estimated"));
    file.results[0].kernels[0].blocks = 64;
    EXPECT_EQ(bytes_moved(file.results[0], Space::kGlobal), (BytesMoved{512000, 0}));
    EXPECT_TRUE(shows(page(file), "<span class=\"amount\">512 KB</span>"));
    EXPECT_TRUE(shows(page(file), "estimated"));
}

TEST_F(Page, VersionsThatDidNotRunAreNamedOnce) {
    const std::string html = page(example_inspection());
    EXPECT_TRUE(shows(html, "not run</div>\n<div><a href=\"#v1\">wide</a></div>"));
    EXPECT_TRUE(shows(html, "<p>too wide</p>"));
    EXPECT_EQ(count(html, "<div class=\"bar"), 2U) << "those of the version that ran";
}

TEST_F(Page, ListsTheVersionsAndMarksThoseWithFindings) {
    InspectionFile file = example_inspection();
    const auto navigation = [&] {
        const std::string html = page(file);
        return html.substr(html.find("<nav"), html.find("</nav>") - html.find("<nav"));
    };
    EXPECT_TRUE(
        shows(navigation(), "<li class=\"group\">matrix 128x128</li>\n<li><a href=\"#v0\">plain</a>"));
    EXPECT_FALSE(shows(navigation(), "wide")) << "it has not run";
    file.results[0].kernels[0].findings = {example_race()};
    EXPECT_TRUE(shows(navigation(), "<a href=\"#v0\">plain <b class=\"bad\">!</b></a>"));
    EXPECT_TRUE(shows(page(file), "<b class=\"bad\">1 finding</b>"));
}

TEST_F(Page, MarksTheLinesOfFindings) {
    InspectionFile file = example_inspection();
    file.results[0].kernels[0].lines.clear();
    file.results[0].kernels[0].findings = {example_race()};
    const std::string html = page(file);
    EXPECT_EQ(count(html, "<b class=\"chip bad\">finding</b>"), 2U);
    EXPECT_TRUE(shows(html, "thread (3, 4, 0) of block (1, 0, 0)"));
}

TEST_F(Page, WhatIsUnknownIsNotMadeUp) {
    InspectionFile file = example_inspection();
    KernelInspection& strange = file.results[0].kernels[0];
    strange.inspected_blocks = strange.blocks = strange.threads_per_block = 0;
    strange.lines = {at(0, global_load(4, 4, stride(4))), at(99, global_load(4, 4, stride(4)))};
    strange.lines[0].source.file = "";
    strange.lines[1].requests = 0;
    const std::string html = page(file);
    EXPECT_TRUE(shows(html, "class=\"line\">99<")) << "a line beyond the file's end";
    EXPECT_TRUE(shows(html, "class=\"line\">?<"));
    EXPECT_TRUE(shows(html, "an unknown place"));
    EXPECT_FALSE(shows(html, ":nan")) << "a width that cannot be computed";
}

TEST_F(Page, TheInspectionCannotEndItsScript) {
    directory_.write("day/kernel.cu",
                     "// </script><b>\nint x = 1 << 2;\n\n    tile[y][x] = in[i];  // \xff\n");
    InspectionFile file = example_inspection();
    file.results[0].failure = "</script><!--";
    EXPECT_EQ(count(written(file), "</script>"), count(std::string(kInspectHtml), "</script>"));
    EXPECT_TRUE(shows(page(file), "<p>&lt;/script&gt;&lt;!--</p>"));
    EXPECT_TRUE(shows(page(file), "tile[y][x] = in[i];"));
}

// --- Pictures ------------------------------------------------------------------------------------

TEST_F(Page, APictureShowsAColumnAsOneBankAndARowAsAll) {
    const std::string column = picture(shared_load(4, 4, [](auto lane) { return lane % 4 * 128; }));
    EXPECT_EQ(count(column, "class=\"once\""), 1U);
    EXPECT_EQ(count(column, "class=\"again\""), 3U);
    EXPECT_EQ(count(column, "h20v16h-20z"), 4U * 31U) << "banks with nothing to do";
    const std::string row = picture(shared_load(4, 1, stride(4)));
    EXPECT_EQ(count(row, "class=\"once\""), 32U);
    EXPECT_EQ(count(row, "class=\"idle\""), 0U);
}

TEST_F(Page, RowsOfAPictureThatLookAlikeAreFolded) {
    const std::string column = picture(shared_load(4, 32, stride(128)));
    EXPECT_EQ(count(column, "class=\"once\""), 1U);
    EXPECT_EQ(count(column, "class=\"again\""), 2U) << "the second and the last of 32 rows";
    EXPECT_EQ(count(column, "h20v16h-20z"), 3U * 31U);
    EXPECT_NE(column.find("and 29 more rows like these (x 32 in all)"), std::string::npos);
    EXPECT_NE(column.find("bank 0, word at byte 3968: lane 31<"), std::string::npos) << "the last row";

    const std::string sectors = picture(global_load(4, 32, stride(4096)));
    EXPECT_EQ(count(sectors, "class=\"moved\""), 3U);
    EXPECT_NE(sectors.find("and 29 more rows like these (x 32 in all)"), std::string::npos);
    EXPECT_NE(sectors.find(">126976<"), std::string::npos) << "the last row";
}

TEST_F(Page, RowsOfAPictureThatDifferAreAllDrawn) {
    const std::string four = picture(global_load(4, 4, first_lanes(4, stride(4096))));
    EXPECT_EQ(count(four, "class=\"moved\""), 4U);
    EXPECT_EQ(four.find("more rows"), std::string::npos) << "four are not many";
    const std::string shifting = picture(global_load(4, 32, stride(132)));
    EXPECT_EQ(count(shifting, "class=\"moved\""), 32U) << "other bytes in each row";
    const std::string both =
        picture(global_load(4, 11, [](auto lane) { return lane < 6 ? lane * 4096 : lane * 4; }));
    EXPECT_EQ(count(both, "class=\"moved\""), 3U + 4U);
}

TEST_F(Page, APictureShowsWhatOfASectorIsWanted) {
    const std::string shifted = picture(global_load(4, 5, stride(4, 4)));
    EXPECT_EQ(count(shifted, "class=\"moved\""), 5U);
    EXPECT_EQ(count(shifted, "class=\"once\""), 128U) << "byte by byte";
    EXPECT_EQ(count(shifted, "class=\"idle\""), 3U) << "the rest of the second line of 128 bytes";
    EXPECT_NE(shifted.find("byte 128: lane 31<"), std::string::npos);
}

TEST_F(Page, RunsOfLanesInAPicture) {
    const auto of_lanes = [&](const std::set<std::int64_t>& lanes) {
        return picture(
            global_load(4, 1, [&](auto lane) { return lanes.contains(lane) ? std::int64_t{0} : -1; }));
    };
    EXPECT_TRUE(shows(of_lanes({7}), "<title>byte 0: lane 7</title>"));
    EXPECT_TRUE(shows(of_lanes({0, 1, 2, 5, 6, 31}), "<title>byte 0: lanes 0-2, 5, 6, 31</title>"));
    EXPECT_TRUE(shows(of_lanes({}), "0 sectors of 32 bytes"));
}

// --- Can it be read? -----------------------------------------------------------------------------

TEST_F(Page, NeedsNothingFromElsewhere) {
    InspectionFile file = example_inspection();
    file.results[0].kernels[0].findings = {example_race()};
    const std::string html = page(file);
    for (const char* outside : {"http:", "https:", "src=", "@import", "import(", "fetch(", "url(", "<link"}) {
        EXPECT_EQ(html.find(outside), std::string::npos) << outside;
        EXPECT_EQ(written(file).find(outside), std::string::npos) << outside;
    }
    EXPECT_EQ(count(html, "<script>"), 1U);
    for (const char* element :
         {"html",    "head",    "body", "style", "script",  "header", "nav",  "main", "footer", "ul",
          "li",      "dl",      "dt",   "dd",    "section", "div",    "b",    "i",    "a",      "h2",
          "details", "summary", "span", "code",  "svg",     "g",      "text", "h3",   "p",      "title"}) {
        const std::regex opening(std::string("<") + element + "[ >]");
        const auto opened = std::distance(std::sregex_iterator(html.begin(), html.end(), opening), {});
        EXPECT_EQ(static_cast<std::size_t>(opened), count(html, std::string("</") + element + ">"))
            << element;
    }
}

TEST_F(Page, EveryLinkInItHasATarget) {
    const std::string html = page(example_inspection());
    const std::vector<std::string> links = matches(html, "href=\"#([^\"]*)\"");
    EXPECT_EQ(links.front(), "main") << "the first is the one that skips the head";
    for (const std::string& link : links)
        EXPECT_EQ(count(html, fmt::format(" id=\"{}\"", link)), 1U) << link;
}

TEST_F(Page, WhatScrollsCanBeReachedByKeyAndHasAName) {
    const std::string html = page(example_inspection());
    const auto regions = count(html, "role=\"region\"");
    EXPECT_EQ(regions, count(html, "class=\"source\"") + 3) << "listings, and the pictures of three accesses";
    EXPECT_EQ(matches(html, "(role=\"region\" aria-label=\"[^\"]+\" tabindex=\"0\")").size(), regions);
    EXPECT_EQ(matches(html, "(<svg role=\"img\"[^>]*><title>[^<]+</title>)").size(), count(html, "<svg"));
    EXPECT_TRUE(shows(html, "<nav aria-label="));
    EXPECT_TRUE(shows(html, "<html lang=\"en\">"));
    EXPECT_TRUE(shows(style_sheet(), ":focus-visible { outline: 3px"));
}

TEST_F(Page, FitsAPhoneAndTheDark) {
    EXPECT_TRUE(shows(page(example_inspection()), "name=\"viewport\" content=\"width=device-width"));
    EXPECT_TRUE(shows(style_sheet(), "color-scheme: light dark"));
}

// --- Contrast, as WCAG 2.2 defines it ------------------------------------------------------------

using Colours = std::map<std::string, std::string>;

// The variables that a part of the style sheet sets.
Colours colours(const std::string& style) {
    const std::regex pattern("--([a-z]+): (#[0-9a-f]{6});");
    Colours found;
    for (std::sregex_iterator match(style.begin(), style.end(), pattern), end; match != end; ++match)
        found[(*match)[1]] = (*match)[2];
    return found;
}

double luminance(const std::string& colour) {
    const auto channel = [&](std::size_t at) {
        const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
        return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

double contrast(const std::string& one, const std::string& other) {
    const double a = luminance(one);
    const double b = luminance(other);
    return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

TEST(Contrast, IsThatOfTheStandard) {
    EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
    EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.48, 0.01) << "the well-known grey that just fails";
}

struct Pairs {
    double least;
    std::vector<std::string> above;
    std::vector<std::string> below;
};

// Foreground and background colours with their minimum contrast. 4.5: text. 3: graphics that must
// be distinguishable. 0: decoration.
const std::vector<Pairs> kPairs = {
    {4.5,
     {"text", "quiet", "link", "good", "fair", "bad", "comment", "keyword", "cuda", "string", "number",
      "directive"},
     {"ground", "card"}},
    {4.5, {"lane"}, {"once", "again"}},
    {4.5, {"text"}, {"moved"}},
    {3, {"global", "shared", "waste", "once", "again", "edge"}, {"ground", "card"}},
    {3, {"global", "shared", "waste"}, {"empty"}},
    {3, {"once", "again"}, {"idle"}},
    {3, {"once", "again"}, {"moved"}},
    {0, {"rule"}, {"ground"}},
};

TEST(Contrast, OfAllColourPairsOfThePageIsEnough) {
    const std::string style = style_sheet();
    const std::size_t dark = style.find("@media (prefers-color-scheme: dark)");
    ASSERT_NE(dark, std::string::npos);
    for (const std::string& part : {style.substr(0, dark), style.substr(dark)}) {
        const Colours known = colours(part);
        for (const Pairs& pairs : kPairs) {
            for (const std::string& above : pairs.above) {
                for (const std::string& below : pairs.below) {
                    ASSERT_TRUE(known.contains(above) && known.contains(below)) << above << " on " << below;
                    EXPECT_GE(contrast(known.at(above), known.at(below)), pairs.least)
                        << above << " " << known.at(above) << " on " << below << " " << known.at(below)
                        << (part == style.substr(dark) ? " in the dark" : "");
                }
            }
        }
    }
}

TEST(Contrast, NoColourEscapesTheTest) {
    const std::string style = style_sheet();
    const std::size_t dark = style.find("@media (prefers-color-scheme: dark)");
    const std::size_t rules = style.find("} }", dark);
    ASSERT_NE(rules, std::string::npos);
    EXPECT_EQ(matches(style.substr(rules), "(#[0-9a-f]{3,8}\\b)").size(), 0U)
        << "a colour that is not a variable";
    EXPECT_EQ(matches(style.substr(rules), "(opacity|rgb|hsl|color-mix)").size(), 0U);
    std::set<std::string> tested;
    for (const Pairs& pairs : kPairs) {
        tested.insert(pairs.above.begin(), pairs.above.end());
        tested.insert(pairs.below.begin(), pairs.below.end());
    }
    for (const std::string& used : matches(style, "var\\(--([a-z]+)\\)"))
        EXPECT_TRUE(tested.contains(used)) << used;
    EXPECT_EQ(colours(style.substr(0, dark)).size(), tested.size()) << "a variable for nothing";
}

// --- Code in colours -----------------------------------------------------------------------------

using Code = std::vector<CodeLine>;

TEST(Coloured, KnowsTheKindsOfWords) {
    EXPECT_EQ(coloured({"__global__ void k(int n) {  // all"}), (Code{{{"cuda", "__global__"},
                                                                       {"", " "},
                                                                       {"keyword", "void"},
                                                                       {"", " k("},
                                                                       {"keyword", "int"},
                                                                       {"", " n) {  "},
                                                                       {"comment", "// all"}}}));
    EXPECT_EQ(
        coloured({"x = y < 1.5f && \"<\" == c;"}),
        (Code{{{"", "x = y < "}, {"number", "1.5f"}, {"", " && "}, {"string", "\"<\""}, {"", " == c;"}}}));
    EXPECT_EQ(coloured({"atomicAdd(p, threadIdx.x);"}),
              (Code{{{"cuda", "atomicAdd"}, {"", "(p, "}, {"cuda", "threadIdx"}, {"", ".x);"}}}));
}

TEST(Coloured, DirectivesAreAlsoIndented) {
    EXPECT_EQ(coloured({"#include <a>", "    #pragma unroll", "int x;"}),
              (Code{{{"directive", "#include <a>"}},
                    {{"", "    "}, {"directive", "#pragma"}, {"", " "}, {"directive", "unroll"}},
                    {{"keyword", "int"}, {"", " x;"}}}));
}

TEST(Coloured, NothingCrossesTheEndOfALine) {
    EXPECT_EQ(coloured({"/* one", "two */ x", ""}),
              (Code{{{"comment", "/* one"}}, {{"comment", "two */ "}, {"", "x"}}, {}}));
    EXPECT_EQ(coloured({}), Code{});
    EXPECT_EQ(coloured({"\"unclosed", "'"}).size(), 2U);
}

}  // namespace
}  // namespace course::tool
