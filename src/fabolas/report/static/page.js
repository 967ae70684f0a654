// Draws the figures and the table, follows the theme, and, on the live page, what the server reports.
"use strict";

(() => {
  const root = document.body;
  const live = root.dataset.mode === "live";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 40rem)");
  const coarse = matchMedia("(pointer: coarse)");
  const PRINT_WIDTH = 900; // CSS pixels; the style sheet reduces it to the width of the paper
  const CONFIG = {
    displaylogo: false, responsive: true, scrollZoom: false,
    showSendToCloud: false, // no button that sends the figure to another server
    modeBarButtonsToRemove: ["sendChartToCloud", "lasso2d", "select2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
  };

  let darkColours = {};
  let lightColour = /$^/g; // matches each colour that the dark theme replaces
  let printing = false;

  function setDarkColours(colours) {
    darkColours = colours;
    const names = Object.keys(colours).sort((a, b) => b.length - a.length);
    if (names.length) lightColour = new RegExp(names.map((name) => name.replace(/[().]/g, "\\$&")).join("|"), "g");
  }

  // ---- figures

  // Paths are those of Plotly.relayout: "xaxis.domain", "annotations[0].xshift".
  function setPath(object, path, value) {
    const keys = path.replaceAll("]", "").split(/[.[]/);
    const last = keys.pop();
    for (const key of keys) object = object[key] ??= {};
    object[last] = value;
  }

  // The figure of Plotly for the present theme and width.
  function adapted(text) {
    const useDark = dark.matches && !printing;
    const figure = JSON.parse(useDark ? text.replace(lightColour, (colour) => darkColours[colour]) : text);
    const { layout } = figure;
    const changes = layout.meta?.[narrow.matches && !printing ? "narrow" : "wide"] ?? {};
    for (const [path, value] of Object.entries(changes)) setPath(layout, path, value);
    layout.uirevision = "kept"; // an update keeps what the user has zoomed to
    if (coarse.matches) layout.dragmode = false; // a finger scrolls the page
    if (printing) layout.width = PRINT_WIDTH;
    else layout.autosize = true;
    return figure;
  }

  // Further figures are in elements of their own below the place.
  function drawMore(place, texts) {
    const elements = (place.further ??= []);
    while (elements.length > texts.length) {
      const last = elements.pop();
      Plotly.purge(last);
      last.remove();
    }
    texts.forEach((text, i) => {
      if (!elements[i]) {
        elements[i] = document.createElement("div");
        elements[i].className = "plot";
        elements[i].setAttribute("role", "img");
        elements[i].setAttribute("aria-label", place.getAttribute("aria-label"));
        (elements[i - 1] ?? place).after(elements[i]);
      }
      drawFigure(elements[i], text);
    });
  }

  function drawFigure(element, text) {
    const { data, layout } = adapted(text);
    Plotly.react(element, data, layout, { ...CONFIG, displayModeBar: !coarse.matches });
  }

  function draw(place) {
    const { text, more } = place.panel;
    if (place.panel.reason !== null) {
      if (globalThis.Plotly) Plotly.purge(place);
      const reason = document.createElement("p");
      reason.className = "reason";
      reason.textContent = place.panel.reason;
      place.replaceChildren(reason);
      place.removeAttribute("role");
    } else {
      place.querySelector(":scope > .reason")?.remove();
      place.setAttribute("role", "img");
      drawFigure(place, text);
    }
    drawMore(place, more);
    place.classList.remove("waiting");
    place.dataset.drawn = place.panel.reason === null ? "figure" : "reason";
  }

  function show(place, panel) {
    const next = { reason: panel.reason, text: JSON.stringify(panel.figure), more: (panel.more ?? []).map((each) => JSON.stringify(each)) };
    if (JSON.stringify(place.panel) === JSON.stringify(next)) return;
    place.panel = next;
    draw(place);
  }

  const plots = [...document.querySelectorAll(".plot[data-figure]")];
  const redraw = () => plots.filter((place) => place.panel).forEach(draw);
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  addEventListener("beforeprint", () => { printing = true; redraw(); });
  addEventListener("afterprint", () => { printing = false; redraw(); });

  // ---- copy buttons, contents

  addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch { // no permission: select it, so that Ctrl-C copies it
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });

  const links = new Map([...document.querySelectorAll("nav a[href^='#']")].map((a) => [a.hash.slice(1), a]));
  function markCurrent() {
    const above = [...links].filter(([id]) => document.getElementById(id)?.getBoundingClientRect().top < 120);
    const current = above.at(-1)?.[1];
    for (const link of links.values()) {
      if (link === current) {
        if (!link.hasAttribute("aria-current")) link.parentElement.scrollTo({ left: link.offsetLeft - 60 });
        link.setAttribute("aria-current", "true");
      } else link.removeAttribute("aria-current");
    }
    if (!current) document.querySelector("nav")?.scrollTo({ left: 0 }); // back at the top of the page
  }
  addEventListener("scroll", () => requestAnimationFrame(markCurrent), { passive: true });
  const contents = document.querySelector("nav");
  contents?.addEventListener("scroll", () => contents.classList.toggle("scrolled", contents.scrollLeft > 1), { passive: true });

  const tablePlace = document.getElementById("trials-table");
  const table = tablePlace && new fabolasTable(tablePlace);

  // ---- the report: all data is in the file, compressed

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  async function showReport() {
    if (!globalThis.DecompressionStream) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = "This browser is too old for the figures and the table. Please open the report with one from 2023 or later.";
      document.querySelector("main").prepend(note);
      return;
    }
    const data = JSON.parse(await unpacked("packed-data"));
    setDarkColours(data.dark);
    table.update(data.trials);
    const script = document.createElement("script");
    script.textContent = await unpacked("packed-plotly"); // its hash is in the Content-Security-Policy
    document.head.append(script);
    for (const place of plots) {
      show(place, data.figures[place.dataset.figure]);
      await new Promise((done) => setTimeout(done)); // the page stays responsive
    }
    root.dataset.ready = "true";
  }

  // ---- the live page: the server says when there is something new, and the page fetches what is in view

  const inView = new Set();
  const IDLE_PER_BUSY = 25; // milliseconds without work for each one of drawing, so that a run on this machine goes on
  const LONGEST_REST = 15000;
  let reported = null; // the newest version of the files
  let version = null; // the version that the page shows, or is about to show
  let drawing = 0; // milliseconds for the present version
  let resting = false;
  let busy = false;
  let ended = false; // the server said that it ends

  async function fetched(path) {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  }

  function replaceSections(sections) {
    for (const [id, text] of Object.entries(sections)) {
      const place = document.getElementById(id);
      if (place.shown === text) continue;
      const opened = [...place.querySelectorAll("details")].map((details) => details.open);
      place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      place.querySelectorAll("details").forEach((details, i) => { details.open = opened[i] ?? false; });
      place.shown = text;
    }
  }

  async function refreshPlace(place, wanted) {
    const content = await fetched(place === tablePlace ? "trials" : `figures/${place.dataset.figure}`);
    const started = performance.now();
    if (place === tablePlace) table.update(content);
    else show(place, content);
    drawing += performance.now() - started;
    place.version = wanted;
  }

  // Take up a new version, after a rest in proportion to what the last one cost.
  function follow(newest) {
    reported = newest;
    if (resting) return;
    version = reported;
    refresh();
  }

  function rest() {
    if (resting || drawing === 0) return;
    resting = true;
    setTimeout(() => { resting = false; if (reported !== version) follow(reported); }, Math.min(IDLE_PER_BUSY * drawing, LONGEST_REST));
    drawing = 0;
  }

  // Bring all that is in view to the newest version, one after another.
  async function refresh() {
    if (busy || version === null || document.hidden) return;
    busy = true;
    try {
      while (!document.hidden) {
        const wanted = version;
        if (root.dataset.version !== wanted) {
          replaceSections(await fetched("sections"));
          root.dataset.version = wanted;
        }
        const stale = [...plots, tablePlace].find((place) => place && inView.has(place) && place.version !== version);
        if (stale) await refreshPlace(stale, version);
        else if (wanted === version) break;
      }
      if (!ended) connection("");
      if (root.dataset.ready) rest();
      drawing = 0; // opening the page needs no rest
      root.dataset.ready = "true";
    } catch {
      if (!ended) {
        connection("The page cannot reach the dashboard. It shows the last state that it received.");
        setTimeout(refresh, 5000);
      }
    } finally {
      busy = false;
    }
  }

  function connection(text) {
    const place = document.getElementById("connection");
    place.textContent = text;
    place.hidden = !text;
  }

  async function showLive() {
    setDarkColours(await fetched(root.dataset.colours));
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.isIntersecting ? inView.add(entry.target) : inView.delete(entry.target);
      refresh();
    }, { rootMargin: "500px" });
    [...plots, tablePlace].forEach((place) => place && observer.observe(place));
    document.addEventListener("visibilitychange", refresh);
    const events = new EventSource("events");
    events.addEventListener("version", (event) => follow(event.data));
    events.addEventListener("tick", async () => {
      if (!busy && !document.hidden) replaceSections(await fetched("sections"));
    });
    events.addEventListener("end", (event) => {
      ended = true;
      resting = false;
      follow(event.data);
      events.close();
      connection("The run and its dashboard have ended. This is the last state.");
    });
    events.addEventListener("error", () => {
      if (events.readyState !== EventSource.CLOSED) connection("The connection to the dashboard is lost. Trying again …");
    });
    events.addEventListener("open", () => connection(""));
  }

  plots.forEach((place) => place.classList.add("waiting"));
  markCurrent();
  if (live) showLive();
  else showReport();
})();
