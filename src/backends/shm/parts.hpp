// A part of memory per rank of a comm, described rather than stored: what a rank gives to each, or takes from each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace medley::shm {

struct Parts {
  enum class Kind : std::uint8_t {
    none,
    common,   ///< one part for all ranks, or all but one
    only,     ///< a part for one rank
    uniform,  ///< equal parts, side by side
    listed,   ///< counts and offsets per rank
  };
  struct Part {
    std::byte* data;
    std::size_t bytes;
  };

  Kind kind = Kind::none;
  std::byte* base = nullptr;
  std::size_t bytes = 0;                 ///< per part, unless listed
  int rank = 0;                          ///< whose part it is (only), or who gets none (common; -1: nobody)
  const std::int64_t* counts = nullptr;  ///< listed, in elements
  const std::int64_t* offsets = nullptr;
  std::size_t element = 1;

  // Setters rather than values: these are filled in for every operation, and copying them would cost more than the
  // exchange of a few bytes.
  void set_none() { kind = Kind::none, bytes = 0; }
  void set_common(const void* from, std::size_t size, int but = -1) {
    kind = Kind::common, base = bare(from), bytes = size, rank = but;
  }
  void set_only(const void* from, std::size_t size, int whose) {
    kind = Kind::only, base = bare(from), bytes = size, rank = whose;
  }
  void set_uniform(const void* from, std::size_t size) { kind = Kind::uniform, base = bare(from), bytes = size; }
  void set_listed(const void* from, const std::int64_t* how_many, const std::int64_t* where, std::size_t size) {
    kind = Kind::listed, base = bare(from), bytes = 0, counts = how_many, offsets = where, element = size;
  }

  Part at(int r) const {
    const auto i = static_cast<std::size_t>(r);
    switch (kind) {
      case Kind::none: break;
      case Kind::common: return r == rank ? Part{nullptr, 0} : Part{base, bytes};
      case Kind::only: return r == rank ? Part{base, bytes} : Part{nullptr, 0};
      case Kind::uniform: return {base + i * bytes, bytes};
      case Kind::listed:
        return {base + static_cast<std::size_t>(offsets[i]) * element, static_cast<std::size_t>(counts[i]) * element};
    }
    return {nullptr, 0};
  }

  /// Bytes of all parts placed contiguously; a common part counts once.
  std::size_t total(int ranks) const {
    if (kind == Kind::uniform) return bytes * static_cast<std::size_t>(ranks);
    if (kind != Kind::listed) return bytes;
    std::size_t sum = 0;
    for (int r = 0; r < ranks; ++r) sum += at(r).bytes;
    return sum;
  }

 private:
  // Parts serve both directions; what is given is never written.
  static std::byte* bare(const void* p) { return static_cast<std::byte*>(const_cast<void*>(p)); }
};

}  // namespace medley::shm
