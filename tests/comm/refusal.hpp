// What an error must be: its kind, and the fragments that its sentence must contain.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <medley/error.hpp>
#include <string>

namespace medley::test {

template <class Call>
void expect_error(ErrorKind kind, std::initializer_list<std::string> fragments, Call call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), kind) << text;
    for (const std::string& fragment : fragments) {
      EXPECT_NE(text.find(fragment), std::string::npos) << "\"" << fragment << "\" is missing in: " << text;
    }
    return;
  }
  ADD_FAILURE() << "no error came, but one about " << (fragments.size() ? *fragments.begin() : "");
}

template <class Call>
void expect_refused(std::initializer_list<std::string> fragments, Call call) {
  expect_error(ErrorKind::invalid, fragments, call);
}

}  // namespace medley::test
