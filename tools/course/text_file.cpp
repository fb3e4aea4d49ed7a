#include "text_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace course::tool {

namespace fs = std::filesystem;

std::string read_text_file(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // which some editors put in front
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    return text;
}

void replace_file(const fs::path& name, std::string_view text) {
    const fs::path file = fs::is_symlink(name) ? fs::weakly_canonical(name) : name;  // keeps a link a link
    if (file.has_parent_path()) fs::create_directories(file.parent_path());
    const fs::path temporary = fmt::format("{}.{}.new", file.string(), getpid());
    {
        std::ofstream stream(temporary, std::ios::binary);
        stream << text;
        if (!stream.flush()) {
            stream.close();
            std::error_code ignored;
            fs::remove(temporary, ignored);
            throw std::runtime_error(fmt::format("cannot write {}", temporary.string()));
        }
    }
    fs::rename(temporary, file);
}

std::string_view next_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

}  // namespace course::tool
