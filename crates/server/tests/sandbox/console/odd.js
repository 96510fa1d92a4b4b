// In each page: what a stored text could have made of it. A script that runs calls `alert`, which is heard by the test.
(() => {
  const heard = (number) => console.error(`a stored script ran: ${number}`);
  window.alert = window.confirm = window.prompt = window.print = heard;
  const TAGS = new Set("a bdi body br button canvas caption circle code dd details div dl dt figcaption figure footer form g h1 h2 h3 head header html input label legend fieldset li line link main mark meta nav ol optgroup option p path pre progress rect script section select span strong summary svg table tbody td text textarea th thead time title tr ul".split(" "));
  const ATTRIBUTES = /^(aria-[a-z]+|autocapitalize|autocomplete|autofocus|charset|checked|class|cols|colspan|content|d|data-(ago|chart|copy|follow|keep|name|needs-pick|now|of|pick-all|picked|question|since|submits|wakes|idx)|datetime|defer|disabled|enterkeyhint|fill|focusable|for|height|href|hx-(confirm|disabled-elt|ext|get|include|indicator|post|push-url|replace-url|select|swap|sync|target|trigger)|id|inputmode|lang|max|maxlength|method|action|formaction|download|min|minlength|name|open|pattern|placeholder|points|r|rel|required|role|rows|rx|ry|scope|selected|size|spellcheck|src|stroke|tabindex|title|transform|type|value|viewBox|width|wrap|x|x1|x2|y|y1|y2|cx|cy|marker-end|preserveAspectRatio|text-anchor)$/;
  const ONCE = ["main", "live", "notice", "log", "partial"];
  const isOurs = (address) => { try { const to = new URL(address, location.href); return to.origin === location.origin && /^\/(ui|docs)(\/|$)/.test(to.pathname); } catch { return false; } };
  window.oddities = () => {
    const found = [];
    for (const element of document.querySelectorAll("*")) {
      const tell = (what) => found.push(`${what}: ${element.outerHTML.slice(0, 200)}`);
      if (!TAGS.has(element.localName)) tell("an element");
      if (element.localName === "script" && !isOurs(element.src)) tell("a script");
      for (const { name, value } of element.attributes) {
        if (name === "style" && element.closest(".uplot, body > div[style*='position: absolute']")) continue;
        if (!ATTRIBUTES.test(name)) tell(`the attribute ${name}`);
        if (/^(href|src|action|formaction|hx-get|hx-post|data-(wakes|follow|chart))$/.test(name) && !isOurs(value)) tell(`an address in ${name}`);
      }
    }
    for (const id of ONCE) if (document.querySelectorAll(`#${id}`).length > 1) found.push(`several #${id}`);
    if (!document.title.endsWith(" · tao-slurm")) found.push(`the title ${document.title}`);
    if (!isOurs(location.href)) found.push(`the place ${location.href}`);
    if (/[\u202a-\u202e\u2066-\u2069\u200b\u001b]/.test(document.body.innerText)) found.push("a character that turns or hides others");
    return found;
  };
  // Puts pages into this one as a renewal does, and returns what is odd in each.
  window.renewals = async (paths) => {
    const found = [];
    for (const path of paths) {
      await htmx.ajax("GET", path, { target: "#live", swap: "morph" });
      await new Promise((done) => setTimeout(done));
      if (document.querySelector("#live h1") === null) found.push(`${path} has no heading: ${document.getElementById("main").innerText.slice(0, 200)}`);
      found.push(...oddities().map((odd) => `${path}: ${odd}`));
    }
    return found;
  };
  // Puts each text into frames as it is, as the value of an attribute, and into a title: those that run call `alert` there.
  window.trials = async (texts, patience) => {
    const around = [(text) => text, (text) => `<input value="${text}">`, (text) => `<title>${text}</title>`];
    for (const text of texts) {
      const frames = around.map((whole) => Object.assign(document.createElement("iframe"), { srcdoc: whole(text) }));
      const loaded = frames.map((frame) => new Promise((done) => { frame.onload = done; setTimeout(done, patience); }));
      document.body.append(...frames);
      await Promise.all(loaded);
      await new Promise((done) => setTimeout(done));
      for (const frame of frames) frame.remove();
    }
  };
})();
