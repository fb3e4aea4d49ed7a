// Day 10's program: blurs a picture with every version, verified and timed, beside a copy (the
// machine's limit) and OpenCV.
//
//     day10_convolution [--image FILE] [--sigma S] [--filter N] [--border KIND] [--out FILE]
//                                                          --out is written by --only, or by the last of our versions
//     day10_convolution --size ROWSxCOLSxFILTER[x3]        random floats; with x3, random bytes in three channels
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "convolution.hpp"
#include "convolution_plain_loop.hpp"
#include "convolution_verify.hpp"
#include "opencv_border.hpp"
#include "picture.hpp"

namespace {

using course::require;
using day10::Border;
using day10::BorderKind;

constexpr std::size_t kMostTaps = 4095;  // of a filter, in a row

// What the command line asks for.
struct Choice {
    std::string image = DAY10_PICTURE;
    std::string out;
    std::string version;  // empty: all of them
    std::string border = "replicate";
    double sigma = 1.5;
    std::int64_t filter = 0;  // 0: from sigma
};

struct Shape {
    std::size_t rows;
    std::size_t cols;
    std::size_t channels;
};

template <class T>
struct Data {
    Data(const Shape& s, std::vector<T> values, day10::Filter f, Border b, double chosen_sigma)
        : shape(s),
          filter(std::move(f)),
          border(b),
          sigma(chosen_sigma),
          in(std::move(values)),
          expected(day10::convolve_on_cpu<T>(in, shape.rows, shape.cols, shape.channels, filter, border)),
          by_opencv(in.size()),
          in_device(std::span<const T>(in)),
          out_device(in.size()),
          workspace(in.size()) {}

    day10::DevicePicture<const T> in_picture() const {
        return {in_device.span(), shape.rows, shape.cols, shape.channels};
    }
    day10::DevicePicture<T> out_picture() {
        return {out_device.span(), shape.rows, shape.cols, shape.channels};
    }
    cv::Mat mat(std::vector<T>& values) const {
        const int depth = std::is_same_v<T, float> ? CV_32F : CV_8U;
        return {static_cast<int>(shape.rows), static_cast<int>(shape.cols),
                CV_MAKETYPE(depth, static_cast<int>(shape.channels)), values.data()};
    }
    day10::Problem problem() const {
        return {shape.rows, shape.cols, shape.channels, filter.rows(), filter.cols(), true};
    }
    void launch(const day10::Convolution<T>& version, cudaStream_t stream) {
        version.launcher(in_picture(), out_picture(), filter, border, workspace.span(), stream);
    }
    // What is there before a launch: an old result must not pass for a new one.
    void spoil() {
        out_device.spoil();
        std::fill(by_opencv.begin(), by_opencv.end(),
                  std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN()
                                                        : std::numeric_limits<T>::max());
    }
    course::VerifyResult verify() const {
        course::VerifyResult verified = day10::verify_convolution(out_device.to_host(), expected, filter);
        verified.damage = out_device.damage();
        return verified;
    }

    Shape shape;
    day10::Filter filter;
    Border border;
    double sigma;
    std::vector<T> in;
    day10::Expected expected;
    std::vector<T> by_opencv;
    course::DeviceBuffer<T> in_device;
    course::GuardedBuffer<T> out_device;
    course::DeviceBuffer<float> workspace;
};

// How far a pass with weights of 8 binary digits moves a sum of bytes: OpenCV's, for bytes. From
// the outermost weight inwards each takes over what rounding the one before has left, and the
// middle one makes the sum 1. Errors that add up to 0 move no grey picture; they move others by at
// most half of 255 for each unit of them.
double error_of_fixed_point(const std::vector<float>& weights) {
    constexpr double kUnits = 256;
    const std::size_t middle = weights.size() / 2;
    double left_over = 0;
    double to_middle = 0;
    double errors = 0;
    for (std::size_t i = 0; i < middle; ++i) {
        const double exact = kUnits * static_cast<double>(weights[i]);
        const double rounded = std::nearbyint(exact + left_over);
        left_over += exact - rounded;
        to_middle += 2 * (exact - rounded);
        errors += 2 * std::abs(exact - rounded);
    }
    return 127.5 * (errors + std::abs(to_middle)) / kUnits;
}

template <class T>
course::Contestant opencv(const std::shared_ptr<Data<T>>& data, const course::Work& work) {
    const double extra = std::is_same_v<T, float> ? 0
                                                  : error_of_fixed_point(data->filter.row()) +
                                                        error_of_fixed_point(data->filter.column());
    return {.name = "opencv",
            .role = course::Role::kPeer,
            .launch =
                [data](cudaStream_t) {
                    const cv::Mat in = data->mat(data->in);
                    cv::Mat out = data->mat(data->by_opencv);
                    const cv::Size size(static_cast<int>(data->filter.cols()),
                                        static_cast<int>(data->filter.rows()));
                    cv::GaussianBlur(in, out, size, data->sigma, data->sigma,
                                     day10::opencv_border(data->border.kind));
                },
            .work = work,
            .cannot_run = data->border.kind == BorderKind::kWrap ? "GaussianBlur has no wrap border" : "",
            .on_host = true,
            .verify =
                [data, extra] {
                    return day10::verify_convolution(data->by_opencv, data->expected, data->filter, extra);
                }};
}

// Why a version cannot run, or must not: on the CPU some would take minutes for a photograph. The
// one asked for may.
template <class T>
std::string cannot_run(const day10::Convolution<T>& version, const day10::Problem& problem,
                       const std::string& asked_for) {
    if (std::string reason = version.cannot_run(problem); !reason.empty()) return reason;
    constexpr std::size_t kMostTerms = std::size_t{1} << 28;  // about a second
    const std::size_t terms =
        problem.rows * problem.cols * problem.channels * problem.filter_rows * problem.filter_cols;
    if (!course::is_cpu_stand_in() || terms <= kMostTerms || version.name.starts_with("separable") ||
        version.name == asked_for)
        return "";
    return "it would take long on the CPU; --only " + version.name + " runs it";
}

template <class T>
course::Case make_case(std::shared_ptr<Data<T>> data, const std::string& asked_for) {
    const Shape& shape = data->shape;
    const std::size_t taps = data->filter.rows();
    const day10::Problem problem = data->problem();
    course::UsualCase<Data<T>> usual(fmt::format("gaussian_blur {}x{}{} {}x{}", shape.rows, shape.cols,
                                                 shape.channels == 3 ? "x3" : "", taps, taps),
                                     std::is_same_v<T, float> ? "float" : "uint8", data);
    usual.also_spoil([](Data<T>& d) { d.spoil(); });
    usual.result.verify = [data] { return data->verify(); };
    usual.add(opencv(data, day10::versions<T>().front().work(problem)));
    for (const day10::Convolution<T>& version : day10::versions<T>()) {
        usual.add({.name = version.name,
                   .launch = [data, &version](cudaStream_t stream) { data->launch(version, stream); },
                   .work = version.work(problem),
                   .cannot_run = cannot_run(version, problem, asked_for)});
    }
    const std::size_t count = data->in.size();
    const auto steps = static_cast<double>(count * taps * taps);
    if (data->border.kind == BorderKind::kReplicate)
        usual.plain_loop(
            day10::versions<T>().front().work(problem), steps * 1e-9,
            [count] { return course::unwritten<T>(count); },
            [](const Data<T>& d, std::span<T> out, int threads) {
                const auto [rows, cols, channels] = d.shape;
                day10::convolve_plainly<T>(d.in, rows, cols, channels, d.filter, out, threads);
            },
            [](const Data<T>& d, const auto& out) {
                return day10::verify_convolution(out, d.expected, d.filter);
            });
    usual.limit_copy(&Data<T>::in_device, &Data<T>::out_device);
    return usual.result;
}

// --- Random pictures: --size and --bench ---------------------------------------------------------

template <class T>
course::Case random_case(const Shape& shape, std::size_t taps, Border border, const std::string& asked_for) {
    require(taps <= kMostTaps, "a filter of ", taps, "; expected an odd number, at most ", kMostTaps);
    const double sigma = static_cast<double>(taps) / 6;
    return make_case(std::make_shared<Data<T>>(shape,
                                               course::make_data<T>(shape.rows * shape.cols * shape.channels,
                                                                    course::DataPattern::kSignedUniform, 1),
                                               day10::gaussian_filter(taps, sigma), border, sigma),
                     asked_for);
}

course::Case random_case(const course::Dims& size, Border border, const std::string& asked_for) {
    if (size.size() == 3) return random_case<float>({size[0], size[1], 1}, size[2], border, asked_for);
    if (size.size() == 4 && size[3] == 3)
        return random_case<std::uint8_t>({size[0], size[1], 3}, size[2], border, asked_for);
    throw std::invalid_argument(
        "expected rows x cols x filter, for example 1024x1024x5, and x3 for three channels of bytes");
}

// --- The program's own options -------------------------------------------------------------------

template <class Function>
auto with_name_of(const std::string& option, Function function) {
    try {
        return function();
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(option + ": " + error.what());
    }
}

// Blurs once more, for the file: it holds nothing that was not verified.
std::vector<std::uint8_t> verified_result(Data<std::uint8_t>& data,
                                          const day10::Convolution<std::uint8_t>& version) {
    data.spoil();
    data.launch(version, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    if (const course::VerifyResult verified = data.verify(); !verified.ok())
        throw std::runtime_error("nothing was written, " + version.name + " is wrong: " + verified.message());
    return data.out_device.to_host();
}

void prepare_picture(const Choice& choice, bool write, Border border, course::Program& program) {
    const std::size_t taps =
        choice.filter != 0 ? static_cast<std::size_t>(choice.filter) : day10::gaussian_size(choice.sigma);
    const day10::HostPicture picture =
        with_name_of("--image", [&] { return day10::read_picture(choice.image); });

    const auto data = std::make_shared<std::shared_ptr<Data<std::uint8_t>>>();
    program.default_size = {picture.rows, picture.cols, taps, picture.channels};
    program.make_cases = {[=](const course::Dims&) {
        *data = std::make_shared<Data<std::uint8_t>>(
            Shape{picture.rows, picture.cols, picture.channels}, picture.values,
            day10::gaussian_filter(taps, choice.sigma), border, choice.sigma);
        return make_case(*data, choice.version);
    }};
    if (!write) return;

    const auto& versions = day10::versions<std::uint8_t>();
    const auto* version = &versions.back();
    with_name_of("--out", [&] {
        day10::check_writable(choice.out, choice.image, picture.channels);
        if (!choice.version.empty()) version = &course::find_version(versions, choice.version);
        const std::string reason =
            version->cannot_run({picture.rows, picture.cols, picture.channels, taps, taps, true});
        require(reason.empty(), version->name, " cannot run: ", reason);
    });
    program.finish = [=] {
        day10::write_picture(
            choice.out, {picture.rows, picture.cols, picture.channels, verified_result(**data, *version)});
        fmt::print("\nwritten: {}\n", choice.out);
    };
}

void add_options(CLI::App& app, course::Program& program, Choice& choice) {
    app.add_option("--image", choice.image, "picture to blur")->default_str("a small one of our own");
    app.add_option("--sigma", choice.sigma, "width of the blur, in pixels")->capture_default_str();
    app.add_option("--filter", choice.filter, "size of the filter, odd")->default_str("6 sigma + 1");
    app.add_option("--border", choice.border, "replicate, reflect, constant or wrap")->capture_default_str();
    app.add_option("--out", choice.out, "write what --only, or the last version, makes of it");
    app.footer("Example: " + program.day + " --image in.png --sigma 4 --out out.png");
    app.callback([&] {
        require(std::isfinite(choice.sigma) && choice.sigma > 0, "--sigma ", choice.sigma,
                ": expected a finite number > 0");
        require(app.count("--filter") != 0 || choice.sigma <= static_cast<double>(kMostTaps / 6), "--sigma ",
                choice.sigma, ": expected at most ", kMostTaps / 6, ", or --filter as well");
        require(app.count("--filter") == 0 ||
                    (choice.filter > 0 && choice.filter <= static_cast<std::int64_t>(kMostTaps) &&
                     choice.filter % 2 == 1),
                "--filter ", choice.filter, ": expected an odd number, at most ", kMostTaps);
        const Border border{with_name_of("--border", [&] { return day10::border_named(choice.border); })};
        const bool random = app.count("--size") + app.count("--bench") != 0;
        for (const char* option : {"--image", "--sigma", "--filter", "--out"})
            require(!random || app.count(option) == 0, option,
                    ": expected without --size and --bench, whose pictures are random");
        if (app.count("--only") != 0) choice.version = app.get_option("--only")->as<std::string>();
        program.make_cases = {[border, asked_for = choice.version](const course::Dims& size) {
            return random_case(size, border, asked_for);
        }};
        const bool has_picture = day10::has_pictures() || app.count("--image") + app.count("--out") != 0;
        if (!random && has_picture) prepare_picture(choice, app.count("--out") != 0, border, program);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Choice choice;
    const course::Program program{
        .day = "day10_convolution",
        .title = "blurs a picture",
        .default_size = {240, 320, 11, 3},
        .bench_sizes =
            {{8192, 8192, 3}, {8192, 8192, 5}, {8192, 8192, 7}, {8192, 8192, 11}, {4096, 4096, 5, 3}},
        .make_cases = {},  // known when the options are
        .add_options = [&choice](CLI::App& app, course::Program& own) { add_options(app, own, choice); }};
    return course::run_program(program, argc, argv);
}
