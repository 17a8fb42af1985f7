#include "backends/ucx/notice.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <medley/sdk/peer_abort.hpp>

namespace medley::ucx {
namespace {

constexpr std::size_t most_ranks = 8, most_text = 400;  // one small active message on every transport

struct Header {
  std::uint16_t comm;
  std::uint16_t ranks;
  std::int32_t from;
  std::int32_t kind;
  std::int32_t at_fault[most_ranks];
};

}  // namespace

std::string Notice::pack() const {
  Header header{};
  header.comm = comm;
  header.from = from;
  header.kind = static_cast<std::int32_t>(why.kind());
  const auto& ranks = why.context().ranks;
  header.ranks = static_cast<std::uint16_t>(std::min(ranks.size(), most_ranks));
  std::copy_n(ranks.begin(), header.ranks, header.at_fault);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes + std::string(why.what()).substr(0, most_text);
}

std::optional<Notice> Notice::unpack(const void* data, std::size_t bytes) {
  Header header{};
  if (bytes < sizeof header) return std::nullopt;
  std::memcpy(&header, data, sizeof header);
  const std::string text(static_cast<const char*>(data) + sizeof header, bytes - sizeof header);
  std::vector<int> ranks(header.at_fault, header.at_fault + std::min<std::size_t>(header.ranks, most_ranks));
  return Notice{header.comm, header.from, peer_abort(header.from, header.kind, text, std::move(ranks))};
}

}  // namespace medley::ucx
