#include "backends/shm/host_peers.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <medley/error.hpp>
#include <medley/sdk/may_block.hpp>
#include <string_view>
#include <system_error>

#include "backends/shm/direct_read.hpp"

namespace medley::shm {
namespace {

constexpr std::size_t doorbells_offset = 64;

std::vector<int> neighbours_of(const BackendParams& params) {
  std::vector<int> ranks;
  for (int r = 0; r < params.size; ++r) {
    if (params.hosts[static_cast<std::size_t>(r)] == params.hosts[static_cast<std::size_t>(params.rank)])
      ranks.push_back(r);
  }
  return ranks;
}

std::string key(const char* what, int world_rank) { return fmt::format("neighbour/{}/{}", what, world_rank); }

Segment attach(const BackendParams& params, const std::vector<int>& ranks) {
  const std::size_t bytes = doorbells_offset + ranks.size() * sizeof(Doorbell);
  if (ranks.front() == params.rank) {
    return Segment::publish(bytes, bytes, "the doorbells of this host's ranks", *params.store,
                            key("doorbells", params.rank));
  }
  return Segment::open_published(params.store->get(key("doorbells", ranks.front()), params.deadline), bytes);
}

/// A neighbour's process and the address of a word in it, as the neighbour publishes them.
struct ProcessCard {
  int process = 0;
  std::uint64_t probe = 0;

  std::string text() const { return fmt::format("{} {}", process, probe); }
  static ProcessCard parse(const std::string& text, int world_rank) {
    ProcessCard card;
    const char* const end = text.data() + text.size();
    const auto [space, bad_process] = std::from_chars(text.data(), end, card.process);
    if (bad_process == std::errc() && space != end && *space == ' ') {
      const auto [stop, bad_probe] = std::from_chars(space + 1, end, card.probe);
      if (bad_probe == std::errc() && stop == end) return card;
    }
    throw Error(
        ErrorKind::system,
        fmt::format("rank {} published \"{}\" instead of its process and an address; do all ranks run the same Medley?",
                    world_rank, text),
        {.backend = "shm", .ranks = {world_rank}});
  }
};

/// The user's setting for direct reads: 0 never, 1 always, otherwise the fastest.
std::string_view wish_for_direct_reads() {
  const char* text = std::getenv("MEDLEY_SHM_DIRECT");
  return text ? text : "";
}

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, timeout, nullptr, 0);
}

}  // namespace

HostPeers::HostPeers(const BackendParams& params)
    : index_(static_cast<std::size_t>(params.size), -1),
      cores_(params.cores),
      segment_(attach(params, neighbours_of(params))),
      sleeping_(reinterpret_cast<std::atomic<std::uint32_t>*>(segment_.data())),
      doorbells_(reinterpret_cast<Doorbell*>(segment_.data() + doorbells_offset)) {
  const std::vector<int> ranks = neighbours_of(params);
  // Rank, process and the address of a word: a probe of process_vm_readv between the very pairs that use it.
  params.store->set(key("process", params.rank), ProcessCard{getpid(), probe_address()}.text());
  std::vector<std::uint64_t> probes;
  for (int r : ranks) {
    const auto [process, probe] = ProcessCard::parse(params.store->get(key("process", r), params.deadline), r);
    if (r == params.rank) own_ = static_cast<int>(processes_.size());
    index_[static_cast<std::size_t>(r)] = static_cast<int>(processes_.size());
    processes_.push_back(process);
    process_files_.push_back(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    probes.push_back(probe);
  }
  seen_alive_.resize(processes_.size());
  bool works = wish_for_direct_reads() != "0";
  for (std::size_t i = 0; i < probes.size(); ++i) works = works && probe_read(processes_[i], probes[i]);
  // All peers must reach the same answer: one that cannot read decides for all, and so does one that insists on direct
  // reads.
  params.store->set(key("direct", params.rank), !works ? "no" : wish_for_direct_reads() == "1" ? "always" : "yes");
  direct_reads_ = true;
  for (int r : ranks) {
    const std::string answer = params.store->get(key("direct", r), params.deadline);
    direct_reads_ = direct_reads_ && answer != "no";
    may_stream_ = may_stream_ && answer != "always";
  }
  segment_.seal();

  // Spinning helps only while every rank has a core of its own. 20 µs covers a peer in the same call; then about a
  // millisecond of yields that no other thread uses, since waking a sleeper costs 50 µs and delays all that wait for
  // it. Oversubscribed ranks yield to each other at once; after 60 yields the peers are busy elsewhere, and a futex is
  // cheaper.
  oversubscribed_ = static_cast<int>(processes_.size()) > cores_;
  spins_ = oversubscribed_ ? 0 : 200;
  yields_ = oversubscribed_ ? 60 : 2000;
}

HostPeers::~HostPeers() {
  for (int file : process_files_) {
    if (file >= 0) close(file);
  }
}

bool HostPeers::dead(int neighbour) const {
  const auto i = static_cast<std::size_t>(neighbour);
  if (processes_[i] == processes_[static_cast<std::size_t>(own_)]) return false;
  // It exited before we could open it, or no pidfds here (old kernel, filter, too many files)
  if (process_files_[i] < 0) {
    return kill(processes_[i], 0) != 0 && errno == ESRCH;
  }
  pollfd file{process_files_[i], POLLIN, 0};
  return ::poll(&file, 1, 0) == 1;
}

void HostPeers::read(void* to, int neighbour, std::uint64_t from, std::size_t bytes, int rank) const {
  // The kernel reads by process id. Ids are assigned in a cycle of at least 32,768, so one cannot be reused within this
  // time of its process's death.
  constexpr auto number_lasts = std::chrono::milliseconds(1);
  const auto now = std::chrono::steady_clock::now();
  Deadline& seen = seen_alive_[static_cast<std::size_t>(neighbour)];
  if (now - seen > number_lasts) {
    if (dead(neighbour)) {
      throw Error(ErrorKind::rank_lost, fmt::format("rank {} (process {}) died", rank, process(neighbour)),
                  {.ranks = {rank}});
    }
    seen = now;
  }
  direct_read(to, process(neighbour), from, bytes, rank);
}

void HostPeers::ring(std::span<const int> host_peers) const {
  for (int n : host_peers) {
    Doorbell& doorbell = doorbells_[n];
    if (doorbell.sleepers.load(std::memory_order_seq_cst) == 0) continue;
    doorbell.rings.fetch_add(1, std::memory_order_seq_cst);
    futex(&doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

std::uint32_t HostPeers::prepare() {
  Doorbell& doorbell = doorbells_[own_];
  const std::uint32_t ticket = doorbell.rings.load(std::memory_order_seq_cst);
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  sleeping_->fetch_add(1, std::memory_order_seq_cst);
  // A writer stores its flag and then reads `sleeping_` without a fence between them, which would cost every small
  // operation a cache miss on x86. Its store leaves the store buffer within nanoseconds; giving up the core here takes
  // longer, so the poll that follows sees it. If not, sleep() is short enough to make that a delay and never a hang.
  // (tests/spin/sleep.pml)
  sched_yield();
  return ticket;
}

void HostPeers::sleep(std::uint32_t ticket, std::chrono::nanoseconds at_most) {
  may_block("a peer to ring");
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec timeout{seconds.count(), (at_most - seconds).count()};
  futex(&doorbells_[own_].rings, FUTEX_WAIT, ticket, &timeout);
  cancel();
}

void HostPeers::cancel() {
  // relaxed: a writer that still counts this thread rings once too often. `sleeping_` never counts a thread that its
  // doorbell does not, as in prepare().
  sleeping_->fetch_sub(1, std::memory_order_relaxed);
  doorbells_[own_].sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void HostPeers::wake_own() noexcept {
  const int self[] = {own_};
  ring(self);
}

}  // namespace medley::shm
