// The JSON files that the report understands, distinguished by their content: one entry per command that writes one.
#pragma once

#include <span>
#include <string_view>

#include "report/fields.hpp"

namespace medley::report {

struct Format {
  std::string_view list;     ///< the list of a run that holds it; empty: recognised, but not shown
  std::string_view written;  ///< the command that writes it
  bool (*matches)(const Json& file);
  Json (*read)(const Node& file);  ///< throws Error(invalid) with the path of what is wrong; null where
                                   ///< nothing is shown
  std::string_view why;            ///< why it is not shown
};

std::span<const Format> formats();
/// The entry that matches the content, or null.
const Format* format_of(const Json& file);

// One reader per format, by topic.
Json read_info(const Node& file);
Json read_bench(const Node& file);
Json read_steps(const Node& file);
Json read_routes(const Node& file);
Json read_replay(const Node& file);
Json read_reconcile(const Node& file);
Json read_plan(const Node& file);
Json read_shape(const Node& file);
Json read_gemms(const Node& file);
Json read_lint(const Node& file);
Json read_search(const Node& file);

}  // namespace medley::report
