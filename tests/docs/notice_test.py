"""The checks notice what they are for."""

import pathlib
import tempfile
import unittest

import check_commands
import check_memory_orders
import check_text
import cpp_page
import documents


def document(text):
    folder = pathlib.Path(tempfile.mkdtemp(dir=documents.ROOT / "out"))
    path = folder / "README.md"
    path.write_text(text)
    return path


class Notice(unittest.TestCase):
    def setUp(self):
        (documents.ROOT / "out").mkdir(exist_ok=True)

    def problems(self, text):
        path = document(text)
        try:
            return [what for _, what in check_text.problems_of(path)]
        finally:
            path.unlink()
            path.parent.rmdir()

    def commands(self, text):
        path = document(text)
        try:
            return [words for _, words in check_commands.commands_of(path)]
        finally:
            path.unlink()
            path.parent.rmdir()

    def test_declarations(self):
        """The C++ page has what a program can call, with its words, and nothing else."""
        reader = cpp_page.Reader('''
namespace medley {
namespace core { class Hidden; }
/// A thing.
class MEDLEY_API Thing : public Base {
 public:
  int size() const noexcept { return size_; }   ///< how many
  /// Sends it.
  void send(int to = 0);
  void send(std::initializer_list<int> to) { for (int one : to) send(one); }
  void quiet();
  /// Optional.
  std::optional<bool> exact{};
  Thing(const Thing&) = delete;

 private:
  int size_ = 0;   ///< secret
};
/// Kinds.
enum class Kind : int { a, b };
}  // namespace medley
''')
        reader.scope(3, False)
        text = "\n".join(line for line in reader.out if line)
        self.assertEqual(text, """### `Thing`
A thing.
```cpp
class Thing : public Base;
```
```cpp
int size() const noexcept;   // how many
```
```cpp
void send(int to = 0);
void send(std::initializer_list<int> to);
```
Sends it.
```cpp
void quiet();
```
```cpp
std::optional<bool> exact{};
```
Optional.
```cpp
enum class Kind : int { a, b };
```
Kinds.""")

    def test_placeholders(self):
        self.assertEqual(self.problems("```\n@SHAPE@\n```\n"), ["holds the placeholder @SHAPE@"])
        self.assertEqual(len(self.problems("TODO: measure\n")), 1)
        self.assertEqual(self.problems("all_reduce@cuda=nccl and *@cuda=nccl\n"), [])

    def test_links(self):
        self.assertEqual(len(self.problems("[a](missing.md)\n")), 1)
        self.assertEqual(len(self.problems("# A heading\n[a](#a-heading) [b](#another)\n")), 1)
        self.assertEqual(self.problems("# What `this` is: 2 things\n[a](#what-this-is-2-things)\n"), [])

    def test_commands(self):
        found = self.commands("```\n$ A=1 medley trace d \\\n    --csv f   # why\nits output\n```\nand `medley bench -n 2 --op x`\n")
        self.assertEqual(found, [["medley", "trace", "d", "--csv", "f"], ["medley", "bench", "-n", "2", "--op", "x"]])
        self.assertIsNotNone(check_commands.problem_of(["cmake", "--preset", "nonesuch"], "medley"))
        self.assertIsNotNone(check_commands.problem_of(["./nonesuch"], "medley"))

    def orders(self, text):
        lines = text.splitlines()
        declared = {}
        for name, comment in check_memory_orders.declarations_of(lines):
            declared.setdefault(name, []).append(comment)
        return [number for number, _ in check_memory_orders.problems_of(lines, declared)]

    def test_memory_orders(self):
        self.assertEqual(self.orders("x.load(std::memory_order_acquire);\n"), [1])
        self.assertEqual(self.orders("// relaxed: no pair\nx.load(std::memory_order_acquire);\n"), [2])
        self.assertEqual(self.orders("x.load(std::memory_order_acquire);  // pairs with the release store in f()\n"), [])
        self.assertEqual(self.orders("x.load(std::memory_order_relaxed);  // written elsewhere\n"), [1])
        self.assertEqual(self.orders("// relaxed: a count\n\n\n\nx.load(std::memory_order_relaxed);\n"), [])
        self.assertEqual(self.orders("// relaxed: a count\n\n\n\n\nx.load(std::memory_order_relaxed);\n"), [6])
        at_variable = "// relaxed: counts\nstd::atomic<int> a{0};\nstd::atomic<int> b{0}, c{0};\nint far;\n\n\n\n\n\n"
        self.assertEqual(self.orders(at_variable + "c.store(\n    1, std::memory_order_relaxed);\n"), [])
        self.assertEqual(self.orders(at_variable + "far.load(std::memory_order_relaxed);\n"), [10])


if __name__ == "__main__":
    unittest.main()
