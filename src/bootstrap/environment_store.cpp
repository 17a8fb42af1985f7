// How a rank reaches its job's store, once its launcher is known.
#include <fmt/format.h>
#include <unistd.h>

#include <medley/error.hpp>

#include "bootstrap/environment_parts.hpp"
#include "bootstrap/proof.hpp"

namespace medley {
namespace {

[[noreturn]] void bad_store(const std::string& text, const char* what) {
  throw Error(ErrorKind::invalid,
              fmt::format("MEDLEY_STORE=\"{}\" {}: write host:port, or [address]:port for IPv6", text, what));
}

void parse_store(const std::string& text, Place& place) {
  place.store_ports = 1;
  place.store_port = 0;
  if (text[0] == '@') {
    if (text.size() < 2 || text.size() > 100) bad_store(text, "is no socket name of 1 to 99 characters after the @");
    place.store_host = text;
    return;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) bad_store(text, colon == 0 ? "has no host" : "has no port");
  place.store_host = text.substr(0, colon);
  const bool bracketed = place.store_host.front() == '[' && place.store_host.back() == ']';
  if (bracketed) place.store_host = place.store_host.substr(1, place.store_host.size() - 2);
  if (place.store_host.empty()) bad_store(text, "has no host");
  if (!bracketed && place.store_host.find(':') != std::string::npos) bad_store(text, "has more than one colon");
  const std::string port = text.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  const int number = digits ? std::stoi(port) : 0;
  if (number < 1 || number > 65535) bad_store(text, "has no port between 1 and 65535");
  place.store_port = static_cast<std::uint16_t>(number);
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.") || host.starts_with("@");
}

Place settle_store(const Variables& variables, Found found) {
  Place& place = found.place;
  if (auto token = variables.text("MEDLEY_TOKEN")) place.token = *token;
  const auto store = variables.text("MEDLEY_STORE");
  if (store) {
    parse_store(*store, place);
    place.one_host = place.one_host || is_loopback(place.store_host);
    if (found.identity.empty()) found.identity = "store " + *store;
  }
  place.store_served = variables.text("MEDLEY_STORE_SERVED") == "1";
  if (place.store_served && (!store || place.token.empty())) {
    throw Error(ErrorKind::invalid, fmt::format("MEDLEY_STORE_SERVED=1 but {} is not set: the launcher that serves the "
                                                "store sets both",
                                                store ? "MEDLEY_TOKEN" : "MEDLEY_STORE"));
  }
  // On one host the kernel authenticates the user, so the token need not be secret and the address can be
  // derived.
  const bool reachable = store && !place.token.empty();
  if (place.one_host && !reachable && !found.identity.empty()) {
    place.store_host = fmt::format("@medley/{}/{}", geteuid(), digest(found.identity));
    place.store_port = 0;
    place.store_ports = 1;
    if (place.token.empty()) place.token = digest("token of " + found.identity);
  }
  return place;
}

}  // namespace medley
