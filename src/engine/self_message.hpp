// A blocking message of a rank to itself, which completes only if another thread of the process answers it: whether one will is
// not known before the deadline. Engine's waits say so.
#pragma once

#include <string>

#include "engine/operation.hpp"
#include "record/record.hpp"

namespace medley::core {

bool is_self_message(const Operation& operation);

/// What the deadline's error says of one: "", or a clause.
std::string self_message_advice(const Operation& operation);

/// A line on stderr for a send that has waited for a second; false: it is not due. No line for receives, in which a thread may
/// rightly wait for another.
bool hint_at_self_send(const Operation& operation, const Record& record);

}  // namespace medley::core
