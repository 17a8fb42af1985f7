// Elements without a framework. Text always goes in as text nodes, so names from files can hold any characters.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

export type TableCell = string | number | { text: string; title?: string; node?: Node };
export interface TableData {
  head: string[];
  rows: TableCell[][];
}

const isFigure = (cell: TableCell): boolean => {
  const text = typeof cell === "object" ? cell.text : String(cell);
  return /^[−+<]?\s?[\d,]+(\.\d+)?(\s?[%×A-Za-zµ/]+)?$/.test(text);
};

/** Figures are set to the right; the first column names the row. */
export function table(data: TableData, caption: string): HTMLElement {
  const body = h("tbody");
  for (const row of data.rows) {
    const line = h("tr");
    row.forEach((cell, i) => {
      const text = typeof cell === "object" ? cell.text : String(cell);
      const attributes = {
        class: isFigure(cell) && i > 0 ? "figure" : text.length > 32 ? "long" : undefined,
        title: typeof cell === "object" ? cell.title : undefined,
      };
      const content = typeof cell === "object" && cell.node ? cell.node : text;
      line.append(i === 0 ? h("th", { scope: "row", ...attributes }, content) : h("td", attributes, content));
    });
    body.append(line);
  }
  const first = data.rows[0] ?? [];
  const head = h("tr");
  data.head.forEach((text, i) => {
    head.append(
      h(
        "th",
        { scope: "col", class: i > 0 && first[i] !== undefined && isFigure(first[i]!) ? "figure" : undefined },
        text,
      ),
    );
  });
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, head), body),
  );
}

/** A table behind a summary, filled when it is first opened. */
export function foldedTable(summary: string, caption: string, data: () => TableData): HTMLElement {
  const details = h("details", {}, h("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(table(data(), caption));
  });
  return details;
}

let nextId = 0;
/** A labelled select; nothing to choose, nothing shown. */
export function choice(label: string, options: string[], chosen: (index: number) => void): HTMLElement | null {
  if (options.length < 2) return null;
  const id = `choice-${nextId++}`;
  const select = h("select", { id });
  options.forEach((text, i) => select.append(h("option", { value: i }, text)));
  select.addEventListener("change", () => chosen(select.selectedIndex));
  return h("span", { class: "choice" }, h("label", { for: id }, label), select);
}
