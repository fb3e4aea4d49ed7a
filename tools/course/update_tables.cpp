#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "commands.hpp"
#include "common/bench/report.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "tables.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
    return {std::istreambuf_iterator<char>(stream), {}};
}

class Updater {
  public:
    Updater(const Checkout& checkout, bool check_only)
        : sources_{checkout.root, checkout.measurements(), load_calendar(checkout.calendar()).days},
          check_only_(check_only) {}

    void markdown() {
        for (const fs::path& file : find_markdown(sources_.root)) {
            guarded(file, [&] {
                const std::string text = read_text(file);
                put(file, text, with_fresh_tables(text, file, sources_));
            });
        }
    }

    void pages() {
        const fs::path directory = sources_.root / "docs" / "measured";
        guarded(directory, [&] {
            const auto pages = measured_pages(sources_);
            for (const auto& [name, page] : pages)
                put(directory / name, fs::exists(directory / name) ? read_text(directory / name) : "", page);
            if (!fs::is_directory(directory)) return;
            for (const auto& entry : fs::directory_iterator(directory)) {
                if (pages.contains(entry.path().filename().string())) continue;
                if (check_only_) {
                    failed(entry.path(), "there are no records for it; ./course tables removes it");
                } else {
                    fs::remove(entry.path());
                    fmt::print("{}: removed, there are no records for it\n", shown(entry.path()));
                }
            }
        });
    }

    // These figures are typed by hand, so they can only be checked.
    void ladder_heads() {
        for (const char* directory : {"gemm_ladder/steps", "gemm_ladder/beyond"}) {
            if (!fs::is_directory(sources_.root / directory)) continue;
            for (const auto& entry : fs::directory_iterator(sources_.root / directory)) {
                if (entry.path().extension() != ".cu" && entry.path().extension() != ".cuh") continue;
                guarded(entry.path(), [&] {
                    const std::string wrong =
                        wrong_measured_line(read_text(entry.path()), entry.path().stem().string(), sources_);
                    if (!wrong.empty()) failed(entry.path(), wrong);
                });
            }
        }
    }

    int exit_code() const { return exit_code_; }

  private:
    std::string shown(const fs::path& file) const { return file.lexically_relative(sources_.root).string(); }

    void failed(const fs::path& file, const std::string& why) {
        fmt::print(stderr, "{}: {}\n", shown(file), why);
        exit_code_ = kFailed;
    }

    template <class Work>
    void guarded(const fs::path& file, const Work& work) {
        try {
            work();
        } catch (const std::runtime_error& error) {
            failed(file, error.what());
        }
    }

    void put(const fs::path& file, const std::string& text, const std::string& fresh) {
        if (fresh == text) return;
        if (check_only_) return failed(file, "it is not what docs/measurements gives; ./course tables");
        write_file(file, fresh);
        fmt::print("{}: updated\n", shown(file));
    }

    TableSources sources_;
    bool check_only_;
    int exit_code_ = kSuccess;
};

}  // namespace

int update_tables(const Checkout& checkout, bool check_only) {
    Updater updater(checkout, check_only);
    updater.pages();
    updater.markdown();
    updater.ladder_heads();
    if (updater.exit_code() == kSuccess) fmt::print("Every table is that of docs/measurements.\n");
    return updater.exit_code();
}

}  // namespace course::tool
