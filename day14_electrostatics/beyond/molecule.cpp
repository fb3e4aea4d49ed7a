#include "beyond/molecule.hpp"

#include <algorithm>
#include <cmath>

#include "common/device/random.hpp"

namespace day14 {
namespace {

struct Place {
    float x, y, z;
};

float square_of_distance(const Place& a, const Place& b) {
    return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z);
}

float length(const Place& a) {
    return std::sqrt(square_of_distance(a, {0, 0, 0}));
}

// a + distance * direction.
Place moved(const Place& a, const Place& direction, float distance) {
    return {a.x + distance * direction.x, a.y + distance * direction.y, a.z + distance * direction.z};
}

// A random direction: a point of the cube that lies in the unit ball, but not at its middle.
Place direction(course::Random& random) {
    while (true) {
        const Place place{random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1)};
        const float r = length(place);
        if (r > 0.1f && r <= 1) return {place.x / r, place.y / r, place.z / r};
    }
}

constexpr float kStep = 3.8f;
constexpr int kTries = 200;

// The next place of the walk: of some tries, the first that is free and in the ball; else the one
// that is furthest from all others, or in the ball again soonest.
Place next_place(const std::vector<Place>& walk, float radius, course::Random& random) {
    Place best{};
    float best_worth = -1e30f;
    for (int i = 0; i < kTries; ++i) {
        const Place place = moved(walk.back(), direction(random), kStep);
        float nearest = kStep;
        for (std::size_t other = 0; other + 1 < walk.size(); ++other)
            nearest = std::min(nearest, std::sqrt(square_of_distance(walk[other], place)));
        const float worth = nearest - std::max(0.0f, length(place) - radius);
        if (worth > best_worth) {
            best = place;
            best_worth = worth;
        }
        if (best_worth >= kStep) break;
    }
    return best;
}

}  // namespace

std::vector<Atom> random_molecule(std::size_t residues, std::uint64_t seed) {
    course::Random random(seed);
    // A residue of a protein takes about 135 cubic angstrom.
    const float radius = std::cbrt(135 * 3 / (4 * 3.14159f) * static_cast<float>(residues));
    std::vector<Place> walk{{0, 0, 0}};
    std::vector<Atom> atoms;
    for (std::size_t i = 0; i < residues; ++i) {
        if (i > 0) walk.push_back(next_place(walk, radius, random));
        const Place& at = walk.back();
        const auto add = [&](const Place& place, float charge) {
            atoms.push_back({place.x, place.y, place.z, charge});
        };
        const Place dipole = direction(random);
        add(moved(at, dipole, 0.6f), 0.5f);
        add(moved(at, dipole, -0.6f), -0.5f);
        const Place side_chain = direction(random);
        add(moved(at, side_chain, 1.5f), 0);
        add(moved(at, side_chain, 3.0f), 0);
        // Residues 0 and 3 of each six get their charges together, when both places are known.
        if (i % 6 == 3) {
            Atom& here = atoms.back();
            Atom& before = atoms[atoms.size() - 1 - std::size_t{3} * 4];
            const bool by_side = random.below(4) != 0;
            here.charge = (here.x > before.x) == by_side ? 1.0f : -1.0f;
            before.charge = -here.charge;
        }
    }
    return atoms;
}

}  // namespace day14
