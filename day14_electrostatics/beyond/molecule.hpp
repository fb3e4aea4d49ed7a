// A made-up molecule: something to look at for the map and the energy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "atoms.hpp"

namespace day14 {

// A chain of `residues` residues, folded into a ball around (0, 0, 0) by a random walk. Each residue
// has four atoms: the positive and the negative end of its backbone's dipole, 0.5 and -0.5, 1.2
// angstrom apart, and two of a side chain. Every third side chain has a charge of 1 or -1 at its
// outer atom; the sign is the same as that of x in three of four, so the molecule has a positive and
// a negative side. All others are neutral.
//
// Steps are 3.8 angstrom long, which is the distance of adjacent residues in a protein. No two
// places of the walk are closer than that, or, where the ball is full, than what is left.
std::vector<Atom> random_molecule(std::size_t residues, std::uint64_t seed);

}  // namespace day14
