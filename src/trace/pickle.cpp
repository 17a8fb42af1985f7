#include "trace/pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "trace/import_parts.hpp"

namespace medley::trace {
namespace {

using Json = nlohmann::json;

// A pickle may refer to one list many times; its expanded size is bounded.
constexpr std::uint32_t most_values = 20'000'000;
constexpr int deepest = 32;

/// A value. Children are indexes of values, so that shared or circular values stay small until they are
/// expanded.
struct Value {
  enum class Kind : std::uint8_t { scalar, list, dict, mark, function } kind = Kind::scalar;
  Json scalar;
  std::vector<std::uint32_t> children;  ///< for a dict: key, value, key, value
};

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& place, std::string_view left_out)
      : bytes_(bytes), place_(place), left_out_(left_out) {}

  Json run() {
    while (true) {
      at_opcode_ = at_;
      const auto opcode = static_cast<std::uint8_t>(take(1)[0]);
      if (opcode == '.') break;
      step(opcode);
    }
    const std::uint32_t root = pop();
    memo_ = {};  // what it took goes to the result
    sizes_.assign(values_.size(), 0);
    if (size_of(root, 0) > most_values) refuse("what it holds is too large");
    return open(root);
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    refuse_import(place_, fmt::format("pickle, byte {}: {}", at_opcode_, sentence));
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - at_) refuse("it is cut off");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const std::string_view digits = take(width);
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{static_cast<std::uint8_t>(digits[i])} << (8 * i);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("a line does not end");
    const std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  std::uint32_t make(Value value) {
    if (values_.size() >= most_values) refuse("it holds too many values");
    values_.push_back(std::move(value));
    return static_cast<std::uint32_t>(values_.size() - 1);
  }
  void push(Json scalar) { stack_.push_back(make({Value::Kind::scalar, std::move(scalar), {}})); }
  void push(Value::Kind kind, std::vector<std::uint32_t> children = {}) {
    stack_.push_back(make({kind, {}, std::move(children)}));
  }
  std::uint32_t pop() {
    if (stack_.empty()) refuse("there is nothing on its stack");
    const std::uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Value& top(Value::Kind kind, const char* what) {
    if (stack_.empty() || values_[stack_.back()].kind != kind) refuse(fmt::format("it expects {} here", what));
    return values_[stack_.back()];
  }
  std::vector<std::uint32_t> to_mark() {
    std::size_t from = stack_.size();
    while (from > 0 && values_[stack_[from - 1]].kind != Value::Kind::mark) --from;
    if (from == 0) refuse("a mark is missing");
    std::vector<std::uint32_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from - 1);
    return items;
  }
  std::vector<std::uint32_t> last(std::size_t count) {
    if (stack_.size() < count) refuse("there are too few values on its stack");
    std::vector<std::uint32_t> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  void text(std::size_t bytes) { push(Json(std::string(take(bytes)))); }
  void remember(std::uint64_t key) {
    if (stack_.empty()) refuse("there is nothing to remember");
    memo_[key] = stack_.back();
  }
  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse(fmt::format("value {} was never remembered", key));
    stack_.push_back(found->second);
  }
  void extend(Value::Kind kind, const std::vector<std::uint32_t>& items) {
    Value& target = top(kind, kind == Value::Kind::list ? "a list" : "a dictionary");
    if (kind == Value::Kind::dict && items.size() % 2 != 0) refuse("a key has no value");
    target.children.insert(target.children.end(), items.begin(), items.end());
  }
  void big_integer(std::size_t width) {
    if (width > 8) refuse(fmt::format("an integer of {} bytes is too large", width));
    std::uint64_t value = number(width);
    if (width > 0 && width < 8 && (value >> (8 * width - 1)) != 0) value |= ~std::uint64_t{0} << (8 * width);
    push(Json(static_cast<std::int64_t>(value)));
  }
  void function(std::string_view module, std::string_view name) {
    const bool torch_mark = module == "torch.jit._pickle" || (module == "collections" && name == "OrderedDict");
    if (!torch_mark)
      refuse(fmt::format("it calls {}.{}; a dump of the flight recorder holds plain values only", module, name));
    push(Value::Kind::function);
  }
  void call() {
    const std::uint32_t arguments = pop();
    if (values_[pop()].kind != Value::Kind::function || values_[arguments].kind != Value::Kind::list)
      refuse("it calls what is no function");
    // torch's build_intlist(list) and restore_type_tag(list, type) return the list.
    const auto& given = values_[arguments].children;
    if (given.empty()) push(Value::Kind::dict);
    else stack_.push_back(given.front());
  }

  void step(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80: number(1); return;  // PROTO
      case 0x95: number(8); return;  // FRAME
      case '(': return push(Value::Kind::mark);
      case 'N': return push(Json(nullptr));
      case 0x88: return push(Json(true));
      case 0x89: return push(Json(false));
      case 'K': return push(Json(static_cast<std::int64_t>(number(1))));
      case 'M': return push(Json(static_cast<std::int64_t>(number(2))));
      case 'J': return push(Json(static_cast<std::int64_t>(static_cast<std::int32_t>(number(4)))));
      case 0x8a: return big_integer(number(1));  // LONG1
      case 'G': return real();
      case 'X': return text(number(4));
      case 0x8c: return text(number(1));
      case 0x8d: return text(number(8));
      case 'U':
      case 'C': return text(number(1));
      case 'T':
      case 'B': return text(number(4));
      case ']':
      case ')': return push(Value::Kind::list);
      case '}': return push(Value::Kind::dict);
      case 'a': return extend(Value::Kind::list, last(1));
      case 'e': return extend(Value::Kind::list, to_mark());
      case 's': return extend(Value::Kind::dict, last(2));
      case 'u': return extend(Value::Kind::dict, to_mark());
      case 't':
      case 'l': return push(Value::Kind::list, to_mark());
      case 'd': return dictionary(to_mark());
      case 0x85:
      case 0x86:
      case 0x87: return push(Value::Kind::list, last(opcode - 0x84u));
      case 'q': return remember(number(1));
      case 'r': return remember(number(4));
      case 0x94: return remember(memo_.size());  // MEMOIZE
      case 'h': return recall(number(1));
      case 'j': return recall(number(4));
      case 'c': return global();
      case 0x93: return stack_global();
      case 'R': return call();
      case '0': pop(); return;
      default: refuse(fmt::format("opcode {:#04x} is not one that plain values need", opcode));
    }
  }
  void real() {
    std::uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<std::uint8_t>(byte);
    push(Json(std::bit_cast<double>(bits)));
  }
  void dictionary(std::vector<std::uint32_t> items) {
    if (items.size() % 2 != 0) refuse("a key has no value");
    push(Value::Kind::dict, std::move(items));
  }
  void global() {
    const std::string_view module = line(), name = line();
    function(module, name);
  }
  void stack_global() {
    const auto parts = last(2);
    const auto word = [&](std::uint32_t v) {
      return values_[v].scalar.is_string() ? values_[v].scalar.get<std::string>() : std::string("?");
    };
    function(word(parts[0]), word(parts[1]));
  }

  /// The number of values after expansion, where each reference to a shared value counts; computed once per
  /// value.
  std::uint32_t size_of(std::uint32_t number, int depth) {
    if (depth > deepest) refuse("what it holds is too deep or contains itself");
    if (sizes_[number] != 0) return sizes_[number];
    std::uint32_t size = 1;
    for (const std::uint32_t child : values_[number].children) {
      size = std::min(size + size_of(child, depth + 1), most_values + 1);
    }
    return sizes_[number] = size;
  }

  Json open(std::uint32_t number) {
    const Value& value = values_[number];
    if (value.kind == Value::Kind::scalar) return value.scalar;
    if (value.kind == Value::Kind::list) {
      Json out = Json::array();
      for (const std::uint32_t child : value.children) out.push_back(open(child));
      return out;
    }
    if (value.kind != Value::Kind::dict) refuse("it leaves a mark or a function as a value");
    Json out = Json::object();
    for (std::size_t i = 0; i + 1 < value.children.size(); i += 2) {
      const Json key = open(value.children[i]);
      if (!left_out_.empty() && key == left_out_) continue;
      out[key.is_string() ? key.get<std::string>() : key.dump(-1, ' ', false, Json::error_handler_t::replace)] =
          open(value.children[i + 1]);
    }
    return out;
  }

  std::string_view bytes_;
  const std::string& place_;
  const std::string_view left_out_;
  std::size_t at_ = 0, at_opcode_ = 0;
  std::vector<Value> values_;
  std::vector<std::uint32_t> sizes_;  ///< by value; 0: not counted yet
  std::vector<std::uint32_t> stack_;
  std::map<std::uint64_t, std::uint32_t> memo_;
};

}  // namespace

Json read_pickle(std::string_view bytes, const std::string& place, std::string_view left_out) {
  return Machine(bytes, place, left_out).run();
}

}  // namespace medley::trace
