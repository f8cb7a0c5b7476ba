"""Importers that need no framework; those of a framework are in its adapter."""
