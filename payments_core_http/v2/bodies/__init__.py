"""What v2 takes in: wire classes with the wire's own names.

Types and `Meta` are the whole rule: the bodies are read by it and the schemas printed from it.
Absent and null are the same where the type says `| None`, and null is refused elsewhere.
"""
