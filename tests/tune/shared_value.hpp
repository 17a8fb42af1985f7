// A value shared by forked processes. Used by the tests of the sample clock.
#pragma once

#include <sys/mman.h>

#include <new>
#include <stdexcept>

namespace medley::tune {

template <class Value>
class SharedValue {
 public:
  SharedValue() {
    void* memory = mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory for a test");
    value_ = new (memory) Value{};
  }
  ~SharedValue() { munmap(value_, sizeof(Value)); }
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;
  Value& operator*() const { return *value_; }
  Value* operator->() const { return value_; }

 private:
  Value* value_;
};

}  // namespace medley::tune
