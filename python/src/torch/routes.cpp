#include "routes.hpp"

#include <medley/error.hpp>

#include <atomic>
#include <mutex>
#include <vector>

namespace medley::torch {
namespace {

std::mutex stack_mutex;
std::vector<Rules> stack;
std::atomic<int> depth{0};  // so that operations outside any route() take no lock

}  // namespace

std::string with_v_forms(const std::string& text) {
  std::string all;
  const Rules parsed = Rules::parse(text);
  std::string_view rest = text;
  for (const Rules::Rule& rule : parsed.list()) {
    while (true) {  // the rule's own text: the next that is not empty
      const auto end = rest.find(';');
      const std::string_view own = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
      if (own.find_first_not_of(" \t\n") == std::string_view::npos) continue;
      all += std::string(own) + ";";
      const auto sign = own.find_first_of(":@=");
      if (rule.op && parse_op(std::string(name(*rule.op)) + "v"))
        all += std::string(name(*rule.op)) + "v" + std::string(own.substr(sign)) + ";";
      break;
    }
  }
  return all;
}

void push_route(const std::string& text) {
  Rules rules = Rules::parse(with_v_forms(text));
  for (const Rules::Rule& rule : rules.list()) {
    if (rule.sized()) {
      throw Error(ErrorKind::invalid, "medley.torch.route(\"" + text +
                                          "\"): a route for some calls cannot depend on the size; "
                                          "give such rules to the group, or as MEDLEY_RULES");
    }
  }
  const std::lock_guard lock(stack_mutex);
  stack.push_back(std::move(rules));
  ++depth;
}

void pop_route() {
  const std::lock_guard lock(stack_mutex);
  stack.pop_back();
  --depth;
}

Choice routed(Op op, Memory memory) {
  if (depth.load(std::memory_order_relaxed) == 0) return {};  // relaxed: tells whether the stack is worth locking
  const std::lock_guard lock(stack_mutex);
  for (auto rules = stack.rbegin(); rules != stack.rend(); ++rules) {
    if (const Choice* choice = rules->choose(op, 0, memory)) return *choice;
  }
  return {};
}

}  // namespace medley::torch
