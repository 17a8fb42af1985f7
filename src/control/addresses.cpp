#include "control/addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

namespace medley::control {

std::string Endpoint::to_text() const {
  return nlohmann::json{{"host", host}, {"pid", pid}, {"port", port}, {"addresses", addresses}}.dump();
}

Endpoint Endpoint::from_text(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {json["host"], json["pid"], json["port"], json["addresses"]};
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP) || (entry->ifa_flags & IFF_LOOPBACK)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST];
    const auto length = static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (getnameinfo(entry->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string address = text;
    // Link-local addresses mean nothing on other hosts
    if (address.find('%') == std::string::npos) found.push_back(address);
  }
  freeifaddrs(list);
  return found;
}

}  // namespace medley::control
