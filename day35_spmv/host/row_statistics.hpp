// What decides which format suits a matrix: how long its rows are, and how unlike.
#pragma once

#include "host/csr_matrix.hpp"

namespace day35 {

struct RowStatistics {
    Shape shape;
    Offset entries = 0;
    Index longest = 0;
    Index empty = 0;    // rows without an entry
    double mean = 0;    // entries of a row
    double spread = 0;  // standard deviation of the rows' lengths, over their mean
    // Places over entries, 1 or more, of: ELL; SELL with sigma 1, and with rows sorted in windows
    // of kPackedSigma.
    double ell_filling = 1;
    double sell_filling = 1;
    double sorted_filling = 1;
};

inline constexpr Index kPackedSigma = 1024;

RowStatistics row_statistics(const CsrMatrix& csr);

}  // namespace day35
