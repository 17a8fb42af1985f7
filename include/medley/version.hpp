// The version of these headers, for the preprocessor and for programs; library_version() is that of the library at run
// time.
#pragma once

#include <medley/export.hpp>

#define MEDLEY_VERSION_MAJOR 0
#define MEDLEY_VERSION_MINOR 1
#define MEDLEY_VERSION_PATCH 0
/// Compares: #if MEDLEY_VERSION >= MEDLEY_MAKE_VERSION(0, 2, 0)
#define MEDLEY_MAKE_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define MEDLEY_VERSION MEDLEY_MAKE_VERSION(MEDLEY_VERSION_MAJOR, MEDLEY_VERSION_MINOR, MEDLEY_VERSION_PATCH)
#define MEDLEY_STRINGIZE(text) #text
#define MEDLEY_JOIN_VERSION(major, minor, patch) \
  MEDLEY_STRINGIZE(major) "." MEDLEY_STRINGIZE(minor) "." MEDLEY_STRINGIZE(patch)
/// Such as "0.1.0".
#define MEDLEY_VERSION_TEXT MEDLEY_JOIN_VERSION(MEDLEY_VERSION_MAJOR, MEDLEY_VERSION_MINOR, MEDLEY_VERSION_PATCH)

namespace medley {

/// The version of the libmedley.so that is loaded, in the form of MEDLEY_MAKE_VERSION. A program built with any 0.1.x
/// can use any libmedley.so.0.1.
MEDLEY_API int library_version() noexcept;

}  // namespace medley
