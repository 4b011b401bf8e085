#!/usr/bin/env python3
"""Checks that no file has more than 400 lines and no function more than 80.

A function begins with the line of its name and ends with its closing brace; lambdas and tables inside one count to it."""
import ast
import pathlib
import re
import sys

MOST_LINES, MOST_OF_A_FUNCTION = 400, 80
FOLDERS = ("bench", "fit", "include", "python", "sim", "tests", "tools", "web/src")
SOURCES = {".cpp", ".h", ".cu", ".cuh", ".py", ".js"}
# The end of what stands before a body, and what is no function though it has parentheses.
FUNCTION = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|->[^;{}]*|requires[^;{}]*|:[^;{}]*|\s)*$")
NO_FUNCTION = re.compile(r"(?:template\s*<.*?>\s*)?(?:requires\b.*?\s)?(?:struct|class|enum|union|namespace|extern)\b", re.S)


def without_text(source):
    """C++ without comments, strings and characters, its lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
    return pattern.sub(lambda match: '""' + "\n" * match.group(0).count("\n"), source)


def functions_of_cpp(source):
    """(name's line, lines) of every function body that stands in no other."""
    text = without_text(source)
    open_braces, line, begin = [], 1, 0
    for place in re.finditer(r"[;{}\n]", text):
        at = place.start()
        match place.group(0):
            case "\n":
                line += 1
                continue
            case "{":
                head = re.sub(r'^\s*(?:#.*\n\s*)*', "", text[begin:at])
                is_function = bool(FUNCTION.search(head)) and not NO_FUNCTION.match(head)
                open_braces.append((is_function, line - head.rstrip().count("\n") if head.strip() else line))
            case "}" if open_braces:
                is_function, first = open_braces.pop()
                if is_function and not any(inside for inside, _ in open_braces):
                    yield first, line - first + 1
        begin = at + 1


def functions_of_python(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
errors, files, functions = [], 0, 0
for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SOURCES):
    if "node_modules" in path.parts:
        continue
    source, name = path.read_text(), path.relative_to(root)
    files += 1
    if (lines := source.count("\n")) > MOST_LINES:
        errors.append(f"{name}: {lines} lines; {MOST_LINES} at most")
    found = () if path.suffix == ".js" else functions_of_python(source) if path.suffix == ".py" else functions_of_cpp(source)
    for first, length in found:
        functions += 1
        if length > MOST_OF_A_FUNCTION:
            errors.append(f"{name}:{first}: a function of {length} lines; {MOST_OF_A_FUNCTION} at most")
print("\n".join(errors) if errors else f"{functions} functions in {files} files are short enough")
sys.exit(1 if errors or functions < 1000 else 0)
