// A made-up molecule: something to look at for the map and the energy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "atoms.hpp"

namespace day14 {

// A chain of `residues` residues, folded into a ball around (0, 0, 0) by a random walk. Each
// residue has four atoms: the positive and the negative end of its backbone's dipole, 0.5 and -0.5,
// 1.2 angstrom apart, and two of a side chain. Every third side chain has a charge of 1 or -1 at
// its outer atom, in pairs of both signs, so the molecule is neutral. In three of four pairs the
// positive one has the larger x, so one side of the molecule is positive and the other negative.
//
// A step is 3.8 angstrom long, as far as adjacent residues of a protein are apart, and the ball has
// 135 cubic angstrom for each residue. The walk keeps its places 3.8 angstrom apart where 200 tries
// find one that is free.
std::vector<Atom> random_molecule(std::size_t residues, std::uint64_t seed);

}  // namespace day14
