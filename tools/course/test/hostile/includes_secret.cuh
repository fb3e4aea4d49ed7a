// Includes a file of the teacher, whose lines would be on the page as errors.
// expect: not yet.*No such file
#include "@SECRET@"
