#include "control/control.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <medley/sdk/quiet_thread.hpp>

#include "bootstrap/host.hpp"
#include "bootstrap/socket.hpp"

namespace medley::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

}  // namespace

Control::Control(int rank, int size, bool one_host)
    : rank_(rank),
      size_(size),
      listener_(listen_on(one_host ? "127.0.0.1" : "", 0, 1)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      process_events_(epoll_create1(EPOLL_CLOEXEC)),
      standing_(std::make_unique<std::atomic<Standing>[]>(static_cast<std::size_t>(size))) {}

Endpoint Control::endpoint() const {
  return {host_identity(), getpid(), port_of(listener_.descriptor()), own_addresses()};
}

void Control::start(std::vector<Endpoint> ranks, const std::string& token, Listener listener,
                    const DetectorLimits& limits) {
  ranks_ = std::move(ranks);
  token_ = token;
  owner_ = std::move(listener);
  limits_ = limits;
  detector_ = FailureDetector(limits);
  thread_ = start_quiet_thread("medley-control", [this] { run(); });
}

Control::~Control() { stop(); }

void Control::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(write(wake_.fd(), &one, sizeof one) == sizeof one);
}

void Control::stop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  wake();
  thread_.join();
}

void Control::send(int to, Message message) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push_back({to, std::move(message)});
  }
  wake();
}

void Control::start(std::shared_ptr<Gathering> gathering) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push_back({rank_, {}, std::move(gathering)});
  }
  wake();
}

void Control::ask_who_called(const Gathering& gathering) {
  for (const int member : gathering.members()) {
    if (member != rank_) send(member, Gatherings::question(gathering.name()));
  }
}

void Control::abandon(const std::string& gathering) { send(rank_, {"abandon", gathering}); }

void Control::take_outbox() {
  std::uint64_t ignored = 0;
  static_cast<void>(read(wake_.fd(), &ignored, sizeof ignored) == sizeof ignored);
  std::vector<Outgoing> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(outbox_);
  }
  for (Outgoing& item : taken) {
    if (item.begun) {
      std::vector<Gatherings::Outgoing> out;
      gatherings_.start(std::move(item.begun), out);
      send_all(out);
    } else if (item.to == rank_ && item.message.kind == "abandon") {
      gatherings_.abandon(item.message.body);
    } else {
      send_to(item.to, item.message);
    }
  }
}

void Control::run() {
  connect_neighbours();
  auto next_tick = steady_clock::now() + limits_.interval;
  while (!stop_) {
    const auto left = std::chrono::ceil<milliseconds>(next_tick - steady_clock::now());
    step(std::clamp(left, milliseconds(0), limits_.interval));
    take_outbox();
    if (steady_clock::now() >= next_tick) {
      next_tick = steady_clock::now() + limits_.interval;
      on_tick();
    }
  }
  say_goodbye();
}

/// Waits for events on the links and handles them.
void Control::step(milliseconds at_most) {
  const bool listening = steady_clock::now() >= listen_again_;
  std::vector<pollfd> files{
      {wake_.fd(), POLLIN, 0}, {listening ? listener_.fd() : -1, POLLIN, 0}, {process_events_.fd(), POLLIN, 0}};
  std::vector<int> probed;
  for (const auto& [rank, probe] : probes_) {
    files.push_back({probe.socket.fd(), POLLOUT, 0});
    probed.push_back(rank);
  }
  const std::size_t first_peer = files.size();
  for (const auto& peer : peers_) {
    const bool writes = !peer->connected || !peer->link.outgoing().empty();
    files.push_back({peer->socket.fd(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
  if (poll(files.data(), files.size(), static_cast<int>(at_most.count())) <= 0) return;
  // From the back, so that dropping one peer moves none that is still to be served.
  for (std::size_t i = files.size(); i-- > first_peer;) {
    const std::size_t index = i - first_peer;
    if (files[i].revents != 0 && index < peers_.size() && peers_[index]->socket.fd() == files[i].fd) {
      serve(index, files[i].revents);
    }
  }
  for (std::size_t i = 0; i < probed.size(); ++i) {
    if (files[i + 3].revents != 0) hear_probe(probed[i]);
  }
  if (files[2].revents != 0) note_ended_processes();
  if (files[1].revents != 0) accept_some();
}

void Control::on_tick() {
  const Deadline now = steady_clock::now();
  for (const auto& peer : peers_) {
    if (peer->link.joined()) note_transport(*peer, now);
  }
  act_on_findings(now);
  tend_links(now);
  if (owner_.on_tick) owner_.on_tick();
}

}  // namespace medley::control
