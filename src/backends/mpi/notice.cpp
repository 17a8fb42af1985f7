#include "backends/mpi/notice.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <medley/sdk/peer_abort.hpp>

namespace medley::mpi {
namespace {

/// Small enough to be eager on every MPI, so that receiving one that has arrived never waits.
struct Notice {
  std::int32_t kind;
  std::int32_t ranks;
  std::array<std::int32_t, 16> rank;
  std::array<char, 320> sentence;
};

Notice written(const Error& why, int own_rank) {
  Notice notice{};
  notice.kind = static_cast<std::int32_t>(why.kind());
  std::vector<int> ranks = why.context().ranks;
  if (ranks.empty()) ranks.push_back(own_rank);  // the caller of an abort is at fault itself
  notice.ranks = static_cast<std::int32_t>(std::min(ranks.size(), notice.rank.size()));
  std::copy_n(ranks.begin(), notice.ranks, notice.rank.begin());
  std::strncpy(notice.sentence.data(), why.what(), notice.sentence.size() - 1);
  return notice;
}

}  // namespace

void Mailbox::tell_everyone(const Error& why, Library& library) noexcept {
  try {
    const Notice notice = written(why, rank_);
    Orphan sends;
    sends.staged.resize(sizeof notice);
    std::memcpy(sends.staged.data(), &notice, sizeof notice);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      if (MPI_Isend(sends.staged.data(), sizeof notice, MPI_BYTE, peer, tag, comm_, &request) == MPI_SUCCESS)
        sends.requests.push_back(request);
    }
    library.adopt(std::move(sends));
  } catch (...) {  // if a notice cannot be allocated, the peers learn it from their deadlines
  }
}

std::optional<Error> Mailbox::look() {
  int arrived = 0;
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;
  if (MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &arrived, &message, &status) != MPI_SUCCESS || !arrived)
    return std::nullopt;
  Notice notice{};
  if (MPI_Mrecv(&notice, sizeof notice, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS) return std::nullopt;
  notice.sentence.back() = 0;
  const auto count = static_cast<std::size_t>(std::clamp<std::int32_t>(notice.ranks, 0, notice.rank.size()));
  return peer_abort(status.MPI_SOURCE, notice.kind, notice.sentence.data(),
                    {notice.rank.begin(), notice.rank.begin() + count});
}

}  // namespace medley::mpi
