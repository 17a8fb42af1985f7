// The shm backend for the list of built-in ones (src/library/builtin_backends.cpp).
#pragma once

#include <medley/backend.hpp>

namespace medley::shm {

const BackendPlugin& plugin();

}  // namespace medley::shm
