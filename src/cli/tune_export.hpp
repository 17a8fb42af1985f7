// medley tune --export: what was measured, in the form that another library reads.
#pragma once

#include <functional>
#include <string>

namespace medley::cli {

struct ExportArguments {
  int ranks = 0;
  std::string library;  ///< nccl, openmpi or ucc
  std::string file;     ///< to write
  std::string table;    ///< to read; empty: the one that contexts use
  std::string sizes;    ///< to measure, for openmpi
  double seconds = 60;
};

/// `stop` is asked while Open MPI is measured, after `catch_signals` was called. Returns the exit status.
int run_export(const ExportArguments& given, const std::function<bool()>& stop,
               const std::function<void()>& catch_signals);

}  // namespace medley::cli
