// The codec and the error feedback of the calls of one thread: `with medley.torch.compress("int8", feedback):`. DDP's communication hook uses
// it around its all_reduce. Per thread, so that a bucket's feedback never reaches another thread's call.
#pragma once

#include <medley/error_feedback.hpp>
#include <memory>
#include <string>

namespace medley::torch {

struct Compression {
  std::string codec;
  std::shared_ptr<ErrorFeedback> feedback;   ///< may be null
};

void push_compression(const std::string& codec, std::shared_ptr<ErrorFeedback> feedback);
void pop_compression();
/// The innermost one of this thread; null outside of all.
const Compression* compression();

}  // namespace medley::torch
