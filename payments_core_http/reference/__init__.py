"""The interactive reference of the API at `/docs`, and its document at `/openapi.json`.

All of it is served from here: the pages need no network but the one that they came over.
"""
