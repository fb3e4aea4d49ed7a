#include "picture.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#ifdef DAY10_HAS_IMGCODECS
#include <opencv2/imgcodecs.hpp>
#endif

namespace day10 {

#ifdef DAY10_HAS_IMGCODECS

bool has_pictures() {
    return true;
}

HostPicture read_picture(const std::string& path) {
    if (std::filesystem::is_directory(path))
        throw std::invalid_argument("'" + path + "' is a directory; expected a picture");
    if (!std::ifstream(path))
        throw std::invalid_argument("'" + path + "' cannot be read: " + std::strerror(errno));
    cv::Mat mat;
    try {
        mat = cv::imread(path, cv::IMREAD_ANYCOLOR);
    } catch (const cv::Exception& error) {
        throw std::invalid_argument("'" + path + "': " + error.err);
    }
    if (mat.empty())
        throw std::invalid_argument("'" + path + "' is no picture; expected PNG, JPEG or the like");
    HostPicture picture{static_cast<std::size_t>(mat.rows), static_cast<std::size_t>(mat.cols),
                        static_cast<std::size_t>(mat.channels())};
    for (int row = 0; row < mat.rows; ++row)
        picture.values.insert(picture.values.end(), mat.ptr(row), mat.ptr(row) + mat.cols * mat.channels());
    return picture;
}

void check_writable(const std::string& path) {
    const std::filesystem::path file(path);
    // OpenCV looks at the beginning of names only from their last dot on, and throws where there is none.
    if (file.extension().empty() || !cv::haveImageWriter(path))
        throw std::invalid_argument("'" + path +
                                    "' has no extension of a picture; expected .png, .jpg or the like");
    const std::filesystem::path parent = file.has_parent_path() ? file.parent_path() : ".";
    const bool exists = access(path.c_str(), F_OK) == 0;
    if (access(exists ? path.c_str() : parent.c_str(), W_OK) != 0 || std::filesystem::is_directory(file))
        throw std::invalid_argument(
            "'" + path + "' cannot be written: " + (errno != 0 ? std::strerror(errno) : "it is a directory"));
}

void write_picture(const std::string& path, const HostPicture& picture) {
    const cv::Mat mat(static_cast<int>(picture.rows), static_cast<int>(picture.cols),
                      CV_8UC(static_cast<int>(picture.channels)),
                      const_cast<std::uint8_t*>(picture.values.data()));
    bool written = false;
    try {
        written = cv::imwrite(path, mat);
    } catch (const cv::Exception& error) {
        throw std::invalid_argument("'" + path + "' cannot be written: " + error.err);
    }
    if (!written) throw std::invalid_argument("'" + path + "' cannot be written");
}

#else

namespace {

[[noreturn]] void refuse(const std::string& path) {
    throw std::invalid_argument("'" + path + "': this build has no pictures (cmake -D DAY10_PICTURES=ON)");
}

}  // namespace

bool has_pictures() {
    return false;
}

HostPicture read_picture(const std::string& path) {
    refuse(path);
}

void check_writable(const std::string& path) {
    refuse(path);
}

void write_picture(const std::string& path, const HostPicture&) {
    refuse(path);
}

#endif

}  // namespace day10
