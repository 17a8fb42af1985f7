// From folders to the page: collects, finds what matters, compares, and puts the data into the embedded HTML file.
#pragma once

#include <string>

#include "report/fields.hpp"

namespace medley::report {

/// The data of the page for one folder, or for two side by side. `output` may be inside the folder and is not read.
Json make_report(const std::string& folder, const std::string& against, const std::string& output);

/// One self-contained HTML file.
std::string page_of(const Json& report);

/// JSON that is safe inside an HTML script element: it contains no `<`.
std::string escaped(const Json& data);

}  // namespace medley::report
