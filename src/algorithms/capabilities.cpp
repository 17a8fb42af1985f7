#include "algorithms/capabilities.hpp"

#include <algorithm>

namespace medley::core {
namespace {

std::string key(Op op, std::string_view algorithm) { return std::string(name(op)) + '/' + std::string(algorithm); }

}  // namespace

Capabilities::Capabilities(const Backend& backend) {
  for (std::size_t m = 0; m < memory_kinds; ++m) {
    const auto memory = static_cast<Memory>(m);
    // A barrier uses no memory, so each backend is queried for every kind of memory.
    if (backend.native(Op::barrier, DType::u8, ReduceOp::sum, memory)) {
      bits_.set(index(Op::barrier, DType::u8, ReduceOp::sum, memory));
    }
    if (!backend.has_memory(memory)) continue;
    bits_.set(memory_bits + m);
    for (int op = 0; op < op_count; ++op) {
      for (int dtype = 0; dtype < dtype_count; ++dtype) {
        for (int reduce = 0; reduce < reduce_op_count; ++reduce) {
          const auto o = static_cast<Op>(op);
          const auto d = static_cast<DType>(dtype);
          const auto r = static_cast<ReduceOp>(reduce);
          if (backend.native(o, d, r, memory)) bits_.set(index(o, d, r, memory));
        }
      }
    }
  }
  if (backend.fixed_order()) bits_.set(order_bit);
  for (std::size_t trait = 0; trait < trait_count; ++trait) {
    if (backend.has(static_cast<Trait>(trait))) bits_.set(trait_bits + trait);
  }
  for (int op = 0; op < op_count; ++op) {
    for (const std::string_view algorithm : backend.algorithms(static_cast<Op>(op))) {
      algorithms_.insert(key(static_cast<Op>(op), algorithm));
    }
  }
}

bool Capabilities::has_algorithm(Op op, std::string_view algorithm) const {
  return !algorithms_.empty() && algorithms_.contains(key(op, algorithm));
}

std::vector<std::string> Capabilities::algorithms(Op op) const {
  std::vector<std::string> names;
  const std::string prefix = key(op, {});
  for (auto at = algorithms_.lower_bound(prefix); at != algorithms_.end() && at->starts_with(prefix); ++at) {
    names.push_back(at->substr(prefix.size()));
  }
  return names;
}

void Capabilities::keep_common(const Capabilities& other) {
  bits_ &= other.bits_;
  std::erase_if(algorithms_, [&](const std::string& algorithm) { return !other.algorithms_.contains(algorithm); });
}

// Run-length encoding, since backends differ by whole rows: a few dozen characters instead of thousands.
std::string Capabilities::to_text() const {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= bits_.size(); ++i) {
    if (i < bits_.size() && bits_[i] == bits_[begin]) continue;
    if (bits_[begin]) text += std::to_string(begin) + "-" + std::to_string(i) + ",";
    begin = i;
  }
  for (const std::string& algorithm : algorithms_) text += ';' + algorithm;
  return text;
}

Capabilities Capabilities::from_text(const std::string& text) {
  Capabilities result;
  const std::size_t bits = std::min(text.find(';'), text.size());
  for (std::size_t at = bits; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at + 1), text.size());
    result.algorithms_.insert(text.substr(at + 1, end - at - 1));
    at = end;
  }
  for (std::size_t at = 0; at < bits;) {
    std::size_t used = 0;
    const std::size_t begin = std::stoul(text.substr(at), &used);
    at += used + 1;
    const std::size_t end = std::stoul(text.substr(at), &used);
    at += used + 1;
    for (std::size_t i = begin; i < end && i < result.bits_.size(); ++i) result.bits_.set(i);
  }
  return result;
}

}  // namespace medley::core
