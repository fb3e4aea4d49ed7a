// Day 36's program: every version verified and timed on three kinds of graphs, beside the queue of
// the CPU.
//
//     day36_graph_traversal --size VERTICES
//     day36_graph_traversal --film DIRECTORY      frames of a search; scripts/make_film.py joins them
//
// A launch searches from the next of 17 sources, so that the median over launches is one over
// sources. An odd number: a timed launch comes after one that is not timed, and every second source
// of an even number would never be timed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/random.hpp"
#include "graph_traversal.hpp"

namespace {

using day36::Graph;
using day36::Vertex;

constexpr std::uint64_t kSeed = 36;
constexpr std::size_t kSources = 17;
constexpr std::size_t kMostRandom = std::size_t{1} << 22;  // vertices: more edges would take minutes to make

struct Data {
    explicit Data(Graph made)
        : graph(std::move(made)),
          on_device(graph),
          workspace(on_device),
          level(graph.vertices()),
          parent(graph.vertices()) {
        // All sources are in the component of the vertex with the most edges.
        Vertex hub = 0;
        for (Vertex v = 0; v < graph.vertices(); ++v)
            if (graph.neighbours_of(v).size() > graph.neighbours_of(hub).size()) hub = v;
        const std::vector<std::uint32_t> from_hub = search_on_cpu(graph, hub).level;
        input_edges = static_cast<double>(edges_of_reached(graph, from_hub)) / 2;
        course::Random random(kSeed);
        for (Vertex& source : sources) {
            do {
                source = random.below(static_cast<std::uint32_t>(graph.vertices()));
            } while (from_hub[source] == day36::kUnreached);
        }
    }

    Vertex next_source() {
        searched = (searched + 1) % kSources;
        return sources[searched];
    }

    // The search that was launched last. The rules compare nothing with the reference, and no other
    // levels fulfil them.
    course::VerifyResult verify(const std::vector<std::uint32_t>& got_level,
                                const std::vector<Vertex>& got_parent) const {
        course::VerifyResult result;
        result.compared = got_level.size();
        const std::string wrong = what_is_wrong(graph, sources[searched], got_level, got_parent);
        if (!wrong.empty()) {
            result.differing = 1;
            result.first = {{sources[searched], "a search from this vertex", wrong, ""}};
        }
        return result;
    }

    Graph graph;
    day36::DeviceGraph on_device;
    day36::Workspace workspace;
    course::GuardedBuffer<std::uint32_t> level;
    course::GuardedBuffer<Vertex> parent;
    day36::Search on_cpu;
    std::array<Vertex, kSources> sources{};
    std::size_t searched = 0;  // the source of the last launch
    double input_edges = 0;    // of the component; each is stored twice
};

course::Case make_case(const std::string& name, Graph graph) {
    const std::size_t vertices = graph.vertices();
    const day36::Problem problem{vertices};
    course::UsualCase<Data> usual(fmt::format("{} {}", name, vertices), "uint32",
                                  std::make_shared<Data>(std::move(graph)));
    usual.output(&Data::level, [](const Data& d, const std::vector<std::uint32_t>& got) {
        course::VerifyResult result = d.verify(got, d.parent.to_host());
        result.damage = d.parent.damage();
        return result;
    });
    usual.also_spoil([](Data& d) {
        d.searched = 0;  // the same sources for each version
        d.parent.spoil();
        d.on_cpu = {};
    });
    usual.add(
        {.name = "cpu_queue",
         .role = course::Role::kPeer,
         .launch = [data = usual.data](
                       cudaStream_t) { data->on_cpu = search_on_cpu(data->graph, data->next_source()); },
         .work = day36::versions().front().work(problem),
         .on_host = true,
         .verify = [data = usual.data] { return data->verify(data->on_cpu.level, data->on_cpu.parent); }});
    usual.versions(day36::versions(), problem,
                   [](const day36::Version& version, Data& d, cudaStream_t stream) {
                       version.launcher(d.on_device, d.next_source(), d.level.span(), d.parent.span(),
                                        d.workspace, stream);
                   });
    usual.result.derive_figures = [edges = usual.data->input_edges](std::span<course::Record> records) {
        for (course::Record& record : records)
            if (record.measurement)
                record.figures.push_back({"GTEPS", edges / record.measurement->ms.median * 1e-6});
    };
    return usual.result;
}

std::size_t vertices_of(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "vertices");
    course::require(n <= day36::kMostVertices, "size is ", n, "; expected at most ", day36::kMostVertices);
    return n;
}

// 16 edges for each vertex, of a power of two of them.
course::Case rmat_case(const course::Dims& size) {
    const std::size_t n = vertices_of(size);
    const auto scale = static_cast<unsigned>(std::log2(static_cast<double>(n)));
    return n > kMostRandom ? course::Case{}
                           : make_case("rmat", day36::rmat(scale, std::size_t{16} << scale, kSeed));
}
course::Case uniform_case(const course::Dims& size) {
    const std::size_t n = vertices_of(size);
    return n > kMostRandom ? course::Case{} : make_case("uniform", day36::uniform(n, 16 * n, kSeed));
}
course::Case grid_case(const course::Dims& size) {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(vertices_of(size))));
    return make_case("grid", day36::grid_2d(side, side));
}

// --- A film --------------------------------------------------------------------------------------

// Rooms with doors, seen from above. A cell of a wall is a vertex without edges.
constexpr std::size_t kWidth = 257;
constexpr std::size_t kHeight = 113;
constexpr std::size_t kRoomWidth = 32;
constexpr std::size_t kRoomHeight = 28;
constexpr std::size_t kDoor = 5;
constexpr int kFrames = 60;

std::vector<bool> make_walls() {
    std::vector<bool> is_wall(kWidth * kHeight);
    for (std::size_t cell = 0; cell < is_wall.size(); ++cell)
        is_wall[cell] = cell % kWidth % kRoomWidth == 0 || cell / kWidth % kRoomHeight == 0;
    // A door to the room on the right and to the one below, of most rooms.
    course::Random random(kSeed);
    const auto door = [&](std::uint32_t room) {
        return 2 + random.below(room - 4 - static_cast<std::uint32_t>(kDoor));
    };
    for (std::size_t y = 0; y + 1 < kHeight; y += kRoomHeight) {
        for (std::size_t x = 0; x + 1 < kWidth; x += kRoomWidth) {
            const std::size_t down = door(kRoomHeight);
            const std::size_t right = door(kRoomWidth);
            const bool has_right = x + kRoomWidth + 1 < kWidth && random.below(5) > 0;
            const bool has_down = y + kRoomHeight + 1 < kHeight && random.below(5) > 0;
            for (std::size_t i = 0; i < kDoor; ++i) {
                if (has_right) is_wall[(y + down + i) * kWidth + x + kRoomWidth] = false;
                if (has_down) is_wall[(y + kRoomHeight) * kWidth + x + right + i] = false;
            }
        }
    }
    return is_wall;
}

Graph between(const std::vector<bool>& is_wall) {
    std::vector<day36::Edge> edges;
    for (Vertex v = 0; v + kWidth < is_wall.size(); ++v) {
        for (const std::size_t step : {std::size_t{1}, kWidth})
            if (!is_wall[v] && !is_wall[v + step]) edges.push_back({v, static_cast<Vertex>(v + step)});
    }
    return Graph::undirected(is_wall.size(), edges);
}

// The frontier is nearly white. Behind it, 16 levels have one colour.
void write_frame(const std::filesystem::path& file, const std::vector<bool>& is_wall,
                 const std::vector<std::uint32_t>& levels, std::uint32_t now) {
    static constexpr std::uint8_t kColours[][3] = {{40, 72, 136},  {32, 120, 152}, {40, 152, 120},
                                                   {136, 176, 72}, {216, 176, 64}, {216, 112, 64},
                                                   {176, 64, 96},  {104, 56, 128}};
    static constexpr std::uint8_t kWall[3] = {120, 128, 144};
    static constexpr std::uint8_t kEmpty[3] = {16, 20, 48};
    static constexpr std::uint8_t kFrontier[3] = {255, 252, 236};
    std::ofstream out(file, std::ios::binary);
    out << "P6\n" << kWidth << " " << kHeight << "\n255\n";
    for (std::size_t cell = 0; cell < levels.size(); ++cell) {
        const std::uint32_t level = levels[cell];
        const std::uint8_t* colour = kEmpty;
        if (is_wall[cell])
            colour = kWall;
        else if (level <= now)
            colour = now - level < 2 ? kFrontier : kColours[level / 16 % std::size(kColours)];
        out.write(reinterpret_cast<const char*>(colour), 3);
    }
    course::require(static_cast<bool>(out.flush()), "--film: ", file.string(), " cannot be written");
}

void write_film(const std::string& directory) {
    course::require(std::filesystem::is_directory(directory), "--film ", directory, ": expected a directory");
    const std::vector<bool> is_wall = make_walls();
    Data data(between(is_wall));
    // The middle of a room in the middle.
    const std::size_t row = kHeight / 2 + kRoomHeight / 2;
    const auto source = static_cast<Vertex>(row * kWidth + kWidth / 2 + kRoomWidth / 2);
    course::find_version(day36::versions(), "direction_optimised")
        .launcher(data.on_device, source, data.level.span(), data.parent.span(), data.workspace, nullptr);
    const std::vector<std::uint32_t> levels = data.level.to_host();
    std::uint32_t last = 0;
    for (const std::uint32_t level : levels)
        if (level != day36::kUnreached) last = std::max(last, level);
    for (int frame = 0; frame < kFrames; ++frame)
        write_frame(std::filesystem::path(directory) / fmt::format("frame{:03}.ppm", frame), is_wall, levels,
                    static_cast<std::uint32_t>(frame) * (last + 2) / (kFrames - 1));
}

}  // namespace

int main(int argc, char** argv) {
    std::string film;
    const course::Program program{
        .day = "day36_graph_traversal",
        .title = "breadth-first searches of graphs with n vertices, 16 edges each, and of a grid",
        .default_size = {1 << 10},
        .bench_sizes = {{1 << 20}, {1 << 22}, {1 << 24}},
        .make_cases = {rmat_case, uniform_case, grid_case},
        .add_options =
            [&film](CLI::App& app, course::Program&) {
                app.add_option("--film", film, "write frames of a film to this directory");
            },
        .finish =
            [&film] {
                if (!film.empty()) write_film(film);
            }};
    return course::run_program(program, argc, argv);
}
