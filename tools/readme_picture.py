#!/usr/bin/env python3
"""Draws the picture of README.md: memory over one training step, and the roofline of its kernels.

usage: tools/readme_picture.py [--check] [PROGRAM]
Writes docs/images/step-light.svg and step-dark.svg; with --check says whether they are current. PROGRAM: build/ridgeline.
"""
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIO, HARDWARE = "scenarios/gpt2-ladder-h200/4-flash-attention.yaml", "nvidia-h200-sxm-141gb"
THEMES = {
    "light": dict(ground="#ffffff", ink="#16202c", soft="#5b6775", grid="#e2e6eb", blue="#0072b2", sky="#56b4e9",
                  purple="#b0619a", green="#009e73", yellow="#d99a00", orange="#d55e00"),
    "dark": dict(ground="#0f141a", ink="#e6ebf0", soft="#97a3b0", grid="#232c36", blue="#4aa8e8", sky="#8fd0f5",
                 purple="#d48ac0", green="#3cc79c", yellow="#f0c24b", orange="#f58549"),
}
CATEGORIES = [("weights", "blue"), ("optimizer_state", "purple"), ("gradients", "sky"), ("activations", "green"),
              ("temporaries", "yellow"), ("workspaces", "orange")]
WIDTH, HEIGHT, TOP, BOTTOM = 860, 330, 58, 282
MEMORY, ROOF = (52, 410), (486, 838)  # left and right edge of either chart
INTENSITY, RATE = (-1.0, 4.0), (-1.0, 3.2)  # powers of ten: FLOP/B, TFLOP/s


def asked(program, *words):
    run = subprocess.run([program, *words, "--format", "json"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"readme_picture: {' '.join(words)}: {run.stderr}")
    return json.loads(run.stdout)


def text(x, y, words, colour, anchor="start", size=12, weight="normal"):
    return (f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
            f"{words}</text>")


def memory_map(answer, theme):
    moments = answer["memory_report"]["timeline"]
    left, right = MEMORY
    highest = math.ceil(max(m["allocated_bytes"] for m in moments) / 2**30 / 4) * 4
    up = lambda gib: BOTTOM - gib / highest * (BOTTOM - TOP)
    across = lambda i: left + (right - left) * i / len(moments)
    out = []
    for gib in range(0, highest + 1, 4):
        out.append(f'<path d="M{left} {up(gib):.0f}H{right}" stroke="{theme["grid"]}"/>')
        out.append(text(left - 6, round(up(gib)) + 4, gib, theme["soft"], "end"))
    below = [0.0] * len(moments)
    for name, colour in CATEGORIES:
        above = [low + m[name] / 2**30 for low, m in zip(below, moments)]
        path = "".join(f"L{across(i):.0f} {up(v):.0f}L{across(i + 1):.0f} {up(v):.0f}" for i, v in enumerate(above))
        back = "".join(f"L{across(i + 1):.0f} {up(v):.0f}L{across(i):.0f} {up(v):.0f}"
                       for i, v in reversed(list(enumerate(below))))
        out.append(f'<path d="M{path[1:]}{back}Z" fill="{theme[colour]}"/>')
        below = above
    phases = [m["phase"] for m in moments]
    for phase in ("forward", "backward"):
        middle = (across(phases.index(phase)) + across(len(phases) - phases[::-1].index(phase))) / 2
        out.append(text(round(middle), BOTTOM + 17, phase, theme["soft"], "middle"))
    out.append(text(right, BOTTOM + 17, "step", theme["soft"], "end"))
    for i, (name, colour) in enumerate(CATEGORIES[:5]):
        x, y = right - 118, TOP + 10 + 16 * i
        out.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{theme[colour]}"/>')
        out.append(text(x + 16, y, name.replace("_", " "), theme["ink"]))
    used, there = (answer["memory"][key] / 2**30 for key in ("device_used_bytes", "capacity_bytes"))
    title = f"Memory: {used:.1f} of {there:.0f} GiB, allocated over the step"
    return [text(left, TOP - 24, title, theme["ink"], size=14, weight="bold"), text(left, TOP - 8, "GiB", theme["soft"])] + out


def roofline(answer, sheet, theme):
    left, right = ROOF
    number = lambda row, scale: float(row["value"]) * scale[row["unit"]]
    peak = number(sheet["derived"]["peak.tensor_bf16"], {"TFLOP/s": 1.0})
    plain = number(sheet["derived"]["peak.fp32"], {"TFLOP/s": 1.0})
    bandwidth = number(sheet["values"]["dram.bandwidth"], {"TB/s": 1.0, "GB/s": 1e-3})
    x = lambda power: left + (right - left) * (power - INTENSITY[0]) / (INTENSITY[1] - INTENSITY[0])
    y = lambda power: BOTTOM - (BOTTOM - TOP) * (power - RATE[0]) / (RATE[1] - RATE[0])
    out = []
    for power in range(int(INTENSITY[0]), int(INTENSITY[1]) + 1):
        out.append(f'<path d="M{x(power):.0f} {TOP}V{BOTTOM}" stroke="{theme["grid"]}"/>')
        out.append(text(round(x(power)), BOTTOM + 17, f"{10.0**power:g}", theme["soft"], "middle"))
    for power in range(int(RATE[0]), int(RATE[1]) + 1):
        out.append(f'<path d="M{left} {y(power):.0f}H{right}" stroke="{theme["grid"]}"/>')
        out.append(text(left - 6, round(y(power)) + 4, f"{10.0**power:g}", theme["soft"], "end"))
    step = answer["step"]["gpu_busy_s"]
    for kernel in sorted(answer["kernels"], key=lambda kernel: -kernel["time_s"]):
        share = kernel["time_s"] / step
        if not kernel["flops"] or not kernel["dram_bytes"] or share < 0.001:
            continue
        at = math.log10(kernel["flops"] / kernel["dram_bytes"])
        rate = math.log10(kernel["flops"] / kernel["time_s"] / 1e12)
        if not (INTENSITY[0] <= at <= INTENSITY[1] and RATE[0] <= rate <= RATE[1]):
            continue
        colour = theme["blue" if kernel["tensor_cores"] else "orange"]
        out.append(f'<circle cx="{x(at):.0f}" cy="{y(rate):.0f}" r="{max(2, round(28 * math.sqrt(share)))}" '
                   f'fill="{colour}" fill-opacity=".55"/>')
    for top, words in ((peak, "tensor cores, bf16"), (plain, "fp32")):
        ridge = math.log10(top / bandwidth)
        out.append(f'<path d="M{x(ridge):.0f} {y(math.log10(top)):.0f}H{right}" stroke="{theme["ink"]}" fill="none"/>')
        below = 14 if top == plain else -5
        out.append(text(right, round(y(math.log10(top))) + below, f"{top:.0f} TFLOP/s {words}", theme["soft"], "end", 11))
    foot = math.log10(bandwidth) + INTENSITY[0]
    out.append(f'<path d="M{left} {y(foot):.0f}L{x(math.log10(peak / bandwidth)):.0f} {y(math.log10(peak)):.0f}" '
               f'stroke="{theme["ink"]}" fill="none"/>')
    out.append(text(round(x(0.2)) - 8, round(y(math.log10(bandwidth) + 0.2)), f"DRAM {bandwidth:.1f} TB/s", theme["soft"], "end", 11))
    title = f"Roofline: {answer['step']['time_s'] * 1e3:.0f} ms, area is time"
    return [text(left, TOP - 24, title, theme["ink"], size=14, weight="bold"),
            text(left, TOP - 8, "TFLOP/s over FLOP/B; tensor cores blue, other kernels orange", theme["soft"])] + out


def drawn(answer, sheet, theme):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img" '
             'aria-label="Memory over one training step, and the roofline of its kernels">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{theme["ground"]}"/>',
             *memory_map(answer, theme), *roofline(answer, sheet, theme),
             text(MEMORY[0], HEIGHT - 12, "GPT-2 124M on an NVIDIA H200, 16 x 1024 tokens, predicted without a GPU", theme["soft"]),
             "</svg>"]
    return "\n".join(lines) + "\n"


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    program = str(pathlib.Path(words[0] if words else ROOT / "build/ridgeline").resolve())
    answer = asked(program, "predict", SCENARIO, "--memory-report", "--no-advice")
    sheet = asked(program, "hardware", HARDWARE)
    for name, theme in THEMES.items():
        file, picture = ROOT / f"docs/images/step-{name}.svg", drawn(answer, sheet, theme)
        if "--check" not in sys.argv:
            file.write_text(picture)
        elif file.read_text() != picture:
            sys.exit(f"{file.relative_to(ROOT)} is not what the program predicts: python3 tools/readme_picture.py")


if __name__ == "__main__":
    main()
