// How the ranks of a comm agree on the size of operations whose counts they do not all know (gatherv, scatterv, all_to_allv):
// now and then they tell each other how large the last ones were, and that decides the routes of those to come. Used by the
// engine, for comms that route such operations by size.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

#include "algorithms/messages.hpp"

namespace medley::core {

class CommState;
struct LaneState;

/// Operations of one kind (comm, operation, memory) in the order of their issue, cut into windows. At the end of one its sizes
/// are told, which then decide the routes in the window after the next: telling takes as long as a small operation and so may not
/// go with each, and it has a window's time to arrive before somebody waits for it. Sizes change over many steps of training.
struct SizeWindow {
  static constexpr std::uint64_t longest = 16;
  std::uint64_t number, first, length;

  /// The first are short, so that sizes count soon. Lengths are powers of two, since layers send there and back by turns and in
  /// patterns: an operation goes by the one at its place in the pattern.
  static constexpr SizeWindow of(std::uint64_t operation) {
    if (operation < 4) return {0, 0, 4};
    if (operation < 8) return {1, 4, 4};
    if (operation < longest) return {2, 8, 8};
    return {2 + operation / longest, operation / longest * longest, longest};
  }
  bool ends_with(std::uint64_t operation) const { return operation + 1 == first + length; }
};

/// So many operations after a change all go by the new sizes.
inline constexpr std::uint64_t sizes_settle_after = 2 * SizeWindow::longest;

/// The first of a kind, and where nothing can be agreed: about what a layer of experts or an embedding exchanges.
inline constexpr std::int64_t nominal_v_bytes = std::int64_t{1} << 20;

/// What a lane has told and not yet got rid of, which takes room in the library or at the receiver.
class MEDLEY_API SizeExchange {
 public:
  SizeExchange() = default;
  SizeExchange(const SizeExchange&) = delete;
  SizeExchange& operator=(const SizeExchange&) = delete;
  ~SizeExchange() { drop(); }

  void tell(Lane& lane, int tag, std::vector<std::int64_t> sizes, const std::vector<int>& ranks);
  void poll() noexcept;
  void drop() noexcept;
  bool empty() const { return open_.empty(); }

 private:
  struct SentSizes {
    std::shared_ptr<const std::vector<std::int64_t>> sizes;
    std::vector<Transfer*> left;
  };
  static void poll(SentSizes& told) noexcept;
  std::list<SentSizes> open_;
};

/// What all ranks know of a window, once they do.
struct AgreedSizes {
  bool known = false;
  std::vector<std::int64_t> largest;   ///< of each operation; until it is known, what this rank has to say
};

/// What operations with an open route wait for: how large those of an earlier window were. Its lane counts as active meanwhile.
class SizeQuery {
 public:
  SizeQuery(LaneState& lane, int tag, std::shared_ptr<AgreedSizes> agreed);
  ~SizeQuery();
  SizeQuery(const SizeQuery&) = delete;
  SizeQuery& operator=(const SizeQuery&) = delete;

  /// Once, with the ranks that know.
  void ask(const std::vector<int>& ranks);
  /// Whether all have told. Throws what the lane throws, as does ask().
  bool answered();
  const AgreedSizes& agreed() const { return *agreed_; }
  std::vector<int> awaited() const { return messages_.awaited(); }

 private:
  LaneState& lane_;
  std::shared_ptr<AgreedSizes> agreed_;
  std::shared_ptr<std::vector<std::vector<std::int64_t>>> told_;   ///< by each that was asked; shared with receives given up
  algorithms::Messages messages_;
};

/// One operation of a window that was asked about.
class PendingSize {
 public:
  PendingSize() = default;
  PendingSize(std::shared_ptr<SizeQuery> question, std::size_t place) : question_(std::move(question)), place_(place) {}
  explicit operator bool() const { return question_ != nullptr; }
  bool answered() const { return question_->answered(); }
  /// Once it is answered.
  std::int64_t bytes() const { return question_->agreed().largest[place_]; }
  std::vector<int> awaited() const { return question_->awaited(); }
  void reset() { question_.reset(); }

 private:
  std::shared_ptr<SizeQuery> question_;
  std::size_t place_ = 0;
};

class SizeAgreement {
 public:
  /// Null where there is nothing to agree on: no such operation is routed by size, or the comm has no lane to tell them.
  static std::unique_ptr<SizeAgreement> make(const CommState& comm);

  /// Whether this call's route, if it names none, goes by the agreed size.
  bool decides(const Call& call) const;
  struct Decision {
    std::int64_t bytes = nominal_v_bytes;
    PendingSize open{};   ///< if set, it will tell the bytes
  };
  /// Counts an operation that is being issued, tells the others what this rank knows at the end of a window, and says what the
  /// operation's route goes by. Called in the same order on all ranks.
  Decision next(const Call& call);
  /// What carries what is told.
  LaneState& lane() const { return *lane_; }

 private:
  struct Window {
    std::vector<std::int64_t> sizes;   ///< of each operation what this rank knows; 0 where a root knows it all
    std::vector<int> roots;            ///< of rooted operations: who knows
  };
  struct Kind {
    bool by_size = false;
    std::uint64_t issued = 0;
    std::array<Window, 3> windows;                ///< the last ones, by number
    std::shared_ptr<AgreedSizes> agreed{};        ///< what routes of this window go by; none in the first two
    std::weak_ptr<SizeQuery> question{};       ///< of the operations that wait for it
  };
  static constexpr std::size_t kinds = 6;         ///< three operations, two kinds of memory
  static std::size_t kind_of(const Call& call);
  void count(Kind& kind, const SizeWindow& window, const Call& call);
  std::vector<int> who_knows(const Window& window) const;

  LaneState* lane_ = nullptr;
  int rank_ = 0;
  std::vector<int> others_;                       ///< from the next rank on, so that not all begin with the same one
  std::array<Kind, kinds> kinds_;
};

}  // namespace medley::core
