"""`ridgeline serve` as strangers meet it, all at once: a thousand connections of which some drip, bodies of 100 MB, broken
HTTP, broken frames. Meanwhile and afterwards it answers others, never holds more than 1 GiB, and opens nothing outside its
folders. strangers.py RIDGELINE [--strace]"""
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

CONNECTIONS = 1000
BODY = 100_000_000
MOST_BYTES = 1 << 30
MOST_SECONDS = 5  # for an answer to somebody else meanwhile
SCENARIO = json.dumps({"hardware": "nvidia-t4", "model": "bert-base", "training": {"micro_batch": 1, "sequence_length": 64, "precision": "fp32"}})


def begin(program, *before):
    server = subprocess.Popen([*before, program, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    return server, int(address.rstrip("/").rsplit(":", 1)[1])


def connect(port):
    one = socket.create_connection(("127.0.0.1", port), timeout=20)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def received(one, most=1 << 16):
    text = b""
    try:
        while len(text) < most:
            piece = one.recv(4096)
            if not piece:
                break
            text += piece
    except OSError:
        pass
    return text


def asked(port, target="/api/predict", body=SCENARIO, tries=60):
    """An answer as anybody wants it; who is told that all places are taken comes again."""
    begin_time = time.time()
    for _ in range(tries):
        try:
            with connect(port) as one:
                one.sendall(f"POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                text = received(one, 1 << 20)
        except OSError:
            text = b""
        if text.startswith(b"HTTP/1.1 200"):
            return time.time() - begin_time
        assert not text or text.startswith(b"HTTP/1.1 503"), text[:200]
        time.sleep(0.1)
    raise AssertionError("others are not answered any more")


def thousand(port):
    """Opens them all, lets a third drip and the rest say nothing; returns how many were refused or let in."""
    held, said = [], 0
    for i in range(CONNECTIONS):
        one = connect(port)
        if i % 3 == 0:
            one.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        held.append(one)
    for _ in range(5):  # slow-loris: a letter now and then
        for one in held[::3]:
            try:
                one.sendall(b"a")
            except OSError:
                pass
        time.sleep(0.05)
    for one in held:
        one.settimeout(0.01)
        try:
            said += one.recv(64).startswith(b"HTTP/1.1 503")
        except OSError:
            pass
    return held, said


def large_body(port, chunked):
    """Sends 100 MB, or as much as is taken; the answer says that it is too large, or that chunks are not read."""
    head = "POST /api/predict HTTP/1.1\r\nHost: localhost\r\n" + ("Transfer-Encoding: chunked\r\n\r\n" if chunked else f"Content-Length: {BODY}\r\n\r\n")
    piece = b" " * (1 << 16)
    if chunked:
        piece = b"%x\r\n%s\r\n" % (len(piece), piece)
    with connect(port) as one:
        sent = 0
        try:
            one.sendall(head.encode())
            while sent < BODY:
                one.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        text = received(one)
    assert not text or text.startswith(b"HTTP/1.1 411" if chunked else b"HTTP/1.1 413") or text.startswith(b"HTTP/1.1 503"), text[:200]
    return bool(text)


UPGRADE = b"GET /api/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"


def broken(port, seed, count):
    """Random bytes, random changes of requests, random frames."""
    chance = random.Random(seed)
    seeds = [b"GET /api/hosts HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /api/fit HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", UPGRADE]
    for i in range(count):
        text = bytearray(chance.choice(seeds))
        if i % 4 == 0:
            text = bytearray(UPGRADE) + bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))
        elif i % 4 == 1:
            text = bytearray(chance.randrange(256) for _ in range(chance.randrange(1, 400)))
        else:
            for _ in range(chance.randrange(1, 8)):
                text[chance.randrange(len(text))] = chance.randrange(256)
        try:
            with connect(port) as one:
                one.sendall(text)
                one.settimeout(0.02)
                one.recv(256)
        except OSError:
            pass


def most_held(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def opened(program):
    """Files that a served question opens, by strace: none outside of what is shipped, the system's libraries and /proc."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        server, port = begin(program, "strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-e", "signal=none", "-o", log)
        secret = os.path.join(folder, "secret.yaml")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("title: x\n")
        asked(port)
        before = os.path.getsize(log)
        for name in (secret, "/etc/passwd", "../../../../etc/passwd", "/proc/self/environ", "file:///etc/passwd"):
            for key in ("hardware", "model", "cluster", "software", "host"):
                body = json.dumps({**json.loads(SCENARIO), key: name})
                with connect(port) as one:
                    one.sendall(f"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                    assert b" 400 " in received(one)[:40]
            with connect(port) as one:
                one.sendall(f"GET /api/memory?file={name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                assert b" 400 " in received(one)[:40]
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="utf-8") as children:
            os.kill(int(children.read().split()[0]), 15)
        server.wait(20)
        with open(log, encoding="utf-8", errors="replace") as file:
            file.seek(before)
            paths = [line.split('"')[1] for line in file if '"' in line]
        outside = [path for path in paths if path.startswith("/etc/passwd") or path.startswith(folder) or path.startswith("/proc/self/environ") or ".." in path]
        assert not outside, outside
        return len(paths)


def main():
    program = sys.argv[1]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CONNECTIONS + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        print("too few descriptors: strangers do not come")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    server, port = begin(program)
    try:
        alone = asked(port)
        crowd, refused = thousand(port)
        assert refused > CONNECTIONS // 2, f"{refused} of {CONNECTIONS} were refused"
        others = [threading.Thread(target=large_body, args=(port, i % 2 == 1)) for i in range(4)]
        others += [threading.Thread(target=broken, args=(port, i, 150)) for i in range(4)]
        beside = [asked(port, tries=1) for _ in range(5)]  # all places are taken by those who say nothing
        for thread in others:
            thread.start()
        meanwhile = [asked(port) for _ in range(8)]
        for thread in others:
            thread.join()
        for one in crowd:
            one.close()
        assert large_body(port, False) and large_body(port, True), "a body of 100 MB is told to be too large"
        afterwards = asked(port)
        held = most_held(server.pid)
        print(f"alone {alone:.2f} s, beside a thousand who say nothing {max(beside):.2f} s, meanwhile {max(meanwhile):.2f} s at most, afterwards {afterwards:.2f} s; {refused} of {CONNECTIONS} refused; at most {held / 2**20:.0f} MiB")
        assert max(beside) < MOST_SECONDS and max(meanwhile) < MOST_SECONDS and afterwards < MOST_SECONDS
        assert held < MOST_BYTES, f"{held} bytes"
        assert server.poll() is None
    finally:
        server.terminate()
        assert server.wait(20) == 0, "SIGTERM ends the server as asked"
    if shutil.which("strace") and "--strace" in sys.argv:
        print(f"{opened(program)} files opened, none outside")


main()
