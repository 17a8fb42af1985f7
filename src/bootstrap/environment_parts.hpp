// The parts of find_place(): checked variables, and one reader per launcher.
// Private to the environment's files.
#pragma once

#include <optional>
#include <string>

#include "bootstrap/environment.hpp"

namespace medley {

/// Environment variables with checks whose errors name the variable and its value.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}
  bool has(const std::string& name) const { return text(name).has_value(); }
  std::optional<std::string> text(const std::string& name) const;
  /// The first of `names` that is set, or "".
  std::string first(std::initializer_list<const char*> names) const;
  /// An integer within [least, most]; empty when unset.
  std::optional<int> number(const std::string& name, int least, int most) const;
  /// Rank and size, checked against each other.
  void place(const char* rank, const char* size, Place& into) const;
  /// The local rank, from the first of the names that is set; -1 when none is.
  int local_rank(std::initializer_list<const char*> names) const;

 private:
  const Environment& environment_;
};

/// A launcher's variables, before the way to the store is decided.
struct Found {
  Place place;
  std::string identity;  ///< a text unique to this job on this host; "" when the launcher gives none
};

std::optional<Found> from_medley(const Variables& variables);
/// `half_set` receives the error text when only some of torchrun's variables are set.
std::optional<Found> from_torchrun(const Variables& variables, std::string& half_set);
std::optional<Found> from_open_mpi(const Variables& variables);
std::optional<Found> from_mpich(const Variables& variables);
std::optional<Found> from_slurm(const Variables& variables);

/// Whether a store's host is reachable only from this host.
bool is_loopback(const std::string& host);

/// Fills in how to reach the store: MEDLEY_STORE and MEDLEY_TOKEN override the launcher's values.
Place settle_store(const Variables& variables, Found found);

}  // namespace medley
