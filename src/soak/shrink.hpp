// Reduces a failing program to few steps that still fail: removes halves, then smaller and smaller groups of
// steps, as long as the rest fails.
#pragma once

#include <functional>
#include <vector>

namespace medley::soak {

/// The steps among 0 to `steps` - 1 that can be left out. `fails` tells whether the program fails without the
/// given steps; `enough` ends the search early.
std::vector<int> shrink(int steps, const std::function<bool(const std::vector<int>& left_out)>& fails,
                        const std::function<bool()>& enough);

}  // namespace medley::soak
