// The page of a profile, from made-up screens: what stands in it, and whether all readers can use
// it.
#include "profile_page.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "inspect_example.hpp"

namespace course::tool {
namespace {

Screen screen(const std::string& name, double memory) {
    return {.name = name,
            .problem = "p <1>",
            .gpu = "NVIDIA H200",
            .inspected_problem = "q",
            .not_inspected = "",
            .limited_by = "memory",
            .reason = "memory is busy & \"full\"",
            .limit = &advice_on(advice_on_limits(), "memory"),
            .signs = {},
            .units = {{"memory", "92 %", "", memory, true}, {"FMA", "0 %", "", 0.1, true}},
            .hardware = {{"time", "1.50 ms", "", memory}},
            .waits = {{0.91, &advice_on(advice_on_stalls(), "barrier")}},
            .predictable = {{"sectors per load", "16.00", "4.00", 16.0, false, 4.0}, {"nothing", "", ""}}};
}

std::string page(const std::vector<Screen>& screens, bool comparison = false) {
    return profile_page({"Day 9: Transpose & more", "Why <slow>?"}, screens, comparison, "Counted on <day>.");
}

TEST(ProfilePage, HasTheScreensAsSections) {
    const std::string html = page({screen("plain", 92), screen("wide", 46)});
    for (const char* part :
         {"<title>Day 9: Transpose &amp; more, profiled</title>", "<p>Why &lt;slow&gt;?</p>",
          "<h2>plain <span class=\"quiet\">p &lt;1&gt;</span></h2>",
          "<b>Limited by memory</b>: memory is busy &amp; &quot;full&quot;", "<dt>time</dt><dd>1.50 ms</dd>",
          "style=\"width:92.0%\"", "style=\"width:46.0%\"",
          "91 % of their time, warps wait at a barrier for slower warps of the block (<code>barrier</code>)",
          "<th scope=\"row\">sectors per load</th><td>16.00</td><td>4.00</td>", "inspected here, q",
          "(day 15, day 38)", "Counted on &lt;day&gt;."})
        EXPECT_GE(count(html, part), 1U) << part;
    EXPECT_EQ(count(html, ">nothing<"), 0U) << "a row without figures";
    EXPECT_EQ(count(html, ">FMA<"), 0U) << "a bar of nothing";
    EXPECT_EQ(count(html, "What changed"), 0U);
}

TEST(ProfilePage, HasWhatStandsOutInsteadOfTheAdviceOnClassAndWaits) {
    EXPECT_EQ(count(page({screen("plain", 92)}), "<p>Try: "), 2U);
    Screen proved = screen("plain", 92);
    proved.signs = {{"32 > 4 sectors", &advice_on(advice_on_signs(), "uncoalesced accesses")}};
    const std::string html = page({proved});
    EXPECT_EQ(count(html, "<b>32 &gt; 4 sectors</b>: each request of a warp"), 1U);
    EXPECT_EQ(count(html, "<p>Try: "), 1U);
    EXPECT_EQ(count(html, "<p>Try: adjacent lanes on adjacent elements"), 1U);
}

TEST(ProfilePage, BeginsWithTheDifferencesOfAComparison) {
    const std::string html = page({screen("plain", 92), screen("wide", 46)}, true);
    EXPECT_EQ(count(html, "<td>0.5×</td>"), 1U);
    EXPECT_LT(html.find("<td>0.5×</td>"), html.find("<h2>plain"));
    EXPECT_EQ(count(html, "<td>-46 points</td>"), 1U);
}

TEST(ProfilePage, WithoutCountersOrInspectionHasOneColumn) {
    Screen inspected = screen("mine", 0);
    inspected.gpu.clear();
    inspected.limit = nullptr;
    EXPECT_EQ(count(page({inspected}), "only the hardware knows"), 0U);
    EXPECT_EQ(count(page({inspected}), "<th scope=\"row\">sectors per load</th><td>4.00</td></tr>"), 1U);
    Screen counted = screen("mine", 0);
    counted.not_inspected = "Not <here>.";
    EXPECT_EQ(count(page({counted}), "<th scope=\"row\">sectors per load</th><td>16.00</td></tr>"), 1U);
    EXPECT_EQ(count(page({counted}), "Not &lt;here&gt;."), 1U);
}

TEST(ProfilePage, NeedsNothingFromElsewhereAndFitsAPhoneAndTheDark) {
    const std::string html = page({screen("plain", 92), screen("wide", 46)}, true);
    for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "<link", "<script"})
        EXPECT_EQ(count(html, outside), 0U) << outside;
    for (const char* element :
         {"html", "head", "body", "style",   "header", "nav",   "main",  "footer", "ul", "li",
          "dl",   "dt",   "dd",   "section", "div",    "b",     "i",     "a",      "h2", "h3",
          "span", "code", "p",    "title",   "table",  "thead", "tbody", "tr",     "th", "td"}) {
        const std::regex opening(std::string("<") + element + "[ >]");
        const auto opened = std::distance(std::sregex_iterator(html.begin(), html.end(), opening), {});
        EXPECT_EQ(static_cast<std::size_t>(opened), count(html, std::string("</") + element + ">"))
            << element;
    }
    EXPECT_EQ(count(html, "prefers-color-scheme: dark"), 1U) << "the style of an inspection";
    EXPECT_EQ(count(html, "name=\"viewport\" content=\"width=device-width"), 1U);
    EXPECT_EQ(count(html, "<table>"), count(html, "role=\"region\" aria-label=\""))
        << "a table scrolls by key, too";
    const std::regex link("href=\"#([^\"]*)\"");
    for (std::sregex_iterator match(html.begin(), html.end(), link), end; match != end; ++match)
        EXPECT_EQ(count(html, " id=\"" + (*match)[1].str() + "\""), 1U) << (*match)[1];
}

TEST(ProfilePage, EveryColourIsOneOfTheStyleSheet) {
    const std::string html = page({screen("plain", 92)});
    std::set<std::string> set;
    std::set<std::string> used;
    const std::regex definition("--([a-z]+): #");
    const std::regex use("var\\(--([a-z]+)\\)");
    for (std::sregex_iterator match(html.begin(), html.end(), definition), end; match != end; ++match)
        set.insert((*match)[1]);
    for (std::sregex_iterator match(html.begin(), html.end(), use), end; match != end; ++match)
        used.insert((*match)[1]);
    EXPECT_GT(used.size(), 10U);
    for (const std::string& colour : used)
        EXPECT_TRUE(set.contains(colour)) << colour;
}

}  // namespace
}  // namespace course::tool
