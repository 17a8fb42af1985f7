#include "backends/shm/lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "backends/shm/neighbourhood.hpp"

namespace medley::shm {
namespace {

std::vector<int> members_of(const Group& group, const Neighbourhood& neighbours) {
  std::vector<int> members;
  for (int world_rank : group.world_ranks) members.push_back(neighbours.index(world_rank));
  return members;
}

Segment attach(const Group& group, const Geometry& geometry) {
  const std::string key = "segment";
  if (group.rank == 0) {
    Segment segment = Segment::make(geometry.total, fmt::format("the {} ranks of comm {}", group.size, group.name));
    segment.populate(0, geometry.control_bytes());
    group.store->set(key, segment.address());
    return segment;
  }
  std::optional<std::string> address;
  while (!(address = group.store->try_get(key))) {
    if (std::chrono::steady_clock::now() > group.deadline) {
      throw Error(ErrorKind::timeout, fmt::format("rank 0 of comm {} did not offer its shared memory in time", group.name),
                  {.comm = group.name, .backend = "shm", .ranks = {0}});
    }
    group.progress();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return Segment::open(*address, geometry.total);
}

/// Waits until all members have opened the segment, so that its maker can close the way in.
void await_all(const Group& group, const Board& board) {
  auto& attached = board.header().attached;
  attached.fetch_add(1);
  while (attached.load() < static_cast<std::uint32_t>(group.size)) {
    if (std::chrono::steady_clock::now() > group.deadline) {
      throw Error(ErrorKind::timeout, fmt::format("only {} of the {} ranks of comm {} opened its shared memory in time",
                                                  attached.load(), group.size, group.name),
                  {.comm = group.name, .backend = "shm"});
    }
    group.progress();
    std::this_thread::yield();
  }
}

}  // namespace

ShmLane::ShmLane(const Group& group, const Neighbourhood& neighbours)
    : neighbours_(neighbours), members_(members_of(group, neighbours)), segment_(attach(group, Geometry(group.size))),
      board_(segment_.data(), Geometry(group.size)), rank_(group.rank),
      exchanger_(board_, rank_, neighbours_, members_), collective_(exchanger_, neighbours_.direct_reads()) {
  await_all(group, board_);
  segment_.seal();
  // The staging of this rank, which the first larger collective writes.
  segment_.populate(static_cast<std::size_t>(board_.all_staging(rank_) - segment_.data()),
                    board_.geometry().slot_bytes * depth);
}

ShmLane::~ShmLane() {
  if (!fork_guard_.here()) return;   // the segment is not mapped in a forked child
  board_.left(rank_).value.store(1, std::memory_order_release);
  neighbours_.wake(members_);
}

Transfer* ShmLane::start(const Call& call) {
  if (call.op == Op::send || call.op == Op::recv) {
    if (!mail_) mail_ = std::make_unique<Mail>(board_, rank_, neighbours_, members_, neighbours_.direct_reads());
    return mail_->start(call);
  }
  return collective_.start(call);
}

void ShmLane::progress() {
  if (mail_) mail_->progress();
}

void ShmLane::check() {
  const std::uint32_t by = board_.header().aborted.load(std::memory_order_acquire);
  if (by != 0 && by < (1u << 31)) {
    throw Error(ErrorKind::aborted, fmt::format("rank {} aborted the comm: {}", by - 1, board_.header().reason),
                {.ranks = {static_cast<int>(by) - 1}});
  }
  const std::vector<int> missing = collective_.running() ? exchanger_.missing() : std::vector<int>{};
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) {
    if (r == rank_ || !gone(r)) continue;
    // One that died takes what it owed with it, whoever was to get it. One that let go of the comm in order has
    // given all it had; only those who want more are told.
    const bool left = board_.left(r).value.load(std::memory_order_acquire) != 0;
    const bool awaited = std::find(missing.begin(), missing.end(), r) != missing.end() ||
                         (mail_ && mail_->awaits(r, [this](int other) { return gone(other); }));
    if (left && !awaited) continue;
    const int process = neighbours_.process(members_[static_cast<std::size_t>(r)]);
    throw Error(ErrorKind::rank_lost, left ? fmt::format("rank {} (process {}) has left the comm", r, process)
                                           : fmt::format("rank {} (process {}) died", r, process), {.ranks = {r}});
  }
}

bool ShmLane::gone(int rank) const {
  return board_.left(rank).value.load(std::memory_order_acquire) != 0 ||
         neighbours_.dead(members_[static_cast<std::size_t>(rank)]);
}

void ShmLane::abort(const std::string& reason) noexcept {
  collective_.stop();
  if (mail_) mail_->stop();
  Header& header = board_.header();
  std::uint32_t nobody = 0;
  constexpr std::uint32_t writing = 1u << 31;
  if (!header.aborted.compare_exchange_strong(nobody, writing)) return;
  const std::size_t length = std::min(reason.size(), sizeof header.reason - 1);
  std::memcpy(header.reason, reason.data(), length);
  header.reason[length] = '\0';
  header.aborted.store(static_cast<std::uint32_t>(rank_) + 1, std::memory_order_release);
  neighbours_.wake(members_);
}

}  // namespace medley::shm
