#include "bootstrap/store_session.hpp"

#include <algorithm>

namespace medley {

bool StoreSession::receive(std::string_view bytes, std::vector<wire::Request>& requests, std::string& out) {
  if (!admitted_) {
    const std::size_t taken = std::min(bytes.size(), wire::hello_bytes - heard_.size());
    heard_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    // A client of another protocol is dropped at its first wrong byte.
    if (!wire::magic.starts_with(std::string_view(heard_).substr(0, wire::magic.size()))) return false;
    if (heard_.size() < wire::hello_bytes) return true;
    if (!admit(out)) return false;
    heard_.clear();
  }
  heard_.append(bytes);
  return take_frames(requests);
}

bool StoreSession::admit(std::string& out) {
  const auto hello = wire::parse_hello(heard_);
  if (!hello) return false;
  auto code = wire::Verdict::welcome;
  if (!wire::proves(*hello, token_, nonce_)) {
    code = wire::Verdict::wrong_token;
  } else if (size_ != 0 && hello->size != size_) {
    code = wire::Verdict::wrong_size;
  }
  out += wire::verdict(token_, nonce_, hello->nonce, code, size_);
  admitted_ = code == wire::Verdict::welcome;
  rank_ = static_cast<int>(hello->rank);
  return admitted_;
}

bool StoreSession::take_frames(std::vector<wire::Request>& requests) {
  std::size_t done = 0;
  while (heard_.size() - done >= sizeof(std::uint32_t)) {
    const auto length = wire::parse_length(heard_.data() + done);
    if (!length) return false;
    if (heard_.size() - done - sizeof(std::uint32_t) < *length) break;
    auto request = wire::parse_request(std::string_view(heard_).substr(done + sizeof(std::uint32_t), *length));
    if (!request) return false;
    requests.push_back(std::move(*request));
    done += sizeof(std::uint32_t) + *length;
  }
  heard_.erase(0, done);
  return true;
}

}  // namespace medley
