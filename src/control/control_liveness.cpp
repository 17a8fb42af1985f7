// The failure detector's inputs, from pidfds, TCP and probes, and the actions on its findings.
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/ranks_text.hpp"
#include "control/connect.hpp"
#include "control/control.hpp"

namespace medley::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A new connection sends a packet at once; a lost one is repeated only after a second.
constexpr milliseconds probe_interval{500};

std::string other_end(int socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  char text[NI_MAXHOST] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0) return {};
  getnameinfo(reinterpret_cast<const sockaddr*>(&name), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

void Control::watch_process(int rank, std::int64_t process) {
  Descriptor file(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
  if (!file) {
    // It ended before it was watched. Without pidfds (before Linux 5.3) its link shows that.
    if (errno == ESRCH) detector_.process_ended(rank, steady_clock::now());
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(rank);
  if (epoll_ctl(process_events_.fd(), EPOLL_CTL_ADD, file.fd(), &event) == 0) processes_[rank] = std::move(file);
}

void Control::note_ended_processes() {
  std::array<epoll_event, 64> events;
  const int ready = epoll_wait(process_events_.fd(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const int rank = static_cast<int>(events[static_cast<std::size_t>(i)].data.u32);
    if (standing(rank) == Standing::present) detector_.process_ended(rank, steady_clock::now());
    processes_.erase(rank);  // also removes it from the epoll
  }
}

void Control::note_transport(const Peer& peer, Deadline now) {
  tcp_info info{};
  socklen_t length = sizeof info;
  int queued = 0;  // not acknowledged, sent or not
  if (getsockopt(peer.socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      ioctl(peer.socket.fd(), SIOCOUTQ, &queued) != 0)
    return;
  detector_.transport(
      peer.link.peer(),
      {info.tcpi_unacked > 0, peer.handed - static_cast<std::uint64_t>(queued), milliseconds(info.tcpi_last_ack_recv)},
      now);
  if (detector_.wants_probe(peer.link.peer())) probe(peer.link.peer(), now);
}

/// Starts a connection to the same host, whose kernel answers even for a stopped process.
void Control::probe(int rank, Deadline now) {
  const auto under_way = probes_.find(rank);
  if (under_way != probes_.end() && now - under_way->second.since < probe_interval) return;
  probes_.erase(rank);
  for (const auto& peer : peers_) {
    if (peer->link.peer() != rank || !peer->link.joined()) continue;
    Descriptor socket = begin_connect(other_end(peer->socket.fd()), ranks_[static_cast<std::size_t>(rank)].port);
    if (socket) probes_.try_emplace(rank, OwnSocket(std::move(socket)), now);
    return;
  }
}

void Control::hear_probe(int rank) {
  const auto found = probes_.find(rank);
  if (found == probes_.end()) return;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(found->second.socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0 || error == ECONNREFUSED || error == ECONNRESET) detector_.probed(rank, steady_clock::now());
  probes_.erase(found);
}

void Control::act_on_findings(Deadline now) {
  using Kind = FailureDetector::Kind;
  std::map<std::pair<Kind, std::string>, std::vector<int>> notices;  // one line for all ranks of a host
  for (const auto& finding : detector_.look(now)) {
    if (standing(finding.rank) != Standing::present) continue;
    if (finding.kind == Kind::lost) {
      lose(finding.rank, finding.why);
    } else {
      notices[{finding.kind, finding.why}].push_back(finding.rank);
    }
  }
  if (!owner_.on_notice || stop_) return;
  for (const auto& [what, ranks] : notices) {
    const char* verb = what.first == Kind::suspected ? "suspects"
                       : what.first == Kind::silent  ? "does not hear"
                                                     : "no longer suspects";
    owner_.on_notice(fmt::format("rank {} {} {}: {}", rank_, verb, core::ranks_text(ranks), what.second));
  }
}

}  // namespace medley::control
