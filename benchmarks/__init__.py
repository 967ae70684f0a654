"""How fast the parts are."""
