// An all-gather of small strings through a store: the first rank collects and publishes, so that n ranks need
// some 5n requests instead of n² (a thousand ranks: 0.1 s instead of 15 s at the 15 µs a request takes).
#include <fmt/format.h>

#include <cstring>
#include <medley/error.hpp>

#include "base/ranks_text.hpp"
#include "bootstrap/rendezvous.hpp"

namespace medley {
namespace {

std::string join_parts(const std::vector<std::string>& parts) {
  std::string all;
  for (const auto& part : parts) {
    const std::uint64_t length = part.size();
    all.append(reinterpret_cast<const char*>(&length), sizeof length).append(part);
  }
  return all;
}

std::vector<std::string> split_parts(std::string_view all, int count) {
  std::vector<std::string> parts;
  std::uint64_t length = 0;
  while (all.size() >= sizeof length) {
    std::memcpy(&length, all.data(), sizeof length);
    all.remove_prefix(sizeof length);
    if (length > all.size()) break;
    parts.emplace_back(all.substr(0, length));
    all.remove_prefix(length);
  }
  if (parts.size() != static_cast<std::size_t>(count)) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format("an exchange among {} ranks met one among {}: ranks called different things", count, parts.size()));
  }
  return parts;
}

Error about_ranks(ErrorKind kind, const std::string& sentence, std::vector<int> ranks) {
  ErrorContext context;
  context.ranks = std::move(ranks);
  return {kind, sentence, std::move(context)};
}

Error missing_ranks(Store& store, const std::string& prefix, int rank, int size) {
  std::vector<int> missing;
  for (int other = 0; other < size; ++other) {
    if (!store.try_get(fmt::format("{}/{}", prefix, other))) missing.push_back(other);
  }
  if (missing.empty()) missing.push_back(0);  // everyone arrived, but the publishing rank did not finish
  return about_ranks(
      ErrorKind::timeout,
      fmt::format("rank {} waited for {} of {} until the deadline passed", rank, core::ranks_text(missing), size),
      missing);
}

}  // namespace

std::vector<std::string> exchange(Store& store, const std::string& prefix, int rank, int size, const std::string& mine,
                                  Deadline deadline) {
  if (rank < 0 || rank >= size) {
    throw Error(ErrorKind::invalid, fmt::format("rank {} does not lie within 0 and {}", rank, size - 1));
  }
  if (store.add(fmt::format("{}/claims/{}", prefix, rank), 1) != 1) {
    throw about_ranks(ErrorKind::mismatch, fmt::format("two processes claim rank {} of {}", rank, size), {rank});
  }
  store.set(fmt::format("{}/{}", prefix, rank), mine);
  const std::string published = prefix + "/all";
  std::vector<std::string> all(static_cast<std::size_t>(size));
  try {
    if (rank == 0) {
      for (int other = 0; other < size; ++other) {
        all[static_cast<std::size_t>(other)] =
            other == 0 ? mine : store.get(fmt::format("{}/{}", prefix, other), deadline);
      }
      store.set(published, join_parts(all));
    } else {
      all = split_parts(store.get(published, deadline), size);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout) throw;
    throw missing_ranks(store, prefix, rank, size);
  }
  // The last reader clears the table; otherwise many comms would fill it.
  if (store.add(prefix + "/readers", 1) == size) store.erase_prefix(prefix + "/");
  return all;
}

}  // namespace medley
