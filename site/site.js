// What the theme leaves out for who uses a keyboard or has the page read out.
"use strict";

// What scrolls sideways is reached by the keyboard, and nothing else is.
const reachable = (one) => {
  const scrolls = one.scrollWidth > one.clientWidth;
  if (scrolls === one.hasAttribute("tabindex")) return;
  if (!scrolls) {
    for (const name of ["tabindex", "role", "aria-label"]) one.removeAttribute(name);
    return;
  }
  one.setAttribute("tabindex", "0");
  one.setAttribute("role", "group");
  one.setAttribute("aria-label", "Table, scrolls sideways");
};

const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => reachable(target)));

// The theme puts tables into what scrolls once the page is there.
const tend = () => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([data-tended])")) {
    one.dataset.tended = "";
    sizes.observe(one);
  }
  for (const [number, one] of document.querySelectorAll(".md-code__nav").entries()) {
    one.setAttribute("aria-label", `Code ${number + 1}`);
  }
};
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
tend();
new MutationObserver(tend).observe(document.body, { childList: true, subtree: true });
