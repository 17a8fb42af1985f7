// An all-gather of a few numbers between the ranks of a comm that nobody waits for when they are sent: with messages of
// an internal tag, asked for a window of operations later, and combined by their maximum. What decides routes but is
// not equal on all ranks travels this way: sizes of v-collectives (size_agreement.hpp) and times of operations
// (online_routes.hpp).
#pragma once

#include <cstdint>
#include <list>
#include <medley/backend.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "algorithms/messages.hpp"

namespace medley::core {

class CommState;
struct LaneState;

/// The lane of a comm that carries such messages: that of its sends of host memory; null if it has none.
LaneState* exchange_lane(const CommState& comm);

/// For an operation whose route an exchange of `what` decides, which another operation asked for that was then not
/// issued.
[[noreturn, gnu::cold]] void throw_dropped_exchange(const LaneState& lane, std::string_view what);

/// The messages that a lane has sent and that are not complete yet; they take space in the library or at the receiver.
class MEDLEY_API ValueExchange {
 public:
  ValueExchange() = default;
  ValueExchange(const ValueExchange&) = delete;
  ValueExchange& operator=(const ValueExchange&) = delete;
  ~ValueExchange() { drop(); }

  void tell(Lane& lane, int tag, std::vector<std::int64_t> values, const std::vector<int>& ranks);
  void poll() noexcept;
  void drop() noexcept;
  bool empty() const { return open_.empty(); }

 private:
  struct SentValues {
    std::shared_ptr<const std::vector<std::int64_t>> values;
    std::vector<Transfer*> left;
  };
  static void poll(SentValues& sent) noexcept;
  std::list<SentValues> open_;
};

/// The values of a window, once known on all ranks.
struct AgreedValues {
  bool known = false;
  /// Of all ranks' values, each by its place; until agreed, what this rank contributes
  std::vector<std::int64_t> largest;
};

/// What operations with an open route wait for: the values of an earlier window. The lane counts as active meanwhile.
class ValueQuery {
 public:
  ValueQuery(LaneState& lane, int tag, std::shared_ptr<AgreedValues> agreed);
  ~ValueQuery();
  ValueQuery(const ValueQuery&) = delete;
  ValueQuery& operator=(const ValueQuery&) = delete;

  /// Called once, with the ranks that know.
  void ask(const std::vector<int>& ranks);
  /// Whether all ranks have answered. Throws what the lane throws, as does ask().
  bool answered();
  const AgreedValues& agreed() const { return *agreed_; }
  std::vector<int> awaited() const { return messages_.awaited(); }

 private:
  LaneState& lane_;
  std::shared_ptr<AgreedValues> agreed_;
  /// From each rank that was asked; shared with abandoned receives
  std::shared_ptr<std::vector<std::vector<std::int64_t>>> received_;
  algorithms::Messages messages_;
};

/// An operation that waits for values: one place of a queried window decides its route.
class OpenRoute {
 public:
  OpenRoute() = default;
  OpenRoute(std::shared_ptr<ValueQuery> query, std::size_t place) : query_(std::move(query)), place_(place) {}
  explicit operator bool() const { return query_ != nullptr; }
  bool answered() const { return query_->answered(); }
  /// Valid once answered.
  std::int64_t value() const { return query_->agreed().largest[place_]; }
  std::vector<int> awaited() const { return query_->awaited(); }
  void reset() { query_.reset(); }

 private:
  std::shared_ptr<ValueQuery> query_;
  std::size_t place_ = 0;
};

}  // namespace medley::core
