// How the ranks of a comm agree on the size of operations whose counts they do not all know (gatherv, scatterv, all_to_allv):
// beside operation k they tell each other how large it is, and that decides the route of operation k + size_distance. Used by
// the engine, for comms that route such operations by size.
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

/// Even, since layers of experts and embeddings send there and back by turns, so that there follows there. The totals then
/// have four operations' time to arrive before somebody waits for them; sizes change over many steps of training.
inline constexpr std::uint64_t size_distance = 4;

/// The first of a kind, and where nothing can be agreed: about what a layer of experts or an embedding exchanges.
inline constexpr std::int64_t nominal_v_bytes = std::int64_t{1} << 20;

/// What a lane has told and not yet got rid of, which takes room in the library or at the receiver.
class MEDLEY_API Tellings {
 public:
  Tellings() = default;
  Tellings(const Tellings&) = delete;
  Tellings& operator=(const Tellings&) = delete;
  ~Tellings() { drop(); }

  void tell(Lane& lane, int tag, std::int64_t bytes, const std::vector<int>& ranks);
  void poll() noexcept;
  void drop() noexcept;
  bool empty() const { return open_.empty(); }

 private:
  struct Told {
    std::int64_t bytes;
    std::vector<Transfer*> left;
  };
  static void poll(Told& told) noexcept;
  std::list<Told> open_;   ///< a list: libraries read `bytes` where it is
};

/// What an operation with an open route waits for: how large an earlier one was. Its lane counts as active meanwhile.
class SizeQuestion {
 public:
  SizeQuestion(LaneState& lane, int tag, std::int64_t own_bytes);
  ~SizeQuestion();
  SizeQuestion(const SizeQuestion&) = delete;
  SizeQuestion& operator=(const SizeQuestion&) = delete;

  /// Once, with the ranks that know.
  void ask(const std::vector<int>& ranks);
  /// Whether all have told. Throws what the lane throws, as does ask().
  bool answered();
  /// The largest, once it is answered.
  std::int64_t bytes() const;
  std::vector<int> awaited() const { return messages_.awaited(); }

 private:
  LaneState& lane_;
  std::vector<std::int64_t> totals_;
  algorithms::Messages messages_;
};

class SizeAgreement {
 public:
  /// Null where there is nothing to agree on: no such operation is routed by size, or the comm has no lane for the totals.
  static std::unique_ptr<SizeAgreement> make(const CommState& comm);

  /// Whether this call's route, if it names none, goes by the agreed size.
  bool decides(const Call& call) const;
  struct Decision {
    std::int64_t bytes = nominal_v_bytes;
    std::unique_ptr<SizeQuestion> open{};   ///< if set, it will tell the bytes
  };
  /// Counts an operation that is being issued, tells the others what this rank knows of its size, and says what its route
  /// goes by. Called in the same order on all ranks.
  Decision next(const Call& call);
  /// What carries the totals.
  LaneState& lane() const { return *lane_; }

 private:
  struct Round {
    std::int64_t bytes = 0;
    int root = -1;   ///< who knows the size; -1: it is the largest of all
  };
  struct Kind {
    bool by_size = false;
    std::uint64_t issued = 0;
    std::array<Round, size_distance> rounds;   ///< of the last operations
  };
  static constexpr std::size_t kinds = 6;      ///< three operations, two kinds of memory
  static std::size_t kind_of(const Call& call);
  std::vector<int> who_knows(const Round& round) const;

  LaneState* lane_ = nullptr;
  int rank_ = 0;
  std::vector<int> others_;                    ///< from the next rank on, so that not all begin with the same one
  std::array<Kind, kinds> kinds_;
};

}  // namespace medley::core
