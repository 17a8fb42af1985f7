// The connection to one rank, shared by all comms of a context. Tracks whether it broke and whether everything that UCX
// reports as sent has left this process.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

namespace medley::ucx {

/// The active message of a Notice.
inline constexpr unsigned notice_id = 1;

class Endpoint {
 public:
  /// `watched`: UCX itself detects the peer's failure, and the endpoint can be closed by force. That rules out shared
  /// memory, so it is for ranks of other hosts; ranks of this host are watched by their processes.
  Endpoint(ucp_worker_h worker, const std::string& address, bool watched);
  ~Endpoint() { let_go(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  ucp_ep_h handle() const { return endpoint_; }
  bool failed() const { return failed_; }
  bool watched() const { return watched_; }
  /// Whether it may still be connecting. UCX 1.13 does not survive that: destroying the worker then ends the process.
  bool connecting() const { return watched_ && !connected_; }

  /// Sends a notice without waiting for it.
  void tell(const std::string& notice) noexcept;

  /// True when everything sent can complete without this process; otherwise starts or continues a flush to find out.
  bool flushed() noexcept;

  /// Starts closing; by force where possible, which also cancels what is in flight on it.
  void close() noexcept;
  bool closed() noexcept { return over(close_); }
  /// Leaves what is not complete to the worker, which is about to be destroyed.
  void let_go() noexcept;

 private:
  friend class Peers;
  static void on_error(void* self, ucp_ep_h, ucs_status_t);
  static bool over(void*& request) noexcept;

  ucp_ep_h endpoint_ = nullptr;
  bool watched_;
  bool failed_ = false;
  bool connected_ = false;  ///< something was flushed
  void* flush_ = nullptr;   ///< UCX's requests, while in flight
  void* close_ = nullptr;
  bool touched_ = false;  ///< in the list of Peers
};

}  // namespace medley::ucx
