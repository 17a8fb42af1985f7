#include "backends/mpi/bulk.hpp"

#include <utility>

#include "backends/mpi/errors.hpp"

namespace medley::mpi {

Bulk::Bulk(std::int64_t bytes, std::int64_t chunk, std::int64_t offset) {
  if (bytes <= chunk && offset == 0) {
    count_ = static_cast<int>(bytes);
    return;
  }
  const std::int64_t whole = bytes / chunk;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(chunk), MPI_BYTE, &block), "MPI_Type_contiguous");
  int lengths[] = {static_cast<int>(whole), static_cast<int>(bytes % chunk)};
  MPI_Aint places[] = {static_cast<MPI_Aint>(offset), static_cast<MPI_Aint>(offset + whole * chunk)};
  MPI_Datatype types[] = {block, MPI_BYTE};
  const int made = MPI_Type_create_struct(2, lengths, places, types, &type_);
  MPI_Type_free(&block);
  check(made, "MPI_Type_create_struct");
  made_ = true;
  count_ = 1;
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
}

Bulk Bulk::strided(std::int64_t bytes, std::int64_t stride) {
  Bulk bulk;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &block), "MPI_Type_contiguous");
  const int made = MPI_Type_create_resized(block, 0, static_cast<MPI_Aint>(stride), &bulk.type_);
  MPI_Type_free(&block);
  check(made, "MPI_Type_create_resized");
  bulk.made_ = true;
  bulk.count_ = 1;
  check(MPI_Type_commit(&bulk.type_), "MPI_Type_commit");
  return bulk;
}

Bulk::Bulk(Bulk&& other) noexcept
    : count_(other.count_), type_(other.type_), made_(std::exchange(other.made_, false)) {}

Bulk::~Bulk() {
  if (made_) MPI_Type_free(&type_);
}

}  // namespace medley::mpi
