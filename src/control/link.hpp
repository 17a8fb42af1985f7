// One authenticated connection between the control threads of two ranks, as bytes in and bytes out: no sockets here.
// Uses the store's handshake and frames, so that an unauthenticated client gets no further here than there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/store_session.hpp"
#include "bootstrap/wire.hpp"

namespace medley::control {

/// One message: its kind and its text.
struct Message {
  std::string kind;
  std::string body;
};

class Link {
 public:
  /// The connecting end proves itself first; the accepting end learns the peer's rank from the proof.
  static Link connecting(const std::string& token, int rank, int size);
  static Link accepting(const std::string& token, int size);

  /// Consumes received bytes; false when the connection must be dropped. Appends whole messages to `messages`.
  bool receive(std::string_view bytes, std::vector<Message>& messages);
  /// Frames a message to be sent after the handshake.
  void send(const Message& message);
  /// The bytes to write to the socket now; taken() removes the written ones.
  std::string_view outgoing() const { return out_; }
  void taken(std::size_t bytes) { out_.erase(0, bytes); }

  bool joined() const { return joined_; }
  int peer() const { return peer_; }  ///< -1 until an accepted peer has authenticated
  void set_peer(int rank) { peer_ = rank; }
  /// Frames that wait for the handshake: moved to the next link when another address of the peer is tried.
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
  std::optional<StoreSession> session_;  ///< of an accepting end; also parses frames for both
  std::string heard_;                    ///< handshake bytes of a connecting end
  std::optional<Nonce> server_;
  Nonce client_{};
  std::string waiting_;  ///< frames to send after the handshake
  std::string out_;
};

}  // namespace medley::control
