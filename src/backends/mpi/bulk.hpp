// Byte ranges of any size for MPI, whose counts are ints: a count and a type.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace medley::mpi {

/// Describes `bytes` bytes at `offset`; makes a type only where the byte count does not fit an int. MPI keeps a type
/// that a started operation uses, so this object may be destroyed as soon as the call returns.
class Bulk {
 public:
  Bulk(std::int64_t bytes, std::int64_t chunk, std::int64_t offset = 0);
  /// One block of `bytes`, each of which begins `stride` bytes after the one before.
  static Bulk strided(std::int64_t bytes, std::int64_t stride);
  ~Bulk();
  Bulk(Bulk&& other) noexcept;
  Bulk(const Bulk&) = delete;
  Bulk& operator=(const Bulk&) = delete;
  Bulk& operator=(Bulk&&) = delete;

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  Bulk() = default;
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
  bool made_ = false;
};

}  // namespace medley::mpi
