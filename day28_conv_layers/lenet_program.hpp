// The part of day 28's program that trains LeNet-5.
#pragma once

#include <string>

#include "common/bench/program.hpp"

namespace day28 {

struct Training {
    std::string directory;  // for its results; empty: no training
    int steps = 3000;
};

// Trains on 60,000 drawn digits, 64 in each step, and prints the loss and the accuracy on 10,000
// others. Throws std::invalid_argument when the directory cannot be written to.
void train(const Training& training);

// A step of the training with batches of `batch` pictures, to be timed.
course::Case training_case(int batch);

}  // namespace day28
