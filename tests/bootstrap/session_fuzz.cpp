// Fuzzes the store's parser: as an unauthenticated client, and as a rank that was admitted.
// The first byte chooses which; the rest arrives in chunks.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "bootstrap/store_session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string token = "token";
  medley::StoreSession session(token, 2);
  std::vector<medley::wire::Request> requests;
  std::string out;
  const bool admitted = data[0] & 1;
  if (admitted) {
    const auto server = *medley::wire::parse_greeting(session.greeting());
    if (!session.receive(medley::wire::hello(token, server, medley::random_nonce(), 1, 2), requests, out)) std::abort();
  }
  const std::size_t piece = 1 + data[1];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  bool stays = true;
  while (stays && !bytes.empty()) {
    stays = session.receive(bytes.substr(0, piece), requests, out);
    bytes.remove_prefix(bytes.size() < piece ? bytes.size() : piece);
  }
  if (session.admitted() != admitted) std::abort();  // random bytes must not authenticate
  if (!admitted && !requests.empty()) std::abort();
  return 0;
}
