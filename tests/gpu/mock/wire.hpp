// Sockets between the ranks of a mock communicator: every pair has one, ranks are threads or processes of one machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace medley::mock {

/// One message of an exchange; those of a pair are in order, as with NCCL.
struct Parcel {
  int peer;
  std::byte* data;
  std::size_t bytes;
};

class Wire {
 public:
  /// Connects to the other ranks under a name; false when told to give up.
  bool connect(const std::string& name, int ranks, int rank, const std::atomic<bool>& give_up);
  /// Executes all sends and receives; false when told to give up. A message whose size differs from its
  /// receive hangs, as with NCCL.
  bool exchange(const std::vector<Parcel>& sends, const std::vector<Parcel>& receives,
                const std::atomic<bool>& give_up);
  void close();

 private:
  std::vector<int> sockets_;  ///< by rank
};

}  // namespace medley::mock
