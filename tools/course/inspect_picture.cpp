#include "inspect_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
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
    const bool fits = text.size() <= 3 && text.find(',') == std::string::npos;
    return fits ? text : fmt::format("{}x", lanes.size());
}

std::string svg(int width, int height, std::string_view description, std::string_view content) {
    return fmt::format(R"(<svg role="img" viewBox="0 0 {0} {1}" width="{0}" height="{1}">)"
                       "<title>{2}</title>{3}</svg>",
                       width, height, description, content);
}

// Which rows are drawn: of five and more in a row that look alike the first two and the last. The
// others stand for those left out.
struct DrawnRow {
    std::size_t row = 0;
    std::size_t left_out = 0;  // of rows like this one, which follow it
};
template <class Shape>
std::vector<DrawnRow> drawn_rows(const std::vector<Shape>& shapes) {
    constexpr std::size_t kAlike = 5;
    std::vector<DrawnRow> drawn;
    for (std::size_t row = 0; row < shapes.size();) {
        std::size_t end = row + 1;
        while (end < shapes.size() && shapes[end] == shapes[row])
            ++end;
        if (end - row >= kAlike) {
            drawn.insert(drawn.end(), {{row, 0}, {row + 1, end - row - 3}, {end - 1, 0}});
        } else {
            for (std::size_t each = row; each < end; ++each)
                drawn.push_back({each, 0});
        }
        row = end;
    }
    return drawn;
}

std::string note_of_left_out(std::size_t left_out, int y) {
    return label(kMargin - kGap, y + 12, "end", "...") +
           label(kMargin, y + 12, "start",
                 fmt::format("and {} more rows like these (x {} in all)", left_out, left_out + 3), "fold");
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

// "lanes 8-15", or "5 lanes" where that is too long.
std::string label_of(const std::vector<unsigned>& lanes) {
    const std::string text = runs(lanes);
    return text.size() <= 5 ? "lanes " + text : fmt::format("{} lanes", lanes.size());
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
        content += label(kMargin - kGap, y + 12, "end", label_of(lanes));
        wavefronts += group.most_words();
        std::vector<std::array<bool, kBanks>> shapes(group.most_words());
        for (std::size_t row = 0; row < shapes.size(); ++row) {
            for (std::size_t bank = 0; bank < kBanks; ++bank)
                shapes[row][bank] = row < group.banks[bank].size();
        }
        for (const auto& [row, left_out] : drawn_rows(shapes)) {
            std::string idle;
            for (std::size_t bank = 0; bank < kBanks; ++bank) {
                const std::vector<Wanted>& words = group.banks[bank];
                if (row < words.size()) {
                    content += word_in_bank(bank, row, words[row], y);
                } else {
                    idle += fmt::format("M{} {}h{}v{}h-{}z", kMargin + static_cast<int>(bank) * kCellWidth, y,
                                        kCellWidth - 2, kCellHeight - 2, kCellWidth - 2);
                }
            }
            if (!idle.empty()) content += fmt::format(R"(<path class="idle" d="{}"/>)", idle);
            y += kCellHeight;
            if (left_out == 0) continue;
            content += note_of_left_out(left_out, y);
            y += kCellHeight;
        }
        y += kGap / 2;
    }
    return svg(kRight + kGap, y + 4,
               fmt::format("The banks of {} wavefronts, and the lanes that each serves", wavefronts),
               content);
}

// --- Sectors ---------------------------------------------------------------------------------------------------------

constexpr int kSectorsOfLine = 4;
constexpr int kWordsOfSector = static_cast<int>(kSectorBytes / kWordBytes);
constexpr int kSectorWidth = kWordsOfSector * kCellWidth;

// The bytes of one word that lanes want, and the lanes.
std::string word_in_sector(const Sector& sector, int word, int x, int y) {
    std::vector<unsigned> lanes;
    std::string content;
    bool all = true;  // of its bytes are wanted
    for (unsigned byte = 0; byte < kWordBytes; ++byte) {
        const std::vector<unsigned>& wanted = sector.bytes[static_cast<unsigned>(word) * kWordBytes + byte];
        all = all && !wanted.empty();
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
                       label(x + kCellWidth / 2, y + 12, "middle", in_a_cell(lanes), all ? "lane" : "part"));
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

// Which bytes of which sectors are wanted.
std::string shape_of(const std::vector<const Sector*>& sectors_of_line) {
    std::string shape;
    for (const Sector* sector : sectors_of_line) {
        shape += std::to_string(sector->index % kSectorsOfLine);
        for (const auto& lanes : sector->bytes)
            shape += lanes.empty() ? '-' : '+';
    }
    return shape;
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
    std::vector<std::pair<std::int64_t, std::vector<const Sector*>>> rows(lines.begin(), lines.end());
    std::vector<std::string> shapes;
    for (const auto& [number, sectors_of_line] : rows)
        shapes.push_back(shape_of(sectors_of_line));
    int y = 20;
    for (const auto& [row, left_out] : drawn_rows(shapes)) {
        const auto& [number, sectors_of_line] = rows[row];
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
        if (left_out == 0) continue;
        content += note_of_left_out(left_out, y);
        y += kCellHeight;
    }
    return svg(kRight + kGap, y + 4,
               fmt::format("{} sectors of 32 bytes, and the lanes that want their bytes", touched.size()),
               content);
}

}  // namespace

std::string picture_of_example() {
    constexpr int kBanksShown = 8;
    constexpr int kLabels = kMargin + kBanksShown * kCellWidth + kGap;
    const auto words = [](std::initializer_list<int> lanes, std::string_view style, int y) {
        std::string row;
        int x = kMargin;
        for (const int lane : lanes) {
            row += box(x, y, kCellWidth - 2, lane < 0 ? "idle" : style,
                       lane < 0 ? "nothing to do" : fmt::format("lane {}", lane));
            if (lane >= 0)
                row += label(x + kCellWidth / 2 - 1, y + 12, "middle", std::to_string(lane), "lane");
            x += kCellWidth;
        }
        return row;
    };
    std::string content = label(kMargin - kGap, 12, "end", "bank");
    for (int bank = 0; bank < kBanksShown; ++bank)
        content +=
            label(kMargin + bank * kCellWidth + kCellWidth / 2 - 1, 12, "middle", std::to_string(bank));
    content += label(kMargin - kGap, 32, "end", "shared") + words({0, 1, 2, 3, 4, 5, -1, -1}, "once", 20) +
               label(kLabels, 32, "start", "first wavefront");
    content += words({-1, -1, 6, -1, -1, 7, -1, -1}, "again", 20 + kCellHeight) +
               label(kLabels, 32 + kCellHeight, "start", "second wavefront");
    Sector sector;
    for (unsigned byte = 8; byte < 24; ++byte)
        sector.bytes[byte].push_back(byte / kWordBytes - 2);
    constexpr int kBelow = 20 + 3 * kCellHeight;
    content += label(kMargin - kGap, kBelow + 12, "end", "global") + touched_sector(sector, kMargin, kBelow) +
               label(kLabels, kBelow + 12, "start", "moved") +
               box(kMargin, kBelow + kCellHeight, kSectorWidth - 2, "idle", "not moved") +
               label(kLabels, kBelow + kCellHeight + 12, "start", "not moved");
    return fmt::format(
        "<div class=\"picture\">{}</div>",
        svg(kLabels + 100, kBelow + 2 * kCellHeight + 4,
            "Example: a request to shared memory in two wavefronts, and a sector of global memory", content));
}

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
    return fmt::format(
        "<div class=\"picture\" role=\"region\" aria-label=\"The request as a picture\" "
        "tabindex=\"0\">{}</div>\n",
        line.space == Space::kShared ? picture_of_banks(line) : picture_of_sectors(line));
}

}  // namespace course::tool
