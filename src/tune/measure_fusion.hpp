// When fusion pays: many tensors all_reduced one by one against packed into one message. For the tuner.
#pragma once

#include <medley/medley.hpp>

#include "route/table.hpp"

namespace medley::tune {

/// On host memory, over the routes that the table gives the tensors and the message, or over the backend if one is
/// named. Collective; all ranks get rank 0's times. Stops at the first size at which fusion does not pay, or when
/// `seconds` have passed.
route::FusionRow measure_fusion(Comm comm, const route::Shape& shape, const route::Table& table,
                                const std::string& backend, double seconds);

}  // namespace medley::tune
