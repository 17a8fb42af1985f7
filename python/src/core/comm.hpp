// Comm for Python: each method takes the backend first and the common options last, all by position; the
// functions of medley/collectives.py and messages.py add the keywords.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"

namespace medley::python {

/// Options of every operation, besides its arrays.
struct CallOptions {
  std::string backend;
  bool async_op = false;
  double deadline = 0;  ///< seconds; 0: the job's
  std::string algorithm;
  bool deterministic = false;
  std::uintptr_t stream = 0;
  int tag = 0;
  std::string compress;
  std::shared_ptr<ErrorFeedback> feedback;

  Options options() const;
};

struct PyComm {
  std::shared_ptr<Job> job;
  Comm comm;
};

void bind_comm(nanobind::module_& module);
void bind_scope(nanobind::module_& module);

}  // namespace medley::python
