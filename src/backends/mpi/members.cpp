#include "backends/mpi/members.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "backends/mpi/library.hpp"
#include "backends/mpi/plugin.hpp"

namespace medley::mpi {
namespace {

struct Card {
  int rank = 0, size = 1, process = 0;
  std::string job;  ///< the launcher's name of the job; empty where it gives none
  std::string library;
};

std::string key(int rank) { return fmt::format("member/{}", rank); }

Card own_card() {
  Card card;
  MPI_Comm_rank(MPI_COMM_WORLD, &card.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &card.size);
  for (const char* variable : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"}) {
    if (const char* text = std::getenv(variable); text && card.job.empty()) card.job = text;
  }
  card.process = getpid();
  card.library = Library::version();
  return card;
}

std::string written(const Card& card) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", card.rank, card.size, card.process, card.job, card.library);
}

Card read(const std::string& text, int rank) {
  if (text.starts_with("!"))
    throw Error(ErrorKind::unavailable, fmt::format("rank {} cannot use MPI: {}", rank, text.substr(1)),
                {.ranks = {rank}});
  Card card;
  std::istringstream lines(text);
  std::string number;
  std::getline(lines, number);
  card.rank = std::stoi(number);
  std::getline(lines, number);
  card.size = std::stoi(number);
  std::getline(lines, number);
  card.process = std::stoi(number);
  std::getline(lines, card.job);
  std::getline(lines, card.library);
  return card;
}

void expect_one_job(const std::vector<Card>& cards) {
  std::map<int, int> owner;  // by MPI rank
  for (int r = 0; r < static_cast<int>(cards.size()); ++r) {
    const Card &card = cards[static_cast<std::size_t>(r)], &first = cards[0];
    if (card.library != first.library) {
      throw Error(ErrorKind::unavailable,
                  fmt::format("rank 0 runs on {} but rank {} on {}", first.library, r, card.library),
                  {.ranks = {0, r}});
    }
    const auto [twin, is_new] = owner.emplace(card.rank, r);
    if (is_new && card.size == first.size && card.job == first.job) continue;
    const int other = is_new ? 0 : twin->second;
    throw Error(ErrorKind::unavailable,
                fmt::format("ranks {} and {} are not in one MPI job (they are rank {} of {} and rank {} of {} of "
                            "MPI_COMM_WORLD); start all of them with one mpirun of {}, or with medley run -n N "
                            "--backends mpi",
                            other, r, cards[static_cast<std::size_t>(other)].rank,
                            cards[static_cast<std::size_t>(other)].size, card.rank, card.size, card.library),
                {.ranks = {other, r}});
  }
}

}  // namespace

void tell_failure(const BackendParams& params, const std::string& why) {
  params.store->set(key(params.rank), "!" + why);
}

Members meet_members(const BackendParams& params) {
  params.store->set(key(params.rank), written(own_card()));
  std::vector<Card> cards;
  for (int r = 0; r < params.size; ++r) cards.push_back(read(params.store->get(key(r), params.deadline), r));
  expect_one_job(cards);
  Members members;
  const std::string& own_host = params.hosts[static_cast<std::size_t>(params.rank)];
  for (std::size_t r = 0; r < cards.size(); ++r) {
    members.mpi_ranks.push_back(cards[r].rank);
    if (params.hosts[r] == own_host) Library::of_process().remember_process(cards[r].process, cards[r].rank);
  }
  return members;
}

}  // namespace medley::mpi
