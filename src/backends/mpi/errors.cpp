#include "backends/mpi/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace medley::mpi {

std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("code {}", code);
  std::string line(text.data(), static_cast<std::size_t>(length));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(ErrorKind::system, fmt::format("{} failed: {}", call, text_of(code)));
}

bool is_truncation(int code) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind == MPI_ERR_TRUNCATE;
}

}  // namespace medley::mpi
