#include "backends/mpi/posted.hpp"

#include <algorithm>
#include <array>
#include <medley/sdk/grow.hpp>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/transfer.hpp"

namespace medley::mpi {

void Posted::add(MPI_Request request, MpiTransfer* owner) {
  make_room_for_one(owners_);
  requests_.push_back(request);
  owners_.push_back(owner);
  owner->place_ = requests_.size() - 1;
}

MPI_Request Posted::take(std::size_t place) noexcept {
  const MPI_Request request = requests_[place];
  requests_[place] = requests_.back();
  owners_[place] = owners_.back();
  owners_[place]->place_ = place;
  requests_.pop_back();
  owners_.pop_back();
  return request;
}

MPI_Request Posted::remove(const MpiTransfer* owner) noexcept { return take(owner->place_); }

bool Posted::test(std::size_t begin, std::size_t count) {
  std::array<int, at_once> places;
  std::array<MPI_Status, at_once> statuses;
  int complete = 0;
  const int code = MPI_Testsome(static_cast<int>(count), &requests_[begin], &complete, places.data(), statuses.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
  if (complete == MPI_UNDEFINED || complete == 0) return false;
  std::array<MpiTransfer*, at_once> owners;
  for (int i = 0; i < complete; ++i) owners[i] = owners_[begin + static_cast<std::size_t>(places[i])];
  for (int i = 0; i < complete; ++i) take(owners[i]->place_);  // which moves others
  for (int i = 0; i < complete; ++i)
    owners[i]->tested(statuses[i], code == MPI_SUCCESS ? MPI_SUCCESS : statuses[i].MPI_ERROR);
  return true;
}

void Posted::test() {
  const std::size_t all = requests_.size();
  if (all == 0) return;
  for (std::size_t looked = 0; looked < std::min(all, in_a_pass);) {
    if (next_ >= requests_.size()) next_ = 0;
    const std::size_t count = std::min(at_once, requests_.size() - next_);
    if (test(next_, count)) return;
    looked += count;
    next_ += count;
  }
}

}  // namespace medley::mpi
