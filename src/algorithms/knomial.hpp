// The k-nomial tree over the ranks of a comm, counted from the root: rank v's parent is v without its lowest
// nonzero digit in base k. Radix 2 is the binomial tree.
#pragma once

#include <algorithm>
#include <vector>

namespace medley::algorithms {

inline constexpr int wide = 4;  ///< the radix of the trees named k-nomial

struct Branch {
  int rank;  ///< of the comm
  int from;  ///< its subtree is the ranks [from, from + size) counted from the root
  int size;
};

class Tree {
 public:
  Tree(int rank, int n, int root, int radix) : n_(n), root_(root), own_((rank - root + n) % n) {
    int digit = 1;  // the position of the lowest nonzero digit: the children are below it
    while (digit < n && own_ % (digit * radix) == 0) {
      for (int j = 1; j < radix && own_ + j * digit < n; ++j) {
        const int child = own_ + j * digit;
        children_.push_back({actual(child), child, std::min(digit, n - child)});
      }
      digit *= radix;
    }
    parent_ = own_ == 0 ? -1 : actual(own_ - own_ % (digit * radix));
    size_ = own_ == 0 ? n : std::min(digit, n - own_);
  }
  int parent() const { return parent_; }                             ///< -1: this is the root
  const std::vector<Branch>& children() const { return children_; }  ///< the smallest subtree first
  int from() const { return own_; }
  int size() const { return size_; }  ///< of its own subtree
  int actual(int counted_from_root) const { return (counted_from_root + root_) % n_; }

 private:
  int n_, root_, own_;
  int parent_ = -1, size_ = 1;
  std::vector<Branch> children_;
};

}  // namespace medley::algorithms
