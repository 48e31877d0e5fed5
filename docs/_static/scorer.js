// Scores of search results: Sphinx's own, and more for a name that is spelled as the query is, so that "Linear" finds the
// class before the function.
var Scorer = {
  score: (result) => {
    const [, title, , , score] = result;
    const field = document.querySelector('input[name="q"]:focus') || document.querySelector('input[name="q"]');
    const query = new URLSearchParams(location.search).get("q") || (field ? field.value : "");
    return title === query || title.endsWith("." + query) ? score + 5 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
