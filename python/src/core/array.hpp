// The user's arrays as Medley buffers, without a copy: anything that supports DLPack or the buffer protocol.
// Used by every operation of medley._core.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <medley/buffer.hpp>

namespace medley::python {

/// An array that an operation uses. It keeps the memory alive and must be destroyed with the GIL held.
struct Array {
  nanobind::ndarray<nanobind::ro> view;  ///< holds a reference to the user's object
  Buffer buffer;
};

/// For memory that is only read. `what` names the argument in errors.
Array readable(nanobind::handle object, const char* what);
/// For memory that is written; rejects a read-only array.
Array writable(nanobind::handle object, const char* what);
/// The same for an argument that this rank may omit, as None: an empty buffer of the other's type.
Array readable_or_none(nanobind::handle object, const char* what, const Array& like);
Array writable_or_none(nanobind::handle object, const char* what, const Array& like);

}  // namespace medley::python
