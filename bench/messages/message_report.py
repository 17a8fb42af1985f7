"""What a comparison of messages leaves behind: a JSON file and a Markdown page. Used by bench/messages/compare."""
import json
import random
from datetime import datetime, timezone
from statistics import median

import ratios
import report


def difference(cell, rival, count=1000):
    """(µs that Medley takes longer than `rival`, low, high): the median over repetitions and its 95 % interval."""
    more = [row["medley"] - row[rival] for row in cell.repetitions]
    draw = random.Random(len(more))
    drawn = [median(draw.choices(more, k=len(more))) for _ in range(count)]
    return median(more), ratios.quantile(drawn, 0.025), ratios.quantile(drawn, 0.975)


def summary(comparison):
    rows = []
    for (medley, op, size), cell in comparison.cells.items():
        low, high = cell.interval()
        more, more_low, more_high = difference(cell, cell.better())
        rows.append({"medley": medley, "op": op, "bytes": size, **{f"{name}_us": us for name, us in cell.medians().items()},
                     "better": cell.better(), "ratio": cell.ratio(), "low": low, "high": high,
                     "more_us": more, "more_low": more_low, "more_high": more_high, "repetitions": cell.repetitions})
    return {"hosts": 2 if comparison.options.hosts else 1, "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": report.machine(), "gauge_us": comparison.readings, "discarded": comparison.discarded,
            "unsettled": comparison.unsettled, "candidates": {one.name: one.about for one in comparison.everyone}, "rows": rows}


def what(row):
    if row["op"] == "ping_pong":
        return f"ping-pong, {report.spelled(row['bytes'])}"
    return f"{row['op'].split('_')[1]} × {row['bytes']} B both ways"


def markdown(result):
    host, gauge = result["machine"], sorted(result["gauge_us"])
    lines = [f"### Messages of 2 ranks on {result['hosts']} host{'s' if result['hosts'] > 1 else ''}, {host['processor']}, {host['cores']} cores",
             "", f"{result['date']}, kernel {host['kernel']}. Medians over {len(gauge)} alternating repetitions: µs one way of a ping-pong, or of a "
             "window of async messages with tags. The ratio is the faster library's time over Medley's, the difference Medley's less the "
             "library's; both are formed within each repetition. 95 % intervals by bootstrap.", ""]
    lines += [f"- {name}: {about.get('version')}; `{about['command']}`" for name, about in result["candidates"].items()]
    lines += ["", f"A bare flag exchange between two cores beside them: {gauge[0]:.2f} to {gauge[-1]:.2f} µs, median {median(gauge):.2f}. "
              f"{result['discarded']} repetitions were made again because it changed or other programs took the cores; "
              f"{result['unsettled']} were kept although they did."]
    for name in dict.fromkeys(row["medley"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["medley"] == name]
        rivals = [rival for rival in result["candidates"] if f"{rival}_us" in rows[0]]
        lines += ["", f"| {name} | Medley µs | " + " | ".join(f"{rival} µs" for rival in rivals) + " | ratio | interval | difference µs | interval |",
                  "|---|--:|" + "--:|" * len(rivals) + "--:|--:|--:|--:|"]
        for row in rows:
            times = " | ".join(report.time_spelled(row[f"{column}_us"]) for column in ["medley", *rivals])
            lines.append(f"| {what(row)} | {times} | {row['ratio']:.2f}× | {report.interval_spelled(row)} | {row['more_us']:+.2f} | "
                         f"{row['more_low']:+.2f} to {row['more_high']:+.2f} |")
    return "\n".join(lines) + "\n"


def write(result, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(result), encoding="utf-8")
