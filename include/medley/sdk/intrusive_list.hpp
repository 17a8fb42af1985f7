// An intrusive doubly linked list: an operation joins and leaves in constant time, without allocation. Used for the
// engine's lists of operations. It does not count its elements.
#pragma once

#include <cstddef>
#include <iterator>

namespace medley {

template <class T>
struct ListLinks {
  T* previous = nullptr;
  T* next = nullptr;
  bool linked = false;
};

template <class T, ListLinks<T> T::*member>
class IntrusiveList {
 public:
  bool empty() const { return !first_; }
  T* front() const { return first_; }
  static T* next(const T& element) { return (element.*member).next; }
  static bool contains(const T& element) { return (element.*member).linked; }

  void push_back(T& element) {
    element.*member = {last_, nullptr, true};
    (last_ ? (last_->*member).next : first_) = &element;
    last_ = &element;
  }
  void erase(T& element) {
    ListLinks<T>& links = element.*member;
    (links.previous ? (links.previous->*member).next : first_) = links.next;
    (links.next ? (links.next->*member).previous : last_) = links.previous;
    links = {};
  }

  void clear() {
    while (first_) erase(*first_);
  }

  /// For loops that do not change the list.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;
    explicit Iterator(T* at) : at_(at) {}
    T& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ = next(*at_);
      return *this;
    }
    bool operator==(const Iterator& other) const = default;

   private:
    T* at_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace medley
