// Which pairs of ranks the grouped sends and receives of a communicator have connected, so that later ones need not
// wait for the peers. Equal on all ranks: every exchange of a pattern connects all its pairs, also those without data.
#pragma once

#include <vector>

namespace medley::nccl {

enum class Pattern : unsigned char { everybody, to_root, from_root };

class Pairs {
 public:
  explicit Pairs(int ranks) : to_root_(static_cast<std::size_t>(ranks)), from_root_(static_cast<std::size_t>(ranks)) {}
  bool connected(Pattern pattern, int root) const {
    if (everybody_ || pattern == Pattern::everybody) return everybody_;
    return (pattern == Pattern::to_root ? to_root_ : from_root_)[static_cast<std::size_t>(root)];
  }
  void note(Pattern pattern, int root) {
    if (pattern == Pattern::everybody) {
      everybody_ = true;
    } else {
      (pattern == Pattern::to_root ? to_root_ : from_root_)[static_cast<std::size_t>(root)] = true;
    }
  }

 private:
  bool everybody_ = false;
  std::vector<bool> to_root_, from_root_;
};

}  // namespace medley::nccl
