// Liveness, and nothing else: every page is whole without this file. A page that says data-live is
// fetched again while somebody looks at it, and its content put in place when it has changed; never
// under a person who types, selects or has something open there.
(() => {
  const region = document.querySelector("[data-live]");
  if (!region) return;
  const EVERY_MS = 10000;
  const busy = () => {
    const at = document.activeElement;
    if (at && region.contains(at) && at !== region) return true;
    const selected = document.getSelection();
    if (selected && !selected.isCollapsed && region.contains(selected.anchorNode)) return true;
    return false;
  };
  const refresh = async () => {
    if (document.hidden || busy()) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-live]");
      if (!fresh || fresh.innerHTML === region.innerHTML || busy()) return;
      const open = [...region.querySelectorAll("details[open]")].map((one) => one.id);
      region.replaceChildren(...fresh.childNodes);
      for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
    } catch { /* the next turn tries again */ }
  };
  setInterval(refresh, EVERY_MS);
})();
