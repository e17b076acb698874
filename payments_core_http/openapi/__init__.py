"""The OpenAPI 3.1 document, made from the rows of the routes and their wire classes.

There is no second description: what a row, a class or a table does not say, the document does not
say either. `build_document` makes it.
"""
