#include "compression.hpp"

#include <medley/error.hpp>

#include <utility>
#include <vector>

namespace medley::torch {
namespace {

thread_local std::vector<Compression> compressions;

}  // namespace

void push_compression(const std::string& codec, std::shared_ptr<ErrorFeedback> feedback) {
  compressions.push_back({codec, std::move(feedback)});
}

void pop_compression() {
  if (compressions.empty()) throw Error(ErrorKind::invalid, "compress() was left on another thread than the one that entered it");
  compressions.pop_back();
}

const Compression* compression() { return compressions.empty() ? nullptr : &compressions.back(); }

}  // namespace medley::torch
