// Operations as reconcile compares them: everything a plan says about one except its position in the order. A Catalog
// numbers them, so that a step of a million operations is a list of numbers.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/trace.hpp"

namespace medley::reconcile {

using trace::Field;
using trace::Fields;

/// One kind of operation. Fields that do not apply to its op have fixed values (normalise()).
struct Kind {
  Op op = Op::all_reduce;  ///< v-collectives count as their regular forms
  DType dtype = DType::u8;
  ReduceOp reduce = ReduceOp::sum;
  std::uint8_t phase = 0;  ///< see phase_number()
  bool async = false;
  std::uint32_t group = 0;  ///< number in the catalog; messages have none, only a peer
  std::int64_t root = -1;   ///< or the peer of a message; a world rank
  std::int64_t bytes = 0;
  Fields unknown;
  bool operator==(const Kind&) const = default;
};

/// 1 to 5 for forward, recompute, backward, grad_sync and optimizer; 0 for none of them.
std::uint8_t phase_number(std::string_view phase) noexcept;
std::string_view phase_name(std::uint8_t number) noexcept;

/// Clears the fields that do not apply to the op and those that are not compared.
void normalise(Kind& kind, Fields ignored);

/// `count` consecutive operations of one kind.
struct Run {
  std::uint32_t kind = 0;
  std::int64_t count = 1;
  bool operator==(const Run&) const = default;
};
/// What one rank issued in one step, in order.
using Sequence = std::vector<Run>;

class Catalog {
 public:
  struct Group {
    std::string name;
    std::vector<int> ranks;  ///< ascending; empty: unknown
  };

  /// The number of the group of these ranks; the first name wins, so number the plan's first. A group of unknown ranks
  /// is identified by its name.
  std::uint32_t group(std::vector<int> ranks, const std::string& name);
  std::uint32_t kind(const Kind& kind);
  const Kind& operator[](std::uint32_t kind) const { return kinds_[kind]; }
  const Group& group_of(const Kind& kind) const { return groups_[kind.group]; }
  const Group& group_of_number(std::uint32_t group) const { return groups_[group]; }

  /// Records why the plan has operations of this kind, or where in the program they were seen.
  void note_reason(std::uint32_t kind, const std::string& why);
  void note_place(std::uint32_t kind, const std::string& module);
  std::vector<std::string> reasons(std::uint32_t kind) const;
  std::vector<std::string> places(std::uint32_t kind) const;

  /// "all_reduce of 4096 B f32 sum on dp".
  std::string text(std::uint32_t kind) const;
  /// Whether an observed operation can be the expected one: equal in every field that both sides know.
  bool fits(std::uint32_t expected, std::uint32_t observed) const;
  /// The fields in which two operations of one op differ.
  std::vector<Field> differing(std::uint32_t expected, std::uint32_t observed) const;

 private:
  using Notes = std::unordered_map<std::uint32_t, std::vector<std::string>>;
  struct Hash {
    std::size_t operator()(const Kind& kind) const noexcept;
  };
  bool same(Field field, const Kind& expected, const Kind& observed) const;
  std::vector<Kind> kinds_;
  std::unordered_map<Kind, std::uint32_t, Hash> numbers_;
  std::vector<Group> groups_ = {{"", {}}};
  std::map<std::pair<std::vector<int>, std::string>, std::uint32_t> group_numbers_;
  Notes reasons_, places_;
};

}  // namespace medley::reconcile
