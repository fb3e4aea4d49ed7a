#include "inspect_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "inspect_request.hpp"

namespace course::tool {
namespace {

constexpr int kCellWidth = 22;
constexpr int kCellHeight = 18;
constexpr int kMargin = 78;  // for labels, to the left
constexpr int kGap = 10;
constexpr int kRight = kMargin + static_cast<int>(kBanks) * kCellWidth;

std::string label(int x, int y, std::string_view anchor, std::string_view text,
                  std::string_view style = "axis") {
    return fmt::format(R"(<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>)", style, x, y, anchor,
                       text);
}

std::string box(int x, int y, int width, std::string_view style, std::string_view tooltip) {
    return fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>)",
                       style, x, y, width, kCellHeight - 2, tooltip);
}

// What fits into a cell: a lane, a run of lanes, or how many they are.
std::string in_a_cell(const std::vector<unsigned>& lanes) {
    const std::string text = runs(lanes);
    const bool fits = text.size() <= 4 && text.find(',') == std::string::npos;
    return fits ? text : fmt::format("{}x", lanes.size());
}

std::string svg(int height, std::string_view description, std::string_view content) {
    return fmt::format(R"(<svg class="picture" role="img" viewBox="0 0 {0} {1}" width="{0}" height="{1}">)"
                       "<title>{2}</title>{3}</svg>\n",
                       kRight + kGap, height, description, content);
}

// --- Banks -----------------------------------------------------------------------------------------------------------

std::string word_in_bank(std::size_t bank, std::size_t row, const Wanted& word, int y) {
    const int x = kMargin + static_cast<int>(bank) * kCellWidth;
    const std::string tooltip =
        fmt::format("bank {}, word at byte {}: lane{} {}", bank, word.index * kWordBytes,
                    word.lanes.size() == 1 ? "" : "s", runs(word.lanes));
    return box(x, y, kCellWidth - 2, row > 0 ? "again" : "once", tooltip) +
           label(x + kCellWidth / 2 - 1, y + 12, "middle", in_a_cell(word.lanes), "lane");
}

std::string picture_of_banks(const AccessLine& line) {
    std::string content = label(kMargin - kGap, 12, "end", "bank");
    for (unsigned bank = 0; bank < kBanks; ++bank) {
        const int middle = kMargin + static_cast<int>(bank) * kCellWidth + kCellWidth / 2 - 1;
        content += label(middle, 12, "middle", std::to_string(bank));
    }
    int y = 20;
    std::size_t wavefronts = 0;
    for (const BankGroup& group : bank_groups(line)) {
        std::vector<unsigned> lanes;
        for (const auto& words : group.banks) {
            for (const Wanted& word : words)
                lanes.insert(lanes.end(), word.lanes.begin(), word.lanes.end());
        }
        std::ranges::sort(lanes);
        lanes.erase(std::ranges::unique(lanes).begin(), lanes.end());
        content += label(kMargin - kGap, y + 12, "end", fmt::format("lanes {}", in_a_cell(lanes)));
        for (std::size_t row = 0; row < group.most_words(); ++row, y += kCellHeight, ++wavefronts) {
            for (std::size_t bank = 0; bank < kBanks; ++bank) {
                const std::vector<Wanted>& words = group.banks[bank];
                content += row < words.size()
                               ? word_in_bank(bank, row, words[row], y)
                               : box(kMargin + static_cast<int>(bank) * kCellWidth, y, kCellWidth - 2, "idle",
                                     fmt::format("bank {}: nothing to do", bank));
            }
        }
        y += kGap / 2;
    }
    return svg(y + 4, fmt::format("{} rows of banks", wavefronts), content);
}

// --- Sectors ---------------------------------------------------------------------------------------------------------

constexpr int kSectorsOfLine = 4;
constexpr int kWordsOfSector = static_cast<int>(kSectorBytes / kWordBytes);
constexpr int kSectorWidth = kWordsOfSector * kCellWidth;

// The bytes of one word that lanes want, and the lanes.
std::string word_in_sector(const Sector& sector, int word, int x, int y) {
    std::vector<unsigned> lanes;
    std::string content;
    for (unsigned byte = 0; byte < kWordBytes; ++byte) {
        const std::vector<unsigned>& wanted = sector.bytes[static_cast<unsigned>(word) * kWordBytes + byte];
        if (wanted.empty()) continue;
        lanes.insert(lanes.end(), wanted.begin(), wanted.end());
        const int from = kCellWidth * static_cast<int>(byte) / 4;
        const int to = kCellWidth * static_cast<int>(byte + 1) / 4;
        content += fmt::format(R"(<rect class="once" x="{}" y="{}" width="{}" height="{}"/>)", x + from, y,
                               to - from, kCellHeight - 2);
    }
    if (lanes.empty()) return "";
    std::ranges::sort(lanes);
    lanes.erase(std::ranges::unique(lanes).begin(), lanes.end());
    const auto offset = sector.index * kSectorBytes + word * static_cast<int>(kWordBytes);
    return fmt::format("<g><title>byte {}: lane{} {}</title>{}{}</g>", offset, lanes.size() == 1 ? "" : "s",
                       runs(lanes), content,
                       label(x + kCellWidth / 2, y + 12, "middle", in_a_cell(lanes), "lane"));
}

std::string touched_sector(const Sector& sector, int x, int y) {
    std::string content = fmt::format(
        R"(<rect class="moved" x="{}" y="{}" width="{}" height="{}"><title>moved, but not wanted</title></rect>)",
        x, y, kSectorWidth - 2, kCellHeight - 2);
    for (int word = 0; word < kWordsOfSector; ++word)
        content +=
            word_in_sector(sector, word, x + word * kCellWidth - (word + 1 == kWordsOfSector ? 2 : 0), y);
    return content;
}

std::string picture_of_sectors(const AccessLine& line) {
    const std::vector<Sector> touched = sectors(line);
    std::map<std::int64_t, std::vector<const Sector*>> lines;
    for (const Sector& sector : touched)
        lines[sector.index / kSectorsOfLine].push_back(&sector);

    std::string content = label(kMargin - kGap, 12, "end", "byte");
    for (int sector = 0; sector < kSectorsOfLine; ++sector) {
        content += label(kMargin + sector * kSectorWidth, 12, "start",
                         fmt::format("+{}", sector * static_cast<int>(kSectorBytes)));
    }
    int y = 20;
    for (const auto& [number, sectors_of_line] : lines) {
        content += label(kMargin - kGap, y + 12, "end",
                         std::to_string(number * kSectorsOfLine * static_cast<int>(kSectorBytes)));
        for (int i = 0; i < kSectorsOfLine; ++i) {
            const int x = kMargin + i * kSectorWidth;
            const auto found =
                std::ranges::find(sectors_of_line, number * kSectorsOfLine + i, &Sector::index);
            content += found == sectors_of_line.end() ? box(x, y, kSectorWidth - 2, "idle", "not touched")
                                                      : touched_sector(**found, x, y);
        }
        y += kCellHeight;
    }
    return svg(y + 4, fmt::format("{} sectors of 32 bytes", touched.size()), content);
}

}  // namespace

const std::string_view kPictureStyle = R"css(
.picture { max-width: 100%; height: auto; font: 10px ui-monospace, monospace; }
.picture .axis { fill: var(--quiet); }
.picture .lane { fill: #fff; pointer-events: none; }
.picture .once { fill: #2f6fb0; }
.picture .again { fill: #c0392b; }
.picture .moved { fill: #e0b4ae; }
.picture .idle { fill: var(--empty); }
)css";

std::string runs(const std::vector<unsigned>& numbers) {
    std::string text;
    for (std::size_t first = 0; first < numbers.size();) {
        std::size_t last = first;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
            ++last;
        if (last - first == 1) last = first;  // two in a row are two
        if (!text.empty()) text += ", ";
        text += last == first ? fmt::format("{}", numbers[first])
                              : fmt::format("{}-{}", numbers[first], numbers[last]);
        first = last + 1;
    }
    return text;
}

std::string picture(const AccessLine& line) {
    return line.space == Space::kShared ? picture_of_banks(line) : picture_of_sectors(line);
}

}  // namespace course::tool
