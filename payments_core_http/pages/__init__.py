"""The pages that payers open in a browser: rows, words, languages, templates, styles."""
