// How the ranks of a comm agree on the size of v-collectives whose counts they do not all know (gatherv, scatterv,
// all_to_allv): they periodically exchange the sizes of recent ones, which decide the routes of later ones. The engine
// uses it for comms that route such operations by size.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

#include "engine/internal_tags.hpp"
#include "engine/value_exchange.hpp"

namespace medley::core {

class CommState;
struct LaneState;

/// Operations of one kind (comm, operation, memory) in order of issue, cut into windows. At the end of a window the
/// ranks exchange its sizes, which decide the routes in the window after the next. The exchange takes as long as a
/// small operation, so it is not done for each one, and it has a whole window to arrive before an operation waits for
/// it. Sizes change slowly, over many training steps.
struct SizeWindow {
  static constexpr std::uint64_t longest = 16;
  std::uint64_t number, first, length;

  /// The first windows are short, so that sizes take effect soon. Lengths are powers of two, since layers alternate
  /// sends and returns in patterns: an operation uses the size at its own position in the pattern.
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

class SizeAgreement {
 public:
  /// Null where there is nothing to agree on: no such operation is routed by size, or the comm has no lane for the
  /// exchange.
  static std::unique_ptr<SizeAgreement> make(const CommState& comm);

  /// Whether this call's route depends on the agreed size, unless it names a route.
  bool decides(const Call& call) const;
  struct Decision {
    std::int64_t bytes = nominal_v_bytes;
    OpenRoute open{};  ///< if set, it will provide the bytes
  };
  /// Counts an operation that is being issued, sends this rank's sizes at the end of a window, and returns the size
  /// that decides the operation's route. Called in the same order on all ranks.
  Decision next(const Call& call);
  /// The lane that carries the size exchange.
  LaneState& lane() const { return *lane_; }

 private:
  struct Window {
    std::vector<std::int64_t> sizes;  ///< per operation, what this rank knows; 0 where a root knows it all
    std::vector<int> roots;           ///< for rooted operations: the root
  };
  struct Kind {
    bool by_size = false;
    std::uint64_t issued = 0;
    std::array<Window, 3> windows;           ///< the latest ones, by number
    std::shared_ptr<AgreedValues> agreed{};  ///< decides the routes of this window; none in the first two
    std::weak_ptr<ValueQuery> query{};       ///< what waiting operations share
  };
  static std::size_t kind_of(const Call& call);
  void count(Kind& kind, const SizeWindow& window, const Call& call);
  std::vector<int> who_knows(const Window& window) const;

  LaneState* lane_ = nullptr;
  int rank_ = 0;
  /// Starting at the next rank, so that not all begin with the same one
  std::vector<int> others_;
  std::array<Kind, size_exchange_kinds> kinds_;
};

}  // namespace medley::core
