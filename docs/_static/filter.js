// A box above the tables of operators: what is typed there leaves the rows that contain it, and the sections that have some.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".table-filter-place");
  if (!place) return;
  const box = document.createElement("input");
  box.type = "search";
  box.className = "table-filter";
  box.placeholder = "Filter: a name, an argument, a dtype …";
  box.setAttribute("aria-label", "Filter the tables");
  place.replaceWith(box);
  const sections = [...document.querySelectorAll("article section section")].map((section) => ({
    section,
    rows: [...section.querySelectorAll("tbody tr")].map((row) => ({ row, text: row.textContent.toLowerCase() })),
  }));
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { section, rows } of sections) {
      let found = 0;
      for (const { row, text } of rows) {
        const fits = words.every((word) => text.includes(word));
        row.hidden = !fits;
        found += fits;
      }
      section.hidden = rows.length > 0 && found === 0;
    }
  };
  box.addEventListener("input", filter);
  const asked = new URLSearchParams(location.search).get("filter");
  if (asked) {
    box.value = asked;
    filter();
  }
});
