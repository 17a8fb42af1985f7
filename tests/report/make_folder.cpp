// make_folder FOLDER OPERATIONS: a folder with one file of each kind and a trace of two ranks, for the
// browser test.
#include <cstdio>
#include <cstdlib>

#include "report/files.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_folder FOLDER OPERATIONS\n");
    return 2;
  }
  medley::report::test::write_all(argv[1], std::strtoull(argv[2], nullptr, 10));
}
