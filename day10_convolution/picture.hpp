// Images in files: PNG, JPEG and whatever else OpenCV's imgcodecs reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace day10 {

struct HostPicture {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t channels = 1;  // 1, or 3 in OpenCV's order, blue first
    std::vector<std::uint8_t> values{};
};

// True when this build reads and writes images.
bool has_pictures();

// Grey images have one channel, all others three; more than 8 bits are reduced to 8, transparency
// is dropped. Throws std::invalid_argument naming the file and what is wrong with it.
HostPicture read_picture(const std::string& path);

// Throws std::invalid_argument unless an image with that many channels can be written there, as far
// as that can be known before: an extension that names a format, a place that can be written, and
// not the image `read` itself.
void check_writable(const std::string& path, const std::string& read, std::size_t channels);

// The file is either the old or the new one, never half of it. Throws std::runtime_error naming the
// file when it cannot be written.
void write_picture(const std::string& path, const HostPicture& picture);

}  // namespace day10
