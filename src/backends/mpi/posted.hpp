// Messages of a lane whose requests are tested together, by one MPI call per pass of the engine. Used by the lane and
// its transfers, under the library's lock.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace medley::mpi {

class MpiTransfer;

/// MPI_Test of a request that is not complete progresses the whole library: with 64 receives pending, one pass of
/// single tests took as long as receiving 30 messages.
class Posted {
 public:
  void add(MPI_Request request, MpiTransfer* owner);
  /// Returns its request, which is tested no longer.
  MPI_Request remove(const MpiTransfer* owner) noexcept;
  /// Tests some of them, and gives those that are complete back to their owners. Throws if MPI cannot say which.
  void test();
  bool empty() const { return requests_.empty(); }

 private:
  static constexpr std::size_t at_once = 64;     ///< requests in one MPI call
  static constexpr std::size_t in_a_pass = 512;  ///< a pass holds the engine's lock: some 2 µs

  bool test(std::size_t begin, std::size_t count);
  MPI_Request take(std::size_t place) noexcept;

  std::vector<MPI_Request> requests_;
  std::vector<MpiTransfer*> owners_;  ///< by the same index
  std::size_t next_ = 0;              ///< where the next pass begins
};

}  // namespace medley::mpi
