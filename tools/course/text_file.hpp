// Text files, read and written as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace course::tool {

// The whole file. Throws std::runtime_error.
std::string read_text_file(const std::filesystem::path& file);
// All or nothing: to a temporary file, which then takes the name; of a link, that of what it leads
// to. Makes the directories on the way. Throws std::runtime_error.
void replace_file(const std::filesystem::path& file, std::string_view text);
// The first line of `text`, without its end; takes both from `text`.
std::string_view next_line(std::string_view& text);

}  // namespace course::tool
