// A backend's lane with every missing operation filled in over its sends and receives.
// The context wraps every lane in one, so that algorithms can be named on any backend.
#pragma once

#include <cstdint>
#include <map>
#include <medley/backend.hpp>
#include <memory>
#include <string>

#include "algorithms/capabilities.hpp"
#include "algorithms/orphans.hpp"

namespace medley::algorithms {

struct Algorithm;
class DeviceFrames;
class FilledTransfer;

/// The internal tags for filled-in collectives; the rest belong to exchanges of sizes and times
/// (engine/internal_tags.hpp).
inline constexpr int collective_tags = internal_tags - 8;

/// Which half of them a lane uses. A private lane of a backend made of two carries its own collectives and messages of
/// the comm's: two ranks may start them in different orders, so they must differ in their tags.
enum class TagHalf { of_comm, of_private_lane };

class MEDLEY_API FilledLane final : public Lane {
 public:
  FilledLane(std::unique_ptr<Lane> inner, const core::Capabilities& capabilities, std::string backend, int rank,
             int size, TagHalf half = TagHalf::of_comm)
      : inner_(std::move(inner)),
        capabilities_(capabilities),
        backend_(std::move(backend)),
        rank_(rank),
        size_(size),
        half_(half) {}

  /// Throws Error(invalid) when the call names an algorithm that this lane does not have for it.
  /// `memory`: where the algorithm would run, which is host memory for a staged call.
  void check_algorithm(const Call& call, Memory memory) const;

  /// Whether the backend has an algorithm of this name itself.
  bool has_own(Op op, std::string_view algorithm) const { return capabilities_.has_algorithm(op, algorithm); }

  /// Whether a filled-in collective is under way, which needs progress() between its polls.
  bool exchanging() const { return !running_.empty(); }

  Transfer* start(const Call& call) override {
    if (call.op != Op::send && call.op != Op::recv) return start_collective(call);
    return call.algorithm.empty() ? inner_->start(call) : start_named(call);
  }
  bool send_now(int to, int tag, const void* data, std::size_t bytes) override {
    return inner_->send_now(to, tag, data, bytes);
  }
  /// A compressed collective on CUDA memory, for which the device has kernels.
  Transfer* start_on_device(Call call, std::shared_ptr<DeviceFrames> frames);
  void progress() override { inner_->progress(); }
  bool undelivered() const override { return inner_->undelivered(); }
  bool concurrent_collectives() const override { return inner_->concurrent_collectives(); }
  bool in_streams() const override { return inner_->in_streams(); }
  bool takes_lists() const override { return inner_->takes_lists(); }
  void check() override { inner_->check(); }
  void abort(const Error& why) noexcept override { inner_->abort(why); }
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  friend class FilledTransfer;
  Transfer* start_collective(const Call& call);
  Transfer* start_filled(const Call& call, std::uint64_t sequence, std::shared_ptr<DeviceFrames> frames);
  /// A message whose call names an algorithm: a codec, or `native`.
  Transfer* start_named(const Call& message);
  bool is_native(const Call& call) const {
    return capabilities_.native(call.op, call.dtype, call.reduce, call.memory) &&
           (!call.deterministic || capabilities_.fixed_order() || !reduces(call.op));
  }
  void check_compression(const Call& call, Memory memory) const;
  const Algorithm& algorithm_of(const Call& call) const;
  int tag_of(std::uint64_t sequence) const {
    return -1 - static_cast<int>(sequence % tags_ + (half_ == TagHalf::of_private_lane ? tags_ : 0));
  }
  /// Whether number `sequence` may use its tag: the previous collective with that tag is complete.
  bool may_run(std::uint64_t sequence) const;
  /// Takes over the incomplete messages of a collective.
  void adopt_messages_of(FilledTransfer& transfer) noexcept;

  std::unique_ptr<Lane> inner_;
  core::Capabilities capabilities_;
  std::string backend_;
  static constexpr std::uint64_t tags_ = collective_tags / 2;
  int rank_, size_;
  TagHalf half_;
  std::uint64_t collectives_ = 0;                     ///< started so far, the same on all ranks
  std::map<std::uint64_t, FilledTransfer*> running_;  ///< by number
  Orphans orphans_;                                   ///< messages of failed collectives, which own their memory
};

}  // namespace medley::algorithms
