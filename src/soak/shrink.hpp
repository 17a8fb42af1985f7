// Finds few steps of a failing program that fail on their own: larger and larger halves are left out while
// what is left still fails.
#pragma once

#include <functional>
#include <vector>

namespace medley::soak {

/// Of the steps 0 to `steps` - 1, those that can be left out. `fails` is asked with steps left out, and says
/// whether the rest fails; `enough` ends the search early.
std::vector<int> shrink(int steps, const std::function<bool(const std::vector<int>& left_out)>& fails,
                        const std::function<bool()>& enough);

}  // namespace medley::soak
