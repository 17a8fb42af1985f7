// A figure: the chart, what it says in words for those who cannot see it, and its table behind a summary.
import { foldedTable, h, type TableData } from "../dom";
import { onThemeChange, theme, type Theme } from "../theme";
import { echarts, type ECharts, type Option } from "./echarts";

export interface Figure {
  element: HTMLElement;
  /** Draws again, after the reader chose something else. */
  update(): void;
  chart(): ECharts | undefined;
}

export interface FigureOptions {
  label: () => string;
  height: number | (() => number);
  canvas?: boolean;
  option: (theme: Theme) => Option;
  table: () => TableData;
}

export function figure(options: FigureOptions): Figure {
  const plot = h("div", { class: "plot", role: "img" });
  const folded = h("div");
  const element = h("figure", { class: "chart" }, plot, folded);
  let chart: ECharts | undefined;

  const draw = () => {
    const height = typeof options.height === "number" ? options.height : options.height();
    plot.style.height = `${height}px`;
    plot.setAttribute("aria-label", options.label());
    if (!chart) return;
    chart.resize();
    const colours = theme();
    const common = base(colours),
      own = options.option(colours);
    chart.setOption(
      { ...common, ...own, tooltip: { ...(common.tooltip as object), ...(own.tooltip as object) } },
      true,
    );
  };
  const update = () => {
    draw();
    folded.replaceChildren(foldedTable("Table", options.label(), options.table));
  };
  new ResizeObserver(() => {
    if (plot.clientWidth === 0) return;
    if (chart) return chart.resize();
    chart = echarts.init(plot, null, { renderer: options.canvas ? "canvas" : "svg" });
    chart.on("finished", () => {
      element.dataset.drawn = "yes";
    });
    draw();
  }).observe(plot);
  onThemeChange(draw);
  update();
  return { element, update, chart: () => chart };
}

function base(colours: Theme): Option {
  return {
    animation: false,
    textStyle: { color: colours.text, fontFamily: colours.font, fontSize: 12 },
    grid: { left: 8, right: 24, top: 34, bottom: 8, containLabel: true },
    tooltip: {
      confine: true,
      backgroundColor: colours.surface,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontFamily: colours.font, fontSize: 13 },
    },
  };
}

export function axis(colours: Theme, name: string, more: object = {}): object {
  return {
    name,
    nameTextStyle: { color: colours.muted },
    axisLine: { lineStyle: { color: colours.line } },
    axisTick: { lineStyle: { color: colours.line } },
    splitLine: { lineStyle: { color: colours.line, opacity: 0.6 } },
    axisLabel: { color: colours.muted },
    ...more,
  };
}

export function legend(colours: Theme, more: object = {}): object {
  return {
    type: "scroll",
    pageTextStyle: { color: colours.muted },
    pageIconColor: colours.text,
    pageIconInactiveColor: colours.line,
    top: 0,
    left: 0,
    itemWidth: 14,
    itemHeight: 9,
    textStyle: { color: colours.text },
    ...more,
  };
}

/** What a tooltip shows: a title and lines, as elements, so that names from files are never taken for HTML. */
export function tip(title: string, lines: [string, string][]): HTMLElement {
  const list = h("dl", { class: "tip" });
  for (const [name, value] of lines) list.append(h("dt", {}, name), h("dd", {}, value));
  return h("div", {}, h("strong", {}, title), list);
}
