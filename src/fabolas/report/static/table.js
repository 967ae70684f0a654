// The table of trials: sorts, filters, and shows the traceback of a failure. All text goes in as text, never as HTML.
"use strict";

const fabolasTable = (() => {
  const FIRST_ROWS = 25;
  const MORE_ROWS = 100; // at each click
  const HIDDEN = new Set(["error"]); // columns that are shown in the details of a row only
  const NUMERIC = new Set(["number", "seconds"]); // kinds of columns that are aligned at the right
  const CONDITION = /^(.+?)(<=|>=|<|>|=)(.+)$/;

  function make(name, text, attributes = {}) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  const UNITS = [[3600, "h"], [60, "min"], [1, "s"], [0.001, "ms"], [0.000001, "µs"]];

  function shown(value, kind) {
    if (value === null || value === undefined) return "";
    if (kind === "seconds") {
      const [unit, name] = UNITS.find(([unit]) => value >= unit) ?? [1, "s"];
      return `${Number((value / unit).toPrecision(3))} ${name}`;
    }
    if (typeof value === "number") {
      if (Number.isInteger(value)) return value.toLocaleString("en-US");
      const rounded = Number(value.toPrecision(4));
      const large = Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3;
      return large ? rounded.toExponential() : rounded.toLocaleString("en-US", { maximumSignificantDigits: 4 });
    }
    if (typeof value === "boolean") return value ? "True" : "False";
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }

  // Numbers before text, values before missing ones.
  function compare(a, b) {
    const missing = (a === null || a === undefined) - (b === null || b === undefined);
    if (missing) return { order: missing, fixed: true };
    const kinds = (typeof a !== "number") - (typeof b !== "number");
    if (kinds) return { order: kinds, fixed: false };
    if (typeof a === "number") return { order: a - b, fixed: false };
    return { order: shown(a).localeCompare(shown(b), "en", { numeric: true }), fixed: false };
  }

  // A row fulfils "loss<0.1 kernel=rbf memory" if it fulfils all three parts; the last one may be in any cell.
  function filterOf(text, columns) {
    const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
    const tests = parts.map((part) => {
      const found = CONDITION.exec(part);
      const column = found && columns.findIndex((c) => c.title.toLowerCase() === found[1] || c.key.toLowerCase() === found[1]);
      if (!found || column < 0) return (row) => row.some((value) => shown(value).toLowerCase().includes(part));
      const limit = Number(found[3].replaceAll(",", ""));
      return (row) => {
        const value = row[column];
        if (found[2] === "=") return shown(value).toLowerCase() === found[3] || (value !== null && Number(value) === limit);
        if (typeof value !== "number" || Number.isNaN(limit)) return false;
        return { "<": value < limit, ">": value > limit, "<=": value <= limit, ">=": value >= limit }[found[2]];
      };
    });
    return (row) => tests.every((test) => test(row));
  }

  class Table {
    constructor(place) {
      this.place = place;
      this.columns = [];
      this.rows = [];
      this.sort = null; // {key, down}
      this.limit = FIRST_ROWS;
      this.opened = new Set(); // ids
      this.search = make("input", undefined, {
        type: "search", placeholder: "Filter: loss<0.1 kernel=rbf", "aria-label": "Filter trials", autocomplete: "off", spellcheck: "false",
      });
      this.status = make("select", undefined, { "aria-label": "Status" });
      this.count = make("output");
      this.table = make("table", undefined, { class: "trials" });
      this.more = make("button", "", { type: "button", class: "more" });
      this.printed = make("p", "", { class: "print-only" }); // paper has no button
      this.tools = make("div", undefined, { class: "tools" });
      this.tools.append(this.search, this.status, this.count);
      const scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Trials" });
      scroll.append(this.table);
      place.replaceChildren(this.tools, scroll, this.more, this.printed);
      this.search.addEventListener("input", () => this.restart());
      this.status.addEventListener("change", () => this.restart());
      this.more.addEventListener("click", () => { this.limit += MORE_ROWS; this.show(); });
    }

    restart() {
      this.limit = FIRST_ROWS;
      this.show();
    }

    update({ columns, rows, reason = "" }) {
      this.columns = columns;
      this.rows = rows;
      this.reason = reason;
      this.index = Object.fromEntries(columns.map((column, i) => [column.key, i]));
      this.visible = columns.map((column, i) => ({ ...column, i })).filter((column) => !HIDDEN.has(column.key));
      const kinds = [...new Set(rows.map((row) => row[this.index.status]))].sort();
      const chosen = this.status.value;
      this.status.replaceChildren(make("option", "all trials", { value: "" }), ...kinds.map((kind) => make("option", kind, { value: kind })));
      this.status.value = kinds.includes(chosen) ? chosen : "";
      this.status.hidden = kinds.length < 2;
      this.tools.hidden = rows.length === 0;
      this.show();
    }

    selected() {
      const keep = filterOf(this.search.value, this.columns);
      const status = this.status.value;
      const rows = this.rows.filter((row) => (!status || row[this.index.status] === status) && keep(row));
      if (this.sort) {
        const i = this.index[this.sort.key];
        const sign = this.sort.down ? -1 : 1;
        rows.sort((a, b) => {
          const { order, fixed } = compare(a[i], b[i]);
          return fixed ? order : sign * order;
        });
      }
      return rows;
    }

    show() {
      const rows = this.selected();
      const focused = this.table.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
      this.table.replaceChildren(this.header(), this.body(rows.slice(0, this.limit)));
      if (focused) this.table.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
      const all = `${this.rows.length.toLocaleString("en-US")} trial${this.rows.length === 1 ? "" : "s"}`;
      this.count.textContent = rows.length === this.rows.length ? all : `${rows.length.toLocaleString("en-US")} of ${all}`;
      const left = rows.length - this.limit;
      this.more.hidden = left <= 0;
      this.more.textContent = `Show ${Math.min(left, MORE_ROWS)} more`;
      this.printed.textContent = left > 0 ? `${left.toLocaleString("en-US")} more trials are not printed.` : "";
    }

    header() {
      const line = make("tr");
      for (const column of this.visible) {
        const cell = make("th", undefined, { scope: "col" });
        if (NUMERIC.has(column.kind) && column.key !== "id") cell.className = "number";
        if (this.sort?.key === column.key) cell.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
        const button = make("button", column.title, { type: "button", "data-focus": `sort ${column.key}` });
        button.addEventListener("click", () => this.sortBy(column.key));
        cell.append(button);
        line.append(cell);
      }
      const head = make("thead");
      head.append(line);
      return head;
    }

    // Up, down, and then the newest first.
    sortBy(key) {
      if (this.sort?.key !== key) this.sort = { key, down: false };
      else this.sort = this.sort.down ? null : { key, down: true };
      this.restart();
    }

    body(rows) {
      const body = make("tbody");
      for (const row of rows) {
        const id = row[this.index.id];
        const line = make("tr", undefined, { class: "row" });
        for (const column of this.visible) line.append(this.cell(row, column, id));
        line.addEventListener("click", (event) => {
          if (!getSelection().toString() || event.target.closest("button")) this.toggle(id);
        });
        body.append(line);
        if (this.opened.has(id)) body.append(this.detail(row));
      }
      if (!rows.length) {
        const line = make("tr");
        line.append(make("td", this.rows.length ? "No trial matches the filter." : this.reason, { colspan: String(this.visible.length || 1) }));
        body.append(line);
      }
      return body;
    }

    cell(row, column, id) {
      const value = row[column.i];
      const cell = make("td");
      if (column.key === "id") {
        const button = make("button", `#${id}`, { type: "button", class: "open-row", "data-focus": `row ${id}`, "aria-expanded": String(this.opened.has(id)) });
        cell.append(button);
        return cell;
      }
      cell.textContent = shown(value, column.kind);
      cell.className = NUMERIC.has(column.kind) ? "number" : "text";
      if (column.key === "status") cell.classList.add(value);
      if (typeof value === "string" && value.length > 24) cell.title = value;
      return cell;
    }

    toggle(id) {
      if (!this.opened.delete(id)) this.opened.add(id);
      this.show();
    }

    detail(row) {
      const cell = make("td", undefined, { colspan: String(this.visible.length) });
      const list = make("dl");
      for (const [i, column] of this.columns.entries()) {
        if (row[i] === null || row[i] === undefined || HIDDEN.has(column.key)) continue;
        const full = typeof row[i] === "object" ? JSON.stringify(row[i]) : String(row[i]);
        list.append(make("dt", column.title), make("dd", full));
      }
      cell.append(list);
      const error = row[this.index.error];
      if (error) cell.append(make("pre", error, { class: "traceback", tabindex: "0" }));
      const line = make("tr", undefined, { class: "detail" });
      line.append(cell);
      return line;
    }
  }

  return Table;
})();
