// The server's side of one connection's protocol, without the socket.
// Used by StoreServer; the fuzzer feeds it arbitrary bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/wire.hpp"

namespace medley {

class StoreSession {
 public:
  /// `size` is the required world size, or 0.
  StoreSession(const std::string& token, std::uint32_t size) : token_(token), size_(size), nonce_(random_nonce()) {}
  /// A session whose other end has authenticated elsewhere: only frames follow.
  static StoreSession joined() {
    StoreSession session({}, 0);
    session.admitted_ = true;
    return session;
  }

  std::string greeting() const { return wire::greeting(nonce_); }
  bool admitted() const { return admitted_; }
  int rank() const { return rank_; }  ///< of the admitted client, as it proved

  /// Consumes bytes as they arrive: appends whole requests to `requests` and immediate replies to `out`. False
  /// when the connection must be dropped once `out` has been sent. An unauthenticated client can make it buffer
  /// no more than a hello's bytes.
  bool receive(std::string_view bytes, std::vector<wire::Request>& requests, std::string& out);

 private:
  bool admit(std::string& out);
  bool take_frames(std::vector<wire::Request>& requests);

  std::string token_;
  std::uint32_t size_;
  Nonce nonce_;
  bool admitted_ = false;
  int rank_ = -1;
  std::string heard_;
};

}  // namespace medley
