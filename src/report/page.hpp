// From folders to the page: collect, find what matters, compare, and put the data into the embedded HTML
// file.
#pragma once

#include <string>

#include "report/fields.hpp"

namespace medley::report {

/// The data of the page for one folder, or for two side by side. `output` may lie in the folder and is not
/// read.
Json make_report(const std::string& folder, const std::string& against, const std::string& output);

/// One self-contained HTML file.
std::string page_of(const Json& report);

/// JSON that an HTML parser takes as text up to its end: no `<` is left in it.
std::string escaped(const Json& data);

}  // namespace medley::report
