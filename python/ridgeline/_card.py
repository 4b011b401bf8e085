"""An answer as a notebook shows it: a verdict, two bars and the longest kernels, in a few kilobytes."""
import html

from ._values import gib, seconds

_COLOURS = ("#0072b2", "#009e73", "#d99a00", "#b0619a", "#d55e00", "#56b4e9", "#8b95a1")  # after Okabe and Ito
_KERNELS = 5


def _bar(parts, shown):
    """Shares of a whole as one bar with its legend; parts under one percent are left out."""
    whole = sum(value for _, value in parts) or 1.0
    parts = [(name.replace("_", " "), value) for name, value in sorted(parts, key=lambda part: -part[1]) if value > 0.01 * whole]
    cells = "".join(f'<div style="width:{100 * value / whole:.1f}%;background:{_COLOURS[i % len(_COLOURS)]}"></div>'
                    for i, (_, value) in enumerate(parts))
    legend = " · ".join(f'<span style="color:{_COLOURS[i % len(_COLOURS)]}">■</span> {html.escape(name)} {shown(value)}'
                        for i, (name, value) in enumerate(parts))
    return f'<div style="display:flex;height:12px;max-width:640px">{cells}</div><div>{legend}</div>'


def card(title, answer):
    step, memory = answer["step"], answer["memory"]
    lines = [f'<div style="font-family:sans-serif;font-size:13px;line-height:1.5"><b>{html.escape(title)}</b>']
    fits = memory.get("fits", True)
    time = f'{seconds(step["time_s"])} ({seconds(step["low_s"])} to {seconds(step["high_s"])}), {step["tokens_per_s"]:,.0f} tokens/s'
    if "device_used_bytes" in memory:
        word = "Fits" if fits else "Does not fit"
        lines.append(f'<div><b>{word}</b>: {gib(memory["device_used_bytes"])} of {gib(memory["capacity_bytes"])}</div>')
    lines.append(f'<div>{"" if fits else "With memory enough: "}{time}</div>')
    if answer.get("memory", {}).get("breakdown"):
        lines.append("<div>Memory at the peak</div>" + _bar(list(memory["breakdown"].items()), gib))
    if answer.get("limited_by"):
        lines.append("<div>Time by limit</div>" + _bar(list(answer["limited_by"].items()), seconds))
    rows = "".join(f'<tr><td style="text-align:right">{seconds(kernel["time_s"])}</td><td style="text-align:right">{kernel["count"]}</td>'
                   f'<td style="text-align:left">{html.escape(kernel["name"][:60])}</td>'
                   f'<td style="text-align:left">{html.escape(kernel["limiter"])}</td></tr>'
                   for kernel in sorted(answer.get("kernels", []), key=lambda kernel: -kernel["time_s"])[:_KERNELS])
    if rows:
        lines.append(f"<table><tr><th>time</th><th>count</th><th>longest kernels</th><th>limited by</th></tr>{rows}</table>")
    lines.append("<div>print(answer) has all tables, answer.show() the page with pictures.</div></div>")
    return "".join(lines)
