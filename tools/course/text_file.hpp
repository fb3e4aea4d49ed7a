// Text files, read and written as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace course::tool {

// The whole file, without the byte order mark of UTF-8. Throws std::runtime_error.
std::string read_text_file(const std::filesystem::path& file);
// Writes atomically: to a temporary file, which is then renamed. If `file` is a link, its target
// is replaced. Creates missing directories. Throws std::runtime_error.
void replace_file(const std::filesystem::path& file, std::string_view text);
// Returns the first line of `text` without its end, and removes both from `text`.
std::string_view next_line(std::string_view& text);

}  // namespace course::tool
