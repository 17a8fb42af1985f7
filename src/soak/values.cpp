#include "soak/values.hpp"

#include <cmath>
#include <cstring>

namespace medley::soak {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double f16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

/// Exact for the values that the oracle stores: multiples of small powers of two with few digits.
std::uint16_t f16_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0) return sign;
  const int exponent = std::ilogb(value);
  const auto mantissa = static_cast<std::uint16_t>(std::ldexp(std::fabs(value), 10 - exponent) - 1024);
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | mantissa);
}

}  // namespace

double value_of(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64: return load<double>(at);
    case DType::f32: return load<float>(at);
    case DType::f16: return f16_value(load<std::uint16_t>(at));
    default: break;
  }
  const std::uint32_t wide = static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

namespace {

void store_float(std::byte* to, DType dtype, double value) {
  const auto narrow = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  const std::uint16_t half = dtype == DType::f16 ? f16_bits(value) : static_cast<std::uint16_t>(bits >> 16);
  switch (dtype) {
    case DType::f64: std::memcpy(to, &value, sizeof value); break;
    case DType::f32: std::memcpy(to, &narrow, sizeof narrow); break;
    default: std::memcpy(to, &half, sizeof half);
  }
}

/// Integers up to this are exact.
double largest_whole(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p53;
    case DType::f32: return 0x1p24;
    case DType::f16: return 0x1p11;
    default: return 0x1p8;
  }
}

bool exact_float(DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs) {
  double total = op == ReduceOp::product ? 1 : 0;
  for (const std::byte* input : inputs) {
    const double value = value_of(dtype, input);
    // With zeros of both signs, the result may have either sign.
    if (!std::isfinite(value) || (value == 0 && (std::signbit(value) || op == ReduceOp::product))) return false;
    if (op == ReduceOp::min || op == ReduceOp::max) continue;
    if (value != std::nearbyint(value)) return false;
    total = op == ReduceOp::product ? total * std::fabs(value) : total + std::fabs(value);
    if (total > largest_whole(dtype)) return false;
  }
  const bool power_of_two = (inputs.size() & (inputs.size() - 1)) == 0;
  return op != ReduceOp::avg || power_of_two;  // other results are rounded, and the backend decides where
}

template <class T>
void combine_integers(std::byte* to, ReduceOp op, const std::vector<const std::byte*>& inputs) {
  T value = load<T>(inputs[0]);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const T next = load<T>(inputs[i]);
    const auto a = static_cast<std::uint64_t>(value), b = static_cast<std::uint64_t>(next);  // wraps, defined
    switch (op) {
      case ReduceOp::sum: value = static_cast<T>(a + b); break;
      case ReduceOp::product: value = static_cast<T>(a * b); break;
      case ReduceOp::min: value = next < value ? next : value; break;
      case ReduceOp::max: value = value < next ? next : value; break;
      case ReduceOp::band: value = static_cast<T>(a & b); break;
      case ReduceOp::bor: value = static_cast<T>(a | b); break;
      default: value = static_cast<T>(a ^ b);
    }
  }
  std::memcpy(to, &value, sizeof value);
}

void combine_bools(std::byte* to, ReduceOp op, const std::vector<const std::byte*>& inputs) {
  int ones = 0;
  for (const std::byte* input : inputs) ones += *input != std::byte{0};
  const bool all = ones == static_cast<int>(inputs.size());
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor: *to = std::byte{ones > 0}; break;
    case ReduceOp::bxor: *to = std::byte{ones % 2 == 1}; break;
    default: *to = std::byte{all};
  }
}

void combine_floats(std::byte* to, DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs) {
  if (op == ReduceOp::min || op == ReduceOp::max) {  // the result has the bits of one of the inputs, whatever they mean
    const std::byte* best = inputs[0];
    for (const std::byte* input : inputs) {
      const double value = value_of(dtype, input), found = value_of(dtype, best);
      if (op == ReduceOp::min ? value < found : value > found) best = input;
    }
    std::memmove(to, best, size_of(dtype));
    return;
  }
  double value = value_of(dtype, inputs[0]);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const double next = value_of(dtype, inputs[i]);
    value = op == ReduceOp::product ? value * next : value + next;
  }
  if (op == ReduceOp::avg) value /= static_cast<double>(inputs.size());
  store_float(to, dtype, value);
}

}  // namespace

bool floating(DType dtype) { return reducible(dtype, ReduceOp::avg); }

void fill_word(std::byte* to, DType dtype, std::uint64_t bits) {
  const std::size_t size = size_of(dtype);
  for (std::size_t at = 0; at < 8; at += size) {
    const auto own = bits >> (8 * at);
    if (floating(dtype)) {
      const int magnitude = 1 + static_cast<int>(own & 3);
      store_float(to + at, dtype, own & 4 ? -magnitude : magnitude);
    } else {
      const std::uint64_t value = dtype == DType::boolean ? own & 1 : own;
      std::memcpy(to + at, &value, size);
    }
  }
}

bool exact(DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs) {
  if (floating(dtype))
    return inputs.size() == 1 ? !std::isnan(value_of(dtype, inputs[0])) : exact_float(dtype, op, inputs);
  if (dtype != DType::boolean) return true;
  for (const std::byte* input : inputs) {
    if (*input > std::byte{1}) return false;
  }
  return true;
}

void combine(std::byte* to, DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs) {
  if (inputs.size() == 1) {
    std::memmove(to, inputs[0], size_of(dtype));
    return;
  }
  switch (dtype) {
    case DType::i64: return combine_integers<std::int64_t>(to, op, inputs);
    case DType::i32: return combine_integers<std::int32_t>(to, op, inputs);
    case DType::i16: return combine_integers<std::int16_t>(to, op, inputs);
    case DType::i8: return combine_integers<std::int8_t>(to, op, inputs);
    case DType::u8: return combine_integers<std::uint8_t>(to, op, inputs);
    case DType::boolean: return combine_bools(to, op, inputs);
    default: return combine_floats(to, dtype, op, inputs);
  }
}

}  // namespace medley::soak
