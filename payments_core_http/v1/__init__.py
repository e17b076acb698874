"""The legacy interface under `/sdk/v1`: a translation, over the same core as v2."""
