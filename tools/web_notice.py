"""Writes NOTICE: the packages that the page of --html and the lab bundle, from web/package-lock.json.

The bundles themselves carry the full licence texts (web/build.mjs). Without --write it says whether NOTICE is current.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TITLE = """Ridgeline
Copyright the Ridgeline authors

Licensed under the Apache License, Version 2.0 (LICENSE).

The page of --html and the lab contain code of the packages below. Their licence texts stand in NOTICE.txt of the build
folder web/, which is installed beside the program, and in the first comment of each bundle.
"""
ECHARTS = """Apache ECharts, Copyright The Apache Software Foundation.
This product includes software developed at The Apache Software Foundation (https://www.apache.org/).
"""


def notice(lock):
    rows = []
    for place, package in sorted(lock["packages"].items()):
        if place and not package.get("dev"):
            rows.append((place.rsplit("node_modules/", 1)[1], package["version"], package["license"]))
    lines = ["  " + " ".join(row[:2]).ljust(36) + row[2] for row in rows]
    return TITLE + "\n" + "\n".join(lines) + "\n\n" + ECHARTS


def main():
    text = notice(json.loads((ROOT / "web/package-lock.json").read_text()))
    if sys.argv[1:] == ["--write"]:
        (ROOT / "NOTICE").write_text(text)
        return 0
    if (ROOT / "NOTICE").read_text() == text:
        return 0
    print("NOTICE is not what web/package-lock.json says: python3 tools/web_notice.py --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
