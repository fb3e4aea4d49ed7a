#include "source_places.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "child_process.hpp"
#include "environment.hpp"
#include "image_file.hpp"

namespace cuda_on_cpu::inspector {
namespace {

// Addresses of code are larger, so they cannot be confused with the numbers of sites.
constexpr Place kSites = 1 << 16;

struct Sites {
    std::mutex mutex;
    std::map<std::pair<std::string, int>, Place> numbers;
    std::vector<Site> site;
};

// Never destroyed: a whole program is watched until after its static objects have been destroyed.
Sites& sites() {
    static auto& all = *new Sites;
    return all;
}

// Is the file below a directory of the course, or of a stand-in that is installed elsewhere?
bool is_in(std::string_view file, std::string_view directory) {
    return file.starts_with(directory) || (directory.starts_with("cuda_on_cpu/") &&
                                           file.find(std::string("/").append(directory)) != file.npos);
}

// The frames of one address, innermost first.
SourceLine lesson_line(const std::vector<SourceLine>& frames) {
    const auto outside = [&](std::initializer_list<std::string_view> directories,
                             std::string_view ending = "") {
        return std::find_if(frames.begin(), frames.end(), [&](const SourceLine& frame) {
            const bool known =
                frame.line > 0 && !frame.file.starts_with("/usr/") && frame.file.ends_with(ending);
            return known && std::none_of(directories.begin(), directories.end(),
                                         [&](std::string_view d) { return is_in(frame.file, d); });
        });
    };
    auto best = frames.end();
    if (environment().kernel_lines) {
        best = outside({"cuda_on_cpu/include/", "cuda_on_cpu/src/", "common/"}, ".cu");
        if (best == frames.end())
            best = outside({"cuda_on_cpu/include/", "cuda_on_cpu/src/", "common/"}, ".cuh");
    }
    if (best == frames.end()) best = outside({"cuda_on_cpu/include/", "cuda_on_cpu/src/", "common/"});
    if (best == frames.end()) best = outside({"cuda_on_cpu/include/", "cuda_on_cpu/src/"});
    return best != frames.end() ? *best : frames.empty() ? SourceLine{} : frames.front();
}

// "/path/file.cu:93 (discriminator 2)" -> file and line
SourceLine parse_frame(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || text.starts_with("??")) return {};
    SourceLine frame{relative_to_course(text.substr(0, colon)), 0};
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), frame.line);
    return frame;
}

// A file that is deleted at the end.
class TemporaryFile {
  public:
    TemporaryFile() {
        std::string path = (std::filesystem::temp_directory_path() / "cuda_on_cpu_XXXXXX").string();
        if (const int descriptor = mkstemp(path.data()); descriptor >= 0) {
            close(descriptor);
            path_ = path;
        }
    }
    ~TemporaryFile() {
        if (!path_.empty()) std::filesystem::remove(path_);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

struct Module {
    std::uint64_t begin = 0;
    std::vector<Place> places;
};

// With -a each answer starts with the address, and -i lists the functions into which the code was
// inlined.
void ask(const std::string& file, const Module& module, std::unordered_map<Place, SourceLine>& lines) {
    const TemporaryFile addresses;
    {
        std::ofstream out(addresses.path());
        // A return address belongs to the instruction after the call.
        for (const Place place : module.places)
            out << std::hex << "0x" << place - module.begin - 1 << '\n';
    }
    const std::string output = read_child({.arguments = {"addr2line", "-a", "-i", "-e", file},
                                           .input_file = addresses.path(),
                                           .errors = Errors::nowhere})
                                   .output;
    std::size_t next = 0;
    std::vector<SourceLine> frames;
    const auto finish = [&] {
        if (next > 0 && next <= module.places.size()) lines[module.places[next - 1]] = lesson_line(frames);
        frames.clear();
    };
    std::istringstream answers(output);
    for (std::string text; std::getline(answers, text);) {
        if (text.starts_with("0x")) {
            finish();
            ++next;
        } else {
            frames.push_back(parse_frame(text));
        }
    }
    finish();
}

SourceLine line_of_site(Place place) {
    const std::scoped_lock lock(sites().mutex);
    const Site site = sites().site.at(place - 1);
    return {relative_to_course(site.file), site.line};
}

}  // namespace

std::string relative_to_course(std::string_view file) {
    const std::string path = std::filesystem::path(file).lexically_normal().string();
    static constexpr std::string_view kRoot = CUDA_ON_CPU_SOURCE_ROOT "/";
    return path.starts_with(kRoot) ? path.substr(kRoot.size()) : path;
}

Place place_of(Site site) {
    Sites& all = sites();
    const std::scoped_lock lock(all.mutex);
    const auto [found, is_new] =
        all.numbers.try_emplace({site.file, site.line}, all.site.size() + 1);  // 0: no place
    if (is_new) all.site.push_back(site);
    return found->second;
}

std::unordered_map<Place, SourceLine> source_lines(const std::vector<Place>& places) {
    // addr2line is slow, so its answers are cached.
    static auto& mutex = *new std::mutex;
    static auto& known = *new std::unordered_map<Place, SourceLine>;
    const std::scoped_lock lock(mutex);
    std::map<const void*, Module> modules;
    for (const Place place : places) {
        if (known.contains(place)) continue;
        if (place < kSites) {
            known[place] = line_of_site(place);
            continue;
        }
        Dl_info image;
        if (dladdr(reinterpret_cast<void*>(place), &image) == 0) continue;
        Module& module = modules[image.dli_fbase];
        module.begin = reinterpret_cast<std::uint64_t>(image.dli_fbase);
        module.places.push_back(place);
    }
    for (const auto& [begin, module] : modules)
        ask(file_of_image(begin), module, known);
    std::unordered_map<Place, SourceLine> lines;
    for (const Place place : places) {
        if (const auto found = known.find(place); found != known.end()) lines.insert(*found);
    }
    return lines;
}

}  // namespace cuda_on_cpu::inspector
