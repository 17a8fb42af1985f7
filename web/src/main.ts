// Builds the page: header, navigation, and one section after another for each run that has data for it.
import "./style.css";
import { readReport, type Report } from "./data";
import { h } from "./dom";
import { changes, findings, notMeasured, pageHeader } from "./overview";
import { backends } from "./sections/backends";
import { curves } from "./sections/curves";
import { files } from "./sections/files";
import { plans } from "./sections/plan";
import { reconcile } from "./sections/reconcile";
import { replays } from "./sections/replay";
import { search } from "./sections/search";
import type { Section } from "./sections/section";
import { shapes } from "./sections/shape";
import { sizes } from "./sections/sizes";
import { steps } from "./sections/steps";
import { timeline } from "./sections/timeline";
import { winners } from "./sections/winners";

const sections: Section[] = [
  backends,
  steps,
  winners,
  curves,
  timeline,
  sizes,
  plans,
  reconcile,
  replays,
  shapes,
  search,
  files,
];

interface Built {
  id: string;
  title: string;
  element: HTMLElement;
}

/** One column for each run; a single run takes the whole width. */
function columns(report: Report, contents: (Node[] | null)[]): HTMLElement {
  if (report.runs.length === 1) return h("div", {}, ...(contents[0] ?? []));
  return h(
    "div",
    { class: "runs" },
    ...contents.map((nodes, i) =>
      h(
        "div",
        { class: "run" },
        h("p", { class: "run-name" }, report.runs[i]!.name),
        ...(nodes ?? [h("p", { class: "muted" }, "Not measured.")]),
      ),
    ),
  );
}

function section(id: string, title: string, lead: string, body: HTMLElement): Built {
  const heading = h("h2", { id: `${id}-title` }, title);
  return {
    id,
    title,
    element: h(
      "section",
      { id, "aria-labelledby": `${id}-title` },
      heading,
      lead ? h("p", { class: "lead" }, lead) : null,
      body,
    ),
  };
}

function build(report: Report): Built[] {
  const built = [section("findings", "What matters", "", columns(report, report.runs.map(findings)))];
  const differences = changes(report);
  if (differences)
    built.push(
      section(
        "changes",
        "What changed",
        "What both runs measured: steps, then operations, largest changes first.",
        differences,
      ),
    );
  for (const { id, title, lead, render } of sections) {
    const contents = report.runs.map((run) => {
      const nodes = render(run);
      if (!nodes) return null;
      const words = run.findings
        .filter((finding) => finding.section === id)
        .map((finding) => h("p", { class: "finding" }, finding.sentence));
      return [...words, ...nodes.filter((node): node is Node => node !== null)];
    });
    if (contents.some((nodes) => nodes)) built.push(section(id, title, lead, columns(report, contents)));
  }
  built.push(
    section(
      "missing",
      "Not measured",
      "Parts of the report without data, and the command that would produce them.",
      columns(report, report.runs.map(notMeasured)),
    ),
  );
  return built;
}

/** Marks the section that is being read. */
function navigation(built: Built[]): HTMLElement {
  const links = new Map(built.map(({ id, title }) => [id, h("a", { href: `#${id}` }, title)]));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-15% 0px -75% 0px" },
  );
  built.forEach(({ element }) => observer.observe(element));
  return h("nav", { "aria-label": "Sections" }, h("ul", {}, ...[...links.values()].map((link) => h("li", {}, link))));
}

const report = readReport();
const built = build(report);
document.title = `Medley report: ${report.runs.map((run) => run.name).join(" against ")}`;
document.body.append(
  h("a", { class: "skip", href: "#findings" }, "Skip to the findings"),
  pageHeader(report),
  h("div", { class: "layout" }, navigation(built), h("main", {}, ...built.map(({ element }) => element))),
);
// The browser looked for the fragment before the sections existed.
if (location.hash) document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`)?.scrollIntoView();
