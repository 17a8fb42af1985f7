// One connection's conversation as the store's server hears it, without the socket.
// Used by StoreServer; the fuzzer feeds it bytes from nowhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/wire.hpp"

namespace medley {

class StoreSession {
 public:
  /// `size` is the world size to insist on, or 0.
  StoreSession(const std::string& token, std::uint32_t size)
      : token_(token), size_(size), nonce_(random_nonce()) {}
  /// One whose other end has proved itself elsewhere: only frames are left to take.
  static StoreSession joined() {
    StoreSession session({}, 0);
    session.admitted_ = true;
    return session;
  }

  std::string greeting() const { return wire::greeting(nonce_); }
  bool admitted() const { return admitted_; }
  int rank() const { return rank_; }  ///< of the admitted one, as it proved

  /// Takes bytes as they arrive: adds whole requests to `requests` and what to answer at once to `out`. False
  /// when the other end must go, once `out` has been sent. A stranger makes this hold no more than a hello's
  /// bytes.
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
