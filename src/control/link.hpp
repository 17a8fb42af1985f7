// One authenticated connection between the control threads of two ranks, as bytes in and bytes out: no sockets here.
// The store's handshake and frames are used, so that a stranger gets no further here than there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/store_session.hpp"
#include "bootstrap/wire.hpp"

namespace medley::control {

/// One message: what it is about and its text.
struct Message {
  std::string kind;
  std::string body;
};

class Link {
 public:
  /// The end that connects proves itself first; the end that accepts learns the other's rank from the proof.
  static Link connecting(const std::string& token, int rank, int size);
  static Link accepting(const std::string& token, int size);

  /// Takes what arrived; false when the other end must go. Whole messages are added to `messages`.
  bool receive(std::string_view bytes, std::vector<Message>& messages);
  /// Frames a message to be sent once the handshake is through.
  void send(const Message& message);
  /// What to write to the socket now; taken() removes what was written.
  std::string_view outgoing() const { return out_; }
  void taken(std::size_t bytes) { out_.erase(0, bytes); }

  bool joined() const { return joined_; }
  int peer() const { return peer_; }   ///< -1 until an accepted one has proved itself
  void set_peer(int rank) { peer_ = rank; }
  /// Frames that wait for the handshake: handed on when the peer is tried at another address.
  std::string take_waiting() { return std::exchange(waiting_, {}); }
  void add_waiting(const std::string& frames) { (joined_ ? out_ : waiting_) += frames; }

 private:
  Link() = default;
  bool receive_answer(std::string_view& bytes);
  void flush_waiting();

  std::string token_;
  int rank_ = 0, size_ = 0;
  bool joined_ = false;
  int peer_ = -1;
  std::optional<StoreSession> session_;   ///< of an accepting end; also takes frames apart for both
  std::string heard_;                     ///< of a connecting end's handshake
  std::optional<Nonce> server_;
  Nonce client_{};
  std::string waiting_;                   ///< frames for after the handshake
  std::string out_;
};

}  // namespace medley::control
