// The shm backend as the core finds it; it is built in.
#pragma once

#include <medley/backend.hpp>

namespace medley::shm {

const BackendPlugin& plugin();

}  // namespace medley::shm
