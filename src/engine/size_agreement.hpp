// How the ranks of a comm agree on the size of v-collectives whose counts they do not all know (gatherv, scatterv,
// all_to_allv): they periodically exchange the sizes of recent ones, which decide the routes of later ones. The engine uses it
// for comms that route such operations by size.
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

/// Operations of one kind (comm, operation, memory) in order of issue, cut into windows. At the end of a window the ranks
/// exchange its sizes, which decide the routes in the window after the next. The exchange takes as long as a small operation,
/// so it is not done for each one, and it has a whole window to arrive before an operation waits for it. Sizes change slowly,
/// over many training steps.
struct SizeWindow {
  static constexpr std::uint64_t longest = 16;
  std::uint64_t number, first, length;

  /// The first windows are short, so that sizes take effect soon. Lengths are powers of two, since layers alternate sends and
  /// returns in patterns: an operation uses the size at its own position in the pattern.
  static constexpr SizeWindow of(std::uint64_t operation) {
    if (operation < 4) return {0, 0, 4};
    if (operation < 8) return {1, 4, 4};
    if (operation < longest) return {2, 8, 8};
    return {2 + operation / longest, operation / longest * longest, longest};
  }
  bool ends_with(std::uint64_t operation) const { return operation + 1 == first + length; }
};

/// This many operations after a change, all use the new sizes.
inline constexpr std::uint64_t sizes_settle_after = 2 * SizeWindow::longest;

/// The first of a kind, and where nothing can be agreed: about what a layer of experts or an embedding exchanges.
inline constexpr std::int64_t nominal_v_bytes = std::int64_t{1} << 20;

/// The size messages that a lane has sent and that are not complete yet; they take space in the library or at the receiver.
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

/// The agreed sizes of a window, once known on all ranks.
struct AgreedSizes {
  bool known = false;
  std::vector<std::int64_t> largest;   ///< per operation; until agreed, what this rank contributes
};

/// What operations with an open route wait for: the sizes of an earlier window. The lane counts as active meanwhile.
class SizeQuery {
 public:
  SizeQuery(LaneState& lane, int tag, std::shared_ptr<AgreedSizes> agreed);
  ~SizeQuery();
  SizeQuery(const SizeQuery&) = delete;
  SizeQuery& operator=(const SizeQuery&) = delete;

  /// Called once, with the ranks that know.
  void ask(const std::vector<int>& ranks);
  /// Whether all ranks have answered. Throws what the lane throws, as does ask().
  bool answered();
  const AgreedSizes& agreed() const { return *agreed_; }
  std::vector<int> awaited() const { return messages_.awaited(); }

 private:
  LaneState& lane_;
  std::shared_ptr<AgreedSizes> agreed_;
  std::shared_ptr<std::vector<std::vector<std::int64_t>>> told_;   ///< by each rank that was asked; shared with abandoned receives
  algorithms::Messages messages_;
};

/// One operation of a queried window.
class PendingSize {
 public:
  PendingSize() = default;
  PendingSize(std::shared_ptr<SizeQuery> question, std::size_t place) : question_(std::move(question)), place_(place) {}
  explicit operator bool() const { return question_ != nullptr; }
  bool answered() const { return question_->answered(); }
  /// Valid once answered.
  std::int64_t bytes() const { return question_->agreed().largest[place_]; }
  std::vector<int> awaited() const { return question_->awaited(); }
  void reset() { question_.reset(); }

 private:
  std::shared_ptr<SizeQuery> question_;
  std::size_t place_ = 0;
};

class SizeAgreement {
 public:
  /// Null where there is nothing to agree on: no such operation is routed by size, or the comm has no lane for the exchange.
  static std::unique_ptr<SizeAgreement> make(const CommState& comm);

  /// Whether this call's route depends on the agreed size, unless it names a route.
  bool decides(const Call& call) const;
  struct Decision {
    std::int64_t bytes = nominal_v_bytes;
    PendingSize open{};   ///< if set, it will provide the bytes
  };
  /// Counts an operation that is being issued, sends this rank's sizes at the end of a window, and returns the size that
  /// decides the operation's route. Called in the same order on all ranks.
  Decision next(const Call& call);
  /// The lane that carries the size exchange.
  LaneState& lane() const { return *lane_; }

 private:
  struct Window {
    std::vector<std::int64_t> sizes;   ///< per operation, what this rank knows; 0 where a root knows it all
    std::vector<int> roots;            ///< for rooted operations: the root
  };
  struct Kind {
    bool by_size = false;
    std::uint64_t issued = 0;
    std::array<Window, 3> windows;                ///< the latest ones, by number
    std::shared_ptr<AgreedSizes> agreed{};        ///< decides the routes of this window; none in the first two
    std::weak_ptr<SizeQuery> question{};       ///< what waiting operations share
  };
  static constexpr std::size_t kinds = 6;         ///< three operations, two kinds of memory
  static std::size_t kind_of(const Call& call);
  void count(Kind& kind, const SizeWindow& window, const Call& call);
  std::vector<int> who_knows(const Window& window) const;

  LaneState* lane_ = nullptr;
  int rank_ = 0;
  std::vector<int> others_;                       ///< starting at the next rank, so that not all begin with the same one
  std::array<Kind, kinds> kinds_;
};

}  // namespace medley::core
