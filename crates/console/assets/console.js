// Connects the pages with their streams. Everything else works without it.
"use strict";

(() => {
  const main = () => document.getElementById("main");
  const say = (id, text) => { const place = document.getElementById(id); if (place) place.textContent = text; };

  // A page is woken at most once a second, and then asks for its visible part again. A hidden page asks when it is looked at.
  const QUIET = 30_000;
  let isPaused = false, isStale = false, isAsking = false, lastAsked = Date.now();

  async function renew() {
    if (isPaused || document.hidden || isAsking) { isStale = true; return; }
    isStale = false;
    isAsking = true;
    lastAsked = Date.now();
    try {
      await htmx.ajax("GET", location.pathname + location.search, { target: "#live", swap: "morph" });
    } finally {
      isAsking = false;
      if (isStale) setTimeout(renew, 1000);
    }
  }

  function watch(address) {
    let isFirst = true;
    const stream = new EventSource(address);
    const shown = (isLost) => {
      const button = document.getElementById("pause");
      button?.classList.toggle("lost", isLost);
      if (!isPaused) button?.querySelector(".word").replaceChildren(isLost ? "Reconnecting" : "Live");
    };
    stream.addEventListener("wake", () => { shown(false); if (isFirst && Date.now() - lastAsked < 1000) { isFirst = false; return; } renew(); });
    stream.onerror = () => {
      shown(true);
      // The browser gives up after a refusal: ask now and then, as the session may have ended.
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => { renew(); watch(address); }, 5000);
    };
    window.addEventListener("pagehide", () => stream.close());
  }

  function live() {
    const address = main()?.dataset.wakes;
    if (!address) return;
    watch(address);
    // What has no event: ages of polls, nodes that come and go.
    setInterval(() => { if (Date.now() - lastAsked >= QUIET) renew(); }, 5000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) renew(); });
    const button = document.getElementById("pause");
    button?.addEventListener("click", () => {
      isPaused = !isPaused;
      button.setAttribute("aria-pressed", String(isPaused));
      button.querySelector(".word").textContent = isPaused ? "Paused" : "Live";
      if (!isPaused && isStale) renew();
    });
  }

  // Times go on between renewals, by the clock of the service.
  const ahead = Date.now() - Number(document.body.dataset.now);
  const units = (seconds) => seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min` : seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
  const exact = (seconds) => {
    const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
    return days ? `${days} d ${hours} h` : hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
  };
  function tick() {
    for (const time of document.querySelectorAll("time[data-ago], time[data-since]")) {
      const seconds = Math.max(0, Math.floor((Date.now() - ahead - Date.parse(time.dateTime)) / 1000));
      const text = "ago" in time.dataset ? `${units(seconds)} ago` : exact(seconds);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  // What a visitor has opened, chosen or typed outlives a renewal.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => !(old instanceof HTMLElement && "keep" in old.dataset && old.id === fresh.id);

  // Selections.
  const picked = (name) => document.querySelectorAll(`input[name="${name}"]:checked`);
  function count() {
    for (const place of document.querySelectorAll("[data-picked]")) {
      const number = picked(place.dataset.picked).length;
      place.textContent = number === 0 ? "No job selected" : number === 1 ? "1 job selected" : `${number} jobs selected`;
    }
    for (const button of document.querySelectorAll("[data-needs-pick]")) button.disabled = picked(button.dataset.needsPick).length === 0;
    for (const all of document.querySelectorAll("[data-pick-all]")) {
      const boxes = document.querySelectorAll(`input[name="${all.dataset.pickAll}"]`);
      const number = picked(all.dataset.pickAll).length;
      all.checked = number > 0 && number === boxes.length;
      all.indeterminate = number > 0 && number < boxes.length;
    }
  }
  document.addEventListener("change", (event) => {
    const { target } = event;
    if (target.dataset.pickAll) for (const box of document.querySelectorAll(`input[name="${target.dataset.pickAll}"]`)) box.checked = target.checked;
    if (target.type === "checkbox") count();
    if (target.form && "submits" in target.form.dataset) target.form.requestSubmit();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.question && !confirm(button.dataset.question)) event.preventDefault();
    if (button.dataset.copy) copy(button);
  }, true);

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).innerText;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without HTTPS there is no clipboard: the text is selected, to be copied by hand.
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  // A notice that an action has changed something comes before its event.
  document.addEventListener("renew", () => { for (const box of picked("job")) box.checked = false; renew(); });
  document.addEventListener("htmx:afterSwap", () => { tick(); count(); });
  document.addEventListener("htmx:sendError", () => say("notice", "The service does not answer."));

  // `/` leads to the filter, as in many tools.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const field = document.querySelector("input[type=search]");
    if (field) { event.preventDefault(); field.focus(); }
  });

  // The end of a log as it grows.
  const KEPT = 5000;
  function follow(frame) {
    const [log, partial, button] = ["log", "partial", "follow"].map((id) => document.getElementById(id));
    let isFollowing = true, stream = null, next = null;
    const address = () => { const url = new URL(frame.dataset.follow, location.href); if (next !== null) url.searchParams.set("offset", next); return url; };
    const toEnd = () => { if (isFollowing) frame.scrollTop = frame.scrollHeight; };
    const set = (on) => { isFollowing = on; button.setAttribute("aria-pressed", String(on)); toEnd(); };
    const take = (data) => {
      document.getElementById("log-note")?.remove();
      if (data.anew) log.replaceChildren();
      if (data.skipped) log.append(`… ${data.skipped} bytes came too fast and are not shown …\n`);
      log.insertAdjacentHTML("beforeend", data.html);
      partial.innerHTML = data.partial;
      if (isFollowing) while (log.childNodes.length > KEPT) log.firstChild.remove();
      if (data.note) say("follow-state", data.note);
      next = data.next;
      toEnd();
    };
    const connect = () => {
      stream = new EventSource(address());
      stream.onopen = () => say("follow-state", "Following");
      stream.addEventListener("lines", (event) => take(JSON.parse(event.data)));
      stream.addEventListener("end", (event) => { take(JSON.parse(event.data)); stream.close(); });
      // The stream goes on where it stopped, so the browser must not repeat its first address.
      stream.onerror = () => { stream.close(); say("follow-state", "Reconnecting…"); setTimeout(connect, 2000); };
    };
    button.addEventListener("click", () => set(!isFollowing));
    frame.addEventListener("wheel", (event) => { if (event.deltaY < 0) set(false); }, { passive: true });
    frame.addEventListener("keydown", (event) => { if (["PageUp", "Home", "ArrowUp"].includes(event.key)) set(false); if (event.key === "End") set(true); });
    window.addEventListener("pagehide", () => stream?.close());
    toEnd();
    connect();
  }

  // A page that the browser kept for the way back has no streams any more.
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  count();
  tick();
  setInterval(tick, 1000);
  live();
  const frame = document.querySelector("[data-follow]");
  if (frame) follow(frame);
  else if (!location.hash) { const log = document.querySelector(".log"); if (log && !/[?&](offset|before)=/.test(location.search)) log.scrollTop = log.scrollHeight; }
})();
