#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "host/matrices.hpp"

namespace day35 {
namespace {

enum class Symmetry { kGeneral, kSymmetric, kSkew };

// Goes through a text line by line and word by word.
class Lines {
  public:
    Lines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

    // To the next line that is neither empty nor, unless it is the first, a comment; false at the
    // end.
    bool next() {
        while (!rest_.empty()) {
            const std::size_t end = std::min(rest_.find('\n'), rest_.size());
            line_ = rest_.substr(0, end);
            rest_.remove_prefix(std::min(end + 1, rest_.size()));
            ++number_;
            if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
            skip_blanks();
            if (number_ == 1 || (!line_.empty() && line_.front() != '%')) return true;
        }
        ++number_;
        return false;
    }

    // The next word of the line; empty at its end.
    std::string_view word() {
        const std::size_t end = std::min(line_.find_first_of(" \t"), line_.size());
        const std::string_view found = line_.substr(0, end);
        line_.remove_prefix(end);
        skip_blanks();
        return found;
    }

    Offset whole_number(const char* what, Offset least, Offset most) {
        const std::string_view text = word();
        Offset value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
            fail(std::string(what) + " is '" + std::string(text) + "'; expected a whole number from " +
                 std::to_string(least) + " to " + std::to_string(most));
        }
        return value;
    }

    float value() {
        const std::string_view text = word();
        const std::string_view number = without_plus(text);
        float value = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
        if (error == std::errc::invalid_argument || end != number.data() + number.size())
            fail("value is '" + std::string(text) + "'; expected a number");
        if (error == std::errc::result_out_of_range)  // from_chars says only that float cannot hold it
            value = std::strtof(std::string(number).c_str(), nullptr);
        return value;
    }

    float whole_value() {
        const std::string_view text = word();
        const std::string_view number = without_plus(text);
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
        if (error != std::errc() || end != number.data() + number.size())
            fail("value is '" + std::string(text) +
                 "'; expected a whole number of 64 bits, as in 'integer' files");
        return static_cast<float>(value);
    }

    void expect_end() {
        if (!line_.empty()) fail("'" + std::string(line_) + "' is left over; expected the end of the line");
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw MatrixMarketError(name_ + ":" + std::to_string(number_) + ": " + message);
    }

  private:
    // from_chars does not accept '+'; behind one there must not be another sign.
    static std::string_view without_plus(std::string_view text) {
        return text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
    }

    void skip_blanks() { line_.remove_prefix(std::min(line_.find_first_not_of(" \t"), line_.size())); }

    std::string_view rest_;
    std::string_view line_;
    std::string name_;
    std::size_t number_ = 0;
};

enum class Field { kReal, kInteger, kPattern };

struct Header {
    Field field = Field::kReal;
    Symmetry symmetry = Symmetry::kGeneral;
};

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

Header read_header(Lines& lines) {
    if (!lines.next() || lines.word() != "%%MatrixMarket")
        lines.fail("expected '%%MatrixMarket matrix coordinate ...' as the first line");
    // One word of the header, which must be one of those supported.
    const auto one_of = [&](const char* what, std::initializer_list<std::string_view> known) {
        const std::string word = lower_case(lines.word());
        const auto* const found = std::find(known.begin(), known.end(), word);
        if (found == known.end()) {
            std::string list;
            for (const std::string_view one : known)
                list += (list.empty() ? "" : ", ") + std::string(one);
            lines.fail(std::string(what) + " is '" + word + "'; supported: " + list);
        }
        return found - known.begin();
    };
    one_of("object", {"matrix"});
    one_of("format", {"coordinate"});
    Header header;
    constexpr std::array kFields = {Field::kReal, Field::kInteger, Field::kPattern};
    header.field = kFields[one_of("field", {"real", "integer", "pattern"})];
    constexpr std::array kSymmetries = {Symmetry::kGeneral, Symmetry::kSymmetric, Symmetry::kSkew};
    header.symmetry = kSymmetries[one_of("symmetry", {"general", "symmetric", "skew-symmetric"})];
    lines.expect_end();
    return header;
}

}  // namespace

CsrMatrix parse_matrix_market(std::string_view text, const std::string& name) {
    constexpr Offset kMostIndices = std::numeric_limits<Index>::max();
    Lines lines(text, name);
    const Header header = read_header(lines);
    if (!lines.next()) lines.fail("the file ends; expected a line 'rows cols entries'");
    const Offset rows = lines.whole_number("rows", 0, kMostIndices);
    const Offset cols = lines.whole_number("cols", 0, kMostIndices);
    const Offset entries = lines.whole_number("entries", 0, std::numeric_limits<Offset>::max() / 2);
    lines.expect_end();
    if (entries > 0 && (rows == 0 || cols == 0))
        lines.fail(std::to_string(entries) + " entries in a matrix of " + std::to_string(rows) + " x " +
                   std::to_string(cols) + "; expected 0");
    if (header.symmetry != Symmetry::kGeneral && rows != cols)
        lines.fail(std::to_string(rows) + " x " + std::to_string(cols) +
                   "; expected a square matrix, it is symmetric");

    std::vector<Index> row_of;
    std::vector<Index> col_of;
    std::vector<float> values;
    const auto add = [&](Offset row, Offset col, float value) {
        row_of.push_back(static_cast<Index>(row - 1));
        col_of.push_back(static_cast<Index>(col - 1));
        values.push_back(value);
    };
    for (Offset i = 0; i < entries; ++i) {
        if (!lines.next())
            lines.fail("the file ends after " + std::to_string(i) + " entries; expected " +
                       std::to_string(entries));
        const Offset row = lines.whole_number("row", 1, rows);
        const Offset col = lines.whole_number("col", 1, cols);
        const float value = header.field == Field::kReal      ? lines.value()
                            : header.field == Field::kInteger ? lines.whole_value()
                                                              : 1.0f;
        lines.expect_end();
        add(row, col, value);
        if (header.symmetry == Symmetry::kGeneral) continue;
        const auto entry = [&, row = row, col = col] {
            return "entry (" + std::to_string(row) + ", " + std::to_string(col) + ")";
        };
        if (col > row)
            lines.fail(entry() + " is above the diagonal; expected only those below it in a symmetric file");
        if (col < row) {
            add(col, row, header.symmetry == Symmetry::kSkew ? -value : value);
        } else if (header.symmetry == Symmetry::kSkew) {
            lines.fail(entry() + " is on the diagonal, with value " + std::to_string(value) +
                       "; expected none there, it is 0 in a skew-symmetric matrix");
        }
    }
    if (lines.next())
        lines.fail("a line behind the last entry; expected " + std::to_string(entries) + " entries");
    return CsrMatrix::from_entries({static_cast<Index>(rows), static_cast<Index>(cols)}, row_of, col_of,
                                   values);
}

CsrMatrix read_matrix_market(const std::filesystem::path& file) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error))
        throw MatrixMarketError(file.string() + ": is a directory; expected a Matrix Market file");
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw MatrixMarketError(file.string() + ": cannot be opened: " + std::strerror(errno));
    // Not by the file's size: a pipe has none.
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    if (stream.bad()) throw MatrixMarketError(file.string() + ": cannot be read");
    return parse_matrix_market(text, file.string());
}

}  // namespace day35
