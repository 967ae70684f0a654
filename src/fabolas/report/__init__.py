"""The report of a study: one HTML file with the answer, the figures, all trials and the record.

``content.py`` computes what the page shows, ``sections.py`` writes it as HTML, ``document.py`` makes one file of it.
The live page (``fabolas.dashboard``) shows the same content with the same ``static/page.js`` and ``static/page.css``.
"""

from fabolas.report.document import report_html, write_report

__all__ = ["report_html", "write_report"]
