#include "array.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <medley/error.hpp>
#include <string>

namespace nb = nanobind;

namespace medley::python {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorKind::invalid, sentence);
}

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

std::string dtype_name(nb::dlpack::dtype dtype) {
  static constexpr const char* codes[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  return dtype.code < 7 ? fmt::format("{}{}", codes[dtype.code], dtype.bits)
                        : fmt::format("type code {}", dtype.code);
}

DType element_type(nb::dlpack::dtype dtype, const char* what) {
  using Code = nb::dlpack::dtype_code;
  if (dtype.lanes == 1) {
    switch (static_cast<Code>(dtype.code)) {
      case Code::Float:
        if (dtype.bits == 64) return DType::f64;
        if (dtype.bits == 32) return DType::f32;
        if (dtype.bits == 16) return DType::f16;
        break;
      case Code::Bfloat:
        if (dtype.bits == 16) return DType::bf16;
        break;
      case Code::Int:
        if (dtype.bits == 64) return DType::i64;
        if (dtype.bits == 32) return DType::i32;
        if (dtype.bits == 16) return DType::i16;
        if (dtype.bits == 8) return DType::i8;
        break;
      case Code::UInt:
        if (dtype.bits == 8) return DType::u8;
        break;
      case Code::Bool:
        if (dtype.bits == 8) return DType::boolean;
        break;
      default:
        break;
    }
  }
  refuse(fmt::format(
      "{}: elements of type {} cannot be sent; give a view as one of float64, float32, float16, bfloat16, "
      "int64, int32, int16, int8, uint8, bool",
      what, dtype_name(dtype)));
}

/// Row-major without gaps; dimensions of size 1 may have any stride.
template <typename View>
bool contiguous(const View& view) {
  std::int64_t expected = 1;
  for (std::size_t i = view.ndim(); i-- > 0;) {
    if (view.shape(i) == 0) return true;
    if (view.shape(i) != 1 && view.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(view.shape(i));
  }
  return true;
}

template <typename View>
Buffer buffer_of(const View& view, const char* what) {
  Memory memory = Memory::host;
  switch (view.device_type()) {
    case nb::device::cpu::value:
    case nb::device::cuda_host::value:
      break;
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value:
      memory = Memory::cuda;
      break;
    default:
      refuse(fmt::format("{}: its memory is on a device that Medley does not know (DLPack device type {})",
                         what, view.device_type()));
  }
  if (!contiguous(view)) {
    refuse(
        fmt::format("{}: the array is not contiguous; give a contiguous copy (numpy.ascontiguousarray, "
                    "tensor.contiguous()) and copy back what it receives",
                    what));
  }
  return {const_cast<void*>(static_cast<const void*>(view.data())), static_cast<std::int64_t>(view.size()),
          element_type(view.dtype(), what), memory, view.device_id()};
}

[[noreturn]] void explain(nb::handle object, const char* what) {
  refuse(fmt::format(
      "{}: {} offers neither DLPack nor the buffer protocol, or has elements that they cannot describe", what,
      class_name(object)));
}

Array empty_like(const Array& like) {
  return {{}, {nullptr, 0, like.buffer.dtype, like.buffer.memory, like.buffer.device}};
}

}  // namespace

Array readable(nb::handle object, const char* what) {
  nb::ndarray<nb::ro> view;
  if (!nb::try_cast(object, view, false) || !view.is_valid()) explain(object, what);
  return {view, buffer_of(view, what)};
}

Array writable(nb::handle object, const char* what) {
  nb::ndarray<> view;
  if (!nb::try_cast(object, view, false) || !view.is_valid()) {
    nb::ndarray<nb::ro> fixed;
    if (!nb::try_cast(object, fixed, false) || !fixed.is_valid()) explain(object, what);
    refuse(fmt::format("{}: the array is read-only, but the operation writes into it", what));
  }
  return {nb::ndarray<nb::ro>(view), buffer_of(view, what)};
}

Array readable_or_none(nb::handle object, const char* what, const Array& like) {
  return object.is_none() ? empty_like(like) : readable(object, what);
}

Array writable_or_none(nb::handle object, const char* what, const Array& like) {
  return object.is_none() ? empty_like(like) : writable(object, what);
}

}  // namespace medley::python
