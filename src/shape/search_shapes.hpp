// The best shapes near a model, by names and files. Used by `medley shape search` and the Python package;
// search.hpp does the work.
#pragma once

#include <nlohmann/json.hpp>

#include "shape/request.hpp"
#include "shape/search.hpp"

namespace medley::shape {

struct SearchRequest : ShapeRequest {
  Bounds bounds;
  unsigned threads = 0;                                      ///< 0: one for each core
  std::function<void(std::size_t, std::size_t)> progress{};  ///< as search() takes it
};

struct SearchReport {
  Model model;
  GpuModel gpu;
  Bounds bounds;
  SearchResult found;
  double seconds = 0;  ///< the search took
};

SearchReport search_shapes(const SearchRequest& request);
nlohmann::ordered_json to_json(const SearchReport& report);

}  // namespace medley::shape
