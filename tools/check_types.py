#!/usr/bin/env python3
"""Checks that no two headers or sources of sim/ give different types one full name.

Two libraries with a type of the same name each compile and link, and the program then runs the destructor of one on
objects of the other. Types of unnamed namespaces are their file's own; branches of an #if in one file may differ."""
import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
places = collections.defaultdict(dict)
for path in sorted((root / "sim").rglob("*.[hc]*")):
    namespaces = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if opened := re.match(r"namespace(?: ([\w:]+))? \{$", text):
            namespaces.append(opened.group(1))
        elif re.match(r"\}\s*// namespace", text):
            namespaces.pop()
        elif None not in namespaces and (
                defined := re.match(r"(?:struct|class|enum class) (\w+(?:::\w+)*)(?: final)?(?: :[^:].*)?\s*\{", text)):
            places["::".join([*namespaces, defined.group(1)])][path] = f"{path.relative_to(root)}:{number}"
errors = [f"{name} is defined more than once: {', '.join(at.values())}" for name, at in places.items() if len(at) > 1]
print("\n".join(errors) if errors else f"{len(places)} types have names of their own")
sys.exit(1 if errors or not places else 0)
