#include "picture.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "common/bench/report.hpp"

#ifdef DAY10_HAS_IMGCODECS
#include <opencv2/imgcodecs.hpp>
#endif

namespace day10 {

#ifdef DAY10_HAS_IMGCODECS

namespace {

// The file's bytes, in the format that its extension names.
std::string encode(const std::string& path, const cv::Mat& mat) {
    std::vector<std::uint8_t> bytes;
    std::string reason;
    try {
        if (cv::imencode(std::filesystem::path(path).extension().string(), mat, bytes))
            return {bytes.begin(), bytes.end()};
    } catch (const cv::Exception& error) {
        reason = ": " + error.err;
    }
    throw std::runtime_error("cannot write '" + path + "': the format does not hold this picture" + reason);
}

}  // namespace

bool has_pictures() {
    return true;
}

HostPicture read_picture(const std::string& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        throw std::invalid_argument("'" + path + "' is a directory; expected a picture");
    if (!std::ifstream(path))
        throw std::invalid_argument("'" + path + "' cannot be read: " + std::strerror(errno));
    cv::Mat mat;
    try {
        mat = cv::imread(path, cv::IMREAD_ANYCOLOR);
    } catch (const cv::Exception& exception) {
        throw std::invalid_argument("'" + path + "': " + exception.err);
    }
    if (mat.empty())
        throw std::invalid_argument("'" + path + "' is no picture; expected PNG, JPEG or the like");
    HostPicture picture{static_cast<std::size_t>(mat.rows), static_cast<std::size_t>(mat.cols),
                        static_cast<std::size_t>(mat.channels())};
    for (int row = 0; row < mat.rows; ++row)
        picture.values.insert(picture.values.end(), mat.ptr(row), mat.ptr(row) + mat.cols * mat.channels());
    return picture;
}

void check_writable(const std::string& path, const std::string& read, std::size_t channels) {
    const auto refuse = [&path](const std::string& reason) {
        throw std::invalid_argument("'" + path + "' " + reason);
    };
    if (path.empty()) refuse("is no name of a file");
    const std::filesystem::path file(path);
    // OpenCV looks at the beginning of names only from their last dot on, and throws where there is
    // none.
    if (file.extension().empty() || !cv::haveImageWriter(path))
        refuse("has no extension of a picture; expected .png, .jpg or the like");
    try {
        encode(path, cv::Mat::zeros(1, 1, CV_8UC(static_cast<int>(channels))));
    } catch (const std::runtime_error& error) {
        refuse("is of a format that cannot hold " + std::to_string(channels) +
               " channels of bytes here; expected .png or the like");
    }

    std::error_code error;
    // write_file() begins under a longer name.
    if (!std::filesystem::status_known(std::filesystem::status(path + ".2147483647.tmp", error)))
        refuse("cannot be written: " + error.message());
    const std::filesystem::file_status status = std::filesystem::status(file, error);
    if (std::filesystem::is_directory(status)) refuse("is a directory; expected the name of a file");
    if (std::filesystem::equivalent(file, read, error))
        refuse("is the picture that is read; expected another file");
    const std::filesystem::path parent = file.has_parent_path() ? file.parent_path() : ".";
    const auto require_access = [&](const std::filesystem::path& place) {
        if (access(place.c_str(), W_OK) != 0)
            refuse(std::string("cannot be written: ") + std::strerror(errno));
    };
    require_access(parent);
    if (std::filesystem::exists(status)) require_access(file);
}

void write_picture(const std::string& path, const HostPicture& picture) {
    const cv::Mat mat(static_cast<int>(picture.rows), static_cast<int>(picture.cols),
                      CV_8UC(static_cast<int>(picture.channels)),
                      const_cast<std::uint8_t*>(picture.values.data()));
    course::write_file(path, encode(path, mat));
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

void check_writable(const std::string& path, const std::string&, std::size_t) {
    refuse(path);
}

void write_picture(const std::string& path, const HostPicture&) {
    refuse(path);
}

#endif

}  // namespace day10
