// How concurrent operations on host memory slow each other down. Used to predict steps.
#pragma once

#include "replay/predict.hpp"

namespace medley::replay {

/// How fast each operation, given by its ranks, runs beside the others; 1: as in isolation. The cores of the ranks move
/// the bytes of host memory: a rank with two operations gives each half of its time, and oversubscribed ranks get less
/// of a core. If an operation's own ranks oversubscribe the cores, its measured time includes that.
std::vector<double> speeds(const std::vector<const std::vector<int>*>& operations, const Places& places);

}  // namespace medley::replay
