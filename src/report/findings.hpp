// The main findings in the data, as sentences: the page's header shows three of them, its sections the rest.
#pragma once

#include "report/fields.hpp"

namespace medley::report {

/// A list of {section, sentence, headline}, most important first; the first three are headlines. `run` is the result of
/// collect().
Json find(const Json& run);

/// A list of {what, command}: parts of the page without data, and the command that writes it into `folder`.
Json not_measured(const Json& run, const std::string& folder);

}  // namespace medley::report
