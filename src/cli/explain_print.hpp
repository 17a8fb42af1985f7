// What medley explain shows: the route of one operation with its runners-up, or those of a whole step.
#pragma once

#include <string>

#include "tune/explain.hpp"
#include "tune/explain_step.hpp"

namespace medley::cli {

/// `path`: of the table.
void print(const tune::Explanation& answer, const std::string& path);
void print(const tune::StepExplanation& answer, const std::string& path);

}  // namespace medley::cli
