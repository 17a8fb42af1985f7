// What medley tune shows of its result: the step it tuned for, the winners by size, and the table that was written.
#pragma once

#include <string>

#include "tune/tune_job.hpp"

namespace medley::cli {

std::string text_of(const tune::TuneResult& result);

}  // namespace medley::cli
