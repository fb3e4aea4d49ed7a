// The learner's files after the lesson has changed: new functions around the exercises, or
// exercises in another file.
#pragma once

#include "logbook.hpp"
#include "workbook.hpp"

namespace course::tool {

// Renews the learner's files of exercises whose lesson has other functions than they have, or whose
// kernels have moved to another file: the blank file of today, with the bodies that the learner has
// written. The file of before is kept under another name, and a message on stderr says so. A lesson
// that has not changed since the last call costs a look at its text.
void renew_files(const Workbook& book, Logbook& logbook);

}  // namespace course::tool
