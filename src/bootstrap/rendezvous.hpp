// The ranks' rendezvous: the job's store, and an all-gather of small strings through it.
// Used by Context when it starts and by backends that exchange addresses.
#pragma once

#include <medley/export.hpp>

#include <memory>
#include <string>
#include <vector>

#include "bootstrap/environment.hpp"
#include "bootstrap/store.hpp"

namespace medley {

/// The store of the job that `place` belongs to. Rank 0 serves it unless the launcher does; the others
/// connect and retry until the deadline, since rank 0 may start later. A process keeps one connection
/// (rank 0: one server) per job until it exits. Each call returns its own key prefix, the same for the n-th call
/// on every rank, so that several contexts in a process do not see each other's keys. Without an
/// address or token, the Error prints the line to export.
MEDLEY_API std::shared_ptr<Store> connect_store(const Place& place, Deadline deadline);

/// An all-gather: every rank passes `mine` and gets everyone's, indexed by rank. `prefix` must be new for each
/// exchange. An Error of kind timeout names the missing ranks; two processes that claim one rank are an Error of kind
/// mismatch.
MEDLEY_API std::vector<std::string> exchange(Store& store, const std::string& prefix, int rank, int size,
                                             const std::string& mine, Deadline deadline);

}  // namespace medley
