// A plain terminal table: columns are as wide as their widest cell, numbers align right.
// Used by every command that shows rows.
#pragma once

#include <string>
#include <vector>

namespace medley::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace medley::cli
