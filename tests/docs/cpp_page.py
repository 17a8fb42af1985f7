"""The C++ interface as a Markdown page, from the declarations and doc comments of include/medley. Used by reference.py.

It reads what this project's headers contain: namespaces, classes, enumerations, functions and constants, with /// before or ///< behind
what they describe. Bodies, private members, friends and preprocessor lines are left out."""

import re

from documents import ROOT

HEADERS = ["context", "comm", "buffer", "options", "work", "fuse", "error_feedback", "scope", "error", "rules", "route_decision", "types", "store", "version",
           "backend"]
TOKEN = re.compile(r'///<[^\n]*|///[^\n]*|//[^\n]*|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|\n|[{}();]|[^\S\n]+|[^\s{}();"\'/]+|/')
SPECIAL = re.compile(r"(?:^|\s)(?:~\w+\(|operator=|(\w+)\((?:const )?\1\s*&)")   # destructors, assignments, copies and moves


def tokens(text):
    text = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.MULTILINE)
    return TOKEN.findall(text)


def plain(text):
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\bMEDLEY_API ", "", text)
    text = re.sub(r"(\[\[nodiscard\]\] )|\b(inline )(?=constexpr)", "", text)
    return re.sub(r" = \"[^;]*\" \"[^;]*;$", ";", text)   # a text that the preprocessor puts together


def paragraphs(doc):
    """The lines of a comment as Markdown; those that begin with - are items of a list."""
    text, listed = "", False
    for line in doc:
        item = line.startswith("- ")
        text += ("\n\n" if item and not listed else "\n" if item else " " if text else "") + line
        listed = listed or item
    return text.replace(" \n", "\n")


def called(text):
    """The name that a declaration declares."""
    found = re.search(r"(\w+)\s*(?:\(|\{|=|;|\[)", text)
    return found[1] if found else text


class Reader:
    """Writes the Markdown of one header."""

    def __init__(self, text):
        self.tokens, self.at, self.out = tokens(text), 0, []
        self.group, self.said = [], ""   # declarations with the comments behind them, and what describes all of them

    def flush(self):
        if self.group:
            width = max((len(text) for text, behind in self.group if behind), default=0)
            lines = [f"{text:{width}}   // {behind}" if behind else text for text, behind in self.group]
            self.out += ["", "```cpp", *lines, "```"] + (["", self.said] if self.said else [])
        self.group, self.said = [], ""

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def skip_body(self):
        """Past the } of the { that was just taken; gives the text in between."""
        depth, text = 1, ""
        while depth:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token, 0)
            text += token if depth and not token.startswith("//") else ""
        return text

    def trailing(self):
        """The ///< comment behind a declaration, which continues on lines that hold nothing else."""
        said = []
        while self.at < len(self.tokens):
            ahead = self.at
            while self.tokens[ahead].isspace() and (self.tokens[ahead] != "\n" or said) and ahead + 1 < len(self.tokens):
                ahead += 1
            if not self.tokens[ahead].startswith("///<"):
                break
            said.append(self.tokens[ahead][4:].strip())
            self.at = ahead + 1
        return " ".join(said)

    def declare(self, text, doc):
        text, behind = plain(text), self.trailing()
        if text == ";" or text.startswith("friend ") or (SPECIAL.search(text) and not doc + behind):
            return
        if re.fullmatch(r"(class|struct|enum class) [\w:]+;", text):
            return   # declared here, described elsewhere
        if re.search(r"\w+::\w+\(", text.partition(" = ")[0]) and not doc + behind:
            return   # the definition of a member that is declared above; behind " = " it is a default value
        if doc or (self.said and (behind or called(text) != called(self.group[0][0]))):   # overloads share the words of the first
            self.flush()
            self.said = doc
        self.group.append((text, behind))

    def scope(self, level, ends):
        """Declarations up to the } that ends the scope."""
        text, doc, notes, hidden = "", [], [], False
        parentheses = 0
        while self.at < len(self.tokens):
            token = self.take()
            if token == "}" and not parentheses and ends:
                break
            if token.startswith("///") and not token.startswith("///<"):
                doc.append(token[3:].strip())
            elif token.startswith("//"):
                if not text.strip() and not token.startswith("// namespace"):
                    notes.append(token[2:].strip())
            elif token == "\n" or token.isspace():
                text += " " if text else ""
                if token == "\n" and notes and not text.strip() and not self.next_is_note():
                    if not hidden:
                        self.flush()
                        self.out += ["", " ".join(notes)]
                    notes = []
            elif token == "{" and not parentheses:
                text = self.opened(text, paragraphs(doc), level, hidden)
                doc = doc if text else []
            elif token == ";" and not parentheses:
                if not hidden:
                    self.declare(text + ";", paragraphs(doc))
                text, doc = "", []
            else:
                parentheses += {"(": 1, ")": -1}.get(token, 0)
                text += token
                if text.strip() in ("public:", "private:", "protected:"):
                    hidden, text = text.strip() != "public:", ""
        self.flush()

    def next_is_note(self):
        ahead = self.at
        while ahead < len(self.tokens) and self.tokens[ahead].isspace() and self.tokens[ahead] != "\n":
            ahead += 1
        return ahead < len(self.tokens) and re.match(r"//(?!/)", self.tokens[ahead])

    def opened(self, text, doc, level, hidden):
        """What a { begins: a namespace, a type, a function's body or an initializer. Gives the text that is still open."""
        head = plain(text)
        kind = re.match(r"(namespace|(?:template <.*> )?(?:class|struct)|enum class) ([\w:]+)(?! \w)", head)
        if kind and kind[1] == "namespace":
            if kind[2] == "medley":
                self.scope(level, True)
            else:
                self.skip_body()
            return ""
        if head.startswith("enum"):
            values = plain(self.skip_body()).rstrip(", ")
            if not hidden:
                self.declare(f"{head} {{ {values} }};", doc)
            return ""
        if kind and "(" not in head:
            if hidden or head.startswith("template <>"):   # a specialisation says nothing new
                self.skip_body()
                return ""
            self.flush()
            self.out += ["", f"{'#' * level} `{kind[2]}`", "", doc]
            if ":" in head.replace("::", "") or head.startswith("template"):
                self.out += ["", "```cpp", f"{head};", "```"]
            self.scope(level + 1, True)
            return ""
        body = self.skip_body()
        if head.endswith(")") or re.search(r"\)( const| noexcept| override|->.*)*( : .*)?$", head):
            if not hidden:
                self.declare(re.sub(r"(?<=[\w)]) : \w+[({].*$", "", head) + ";", doc)
            return ""
        return f"{text}{{{body}}}"   # an initializer: the declaration goes on to its ;


def header(name):
    text = (ROOT / "include" / "medley" / f"{name}.hpp").read_text(encoding="utf-8")
    intro = re.match(r"(?://[^\n]*\n)+", text)
    reader = Reader(text[intro.end():])
    reader.scope(3, False)
    lines = [line[2:].strip() for line in intro[0].strip().split("\n")]
    return ["", f"## `<medley/{name}.hpp>`", "", " ".join(lines), *reader.out]


def sdk():
    for path in sorted((ROOT / "include" / "medley" / "sdk").glob("*.hpp")):
        lines = re.match(r"(?://[^\n]*\n)+", path.read_text(encoding="utf-8"))[0]
        yield f"| `<medley/sdk/{path.name}>` | {' '.join(line[2:].strip() for line in lines.strip().split(chr(10)))} |"


def unfenced(lines):
    """The same lines with each block of code as one, so that only text is escaped."""
    block = []
    for line in lines:
        if line == "```" and block:
            yield "\n".join([*block, line])
            block = []
        elif block or line.startswith("```"):
            block.append(line)
        else:
            yield line


def page():
    out = ["# C++ interface", "", "<!-- generated by tests/docs/reference.py; do not edit -->", "",
           "From the declarations and comments of `include/medley`, in namespace `medley`. `#include <medley/medley.hpp>` includes what a program needs;",
           "`examples/hello.cpp` is a whole program. [Guarantees](guarantees.md) has the rules behind it."]
    for name in HEADERS:
        out += header(name)
    out += ["", "## `<medley/sdk/…>`", "", "For plugins of backends only ([adding a backend](adding-a-backend.md)).", "", "| header | |", "|---|---|", *sdk()]
    out = [line if line.startswith(("`", "|", "#")) else re.sub(r"(?<!`)\*(?!`)", r"\\*", line) for line in unfenced(out)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n"
