#include "fuse/packed_transfer.hpp"

#include <cstring>
#include <utility>

#include "algorithms/scratch.hpp"

namespace medley::fuse {
namespace {

/// What a library may use until it lets go: the packed buffer and the list of tensors.
struct Packed {
  Packed(std::shared_ptr<Fusion> of, const Call& like, int rank, int size)
      : fusion(std::move(of)),
        call(like),
        part_bytes(fusion->part() * static_cast<std::int64_t>(size_of(like.dtype))),
        ranks(size),
        sides(packed_sides(like, part_bytes, rank, size)),
        buffer(static_cast<std::size_t>(sides.bytes)) {
    if (has_in(call, rank)) call.in = buffer.data() + sides.in_at;
    if (has_out(call, rank)) call.out = buffer.data() + sides.out_at;
  }
  void pack() const {
    if (!call.in) return;
    each_copy(call, fusion->tensors(), part_bytes, true, sides.in_at, ranks,
              [this](const std::byte* user, std::int64_t at, std::int64_t bytes) {
                std::memcpy(buffer.data() + at, user, static_cast<std::size_t>(bytes));
              });
  }
  void unpack() const {
    if (!call.out) return;
    each_copy(call, fusion->tensors(), part_bytes, false, sides.out_at, ranks,
              [this](std::byte* user, std::int64_t at, std::int64_t bytes) {
                std::memcpy(user, buffer.data() + at, static_cast<std::size_t>(bytes));
              });
  }

  std::shared_ptr<Fusion> fusion;
  Call call;
  std::int64_t part_bytes;
  int ranks;
  PackedSides sides;
  algorithms::Scratch buffer;
};

class PackedTransfer final : public Transfer {
 public:
  PackedTransfer(std::shared_ptr<Packed> packed, Transfer* inner) : packed_(std::move(packed)), inner_(inner) {}
  Poll poll() override {
    const Poll seen = inner_->poll();
    if (seen == Poll::complete) packed_->unpack();
    return seen;
  }
  std::vector<int> awaited() const override { return inner_->awaited(); }
  void release() noexcept override {
    std::exchange(inner_, nullptr)->release();
    delete this;
  }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    std::exchange(inner_, nullptr)->abandon(std::make_shared<const Both>(std::move(packed_), std::move(memory)));
    delete this;
  }

 private:
  ~PackedTransfer() override = default;
  std::shared_ptr<Packed> packed_;
  Transfer* inner_;
};

}  // namespace

Transfer* start_packed(Lane& lane, const Call& call, std::shared_ptr<Fusion> fusion, int rank, int ranks) {
  auto packed = std::make_shared<Packed>(std::move(fusion), call, rank, ranks);
  packed->pack();
  if (Transfer* const inner = lane.start(packed->call)) return new PackedTransfer(std::move(packed), inner);
  packed->unpack();
  return nullptr;
}

}  // namespace medley::fuse
