#include "control/link.hpp"

#include <algorithm>

namespace medley::control {

Link Link::connecting(const std::string& token, int rank, int size) {
  Link link;
  link.token_ = token;
  link.rank_ = rank;
  link.size_ = size;
  return link;
}

Link Link::accepting(const std::string& token, int size) {
  Link link;
  link.session_.emplace(token, static_cast<std::uint32_t>(size));
  link.out_ = link.session_->greeting();
  return link;
}

void Link::send(const Message& message) {
  (joined_ ? out_ : waiting_) += wire::request(wire::Verb::set, message.kind, message.body);
}

void Link::flush_waiting() {
  joined_ = true;
  out_ += waiting_;
  waiting_.clear();
}

/// The connecting end of the handshake: it answers the greeting with a proof; the verdict carries the peer's proof.
bool Link::receive_answer(std::string_view& bytes) {
  const std::size_t wanted = server_ ? wire::verdict_bytes : wire::greeting_bytes;
  const std::size_t taken = std::min(bytes.size(), wanted - heard_.size());
  heard_.append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  if (heard_.size() < wanted) return true;
  if (!server_) {
    server_ = wire::parse_greeting(heard_);
    if (!server_) return false;
    client_ = random_nonce();
    out_ +=
        wire::hello(token_, *server_, client_, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(size_));
  } else {
    const auto answer = wire::parse_verdict(heard_, token_, *server_, client_);
    if (!answer || answer->code != wire::Verdict::welcome) return false;
    session_.emplace(StoreSession::joined());
    flush_waiting();
  }
  heard_.clear();
  return true;
}

bool Link::receive(std::string_view bytes, std::vector<Message>& messages) {
  while (!session_ && !bytes.empty()) {
    if (!receive_answer(bytes)) return false;
  }
  if (!session_) return true;
  std::vector<wire::Request> requests;
  const bool good = session_->receive(bytes, requests, out_);
  if (!joined_ && session_->admitted()) {
    peer_ = session_->rank();
    flush_waiting();
  }
  for (wire::Request& request : requests) messages.push_back({std::move(request.key), std::move(request.value)});
  return good;
}

}  // namespace medley::control
