"""The paper's experiments: scripts and tables that are not part of the installed package."""
