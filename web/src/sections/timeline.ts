// One step of a trace: what each rank sent when, and when its program did nothing but wait for it.
import { axis, figure, tip, type Figure } from "../charts/chart";
import type { Bar, Trace } from "../data";
import { choice, h, table } from "../dom";
import * as format from "../format";
import { backendColour, inkOn } from "../palette";
import { swatch } from "./backends";
import type { Section } from "./section";

interface Api {
  value(dimension: number): number;
  coord(point: [number, number]): [number, number];
  size(point: [number, number]): [number, number];
}
interface Params {
  coordSys: { x: number; y: number; width: number; height: number };
  dataIndex: number;
}

/** [start, end, row, sublane, sublanes of the row, index of the bar] */
type Drawn = [number, number, number, number, number, number];

function clipped(params: Params, x: number, y: number, width: number, height: number): object | null {
  const left = Math.max(x, params.coordSys.x),
    right = Math.min(x + width, params.coordSys.x + params.coordSys.width);
  return right < left ? null : { x: left, y, width: Math.max(right - left, 1), height };
}

function stepFigure(current: () => Trace): Figure {
  let bars: { rank: number; bar: Bar }[] = [];
  return figure({
    canvas: true,
    label: () => {
      const trace = current();
      return `Timeline of one step of ${trace.file}: ${trace.timeline!.ranks.length} ranks, ${format.time(trace.timeline!.step_us)}`;
    },
    height: () => 96 + 46 * current().timeline!.ranks.length,
    option: (colours) => {
      const timeline = current().timeline!;
      bars = [];
      const drawn: Drawn[] = [];
      timeline.ranks.forEach((rank, row) => {
        for (const bar of rank.bars) {
          drawn.push([bar[0], bar[1], row, bar[2], Math.max(1, rank.lanes), bars.length]);
          bars.push({ rank: rank.rank, bar });
        }
      });
      const name = (index: number) => timeline.names[index] ?? "";
      const box = (params: Params, api: Api) => {
        const [x1, middle] = api.coord([api.value(0), api.value(2)]);
        const [x2] = api.coord([api.value(1), api.value(2)]);
        const height = api.size([0, 1])[1] * 0.72,
          lane = (height * 0.8) / api.value(4);
        const y = middle - height / 2 + api.value(3) * lane;
        const { bar } = bars[api.value(5)]!;
        const colour = backendColour(name(bar[4]));
        const shape = clipped(params, x1, y, x2 - x1, Math.max(2, lane - 1));
        if (!shape) return null;
        const children: object[] = [{ type: "rect", shape, style: { fill: colour } }];
        const wide = (shape as { width: number }).width;
        if (wide > 70 && lane > 12) {
          children.push({
            type: "text",
            style: {
              text: name(bar[3]),
              x: (shape as { x: number }).x + 4,
              y: y + lane / 2,
              verticalAlign: "middle",
              fill: /^#/.test(colour) ? inkOn(colour) : colours.surface,
              fontSize: 11,
              width: wide - 8,
              overflow: "truncate",
            },
            silent: true,
          });
        }
        if (bar[7] > 0) {
          // The wait for an operation ends with its completion.
          const [from] = api.coord([Math.max(bar[0], bar[1] - bar[7]), api.value(2)]);
          const strip = clipped(params, from, middle + height / 2 - height * 0.14, x2 - from, height * 0.14);
          if (strip) children.push({ type: "rect", shape: strip, style: { fill: colours.warn }, silent: true });
        }
        return { type: "group", children };
      };
      return {
        grid: { left: 8, right: 44, top: 12, bottom: 56, containLabel: true },
        tooltip: {
          formatter: (p: { value: Drawn }) => {
            const { rank, bar } = bars[p.value[5]]!;
            return tip(`rank ${rank}: ${name(bar[3])}`, [
              ["backend", name(bar[4])],
              ["from", format.time(bar[0])],
              ["duration", format.time(bar[1] - bar[0])],
              ["exposed", format.time(bar[7])],
              ["operations", format.count(bar[5])],
              ["bytes", format.bytes(bar[6])],
            ]);
          },
        },
        xAxis: axis(colours, "", {
          type: "value",
          min: 0,
          max: timeline.step_us,
          axisLabel: {
            color: colours.muted,
            formatter: (v: number) => format.short(format.time(v)),
            hideOverlap: true,
          },
        }),
        yAxis: axis(colours, "", {
          type: "category",
          inverse: true,
          data: timeline.ranks.map((rank) => `rank ${rank.rank}`),
          splitLine: { show: false },
          axisLabel: { color: colours.text },
        }),
        dataZoom: [
          { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl" },
          {
            type: "slider",
            filterMode: "weakFilter",
            height: 18,
            bottom: 8,
            borderColor: colours.line,
            textStyle: { color: colours.muted },
            labelFormatter: (v: number) => format.time(v),
          },
        ],
        series: [{ type: "custom", renderItem: box, encode: { x: [0, 1], y: 2 }, data: drawn }],
      };
    },
    table: () => {
      const trace = current();
      return {
        head: ["operation", "group", "size", "count", "phase", "module", "backend", "median", "total", "exposed"],
        rows: trace.rows.map((row) => [
          row.op,
          `${row.group} (${row.group_size || "?"})`,
          row.bytes === null ? "?" : format.bytes(row.bytes),
          row.count,
          row.phase || "–",
          row.module || "–",
          row.backend || "–",
          row.median_us === undefined ? "–" : format.time(row.median_us),
          row.total_us === undefined ? "–" : format.time(row.total_us),
          row.exposed_us === undefined ? "–" : format.time(row.exposed_us),
        ]),
      };
    },
  });
}

/** Zoom and move without a mouse. */
function zoomButtons(plot: Figure): HTMLElement {
  const move = (change: (start: number, end: number) => [number, number]) => {
    const chart = plot.chart();
    if (!chart) return;
    const zoom = (chart.getOption() as { dataZoom: { start: number; end: number }[] }).dataZoom[0]!;
    let [start, end] = change(zoom.start, zoom.end);
    start = Math.max(0, start);
    end = Math.min(100, Math.max(end, start + 0.01));
    chart.dispatchAction({ type: "dataZoom", start, end });
  };
  const button = (text: string, label: string, change: (start: number, end: number) => [number, number]) =>
    h(
      "button",
      { type: "button", class: "quiet", "aria-label": label, title: label, onclick: () => move(change) },
      text,
    );
  return h(
    "div",
    { class: "buttons", role: "group", "aria-label": "Zoom of the timeline" },
    button("+", "Zoom in", (a, b) => [a + (b - a) / 4, b - (b - a) / 4]),
    button("−", "Zoom out", (a, b) => [a - (b - a) / 2, b + (b - a) / 2]),
    button("←", "Earlier", (a, b) => (a <= 0 ? [a, b] : [a - (b - a) / 2, b - (b - a) / 2])),
    button("→", "Later", (a, b) => (b >= 100 ? [a, b] : [a + (b - a) / 2, b + (b - a) / 2])),
    button("Whole step", "Whole step", () => [0, 100]),
  );
}

/** The largest share of the step drawn in which a rank waits; null where the source does not say when a program waited. */
function waiting({ timeline }: Trace): number | null {
  if (!timeline?.waits_known || timeline.step_us <= 0) return null;
  return Math.min(1, Math.max(...timeline.ranks.map((rank) => rank.exposed_us)) / timeline.step_us);
}

function notes(trace: Trace): Node[] {
  const timeline = trace.timeline!;
  const out: Node[] = [];
  const about = [
    `${format.count(trace.operations)} operations of ${trace.ranks_traced} of ${trace.world} ranks (${trace.format}); ${trace.steps} step${trace.steps === 1 ? "" : "s"}, median ${format.time(trace.step_us)}.`,
  ];
  const share = waiting(trace);
  if (share !== null)
    about.push(
      `In the step drawn, ranks wait up to ${format.percent(share)} of ${format.time(timeline.step_us)} for communication.`,
    );
  if (timeline.merged) about.push("Neighbouring operations are drawn as one bar.");
  if (timeline.ranks_left_out > 0) about.push(`${timeline.ranks_left_out} more ranks are not drawn.`);
  out.push(h("p", {}, about.join(" ")));
  for (const problem of trace.problems) out.push(h("p", { class: "alert" }, problem.sentence));
  if (trace.skew.length > 0) {
    const folded = h("details", {}, h("summary", {}, "How far apart the ranks arrive"));
    folded.append(
      table(
        {
          head: ["group", "operation", "collectives", "median", "99th percentile", "last most often"],
          rows: trace.skew.map((s) => [
            s.group,
            s.op,
            format.count(s.collectives),
            format.time(s.median_us),
            format.time(s.p99_us),
            `rank ${s.last_rank} (${format.percent(s.last_share)})`,
          ]),
        },
        "Skew",
      ),
    );
    out.push(folded);
  }
  return out;
}

export const timeline: Section = {
  id: "timeline",
  title: "One step in time",
  lead: "Operations of each rank in one step, coloured by backend. The strip below a rank's bars is exposed communication: its program did nothing but wait.",
  render(run) {
    const traces = run.traces.filter((trace) => trace.timeline && trace.timeline.ranks.length > 0);
    if (traces.length === 0) return null;
    traces.sort((a, b) => (waiting(b) ?? 0) - (waiting(a) ?? 0));
    let trace = traces[0]!;
    const plot = stepFigure(() => trace);
    const about = h("div", {}, ...notes(trace));
    const key = h("div", { class: "key" });
    const showKey = () => {
      const used = new Set(
        trace.timeline!.ranks.flatMap((rank) => rank.bars.map((bar) => trace.timeline!.names[bar[4]] ?? "")),
      );
      key.replaceChildren(
        ...[...used].filter(Boolean).sort().map(swatch),
        h("span", { class: "backend" }, h("span", { class: "swatch exposed", "aria-hidden": "true" }), "exposed"),
      );
    };
    showKey();
    const pick = choice(
      "Trace",
      traces.map((t) => t.file),
      (index) => {
        trace = traces[index]!;
        plot.update();
        about.replaceChildren(...notes(trace));
        showKey();
      },
    );
    return [h("div", { class: "controls" }, pick, key, zoomButtons(plot)), plot.element, about];
  },
};
