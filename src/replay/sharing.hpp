// What operations on host memory take from each other when they run at the same time. Used to predict steps.
#pragma once

#include "replay/predict.hpp"

namespace medley::replay {

/// How fast each operation, given by its ranks, runs beside the others; 1: as alone. Bytes of host memory are
/// moved by the cores of their ranks: a rank with two operations gives each half of its time, and ranks that
/// outnumber the cores get less of them. That an operation's own ranks outnumber the cores is in its time.
std::vector<double> speeds(const std::vector<const std::vector<int>*>& operations, const Places& places);

}  // namespace medley::replay
