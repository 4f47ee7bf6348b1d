"""`semcast profile`: the obsolescence of recorded traffic, on traces of any size.

A run goes through these files: `sources` finds the files, `readers` and `read` make rows of one schema of
them, `validate` checks every row, `partial` profiles one segment in arrays, `segments` and `merge` put
segments together, `job` reads the answer off, `output` and `chart` write it. Nothing is imported here:
executors load only what runs on them.
"""
