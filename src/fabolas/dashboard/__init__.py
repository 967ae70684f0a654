"""The live page: the report of a study in the browser, updated while the study runs.

``watched.py`` reads files when they change, ``pace.py`` says how often, ``comparison.py`` compares several studies,
``pages.py`` writes the HTML, ``app.py`` answers requests, and ``server.py`` runs it on 127.0.0.1.
"""
