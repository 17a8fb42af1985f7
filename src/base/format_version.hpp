// Format numbers of files that outlive the version of Medley that wrote them (docs/formats.md). A reader
// calls check_format() before it reads anything else of the file.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <medley/error.hpp>
#include <string_view>

namespace medley::core {

/// One kind of file. A file without a number has number 1 where versions before the first number wrote it so.
struct FileFormat {
  std::string_view what;   ///< "route table"
  int oldest, current;     ///< the numbers that are read; `current` is the one that is written
  std::string_view renew;  ///< how to get a file that can be read: "measure again with medley tune"
};

/// Throws Error(invalid), with what to do, unless this version reads files of that number.
inline void check_format(const FileFormat& format, std::string_view file, std::int64_t number) {
  if (number >= format.oldest && number <= format.current) return;
  throw Error(ErrorKind::invalid,
              fmt::format("{}: this {} has format {}, which {} version of Medley wrote; this version reads format{}; "
                          "use that version or {}",
                          file, format.what, number, number > format.current ? "a newer" : "an older",
                          format.oldest == format.current ? fmt::format(" {}", format.current)
                                                          : fmt::format("s {} to {}", format.oldest, format.current),
                          format.renew));
}

}  // namespace medley::core
