// Maps kinds of errors to the classes of medley.errors. Used by both extension modules.
#pragma once

#include <medley/error.hpp>

namespace medley::python {

inline const char* error_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid:
      return "Invalid";
    case ErrorKind::unavailable:
      return "Unavailable";
    case ErrorKind::mismatch:
      return "Mismatch";
    case ErrorKind::timeout:
      return "Timeout";
    case ErrorKind::rank_lost:
      return "RankLost";
    case ErrorKind::aborted:
      return "Aborted";
    case ErrorKind::system:
      return "System";
  }
  return "Error";
}

}  // namespace medley::python
