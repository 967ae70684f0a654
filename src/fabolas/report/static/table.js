// The table of trials: sorts, filters, and shows the traceback of a failure. All text goes in as text, never as HTML.
"use strict";

const fabolasTable = (() => {
  const FIRST_ROWS = 25;
  const MORE_ROWS = 100; // at each click
  const FEW_ROWS = 5; // so many more are shown without a click
  const PRINTED_COLUMNS = 12; // that paper has room for; the style sheet hides the others there
  const LONG_NAME = 24; // characters of a title; of a longer one the middle is left out
  const NAME_START = 7; // characters that are kept from its start
  const HIDDEN = new Set(["error"]); // columns that are shown in the details of a row only
  const NUMERIC = new Set(["number", "seconds"]); // kinds of columns that are aligned at the right
  const CONDITION = /^(.+?)(<=|>=|<|>|=)(.+)$/;

  function make(name, text, attributes = {}) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  // A time in two units, as plots/durations.py writes it: 70.9 µs, 12.3 s, 1 min 05 s, 3 h 52 min, 2 d 07 h. Here
  // all three digits are kept, because times are compared digit by digit: 5.60 s.
  function duration(value) {
    if (value >= 59.95) {
      const kinds = [[172800, 3600, 24, "d", "h"], [3599.5, 60, 60, "h", "min"], [0, 1, 60, "min", "s"]];
      const [, seconds, per, unit, small] = kinds.find(([from]) => value >= from);
      const total = Math.round(value / seconds);
      const [whole, rest] = [Math.floor(total / per).toLocaleString("en-US"), total % per];
      return rest ? `${whole} ${unit} ${String(rest).padStart(2, "0")} ${small}` : `${whole} ${unit}`;
    }
    const [unit, name] = [[1, "s"], [0.001, "ms"], [0.000001, "µs"]].find(([unit]) => value >= 0.9995 * unit) ?? [1, "s"];
    return `${value > 0 ? (value / unit).toPrecision(3) : value} ${name}`;
  }

  const SUPERSCRIPT = { "-": "⁻", ...Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((c, i) => [i, c])) };

  // A number with so many significant digits, or fewer, but at least so many: 1,250.5, 12,345,700, 3.2×10⁻⁵.
  function numeral(value, digits, least = 1) {
    if (Number.isInteger(value)) return value.toLocaleString("en-US");
    if (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e9) {
      return value.toLocaleString("en-US", { minimumSignificantDigits: least, maximumSignificantDigits: digits });
    }
    const [mantissa, exponent] = Number(value.toPrecision(digits)).toExponential().split("e");
    const power = `10${exponent.replace("+", "").replace(/./g, (c) => SUPERSCRIPT[c])}`;
    return mantissa === "1" ? power : `${mantissa}×${power}`;
  }

  // Four digits, and more for values that are close together, so that those of each quarter can be told apart.
  function digitsOf(values) {
    const sorted = values.filter((value) => typeof value === "number").sort((a, b) => a - b);
    const quarters = [0, 0.25, 0.5, 0.75, 1].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
    const [lowest, low, , high, highest] = quarters;
    const steps = quarters.slice(1).map((value, i) => value - quarters[i]).filter((step) => step > 0);
    if (!steps.length || low * high <= 0 || Math.max(low / high, high / low) > 2) return 4;
    const place = (value) => Math.floor(Math.log10(value));
    const needed = place(Math.max(Math.abs(lowest), Math.abs(highest))) - place(Math.min(...steps) / 10) + 1;
    return Math.min(Math.max(needed, 4), 8);
  }

  // Equal decimals for values that are within two decades, so that they are below each other; null for others.
  function decimalsOf(values, digits) {
    const sizes = values.filter((value) => typeof value === "number" && value !== 0).map(Math.abs);
    const places = [Math.min(...sizes), Math.max(...sizes)].map((size) => Math.floor(Math.log10(size)));
    if (!sizes.length || places[0] < -3 || places[1] > 3 || places[1] - places[0] > 2) return null;
    return Math.max(digits - 1 - places[0], 0);
  }

  function shown(value, kind, digits = 4, least = 1) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return kind === "seconds" ? duration(value) : numeral(value, digits, least);
    if (typeof value === "boolean") return value ? "True" : "False";
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }

  // The end is kept, because it says most in names such as "classifier__learning_rate".
  function shortName(name) {
    return name.length <= LONG_NAME ? name : `${name.slice(0, NAME_START)}…${name.slice(NAME_START + 1 - LONG_NAME)}`;
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
        type: "search", placeholder: "Filter", "aria-label": "Filter trials", autocomplete: "off", spellcheck: "false",
      });
      this.status = make("select", undefined, { "aria-label": "Status" });
      this.count = make("output");
      this.table = make("table", undefined, { class: "trials" });
      this.more = make("button", "", { type: "button", class: "more" });
      this.printed = make("p", "", { class: "print-only" }); // paper has no button
      this.tools = make("div", undefined, { class: "tools" });
      this.tools.append(this.search, this.status, this.count);
      this.scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Trials" });
      this.scroll.append(this.table);
      place.replaceChildren(this.tools, this.scroll, this.more, this.printed);
      this.scroll.addEventListener("scroll", () => this.markEdge(), { passive: true });
      new ResizeObserver(() => this.markEdge()).observe(this.scroll);
      this.search.addEventListener("input", () => this.restart());
      this.status.addEventListener("change", () => this.restart());
      this.more.addEventListener("click", () => { this.limit += MORE_ROWS; this.show(); });
    }

    restart() {
      this.limit = FIRST_ROWS;
      this.show();
    }

    // Fade the right edge while columns continue there.
    markEdge() {
      const left = this.scroll.scrollWidth - this.scroll.clientWidth - this.scroll.scrollLeft;
      this.scroll.classList.toggle("continues", left > 1);
    }

    update({ columns, rows, best = [], reason = "" }) {
      this.columns = columns;
      this.rows = rows;
      this.best = new Set(best); // ids of the trials of the answer
      this.reason = reason;
      this.index = Object.fromEntries(columns.map((column, i) => [column.key, i]));
      this.visible = columns.map((column, i) => ({ ...column, i })).filter((column) => !HIDDEN.has(column.key));
      for (const column of this.visible) {
        const values = rows.map((row) => row[column.i]);
        if (column.kind === "number") column.digits = digitsOf(values);
        if (column.key === "loss") column.decimals = decimalsOf(values, column.digits);
      }
      this.search.placeholder = this.example();
      const kinds = [...new Set(rows.map((row) => row[this.index.status]))].sort();
      const chosen = this.status.value;
      this.status.replaceChildren(make("option", "all trials", { value: "" }), ...kinds.map((kind) => make("option", kind, { value: kind })));
      this.status.value = kinds.includes(chosen) ? chosen : "";
      this.status.hidden = kinds.length < 2;
      this.tools.hidden = rows.length === 0;
      this.show();
    }

    // A filter for this study, as an example: Filter: loss<0.1 kernel=rbf.
    example() {
      const values = (column) => this.rows.map((row) => row[column.i]).filter((value) => value !== null && value !== undefined && !/\s/.test(value));
      const text = (value, digits) => (Math.abs(value) >= 1e-3 ? numeral(value, digits) : String(Number(value.toPrecision(digits))));
      const middle = (column) => {
        const sorted = values(column).filter((value) => typeof value === "number").sort((a, b) => a - b);
        return sorted.length ? text(sorted[sorted.length >> 1], column.digits - 2) : null;
      };
      const loss = this.visible.find((column) => column.key === "loss");
      const limit = loss ? middle(loss) : null;
      const parts = limit === null ? [] : [`${loss.title}${loss.title === "value" ? ">" : "<"}${limit}`];
      const usable = this.visible.filter((column) => /^(config|fidelity)_/.test(column.key) && /^\S{1,16}$/.test(column.title) && values(column).length);
      const chosen = usable.find((column) => column.kind === "text") ?? usable.find((column) => column.key.startsWith("fidelity_")) ?? usable[0];
      if (chosen?.kind === "text") parts.push(`${chosen.title}=${shown(values(chosen)[0])}`);
      else if (chosen) parts.push(`${chosen.title}>=${middle(chosen)}`);
      return parts.length ? `Filter: ${parts.join(" ")}` : "Filter";
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
      const limit = rows.length - this.limit <= FEW_ROWS ? rows.length : this.limit;
      this.table.replaceChildren(this.header(), this.body(rows.slice(0, limit)));
      this.markEdge();
      if (focused) this.table.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
      const all = `${this.rows.length.toLocaleString("en-US")} trial${this.rows.length === 1 ? "" : "s"}`;
      this.count.textContent = rows.length === this.rows.length ? all : `${rows.length.toLocaleString("en-US")} of ${all}`;
      const left = rows.length - limit;
      this.more.hidden = left <= 0;
      this.more.textContent = `Show ${Math.min(left, MORE_ROWS)} more`;
      const unprinted = left > 0 ? [`${left.toLocaleString("en-US")} more trial${left === 1 ? "" : "s"}`] : [];
      const columns = this.visible.length - PRINTED_COLUMNS;
      this.table.classList.toggle("wide", columns > 0);
      if (columns > 0) unprinted.push(`${columns} more column${columns === 1 ? "" : "s"}`);
      this.printed.textContent = unprinted.length ? `Not printed: ${unprinted.join(" and ")}.` : "";
    }

    header() {
      const line = make("tr");
      for (const column of this.visible) {
        const cell = make("th", undefined, { scope: "col" });
        if (NUMERIC.has(column.kind) && column.key !== "id") cell.className = "number";
        if (this.sort?.key === column.key) cell.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
        const title = shortName(column.title);
        const button = make("button", title, { type: "button", "data-focus": `sort ${column.key}` });
        if (title !== column.title) button.title = column.title;
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
        if (this.best.has(id)) {
          line.classList.add("best");
          line.title = "a trial of the best configuration";
        }
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
      const { kind, digits, decimals = null } = column;
      const aligned = decimals !== null && typeof value === "number";
      const least = column.key === "loss" ? digits : 1; // losses are compared digit by digit
      if (aligned) cell.textContent = value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
      else cell.textContent = shown(value, kind, digits, least);
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
        const plain = column.kind === "seconds" || typeof row[i] !== "number" ? shown(row[i], column.kind) : String(row[i]);
        list.append(make("dt", column.title), make("dd", plain));
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
