// Sends, receives and control messages among the ranks of one comm, over Gloo's buffers. Used by the lane. Gloo cannot
// test whether a buffer has arrived, only wait for it. So one thread per peer waits, matches what arrives, and answers
// control messages whatever the rank itself is doing. Sends leave from the caller's thread.
#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <medley/backend.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "backends/gloo/doorbell.hpp"
#include "backends/gloo/envelope.hpp"
#include "backends/gloo/mesh.hpp"

namespace medley::gloo_backend {

using Memory8 = std::vector<std::byte>;
using GlooBuffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

/// What a rank is doing in its latest native collective: for messages, and to detect ranks that call different
/// operations.
struct Doing {
  std::uint64_t number = 0;
  std::uint32_t signature = 0;
  std::string words;
};

class TagMatcher {
 public:
  TagMatcher(std::shared_ptr<Mesh> mesh, std::shared_ptr<Doorbell> doorbell);
  ~TagMatcher() { close(); }
  /// Says goodbye to the peers and ends the readers. Waits a while for what was sent to arrive, unless poll_close()
  /// has.
  void close() noexcept;
  /// Says goodbye without waiting: true when what was sent has arrived, or never will.
  bool poll_close() noexcept;

  /// A send or a receive; null when it is complete.
  Transfer* start(const Call& call);

  /// Announces that this rank begins its next native collective.
  void begin_collective(const Doing& doing);
  void end_collective();
  /// Ranks that have not been seen in collective `number`.
  std::vector<int> absent(std::uint64_t number);

  /// Throws when a peer is lost, has aborted the comm, or has left though it is awaited; asks the others which
  /// collective they are in.
  void check();
  /// Throws the reason why a peer aborted the comm, or the mismatch between ranks that called different collectives.
  void throw_if_failed();
  /// The reason of a failure inside Gloo: what check() will report, waited for briefly.
  Error explain(const char* gloo_says);
  /// Notifies the peers and stops delivery. goodbye_over() returns true when they have acknowledged it, or never will.
  void abort(const Error& why) noexcept;
  bool goodbye_over() noexcept;

 private:
  struct Peer;
  class Message;
  class Receive;
  class Send;
  struct Arrival {
    int source;
    Header header;
    Memory8 data;
  };

  // tag_matcher.cpp: matching
  Transfer* start_send(const Call& call);
  void send_to_self(const Call& call);
  Transfer* start_receive(const Call& call);
  Receive* take_posted(int source, int tag);
  void deliver(Receive& receive, int source, const Header& header, std::span<const std::byte> data);
  void accept_rest(Receive& receive, Peer& peer, const Header& header);
  void forget(Receive& receive) noexcept;
  void forget(Send& send) noexcept;
  bool awaits(const Peer& peer) const;
  bool question_due();
  std::optional<Error> trouble() const;

  // wire.cpp: envelopes and the threads that read them
  void read(Peer& peer) noexcept;
  bool read_one(Peer& peer);
  void await_rest(Peer& peer);
  bool handle(Peer& peer, std::span<const std::byte> envelope);
  void handle_answer(Peer& peer, const Header& header, std::span<const std::byte> data);
  void post(Peer& peer, Header header, std::span<const std::byte> payload = {});
  void try_post(Peer& peer, const Header& header, std::span<const std::byte> payload = {}) noexcept;
  void wake(Peer& peer);
  void lose(Peer& peer) noexcept;
  void say_goodbye(Kind kind, const Error* why, std::chrono::milliseconds limit) noexcept;
  bool all_heard() const;

  std::shared_ptr<Mesh> mesh_;
  std::shared_ptr<Doorbell> doorbell_;
  int rank_, size_;
  std::mutex mutex_;  ///< guards all below, and the peers' reported states
  std::condition_variable changed_;
  std::list<Receive*> posted_;
  std::list<Arrival> unexpected_;
  Doing doing_;
  bool in_collective_ = false;
  /// When to ask the peers which collective they are in, while this rank is in one
  Deadline next_question_{};
  std::chrono::milliseconds question_interval_{};
  bool stopped_ = false;  ///< nothing is delivered any more
  bool closing_ = false;  ///< connections that close now close in order
  Deadline goodbye_limit_{};
  std::optional<Error> failure_;
  std::string
      first_note_;  ///< the reason a peer gave for aborting the comm, as received, and the rank it first came from
  Header first_header_;
  std::atomic<bool> failed_{false};           ///< relaxed: a hint to take mutex_, under which the reason is read
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; null for this one
};

/// One of the other ranks.
struct TagMatcher::Peer {
  explicit Peer(int r) : rank(r) {}
  struct Outgoing {
    Memory8 memory;
    GlooBuffer buffer;
  };
  struct Ready {
    std::array<std::byte, envelope_bytes> memory;
    GlooBuffer buffer;
  };
  struct Rest {
    Receive* receive;  ///< null once it was abandoned
    std::uint64_t number;
    GlooBuffer buffer;
    Memory8 spare;  ///< receives a message that does not fit
  };
  const int rank;
  std::thread reader;

  std::mutex out_mutex;         ///< guards the next three: envelopes leave in the order of their numbers
  std::deque<Outgoing> outbox;  ///< sent and not acknowledged
  std::uint64_t forgotten = 0;  ///< number sent before those
  std::uint64_t told = 0;       ///< how many the peer knows were received
  /// Received by the reader; relaxed: a count alone, in step with `told` by out_mutex
  std::atomic<std::uint64_t> taken{0};

  std::array<Ready, envelopes_ready> ready;
  // Guarded by the matcher's mutex:
  std::size_t next = 0;                            ///< index in `ready`
  std::deque<Rest> rests;                          ///< large messages being received
  std::unordered_map<std::uint64_t, Send*> sends;  ///< large messages being sent
  std::uint64_t numbers = 0;
  bool left = false, lost = false, heard = false, gave_up = false;
  Doing doing;
};

}  // namespace medley::gloo_backend
