// Everything a program needs: #include <medley/medley.hpp>
#pragma once

#include <medley/buffer.hpp>
#include <medley/comm.hpp>
#include <medley/context.hpp>
#include <medley/error.hpp>
#include <medley/error_feedback.hpp>
#include <medley/fuse.hpp>
#include <medley/options.hpp>
#include <medley/rules.hpp>
#include <medley/scope.hpp>
#include <medley/store.hpp>
#include <medley/types.hpp>
#include <medley/version.hpp>
#include <medley/work.hpp>
