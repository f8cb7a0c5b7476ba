// The keyboard: "/" goes to the search, the arrow keys go through the memories. Everything works without it, too.
document.addEventListener("keydown", (event) => {
  const field = document.getElementById("q");
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !isTyping && field) {
    event.preventDefault();
    field.focus();
    field.select();
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || (isTyping && event.target !== field)) return;
  const links = [...document.querySelectorAll("#results .memories .text a")];
  const place = links.indexOf(document.activeElement);
  if (place < 0 && event.target !== field) return;
  event.preventDefault();
  const next = place + step;
  if (next < 0 && field) field.focus();
  else if (links[next]) links[next].focus();
});

// An error is shown where the answer would have been.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status >= 400) event.detail.shouldSwap = true;
});

// So is that there is no answer.
document.addEventListener("htmx:sendError", (event) => {
  const problem = document.createElement("p");
  problem.className = "problem";
  problem.setAttribute("role", "alert");
  problem.textContent = "The server does not answer. Start it again, or check the connection, and then search again.";
  event.detail.target.replaceChildren(problem);
});
