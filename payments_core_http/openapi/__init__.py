"""The OpenAPI 3.1 document, made from the rows of the routes and their wire classes.

There is no second description: the document says only what a row, a class or a table says.
`build_document` makes it.
"""
