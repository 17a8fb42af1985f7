// Light or dark: the system's choice until the reader takes another, kept while the page is open.
import { h } from "./dom";

export interface Theme {
  text: string;
  muted: string;
  line: string;
  surface: string;
  warn: string;
  font: string;
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: value("--text"),
    muted: value("--muted"),
    line: value("--line"),
    surface: value("--surface"),
    warn: value("--warn"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

const tell = () => listeners.forEach((listener) => listener());
system.addEventListener("change", tell);

/** Charts are redrawn in light colours and to the width of a sheet while the page is printed. */
let beforePrint: string | undefined;
window.addEventListener("beforeprint", () => {
  beforePrint = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  document.documentElement.classList.add("printing");
  tell();
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  if (beforePrint) document.documentElement.dataset.theme = beforePrint;
  else delete document.documentElement.dataset.theme;
  tell();
});

export function themeToggle(): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", id: "theme-toggle" });
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    tell();
  });
  onThemeChange(show);
  show();
  return button;
}
