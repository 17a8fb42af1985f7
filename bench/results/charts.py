"""Charts as SVG text, without a plotting library, so that the same data always gives the same file. Used by plot.py."""
from html import escape
from math import log10

# Okabe and Ito's colours, which colour-blind readers can tell apart; readable on light and dark pages.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c8c8c"]
STYLE = ("text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:12px}.grid{stroke:#8c959f;stroke-opacity:.35}"
         ".title{font-size:15px;font-weight:600}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}")


def _text(x, y, words, anchor="start", kind="small"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def _document(width, height, title, about, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t d">'
            f'<title id="t">{escape(title)}</title><desc id="d">{escape(about)}</desc><style>{STYLE}</style>'
            f'{_text(0, 16, title, kind="title")}\n' + "\n".join(parts) + "\n</svg>\n")


def bars(title, about, groups, note, unit, mark=None):
    """Horizontal bars. `groups`: (name, [(label, value, text, colour, (low, high) or None)]). mark: a value with a line of its own."""
    left, width, row = 185, 760, 20
    most = max(value if not whisker else whisker[1] for _, rows in groups for _, value, _, _, whisker in rows)
    scale = (width - left - 190) / most
    parts, y = [], 34
    for name, rows in groups:
        if name:
            parts.append(_text(0, y + 14, name, kind="label"))
            y += 22
        for label, value, text, colour, whisker in rows:
            parts.append(_text(left - 8, y + 14, label, "end"))
            parts.append(f'<rect x="{left}" y="{y + 3}" width="{value * scale:.1f}" height="14" fill="{COLOURS[colour]}"/>')
            end = value * scale
            if whisker:
                low, high = (left + each * scale for each in whisker)
                parts.append(f'<path d="M{low:.1f} {y + 10}H{high:.1f}M{low:.1f} {y + 6}v8M{high:.1f} {y + 6}v8" class="grid" '
                             'style="stroke-opacity:.9" fill="none"/>')
                end = max(end, high - left)
            parts.append(_text(left + end + 6, y + 14, text))
            y += row
        y += 8
    if mark:
        parts.append(f'<path d="M{left + mark * scale:.1f} 32V{y}" stroke="#8c959f" stroke-dasharray="5 4" fill="none"/>')
    parts.append(_text(left, y + 14, unit))
    parts.append(_text(0, y + 34, note))
    return _document(width, y + 44, title, about, parts)


def _size(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def lines(title, about, series, note, unit, log=False, mark=None):
    """Curves over sizes in bytes. `series`: (name, [(bytes, value)]). mark: a value with a line of its own."""
    left, top, width, height = 64, 40, 560, 280
    sizes = sorted({size for _, points in series for size, _ in points})
    values = [value for _, points in series for _, value in points] + ([mark] if mark else [])
    low, high = (min(values), max(values)) if log else (0, max(values) * 1.1)
    across = lambda size: left + width * (log10(size) - log10(sizes[0])) / (log10(sizes[-1]) - log10(sizes[0]))
    if log:
        up = lambda value: top + height * (1 - (log10(value) - log10(low)) / (log10(high) - log10(low)))
        ticks = [10 ** power for power in range(-3, 8) if low <= 10 ** power <= high]
    else:
        up = lambda value: top + height * (1 - (value - low) / (high - low))
        ticks = [each * 0.5 for each in range(int(high / 0.5) + 1)]
    parts = []
    for tick in ticks:
        parts.append(f'<path d="M{left} {up(tick):.1f}H{left + width}" class="grid" fill="none"/>')
        parts.append(_text(left - 6, up(tick) + 4, f"{tick:g}", "end"))
    for size in sizes[::max(1, len(sizes) // 7)]:
        parts.append(_text(across(size), top + height + 18, _size(size), "middle"))
    if mark:
        parts.append(f'<path d="M{left} {up(mark):.1f}H{left + width}" stroke="#8c959f" stroke-dasharray="5 4" fill="none"/>')
    for number, (name, points) in enumerate(series):
        colour = COLOURS[number]
        path = "".join(f"{'M' if i == 0 else 'L'}{across(size):.1f} {up(value):.1f}" for i, (size, value) in enumerate(points))
        parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        parts += [f'<circle cx="{across(size):.1f}" cy="{up(value):.1f}" r="3" fill="{colour}"/>' for size, value in points]
        parts.append(f'<rect x="{left + width + 16}" y="{top + 22 * number}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(left + width + 34, top + 11 + 22 * number, name))
    parts.append(_text(left, top - 8, unit))
    parts.append(_text(0, top + height + 42, note))
    return _document(760, top + height + 52, title, about, parts)


def panels(title, about, groups, note, across_name, unit):
    """Curves over steps, one panel beside the other. `groups`: (name, [(label, [(step, value)])]). Later curves are thinner and lie on top, so
    that equal ones can be seen."""
    wide, gap, top, height = 220, 46, 58, 190
    values = [value for _, series in groups for _, points in series for _, value in points]
    low, high = int(min(values) * 2) / 2, (int(max(values) * 2) + 1) / 2
    parts, left = [], 34
    up = lambda value: top + height * (1 - (value - low) / (high - low))
    for name, series in groups:
        last = max(step for _, points in series for step, _ in points)
        across = lambda step, left=left, last=last: left + wide * step / last
        parts.append(_text(left, top - 14, name, kind="label"))
        for number in range(int((high - low) * 2) + 1):
            tick = low + number / 2
            parts.append(f'<path d="M{left} {up(tick):.1f}H{left + wide}" class="grid" fill="none"/>')
            parts.append(_text(left - 6, up(tick) + 4, f"{tick:g}", "end"))
        for step in (0, last // 2, last):
            parts.append(_text(across(step), top + height + 18, str(step), "middle"))
        for number, (label, points) in enumerate(series):
            path = "".join(f"{'M' if i == 0 else 'L'}{across(step):.1f} {up(value):.1f}" for i, (step, value) in enumerate(points))
            parts.append(f'<path d="{path}" stroke="{COLOURS[number]}" stroke-width="{5 - 1.5 * number:g}" fill="none"/>')
            parts.append(f'<rect x="{left + wide - 92}" y="{top + 6 + 20 * number}" width="12" height="12" fill="{COLOURS[number]}"/>')
            parts.append(_text(left + wide - 76, top + 16 + 20 * number, label))
        left += wide + gap
    parts.append(_text(0, top - 34 + 8, unit))
    parts.append(_text(34, top + height + 36, across_name))
    parts.append(_text(0, top + height + 58, note))
    return _document(left - gap + 10, top + height + 68, title, about, parts)
