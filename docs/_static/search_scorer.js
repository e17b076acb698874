// How search results are ranked: a reader with a task finds the how-to before the reference.
// Sphinx reads this in place of its own `Scorer`, whose other figures these are.
var Scorer = {
  score: ([docName, , , , score]) => {
    const boosts = { "how-to": 30, tutorial: 20, reference: -5, decisions: -10 };
    return score + (boosts[docName.split("/")[0]] ?? 0);
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
