"""The program on a terminal: as wide as it is, coloured unless NO_COLOR says no; in a pipe as ever.

usage: terminal.py PROGRAM SOURCE
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

PROGRAM, SOURCE = sys.argv[1:]
COMMAND = [PROGRAM, "predict", "scenarios/bert-large-fp32.yaml", "--memory-report"]
ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def shown(columns, command=COMMAND, **more):
    """What a terminal of so many columns is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(command, cwd=SOURCE, stdout=theirs, env={**environment, "TERM": "xterm", **more})
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")


def widest(text):
    return max(len(line) for line in ESCAPE.sub("", text).split("\n"))


piped = subprocess.run(COMMAND, cwd=SOURCE, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"}).stdout
assert not ESCAPE.search(piped) and 80 < widest(piped) <= 100, widest(piped)
narrow, wide, plain = shown(80), shown(150), shown(100, NO_COLOR="1")
assert ESCAPE.search(narrow) and widest(narrow) <= 80, widest(narrow)
assert 100 < widest(wide) <= 150, widest(wide)
assert plain == piped, "100 columns without colours are what a pipe gets"
assert not ESCAPE.search(shown(100, TERM="dumb"))
assert ESCAPE.search(shown(100, NO_COLOR=""))
LARGEST = "fit --model gpt2 --hardware nvidia-t4 --seq 64"
for arguments in (LARGEST, "plan --help", "validate --help"):
    text = shown(80, [PROGRAM, *arguments.split()])
    assert text.strip() and widest(text) <= 80, f"{arguments}: a line of {widest(text)} columns in a terminal of 80"
print("80, 100 and 150 columns; colours, and none")
